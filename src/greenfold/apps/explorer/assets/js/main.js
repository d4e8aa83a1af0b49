// The controls of the page, and the address that stores them.

import { decode, dot, randomUnit, unit } from "./numbers.js";
import { climb } from "./climb.js";
import { setFromText } from "./own_file.js";
import { addressOf, readAddress, uFromAddress } from "./address.js";
import { fitIn } from "./embed.js";
import { beginTour } from "./tour.js";
import { shown } from "./draw.js";
import {
  comparison,
  compute,
  content,
  cutNow,
  grid,
  network,
  referenceNow,
  sets,
  state,
  typicalRandom,
  uNow,
  useData,
} from "./view.js";
import { drawFrame, isPending, places, redraw, ring } from "./frame.js";

const byId = (name) => document.getElementById(name);
const still = matchMedia("(prefers-reduced-motion: reduce)");

// Controls

let moving = 0; // handle of the running animation

function halt() {
  cancelAnimationFrame(moving);
  clearTimeout(moving);
  moving = 0;
  byId("climb").setAttribute("aria-pressed", "false");
}

/** Change the state, draw it, and store it in the address. */
function change(what) {
  Object.assign(state, what);
  redraw();
  remember();
}

let remembering = 0;
function remember() {
  clearTimeout(remembering);
  remembering = setTimeout(() => {
    const text = addressOf(state, grid.etas[state.eta], grid.steps[state.step]);
    if (sets[state.set].own) return; // a file cannot be shared by an address
    try {
      history.replaceState(null, "", text);
    } catch {
      // The page is inside a document without its own address, such as a notebook.
    }
  }, 200);
}

function setOwn(u) {
  change({ turning: false, plane: 0, mine: unit(u) });
  byId("plane").value = "0";
}

/** Move one bar, and rescale the others so that ‖u‖ stays 1. */
function dragged(neuron, value) {
  halt();
  const { channels } = sets[state.set];
  const at = neuron * channels + state.channel;
  const u = Float64Array.from(uNow());
  u[at] = 0;
  const rest = Math.sqrt(dot(u, u));
  const factor = rest > 0 ? Math.sqrt(1 - value * value) / rest : 0;
  for (let i = 0; i < u.length; i++) u[i] *= factor;
  u[at] = value;
  setOwn(u);
}

let draws = 1;
function drawRandom() {
  halt();
  draws += 1;
  setOwn(randomUnit(state.mine.length, draws));
}

function goClimbing() {
  if (moving) {
    halt();
    return;
  }
  byId("climb").setAttribute("aria-pressed", "true");
  const steps = climb(network, cutNow(), uNow(), grid.etas[state.eta]);
  if (state.readout === "kept") setReadout("solved");
  const advance = () => {
    const started = performance.now();
    let next = steps.next();
    // With reduced motion, only the end is shown.
    while (still.matches && !next.done && performance.now() - started < 30) {
      if (next.value) state.mine = next.value.u;
      next = steps.next();
    }
    if (next.done) {
      halt();
      setOwn(state.mine);
      return;
    }
    if (still.matches) {
      state.mine = next.value.u;
      moving = setTimeout(advance);
    } else {
      setOwn(next.value.u);
      moving = requestAnimationFrame(advance);
    }
  };
  setOwn(uNow());
  moving = requestAnimationFrame(advance);
}

function goSolved() {
  halt();
  const { u } = referenceNow();
  let from = uNow();
  // u and −u are equivalent; start from the sign that is nearer.
  if (dot(from, u) < 0) from = from.map((x) => -x);
  const arrive = () => {
    moving = 0;
    byId("plane").value = "0";
    change({ turning: true, plane: 0, angle: 0, mine: from });
  };
  const angle = Math.acos(Math.min(1, dot(from, u)));
  if (still.matches || angle < 1e-3) {
    arrive();
    return;
  }
  const started = performance.now();
  const advance = (time) => {
    const share = Math.min(1, Math.max(0, time - started) / 700);
    if (share === 1) {
      arrive();
      return;
    }
    const eased = (1 - share) ** 3;
    state.turning = true;
    state.plane = 0;
    state.mine = from;
    state.angle = (angle * eased * 180) / Math.PI;
    redraw();
    moving = requestAnimationFrame(advance);
  };
  moving = requestAnimationFrame(advance);
}

function goToModel() {
  halt();
  setOwn(decode(content.start.u, "f8"));
}

function setReadout(value) {
  for (const one of document.getElementsByName("readout")) one.checked = one.value === value;
  change({ readout: value });
}

function option(select, value, text) {
  const made = document.createElement("option");
  made.value = value;
  made.textContent = text;
  select.append(made);
}

