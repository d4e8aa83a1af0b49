"""The linear network along a plan: sweeps over its steps, and the three maps they give.

The linear problem and its certificate need only the maps u ↦ Rᵤ, v ↦ L_v and d ↦ G(d)
(`greenfold.systems.LinearSystem`). Arguments are not checked, because an optimiser calls
these maps thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import Any

import numpy as np
from scipy.linalg import schur

from .._base.arrays import Array, empty, like, namespace, zeros
from ..systems import LinearSystem, NormalModes, ResponseSum
from .propagators import Panel, StepPlan

#: G(d) is formed as a matrix if the powers that it needs stay below this size; otherwise,
#: it is only applied to vectors.
DENSE_BYTES = 512 * 2**20
#: Up to this size, a matrix product costs less than the function call for it.
_SMALL = 256
#: Largest share of a normal matrix that rounding leaves outside its blocks, over √N.
_NORMAL = 1e-13


class LinearOrder(LinearSystem):
    """The linear network along one plan, for stimuli of ``n_steps`` steps.

    The three maps need the plan on the host. Steps after the readout have no weight.
    """

    def __init__(self, plan: StepPlan[Panel], n_steps: int) -> None:
        self.plan, self.n_steps = plan, n_steps
        self.n_inputs = self.n_outputs = plan.step.n_neurons
        self._xp = namespace(plan.step.nodes)

    def on(self, reference: Array) -> LinearOrder:
        """Return the same object with its matrices on the device of ``reference``."""
        plan = self.plan.on(reference, namespace(reference).float64)
        return self if plan is self.plan else LinearOrder(plan, self.n_steps)

    @cached_property
    def _powers(self) -> list[Any]:
        """E, E², E⁴, … of a panel, up to the number of panels or, for large N, its root."""
        found, base = [self.plan.step.E], 2 if self.n_inputs <= _SMALL else 4
        while base ** len(found) < self.plan.n_whole * self.plan.n_sub:
            found.append(found[-1] @ found[-1])
        return found

    def input_response(self, u: np.ndarray) -> np.ndarray:
        """Return Rᵤ, (n_channels · n_steps, n_neurons), for u (n_neurons, n_channels).

        Row c·K + n is the readout state after a unit pulse in channel c, step n.
        """
        return self.padded(self.responses(u))

    def responses(self, u: Array) -> Any:
        """Return the states read after a unit pulse in each step, (read_steps, C, N)."""
        return self.read_pulse(u, self.pulse_starts(u))

    def responses_adjoint(self, bar: Array) -> Any:
        """Return the gradient by u (N, C) from the cotangent of `responses`."""
        ends_bar, inputs_bar = self.read_pulse_adjoint(bar)
        return self.pulse_adjoint(ends_bar, None, inputs_bar)

    def padded(self, response: Array) -> Any:
        """Return responses (read_steps, n_channels, N) as Rᵤ, zero after the readout."""
        n_channels = response.shape[1]
        found = zeros((n_channels, self.n_steps, self.n_outputs), response)
        by_channel = namespace(response).permute_dims(response, (1, 0, 2))
        found[:, : response.shape[0], :] = by_channel
        return namespace(response).reshape(found, (-1, self.n_outputs))

    def readout_response(self, v: np.ndarray) -> np.ndarray:
        """Return L_v for v (n_neurons,) or (n_neurons, r); row n is l_n, a_n = l_n · u."""
        return self.kernel_rows(self.carry_back(v))

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """Return G(d) for weights d (n_channels, n_steps) of the steps."""
        return GreensSum(self, d)

    def pulse_starts(self, u: Array) -> Any:
        """Return the state at the start of each panel after a pulse in the first step.

        The result has shape (n_whole · n_sub + 1, n_channels, n_neurons) and includes the
        end of the last whole step. The pulse has unit height and fills the step. One sweep
        is enough for pulses in all steps, because only the time since the pulse matters.
        """
        xp, plan = self._xp, self.plan
        inputs = xp.matrix_transpose(u)
        pushed = inputs @ plan.step.F
        starts = [xp.zeros_like(inputs)]
        if not plan.n_whole:
            return xp.stack(starts)
        for _ in range(plan.n_sub):
            starts.append(starts[-1] @ plan.step.E + pushed)
        free = (plan.n_whole - 1) * plan.n_sub + 1
        after = iterates(starts[-1], self._powers, free)
        return xp.concat([xp.stack(starts[:-1]), after], axis=0)

    def pulse_nodes(self, u: Array, starts: Array) -> Any:
        """Return the pulse response at the nodes, (n_whole, n_channels, n_sub q N)."""
        xp, panel, n_sub = self._xp, self.plan.step, self.plan.n_sub
        inputs = xp.matrix_transpose(u)
        n, width = self.plan.n_whole, panel.E_nodes.shape[1]
        # Use one product for all panels: memory bandwidth would limit single rows.
        nodes = xp.reshape(starts[:-1, ...], (-1, inputs.shape[1])) @ panel.E_nodes
        nodes = xp.reshape(nodes, (n, n_sub, inputs.shape[0], width))
        nodes[:1, ...] = nodes[:1, ...] + inputs @ panel.F_nodes
        by_step = xp.permute_dims(nodes, (0, 2, 1, 3))
        return xp.reshape(by_step, (n, inputs.shape[0], n_sub * width))

    def read(self, table: Array) -> Any:
        """Turn responses by time since the pulse into responses by time of the pulse.

        Entry n is Σ_k w_k table[k − n] with the readout weights w. The map is self-adjoint.
        """
        xp, weights, n = namespace(table), self.plan.weights, self.plan.n_whole
        if not weights[:-1].any():
            return xp.flip(table, axis=0) * float(weights[-1])
        padded = np.append(weights, np.zeros(n))
        hankel = like(padded[np.arange(n)[:, None] + np.arange(n)], table)
        return xp.reshape(hankel @ xp.reshape(table, (n, -1)), table.shape)

    def read_pulse(self, u: Array, starts: Array) -> Any:
        """Return the states read after a unit pulse in each step, (read_steps, C, N)."""
        ends = starts[self.plan.n_sub :: self.plan.n_sub, ...]
        if self.plan.tail is None:
            return self.read(ends)
        xp, (E, F) = self._xp, self.tail
        last = xp.matrix_transpose(u) @ F
        return xp.concat([xp.flip(ends, axis=0) @ E, last[None, ...]], axis=0)

    def read_pulse_adjoint(self, read_bar: Array) -> tuple[Any, Any]:
        """Return the cotangents of the step ends and of uᵀ from that of `read_pulse`."""
        xp = self._xp
        if self.plan.tail is None:
            return self.read(read_bar), xp.zeros_like(read_bar[0, ...])
        back, (E, F) = xp.matrix_transpose, self.tail
        carried_bar, last_bar = read_bar[:-1, ...], read_bar[-1, ...]
        return xp.flip(carried_bar @ back(E), axis=0), last_bar @ back(F)

    def pulse_adjoint(
        self, ends_bar: Array | None, nodes_bar: Array | None, inputs_bar: Array
    ) -> Any:
        """Return the gradient by u from the cotangents of the pulse responses.

        ``ends_bar`` belongs to the ends of the steps and ``nodes_bar`` to `pulse_nodes`;
        either may be None. ``inputs_bar`` is a direct contribution to the gradient by uᵀ.
        """
        xp, panel, n_sub = self._xp, self.plan.step, self.plan.n_sub
        back, y_bar, starts_bar = xp.matrix_transpose, xp.zeros_like(inputs_bar), None
        if nodes_bar is not None:
            n, width = self.plan.n_whole, panel.E_nodes.shape[1]
            by_step = xp.reshape(nodes_bar, (n, inputs_bar.shape[0], n_sub, width))
            by_panel = xp.permute_dims(by_step, (0, 2, 1, 3))
            flat = xp.reshape(by_panel, (n * n_sub * inputs_bar.shape[0], width))
            starts_bar = xp.reshape(flat @ panel.E_nodes.T, (-1, *inputs_bar.shape))
            pushed = xp.sum(by_step[:1, ...], axis=(0, 2))
            inputs_bar = inputs_bar + pushed @ panel.F_nodes.T
        for index in range(self.plan.n_whole * n_sub - 1, -1, -1):
            if ends_bar is not None and (index + 1) % n_sub == 0:
                y_bar = y_bar + ends_bar[index // n_sub, ...]
            if index < n_sub:
                inputs_bar = inputs_bar + y_bar @ panel.F.T
            y_bar = y_bar @ panel.E.T
            if starts_bar is not None:
                y_bar = y_bar + starts_bar[index, ...]
        return back(inputs_bar)

    def carry_back(self, v: np.ndarray) -> np.ndarray:
        """Return the weights in the readout (N, ...) of the state at each place's end."""
        plan, places = self.plan, self.plan.places
        bars = np.empty((len(places), *v.shape))
        bar = np.zeros_like(v)
        # Before the first step that is read, E alone carries the readout back.
        free = int(np.append(np.flatnonzero(plan.weights), plan.n_whole)[0] + 1)
        free = min(free, plan.n_whole) * plan.n_sub
        for place in range(len(places) - 1, max(free, 1) - 2, -1):
            _, panel, weight = places[place]
            if weight:
                bar = bar + weight * v
            bars[place] = bar
            bar = panel.E @ bar
        if free > 1:
            last, backward = np.atleast_2d(bars[free - 1].T), [E.T for E in self._powers]
            carried = iterates(last, backward, free)
            bars[:free] = carried[::-1].swapaxes(1, 2).reshape(free, *v.shape)
        return bars

    def kernel_rows(self, bars: np.ndarray) -> np.ndarray:
        """Return L_v (n_steps, N, ...) from `carry_back`, zero after the readout."""
        plan, n = self.plan, self.plan.n_whole
        rows = np.zeros((self.n_steps, *bars.shape[1:]))
        ends = bars[: n * plan.n_sub].reshape(n, plan.n_sub, *bars.shape[1:])[:, -1]
        rows[:n] = np.moveaxis(np.tensordot(self.step[1], ends, axes=(1, 1)), 0, 1)
        if plan.tail is not None:
            rows[n] = self.tail[1] @ bars[-1]
        return rows

    @property
    def greens_bytes(self) -> float:
        """Memory for the powers in `greens_matrix`, in bytes."""
        return 8.0 * self.n_inputs**2 * (ceil(sqrt(self.plan.read_steps)) + 4)

    @cached_property
    def step(self) -> tuple[Any, Any]:
        """Propagator Eᵀ and response Fᵀ of a whole step."""
        return _repeat(self.plan.step, self.plan.n_sub)

    @cached_property
    def tail(self) -> tuple[Any, Any]:
        """Propagator Eᵀ and response Fᵀ of a shortened last step."""
        return _repeat(self.plan.tail, self.plan.n_tail)

    def modes(self) -> NormalModes | None:
        """Return the modes of all Green's functions; None unless the network is normal."""
        return self._modes

    @cached_property
    def _modes(self) -> NormalModes | None:
        plan = self.plan
        pairs = [*self.step] if plan.tail is None else [*self.step, *self.tail]
        found = normal_modes([matrix.T for matrix in pairs])
        if found is None:
            return None
        (E, F, *tail), *basis = found
        last = (tail[0], tail[1]) if tail else None
        return BlockModes(modal_responses(E, F, plan.weights, self.n_steps, last), *basis)

    @cached_property
    def _step_powers(self) -> np.ndarray:
        """E⁰ … E^s of the step propagator (transposed), with s about √K."""
        E, _ = self.step
        powers = [np.eye(len(E)), E]
        while len(powers) <= ceil(sqrt(max(self.plan.n_whole, 1))):
            powers.append(powers[-1] @ E)
        return np.stack(powers)

    def greens_matrix(self, d: np.ndarray) -> np.ndarray:
        """Return G(d) of one channel as an (N, N) matrix; d after the readout is ignored.

        G(d) is a polynomial of one matrix. Paterson and Stockmeyer's scheme takes about 2√K
        products and stores √K matrices.
        """
        plan, n = self.plan, self.plan.n_whole
        # The coefficient of E^l reads the pulse of step m at the end of step m + l.
        weights = plan.weights
        if plan.tail is not None:  # read first at the end of the whole steps
            weights = np.eye(1, n, n - 1)[0] if n else np.empty(0)
        coefficients = np.correlate(weights, d[:n], "full")[n - 1 :] if n else np.empty(0)
        total = self.step[1] @ self._polynomial(coefficients)
        if plan.tail is not None:
            E_tail, F_tail = self.tail
            total = total @ E_tail + d[n] * F_tail
        return total.T

    def _polynomial(self, coefficients: np.ndarray) -> np.ndarray:
        """Return Σ_l c_l E^l by Horner's rule in E^s."""
        powers = self._step_powers
        s, total = len(powers) - 1, np.zeros_like(powers[0])
        blocks = np.resize(coefficients, (ceil(len(coefficients) / s), s))
        blocks.ravel()[len(coefficients) :] = 0.0
        flat = powers[:s].reshape(s, -1)
        # For small matrices, one product gives all sums.
        sums = blocks @ flat if len(total) <= _SMALL else None
        for place in range(len(blocks) - 1, -1, -1):
            total = total @ powers[s] if total.any() else total
            own = blocks[place] @ flat if sums is None else sums[place]
            total += own.reshape(total.shape)
        return total

    def modal(self, step: Callable[[float], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Return γ (n_steps, n_blocks) of modes; ``step(length)`` returns their E and F."""
        plan = self.plan
        E, F = step(plan.n_sub * plan.step.length)
        tail = None if plan.tail is None else step(plan.n_tail * plan.tail.length)
        return modal_responses(E, F, plan.weights, self.n_steps, tail)


class GreensSum:
    """The sum G(d) = Σ_n d_n G⁽¹⁾_n, a `greenfold.systems.ResponseSum`, without G⁽¹⁾."""

    def __init__(self, linear: LinearOrder, d: np.ndarray) -> None:
        self._linear, self._d = linear, d

    def matrix(self) -> np.ndarray | None:
        """Return G(d) as (n_neurons, n_channels · n_neurons), or None if too large."""
        if self._linear.greens_bytes > DENSE_BYTES:
            return None
        return np.concatenate([self._linear.greens_matrix(row) for row in self._d], axis=1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        """Return the states (n_neurons, n_vectors), by recursion over the steps."""
        plan, (E, F) = self._linear.plan, self._linear.step
        given = np.tensordot(self._d[:, : plan.read_steps], u, axes=(0, 1))
        given = given.transpose(0, 2, 1)  # (step, vector, neuron)
        # One product gives the pushes of all whole steps.
        pushed = given[: plan.n_whole].reshape(-1, len(u)) @ F
        pushed = pushed.reshape(-1, *given.shape[1:])
        y = state = np.zeros(given.shape[1:])
        for weight, push in zip(plan.weights, pushed, strict=True):
            y = y @ E + push
            if weight:
                state = state + weight * y
        if plan.tail is not None:
            E_tail, F_tail = self._linear.tail
            state = y @ E_tail + given[plan.n_whole] @ F_tail
        return state.T

    def pull(self, v: np.ndarray) -> np.ndarray:
        """Return G(d)ᵀ v as (n_neurons, n_channels, …), by the backward recursion."""
        linear, plan = self._linear, self._linear.plan
        bars, n = linear.carry_back(v), plan.n_whole
        ends = bars[plan.n_sub - 1 : n * plan.n_sub : plan.n_sub]
        # (channel, neuron, …)
        pushed = (self._d[:, :n] @ ends.reshape(n, v.size)).reshape(-1, *v.shape)
        F = linear.step[1]
        total = F @ pushed.T if v.ndim == 1 else (F @ pushed).swapaxes(0, 1)
        if plan.tail is not None:
            last = linear.tail[1] @ bars[-1]
            total += last[:, None] * self._d[:, n].reshape(-1, *[1] * (v.ndim - 1))
        return total


def _repeat(panel: Panel, times: int) -> tuple[np.ndarray, np.ndarray]:
    """Return propagator and response of several panels in a row (transposed)."""
    carried, pushed = panel.E, panel.F
    for _ in range(times - 1):
        carried, pushed = carried @ panel.E, pushed @ panel.E + panel.F
    return carried, pushed


def iterates(rows: Array, powers: list[Any], count: int) -> Any:
    """Return products of rows with Eᵏ, k = 0 … count − 1, (count, n_rows, n_neurons).

    ``powers`` are E, E², E⁴, …; the blocks double in size up to the last power. Few
    products with many rows are faster than many products with few rows.
    """
    xp, (n_rows, n) = namespace(rows), rows.shape
    found = empty((count, n_rows, n), rows)
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


def modal_step(
    rates: np.ndarray, drive: float, length: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return E and F of modes ẏ = rate · y + drive · u x over a time."""
    grown, still = np.expm1(rates * length), rates == 0
    return grown + 1, drive * np.where(still, length, grown / np.where(still, 1.0, rates))


def modal_responses(
    E: np.ndarray,
    F: np.ndarray,
    weights: np.ndarray,
    n_steps: int,
    tail: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Return γ (n_steps, n_blocks) of a step E, F (n_blocks,), read as by a `StepPlan`."""
    found = np.zeros((n_steps, len(E)), dtype=complex)
    bar = np.zeros(len(E), dtype=complex)
    if tail is not None:
        found[len(weights)], bar = tail[1], tail[0]
    for step in range(len(weights) - 1, -1, -1):
        # A tail continues from the end of the last whole step; the weights are zero then.
        if weights[step]:
            bar = bar + weights[step]
        np.multiply(bar, F, out=found[step])
        bar = bar * E
    return found


@dataclass(frozen=True, eq=False)
class BlockModes:
    """The `greenfold.systems.NormalModes` of a matrix, in an orthogonal basis of blocks."""

    responses: np.ndarray
    #: Orthonormal vectors of the blocks (N, N), dense or sparse.
    basis: Any
    #: First column of each block.
    first: np.ndarray
    #: Whether a block has two columns, for each block.
    planes: np.ndarray

    def vectors(self, coordinates: np.ndarray) -> np.ndarray:
        """Return real vectors (N, …) from complex coordinates (n_blocks, …)."""
        flat = coordinates.reshape(len(coordinates), -1)
        made = np.zeros((self.basis.shape[0], flat.shape[1]))
        made[self.first] = np.real(flat)
        made[self.first[self.planes] + 1] = np.imag(flat)[self.planes]
        return (self.basis @ made).reshape(-1, *coordinates.shape[1:])


def normal_modes(
    matrices: Sequence[np.ndarray],
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray] | None:
    """Return the blocks that normal matrices share, or None if there are none.

    The result holds the complex numbers (n_blocks,) of each matrix, the basis, the first
    column of each block, and which blocks are planes.
    """
    n = len(matrices[0])
    sizes = [float(np.linalg.norm(m)) or 1.0 for m in matrices]
    # A cheap test rejects most matrices: a normal matrix commutes with its transpose.
    for m, size in zip(matrices, sizes, strict=True):
        commutator = m @ m.T - m.T @ m
        if not np.linalg.norm(commutator) <= 10 * _NORMAL * np.sqrt(n) * size**2:
            return None
    # A mixture separates all blocks that any one of the matrices separates.
    mixed = sum(
        m * (0.6**k / s) for k, (m, s) in enumerate(zip(matrices, sizes, strict=True))
    )
    mixed = np.asarray(mixed)
    if np.abs(mixed - mixed.T).max() <= _NORMAL * np.abs(mixed).max():
        basis = np.linalg.eigh((mixed + mixed.T) / 2)[1]
        starts = np.zeros(n, dtype=bool)
    else:
        decompose: Any = schur
        triangle, basis = decompose(mixed)
        starts = np.append(np.diag(triangle, -1) != 0, False)
    first = np.flatnonzero(~np.append(False, starts[:-1]))
    planes = starts[first]
    second = first[planes] + 1
    found: list[np.ndarray] = []
    for m, size in zip(matrices, sizes, strict=True):
        turned = basis.T @ m @ basis
        numbers = np.diag(turned)[first].astype(complex)
        if len(second):
            p, q = first[planes], second
            numbers[planes] = (turned[p, p] + turned[q, q]) / 2
            numbers[planes] += 0.5j * (turned[q, p] - turned[p, q])
            scale, turn = np.real(numbers[planes]), np.imag(numbers[planes])
            turned[p, p] -= scale
            turned[q, q] -= scale
            turned[q, p] -= turn
            turned[p, q] += turn
        alone = first[~planes]
        turned[alone, alone] = 0.0
        if not np.linalg.norm(turned) <= _NORMAL * np.sqrt(n) * size:
            return None
        found.append(numbers)
    return found, basis, first, planes
