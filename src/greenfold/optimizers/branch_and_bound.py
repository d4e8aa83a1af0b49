r"""Branch and bound: a tree of bounds that closes the gap which the relaxation leaves.

With w = (v, u), the relaxed w wᵀ of a node of the `Tree` is about λ₁ppᵀ + λ₂qqᵀ. The angle
of (p·w, q·w), modulo π, is cut into sectors. Each sector is a constraint (x·w)(y·w) ≥ 0
that the relaxed w wᵀ of the node violates, so the bound of each sector is lower than that
of the node. (Sectors of u alone would not separate the mixtures of readouts that noise on
the states causes; they need more nodes, 627 instead of 75 on one problem.)

`Directions` proves the optimum for at most three outputs, or three values of u: it cuts the
sphere into cells.

Let x be the projection with few values and y the other one. At a given x, the best y is
known exactly (`greenfold.math.sphere`). For large η, u cannot be as short as the relaxation
of `greenfold.optimizers.bounds` would have it, so that bound never closes; this one does.
With the kernel a(x, y), linear in both, and w = x₀ + τ along x, where τ is orthogonal to
x₀ and ρ = 1/‖w‖,

.. math::

    \kappa=\rho\,a(w,y)\cdot\mu-\tfrac{\eta}{2}\rho^2\lVert a(w,y)\rVert_\psi^2
    \le\rho\,a(w,y)\cdot\mu
    -\tfrac{\eta}{2}(2\rho-1)\bigl(\lVert a(x_0,y)\rVert_\psi^2
    +2\langle a(x_0,y),a(\tau,y)\rangle_\psi\bigr).

For one y, the right-hand side is linear in ρ and in τ, so on a cell it is largest at a
corner. Its maximum over unit y is again known exactly. The error falls with the square of
the size of the cell. Noise on x adds to the square, and noise on y to the quadratic form
of y.
"""

# The capital letters are matrices, not constants.
# pyright: reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, pairwise
from typing import Any, cast

import numpy as np
from scipy.linalg import eigh

from ..math.sphere import maximize_on_sphere
from .bounds import Relaxation, Sectors
from .linear import LinearProblem

#: Share of the angle of the relaxed w wᵀ at which a node is cut.
_EDGE = 0.6
#: At the beginning: number of arcs, and times that the triangles of an octahedron are cut.
_ARCS, _CUTS = 16, 2
#: Rounding error of a maximum on the sphere, as a share of its terms, and the width of a
#: cell below which only rounding is left.
_ROUNDING, _NARROW = 1e-14, 1e-8
#: Number of entries of the matrices that are solved together.
_BATCH = 2**21


class Tree:
    """A tree of bounds on the sectors of w = (v, u), which grows at its largest bound.

    ``bound`` is an upper bound on κ from which the tree starts, at the bound ``root``.
    """

    def __init__(self, root: Relaxation, bound: float) -> None:
        import joblib as untyped  # pyright: ignore[reportMissingTypeStubs]

        joblib: Any = untyped
        self._order = count()
        self._opened = [(-bound, next(self._order), root)]
        self._workers, self._width = joblib.Parallel(), int(joblib.effective_n_jobs())
        self._task = joblib.delayed(_lowered)

    @property
    def bound(self) -> float:
        """The largest bound of a leaf."""
        return -self._opened[0][0]

    @property
    def leaves(self) -> list[Relaxation]:
        """The leaves of the tree."""
        return [node for _, _, node in self._opened]

    def grow(self, goal: float) -> list[Relaxation]:
        """Cut the leaves of largest bound, one per worker; return the new leaves.

        The bound of each is lowered to ``goal`` at most. If only rounding is left in a
        leaf, nothing is cut.
        """
        width = min(self._width, len(self._opened))
        taken = [heappop(self._opened) for _ in range(width)]
        parts = [_sectors(node) for _, _, node in taken]
        if not all(parts):
            for leaf in taken:
                heappush(self._opened, leaf)
            return []
        cut = [
            (leaf[2], one) for leaf, own in zip(taken, parts, strict=True) for one in own
        ]
        tasks = [self._task(node, one, goal) for node, one in cut]
        made = cast("list[Relaxation]", self._workers(tasks))
        for node, (parent, _) in zip(made, cut, strict=True):
            if parent.lowest < node.lowest:
                assert parent.point is not None
                kernels, t, z = parent.point
                node.lowest, node.point = parent.lowest, (kernels, t, np.append(z, 0.0))
            heappush(self._opened, (-node.lowest, next(self._order), node))
        return made