/** Fill the choices that depend on the data: classes, channels, names and notes. */
function fillChoices() {
  const set = sets[state.set];
  const name = (code) => set.classes[code];
  const pairs = byId("pair");
  pairs.replaceChildren();
  set.pairs.forEach(([a, b], k) => option(pairs, k, `${name(a)} or ${name(b)}`));
  pairs.value = state.pair;
  byId("pair-row").hidden = set.pairs.length < 2;
  const channels = byId("channel");
  channels.replaceChildren();
  for (let c = 0; c < set.channels; c++) option(channels, c, `${c + 1} of ${set.channels}`);
  channels.value = state.channel;
  byId("channel-row").hidden = set.channels < 2;
  const [a, b] = set.pairs[state.pair].map(name);
  for (const one of document.querySelectorAll(".name-a")) one.textContent = a;
  for (const one of document.querySelectorAll(".name-b")) one.textContent = b;
  const said = [`${set.name}: ${a} or ${b}.`, set.note, ...set.thinned];
  byId("set-note").textContent = said.filter(Boolean).join(" ");
  const proven = Boolean(grid.solved);
  document.body.classList.toggle("unproven", !proven);
  byId("proof").textContent = proven
    ? "greenfold proved the bound in Python for this network, η and readout time: " +
      "no u and v of unit length have a larger κ. This page computes everything else."
    : "This page has no bound for this pair. It solves for u by three ascents and keeps " +
      "the best. For a bound, run greenfold explore " +
      (set.own ? "on the file." : `with --classes ${a},${b}.`);
}

/** Set the sliders to the grid and the state. */
function fillSliders() {
  byId("eta").max = grid.etas.length - 1;
  byId("eta").value = state.eta;
  byId("step").max = grid.steps.length - 1;
  byId("step").value = state.step;
  const most = referenceNow().noises.at(-1);
  const noise = byId("noise-level");
  noise.max = most;
  noise.step = most / 200;
  state.noise = Math.min(state.noise, most);
  noise.value = state.noise;
  byId("eta-value").textContent = shown(grid.etas[state.eta]);
  byId("step-value").textContent = shown(grid.steps[state.step] * network.dt);
  byId("noise-value").textContent = shown(state.noise, 2);
  byId("eta").setAttribute("aria-valuetext", byId("eta-value").textContent);
  byId("step").setAttribute("aria-valuetext", byId("step-value").textContent);
}

/** Open another data set or pair with its initial η, the last readout time, a random u. */
function openData(what) {
  halt();
  Object.assign(state, what);
  useData();
  fillChoices();
  begin();
  change({ turning: false, plane: 0, mine: typicalRandom(state.mine.length) });
}

function begin() {
  const wanted = content.start.eta ?? 10;
  const closest = grid.etas.map((eta) => Math.abs(Math.log(eta / wanted)));
  state.eta = closest.indexOf(Math.min(...closest));
  state.step = grid.steps.length - 1;
  const most = referenceNow().noises.at(-1);
  state.noise = content.start.noise ? Math.min(content.start.noise, most) : Math.min(0.1, most / 2);
  fillSliders();
}

function listen() {
  byId("random").addEventListener("click", drawRandom);
  byId("climb").addEventListener("click", goClimbing);
  byId("solve").addEventListener("click", goSolved);
  const model = byId("model");
  model.hidden = !content.start.u;
  model.textContent = content.start.label;
  model.addEventListener("click", goToModel);
  byId("set").addEventListener("change", (event) => {
    openData({ set: Number(event.target.value), pair: 0 });
  });
  byId("pair").addEventListener("change", (event) => {
    openData({ pair: Number(event.target.value) });
  });
  byId("channel").addEventListener("change", (event) => {
    change({ channel: Number(event.target.value) });
  });
  byId("eta").addEventListener("input", (event) => regrid({ eta: Number(event.target.value) }));
  byId("step").addEventListener("input", (event) => {
    regrid({ step: Number(event.target.value) });
  });
  byId("noise-level").addEventListener("input", (event) => {
    state.noise = Number(event.target.value);
    byId("noise-value").textContent = shown(state.noise, 2);
    change({});
  });
  byId("angle").addEventListener("input", (event) => {
    halt();
    if (!state.turning) state.mine = uNow();
    change({ turning: true, angle: Number(event.target.value) });
  });
  byId("plane").addEventListener("change", (event) => {
    halt();
    const plane = Number(event.target.value);
    const angle = Number(byId("angle").value);
    change({ turning: true, plane, angle });
  });
  for (const one of document.getElementsByName("readout")) {
    one.addEventListener("change", () => change({ readout: one.value }));
  }
  byId("own").addEventListener("change", openOwn);
  document.addEventListener("keydown", (event) => {
    const busy = event.ctrlKey || event.metaKey || event.altKey;
    // Letters do nothing on a slider or a choice, but they search a list.
    const typing = "select, textarea, input:not([type=range], [type=radio])";
    if (busy || event.target.closest(typing)) return;
    const act = { r: drawRandom, c: goClimbing, s: goSolved }[event.key];
    if (act) act();
  });
  window.addEventListener("hashchange", () => {
    restore();
    redraw();
  });
  new ResizeObserver(() => {
    for (const place of Object.values(places)) place.measure();
    redraw();
  }).observe(byId("page"));
}

