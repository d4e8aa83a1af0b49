// The quadratic problem on the unit sphere: maximise b·v − ½ vᵀQv over ‖v‖ = 1, by the
// secular equation. The steps are those of greenfold's sphere.py, including the hard case.

import { norm } from "./numbers.js";

/** Eigenvalues this close to the smallest, relative to the largest, count as equal to it. */
const CLUSTER = 1e-13;

/**
 * Return the maximiser, from the eigendecomposition of Q.
 *
 * @param {Float64Array} b
 * @param {{values: Float64Array, vectors: Float64Array}} eigen of Q / eta
 * @param {number} eta Q is eta times the matrix that was decomposed.
 * @returns {Float64Array} v
 */
export function maximizeOnSphere(b, eigen, eta) {
  const n = b.length;
  const { values, vectors } = eigen;
  const c = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let total = 0;
    for (let k = 0; k < n; k++) total += vectors[i * n + k] * b[k];
    c[i] = total;
  }
  const largest = eta * Math.max(Math.abs(values[0]), Math.abs(values[n - 1]));
  const excess = Float64Array.from(values, (q) => eta * (q - values[0]));
  const lowest = excess.map((x) => (x <= CLUSTER * largest ? 1 : 0));
  const size = norm(c);
  let low = 0;
  let rest = 0;
  for (let i = 0; i < n; i++) {
    if (lowest[i]) {
      excess[i] = 0;
      low = Math.hypot(low, c[i]);
    } else rest += (c[i] / excess[i]) ** 2;
  }
  const parts = new Float64Array(n);
  if (low <= 4 * Number.EPSILON * size && rest < 1) {
    // No root: complete the norm along the lowest eigenvector.
    for (let i = 0; i < n; i++) parts[i] = lowest[i] ? 0 : c[i] / excess[i];
    parts[0] = Math.sqrt(1 - rest);
  } else {
    const shift = secularRoot(c, lowest, low, excess, size);
    for (let i = 0; i < n; i++) parts[i] = c[i] / (excess[i] + shift);
  }
  const length = norm(parts);
  const v = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const weight = parts[i] / length;
    for (let k = 0; k < n; k++) v[k] += weight * vectors[i * n + k];
  }
  return v;
}

/** Return how far the multiplier is below the lowest eigenvalue: bracketed Newton on 1/‖v‖. */
function secularRoot(c, lowest, low, excess, size) {
  const scale = size > 0 ? size : 1;
  const n = c.length;
  let most = 0;
  for (const x of excess) most = Math.max(most, x / scale);
  let lower = Math.max(low / scale, 1e-77, 1 - most);
  let upper = 1;
  let delta = lower;
  for (let round = 0; round < 100; round++) {
    let square = (low / scale / delta) ** 2;
    let cube = square / delta;
    for (let i = 0; i < n; i++) {
      if (lowest[i]) continue;
      const shifted = excess[i] / scale + delta;
      const part = (c[i] / scale / shifted) ** 2;
      square += part;
      cube += part / shifted;
    }
    const step = cube > 0 ? ((Math.sqrt(square) - 1) * square) / cube : 0;
    if (square > 1) lower = delta;
    else upper = delta;
    let moved = delta + step;
    if (!(moved >= lower && moved <= upper)) moved = Math.sqrt(lower * upper);
    if (Math.abs(moved - delta) <= 4 * Number.EPSILON * moved) break;
    delta = moved;
  }
  return delta * scale;
}