def _sectors(node: Relaxation) -> list[Sectors]:
    """Cut the plane of the two leading directions of w = (v, u) into three sectors."""
    if node.lifted is None:  # rounding kept Newton's method from its centre
        return []
    n = len(node.lifted)
    shares, vectors = eigh(node.lifted, subset_by_index=[n - 2, n - 1])
    q, p = vectors.T
    edge = _EDGE * np.arctan2(*np.sqrt(np.maximum(shares, 0.0)))
    edges = [-edge, edge, np.pi / 2, np.pi - edge]
    found: list[Sectors] = []
    for low, high in pairwise(edges):
        # Scale x and y so that the largest eigenvalue of sym(x yᵀ) is one.
        size = np.sin((high - low) / 2)
        x = (np.cos(low) * q - np.sin(low) * p)[None] / size
        y = (np.sin(high) * p - np.cos(high) * q)[None] / size
        if node.sectors is not None:
            x, y = np.vstack([node.sectors.x, x]), np.vstack([node.sectors.y, y])
        found.append(Sectors(x, y))
    return found


def _lowered(node: Relaxation, sectors: Sectors, goal: float) -> Relaxation:
    """Return the bound within new sectors of a node, lowered from that of the node."""
    assert node.point is not None
    kernels, t, z = node.point
    made = node.within(sectors)
    made.lower(kernels, node.directions[:, :, 0], goal=goal, start=(t, np.append(z, 0.0)))
    return made


