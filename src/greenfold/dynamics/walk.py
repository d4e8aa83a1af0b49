"""Which steps a batch of stimuli walks through, and where its state is read.

A batch of stimuli carried along a course, and gradients carried back.

The way back needs the slopes of the gain at every stage of every step, several states'
worth of memory a step. A `Recording` keeps them for as many of the last steps as it is
given room for, and for the earlier ones only the states at which their segments begin:
going back, it walks a segment again when it gets there. So the memory is bounded whatever
the number of steps, and where there is room for all of it nothing is computed twice.

How many cases to carry at a time, and how much of their way to keep.

Elementary operations on batches, in place where the array library can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import ceil
from typing import Any, Protocol

import array_api_compat as compat
import numpy as np

from .._base.arrays import like, namespace, on_gpu, working_bytes

#: Cases carried at a time. With 256 rows a product is near its peak, and what lies between
#: two products is still in the cache of the processor: with 100 neurons, 1000 rows or more
#: took 1.4 times as long for each. On a GPU small products leave most of it idle.
_HOST_ROWS, _DEVICE_ROWS = 256, 8192
#: States that one step holds beside its tape.
WORKING = 10


@dataclass(frozen=True)
class Room:
    """What there is room for.

    Attributes
    ----------
    n_cases : int
    n_places : int
        Steps of the course, sub-steps counted.
    n_slopes : int
        States' worth of slopes that a place leaves on the tape.
    state_bytes : float
        Size of the state of one case.
    budget : float
        Bytes to use.
    rows : int
        Cases of an efficient batch.
    """

    n_cases: int
    n_places: int
    n_slopes: int
    state_bytes: float
    budget: float
    rows: int

    @classmethod
    def of(cls, X: Any, n_places: int, n_slopes: int, state_bytes: float) -> Room:
        """Room where ``X`` lives."""
        rows = _DEVICE_ROWS if on_gpu(X) else _HOST_ROWS
        n_cases = X.shape[0]
        size = (n_cases, n_places, n_slopes, state_bytes)
        return cls(*size, working_bytes(X), min(rows, n_cases))

    def rows_holding(self, n_states: float) -> int:
        """Cases of a batch where each holds so many states."""
        return max(1, min(self.rows, int(self.budget / (n_states * self.state_bytes))))

    def _kept(self) -> np.ndarray:
        """States kept of one case with tapes of 1 … n_places places."""
        length = np.arange(1, self.n_places + 1)
        return np.ceil(self.n_places / length) + self.n_slopes * length

    def tape_for_all(self) -> int:
        """Longest tape with which all cases can be kept at once; 0 where none can."""
        held = self.n_cases * self._kept() + self.rows * WORKING
        fitting = np.flatnonzero(held * self.state_bytes <= self.budget)
        return int(fitting[-1]) + 1 if len(fitting) else 0

    def tape_for_batches(self) -> tuple[int, int]:
        """Rows of a batch and the length of its tape, one batch kept at a time."""
        held = self._kept() + WORKING
        rows = self.rows_holding(float(held.min()))
        fitting = np.flatnonzero(rows * held * self.state_bytes <= self.budget)
        return rows, int(fitting[-1] if len(fitting) else np.argmin(held)) + 1


def even_batches(n_cases: int, rows: int) -> Iterator[slice]:
    """Slices of nearly equal size, at most ``rows`` long."""
    count = ceil(n_cases / rows)
    edges = np.linspace(0, n_cases, count + 1).round().astype(int).tolist()
    for start, stop in pairwise(edges):
        yield slice(start, stop)


def plus_product(base: Any, left: Any, right: Any) -> Any:
    """``base + left @ right`` as a new array."""
    if compat.is_torch_array(base):
        # One kernel instead of two; on a GPU a pass over memory is a tenth of a product.
        return base.addmm(left, right)
    product = left @ right
    product += base
    return product


def add_product(base: Any, left: Any, right: Any) -> Any:
    """``base + left @ right``, overwriting ``base`` where the library allows."""
    if compat.is_torch_array(base):
        return base.addmm_(left, right)
    base += left @ right
    return base


def place(host: np.ndarray, reference: Any, dtype: Any) -> Any:
    """Copy a host array to the namespace and device of ``reference``, as ``dtype``."""
    return namespace(reference).astype(like(host, reference), dtype, copy=False)


def wide(array: Any) -> Any:
    """The same in float64, in which sums over series are formed."""
    xp = namespace(array)
    return xp.astype(array, xp.float64, copy=False)


def contiguous(array: Any) -> Any:
    """The same values, in the order of their axes in memory where that can be asked for."""
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    return array.contiguous() if compat.is_torch_array(array) else array


def working_dtype(X: Any) -> Any:
    """float32 for float32 stimuli, float64 for everything else."""
    xp = namespace(X)
    return xp.float32 if X.dtype == xp.float32 else xp.float64


def quietly(X: Any) -> AbstractContextManager:
    """No warnings of overflow (it is looked for afterwards), no autograd graph."""
    stack = ExitStack()
    stack.enter_context(np.errstate(over="ignore", invalid="ignore"))
    if compat.is_torch_array(X):
        import torch

        stack.enter_context(torch.no_grad())
    return stack


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


class March:
    """A batch on its course.

    Parameters
    ----------
    course : Course
        On the device of ``X``.
    X : array (n_cases, n_channels, n_steps)
    u : array (n_neurons, n_channels)
    """

    def __init__(self, course: Course, X: Any, u: Any) -> None:
        xp = namespace(X)
        self.course = course
        # One step after the other in memory, as they are used.
        used = X[:, :, : course.n_inputs]
        self.inputs = contiguous(xp.permute_dims(used, (2, 0, 1)))
        self.drive_maps = {s: s.drive_map(u) for s in course.steppers}

    def start(self) -> Any:
        """The state at the beginning, (n_cases, n_neurons)."""
        x = self.inputs[0, :, :1]
        rest = namespace(x).zeros_like(x * self.drive_maps[self.course.step][:1, :])
        return rest if self.course.start is None else rest + self.course.start

    def walk(
        self,
        y: Any,
        start: int,
        stop: int,
        *,
        read: Any = None,
        tape: list[list[Any]] | None = None,
        ends: list[Any] | None = None,
    ) -> tuple[Any, Any]:
        """Walk the places ``start`` … ``stop`` − 1 of the course.

        Parameters
        ----------
        y : array (n_cases, n_neurons)
            State at ``start``.
        start, stop : int
        read : array or None
            What has been read so far.
        tape : list, optional
            Receives the slopes of every place.
        ends : list, optional
            Receives the state at the end of every step of the stimulus.

        Returns
        -------
        y : array (n_cases, n_neurons)
            State at ``stop``.
        read : array or None
            Weighted sum of the states read so far.
        """
        places = self.course.places
        at, drive = -1, None
        for index in range(start, stop):
            step, stepper, weight = places[index]
            if step != at:
                at, drive = step, self.inputs[step, :, :] @ self.drive_maps[stepper]
            slopes = None if tape is None else []
            y = stepper.advance(y, drive, slopes)
            if tape is not None:
                tape.append(slopes or [])
            if weight:
                part = y if weight == 1 else weight * y
                read = part if read is None else read + part
            if ends is not None and (
                index + 1 == len(places) or places[index + 1][0] != step
            ):
                ends.append(y)
        return y, read


class Recording:
    """A batch walked to its readout, with what the way back needs.

    Parameters
    ----------
    march : March
    length : int
        Places of the course whose slopes may be held at a time.

    Attributes
    ----------
    read : array (n_cases, n_neurons)
        The readout state.
    last : array (n_cases, n_neurons)
        The state at the end of the course.
    """

    def __init__(self, march: March, length: int) -> None:
        n_places = len(march.course.places)
        self._march = march
        self._starts = sorted({0, *range(n_places - length, 0, -length)})
        self._states = [march.start()]
        self._tape: list[list[Any]] | None = []
        y, read = self._states[0], None
        for start, stop in pairwise(self._starts):
            y, read = march.walk(y, start, stop, read=read)
            self._states.append(y)
        self.last, self.read = march.walk(
            y, self._starts[-1], n_places, read=read, tape=self._tape
        )

    def pullback(self, cotangent: Any) -> Any:
        """Gradient with respect to u of Σ cotangent · read.

        The slopes are let go as they are used; called again, it walks again.

        Parameters
        ----------
        cotangent : array (n_cases, n_neurons)

        Returns
        -------
        array (n_neurons, n_channels)
            In float64: what is summed over many series would lose digits in float32, and
            depend on how the series are cut into batches.
        """
        march, places = self._march, self._march.course.places
        xp = namespace(cotangent)
        gradients = {s: wide(xp.zeros_like(m)) for s, m in march.drive_maps.items()}
        bar, drive_bar, stop = xp.zeros_like(cotangent), None, len(places)
        for start, y in zip(self._starts[::-1], self._states[::-1], strict=True):
            tape = self._tape
            self._tape = None
            if tape is None:
                tape = []
                march.walk(y, start, stop, tape=tape)
            for index in range(stop - 1, start - 1, -1):
                step, stepper, weight = places[index]
                if weight:
                    bar += cotangent if weight == 1 else weight * cotangent
                bar, here = stepper.retreat(bar, tape.pop())
                # All sub-steps of a step have the same drive.
                drive_bar = here if drive_bar is None else drive_bar + here
                if index == 0 or places[index - 1][0] != step:
                    inputs = xp.matrix_transpose(march.inputs[step, :, :])
                    gradients[stepper] = add_product(
                        gradients[stepper], wide(inputs), wide(drive_bar)
                    )
                    drive_bar = None
            stop = start
        total = None
        for stepper, gradient in gradients.items():
            part = stepper.drive_map_pullback(gradient)
            total = part if total is None else total + part
        return total
