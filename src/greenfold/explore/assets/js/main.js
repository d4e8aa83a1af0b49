// The page: its state, its controls, and one frame after the other.

import { decode, dot, randomUnit, turned, unit } from "./numbers.js";
import { readNetwork } from "./network.js";
import { compare, cutOff, readSet } from "./moments.js";
import {
  accuracyUnder,
  cloudsAlong,
  evaluate,
  noiseCurve,
  planeBetween,
  readOut,
  statesOf,
} from "./problem.js";
import { climb } from "./climb.js";
import { gridOf, jitterFor, referenceAt } from "./reference.js";
import { setFromText } from "./own_file.js";
import { addressOf, readAddress, uFromAddress } from "./address.js";
import { Place, percent, shown } from "./draw.js";
import { Ring } from "./ring.js";
import { gauge } from "./gauge.js";
import { clouds, histogram } from "./clouds.js";
import { kernelPlot, noisePlot } from "./curves.js";

const content = JSON.parse(document.getElementById("content").textContent);
const network = readNetwork(content.network);
const sets = content.sets.map((one) => readSet(one, network.steps));
const byId = (name) => document.getElementById(name);
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** What the user has chosen; everything else follows from it. */
const state = {
  set: 0,
  pair: 0,
  eta: 0, // index into the grid
  step: 0, // index into the grid
  noise: 0,
  readout: "solved", // or "kept"
  channel: 0,
  turning: false, // u is the solved one turned by `angle` in `plane`
  plane: 0, // 0: the plane of the user's own u; else a random one
  angle: 0, // degrees
  mine: null, // the user's own u
};

// What follows from the data alone, made once and kept.

let comparison; // series of the chosen pair
let grid;
let cuts;
let references;

function useData() {
  const set = sets[state.set];
  state.pair = Math.min(state.pair, set.pairs.length - 1);
  state.channel = Math.min(state.channel, set.channels - 1);
  comparison = compare(set, set.pairs[state.pair]);
  grid = gridOf(set, set.pairs[state.pair], network.steps);
  cuts = new Map();
  references = new Map();
  const size = network.neurons * set.channels;
  if (state.mine?.length !== size) state.mine = randomUnit(size, 1);
  fillChoices();
}

function cutNow() {
  const steps = grid.steps[state.step];
  if (!cuts.has(steps)) {
    const cut = cutOff(comparison, steps);
    cut.jitter = jitterFor(cut.train.count);
    cuts.set(steps, cut);
  }
  return cuts.get(steps);
}

function referenceNow() {
  const key = `${state.eta} ${state.step}`;
  if (!references.has(key)) {
    const made = referenceAt(network, comparison, cutNow(), grid, state.eta, state.step);
    references.set(key, made);
  }
  return references.get(key);
}

function uNow() {
  if (!state.turning) return state.mine;
  const { u } = referenceNow();
  const towards = state.plane ? randomUnit(u.length, 100 + state.plane) : state.mine;
  return turned(u, towards, (state.angle * Math.PI) / 180);
}

/** All numbers of one frame. */
function compute() {
  const cut = cutNow();
  const reference = referenceNow();
  const eta = grid.etas[state.eta];
  const u = uNow();
  const kept = state.readout === "kept" ? reference.v : null;
  const found = evaluate(network, cut, u, eta, kept);
  const states = statesOf(network, cut, found);
  const along = cloudsAlong(states.x, states.signs);
  const plane = planeBetween(along, comparison.share, state.noise);
  const z = readOut(cut.test, found.a, cut.size);
  const accuracy = accuracyUnder(z, cut.test.signs, plane, state.noise);
  return { cut, reference, eta, u, states, plane, accuracy, ...found };
}

// Drawing

