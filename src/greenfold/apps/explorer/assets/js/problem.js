// One frame of the page: everything that follows from u, the readout, η and the noise.

import { dot, norm, normalCdf } from "./numbers.js";
import { eigh } from "./eigen.js";
import { maximizeOnSphere } from "./sphere.js";
import { inputResponse } from "./network.js";

/**
 * Return the response, the given or the best readout, and κ at one u.
 *
 * @param {object} cut the result of `cutOff`
 * @param {Float64Array|null} kept a readout to keep
 * @returns {{R, v, a, kappa, separation, variance, eigen}}
 */
export function evaluate(network, cut, u, eta, kept = null) {
  const n = network.neurons;
  const { size, steps, channels, mu, psi } = cut;
  const R = inputResponse(network, u, channels, steps);
  const M = new Float64Array(n);
  for (let row = 0; row < size; row++) {
    for (let i = 0; i < n; i++) M[i] += mu[row] * R[row * n + i];
  }
  const eigen = eigh(covariance(R, psi, size, n), n);
  const v = kept ?? maximizeOnSphere(M, eigen, eta);
  const a = new Float64Array(size);
  for (let row = 0; row < size; row++) {
    let total = 0;
    for (let i = 0; i < n; i++) total += R[row * n + i] * v[i];
    a[row] = total;
  }
  return { R, v, a, eigen, ...softMargin(cut, a, eta) };
}

/** Return κ = a·μ − (η/2) aᵀψa and its two terms. */
export function softMargin({ mu, psi, size }, a, eta) {
  let spread = 0;
  for (let i = 0; i < size; i++) {
    let total = 0;
    for (let j = 0; j < size; j++) total += psi[i * size + j] * a[j];
    spread += a[i] * total;
  }
  const separation = dot(a, mu);
  const variance = 0.5 * eta * spread;
  return { kappa: separation - variance, separation, variance };
}

/** Σ = Rᵀ ψ R. */
function covariance(R, psi, size, n) {
  const sigma = new Float64Array(n * n);
  const row = new Float64Array(n);
  for (let p = 0; p < size; p++) {
    row.fill(0);
    for (let q = 0; q < size; q++) {
      const weight = psi[p * size + q];
      const at = q * n;
      for (let i = 0; i < n; i++) row[i] += weight * R[at + i];
    }
    for (let i = 0; i < n; i++) {
      const weight = R[p * n + i];
      const at = i * n;
      for (let j = 0; j <= i; j++) sigma[at + j] += weight * row[j];
    }
  }
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) sigma[j * n + i] = sigma[i * n + j];
  }
  return sigma;
}

/**
 * Return the states of the training series along v and along the widest direction across
 * it, which is the first eigenvector of Σ without its part along v.
 */
export function statesOf(network, cut, { R, v, a, eigen }) {
  const n = network.neurons;
  const { size, train } = cut;
  const widest = eigen.vectors.subarray((n - 1) * n, n * n);
  const along = dot(widest, v);
  const across = Float64Array.from(widest, (x, i) => x - along * v[i]);
  const length = norm(across) || 1;
  const b = new Float64Array(size);
  for (let row = 0; row < size; row++) {
    let total = 0;
    for (let i = 0; i < n; i++) total += R[row * n + i] * across[i];
    b[row] = total / length;
  }
  return { x: readOut(train, a, size), y: readOut(train, b, size), signs: train.signs };
}

export function readOut({ X, count }, a, size) {
  const z = new Float64Array(count);
  for (let row = 0; row < count; row++) {
    let total = 0;
    for (let k = 0; k < size; k++) total += X[row * size + k] * a[k];
    z[row] = total;
  }
  return z;
}

/** Return the means of the clouds along v and their common variance. */
export function cloudsAlong(z, signs) {
  const means = [-1, 1].map((sign) => {
    let total = 0;
    let count = 0;
    z.forEach((value, i) => {
      if (signs[i] === sign) [total, count] = [total + value, count + 1];
    });
    return total / count;
  });
  let scatter = 0;
  z.forEach((value, i) => (scatter += (value - means[signs[i] > 0 ? 1 : 0]) ** 2));
  return { means, variance: scatter / z.length };
}

/** Return the plane between two clouds that are widened by noise. */
export function planeBetween({ means: [low, high], variance }, share, noise) {
  const odds = Math.log(share[1] / share[0]);
  const apart = Math.max(high - low, Number.MIN_VALUE);
  return (low + high) / 2 - (odds * (variance + noise * noise)) / apart;
}

/** Return the share of series on the right side of the plane, averaged over the noise. */
export function accuracyUnder(z, signs, plane, noise) {
  let right = 0;
  for (let i = 0; i < z.length; i++) {
    const beyond = signs[i] * (z[i] - plane);
    right += noise > 0 ? normalCdf(beyond / noise) : (1 + Math.sign(beyond)) / 2;
  }
  return right / z.length;
}

/** Return the accuracy at several noises. */
export function noiseCurve(cut, share, a, noises) {
  const clouds = cloudsAlong(readOut(cut.train, a, cut.size), cut.train.signs);
  const z = readOut(cut.test, a, cut.size);
  const at = (s) => accuracyUnder(z, cut.test.signs, planeBetween(clouds, share, s), s);
  return Array.from(noises, at);
}
