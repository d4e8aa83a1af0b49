"""The readout plan of an unfolded network, and every linear sweep through it.

A schedule says which panels a batch walks through and where its state is read. The sweeps
are the linear network itself: a pulse carried forward (`pulse_starts`), a readout carried
back (`carry_back`), a signal driven through (`drive`). Kernels, gradients, Green's
functions and certificates are made of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device

from .._base import checks as check
from .._base.arrays import like, namespace
from .propagators import Propagators


@dataclass(frozen=True)
class Schedule:
    """Which panels a batch walks through, and where it is read out.

    Attributes
    ----------
    panel : Propagators
        One panel of a regular step.
    n_panels : int
        Panels per step.
    n_steps : int
        Whole steps to walk.
    weights : ndarray (n_steps,)
        Weight of the state at the end of each whole step in the readout; all zero
        where there is a tail, whose end is then the readout.
    tail : Propagators or None
        A last, shortened step (readout between two step ends).
    tail_panels : int
        Panels of the tail.
    order : int
    coefficients : tuple of float or array (n_neurons,)
        Taylor coefficients of the gain at rest, the same for all neurons or one for each.
    xp : namespace
        Array namespace of the matrices.
    """

    panel: Propagators
    n_panels: int
    n_steps: int
    weights: np.ndarray
    tail: Propagators | None
    tail_panels: int
    order: int
    coefficients: tuple[Any, ...]
    xp: Any = field(default_factory=namespace, repr=False)

    def on(self, reference: Any) -> Schedule:
        """The same schedule with its matrices where ``reference`` lives."""
        if isinstance(reference, np.ndarray):
            return self
        tail = None if self.tail is None else _move(self.tail, reference)
        panel, xp = _move(self.panel, reference), namespace(reference)
        coefficients = tuple(_moved(c, reference) for c in self.coefficients)
        return replace(self, panel=panel, tail=tail, coefficients=coefficients, xp=xp)

    def at_nodes(self, panel: Propagators) -> tuple[Any, ...]:
        """Coefficients that multiply states at the nodes of a panel, (..., q n_neurons)."""
        if all(isinstance(c, float) for c in self.coefficients):
            return self.coefficients
        return self._tail_coefficients if panel is self.tail else self._coefficients

    @cached_property
    def _coefficients(self) -> tuple[Any, ...]:
        return self._tiled(self.panel)

    @cached_property
    def _tail_coefficients(self) -> tuple[Any, ...]:
        assert self.tail is not None
        return self._tiled(self.tail)

    def _tiled(self, panel: Propagators) -> tuple[Any, ...]:
        q = panel.nodes.shape[0]
        return tuple(self.xp.tile(c, (q,)) for c in self.coefficients)

    @property
    def n_inputs(self) -> int:
        """Steps of the stimulus that reach the readout."""
        return self.n_steps + (self.tail is not None)

    def walk(self) -> list[tuple[int, Propagators, float]]:
        """(step, panel, readout weight of the state at its end), in order of time."""
        return self._path

    @cached_property
    def _path(self) -> list[tuple[int, Propagators, float]]:
        path = []
        for step in range(self.n_steps):
            path += [(step, self.panel, 0.0)] * (self.n_panels - 1)
            path.append((step, self.panel, float(self.weights[step])))
        if self.tail is not None:
            path += [(self.n_steps, self.tail, 0.0)] * (self.tail_panels - 1)
            path.append((self.n_steps, self.tail, 1.0))
        return path

    @cached_property
    def powers(self) -> list[Any]:
        """E, E², E⁴, … of a panel, up to about the root of the number of panels."""
        found = [self.panel.E]
        while 4 ** len(found) < self.n_steps * self.n_panels:
            found.append(found[-1] @ found[-1])
        return found

    def bytes_per_case(self, n_neurons: int, *, adjoint: bool) -> float:
        """Working memory of one case, counted in the arrays of `forward` and `pullback`."""
        q = self.panel.nodes.shape[0]
        nodes = 4 * (self.order + 1) * q
        kept = (self.n_steps * self.n_panels + 2) * (self.order + 1) if adjoint else 0
        return 8.0 * n_neurons * (nodes + kept + 4 * (self.order + 1))


def _move(panel: Propagators, reference: Any) -> Propagators:
    moved = {name: _moved(value, reference) for name, value in vars(panel).items()}
    return Propagators(**moved)


def _moved(value: Any, reference: Any) -> Any:
    return like(value, reference) if isinstance(value, np.ndarray) else value


def plan_readout(readout: Any, n_steps: int, dt: float) -> tuple[np.ndarray, float | None]:
    """Weights of the step ends in the readout, and a time where it is inside a step.

    Parameters
    ----------
    readout : float or array_like (n_steps,)
        A time in (0, n_steps · dt], or one weight per step.
    n_steps : int
    dt : float
    """
    value = check.host_array(readout, "readout", ndim=(0, 1))
    if value.ndim == 1:
        if value.shape != (n_steps,):
            raise ValueError(
                "`readout` weights must have one entry per step, shape "
                f"({n_steps},); got shape {value.shape}."
            )
        if not value.any():
            raise ValueError("`readout` weights are all zero; nothing would be read.")
        return value, None
    time = float(value)
    if not 0 < time <= n_steps * dt * (1 + 1e-12):
        raise ValueError(
            f"`readout` must be a time in (0, {n_steps * dt:g}]; got {time:g}."
        )
    steps = time / dt
    nearest = round(steps)
    weights = np.zeros(n_steps)
    if nearest >= 1 and abs(steps - nearest) < 1e-9 * max(1.0, steps):
        weights[nearest - 1] = 1.0
        return weights, None
    return weights, time


def steps_until(weights: np.ndarray, time: float | None, dt: float) -> tuple[int, float]:
    """Whole steps that a readout needs, and the length of a shortened last one."""
    if time is None:
        return int(np.flatnonzero(weights)[-1]) + 1, 0.0
    whole = int(time // dt)
    return whole, time - whole * dt


# Linear sweeps, forward in time


def iterates(rows: Any, powers: list[Any], count: int) -> Any:
    """Products of rows with E^k for k = 0 … count − 1, (count, n_rows, n_neurons).

    Doubled until a block is as long as the last of the powers E, E², E⁴, … reaches, and
    then block after block: few products of many rows in place of many of a few rows, which
    are bound by the memory of the matrix.
    """
    xp = namespace(rows)
    n_rows, n = rows.shape
    found = xp.empty((count, n_rows, n), dtype=rows.dtype, device=device(rows))
    found[0, ...] = rows
    filled, level = 1, 0
    while filled < count:
        stride = 2**level
        length = min(stride, count - filled)
        start = filled - stride
        block = xp.reshape(found[start : start + length, ...], (-1, n)) @ powers[level]
        found[filled : filled + length, ...] = xp.reshape(block, (length, n_rows, n))
        filled += length
        level = min(level + 1, len(powers) - 1) if filled == 2 ** (level + 1) else level
    return found


def pulse_starts(schedule: Schedule, u: Any) -> Any:
    """State at the beginning of every panel after a unit pulse over the first step.

    The response depends on the time since the pulse only, so that this one sweep serves
    pulses in all steps.

    Parameters
    ----------
    schedule : Schedule
    u : array (n_neurons, n_channels)
        In the namespace and on the device of the schedule's matrices.

    Returns
    -------
    array (n_steps · n_panels + 1, n_channels, n_neurons)
        The last entry is the state at the end of the last whole step.
    """
    xp = schedule.xp
    panel, drive = schedule.panel, xp.matrix_transpose(u)
    pushed = drive @ panel.F
    starts = [xp.zeros_like(drive)]
    if not schedule.n_steps:
        return xp.stack(starts)
    for _ in range(schedule.n_panels):
        starts.append(starts[-1] @ panel.E + pushed)
    free = (schedule.n_steps - 1) * schedule.n_panels + 1
    return xp.concat(
        [xp.stack(starts[:-1]), iterates(starts[-1], schedule.powers, free)], axis=0
    )


def pulse_nodes(schedule: Schedule, u: Any, starts: Any) -> Any:
    """The same response at the quadrature nodes, (n_steps · n_panels, C, q N)."""
    xp = schedule.xp
    panel, n_panels = schedule.panel, schedule.n_panels
    drive = xp.matrix_transpose(u)
    # All panels in one product: single rows would be bound by the matrix's memory.
    nodes = xp.reshape(starts[:-1, ...], (-1, drive.shape[1])) @ panel.E_nodes
    width = panel.E_nodes.shape[1]
    nodes = xp.reshape(nodes, (starts.shape[0] - 1, drive.shape[0], width))
    nodes[:n_panels, ...] = nodes[:n_panels, ...] + drive @ panel.F_nodes
    return nodes


def pulse_adjoint(schedule: Schedule, ends_bar: Any, nodes_bar: Any, drive_bar: Any) -> Any:
    """Gradient with respect to u from the cotangents of the pulse responses.

    Parameters
    ----------
    schedule : Schedule
    ends_bar : array (n_steps, n_channels, n_neurons)
        Of the response at the ends of the steps.
    nodes_bar : array (n_steps n_panels, n_channels, q n_neurons) or None
        Of `pulse_nodes`.
    drive_bar : array (n_channels, n_neurons)
        What reaches the input on other ways; added to.

    Returns
    -------
    array (n_neurons, n_channels)
    """
    xp = schedule.xp
    transpose, panel = xp.matrix_transpose, schedule.panel
    n_panels = schedule.n_panels
    y_bar = xp.zeros_like(drive_bar)
    starts_bar = None
    if nodes_bar is not None:
        flat = xp.reshape(nodes_bar, (-1, nodes_bar.shape[-1]))
        starts_bar = xp.reshape(flat @ transpose(panel.E_nodes), (-1, *drive_bar.shape))
        driven = xp.sum(nodes_bar[:n_panels, ...], axis=0)
        drive_bar = drive_bar + driven @ transpose(panel.F_nodes)
    for index in range(schedule.n_steps * n_panels - 1, -1, -1):
        if (index + 1) % n_panels == 0:
            y_bar = y_bar + ends_bar[index // n_panels, ...]
        if index < n_panels:
            drive_bar = drive_bar + y_bar @ transpose(panel.F)
        y_bar = y_bar @ transpose(panel.E)
        if starts_bar is not None:
            y_bar = y_bar + starts_bar[index, ...]
    return transpose(drive_bar)


def read(schedule: Schedule, table: Any) -> Any:
    """Combine responses by time since the pulse into responses by time of the pulse.

    ``table[l]`` is a response l steps after the (later) pulse; entry n of the result is
    Σ_k w_k table[k − n] with the readout weights w. The map is symmetric, hence its own
    adjoint.
    """
    xp = schedule.xp
    n = schedule.n_steps
    if not schedule.weights[:-1].any():
        return xp.flip(table, axis=0) * float(schedule.weights[-1])
    padded = np.append(schedule.weights, np.zeros(n))
    hankel = like(padded[np.arange(n)[:, None] + np.arange(n)], table)
    return xp.reshape(hankel @ xp.reshape(table, (n, -1)), table.shape)


def read_pulse(schedule: Schedule, u: Any, starts: Any) -> Any:
    """Read-out state after a unit pulse in each step, (n_inputs, n_channels, n_neurons)."""
    ends = starts[schedule.n_panels :: schedule.n_panels, ...]
    if schedule.tail is None:
        return read(schedule, ends)
    xp, tail = schedule.xp, schedule.tail
    drive = xp.matrix_transpose(u)
    last = xp.zeros_like(drive)
    carried = xp.flip(ends, axis=0)
    for _ in range(schedule.tail_panels):
        carried = carried @ tail.E
        last = last @ tail.E + drive @ tail.F
    return xp.concat([carried, last[None, ...]], axis=0)


def read_pulse_adjoint(schedule: Schedule, read_bar: Any) -> tuple[Any, Any]:
    """Cotangents of the step ends and of the drive, from that of `read_pulse`."""
    xp = schedule.xp
    if schedule.tail is None:
        return read(schedule, read_bar), xp.zeros_like(read_bar[0, ...])
    transpose, tail = xp.matrix_transpose, schedule.tail
    carried_bar, last_bar = read_bar[:-1, ...], read_bar[-1, ...]
    drive_bar = xp.zeros_like(last_bar)
    for _ in range(schedule.tail_panels):
        carried_bar = carried_bar @ transpose(tail.E)
        drive_bar = drive_bar + last_bar @ transpose(tail.F)
        last_bar = last_bar @ transpose(tail.E)
    return xp.flip(carried_bar, axis=0), drive_bar


def drive(schedule: Schedule, signal: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Linear states (n_neurons, n_vectors) after one signal, for several u at once.

    Parameters
    ----------
    schedule : Schedule
        On the host.
    signal : ndarray (n_channels, n_steps)
    u : ndarray (n_neurons, n_channels, n_vectors)
    """
    given = np.tensordot(signal[:, : schedule.n_inputs], u, axes=(0, 1))
    given = given.transpose(0, 2, 1)  # (step, vector, neuron)
    # What the steps push, in one product each for whole steps and for the tail.
    whole = given[: schedule.n_steps]
    pushed = (whole.reshape(-1, len(u)) @ schedule.panel.F).reshape(whole.shape)
    if schedule.tail is not None:
        pushed = np.concatenate([pushed, given[schedule.n_steps :] @ schedule.tail.F])
    y = np.zeros((u.shape[2], len(u)))
    state = np.zeros_like(y)
    for step, panel, weight in schedule.walk():
        y = y @ panel.E + pushed[step]
        if weight:
            state = state + weight * y
    return state.T


