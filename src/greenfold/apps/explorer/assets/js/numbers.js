// Numbers: their storage in the page, random numbers, and the normal distribution.

const KINDS = { f8: Float64Array, f4: Float32Array, i2: Int16Array, u1: Uint8Array };

/** Return a Float64Array from text in base 64, whatever its stored type. */
export function decode(text, kind) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return Float64Array.from(new KINDS[kind](bytes.buffer));
}

/** Return numbers as short text that an address can hold: single precision, base 64. */
export function toAddress(values) {
  const bytes = new Uint8Array(Float32Array.from(values).buffer);
  let raw = "";
  for (const byte of bytes) raw += String.fromCharCode(byte);
  return btoa(raw).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Return the numbers of such a text, or null if it is not valid. */
export function fromAddress(text, count) {
  try {
    const values = decode(text.replaceAll("-", "+").replaceAll("_", "/"), "f4");
    return values.length === count && values.every(Number.isFinite) ? values : null;
  } catch {
    return null;
  }
}

/** Return a generator of uniform numbers in (0, 1), equal on every machine (mulberry32). */
function uniform(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
}

/** Return independent normal numbers (Box and Muller). */
export function normals(count, seed) {
  const draw = uniform(seed);
  return Float64Array.from({ length: count }, () => {
    const size = Math.sqrt(-2 * Math.log(draw()));
    return size * Math.cos(2 * Math.PI * draw());
  });
}

export function norm(vector) {
  let total = 0;
  for (const value of vector) total += value * value;
  return Math.sqrt(total);
}

export function dot(one, other) {
  let total = 0;
  for (let i = 0; i < one.length; i++) total += one[i] * other[i];
  return total;
}

/** Return the vector scaled to unit length, or the first axis if it is zero. */
export function unit(vector) {
  const size = norm(vector);
  if (size > 0 && Number.isFinite(size)) return Float64Array.from(vector, (x) => x / size);
  const made = new Float64Array(vector.length);
  made[0] = 1;
  return made;
}

export function randomUnit(count, seed) {
  return unit(normals(count, seed));
}

/** Return `from`, turned by an angle in the plane of `from` and `towards`. */
export function turned(from, towards, angle) {
  const along = dot(from, towards);
  const across = unit(towards.map((x, i) => x - along * from[i]));
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return from.map((x, i) => c * x + s * across[i]);
}

/** Return the normal distribution function, by a series near zero and a fraction far out. */
export function normalCdf(x) {
  const size = Math.abs(x);
  if (size > 38) return x > 0 ? 1 : 0;
  const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  let tail;
  if (size < 3) {
    let term = size;
    let total = size;
    for (let k = 3; Math.abs(term) > 1e-17 * total; k += 2) {
      term *= (x * x) / k;
      total += term;
    }
    tail = 0.5 - density * total;
  } else {
    let fraction = size;
    for (let k = 60; k > 0; k--) fraction = size + k / fraction;
    tail = density / fraction;
  }
  return x > 0 ? 1 - tail : tail;
}
