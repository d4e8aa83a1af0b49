"""Which steps a batch of stimuli walks through, and where its state is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ._products import place


class Stepper(Protocol):
    """Moves a batch of states over one step with constant input, and back.

    States are rows. They are deviations from the rest state of the network. A stepper is
    hashed by identity.
    """

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        ...

    @property
    def n_slopes(self) -> int:
        """Arrays (n_cases, N) that `advance` leaves behind for `retreat`."""
        ...

    @property
    def reach(self) -> float:
        """Length of the step in units of the network's fastest rate; 0 for a map."""
        ...

    def on(self, reference: Any, dtype: Any) -> Stepper:
        """The same with its matrices where ``reference`` lives."""
        ...

    def drive_map(self, u: Any) -> Any:
        """(n_channels, N) matrix D: the drive of inputs x (n_cases, n_channels) is x D."""
        ...

    def drive_map_pullback(self, bar: Any) -> Any:
        """Adjoint of `drive_map`: (n_channels, N) to (N, n_channels)."""
        ...

    def advance(self, y: Any, drive: Any, slopes: list[Any] | None = None) -> Any:
        """State at the end of the step, a new array.

        With ``slopes``, what `retreat` needs is appended to it.
        """
        ...

    def retreat(self, bar: Any, slopes: list[Any]) -> tuple[Any, Any]:
        """Adjoint of `advance`: cotangents of the state before and of the drive.

        ``bar`` may be overwritten.
        """
        ...


@dataclass(frozen=True, eq=False)
class Course:
    """A walk over steps of the stimulus, each cut into equal sub-steps.

    Attributes
    ----------
    step : Stepper
        One sub-step of a regular step.
    n_sub : int
        Sub-steps per step.
    n_steps : int
        Whole steps to walk.
    weights : ndarray (n_steps,)
        Weight of the state at the end of each whole step in the readout; all zero where
        there is a tail, whose end is then the readout.
    tail : Stepper or None
        One sub-step of a last, shortened step (readout between two step ends), which has
        ``n_sub`` of them too.
    start : array (n_neurons,) or None
        Where every series begins, as a deviation from the rest state; None for at rest.
    """

    step: Stepper
    n_sub: int
    n_steps: int
    weights: np.ndarray
    tail: Stepper | None = None
    start: Any = None

    @property
    def n_inputs(self) -> int:
        """Steps of the stimulus that reach the readout."""
        return self.n_steps + (self.tail is not None)

    @property
    def steppers(self) -> list[Stepper]:
        """The regular one, and that of the tail where there is one."""
        return [self.step] if self.tail is None else [self.step, self.tail]

    @cached_property
    def places(self) -> list[tuple[int, Stepper, float]]:
        """(step, stepper, readout weight of the state at its end), in order of time."""
        path: list[tuple[int, Stepper, float]] = []
        for step in range(self.n_steps):
            path += [(step, self.step, 0.0)] * (self.n_sub - 1)
            path.append((step, self.step, float(self.weights[step])))
        if self.tail is not None:
            path += [(self.n_steps, self.tail, 0.0)] * (self.n_sub - 1)
            path.append((self.n_steps, self.tail, 1.0))
        return path

    def on(self, reference: Any, dtype: Any) -> Course:
        """The same with its matrices where ``reference`` lives."""
        tail = None if self.tail is None else self.tail.on(reference, dtype)
        start = None if self.start is None else place(self.start, reference, dtype)
        return replace(self, step=self.step.on(reference, dtype), tail=tail, start=start)


def make_course(
    make_step: Callable[[float], Stepper],
    dt: float,
    n_sub: int,
    *,
    weights: np.ndarray | None = None,
    time: float | None = None,
    start: np.ndarray | None = None,
) -> Course:
    """The course to a readout.

    Parameters
    ----------
    make_step : callable
        Length of a sub-step to a `Stepper`.
    dt : float
        Length of a step of the stimulus.
    n_sub : int
        Sub-steps per step.
    weights : ndarray (n_steps,), optional
        Weights of the step ends in the readout, not all zero.
    time : float, optional
        Time of the readout where it lies inside a step, instead of ``weights``. The
        shortened step has as many sub-steps as the others, so that twice their number
        halves them all.
    start : ndarray (n_neurons,), optional
        Where every series begins, as a deviation from the rest state.
    """
    step = make_step(dt / n_sub)
    if time is None:
        assert weights is not None
        used = int(np.flatnonzero(weights)[-1]) + 1
        used_weights = np.asarray(weights, dtype=float)[:used]
        return Course(step, n_sub, used, used_weights, start=start)
    whole = int(time // dt)
    length = time - whole * dt
    tail = make_step(length / n_sub)
    return Course(step, n_sub, whole, np.zeros(whole), tail, start)