# Linear sweeps, back from the readout


def carry_back(schedule: Schedule, v: np.ndarray) -> np.ndarray:
    """The readout as it weighs the state at the end of each panel.

    Parameters
    ----------
    schedule : Schedule
        On the host.
    v : ndarray (n_neurons,) or (n_neurons, n_vectors)

    Returns
    -------
    ndarray (n_places, n_neurons, ...)
        In the order of `Schedule.walk`.
    """
    path = schedule.walk()
    bars = np.empty((len(path), *v.shape))
    bar = np.zeros_like(v)
    whole = schedule.n_steps * schedule.n_panels
    weights = schedule.weights[: schedule.n_steps]
    # Before the first step that is read the readout is only carried on.
    free = int(np.append(np.flatnonzero(weights), schedule.n_steps)[0] + 1)
    free = min(free * schedule.n_panels, whole)
    for place in range(len(path) - 1, max(free, 1) - 2, -1):
        _, panel, weight = path[place]
        if weight:
            bar = bar + weight * v
        bars[place] = bar
        bar = panel.E @ bar
    if free > 1:
        backward = [power.T for power in schedule.powers]
        carried = iterates(np.atleast_2d(bars[free - 1].T), backward, free)
        bars[:free] = carried[::-1].swapaxes(1, 2).reshape(free, *v.shape)
    return bars


def kernel_rows(schedule: Schedule, bars: np.ndarray, n_steps: int) -> np.ndarray:
    """Rows l_n with a_n = l_n · u, (n_steps, n_neurons, ...), from `carry_back`.

    Steps after the readout are zero.
    """
    whole, per_step = schedule.n_steps, schedule.n_panels
    rows = np.zeros((n_steps, *bars.shape[1:]))
    parts = [(slice(0, whole), schedule.panel, bars[: whole * per_step])]
    if schedule.tail is not None:
        last = slice(whole, whole + 1)
        parts.append((last, schedule.tail, bars[whole * per_step :]))
    for steps, panel, part in parts:
        if not len(part):
            continue
        # Panels of a step push alike, so their weights add up before one product.
        pushed = part.reshape(steps.stop - steps.start, -1, *bars.shape[1:]).sum(1)
        rows[steps] = np.moveaxis(np.tensordot(panel.F, pushed, axes=(1, 1)), 0, 1)
    return rows