const places = {
  gauge: new Place(byId("gauge"), 92, { left: 14, right: 22 }),
  clouds: new Place(byId("clouds"), 360, { left: 26, bottom: 6 }),
  histogram: new Place(byId("histogram"), 190, { left: 26, top: 4 }),
  kernel: new Place(byId("kernel"), 210, { left: 14 }),
  noise: new Place(byId("noise"), 240),
};
const ring = new Ring(byId("ring"), network, dragged);
let sideways = 1; // sign of the clouds' second axis, so that it does not flip
let lastAcross = null;
const shownReach = { key: "", x: 0, y: 0 };
let pending = 0;

function drawFrame() {
  pending = 0;
  const frame = compute();
  const set = sets[state.set];
  settleAxes(frame);
  const channels = set.channels;
  const bars = (u) => Float64Array.from({ length: network.neurons }, (_, i) => {
    return u[i * channels + state.channel];
  });
  const { reference } = frame;
  const sign = dot(frame.u, reference.u) < 0 ? -1 : 1;
  const ghost = bars(reference.u).map((x) => sign * x);
  const full = Math.max(0.3, 1.1 * ghost.reduce((m, x) => Math.max(m, Math.abs(x)), 0));
  ring.draw(bars(frame.u), ghost, full);
  const drawn = {
    ...frame,
    network,
    comparison,
    channel: state.channel,
    noise: state.noise,
    jitter: frame.cut.jitter,
    reach: shownReach.x,
    height: shownReach.y,
    curve: noiseCurve(frame.cut, comparison.share, frame.a, reference.noises),
  };
  gauge(places.gauge, drawn);
  clouds(places.clouds, drawn);
  histogram(places.histogram, drawn);
  kernelPlot(places.kernel, drawn);
  noisePlot(places.noise, drawn);
  say(drawn);
}

/** Axes that stay while u is turned, so that clouds can be compared; they only grow. */
function settleAxes({ states, reference, u }) {
  const key = [state.set, state.pair, state.eta, state.step].join();
  if (shownReach.key !== key) {
    Object.assign(shownReach, { key, x: reference.reach, y: 0 });
    lastAcross = null;
  }
  if (lastAcross && dot(lastAcross.y, states.y) < 0 && dot(lastAcross.u, u) > 0.5) {
    sideways = -1;
  } else sideways = 1;
  if (sideways < 0) states.y = states.y.map((y) => -y);
  lastAcross = { y: states.y, u };
  // A few far states stand at the edge.
  const most = (values) => 1.25 * values.map(Math.abs).sort()[Math.floor(0.98 * values.length)];
  shownReach.x = Math.max(shownReach.x, Math.min(most(states.x), 2 * reference.reach));
  shownReach.y = Math.max(shownReach.y, most(states.y));
}

function redraw() {
  if (!pending) pending = requestAnimationFrame(drawFrame);
}

// Words

function say({ kappa, accuracy, reference, u }) {
  const proven = reference.bound != null;
  const whole = proven ? reference.bound : reference.kappa;
  byId("share").textContent = kappa > 0 ? percent(kappa / whole) : "κ < 0";
  byId("share-of").textContent = proven ? "of the proven bound" : "of the best found here";
  const angle = (Math.acos(Math.min(1, Math.abs(dot(u, reference.u)))) * 180) / Math.PI;
  const where = angle < 0.05 ? `This is the ${proven ? "solved" : "climbed"} u.` : "";
  const at = (line) => interpolate(reference.noises, line, state.noise);
  byId("story").textContent =
    `${where} ${percent(accuracy, 1)} of the ${sets[state.set].judged} series are told ` +
    `right under readout noise σ = ${shown(state.noise, 2)}; ` +
    `${percent(at(reference.band[1]), 1)} with a random u, ` +
    `${percent(at(reference.curve), 1)} with the ${proven ? "solved" : "climbed"} one.`;
  byId("angle").value = state.turning ? state.angle : angle;
  byId("angle-value").textContent = `${shown(Number(byId("angle").value))}°`;
  byId("kappa-value").textContent = shown(kappa, 4);
  byId("accuracy-value").textContent = percent(accuracy, 1);
}

