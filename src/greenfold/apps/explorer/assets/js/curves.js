// The kernel over the class means, and accuracy over readout noise.

import { area, line, percent, scale, shown } from "./draw.js";

/** Draw the kernel, the weight of the whole network at each step, over the class means. */
export function kernelPlot(place, frame) {
  const { network, cut, comparison, channel, a, reference } = frame;
  const { steps, dt } = network;
  const x = scale(0, steps * dt, place.left, place.right);
  const row = (values, length) => values.slice(channel * length, (channel + 1) * length);
  const times = Array.from({ length: steps }, (_, k) => (k + 0.5) * dt);
  const means = comparison.means.map((mean) => Array.from(row(mean, steps)));
  const [low, high] = [Math.min(...means[0], ...means[1]), Math.max(...means[0], ...means[1])];
  const y = scale(low, high, place.bottom - 10, place.top + 10);
  const now = Array.from(row(a, cut.steps));
  const solved = Array.from(row(reference.a, cut.steps));
  const most = 1.1 * Math.max(...now.map(Math.abs), ...solved.map(Math.abs), 1e-12);
  const k = scale(-most, most, place.bottom, place.top);
  const at = times.slice(0, cut.steps).map(x);
  const zero = at.map(() => k(0));
  let text = "";
  const end = x(cut.steps * dt);
  if (cut.steps < steps) {
    text += `<rect class="unread" x="${end}" y="${place.top}" width="${place.right - end}"
      height="${place.bottom - place.top}"/>`;
  }
  text += `<path class="grid" d="M${place.left} ${k(0)}H${place.right}"/>`;
  text += `<path class="lobe b" d="${area(at, zero, now.map((v) => k(Math.max(v, 0))))}"/>`;
  text += `<path class="lobe a" d="${area(at, now.map((v) => k(Math.min(v, 0))), zero)}"/>`;
  text += `<path class="mean a" d="${line(times.map(x), means[0].map(y))}"/>`;
  text += `<path class="mean b" d="${line(times.map(x), means[1].map(y))}"/>`;
  text += `<path class="solved-line" d="${line(at, solved.map(k))}"/>`;
  text += `<path class="now-line" d="${line(at, now.map(k))}"/>`;
  text += `<path class="plane" d="M${end} ${place.top}V${place.bottom}"/>`;
  text += place.xAxis(0, steps * dt, "time t");
  place.set(text);
}

/** Draw the accuracy over the noise on every neuron's state. */
export function noisePlot(place, frame) {
  const { reference, curve, noise, accuracy } = frame;
  const { noises, band } = reference;
  const most = noises.at(-1);
  const all = [...band[0], ...reference.curve, ...curve];
  const low = Math.min(0.9, Math.floor(10 * Math.min(...all)) / 10);
  const x = scale(0, most, place.left, place.right);
  const y = scale(low, 1, place.bottom, place.top);
  const xs = noises.map(x);
  let text = place.yAxis(low, 1, (v) => percent(v), 3);
  text += `<path class="band" d="${area(xs, band[0].map(y), band[2].map(y))}"/>`;
  text += `<path class="random-line" d="${line(xs, band[1].map(y))}"/>`;
  text += `<path class="solved-line" d="${line(xs, reference.curve.map(y))}"/>`;
  text += `<path class="now-line" d="${line(xs, curve.map(y))}"/>`;
  const at = x(Math.min(noise, most));
  text += `<path class="plane" d="M${at} ${place.top}V${place.bottom}"/>`;
  text += `<circle class="now-dot" cx="${at}" cy="${y(accuracy)}" r="5"/>`;
  text += place.xAxis(0, most, "readout noise σ", (v) => shown(v, 2));
  place.set(text);
}
