// References for u: the solved pair and its bound, which only Python computes, and fifty
// random u. For classes or files that Python has not seen, there is no bound; the page
// then solves for u by a few ascents, and says so.

import { decode, normals, randomUnit } from "./numbers.js";
import { evaluate, noiseCurve, readOut } from "./problem.js";
import { climb } from "./climb.js";

const ETAS = [1, 2, 3, 5, 10];
const TIMES = [0.25, 0.4, 0.55, 0.7, 0.85, 1];
const N_RANDOM = 50;
const STARTS = 3;

/** Return the values of η and of the readout step that the page offers for a pair. */
export function gridOf(set, pair, steps) {
  const solved = set.solved.find((one) => one.pair.join() === pair.join()) ?? null;
  if (solved) return { etas: solved.etas, steps: solved.steps, solved };
  const times = TIMES.map((share) => Math.max(1, Math.round(share * steps)));
  return { etas: ETAS, steps: [...new Set(times)], solved: null };
}

/** Return the reference at one point of the grid. */
export function referenceAt(network, comparison, cut, grid, etaIndex, stepIndex) {
  const eta = grid.etas[etaIndex];
  const found = grid.solved
    ? fromPython(network, comparison, grid.solved, etaIndex, stepIndex)
    : solvedHere(network, comparison, cut, eta);
  const best = evaluate(network, cut, found.u, eta, found.v);
  const z = readOut(cut.train, best.a, cut.size);
  return {
    ...found,
    kappa: best.kappa,
    a: best.a,
    reach: 1.25 * z.map(Math.abs).sort()[Math.floor(0.98 * (z.length - 1))],
    curve: noiseCurve(cut, comparison.share, best.a, found.noises),
  };
}

function fromPython(network, { set }, solved, etaIndex, stepIndex) {
  if (!solved.decoded) {
    const names = ["u", "v", "random", "accuracy"];
    solved.decoded = Object.fromEntries(names.map((k) => [k, decode(solved[k], "f4")]));
  }
  const at = etaIndex * solved.steps.length + stepIndex;
  const n = network.neurons;
  const part = (name, size) => solved.decoded[name].subarray(at * size, (at + 1) * size);
  const noises = solved.noises;
  const band = part("accuracy", 3 * noises.length);
  const line = (k) => Array.from(band.subarray(k * noises.length, (k + 1) * noises.length));
  return {
    u: part("u", n * set.channels),
    v: part("v", n),
    bound: solved.bound[at],
    random: Array.from(part("random", N_RANDOM)),
    noises,
    band: [line(0), line(1), line(2)],
  };
}

function solvedHere(network, comparison, cut, eta) {
  const size = network.neurons * cut.channels;
  let best = null;
  for (let seed = 1; seed <= STARTS; seed++) {
    for (const here of climb(network, cut, randomUnit(size, seed), eta)) {
      if (!best || here.kappa > best.kappa) best = here;
    }
  }
  best ??= { u: randomUnit(size, 1) };
  const top = evaluate(network, cut, best.u, eta);
  const most = Math.max(top.separation, 1e-6);
  const noises = Array.from({ length: 25 }, (_, i) => (most * i) / 24);
  const random = [];
  const curves = [];
  for (let k = 0; k < N_RANDOM; k++) {
    const one = evaluate(network, cut, randomUnit(size, 1000 + k), eta);
    random.push(one.kappa);
    curves.push(noiseCurve(cut, comparison.share, one.a, noises));
  }
  const quantile = (p) =>
    noises.map((_, i) => {
      const sorted = curves.map((curve) => curve[i]).sort((a, b) => a - b);
      return sorted[Math.round(p * (sorted.length - 1))];
    });
  const band = [quantile(0.1), quantile(0.5), quantile(0.9)];
  return { u: best.u, v: top.v, bound: null, random, noises, band };
}

/** Return draws of noise, two per series and the same for every frame. */
export function jitterFor(count) {
  return normals(2 * count, 7);
}
