"""A readout whose weights have few bits."""

from __future__ import annotations

import numpy as np

from ..margins import SoftMargin
from .exchange import UnitQuadratic, climb, rounded
from .linear import LinearProblem
from .result import Candidate

#: Rounds of a free u for a quantised readout and back.
_ROUNDS = 5


def levels_of(bits: int) -> np.ndarray:
    """Whole numbers of so many bits with a sign, symmetric; ±1 for one bit."""
    reach = 2 ** (bits - 1) - 1
    return np.arange(-reach, reach + 1.0) if bits > 1 else np.array([-1.0, 1.0])


def quantise_readout(
    problem: LinearProblem, found: Candidate, bits: int, *, keep_u: bool
) -> Candidate:
    """The best readout of whole numbers of ``bits`` bits, scaled to unit norm.

    Parameters
    ----------
    problem : LinearProblem
    found : Candidate
        Where to start; its bound stays one.
    bits : int
    keep_u : bool
        Whether u is a mask or was given; otherwise it is solved for the new readout.
    """
    u, best = found.u, None
    for _ in range(1 if keep_u else _ROUNDS):
        v, margin = _nearby(problem, u, levels_of(bits))
        if best is not None and margin.value <= best.margin.value * (1 + 1e-12):
            break
        history = [(margin.separation, margin.variance)]
        best = Candidate(u, v, margin, history, found.status, found.upper_bound)
        if not keep_u:
            u, _ = problem.best_input(v)
            margin = problem.margin_of_kernel(problem.kernel(u, v))
            history = [(margin.separation, margin.variance)]
            best = Candidate(u, v, margin, history, "exchanged", found.upper_bound)
    assert best is not None
    return best


def _nearby(
    problem: LinearProblem, u: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, SoftMargin]:
    """Roundings of the optimal readout, improved by exchange."""
    v, _ = problem.best_readout(u)
    b, Q = problem.readout_terms(u)
    quadratic = UnitQuadratic(b, Q, problem.eta)
    starts = sorted(rounded(v, levels), key=lambda k: -quadratic.value(levels[k]))[:4]
    ends = [climb(quadratic, index, levels) for index in starts]
    s = levels[max(ends, key=lambda k: quadratic.value(levels[k]))]
    v = s / np.linalg.norm(s)
    return v, problem.margin_of_kernel(problem.kernel(u, v))
