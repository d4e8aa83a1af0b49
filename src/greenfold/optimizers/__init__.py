"""Optimal projections: one method a file, one entry point."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .. import _validation as check
from ..stimuli import Stimuli
from ..unfolding import Unfolding
from . import convex
from ._linear import LinearProblem
from ._result import Candidate, Projections
from .alternating import alternate

__all__ = ["Projections", "optimize"]

_METHODS = ("convex", "alternating", "random")


def optimize(
    unfolding: Unfolding,
    stimuli: Stimuli,
    eta: float = 10.0,
    method: str | None = None,
    *,
    u: Any = None,
    n_starts: int = 10,
    max_iter: int | None = None,
    tol: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> Projections:
    """Find the projections u and v that maximise the soft margin.

    Parameters
    ----------
    unfolding : Unfolding
        The reservoir, with the readout it is to be optimised for.
    stimuli : GaussianStimuli or SampleStimuli
    eta : float
        Control parameter η of the soft margin; see `choose_eta`.
    method : {"convex", "alternating", "random"}, optional
        "convex" (default): the global optimum with an upper bound that certifies it.
        "alternating": the paper's algorithm, from ``n_starts`` random input projections.
        "random": ``n_starts`` random input projections with the optimal readout each,
        the state of the art to compare with; the best is returned, all are in `starts`.
    u : array_like (n_neurons,) or (n_neurons, n_channels), optional
        Keep this input projection, scaled to unit norm, and solve for v only.
    n_starts : int
        Random starts ("alternating", "random").
    max_iter : int, optional
        Largest number of iterations: singular value decompositions ("convex", default
        300) or rounds per start ("alternating", default 300).
    tol : float, optional
        Relative gap to stop at ("convex", default 1e-4), or relative gain per round that
        counts as saturation ("alternating", default 1e-6).
    rng : numpy Generator, int or None
        Source of the random starts. "convex" uses none.

    Returns
    -------
    Projections

    Notes
    -----
    Ctrl-C returns the best projections found so far with the status "interrupted".

    Examples
    --------
    >>> from greenfold import GaussianStimuli, Reservoir, optimize, unfold
    >>> reservoir = Reservoir.random(50, rng=0)
    >>> stimuli = GaussianStimuli.random(10, strength=1.0, rng=1)
    >>> best = optimize(unfold(reservoir, n_steps=10, dt=1.0), stimuli)
    >>> best.status
    'certified'
    """
    started = time.perf_counter()
    if not isinstance(unfolding, Unfolding):
        raise TypeError(
            f"`unfolding` must be an Unfolding; got {type(unfolding).__name__}."
        )
    if not isinstance(stimuli, Stimuli):
        raise TypeError(
            "`stimuli` must be GaussianStimuli or SampleStimuli; got "
            f"{type(stimuli).__name__}."
        )
    stimuli.match(unfolding)
    eta = check.positive(eta, "eta")
    if method not in (None, *_METHODS):
        raise ValueError(f"`method` must be one of {', '.join(_METHODS)}; got {method!r}.")
    problem = LinearProblem(unfolding.linear, stimuli, eta)
    n_starts = check.count(n_starts, "n_starts")
    max_iter = check.count(300 if max_iter is None else max_iter, "max_iter")
    rng = np.random.default_rng(rng)
    if u is not None:
        given = check.input_projection(u, unfolding.n_neurons, stimuli.n_channels)
        norm = np.linalg.norm(given)
        if norm == 0:
            raise ValueError("`u` is zero; give a direction.")
        candidates, name = [_solve_readout(problem, given / norm)], "given"
        n_iter = 1
    elif method == "random":
        drawn = [
            _random_unit(rng, unfolding.n_neurons, stimuli.n_channels)
            for _ in range(n_starts)
        ]
        candidates, name = [_solve_readout(problem, start) for start in drawn], "random"
        n_iter = 1
    elif method == "alternating":
        saturation = check.positive(1e-6 if tol is None else tol, "tol")
        candidates, name = [], "alternating"
        for _ in range(n_starts):
            start = _random_unit(rng, unfolding.n_neurons, stimuli.n_channels)
            candidates.append(alternate(problem, start, max_iter=max_iter, tol=saturation))
            if candidates[-1].status == "interrupted":
                break
        n_iter = None
    else:
        accuracy = check.positive(1e-4 if tol is None else tol, "tol")
        candidate, n_iter = convex.solve(problem, max_iter=max_iter, tol=accuracy)
        candidates, name = [candidate], "convex"
    return _finish(candidates, eta, name, n_iter, started)


def _finish(
    candidates: list[Candidate], eta: float, method: str, n_iter: int | None, started: float
) -> Projections:
    best = max(candidates, key=lambda candidate: candidate.margin.value)
    interrupted = any(candidate.status == "interrupted" for candidate in candidates)
    return Projections(
        u=best.u[:, 0] if best.u.shape[1] == 1 else best.u,
        v=best.v,
        soft_margin=best.margin.value,
        separation=best.margin.separation,
        variance=best.margin.variance,
        eta=eta,
        upper_bound=best.upper_bound,
        method=method,
        status="interrupted" if interrupted else best.status,
        n_iter=len(best.history) - 1 if n_iter is None else n_iter,
        history=np.array(best.history),
        starts=np.array([candidate.margin.value for candidate in candidates]),
        wall_time=time.perf_counter() - started,
    )


def _solve_readout(problem: LinearProblem, u: np.ndarray) -> Candidate:
    v, margin = problem.best_readout(u)
    return Candidate(u, v, margin, [(margin.separation, margin.variance)], "solved")


def _random_unit(rng: np.random.Generator, n_neurons: int, n_channels: int) -> np.ndarray:
    u = rng.standard_normal((n_neurons, n_channels))
    return u / np.linalg.norm(u)
