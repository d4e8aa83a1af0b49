// Drawing: SVG as text, in the pixels of its place. The SVG contains only numbers;
// names are in HTML next to it.

const INDENT = { left: 44, right: 14, top: 10, bottom: 34 };

/** A readable number: four digits, a true minus. */
export function shown(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const text = Math.abs(value) < 1e-12 ? "0" : String(Number(value.toPrecision(digits)));
  return text.replace("-", "−");
}

export function percent(share, digits = 0) {
  return `${(100 * share).toFixed(digits).replace("-", "−")} %`;
}

/** Return about `count` round values from `low` to `high`. */
export function roundValues(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

/** Return a linear map from values to pixels. */
export function scale(low, high, from, to) {
  const factor = (to - from) / (high - low || 1);
  return (value) => from + (value - low) * factor;
}

const px = (value) => value.toFixed(1);

/** Return the path through points. */
export function line(xs, ys) {
  let text = "";
  for (let i = 0; i < xs.length; i++) text += `${i ? "L" : "M"}${px(xs[i])} ${px(ys[i])}`;
  return text;
}

/** Return dots as one path of strokes without length; their caps are round or square. */
export function dots(xs, ys) {
  let text = "";
  for (let i = 0; i < xs.length; i++) text += `M${px(xs[i])} ${px(ys[i])}h.01`;
  return text;
}

/** Return the path around the area between two lines. */
export function area(xs, low, high) {
  const back = [...xs].reverse();
  return `${line(xs, high)}L${line(back, [...low].reverse()).slice(1)}Z`;
}

/** A place to draw in, with its size, its inner frame, and its axes as text. */
export class Place {
  /** @param {(width: number) => number} heightOf in pixels */
  constructor(svg, heightOf, indent = {}) {
    this.svg = svg;
    this.heightOf = heightOf;
    this.indent = { ...INDENT, ...indent };
    this.measure();
  }

  /** Set the size from the width of the parent element. */
  measure() {
    const style = getComputedStyle(this.svg.parentElement);
    const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
    this.width = Math.max(220, this.svg.parentElement.clientWidth - padding || 320);
    this.height = Math.round(this.heightOf(this.width));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.style.height = `${this.height}px`;
    this.left = this.indent.left;
    this.right = this.width - this.indent.right;
    this.top = this.indent.top;
    this.bottom = this.height - this.indent.bottom;
  }

  set(text) {
    this.svg.innerHTML = text;
  }

  xAxis(low, high, label, format = shown) {
    const x = scale(low, high, this.left, this.right);
    let text = `<path class="axis" d="M${this.left} ${this.bottom}H${this.right}"/>`;
    for (const value of roundValues(low, high, this.width / 90)) {
      const at = px(x(value));
      text += `<path class="axis" d="M${at} ${this.bottom}v4"/>`;
      text += `<text class="tick" x="${at}" y="${this.bottom + 16}">${format(value)}</text>`;
    }
    const middle = (this.left + this.right) / 2;
    text += `<text class="label" x="${middle}" y="${this.height - 3}">${label}</text>`;
    return text;
  }

  yAxis(low, high, format = shown, count = 4) {
    const y = scale(low, high, this.bottom, this.top);
    let text = "";
    for (const value of roundValues(low, high, count)) {
      const at = px(y(value));
      text += `<path class="grid" d="M${this.left} ${at}H${this.right}"/>`;
      text += `<text class="tick end" x="${this.left - 6}" y="${at}" dy=".32em">`;
      text += `${format(value)}</text>`;
    }
    return text;
  }
}
