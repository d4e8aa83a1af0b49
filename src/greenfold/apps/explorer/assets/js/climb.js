// Uphill on the sphere: the gradient of max_v κ(u, v) is ∂κ/∂u at the best v.

import { dot, norm, unit } from "./numbers.js";
import { pullBack } from "./network.js";
import { evaluate } from "./problem.js";

/** Return the gradient of κ with respect to u, along the sphere. */
function slope(network, cut, u, eta, { a, v }) {
  const { mu, psi, size, channels, steps } = cut;
  const d = Float64Array.from(mu, (m, i) => {
    let total = 0;
    for (let j = 0; j < size; j++) total += psi[i * size + j] * a[j];
    return m - eta * total;
  });
  const gradient = pullBack(network, d, v, channels, steps);
  const along = dot(gradient, u);
  return gradient.map((g, i) => g - along * u[i]);
}

/**
 * Climb one step per call. The last two slopes set the length of the step
 * (Barzilai and Borwein), which is halved until κ rises.
 *
 * @yields {{u: Float64Array, kappa: number}}
 */
export function* climb(network, cut, start, eta) {
  let u = unit(start);
  let now = evaluate(network, cut, u, eta);
  let gradient = slope(network, cut, u, eta, now);
  let length = 0.3 / (norm(gradient) || 1);
  for (let round = 0; round < 400; round++) {
    let moved;
    let next;
    for (let tries = 0; ; tries++) {
      if (tries > 30) return;
      moved = unit(u.map((x, i) => x + length * gradient[i]));
      next = evaluate(network, cut, moved, eta);
      if (next.kappa > now.kappa) break;
      length /= 2;
    }
    const steeper = slope(network, cut, moved, eta, next);
    const gained = (next.kappa - now.kappa) / Math.max(Math.abs(next.kappa), 1e-300);
    const step = moved.map((x, i) => x - u[i]);
    const bend = gradient.map((g, i) => g - steeper[i]);
    const curvature = dot(step, bend);
    length = curvature > 0 ? dot(step, step) / curvature : 2 * length;
    [u, now, gradient] = [moved, next, steeper];
    yield { u, kappa: now.kappa };
    if (gained < 1e-9) return;
  }
}
