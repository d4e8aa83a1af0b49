// The text of the page: shown with every frame, spoken when u has stopped moving.

import { dot } from "./numbers.js";
import { percent, shown } from "./draw.js";
import { sets, state } from "./view.js";

/** Put the numbers of a frame into words. */
export function say({ kappa, accuracy, reference, u }) {
  const proven = reference.bound != null;
  const whole = proven ? reference.bound : reference.kappa;
  document.getElementById("share").textContent = kappa > 0 ? percent(kappa / whole) : "κ < 0";
  document.getElementById("share-of").textContent = proven ? "of the proven bound" : "of the best found here";
  const angle = (Math.acos(Math.min(1, Math.abs(dot(u, reference.u)))) * 180) / Math.PI;
  const there = angle < 0.05;
  const at = (line) => interpolate(reference.noises, line, state.noise);
  document.getElementById("story").textContent =
    `${there ? "This is the solved u. " : ""}With readout noise σ = ${shown(state.noise, 2)}, ` +
    `${percent(accuracy, 1)} of the ${sets[state.set].judged} series are classified correctly; ` +
    `${percent(at(reference.band[1]), 1)} with a typical random u` +
    (there ? "." : `, ${percent(at(reference.curve), 1)} with the solved u.`);
  tellLater(document.getElementById("story").textContent);
  document.getElementById("angle").value = state.turning ? state.angle : angle;
  document.getElementById("angle-value").textContent = `${shown(Number(document.getElementById("angle").value))}°`;
  document.getElementById("kappa-value").textContent = shown(kappa, 4);
  document.getElementById("accuracy-value").textContent = percent(accuracy, 1);
}

/** Tell screen readers the text once u has stopped moving, not with every frame. */
let telling = 0;
function tellLater(text) {
  clearTimeout(telling);
  telling = setTimeout(() => {
    document.getElementById("spoken").textContent = `κ is ${document.getElementById("kappa-value").textContent}. ${text}`;
  }, 700);
}

function interpolate(xs, ys, x) {
  const k = Math.max(1, xs.findIndex((one) => one >= x));
  if (x >= xs.at(-1)) return ys.at(-1);
  const share = (x - xs[k - 1]) / (xs[k] - xs[k - 1]);
  return ys[k - 1] + share * (ys[k] - ys[k - 1]);
}
