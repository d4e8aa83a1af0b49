"""A batch of stimuli carried along a course, and gradients carried back.

The way back needs the slopes of the gain at every stage of every step, several states'
worth of memory a step. A `Recording` keeps them for as many of the last steps as it is
given room for, and for the earlier ones only the states at which their segments begin:
going back, it walks a segment again when it gets there. So the memory is bounded whatever
the number of steps, and where there is room for all of it nothing is computed twice.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from .._arrays import namespace
from ._products import add_product, contiguous, wide
from .course import Course


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
