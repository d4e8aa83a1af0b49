"""The paper's algorithm for a linear reservoir: optimise u and v in turn."""

from __future__ import annotations

import numpy as np

from .linear import LinearProblem
from .result import Candidate


def alternate(
    problem: LinearProblem, u: np.ndarray, *, max_iter: int, tol: float
) -> Candidate:
    """Alternate between the optimal readout and the optimal input projection.

    Each half-step is a quadratic problem on the sphere (paper, supplement cases A and B);
    the soft margin never falls. Stops when it is saturated: when a whole round raises it
    by less than ``tol``, relative to its size.

    Parameters
    ----------
    problem : LinearProblem
    u : ndarray (n_neurons, n_channels)
        Where to start.
    max_iter : int
        Rounds.
    tol : float
    """
    v, margin = problem.best_readout(u)
    history = [(margin.separation, margin.variance)]
    status = "max_iterations"
    try:
        for _ in range(max_iter):
            new_u, _ = problem.best_input(v)
            new_v, new = problem.best_readout(new_u)
            gain = new.value - margin.value
            if gain > 0:
                u, v, margin = new_u, new_v, new
            history.append((margin.separation, margin.variance))
            if gain <= tol * abs(margin.value):
                status = "converged"
                break
    except KeyboardInterrupt:
        status = "interrupted"
    return Candidate(u, v, margin, history, status)