function regrid(what) {
  halt();
  Object.assign(state, what);
  fillSliders();
  change({});
}

async function openOwn(event) {
  const [file] = event.target.files;
  if (file) useText(file.name, await file.text());
  event.target.value = "";
}

/** Open the user's file, or show what is wrong with it. */
function useText(name, text) {
  const told = byId("own-said");
  told.textContent = "";
  try {
    sets.push(setFromText(name, text, network.steps));
    try {
      openData({ set: sets.length - 1, pair: 0 });
    } catch (error) {
      sets.pop();
      openData({ set: 0, pair: 0 });
      throw error;
    }
    option(byId("set"), sets.length - 1, name);
    byId("set").value = sets.length - 1;
  } catch (error) {
    told.textContent = error.message;
  }
}

/** Restore the view in the address, as far as it fits this page. */
function restore() {
  const given = readAddress(location.hash);
  const whole = (value, count) => (Number.isInteger(value) && value >= 0 && value < count);
  state.set = whole(given.set, sets.length) ? given.set : 0;
  state.pair = whole(given.pair, sets[state.set].pairs.length) ? given.pair : 0;
  state.channel = whole(given.channel, sets[state.set].channels) ? given.channel : 0;
  useData();
  fillChoices();
  begin();
  if (grid.etas.includes(given.eta)) state.eta = grid.etas.indexOf(given.eta);
  if (grid.steps.includes(given.step)) state.step = grid.steps.indexOf(given.step);
  if (given.noise >= 0) state.noise = given.noise;
  const size = network.neurons * sets[state.set].channels;
  const start = content.start.u ? unit(decode(content.start.u, "f8")) : null;
  const drawn = start?.length === size ? start : typicalRandom(size);
  state.mine = (given.u && uFromAddress(given.u, size)) || drawn;
  state.turning = given.angle >= 0 && given.angle <= 180;
  state.angle = state.turning ? given.angle : 0;
  state.plane = whole(given.plane, 5) ? given.plane : 0;
  byId("set").value = state.set;
  byId("plane").value = state.plane;
  fillSliders();
  for (const one of document.getElementsByName("readout")) {
    one.checked = one.value === (given.readout ?? "solved");
  }
  state.readout = given.readout ?? "solved";
}

sets.forEach((set, k) => option(byId("set"), k, set.name));
fitIn(window.parent, byId("page"));
ring.onChange = dragged;
listen();
restore();
redraw();
// Visitors whose address stores a view have been here, or got it from somebody who has.
if (location.hash.length < 2) beginTour();

/** For tests: set a state exactly, and read all numbers of its frame. */
window.greenfold = {
  network,
  sets,
  state,
  at(given) {
    const { eta, step, u, ...rest } = given;
    Object.assign(state, rest);
    if (given.set != null || given.pair != null) {
      useData();
      fillChoices();
    }
    if (eta != null) state.eta = grid.etas.indexOf(eta);
    if (step != null) state.step = grid.steps.indexOf(step);
    if (u) Object.assign(state, { mine: unit(u), turning: false });
    fillSliders();
    const found = compute();
    drawFrame();
    const list = (values) => Array.from(values);
    return {
      kappa: found.kappa,
      separation: found.separation,
      accuracy: found.accuracy,
      plane: found.plane,
      x: list(found.states.x),
      y: list(found.states.y),
      a: list(found.a),
      u: list(found.u),
      bound: found.reference.bound,
    };
  },
  /** Milliseconds for a number of frames, with u turned a little in each. */
  timing(count) {
    const times = [];
    for (let k = 0; k < count; k++) {
      const u = randomUnit(state.mine.length, 5000 + k);
      const started = performance.now();
      Object.assign(state, { turning: false, mine: u });
      drawFrame();
      document.body.getBoundingClientRect();
      times.push(performance.now() - started);
    }
    return times;
  },
  busy: isPending,
  comparison: () => comparison,
  own: useText,
  remember,
};
