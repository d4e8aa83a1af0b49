"""Walk through time, for an unfolded or an integrated network.

A `Walk` carries many stimuli forward along a `StepPlan` of steps, and gradients back, in
bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import (
    Array,
    add_product,
    batches,
    contiguous,
    like,
    namespace,
    on_gpu,
    quietly,
    to_host,
    wide,
    working_bytes,
    zeros,
)
from ..systems import Divergence
from .propagators import StepPlan

#: Number of cases carried at a time on a GPU, which needs more than `Step.most_rows`.
_DEVICE_ROWS = 8192
#: A state beyond this multiple of the series' largest input to a neuron counts as
#: divergent: to get there, a stable network would need a mode that lasts a million time
#: constants.
_EXPLODED = 1e6


def checked_cotangent(
    cotangent: ArrayLike | Array, X: Array, n_outputs: int, v: ArrayLike | None
) -> tuple[Any, np.ndarray | None]:
    """Return ∂L/∂z and v, or ∂L/∂Y and None, checked; ∂L is in the namespace of ``X``."""
    readout = None if v is None else check.readout_vector(v, n_outputs)
    wanted = (X.shape[0], n_outputs) if v is None else (X.shape[0],)
    host = check.host_array(cotangent, "cotangent")
    fits = host.shape == wanted
    check.must(fits, "cotangent", f"have shape {wanted}", f"shape {host.shape}")
    return like(host, X), readout


class Batch:
    """A batch of cases on their way along a plan, on the device of X and u."""

    def __init__(
        self, plan: StepPlan[Any], X: Array, u: Array, *, by_scale: bool = False
    ) -> None:
        self.plan, self.by_scale = plan, by_scale
        # Make steps contiguous, because they are used one after another.
        used = namespace(X).permute_dims(X[:, :, : plan.read_steps], (2, 0, 1))
        self.inputs = contiguous(used)
        self.input_maps = {step: step.input_map(u) for step in plan.kinds}

    def start(self) -> Any:
        """Return the initial state."""
        step, n_cases = self.plan.step, self.inputs.shape[1]
        leading = () if step.n_orders is None else (step.n_orders,)
        y = zeros((*leading, n_cases, step.n_neurons), self.inputs)
        return y if self.plan.start is None else y + self.plan.start

    def walk(
        self,
        y: Array,
        places: range,
        read: Any = None,
        tape: list[Any] | None = None,
    ) -> tuple[Any, Any]:
        """Walk from state y over some places; return the final state and the readings.

        ``read`` holds earlier readings, and ``tape`` receives the slopes of each place.
        """
        at, push, all_places = -1, None, self.plan.places
        for place in places:
            index, step, weight = all_places[place]
            if index != at:
                at, push = index, step.push(self.inputs[index, :, :], self.input_maps[step])
            slopes: list[Any] | None = None if tape is None else []
            before, y = y, step.advance(y, push, slopes)
            if slopes is not None and tape is not None:
                tape.append([*slopes, before] if self.by_scale else slopes)
            if weight and self.plan.every:
                read = read or []
                read.append(y)
            elif weight:
                part = y if weight == 1 else weight * y
                read = part if read is None else read + part
        return y, read

    def record(self, length: int = 0) -> None:
        """Walk to the readout; set ``read``, the states read, and ``last``, the last state.

        The slopes of the last ``length`` places are kept for the way back. For earlier
        places, only the states at the start of segments of that length are kept; the way
        back walks these segments again.
        """
        n_places, starts = len(self.plan.places), [0]
        if length:
            starts = sorted({0, *range(n_places - length, 0, -length)})
        self._segments = [range(*pair) for pair in pairwise([*starts, n_places])]
        self._tape: list[list[Any]] | None = [] if length else None
        read: Any = None
        y, self._states = self.start(), list[Any]()
        for segment in self._segments:
            self._states.append(y)
            tape = self._tape if segment is self._segments[-1] else None
            y, read = self.walk(y, segment, read, tape)
        every = self.plan.every
        self.last, self.read = y, namespace(y).stack(read) if every else read

    def pullback(self, cotangent: Array) -> Any:
        """Return the gradient (n_neurons, n_channels) by u of Σ cotangent · read.

        The gradient is in float64: in float32, sums over many series would lose digits and
        depend on the batches. Slopes are released after use; another call walks again.
        With ``by_scale``, it also sets ``scale_bar``, the derivative by the logarithm of a
        common factor of the recurrent weights.
        """
        self.scale_bar = 0.0
        xp, places = namespace(cotangent), self.plan.places
        gradients = {s: wide(xp.zeros_like(m)) for s, m in self.input_maps.items()}
        bar, push_bar = xp.zeros_like(self.last), None
        every, n_ahead = self.plan.every, cotangent.shape[0]
        for segment, y in zip(self._segments[::-1], self._states[::-1], strict=True):
            kept, self._tape = self._tape, None
            tape = list[Any]() if kept is None else kept
            if kept is None:
                self.walk(y, segment, tape=tape)
            for place in segment[::-1]:
                index, step, weight = places[place]
                if weight and every:
                    n_ahead -= 1
                    bar += cotangent[n_ahead, :, :]
                elif weight:
                    bar += cotangent if weight == 1 else weight * cotangent
                slopes = tape.pop()
                bar, here = step.retreat(bar, slopes)
                if self.by_scale:
                    self.scale_bar += float(slopes.pop())
                # All sub-steps of a step have the same push.
                push_bar = here if push_bar is None else push_bar + here
                if place == 0 or places[place - 1][0] != index:
                    inputs = wide(xp.matrix_transpose(self.inputs[index, :, :]))
                    gradients[step] = add_product(gradients[step], inputs, wide(push_bar))
                    push_bar = None
        parts = [step.input_map_pullback(found) for step, found in gradients.items()]
        return sum(parts[1:], parts[0])


@dataclass(frozen=True)
class Room:
    """The memory for a walk: how many cases to process at a time, and what to store.

    A batch has at most ``rows`` cases. Per case, each place leaves ``n_slopes`` states on
    the tape, and a step holds ``n_working`` states.
    """

    n_cases: int
    n_places: int
    n_slopes: float
    n_working: float
    state_bytes: float
    budget: float
    rows: int

    def rows_holding(self, n_states: float) -> int:
        """Return the number of cases per batch if each case holds ``n_states`` states."""
        return max(1, min(self.rows, int(self.budget / (n_states * self.state_bytes))))

    def _kept(self) -> np.ndarray:
        """Return the number of states kept per case, for tapes of 1 … n_places places."""
        length = np.arange(1, self.n_places + 1)
        return np.ceil(self.n_places / length) + self.n_slopes * length

    def tape_for_all(self) -> int:
        """Return the longest tape with which all cases can be kept at once, or 0."""
        held = self.n_cases * self._kept() + self.rows * self.n_working
        fitting = np.flatnonzero(held * self.state_bytes <= self.budget)
        return int(fitting[-1]) + 1 if len(fitting) else 0

    def tape_for_batches(self) -> tuple[int, int]:
        """Return rows and tape length of a batch, if one batch is kept at a time."""
        held = self._kept() + self.n_working
        rows = self.rows_holding(float(held.min()))
        fitting = np.flatnonzero(rows * held * self.state_bytes <= self.budget)
        return rows, int(fitting[-1] if len(fitting) else np.argmin(held)) + 1


class Walk:
    """Many stimuli walked along a plan at one projection, in batches of bounded memory.

    A walk runs on the device of ``X`` (n_cases, n_channels, n_steps); ``plan`` and ``u``
    (n_neurons, n_channels) are on the host. By default, it runs in float32 if that is the
    dtype of ``X``, and otherwise in float64. With ``keep``, `states` keeps the values that
    `pullback` needs as far as memory allows, so series are walked once instead of twice.
    With ``orders``, the orders of an expansion are returned separately, on a leading axis.
    With ``by_scale``, `pullback` also sets ``scale_bar``; see `Batch.pullback`.
    A network without an expansion raises `Divergence` if it diverges.
    """

    def __init__(
        self,
        plan: StepPlan[Any],
        X: Array,
        u: np.ndarray,
        *,
        dtype: object = None,
        keep: bool = False,
        orders: bool = False,
        by_scale: bool = False,
    ) -> None:
        self._xp = xp = namespace(X)
        single = X.dtype == xp.float32
        self._dtype = (xp.float32 if single else xp.float64) if dtype is None else dtype
        self._X, self._keep, self._orders = X, keep, orders
        self._by_scale = by_scale
        self._plan, self._u = plan.on(X, self._dtype), like(u, X, self._dtype)
        start = 0.0 if plan.start is None else float(np.abs(plan.start).max())
        self._largest = float(np.abs(u).sum(axis=1).max()), start
        self._kept: list[tuple[slice, Batch]] = []

    @cached_property
    def room(self) -> Room:
        """Memory for the walk on the device of the stimuli."""
        step, n_cases = self._plan.step, self._X.shape[0]
        width = 4.0 if self._dtype == self._xp.float32 else 8.0
        rows = _DEVICE_ROWS if on_gpu(self._X) else step.most_rows
        return Room(
            n_cases,
            len(self._plan.places),
            step.n_slopes + self._plan.every + self._by_scale,
            step.n_working,
            width * step.n_neurons * (step.n_orders or 1),
            max(working_bytes(self._X), step.least_bytes),
            min(rows, n_cases),
        )

    def _parts(self, rows: int) -> Iterator[slice]:
        return batches(self._X.shape[0], 1, rows)

    def _batch(self, part: slice) -> Batch:
        values = check.finite_batch(self._X[part, ...], self._xp, part.start)
        X = self._xp.astype(values, self._dtype, copy=False)
        return Batch(self._plan, X, self._u, by_scale=self._by_scale)

    def record(self, part: slice, length: int) -> Batch:
        """Walk some cases to the readout; keep the slopes of the last ``length`` places."""
        batch = self._batch(part)
        batch.record(length)
        self._check_last(batch.last, part)
        return batch

    def _check_last(self, y: Array, part: slice) -> None:
        # It is enough to check the last state: a divergent state does not come back.
        if self._plan.step.n_orders is None and self._diverged(y, part).any():
            self._ends(part, careful=True)

    def _summed(self, states: Array) -> Any:
        """Return the sum over the orders of an expansion, unless ``orders`` is set."""
        if self._orders or self._plan.step.n_orders is None:
            return states
        return self._xp.sum(states, axis=0)

    def _joined(self, parts: list[Any], axis: int) -> Any:
        return parts[0] if len(parts) == 1 else self._xp.concat(parts, axis=axis)

    def _diverged(self, y: Array, part: slice) -> np.ndarray:
        """Return a mask of cases whose state is too large for their input to explain."""
        xp, (scale, start) = self._xp, self._largest
        inputs = xp.abs(xp.astype(self._X[part, ...], self._dtype, copy=False))
        limit = _EXPLODED * (scale * xp.max(inputs, axis=(1, 2)) + start)
        return to_host(~(xp.max(xp.abs(y), axis=1) <= limit))  # True for NaN

    def _ends(self, part: slice, *, careful: bool) -> list[Any]:
        """Return the states at the ends of the steps; check each, or only the last."""
        batch, ends = self._batch(part), dict[int, Any]()
        y = batch.start()
        for place, (index, _, _) in enumerate(self._plan.places):
            ends[index] = y = batch.walk(y, range(place, place + 1))[0]
            if careful and (bad := self._diverged(y, part)).any():
                raise Divergence(index, part.start + int(np.argmax(bad)))
        if not careful:
            self._check_last(y, part)
        return list(ends.values())

    @cached_property
    def states(self) -> Any:
        """States at the readout, (n_cases, n_neurons) or (n_read, n_cases, n_neurons)."""
        length, found = self.room.tape_for_all() if self._keep else 0, list[Any]()
        rows = self.room.rows if length else self.room.rows_holding(self.room.n_working)
        with quietly(self._X):
            for part in self._parts(rows):
                batch = self.record(part, length)
                found.append(self._summed(batch.read))
                if length:
                    self._kept.append((part, batch))
            return self._joined(found, -2)

    def trajectories(self, *, careful: bool = False) -> Any:
        """Return the states at the end of every step, (n_cases, read_steps, n_neurons).

        With ``careful``, divergence is checked at every step, to stop early.
        """
        held, found = self.room.n_working + 2 * self._plan.read_steps, list[Any]()
        with quietly(self._X):
            for part in self._parts(self.room.rows_holding(held)):
                ends = self._xp.stack(self._ends(part, careful=careful), axis=-2)
                found.append(self._summed(ends))
            return self._joined(found, -3)

    def pullback(self, cotangent: Array, v: np.ndarray | None = None) -> tuple[Any, Any]:
        """Return the gradients by u (n_neurons, n_channels) and v (None without v).

        ``cotangent`` is ∂L/∂Y, shaped like `states`, or ∂L/∂z (n_cases,) for z = Y v, in
        the namespace of ``X``; v is on the host.
        """
        rows, length = self.room.tape_for_batches()
        made = ((part, self.record(part, length)) for part in self._parts(rows))
        cotangent = self._xp.astype(cotangent, self._dtype, copy=False)
        readout = None if v is None else like(v, self._X, self._dtype)
        u_bar = v_bar = None
        self.scale_bar = 0.0
        with quietly(self._X):
            for part, batch in self._kept or made:
                bar = cotangent[:, part, :] if self._plan.every else cotangent[part, ...]
                if readout is not None:
                    found = wide(bar) @ wide(self._summed(batch.read))
                    v_bar = found if v_bar is None else v_bar + found
                    bar = bar[:, None] * readout[None, :]
                found = batch.pullback(bar)
                self.scale_bar += batch.scale_bar
                u_bar = found if u_bar is None else u_bar + found
                del batch  # free it before the next batch is made
        return u_bar, v_bar
