"""The same stimuli at one projection after the other, with one number of sub-steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from . import batch
from .course import Course


class Planner(Protocol):
    """Finds the course that keeps to a tolerance."""

    def __call__(self, X: Any, u: np.ndarray, at_least: int) -> Course:
        """The course with at least so many sub-steps."""
        ...


class Prepared:
    """States and gradients for an optimiser.

    An optimiser compares projections, so it must not see the sub-steps change between
    them: they are found at the first projection and kept. `settle` looks at the error
    where the optimiser has arrived.

    Parameters
    ----------
    plan : Planner
    check : callable
        Brings u into the shape (n_neurons, n_channels).
    X : array (n_cases, n_channels, n_steps)
        Checked. In single precision, so is the work.
    """

    def __init__(self, plan: Planner, check: Callable[[Any], np.ndarray], X: Any) -> None:
        self._plan, self._check, self._X = plan, check, X
        self._course: Course | None = None

    @property
    def n_sub(self) -> int | None:
        """Sub-steps of a step; None before the first projection."""
        return None if self._course is None else self._course.n_sub

    def __call__(self, u: Any) -> batch.Linearization:
        """States at u, with the way back from them."""
        u = self._check(u)
        if self._course is None:
            self._course = self._plan(self._X, u, 0)
        try:
            return batch.Linearization(self._course, self._X, u)
        except batch.Divergence:
            # Long sub-steps may diverge where the network does not.
            if self.settle(u):
                raise
            return batch.Linearization(self._course, self._X, u)

    def settle(self, u: Any) -> bool:
        """Whether the sub-steps keep to the tolerance at u too; if not, they now do."""
        before = self._course
        at_least = 0 if before is None else before.n_sub
        self._course = self._plan(self._X, self._check(u), at_least)
        return before is not None and self._course.n_sub == before.n_sub
