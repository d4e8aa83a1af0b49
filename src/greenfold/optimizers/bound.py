"""The upper bound of the linear problem, lowered by descent in its own variable."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize

from ..covariances import Factored, root
from .linear import LinearProblem

#: Singular value decompositions that may be spent on the bound.
_TIGHTEN_EVALUATIONS = 300
#: Amplification (``LinearProblem.growth``) from which a network is treated with care.
AMPLIFIED = 1e3
_METRIC_PROBES = 64


def tighten(problem: LinearProblem, kernel: np.ndarray) -> float:
    """Lower the upper bound by descent in its own variable.

    σ_max(G(μ − ηψa)) + (η/2) aᵀψa bounds κ from above for *any* kernel a, not only for
    those of the relaxed problem. Frank–Wolfe stalls where minute weights of large atoms
    decide; this D-dimensional convex descent does not need them.

    Parameters
    ----------
    problem : LinearProblem
    kernel : ndarray (n_channels · n_steps,)
        Where to start.

    Returns
    -------
    float
        The lowest bound met.
    """
    root_of_metric = metric_root(problem)
    if root_of_metric is None:
        return np.inf
    metric = Metric(root_of_metric, float(np.sqrt(problem.eta)))
    # The bound at the start sets the scale; it is zero only where nothing is left to do.
    sigma, _, _ = problem.best_atom(problem.gradient_at(kernel))
    scale = sigma + 0.5 * problem.eta * float(kernel @ problem.spread(kernel))
    if scale == 0:
        return 0.0
    lowest = np.inf

    def bound(c: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal lowest
        a = metric.kernel(c)
        sigma, u, v = problem.best_atom(problem.gradient_at(a))
        curved = problem.eta * problem.spread(a)
        value = sigma + 0.5 * float(a @ curved) - problem.offset
        lowest = min(lowest, value + problem.rounding(problem.gradient_at(a)))
        atom = problem.eta * problem.spread(problem.kernel(u, v))
        return value / scale, metric.gradient(curved - atom) / scale

    options = {"maxfun": _TIGHTEN_EVALUATIONS, "maxcor": 30, "ftol": 1e-13, "gtol": 0.0}
    minimize(
        bound, metric.coordinates(kernel), jac=True, method="L-BFGS-B", options=options
    )
    return lowest


@dataclass(frozen=True)
class Metric:
    """Coordinates of kernels: by a root on the stimuli, by one unit on what follows.

    Only ψa matters: a kernel is sought in the range of ψ where that is not everything.
    """

    root: np.ndarray
    unit: float

    @cached_property
    def _inverse(self) -> np.ndarray | None:
        return np.linalg.pinv(self.root) if len(self.root) > self.root.shape[1] else None

    def coordinates(self, kernel: np.ndarray) -> np.ndarray:
        """Coordinates of a kernel."""
        n = len(self.root)
        return np.concatenate([self.root.T @ kernel[:n], self.unit * kernel[n:]])

    def kernel(self, c: np.ndarray) -> np.ndarray:
        """The kernel of coordinates."""
        n, inverse = self.root.shape[1], self._inverse
        plain = (
            np.linalg.solve(self.root.T, c[:n]) if inverse is None else inverse.T @ c[:n]
        )
        return np.concatenate([plain, c[n:] / self.unit])

    def gradient(self, bar: np.ndarray) -> np.ndarray:
        """A gradient by the kernel as one by the coordinates."""
        n, inverse = len(self.root), self._inverse
        plain = (
            np.linalg.solve(self.root, bar[:n]) if inverse is None else inverse @ bar[:n]
        )
        return np.concatenate([plain, bar[n:] / self.unit])


def metric_root(problem: LinearProblem) -> np.ndarray | None:
    """Root of a metric for kernels in which the bound is about equally curved.

    Its quadratic part is (η/2) aᵀψa; where the network amplifies much, σ_max(G(μ − ηψa))
    is far steeper along some directions, and its Frobenius norm tells which.
    """
    curved = problem.eta * problem.stimuli.psi
    if isinstance(curved, Factored):
        return _metric_in_range(problem, curved)
    values = np.linalg.eigvalsh(curved)
    if values[-1] <= 0:
        return None
    if problem.growth > AMPLIFIED:
        R = _probed(problem)
        steep = np.einsum("pno,pmo->nm", R, R)
        steep = np.kron(np.eye(problem.stimuli.n_channels), steep)
        curved = curved + curved @ steep @ curved
    values, vectors = np.linalg.eigh((curved + curved.T) / 2)
    return vectors * np.sqrt(np.clip(values, 1e-12 * values[-1], None))


def _metric_in_range(problem: LinearProblem, curved: Factored) -> np.ndarray | None:
    """The same on the range of ψ, (D, rank), from its factor."""
    basis, sizes = root(curved)
    if not len(sizes):
        return None
    metric = basis * sizes
    if problem.growth <= AMPLIFIED:
        return metric
    by_channel = metric.reshape(problem.stimuli.n_channels, problem.stimuli.n_steps, -1)
    inner = np.eye(len(sizes))
    for R in _probed(problem):
        for part in by_channel:
            seen = part.T @ R
            inner += seen @ seen.T
    return metric @ np.linalg.cholesky(inner)


def _probed(problem: LinearProblem) -> np.ndarray:
    """Responses to random input projections, (n_probes, n_steps, n_outputs)."""
    n = problem.system.n_inputs
    u = np.random.default_rng(1).standard_normal((n, min(n, _METRIC_PROBES)))
    R = problem.system.input_response(u / np.sqrt(u.shape[1]))
    return R.reshape(u.shape[1], problem.stimuli.n_steps, -1)
