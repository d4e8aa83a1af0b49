"""Eigenvalues, eigenmodes and linear equations of dense and of sparse matrices.

The eigenvalues of a sparse matrix are those of its strongly connected parts. Those of a
circulant matrix, such as a ring, are a Fourier transform. For a large part, a few products
show an eigenvalue that stands out; otherwise, ARPACK searches for some.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigs, gmres, svds

from .._base import checks as check
from .._base.arrays import exponent, is_sparse
from .matrices import dense

__all__ = ["Eigenmodes"]

#: Power of two of the largest entry from which on a matrix is scaled first: eigenvalues of
#: numpy are wrong, without a warning, for entries of 1e±140.
_FAR = 400
#: Largest part whose eigenvalues are all computed.
_SMALL = 500
#: Entries of small parts that are formed at a time.
_TOGETHER = 2**22
#: Numbers of eigenvalues to search for, of vectors that span the search, and tolerances of
#: successive attempts. Of random networks of 20,000 neurons, one eigenvalue and 40 vectors
#: found a wrong one in 2 of 8 searches; these found the largest to six digits, within 1,500
#: products.
_SEARCHES = (8, 100, 1e-4), (8, 300, 1e-3)

#: Number of products that show an eigenvalue which stands out, its relative residual, and
#: the share of it that the others reach at most. In a network of a fly brain's size, the
#: largest eigenvalue is twice as large as the next; ARPACK took 35 times as long.
_GLANCED, _CLEAR, _APART = 40, 1e-10, 0.8

#: Number of modes up to which they are searched for, instead of computing all.
_MOST_SEARCHED = 200
#: Relative residual of a solution of sparse equations, and the numbers of vectors per cycle
#: and of cycles to find it in.
_RESIDUAL, _VECTORS, _CYCLES = 1e-13, 100, 30

#: An ndarray or a sparse array of SciPy.
Matrix: TypeAlias = Any


def largest(matrix: Matrix, which: Literal["real part", "absolute value"]) -> float:
    """Return the largest real part or absolute value of the eigenvalues of a matrix."""
    measured: Any = np.real if which == "real part" else np.abs
    entries: np.ndarray = matrix.data if is_sparse(matrix) else matrix
    far = int(exponent(np.array([entries.max(), entries.min()]))) if entries.size else 0
    if abs(far) > _FAR:
        return largest(matrix * 2.0**-far, which) * 2.0**far
    if not is_sparse(matrix):
        return float(measured(np.linalg.eigvals(matrix)).max())
    column = circulant_column(matrix)
    if column is not None:
        return float(measured(np.fft.fft(column)).max())
    found = list[float]()
    for _, part in connected(matrix, _SMALL):
        if is_sparse(part):
            found.append(_search(part, which))
        else:
            found.append(float(measured(np.linalg.eigvals(part)).max()))
    return max(found)


def circulant_column(matrix: Matrix) -> np.ndarray | None:
    """Return the first column of a circulant sparse matrix, or None if it is none.

    Each row of a circulant matrix is the row above, moved by one place around the ring.
    """
    rows = matrix.tocsr()
    n, per_row = rows.shape[0], int(rows.indptr[1])
    if not per_row or rows.nnz != n * per_row or (np.diff(rows.indptr) != per_row).any():
        return None
    columns, values = (one.reshape(n, per_row) for one in (rows.indices, rows.data))
    back = cast("Any", (np.arange(n)[:, None] - columns) % n)
    order = np.argsort(back, axis=1)
    back, values = (np.take_along_axis(one, order, axis=1) for one in (back, values))
    if (back != back[0]).any() or (values != values[0]).any():
        return None
    column = np.zeros(n)
    column[back[0]] = values[0]
    return column


def connected(matrix: Matrix, most: int) -> Iterator[tuple[np.ndarray, Matrix]]:
    """Yield the neurons and the weights of the strongly connected parts of a matrix.

    Parts of one size, up to ``most``, come together: neurons (n_parts, n) and dense weights
    (n_parts, n, n). A larger part comes alone, with sparse weights.
    """
    _, label = connected_components(matrix, connection="strong")
    sizes = np.bincount(label)
    order = np.lexsort((label, sizes[label]))
    by_part, last = matrix[order][:, order], 0
    for size in np.unique(sizes):
        first, last = last, last + int(size * (sizes == size).sum())
        together = size * max(1, _TOGETHER // size**2)
        for start in range(first, last, together):
            inside = slice(start, min(start + together, last))
            block = by_part[inside, inside]
            part = block if size > most else _blocks(block, int(size))
            yield order[inside].reshape(-1, size), part


def _blocks(matrix: Matrix, size: int) -> np.ndarray:
    """Return the blocks of a block-diagonal matrix, ignoring what lies between them."""
    entries = matrix.tocoo()
    (i, at_i), (j, at_j) = (np.divmod(one, size) for one in entries.coords)
    made = np.zeros((matrix.shape[0] // size, size, size))
    made[i[i == j], at_i[i == j], at_j[i == j]] = entries.data[i == j]
    return made


def _search(matrix: Matrix, which: Literal["real part", "absolute value"]) -> float:
    """Return the largest real part or absolute value that ARPACK finds."""
    n = matrix.shape[0]
    start = np.random.default_rng(0).standard_normal(int(n))
    search: Any = eigs
    measured: Any = np.real if which == "real part" else np.abs
    values, residuals = _glanced(matrix, start)
    sizes = measured(values)
    first = int(np.argmax(sizes))
    top, pair = float(sizes[first]), (values[first], np.conj(values[first]))
    others = sizes[~np.isin(values, pair)]
    if max(others, default=0.0) <= _APART * top and residuals[first] <= _CLEAR * top:
        return top
    name = "LR" if which == "real part" else "LM"
    for count, n_vectors, tol in _SEARCHES:
        options: dict[str, Any] = {"ncv": n_vectors, "tol": tol, "v0": start}
        try:
            options |= {"maxiter": 300, "return_eigenvectors": False}
            found = search(matrix, count, which=name, **options)
        except ArpackNoConvergence:
            continue
        return float(measured(found).max())
    problem = f"the largest eigenvalue of `weights` of {n} neurons was not found"
    advice = "scale them yourself, and pass allow_unstable=True with a linear gain"
    raise ArithmeticError(f"{problem} by ARPACK; {advice}.")


def _glanced(matrix: Matrix, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the Ritz values of a few Arnoldi steps, and the norms of their residuals."""
    basis, steps = np.zeros((_GLANCED + 1, len(start))), np.zeros((_GLANCED + 1, _GLANCED))
    basis[0] = start / np.linalg.norm(start)
    for j in range(_GLANCED):
        ahead = matrix @ basis[j]
        for _ in range(2):  # the second pass removes the rounding errors of the first
            along = basis[: j + 1] @ ahead
            ahead -= along @ basis[: j + 1]
            steps[: j + 1, j] += along
        steps[j + 1, j] = np.linalg.norm(ahead)
        if not 0 < steps[j + 1, j] < np.inf:  # an invariant space, or overflow
            return np.zeros(2), np.full(2, np.inf)
        basis[j + 1] = ahead / steps[j + 1, j]
    values, vectors = np.linalg.eig(steps[:-1])
    return values, steps[-1, -1] * np.abs(vectors[-1])


