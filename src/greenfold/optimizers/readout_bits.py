"""Readouts of few bits per weight: integers, scaled to unit norm.

If they are few, all readouts are compared, each with its best u or mask: the pair is then
the best of all that the device allows. Otherwise, the best readout of the free optimum is
rounded and improved, in turn with u.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..devices.masks.levels import UnitQuadratic, climb, combinations, roundings
from ..devices.masks.mask import Mask
from ..math.class_moments import Symmetric
from ..math.margins import SoftMargin
from ..math.sphere import maximize_on_sphere
from .linear import Candidate, LinearProblem

#: Number of readouts up to which all are compared for one u; the number of readouts and of
#: products up to which all are compared with their best u or mask; and the number of
#: entries of one batch.
_AT_ONE, _READOUTS, _PRODUCTS, _BATCH = 2**24, 2**18, 2e7, 2**22
#: Limit of rounds that alternate u and a rounded readout, number of roundings that are
#: improved, and relative gain that is more than rounding.
_ROUNDS, _AHEAD, _GAIN = 5, 4, 1e-12


def weights_of(bits: int) -> np.ndarray:
    """Return the weights that a readout of so many bits may have, up to a factor."""
    reach = (1 << bits - 1) - 1
    return np.arange(-reach, reach + 1.0) if bits > 1 else np.array([-1.0, 1.0])


def with_few_bits(
    problem: LinearProblem, found: Candidate, bits: int, mask: Mask | None, *, keep_u: bool
) -> Candidate:
    """Return a good pair whose readout has few bits, from the pair of a free readout.

    Its status is "exhaustive" if all readouts were compared, each with its best u of this
    mask (or with this u, if ``keep_u`` is set), and "rounded" otherwise.
    """
    weights = weights_of(bits)
    if keep_u:
        v, status = _best_of(problem, found.u, weights)
        made = Candidate(found.u, v, problem.margin(found.u, v), status)
    else:
        every = _compared(problem, weights, mask)
        made = every or _alternated(problem, found, weights, mask)
    return replace(made, upper_bound=found.upper_bound)


def _best_of(
    problem: LinearProblem, u: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, str]:
    """Return the best readout for one u, and whether all readouts were compared."""
    quadratic = UnitQuadratic(*problem.readout_terms(u), problem.eta)
    n = problem.system.n_outputs
    if len(weights) ** n <= _AT_ONE:
        s, status = quadratic.best(weights), "exhaustive"
    else:
        starts = list(roundings(problem.best_readout(u)[0], weights))
        values = [-quadratic.value(weights[k]) for k in starts]
        order = np.argsort(values, kind="stable")[:_AHEAD]
        ends = [weights[climb(quadratic, starts[int(i)], weights)] for i in order]
        s, status = max(ends, key=quadratic.value), "rounded"
    return s / np.linalg.norm(s), status


def _compared(
    problem: LinearProblem, weights: np.ndarray, mask: Mask | None
) -> Candidate | None:
    """Return the best pair of all readouts, each with its best u; None if they are many."""
    n_outputs, n_channels = problem.system.n_outputs, problem.stimuli.n_channels
    shape = problem.system.n_inputs, n_channels
    each = shape[0] * shape[1]
    per_readout = each**3 if mask is None else mask.n_products(shape)
    half = mask is None or mask.is_symmetric  # (u, v) and (−u, −v) are equivalent
    n_readouts = len(weights) ** n_outputs // (2 if half else 1)
    if n_readouts > _READOUTS or n_readouts * per_readout > _PRODUCTS:
        return None
    every = combinations(weights, n_outputs, half=half)
    every = every / np.linalg.norm(every, axis=1, keepdims=True)
    best, value = (every[0], np.eye(1, each)[0]), -np.inf
    for part in _batches(every, max(n_channels * problem.stimuli.n_steps * each, 4096)):
        b, Q = problem.terms_of_readouts(part)
        if mask is None:
            found = maximize_on_sphere(b, problem.eta * Q)
            values, inputs = found.value, found.v
        else:
            values, inputs = mask.best_inputs(b, Q, problem.eta, shape)
        if problem.covariance is not None:
            noise = ((part @ problem.covariance) * part).sum(1)
            values = values - 0.5 * problem.eta * noise
        at = int(np.argmax(values))
        if values[at] > value:
            best, value = (part[at], inputs[at]), float(values[at])
    v, u = best[0], best[1].reshape(shape)
    if mask is None:
        u = problem.best_input(v)[0]  # without the square root of rounding
    return Candidate(u, v, problem.margin(u, v), "exhaustive")


def _batches(rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    step = max(1, _BATCH // size)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _alternated(
    problem: LinearProblem, found: Candidate, weights: np.ndarray, mask: Mask | None
) -> Candidate:
    """Solve for the readout and for u in turn, as long as κ rises."""
    u, best = found.u, None
    for _ in range(_ROUNDS):
        v = _best_of(problem, u, weights)[0]
        at_v = _AtReadout(problem, v)
        if mask is None:
            u, margin = problem.best_input(v)
        else:
            start, masked = at_v.best_readout(u)[1], mask.improve(at_v, u)
            u, margin = max((u, start), (masked.u, masked.margin), key=lambda one: one[1])
        if best is not None:
            less = best.margin.value + _GAIN * abs(best.margin.value)
            if margin.value <= less:
                break
        best = Candidate(u, v, margin, "rounded")
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class _AtReadout:
    """The soft margin as a function of u alone, for one readout v, as a `MaskProblem`."""

    problem: LinearProblem
    v: np.ndarray

    @property
    def eta(self) -> float:
        """The weight η of the variance."""
        return self.problem.eta

    def best_readout(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin]:
        """Return v, and κ of u with it."""
        return self.v, self.problem.margin(u, self.v)

    def values(self, U: np.ndarray) -> np.ndarray:
        """Return κ of several u."""
        return np.array([self.problem.margin(u, self.v).value for u in U])

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return v, κ, and ∂κ/∂u."""
        a = self.problem.kernel(u, self.v)
        gradient = self.problem.response_sum(self.problem.gradient_at(a)).pull(self.v)
        return self.v, self.problem.margin_of_kernel(a, self.v), gradient

    def input_terms(self, v: np.ndarray) -> tuple[np.ndarray, Symmetric]:
        """Return b and Q of κ = b·u − (η/2) uᵀQu at one v, for flat u."""
        return self.problem.input_terms(v)
