// The two clouds of states, the plane between them with its margin, and the histogram
// along v below them on the same axis.

import { dots, line, roundValues, scale } from "./draw.js";

const N_BINS = 30;

export function clouds(place, frame) {
  const { states, reach, height, plane, kappa, noise, jitter } = frame;
  const x = scale(-reach, reach, place.left, place.right);
  const y = scale(-height, height, place.bottom, place.top);
  const clip = (value, most) => Math.max(-most, Math.min(most, value));
  const groups = [[], []].map(() => ({ xs: [], ys: [] }));
  states.x.forEach((value, i) => {
    const group = groups[states.signs[i] > 0 ? 1 : 0];
    group.xs.push(x(clip(value + noise * jitter[2 * i], reach)));
    group.ys.push(y(clip(states.y[i] + noise * jitter[2 * i + 1], height)));
  });
  const at = x(clip(plane, reach));
  let text = "";
  if (kappa > 0) {
    const [from, to] = [plane - kappa, plane + kappa].map((z) => x(clip(z, reach)));
    text += `<rect class="margin" x="${from}" y="${place.top}" width="${to - from}"
      height="${place.bottom - place.top}"/>`;
  }
  text += `<path class="dots a" d="${dots(groups[0].xs, groups[0].ys)}"/>`;
  text += `<path class="dots b" d="${dots(groups[1].xs, groups[1].ys)}"/>`;
  text += `<path class="plane" d="M${at} ${place.top}V${place.bottom}"/>`;
  const middle = (place.top + place.bottom) / 2;
  text += `<text class="label" transform="translate(14 ${middle}) rotate(-90)">`;
  text += `widest direction across v</text>`;
  place.set(text);
}

export function histogram(place, frame) {
  const { states, reach, plane, kappa, noise } = frame;
  const x = scale(-reach, reach, place.left, place.right);
  const bin = (2 * reach) / N_BINS;
  const counts = [new Float64Array(N_BINS), new Float64Array(N_BINS)];
  states.x.forEach((value, i) => {
    const k = Math.max(0, Math.min(N_BINS - 1, Math.floor((value + reach) / bin)));
    counts[states.signs[i] > 0 ? 1 : 0][k] += 1;
  });
  const smooth = noise > 0.2 * bin ? widened(states, reach, bin, noise) : null;
  const most = Math.max(...counts[0], ...counts[1], 1);
  const y = scale(0, 1.05 * most, place.bottom, place.top);
  let text = "";
  if (kappa > 0) {
    const ends = [plane - kappa, plane + kappa].map((z) => Math.max(-reach, Math.min(reach, z)));
    text += `<rect class="margin" x="${x(ends[0])}" y="${place.top}"
      width="${x(ends[1]) - x(ends[0])}" height="${place.bottom - place.top}"/>`;
  }
  counts.forEach((count, side) => {
    let d = `M${place.left} ${place.bottom}`;
    count.forEach((value, k) => {
      d += `V${y(value).toFixed(1)}H${x(-reach + (k + 1) * bin).toFixed(1)}`;
    });
    text += `<path class="bins ${side ? "b" : "a"}" d="${d}V${place.bottom}Z"/>`;
  });
  if (smooth) {
    smooth.curves.forEach((curve, side) => {
      const d = line(smooth.at.map(x), curve.map((value) => Math.max(place.top, y(value))));
      text += `<path class="widened ${side ? "b" : "a"}" d="${d}"/>`;
    });
  }
  const at = x(Math.max(-reach, Math.min(reach, plane)));
  text += `<path class="plane" d="M${at} ${place.top}V${place.bottom}"/>`;
  text += place.xAxis(-reach, reach, "state along the readout, v·y");
  place.set(text);
}

/** Return the histogram with readout noise, in which every state is a Gaussian. */
function widened(states, reach, bin, noise) {
  const at = roundValues(-1, 1, 90).map((share) => share * reach);
  const curves = [0, 1].map(() => new Array(at.length).fill(0));
  const height = bin / (noise * Math.sqrt(2 * Math.PI));
  states.x.forEach((value, i) => {
    const curve = curves[states.signs[i] > 0 ? 1 : 0];
    for (let k = 0; k < at.length; k++) {
      const t = (at[k] - value) / noise;
      if (t * t < 40) curve[k] += height * Math.exp(-0.5 * t * t);
    }
  });
  return { at, curves };
}