def leading(matrix: Matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of largest real part of a sparse matrix, and their vectors."""
    search: Any = eigs
    size = int(matrix.shape[0])
    start = np.random.default_rng(0).standard_normal(size)
    n_vectors = min(size, max(2 * count + 20, _SEARCHES[0][1]))
    options = {"ncv": n_vectors, "tol": 0, "v0": start, "maxiter": 300}
    try:
        values, vectors = search(matrix, min(count, size - 2), which="LR", **options)
    except ArpackNoConvergence:
        problem = f"the {count} slowest modes of {size} neurons were not found by ARPACK"
        raise ArithmeticError(f"{problem}; ask for more, such as {2 * count}.") from None
    order = np.lexsort((-values.imag, -values.real))  # pairs as LAPACK gives them
    return values[order], vectors[:, order]


@dataclass(frozen=True)
class Eigenmodes:
    """The eigenmodes of the connectivity W, the slowest first.

    Use them to inspect a network. W is not normal, so its eigenvectors may be badly
    conditioned; greenfold computes no result from them.

    Attributes
    ----------
    eigenvalues : ndarray (n_modes,), complex
        λ_α of W diag(φ') at rest, by decreasing real part. If the time constants differ,
        λ_α of 1 + (τ/τ_i)(W diag(φ') − 1) with their mean τ. A mode decays if Re λ_α < 1.
    left_vectors : ndarray (n_modes, n_neurons), complex
        Row α is w_α, of unit length.
    time_constants : ndarray (n_modes,)
        τ_α = τ / (1 − Re λ_α); infinite if Re λ_α ≥ 1.
    """

    eigenvalues: NDArray[np.complex128]
    left_vectors: NDArray[np.complex128]
    time_constants: NDArray[np.float64]
    _pace: float | np.ndarray = field(default=1.0, repr=False)

    def loading(self, u: ArrayLike) -> np.ndarray:
        """Return the loading ω_α = w_αᵀ u of an input projection (paper, figure 2c).

        u has shape (n_neurons,) or (n_neurons, n_channels). The complex result has one
        row per mode. If the time constants differ, u_i is scaled by τ/τ_i.
        """
        vector = check.host_array(u, "u", ndim=(1, 2))
        check.input_projection(vector, self.left_vectors.shape[1])
        if isinstance(self._pace, np.ndarray):
            vector = (vector.T * self._pace).T
        return self.left_vectors @ vector


def eigenmodes(
    matrix: Matrix, mean_tau: float, pace: float | np.ndarray, slowest: int | None
) -> Eigenmodes:
    """Return the modes of a connectivity; see `Reservoir.modes`."""
    n = matrix.shape[0]
    count = n if slowest is None else check.count(slowest, "slowest")
    if is_sparse(matrix) and count < min(n, _MOST_SEARCHED):
        eigenvalues, left = leading(matrix.T, count)
    else:
        matrix = dense(matrix, "all modes", "pass slowest=20 for a few")
        eig: Any = linalg.eig  # the stubs expect three results
        eigenvalues, left = eig(matrix, left=True, right=False)
        left = left.conj()
    order = np.argsort(-np.real(eigenvalues), kind="stable")[:count]
    eigenvalues = eigenvalues[order]
    with np.errstate(divide="ignore"):
        constants = mean_tau / np.maximum(1 - np.real(eigenvalues), 0)
    # LAPACK's left vectors satisfy wᴴ W = λ wᴴ; the paper writes wᵀ W = λ wᵀ.
    return Eigenmodes(eigenvalues, left.T[order], constants, pace)


def norm(matrix: Matrix) -> float:
    """Return the 2-norm of a matrix; that of a sparse matrix to two digits."""
    if not is_sparse(matrix):
        return float(np.linalg.norm(matrix, 2))
    n = matrix.shape[0]
    if n <= _SMALL:
        return float(np.linalg.norm(matrix.toarray(), 2))
    search: Any = svds
    start = np.random.default_rng(0).standard_normal(int(n))
    return float(search(matrix, 1, tol=1e-2, v0=start, return_singular_vectors=False)[0])


def solve(matrix: Matrix, b: np.ndarray) -> np.ndarray:
    """Return the solution x of M x = b; raise a LinAlgError if none is found."""
    if not is_sparse(matrix):
        return cast("Any", np.linalg.solve)(matrix, b)
    iterate: Any = gmres
    options = {"rtol": _RESIDUAL, "restart": _VECTORS, "maxiter": _CYCLES}
    found, failed = iterate(matrix, b, **options)
    if failed or not np.isfinite(found).all():
        raise np.linalg.LinAlgError("no solution of sparse equations was found")
    return found
