// The linear network over one step, y ↦ E y + F u x, and its response to pulses.

import { decode } from "./numbers.js";

/** Return the network stored in the page. */
export function readNetwork(content) {
  const kind = content.single ? "f4" : "f8";
  return {
    neurons: content.neurons,
    steps: content.steps,
    dt: content.dt,
    edges: content.edges,
    E: decode(content.E, kind),
    F: decode(content.F, kind),
  };
}

function times(matrix, vector, offset, result, at, n) {
  for (let i = 0; i < n; i++) {
    let total = 0;
    const row = i * n;
    for (let k = 0; k < n; k++) total += matrix[row + k] * vector[offset + k];
    result[at + i] = total;
  }
}

function transposedTimes(matrix, vector, n) {
  const result = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const weight = vector[i];
    const row = i * n;
    for (let k = 0; k < n; k++) result[k] += weight * matrix[row + k];
  }
  return result;
}

/**
 * Return the response Rᵤ read after `steps` steps. Row (c, n) is the state that a unit pulse
 * of channel c in step n leaves, r_{steps−1−n} = E^{steps−1−n} F u_c.
 *
 * @param {Float64Array} u neurons × channels, row by row
 * @returns {Float64Array} (channels · steps) × neurons
 */
export function inputResponse(network, u, channels, steps) {
  const n = network.neurons;
  const R = new Float64Array(channels * steps * n);
  const drive = new Float64Array(n);
  for (let c = 0; c < channels; c++) {
    for (let i = 0; i < n; i++) drive[i] = u[i * channels + c];
    let at = (c * steps + steps - 1) * n;
    times(network.F, drive, 0, R, at, n);
    for (let lag = 1; lag < steps; lag++) {
      times(network.E, R, at, R, at - n, n);
      at -= n;
    }
  }
  return R;
}

/**
 * Return the gradient with respect to u of d·a, where a is the kernel of u and v:
 * G(d)ᵀ v = Fᵀ Σ_n d_n (Eᵀ)^{steps−1−n} v, by Horner's rule from the earliest step.
 */
export function pullBack(network, d, v, channels, steps) {
  const n = network.neurons;
  const gradient = new Float64Array(n * channels);
  for (let c = 0; c < channels; c++) {
    let sum = new Float64Array(n);
    for (let step = 0; step < steps; step++) {
      if (step) sum = transposedTimes(network.E, sum, n);
      const weight = d[c * steps + step];
      for (let i = 0; i < n; i++) sum[i] += weight * v[i];
    }
    const pulled = transposedTimes(network.F, sum, n);
    for (let i = 0; i < n; i++) gradient[i * channels + c] = pulled[i];
  }
  return gradient;
}
