"""States and gradients of many stimuli through the true dynamics, in bounded memory.

The functions here cut the cases into batches, move the matrices to where the stimuli live,
and say which series diverges where one does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base import checks as check
from .._base.arrays import namespace, to_host
from ..systems import Divergence
from .walk import (
    WORKING,
    Course,
    March,
    Recording,
    Room,
    even_batches,
    place,
    quietly,
    wide,
    working_dtype,
)

#: A state this many times the largest input of its series to a neuron is taken to diverge.
#: The slowest mode of a stable network would have to last a million time constants.
_EXPLODED = 1e6


class _Field:
    """A course, its stimuli and one projection, where the stimuli live."""

    def __init__(self, course: Course, X: Any, u: np.ndarray) -> None:
        self.X, self.xp = X, namespace(X)
        self.dtype = working_dtype(X)
        self.course = course.on(X, self.dtype)
        self.u = place(u, X, self.dtype)
        self.scale = float(np.abs(u).sum(axis=1).max())
        self.start = 0.0 if course.start is None else float(np.abs(course.start).max())
        width = 4.0 if self.dtype == self.xp.float32 else 8.0
        self.state_bytes = width * course.step.n_neurons

    def room(self) -> Room:
        places, slopes = len(self.course.places), self.course.step.n_slopes
        return Room.of(self.X, places, slopes, self.state_bytes)

    def march(self, part: slice) -> March:
        batch = check.finite_batch(self.X[part, ...], self.xp, part.start)
        batch = self.xp.astype(batch, self.dtype, copy=False)
        return March(self.course, batch, self.u)

    def record(self, part: slice, length: int) -> Recording:
        recording = Recording(self.march(part), length)
        self.refuse_divergence(recording.last, part)
        return recording

    def join(self, parts: list[Any]) -> Any:
        return parts[0] if len(parts) == 1 else self.xp.concat(parts, axis=0)

    def _diverged(self, y: Any, part: slice) -> Any:
        """Which of these cases, by its state, has left the range its own input explains."""
        xp = self.xp
        inputs = xp.abs(xp.astype(self.X[part, ...], self.dtype, copy=False))
        limit = _EXPLODED * (self.scale * xp.max(inputs, axis=(1, 2)) + self.start)
        return ~(xp.max(xp.abs(y), axis=1) <= limit)  # True for NaN

    def refuse_divergence(self, last: Any, part: slice) -> None:
        """Look at the last state only: what diverged does not come back."""
        if bool(self.xp.any(self._diverged(last, part))):
            self.walk_carefully(part)

    def walk_carefully(self, part: slice) -> list[Any]:
        """States at the end of every step, each looked at before the next is made."""
        march, ends = self.march(part), []
        y = march.start()
        for index, (step, _, _) in enumerate(self.course.places):
            y, _ = march.walk(y, index, index + 1, ends=ends)
            bad = np.flatnonzero(to_host(self._diverged(y, part)))
            if len(bad):
                raise Divergence(step, part.start + int(bad[0]))
        return ends


def states(course: Course, X: Any, u: np.ndarray) -> Any:
    """Read-out states.

    Parameters
    ----------
    course : Course
        On the host.
    X : array (n_cases, n_channels, n_steps)
        The work is done in its namespace, on its device, and in float32 if that is its
        dtype, else in float64.
    u : ndarray (n_neurons, n_channels)
        On the host.

    Returns
    -------
    array (n_cases, n_neurons)

    Raises
    ------
    Divergence
        A FloatingPointError that names the series and the step.
    """
    field, found = _Field(course, X, u), []
    with quietly(X):
        for part in even_batches(X.shape[0], field.room().rows_holding(WORKING)):
            march = field.march(part)
            last, read = march.walk(march.start(), 0, len(field.course.places))
            field.refuse_divergence(last, part)
            found.append(read)
        return field.join(found)


def trajectories(course: Course, X: Any, u: np.ndarray, *, careful: bool = False) -> Any:
    """States at the end of every step of the course.

    Parameters
    ----------
    course, X, u
        As in `states`, and so are the errors.
    careful : bool
        Look for divergence at every step instead of at the end, to stop early.

    Returns
    -------
    array (n_cases, course.n_inputs, n_neurons)
    """
    field, found = _Field(course, X, u), []
    held = WORKING + 2 * course.n_inputs
    with quietly(X):
        for part in even_batches(X.shape[0], field.room().rows_holding(held)):
            if careful:
                ends = field.walk_carefully(part)
            else:
                march, ends = field.march(part), []
                last, _ = march.walk(march.start(), 0, len(field.course.places), ends=ends)
                field.refuse_divergence(last, part)
            found.append(field.xp.stack(ends, axis=1))
        return field.join(found)


def pullback(
    course: Course, X: Any, u: np.ndarray, cotangent: Any, v: np.ndarray | None = None
) -> tuple[Any, Any]:
    """Gradients with respect to u and, where given, v.

    Parameters
    ----------
    course, X, u
        As in `states`.
    cotangent : array (n_cases, n_neurons), or (n_cases,) with ``v``
        ∂L/∂Y, or ∂L/∂z for z = Y v, in the namespace of ``X``.
    v : ndarray (n_neurons,), optional
        On the host.

    Returns
    -------
    u_bar : array (n_neurons, n_channels)
    v_bar : array (n_neurons,) or None
        None without ``v``.
    """
    field = _Field(course, X, u)
    rows, length = field.room().tape_for_batches()
    parts = even_batches(X.shape[0], rows)
    with quietly(X):
        return _pull(
            field, ((part, field.record(part, length)) for part in parts), cotangent, v
        )


def _pull(field: _Field, recordings: Any, cotangent: Any, v: Any) -> tuple[Any, Any]:
    cotangent = field.xp.astype(cotangent, field.dtype, copy=False)
    readout = None if v is None else place(v, field.X, field.dtype)
    u_bar = v_bar = None
    for part, recording in recordings:
        bar = cotangent[part, ...]
        if readout is not None:
            found = wide(bar) @ wide(recording.read)
            v_bar = found if v_bar is None else v_bar + found
            bar = bar[:, None] * readout[None, :]
        found = recording.pullback(bar)
        u_bar = found if u_bar is None else u_bar + found
        del recording  # before the next one is made
    return u_bar, v_bar


class Linearization:
    """Read-out states at one projection, together with the way back from them.

    `states` followed by `pullback` walks every series twice before going back. Here it is
    walked once, or the part of the way again for whose slopes there was no memory.

    Parameters
    ----------
    course, X, u
        As in `states`.

    Attributes
    ----------
    states : array (n_cases, n_neurons)
    """

    def __init__(self, course: Course, X: Any, u: np.ndarray) -> None:
        self._arguments = course, X, u
        self._field = field = _Field(course, X, u)
        room = field.room()
        length = room.tape_for_all()
        self._recordings: list[tuple[slice, Recording]] = []
        if not length:
            self.states = states(course, X, u)
            return
        with quietly(X):
            for part in even_batches(X.shape[0], room.rows):
                self._recordings.append((part, field.record(part, length)))
            self.states = field.join([r.read for _, r in self._recordings])

    def pullback(self, cotangent: Any, v: np.ndarray | None = None) -> tuple[Any, Any]:
        """Gradients as `pullback` gives them.

        The slopes are let go as they are used; a second call walks the series again.
        """
        if not self._recordings:
            return pullback(*self._arguments, cotangent, v)
        with quietly(self._field.X):
            return _pull(self._field, self._recordings, cotangent, v)
