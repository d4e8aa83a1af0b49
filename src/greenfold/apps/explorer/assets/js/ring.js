// The network as a ring: one bar per neuron, outwards if u is positive. Drag to change it.

const SVG = "http://www.w3.org/2000/svg";
const SIZE = 440;
const MIDDLE = SIZE / 2;
const RADIUS = 152;
const REACH = 58;

function made(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  parent.append(element);
  return element;
}

export class Ring {
  constructor(svg, network) {
    this.svg = svg;
    this.n = network.neurons;
    /** Called with (neuron, value) when a bar is moved. */
    this.onChange = () => {};
    this.full = 0.5;
    this.values = new Float64Array(this.n);
    svg.setAttribute("viewBox", `0 0 ${SIZE} ${SIZE}`);
    svg.replaceChildren();
    this.drawEdges(network.edges);
    made("circle", { class: "ring", cx: MIDDLE, cy: MIDDLE, r: RADIUS }, svg);
    this.ghost = made("path", { class: "ghost" }, svg);
    this.bars = made("path", { class: "bars" }, svg);
    const width = (2 * Math.PI * RADIUS) / this.n;
    this.bars.style.strokeWidth = Math.max(1.5, Math.min(16, 0.58 * width));
    this.ghostHalf = Math.min(14, 0.36 * width) / RADIUS;
    this.handles = Array.from({ length: this.n }, (_, i) => this.addHandle(i));
    this.handles[0].setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
      svg.addEventListener(name, () => this.release());
    }
  }

  angle(i) {
    return (2 * Math.PI * i) / this.n - Math.PI / 2;
  }

  at(angle, radius) {
    const x = MIDDLE + radius * Math.cos(angle);
    const y = MIDDLE + radius * Math.sin(angle);
    return `${x.toFixed(1)} ${y.toFixed(1)}`;
  }

  drawEdges(edges) {
    let path = "";
    for (const [to, from] of edges) {
      const ends = [from, to].map((i) => this.at(this.angle(i), RADIUS - 3));
      path += `M${ends[0]}Q${MIDDLE} ${MIDDLE} ${ends[1]}`;
    }
    made("path", { class: "edges", d: path }, this.svg);
  }

  addHandle(i) {
    const half = Math.PI / this.n;
    const [from, to] = [this.angle(i) - half, this.angle(i) + half];
    const [near, far] = [RADIUS - REACH - 8, RADIUS + REACH + 8];
    const path =
      `M${this.at(from, near)}L${this.at(from, far)}A${far} ${far} 0 0 1 ${this.at(to, far)}` +
      `L${this.at(to, near)}A${near} ${near} 0 0 0 ${this.at(from, near)}Z`;
    const handle = made("path", { class: "handle", d: path, tabindex: "-1" }, this.svg);
    handle.setAttribute("role", "slider");
    handle.setAttribute("aria-label", `u of neuron ${i + 1}`);
    handle.addEventListener("pointerdown", (event) => this.grab(event, i));
    handle.addEventListener("keydown", (event) => this.key(event, i));
    return handle;
  }

  grab(event, i) {
    if (event.button) return;
    event.preventDefault();
    this.svg.setPointerCapture(event.pointerId);
    this.held = i;
    this.focus(i);
    this.drag(event);
  }

  release() {
    this.held = null;
  }

  drag(event) {
    if (this.held == null) return;
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * SIZE) / box.width - MIDDLE;
    const y = ((event.clientY - box.top) * SIZE) / box.height - MIDDLE;
    if (event.shiftKey) {
      const turn = (Math.atan2(y, x) + Math.PI / 2) / (2 * Math.PI);
      this.held = Math.round(((turn + 1) % 1) * this.n) % this.n;
    }
    // Only the position of the pointer along the bar counts.
    const angle = this.angle(this.held);
    const along = x * Math.cos(angle) + y * Math.sin(angle) - RADIUS;
    this.change(this.held, (along / REACH) * this.full);
  }

  key(event, i) {
    const fine = event.shiftKey ? 0.01 : 0.05;
    const steps = {
      ArrowUp: () => this.change(i, this.values[i] + fine * this.full),
      ArrowDown: () => this.change(i, this.values[i] - fine * this.full),
      PageUp: () => this.change(i, this.values[i] + 0.25 * this.full),
      PageDown: () => this.change(i, this.values[i] - 0.25 * this.full),
      ArrowRight: () => this.focus((i + 1) % this.n),
      ArrowLeft: () => this.focus((i + this.n - 1) % this.n),
      Home: () => this.focus(0),
      End: () => this.focus(this.n - 1),
      Delete: () => this.change(i, 0),
      0: () => this.change(i, 0),
    };
    if (!steps[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    steps[event.key]();
  }

  focus(i) {
    for (const handle of this.handles) handle.setAttribute("tabindex", "-1");
    this.handles[i].setAttribute("tabindex", "0");
    this.handles[i].focus({ preventScroll: true });
  }

  change(i, value) {
    const most = Math.min(this.full, 0.98);
    this.onChange(i, Math.max(-most, Math.min(most, value)));
  }

  /** Draw the bars of one channel, and marks at the values of the solved u. */
  draw(values, ghost, full) {
    if (this.held == null) this.full = full;
    this.values = values;
    const clip = (x) => Math.max(-1, Math.min(1, x / this.full));
    let bars = "";
    let marks = "";
    for (let i = 0; i < this.n; i++) {
      const angle = this.angle(i);
      const end = RADIUS + REACH * clip(values[i]);
      bars += `M${this.at(angle, RADIUS)}L${this.at(angle, end)}`;
      const there = RADIUS + REACH * clip(ghost[i]);
      marks += `M${this.at(angle - this.ghostHalf, there)}`;
      marks += `L${this.at(angle + this.ghostHalf, there)}`;
      this.handles[i].setAttribute("aria-valuenow", values[i].toFixed(3));
      this.handles[i].setAttribute("aria-valuemin", (-this.full).toFixed(3));
      this.handles[i].setAttribute("aria-valuemax", this.full.toFixed(3));
    }
    this.bars.setAttribute("d", bars);
    this.ghost.setAttribute("d", marks);
  }
}