function interpolate(xs, ys, x) {
  const k = Math.max(1, xs.findIndex((one) => one >= x));
  if (x >= xs.at(-1)) return ys.at(-1);
  const share = (x - xs[k - 1]) / (xs[k] - xs[k - 1]);
  return ys[k - 1] + share * (ys[k] - ys[k - 1]);
}

// Controls

let moving = 0; // animation under way

function halt() {
  cancelAnimationFrame(moving);
  clearTimeout(moving);
  moving = 0;
  byId("climb").setAttribute("aria-pressed", "false");
}

/** Change the state, draw, and put it into the address. */
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
    if (!sets[state.set].own) history.replaceState(null, "", text);
  }, 200);
}

function setOwn(u) {
  change({ turning: false, plane: 0, mine: unit(u) });
  byId("plane").value = "0";
}

/** One bar was moved: the others give way so that ‖u‖ stays 1. */
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
    // Without motion the way is not shown, only where it ends.
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
  // u and −u are the same; the nearer one is on the way.
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

/** Choices that depend on the data: classes, channels, the grid, the range of noise. */
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
  byId("set-note").textContent = [set.note, ...set.thinned].filter(Boolean).join(" ");
  const proven = Boolean(grid.solved);
  document.body.classList.toggle("unproven", !proven);
  for (const one of document.querySelectorAll(".solved-word")) {
    one.textContent = proven ? "solved" : "climbed";
  }
  byId("solve").textContent = proven ? "Solve" : "Best climb";
  byId("proof").textContent = proven
    ? "The bound was proven by greenfold in Python for this network, η and readout time: " +
      "no u and v of unit length get a larger κ. Everything else is computed here."
    : "For this pair no bound has travelled with the page, and it claims none: u is held " +
      "against the best of three climbs. For the bound, run greenfold explore on it.";
}

/** Sliders that go over the grid. */
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

/** A random u as most are: of a few, the one whose κ is closest to the middle. */
function typicalRandom(size) {
  const sorted = [...referenceNow().random].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  let best = null;
  for (let seed = 1; seed <= 9; seed++) {
    const u = randomUnit(size, seed);
    const { kappa } = evaluate(network, cutNow(), u, grid.etas[state.eta]);
    const off = Math.abs(kappa - middle);
    if (!best || off < best.off) best = { u, off };
  }
  return best.u;
}

/** Another data set or pair: begin with its middle η, the last readout time, a random u. */
function openData(what) {
  halt();
  Object.assign(state, what);
  useData();
  begin();
  change({ turning: false, plane: 0, mine: typicalRandom(state.mine.length) });
}

function begin() {
  const wanted = content.start.eta ?? 3;
  const closest = grid.etas.map((eta) => Math.abs(Math.log(eta / wanted)));
  state.eta = closest.indexOf(Math.min(...closest));
  state.step = grid.steps.length - 1;
  const most = referenceNow().noises.at(-1);
  state.noise = Math.min(content.start.noise ?? most / 3, most);
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
    if (busy || event.target.closest("input, select, textarea")) return;
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

/** Open a file of the user's, or say what is wrong with it. */
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

/** Take what the address says, as far as it fits this page. */
function restore() {
  const given = readAddress(location.hash);
  const whole = (value, count) => (Number.isInteger(value) && value >= 0 && value < count);
  state.set = whole(given.set, sets.length) ? given.set : 0;
  state.pair = whole(given.pair, sets[state.set].pairs.length) ? given.pair : 0;
  state.channel = whole(given.channel, sets[state.set].channels) ? given.channel : 0;
  useData();
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
listen();
restore();
redraw();

/** For tests: set a state exactly, and read all numbers of its frame. */
window.greenfold = {
  network,
  sets,
  state,
  at(given) {
    const { eta, step, u, ...rest } = given;
    Object.assign(state, rest);
    if (given.set != null || given.pair != null) useData();
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
  /** Milliseconds of so many frames with u turned a little in each. */
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
  busy: () => pending !== 0,
  comparison: () => comparison,
  own: useText,
  remember,
};
