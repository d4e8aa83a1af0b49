// One frame: the numbers of the view, drawn in all places.

import { dot } from "./numbers.js";
import { noiseCurve } from "./problem.js";
import { Place } from "./draw.js";
import { Ring } from "./ring.js";
import { gauge } from "./gauge.js";
import { clouds, histogram } from "./clouds.js";
import { kernelPlot, noisePlot } from "./curves.js";
import { comparison, compute, network, sets, state } from "./view.js";
import { say } from "./words.js";

const at = (name) => document.getElementById(name);

export const places = {
  gauge: new Place(at("gauge"), (w) => (w < 460 ? 106 : 90), { left: 14, right: 22 }),
  clouds: new Place(at("clouds"), (w) => Math.min(430, Math.max(250, 0.85 * w)), {
    left: 26,
    bottom: 6,
  }),
  histogram: new Place(at("histogram"), (w) => Math.min(215, 0.5 * w), { left: 26, top: 4 }),
  kernel: new Place(at("kernel"), () => 215, { left: 14 }),
  noise: new Place(at("noise"), () => 255),
};
export const ring = new Ring(at("ring"), network);
let sideways = 1; // sign of the clouds' second axis, so that it does not flip
let lastAcross = null;
const shownReach = { key: "", x: 0, y: 0 };
let pending = 0;

/** Compute and draw everything. */
export function drawFrame() {
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
    // Noise moves the drawn states; keep them in sight.
    reach: Math.max(shownReach.x, 2 * state.noise),
    height: Math.max(shownReach.y, 3 * state.noise),
    curve: noiseCurve(frame.cut, comparison.share, frame.a, reference.noises),
  };
  gauge(places.gauge, drawn);
  clouds(places.clouds, drawn);
  histogram(places.histogram, drawn);
  kernelPlot(places.kernel, drawn);
  noisePlot(places.noise, drawn);
  say(drawn);
}

/** Keep the axes while u is turned, so that clouds can be compared; they only grow. */
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
  // A few far states are drawn at the edge.
  const most = (values) => 1.25 * values.map(Math.abs).sort()[Math.floor(0.98 * values.length)];
  shownReach.x = Math.max(shownReach.x, Math.min(most(states.x), 2 * reference.reach));
  shownReach.y = Math.max(shownReach.y, most(states.y));
}

/** Draw at the next frame of the screen. */
export function redraw() {
  if (!pending) pending = requestAnimationFrame(drawFrame);
}

/** Return whether a frame is about to be drawn. */
export function isPending() {
  return pending !== 0;
}
