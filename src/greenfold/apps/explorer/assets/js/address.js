// The view in the address bar, so that it can be shared.

import { fromAddress, toAddress, unit } from "./numbers.js";

/** Return the view in the address, as far as it is valid; the caller checks sizes. */
export function readAddress(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const found = {};
  const number = (key, name) => {
    const value = Number(given.get(key));
    if (given.has(key) && Number.isFinite(value)) found[name] = value;
  };
  number("d", "set");
  number("c", "pair");
  number("eta", "eta");
  number("t", "step");
  number("noise", "noise");
  number("plane", "plane");
  number("angle", "angle");
  number("ch", "channel");
  if (given.get("readout") === "kept") found.readout = "kept";
  if (given.has("u")) found.u = given.get("u");
  return found;
}

export function uFromAddress(text, count) {
  const values = fromAddress(text, count);
  return values && values.some((x) => x !== 0) ? unit(values) : null;
}

/** Return the address of a view. */
export function addressOf(state, eta, step) {
  const given = new URLSearchParams();
  if (state.set) given.set("d", state.set);
  if (state.pair) given.set("c", state.pair);
  given.set("eta", eta);
  given.set("t", step);
  given.set("noise", Number(state.noise.toPrecision(6)));
  if (state.readout === "kept") given.set("readout", "kept");
  if (state.channel) given.set("ch", state.channel);
  if (state.turning) {
    given.set("plane", state.plane);
    given.set("angle", Number(state.angle.toFixed(3)));
  }
  if (!state.turning || (state.plane === 0 && state.angle > 0)) {
    given.set("u", toAddress(state.mine));
  }
  return `#${given}`;
}
