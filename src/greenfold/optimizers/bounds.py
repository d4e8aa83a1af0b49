"""Upper bounds, lowered by descent in their own variables.

κ is concave in its kernel, so κ linearised at any kernel a bounds all projections. The
bound is convex in a, and in whatever else the relaxation leaves free (weights of
comparisons, multipliers of a mask). One descent serves them all; a problem supplies the
value that is proven, one to descend, which may be smoothed, and its gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from ..math.covariances import Factored, root
from .linear import LinearProblem

#: Amplification (``LinearProblem.growth``) from which a network is treated with care.
AMPLIFIED = 1e3
#: Random inputs that tell steep directions, and the share in a smoothed maximum below which
#: a direction is left out.
_PROBES, _NEGLIGIBLE = 64, 1e-9

#: (kernels, extra variables, smoothing) to the proven bound, the one that is descended, and
#: the gradient of that by each kernel and by the extra variables.
Bound = Callable[
    [list[np.ndarray], np.ndarray, float],
    tuple[float, float, Sequence[np.ndarray], np.ndarray],
]


class _Closed(Exception):
    """The bound has come down to its goal."""


@dataclass(frozen=True)
class Metric:
    """Coordinates c = rootᵀa of kernels in which a bound is about equally curved.

    Only ψa matters: a kernel is sought in the range of ψ. Entries that noise adds to a
    kernel are taken in one unit. Of root and inverse, both (D, rank), inverseᵀ root = 1.
    """

    root: np.ndarray
    inverse: np.ndarray
    unit: float = 1.0

    @classmethod
    def of(cls, matrix: np.ndarray, floor: float, unit: float = 1.0) -> Metric:
        """By a positive semi-definite matrix, its eigenvalues kept off zero."""
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        if values[-1] <= 0:
            return cls(vectors[:, :0], vectors[:, :0], unit)
        sizes = np.sqrt(np.clip(values, floor * values[-1], None))
        return cls(vectors * sizes, vectors / sizes, unit)

    @property
    def is_empty(self) -> bool:
        """Whether no kernel matters."""
        return not self.root.shape[1]

    def coordinates(self, kernel: np.ndarray) -> np.ndarray:
        """Coordinates of a kernel."""
        n = len(self.root)
        return np.concatenate([self.root.T @ kernel[:n], self.unit * kernel[n:]])

    def kernel(self, c: np.ndarray) -> np.ndarray:
        """The kernel of coordinates."""
        n = self.root.shape[1]
        return np.concatenate([self.inverse @ c[:n], c[n:] / self.unit])

    def gradient(self, bar: np.ndarray) -> np.ndarray:
        """A gradient by the kernel as one by the coordinates."""
        n = len(self.root)
        return np.concatenate([self.inverse.T @ bar[:n], bar[n:] / self.unit])


def metric_of(problem: LinearProblem) -> Metric:
    """The metric of (η/2) aᵀψa, the quadratic part of the bound.

    Where the network amplifies much, σ_max(G(μ − ηψa)) is far steeper along some
    directions, and its Frobenius norm tells which.
    """
    curved, unit = problem.eta * problem.stimuli.psi, float(np.sqrt(problem.eta))
    amplified = problem.growth > AMPLIFIED
    n_channels = problem.stimuli.n_channels
    if not isinstance(curved, Factored):
        if amplified:
            R = _probed(problem)
            steep = np.kron(np.eye(n_channels), np.einsum("pno,pmo->nm", R, R))
            curved = curved + curved @ steep @ curved
        return Metric.of(curved, 1e-12, unit)
    basis, sizes = root(curved)
    made, inverse = basis * sizes, basis / sizes
    if amplified and len(sizes):
        inner = np.eye(len(sizes))
        for R in _probed(problem):
            for part in made.reshape(n_channels, problem.stimuli.n_steps, -1):
                seen = part.T @ R
                inner += seen @ seen.T
        factor = np.linalg.cholesky(inner)
        made, inverse = made @ factor, inverse @ np.linalg.inv(factor).T
    return Metric(made, inverse, unit)


def _probed(problem: LinearProblem) -> np.ndarray:
    """Responses to random input projections, (n_probes, n_steps, n_outputs)."""
    n = problem.system.n_inputs
    u = np.random.default_rng(1).standard_normal((n, min(n, _PROBES)))
    R = problem.system.input_response(u / np.sqrt(u.shape[1]))
    return R.reshape(u.shape[1], problem.stimuli.n_steps, -1)


def soft_maximum(
    values: np.ndarray, vectors: np.ndarray, width: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """A smooth function just above the largest eigenvalue, and what its gradient rests on.

    Several eigenvalues meet where a relaxation is not tight; the share of each in the
    gradient is a Boltzmann weight. Shares, largest first, with their vectors.
    """
    share = np.exp((values - values[-1]) / width)
    total = float(share.sum())
    share = share / total
    keep = np.flatnonzero(share > _NEGLIGIBLE)[::-1]
    soft = float(values[-1]) + width * float(np.log(total))
    return soft, share[keep], vectors[:, keep]


def descend(
    bound: Bound,
    kernels: Sequence[np.ndarray] = (),
    metrics: Sequence[Metric] = (),
    extra: np.ndarray | None = None,
    *,
    unit: float,
    max_evaluations: int,
    smoothing: Sequence[float] = (0.0,),
    limits: Sequence[tuple[float | None, float | None]] | None = None,
    goal: float = -np.inf,
    memory: int = 30,
    tol: float = 1e-13,
) -> float:
    """The lowest proven bound that is met by L-BFGS, from ``kernels`` and ``extra``.

    ``metrics`` has one for each kernel, ``limits`` a range for each extra variable.
    ``unit`` is the size of the bound. One descent per entry of ``smoothing`` follows the
    other, each of ``max_evaluations``, ``memory`` steps and down to a gain of ``tol``. At
    ``goal`` nothing is left to do.
    """
    extra = np.zeros(0) if extra is None else extra
    own = [m.coordinates(a) for m, a in zip(metrics, kernels, strict=True)]
    ends = np.cumsum([len(c) for c in own], dtype=int)
    point = np.concatenate([*own, extra])
    ranges = None
    if limits is not None:
        ranges = [(None, None)] * (len(point) - len(extra)) + list(limits)
    lowest = np.inf

    def function(x: np.ndarray, width: float) -> tuple[float, np.ndarray]:
        nonlocal lowest
        *coordinates, rest = np.split(x, ends)
        places = [m.kernel(c) for m, c in zip(metrics, coordinates, strict=True)]
        proven, value, by_kernel, by_rest = bound(places, rest, width)
        lowest = min(lowest, proven)
        if lowest <= goal:
            raise _Closed
        bars = [m.gradient(bar) for m, bar in zip(metrics, by_kernel, strict=True)]
        return value / unit, np.concatenate([*bars, by_rest]) / unit

    options = {"maxfun": max_evaluations, "maxcor": memory, "ftol": tol, "gtol": 0.0}
    try:
        for width in smoothing:
            given = {"args": (width,), "jac": True, "bounds": ranges, "options": options}
            point = minimize(function, point, method="L-BFGS-B", **given).x
    except _Closed:
        pass
    return float(lowest)
