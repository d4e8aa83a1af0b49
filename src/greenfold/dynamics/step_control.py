"""The number of sub-steps that a tolerance asks for, found by halving them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.arrays import batches, namespace, to_host
from ..systems import Divergence
from ..unfolding.walk import Plan, Walk

#: Series that are integrated to find the error: as many of the largest as of the others.
_N_LARGEST, _N_OTHERS = 8, 8
#: The series left out may err more than those looked at; this share of `tol` is theirs.
_MARGIN, _MAX_SUBSTEPS = 0.5, 256
#: Long sub-steps may diverge where the network does not. Within this part of the fastest
#: rate of the network they are believed, if halved ones diverge at the same place.
_TRUSTED_REACH = 0.05
#: Order of the method, from which the number of sub-steps is foretold.
_ORDER = 4


@dataclass(frozen=True)
class StepError:
    """What the comparison with halved sub-steps found.

    Attributes
    ----------
    n_sub : int
        Sub-steps per step of the stimulus.
    error : float
        Largest error of a neuron at the end of any step, relative to the largest state of
        the series looked at: 16/15 of the difference to halved sub-steps, which err too.
    series : tuple of int
        The series looked at.
    """

    n_sub: int
    error: float
    series: tuple[int, ...]


def plan_substeps(
    make: Callable[[int], Plan], X: Any, u: np.ndarray, tol: float, *, known: int = 0
) -> StepError:
    """A number of sub-steps, near the fewest, whose error stays below ``tol``.

    ``make`` turns a number of sub-steps into a `Plan` on the host. ``known`` did at another
    u: it is kept if it does here, or else exceeded. The order of the method foretells how
    many are needed, until the error found agrees.

    Raises
    ------
    ValueError
        Where more than 256 sub-steps a step would be needed.
    Divergence
        Where the network diverges, however short the sub-steps.
    """
    least = 1e3 * np.finfo(np.float64).eps
    wanted = f"be at least {least:.1g}, below which rounding hides the error of a step"
    check.must(tol >= least, "tol", wanted, f"{tol:g}")
    probe = _Probe(make, X, u)
    if known and (error := probe.error(known)) <= tol:
        return StepError(known, error, probe.series)
    n_sub = known + 1
    while True:
        error, fine = probe.error(n_sub), probe.ends(2 * n_sub)
        if isinstance(fine, Divergence) and probe.believes(n_sub, fine):
            raise fine
        if error <= _MARGIN * tol:
            return StepError(n_sub, error, probe.series)
        wanted = 2.0 * n_sub
        if np.isfinite(error):
            wanted = n_sub * (error / (_MARGIN * tol)) ** (1 / _ORDER)
        # Far from the asymptotic regime the forecast is wild: at most eight times more.
        n_next = min(8 * n_sub, max(n_sub + 1, ceil(min(wanted, 1e9))))
        if n_next > _MAX_SUBSTEPS:
            if isinstance(fine, Divergence):
                raise fine
            raise ValueError(
                f"`tol` = {tol:g} would take more than {_MAX_SUBSTEPS} sub-steps in every "
                f"step of the stimulus, against an error of {error:.2g} with {n_sub}; "
                "shorten `dt`, or raise `tol`."
            )
        n_sub = n_next


def step_error(make: Callable[[int], Plan], X: Any, u: np.ndarray, n_sub: int) -> float:
    """Error of ``n_sub`` sub-steps on the series that `plan_substeps` would choose."""
    probe = _Probe(make, X, u)
    for found in (probe.ends(n_sub), probe.ends(2 * n_sub)):
        if isinstance(found, Divergence):
            raise found
    return probe.error(n_sub)


class _Probe:
    """The series looked at, on the host in float64, walked in any number of sub-steps."""

    def __init__(self, make: Callable[[int], Plan], X: Any, u: np.ndarray) -> None:
        self.series = tuple(probe_series(X).tolist())
        self._X = np.stack([to_host(X[i, ...]) for i in self.series]).astype(np.float64)
        self._make, self._u = make, u
        self._known: dict[int, np.ndarray | Divergence] = {}

    def ends(self, n_sub: int) -> np.ndarray | Divergence:
        """States at the ends of the steps, or where they diverge."""
        if n_sub not in self._known:
            walk = Walk(self._make(n_sub), self._X, self._u)
            try:
                self._known[n_sub] = walk.trajectories(careful=True)
            except Divergence as error:
                self._known[n_sub] = Divergence(error.step, self.series[error.series])
        return self._known[n_sub]

    def error(self, n_sub: int) -> float:
        """Difference to halved sub-steps, see `StepError`."""
        coarse, fine = self.ends(n_sub), self.ends(2 * n_sub)
        if isinstance(coarse, Divergence) or isinstance(fine, Divergence):
            return np.inf
        scale = float(np.abs(fine).max())
        if scale == 0:
            return 0.0
        richardson = 2**_ORDER / (2**_ORDER - 1)
        return richardson * float(np.abs(coarse - fine).max()) / scale

    def believes(self, n_sub: int, fine: Divergence) -> bool:
        """Whether short sub-steps diverge in the same step of the same series."""
        coarse = self.ends(n_sub)
        return (
            isinstance(coarse, Divergence)
            and (coarse.step, coarse.series) == (fine.step, fine.series)
            and self._make(n_sub).step.reach <= _TRUSTED_REACH
        )


def probe_series(X: Any) -> np.ndarray:
    """Indices of the series to look at, in increasing order."""
    n_cases = X.shape[0]
    if n_cases <= _N_LARGEST + _N_OTHERS:
        return np.arange(n_cases)
    xp, norms = namespace(X), []
    # In parts: X may be mapped from a file, and larger than memory.
    for part in batches(n_cases, 16.0 * X.shape[1] * X.shape[2]):
        values = check.finite_batch(X[part, ...], xp, part.start)
        norms.append(to_host(xp.sum(values * values, axis=(1, 2))))
    return probe_of_norms(np.concatenate(norms))


def probe_of_norms(norms: np.ndarray) -> np.ndarray:
    """The same from the squared norms of the series."""
    if len(norms) <= _N_LARGEST + _N_OTHERS:
        return np.arange(len(norms))
    by_norm = np.argsort(norms, kind="stable")
    largest, others = by_norm[-_N_LARGEST:], by_norm[:-_N_LARGEST]
    spread = others[np.linspace(0, len(others) - 1, _N_OTHERS).round().astype(int)]
    return np.sort(np.concatenate([largest, spread]))
