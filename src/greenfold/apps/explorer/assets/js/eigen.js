// Eigenvalues and eigenvectors of a symmetric matrix: Householder reflections to
// tridiagonal form, then implicit QL steps (EISPACK's tred2 and tql2).

/**
 * Return the eigendecomposition of a symmetric matrix.
 *
 * @param {Float64Array} matrix n × n, row by row; not changed.
 * @param {number} n
 * @returns {{values: Float64Array, vectors: Float64Array}} Ascending values; row i of
 *   `vectors` is the unit eigenvector of value i.
 */
export function eigh(matrix, n) {
  const z = Float64Array.from(matrix);
  const d = new Float64Array(n);
  const e = new Float64Array(n);
  tridiagonalise(z, d, e, n);
  // With vectors as rows, the rotations below run along memory.
  transpose(z, n);
  diagonalise(z, d, e, n);
  return inOrder(z, d, n);
}

function tridiagonalise(z, d, e, n) {
  for (let i = n - 1; i > 0; i--) {
    const row = i * n;
    let scale = 0;
    for (let k = 0; k < i; k++) scale += Math.abs(z[row + k]);
    if (i === 1 || scale === 0) {
      e[i] = z[row + i - 1];
      d[i] = 0;
      continue;
    }
    let h = 0;
    for (let k = 0; k < i; k++) {
      z[row + k] /= scale;
      h += z[row + k] * z[row + k];
    }
    let f = z[row + i - 1];
    const g = f >= 0 ? -Math.sqrt(h) : Math.sqrt(h);
    e[i] = scale * g;
    h -= f * g;
    z[row + i - 1] = f - g;
    f = 0;
    for (let j = 0; j < i; j++) {
      z[j * n + i] = z[row + j] / h;
      let sum = 0;
      for (let k = 0; k <= j; k++) sum += z[j * n + k] * z[row + k];
      for (let k = j + 1; k < i; k++) sum += z[k * n + j] * z[row + k];
      e[j] = sum / h;
      f += e[j] * z[row + j];
    }
    const half = f / (h + h);
    for (let j = 0; j < i; j++) {
      const x = z[row + j];
      const y = e[j] - half * x;
      e[j] = y;
      for (let k = 0; k <= j; k++) z[j * n + k] -= x * e[k] + y * z[row + k];
    }
    d[i] = h;
  }
  d[0] = 0;
  e[0] = 0;
  const sums = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    if (d[i] !== 0) {
      sums.fill(0, 0, i);
      for (let k = 0; k < i; k++) {
        const weight = z[i * n + k];
        for (let j = 0; j < i; j++) sums[j] += weight * z[k * n + j];
      }
      for (let k = 0; k < i; k++) {
        const weight = z[k * n + i];
        for (let j = 0; j < i; j++) z[k * n + j] -= sums[j] * weight;
      }
    }
    d[i] = z[i * n + i];
    z[i * n + i] = 1;
    for (let j = 0; j < i; j++) {
      z[j * n + i] = 0;
      z[i * n + j] = 0;
    }
  }
}

function transpose(z, n) {
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) {
      const kept = z[i * n + j];
      z[i * n + j] = z[j * n + i];
      z[j * n + i] = kept;
    }
  }
}

function diagonalise(z, d, e, n) {
  for (let i = 1; i < n; i++) e[i - 1] = e[i];
  e[n - 1] = 0;
  for (let l = 0; l < n; l++) {
    for (let round = 0; round < 60; round++) {
      let m = l;
      while (m < n - 1) {
        const size = Math.abs(d[m]) + Math.abs(d[m + 1]);
        if (Math.abs(e[m]) <= Number.EPSILON * size) break;
        m++;
      }
      if (m === l) break;
      let g = (d[l + 1] - d[l]) / (2 * e[l]);
      let r = Math.hypot(g, 1);
      g = d[m] - d[l] + e[l] / (g + (g >= 0 ? r : -r));
      let [s, c, p] = [1, 1, 0];
      let i = m - 1;
      for (; i >= l; i--) {
        const f = s * e[i];
        const b = c * e[i];
        r = Math.sqrt(f * f + g * g);
        e[i + 1] = r;
        if (r === 0) {
          d[i + 1] -= p;
          e[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        const low = i * n;
        const high = low + n;
        for (let k = 0; k < n; k++) {
          const x = z[high + k];
          const y = z[low + k];
          z[high + k] = s * y + c * x;
          z[low + k] = c * y - s * x;
        }
      }
      if (r === 0 && i >= l) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
}

function inOrder(z, d, n) {
  const order = Array.from({ length: n }, (_, i) => i).sort((a, b) => d[a] - d[b]);
  const values = Float64Array.from(order, (i) => d[i]);
  const vectors = new Float64Array(n * n);
  order.forEach((from, to) => vectors.set(z.subarray(from * n, (from + 1) * n), to * n));
  return { values, vectors };
}