@dataclass(frozen=True, eq=False)
class Directions:
    """κ at the best y of each unit x, with bounds on cells of x.

    κ = x·(B y) − (η/2) Σ_ij x_i x_j (yᵀQ_ij y + X_ij) − (η/2) yᵀY y. The shapes are B
    (d, n), Q (d, d, n, n) with Q_ij = Q_jiᵀ, X (d, d) and Y (n, n).
    """

    B: np.ndarray
    Q: np.ndarray
    X: np.ndarray
    Y: np.ndarray
    eta: float
    of_readout: bool

    @classmethod
    def of(cls, problem: LinearProblem, most: int = 3) -> Directions | None:
        """Return the problem in the projection with fewer values; None above ``most``."""
        system, stimuli = problem.system, problem.stimuli
        n_values = system.n_inputs * stimuli.n_channels
        of_readout = system.n_outputs <= n_values
        if min(system.n_outputs, n_values) > most:
            return None
        rows = system.readout_response(np.eye(system.n_outputs))  # (steps, inputs, outputs)
        kernels = np.einsum("nio,ce->oicen", rows, np.eye(stimuli.n_channels))
        kernels = kernels.reshape(system.n_outputs, n_values, -1)
        if not of_readout:
            kernels = kernels.swapaxes(0, 1)
        curved = stimuli.psi @ kernels.reshape(-1, len(stimuli.mu)).T
        curved = curved.T.reshape(kernels.shape)
        Q = np.einsum("iad,jbd->ijab", curved, kernels, optimize=True)
        P, none = problem.covariance, np.zeros((n_values, n_values))
        P = np.zeros((system.n_outputs,) * 2) if P is None else (P + P.T) / 2
        noise = (P, none) if of_readout else (none, P)
        return cls(kernels @ stimuli.mu, Q, *noise, problem.eta, of_readout)

    @property
    def cost(self) -> float:
        """Number of products per cell."""
        d, n = self.B.shape
        return float(2 * d + 1) * n**3

    def values(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return κ at the best y of each x (n_points, d), and this y."""
        Q = np.einsum("ki,kj,ijab->kab", x, x, self.Q, optimize=True) + self.Y
        found = maximize_on_sphere(x @ self.B, self.eta / 2 * (Q + Q.swapaxes(1, 2)))
        cost = np.einsum("ki,kj,ij->k", x, x, self.X)
        return found.value - 0.5 * self.eta * cost, found.v

    def bounds(self, centres: np.ndarray, corners: np.ndarray) -> np.ndarray:
        """Return upper bounds on κ of cells with corners (n_cells, d, d), one per row."""
        along = np.einsum("ki,kci->kc", centres, corners)
        w = corners / along[:, :, None]
        # w = x₀ + τ gives x₀x₀ᵀ + 2 sym(x₀ τᵀ) = 2 sym(x₀ wᵀ) − x₀x₀ᵀ.
        pairs = 2 * centres[:, None, :, None] * w[:, :, None, :]
        pairs = pairs - (centres[:, :, None] * centres[:, None])[:, None]
        Q = np.tensordot(pairs, self.Q, axes=((2, 3), (0, 1)))
        Q = (Q + Q.swapaxes(-1, -2)) / 2
        cost, b = np.einsum("kcij,ij->kc", pairs, self.X), w @ self.B
        rho = along.min(1)[:, None]
        best = np.full(len(centres), -np.inf)
        for linear, square in ((np.ones_like(rho), np.ones_like(rho)), (rho, 2 * rho - 1)):
            own, terms = linear[:, :, None] * b, square[:, :, None, None] * Q + self.Y
            terms = self.eta * terms
            found = maximize_on_sphere(own, terms).value
            noise = 0.5 * self.eta * square * cost
            size = np.abs(terms).sum((2, 3)) + np.abs(own).sum(2) + np.abs(noise)
            best = np.maximum(best, (found - noise + _ROUNDING * size).max(1))
        return best

    def search(self, value: float, tol: float, limit: int) -> Iterator[Found]:
        """Yield the best pair and the lowest bound so far, until they meet within ``tol``.

        It starts from a known κ, ``value``, and cuts at most ``limit`` cells.
        """
        n_dimensions, n = self.B.shape
        cells, closed, n_cells = _whole(n_dimensions), -np.inf, 0
        step = max(1, _BATCH // (n**2 * n_dimensions))
        while len(cells) and n_cells < limit:
            n_cells += len(cells)
            bounds, best = np.empty(len(cells)), None
            for start in range(0, len(cells), step):
                part = cells[start : start + step]
                x = part.sum(1)
                x /= np.linalg.norm(x, axis=1, keepdims=True)
                bounds[start : start + step] = self.bounds(x, part)
                values, y = self.values(x)
                at = int(np.argmax(values))
                if best is None or values[at] > best[2]:
                    best = x[at], y[at], float(values[at])
            assert best is not None
            value = max(value, best[2])
            is_open = bounds > value + tol * abs(value)
            closed = max(closed, float(bounds[~is_open].max(initial=-np.inf)))
            yield Found(*best, max(closed, float(bounds.max())), n_cells)
            width = np.linalg.norm(cells[0, 0] - cells[0, 1])
            if width < _NARROW:
                return
            cells = _cut(cells[is_open])


@dataclass(frozen=True, eq=False)
class Found:
    """The best pair of one pass over the cells, the bound on all, and how many there were.

    ``x`` has few values; ``y`` is the other projection.
    """

    x: np.ndarray
    y: np.ndarray
    value: float
    bound: float
    n_cells: int


def _whole(n_dimensions: int) -> np.ndarray:
    """Return cells of half a circle or half a sphere; −x with −y gives the same κ."""
    if n_dimensions == 2:
        angles = np.linspace(0, np.pi, _ARCS + 1)
        points = np.column_stack([np.cos(angles), np.sin(angles)])
        return np.stack([points[:-1], points[1:]], axis=1)
    signs = np.array([[1.0, 1.0, 1.0], [-1, 1, 1], [-1, -1, 1], [1, -1, 1]])
    cells = np.stack([np.diag(sign) for sign in signs])
    for _ in range(_CUTS):
        cells = _cut(cells)
    return cells


def _cut(cells: np.ndarray) -> np.ndarray:
    """Cut arcs into two and triangles into four, at the middles of their sides."""
    middles = cells + np.roll(cells, -1, axis=1)
    middles = middles / np.linalg.norm(middles, axis=2, keepdims=True)
    if cells.shape[1] == 2:
        a, b = cells.swapaxes(0, 1)
        middle = middles[:, 0]
        return np.concatenate(
            [np.stack(ends, axis=1) for ends in ((a, middle), (middle, b))]
        )
    a, b, c = cells.swapaxes(0, 1)
    ab, bc, ca = middles.swapaxes(0, 1)
    parts = ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))
    return np.concatenate([np.stack(part, axis=1) for part in parts])
