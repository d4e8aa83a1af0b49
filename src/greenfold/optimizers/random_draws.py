"""The best of random input projections, the method to compare with; also the shortest."""

from __future__ import annotations

from dataclasses import dataclass

from .._base import checks as check
from .method import N_DRAWN, Method, Run, collect
from .result import Projections


@dataclass(frozen=True)
class RandomDraws(Method, name="random"):
    """The best of random input projections, each with its optimal readout.

    Parameters
    ----------
    n : int
        Number of random projections.
    """

    n: int = N_DRAWN

    def __post_init__(self) -> None:
        check.count(self.n, "n")

    def solve(self, run: Run) -> Projections:
        """Return the best pair."""
        found = collect(run.starts(self.n), run.solve_readout)
        return run.finish(found, self.name, n_iter=1, keep_u=True)
