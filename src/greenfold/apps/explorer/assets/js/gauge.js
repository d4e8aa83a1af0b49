// The gauge: κ now, κ of fifty random u, and the proven bound.

import { percent, scale, shown } from "./draw.js";

export function gauge(place, { kappa, reference }) {
  const { bound, random } = reference;
  const proven = bound != null;
  const best = proven ? bound : Math.max(reference.kappa, kappa);
  const high = best > 0 ? 1.1 * best : 1;
  const low = Math.min(0, ...random, -0.02 * high);
  const x = scale(low, high, place.left, place.right);
  const [top, bottom] = [34, 62];
  const end = proven ? x(bound) : place.right;
  let text = `<rect class="track" x="${place.left}" y="${top}" rx="3"
    width="${end - place.left}" height="${bottom - top}"/>`;
  if (proven) {
    text += `<rect class="beyond" x="${end}" y="${top}" width="${place.right - end + 8}"
      height="${bottom - top}"/>`;
    text += `<path class="bound" d="M${end} ${top - 8}V${bottom + 8}"/>`;
    // On a narrow screen, one name is below the other.
    const y = bottom + (place.width < 460 ? 37 : 22);
    text += `<text class="tick end bound-text" x="${end}" y="${y}">`;
    text += `proven bound ${shown(bound)}</text>`;
  }
  let ticks = "";
  for (const one of random) ticks += `M${x(one).toFixed(1)} ${top + 4}V${bottom - 4}`;
  text += `<path class="random-ticks" d="${ticks}"/>`;
  const middle = random.reduce((a, b) => a + b, 0) / random.length;
  const at = Math.max(place.left + 46, x(middle));
  text += `<text class="tick random-text" x="${at}" y="${bottom + 22}">50 random u</text>`;
  const there = x(reference.kappa);
  const y = (top + bottom) / 2;
  text += `<path class="solved-mark" d="M${there} ${y - 8}l8 8l-8 8l-8 -8Z"/>`;
  const inside = Math.max(place.left, Math.min(place.right, x(kappa)));
  text += `<path class="needle" d="M${inside} ${bottom + 6}V${top - 4}l-8 -9h16l-8 9"/>`;
  const side = inside > place.width - 130 ? "end" : inside < 90 ? "start" : "";
  const words = proven
    ? `κ = ${shown(kappa)}, ${percent(kappa / bound)} of the bound`
    : `κ = ${shown(kappa)}`;
  const shift = { end: 14, start: -14, "": 0 }[side];
  text += `<text class="now-text ${side}" x="${inside + shift}" y="14">${words}</text>`;
  place.set(text);
}
