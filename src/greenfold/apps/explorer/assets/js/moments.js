// Two classes of series in the coordinates of their comparison, and their moments there.

import { decode, norm } from "./numbers.js";

/** Return a data set stored in the page: series as numbers, and codes of their classes. */
export function readSet(content, steps) {
  const values = (part) => decode(part.X, "i2").map((x) => x * content.unit);
  const train = { X: values(content.train), codes: decode(content.train.codes, "u1") };
  const test = content.test
    ? { X: values(content.test), codes: decode(content.test.codes, "u1") }
    : train;
  return {
    ...content,
    size: content.channels * steps,
    steps,
    judged: content.test ? "test" : "training",
    train,
    test,
  };
}

/**
 * Return two classes, minus and plus, as (x − centre) · scale, with ‖μ‖ = scaling.
 *
 * The share of a class is the number of its series times its weight.
 */
export function compare(set, pair) {
  const { size } = set;
  const members = pair.map((code) => rowsOf(set.train.codes, code));
  const means = members.map((rows) => meanOf(set.train.X, rows, size));
  const centre = means[0].map((x, i) => (x + means[1][i]) / 2);
  const distance = norm(means[0].map((x, i) => (means[1][i] - x) / 2));
  if (!(distance > 0)) throw new Error("The two classes have the same mean.");
  const scale = set.scaling / distance;
  const weights = members.map((rows, k) => rows.length * set.weights[pair[k]]);
  const share = weights.map((w) => w / (weights[0] + weights[1]));
  const moved = (part) => {
    const rows = pair.map((code) => rowsOf(part.codes, code));
    const index = [...rows[0], ...rows[1]].sort((a, b) => a - b);
    const X = new Float64Array(index.length * size);
    const signs = Float64Array.from(index, (row) => (part.codes[row] === pair[1] ? 1 : -1));
    index.forEach((row, at) => {
      for (let k = 0; k < size; k++) {
        X[at * size + k] = (part.X[row * size + k] - centre[k]) * scale;
      }
    });
    return { X, signs };
  };
  const train = moved(set.train);
  const test = set.test === set.train ? train : moved(set.test);
  return { set, pair, means, centre, scale, share, train, test };
}

/** Return the series, μ and ψ, cut off at a readout step. */
export function cutOff(comparison, steps) {
  const { set, train, test, share } = comparison;
  const { channels } = set;
  const size = channels * steps;
  const cut = (part) => {
    const count = part.signs.length;
    const X = new Float64Array(count * size);
    for (let row = 0; row < count; row++) {
      for (let c = 0; c < channels; c++) {
        const from = row * set.size + c * set.steps;
        X.set(part.X.subarray(from, from + steps), row * size + c * steps);
      }
    }
    return { X, signs: part.signs, count };
  };
  const kept = cut(train);
  const judged = test === train ? kept : cut(test);
  return { size, steps, channels, train: kept, test: judged, ...labelled(kept, share, size) };
}

/** Return μ = ⟨ζx⟩ and ψ = cov(ζx), which has parts within and between the classes. */
function labelled({ X, signs }, share, size) {
  const rows = [-1, 1].map((sign) => rowsOf(signs, sign));
  const means = rows.map((some) => meanOf(X, some, size));
  const mu = means[0].map((x, i) => share[1] * means[1][i] - share[0] * x);
  const psi = new Float64Array(size * size);
  const centred = new Float64Array(size);
  rows.forEach((some, side) => {
    const weight = share[side] / some.length;
    for (const row of some) {
      for (let k = 0; k < size; k++) centred[k] = X[row * size + k] - means[side][k];
      addOuter(psi, centred, weight);
    }
  });
  addOuter(psi, means[0].map((x, i) => x + means[1][i]), share[0] * share[1]);
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < i; j++) psi[j * size + i] = psi[i * size + j];
  }
  return { mu, psi };
}

/** Add weight · x xᵀ to the lower triangle of `total`. */
function addOuter(total, x, weight) {
  const size = x.length;
  for (let i = 0; i < size; i++) {
    const factor = weight * x[i];
    for (let j = 0; j <= i; j++) total[i * size + j] += factor * x[j];
  }
}

function rowsOf(codes, wanted) {
  const found = [];
  codes.forEach((code, row) => code === wanted && found.push(row));
  return found;
}

function meanOf(X, rows, size) {
  const mean = new Float64Array(size);
  for (const row of rows) for (let k = 0; k < size; k++) mean[k] += X[row * size + k];
  return mean.map((x) => x / rows.length);
}
