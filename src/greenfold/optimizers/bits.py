"""Readouts of a few bits per weight."""

from __future__ import annotations

import numpy as np

from ..devices.masks.levels import UnitQuadratic, climb, roundings
from .linear import Candidate, LinearProblem

#: Limit of rounds that alternate a free u and a quantised readout, and number of roundings
#: that are improved.
_ROUNDS, _AHEAD = 5, 4


def quantise_readout(
    problem: LinearProblem, found: Candidate, bits: int, *, keep_u: bool
) -> Candidate:
    """Return the best readout of integers of ``bits`` bits, scaled to unit norm.

    Unless ``keep_u`` is set, for a mask or a given u, it also solves for the u of the new
    readout.
    """
    reach = 2 ** (bits - 1) - 1
    levels: np.ndarray = np.array([-1.0, 1.0])
    if bits > 1:
        levels = np.arange(-reach, reach + 1.0)
    u, best = found.u, None
    for _ in range(1 if keep_u else _ROUNDS):
        b, Q = problem.readout_terms(u)
        quadratic = UnitQuadratic(b, Q, problem.eta)
        starts = list(roundings(problem.best_readout(u)[0], levels))
        order = np.argsort([-quadratic.value(levels[k]) for k in starts], kind="stable")
        ends = [climb(quadratic, starts[i], levels) for i in order[:_AHEAD]]
        s = levels[max(ends, key=lambda k: quadratic.value(levels[k]))]
        v = s / np.linalg.norm(s)
        margin = problem.margin(u, v)
        if best is not None and margin.value <= best.margin.value * (1 + 1e-12):
            break
        status = found.status
        if not keep_u:
            (u, margin), status = problem.best_input(v), "improved"
        best = Candidate(u, v, margin, status, upper_bound=found.upper_bound)
    assert best is not None
    return best
