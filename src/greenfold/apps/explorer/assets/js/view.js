// The view: the choices of the user, and all numbers that follow from them.

import { randomUnit, turned } from "./numbers.js";
import { readNetwork } from "./network.js";
import { compare, cutOff, readSet } from "./moments.js";
import {
  accuracyUnder,
  cloudsAlong,
  evaluate,
  planeBetween,
  readOut,
  statesOf,
} from "./problem.js";
import { gridOf, jitterFor, referenceAt } from "./reference.js";

export const content = JSON.parse(document.getElementById("content").textContent);
export const network = readNetwork(content.network);
export const sets = content.sets.map((one) => readSet(one, network.steps));

/** The choices of the user; everything else follows from them. */
export const state = {
  set: 0,
  pair: 0,
  eta: 0, // index into the grid
  step: 0, // index into the grid
  noise: 0,
  readout: "solved", // or "kept"
  channel: 0,
  turning: false, // u is the solved u turned by `angle` in `plane`
  plane: 0, // 0: the plane of the user's own u; else a random plane
  angle: 0, // degrees
  mine: null, // the user's own u
};

// Values that depend only on the data, computed once and kept.

export let comparison; // series of the chosen pair
export let grid;
let cuts;
let references;

export function useData() {
  const set = sets[state.set];
  state.pair = Math.min(state.pair, set.pairs.length - 1);
  state.channel = Math.min(state.channel, set.channels - 1);
  comparison = compare(set, set.pairs[state.pair]);
  grid = gridOf(set, set.pairs[state.pair], network.steps);
  cuts = new Map();
  references = new Map();
  const size = network.neurons * set.channels;
  if (state.mine?.length !== size) state.mine = randomUnit(size, 1);
}

export function cutNow() {
  const steps = grid.steps[state.step];
  if (!cuts.has(steps)) {
    const cut = cutOff(comparison, steps);
    cut.jitter = jitterFor(cut.train.count);
    cuts.set(steps, cut);
  }
  return cuts.get(steps);
}

export function referenceNow() {
  const key = `${state.eta} ${state.step}`;
  if (!references.has(key)) {
    const made = referenceAt(network, comparison, cutNow(), grid, state.eta, state.step);
    references.set(key, made);
  }
  return references.get(key);
}

export function uNow() {
  if (!state.turning) return state.mine;
  const { u } = referenceNow();
  const towards = state.plane ? randomUnit(u.length, 100 + state.plane) : state.mine;
  return turned(u, towards, (state.angle * Math.PI) / 180);
}

/** Compute all numbers of one frame. */
export function compute() {
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

/** Return a typical random u: of nine draws, the one with κ closest to the median. */
export function typicalRandom(size) {
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
