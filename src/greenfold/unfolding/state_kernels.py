"""The unfolded network as kernels of the stimulus, for all neurons at once.

At order 0 the readout state is linear in the stimulus, at order 1 of a quadratic gain
it is quadratic:

    y_i = Σ_n R_in x_n + Σ_{n ≤ m} D_inm x_n x_m

(paper, equations 3 and 12, `solution_linear_Greens`, `G2-general`). R and D depend on u
and the network only, so their cost is independent of the number of stimuli: about
K²/2 · N² (q + 1) multiplications for D, because the response to a pair of pulses depends
on their distance and on the time since the later one. With many stimuli this is far
cheaper than stepping each of them through the network.

The response to pairs of pulses on a GPU: few large products in place of many small ones.

The table D(l) = D(l − 1) E + s(l) of `all_neurons` is a recursion over the steps. A device
spends its time on starting small products, so here all sources s are formed at once and the
recursion is solved by doubling: after the round with stride k every entry holds the sum of
its last 2k sources,

    D(l) ← D(l) + D(l − k) E^k,    k = 1, 2, 4, …

which takes log₂ of the number of steps rounds and as many times the multiplications. The
way back is the same in the other direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from .._base.arrays import (
    batches,
    like,
    multiply_into,
    namespace,
    on_gpu,
    to_host,
    working_bytes,
    zeros,
)
from . import schedule as sweeps
from .readout_kernels import OneReadout, by_step, pull
from .schedule import Schedule

#: Memory for the products at the nodes that are formed at once.
_PRODUCT_BYTES = 2**28


def pair_table(schedule: Schedule, nodes: Any) -> Any:
    """What `all_neurons` computes step by step, entries ``[l, d]`` with l + d < n_steps.

    Parameters
    ----------
    schedule : Schedule
        Where ``nodes`` live.
    nodes : array (n_steps n_panels, n_channels, q n_neurons)
        Response to a unit pulse at the quadrature nodes.

    Returns
    -------
    array (n_steps, n_steps, n_channels, n_channels, n_neurons)
        What it holds elsewhere has no meaning.
    """
    xp, n = namespace(nodes), schedule.n_steps
    pulses, sources = _by_step(schedule, nodes), _source_map(schedule)
    channels, width = pulses.shape[1:]
    n_neurons = sources.shape[1]
    table = zeros((n, n, channels, channels, n_neurons), nodes)
    for part in _parts(n, channels, width):
        here = n - part.start
        shape = part.stop - part.start, here, channels, channels, width
        products = zeros(shape, nodes)
        for l in range(part.start, part.stop):
            products[l - part.start, : n - l, ...] = (
                pulses[l:, :, None, :] * pulses[l, ...][None, None, ...]
            )
        made = xp.reshape(products, (-1, width)) @ sources
        table[part, :here, ...] = xp.reshape(made, (*shape[:-1], n_neurons))
    for stride, power in _powers(schedule):
        moved = xp.reshape(table[:-stride, : n - stride, ...], (-1, n_neurons)) @ power
        shape = n - stride, n - stride, channels, channels, n_neurons
        table[stride:, : n - stride, ...] += xp.reshape(moved, shape)
    # A pair of different steps enters the square of the state twice.
    table[:, 1:, ...] *= 2.0
    return table


def pair_table_adjoint(schedule: Schedule, nodes: Any, table_bar: Any) -> Any:
    """Cotangent of the pulse responses at the nodes from that of the pair table.

    Parameters
    ----------
    schedule, nodes
        As in `pair_table`.
    table_bar : array (n_steps, n_steps, n_channels, n_channels, n_neurons)
        Zero where the table has no meaning; it is overwritten.
    """
    xp, n = namespace(nodes), schedule.n_steps
    pulses, sources = _by_step(schedule, nodes), _source_map(schedule)
    channels, width = pulses.shape[1:]
    n_neurons = sources.shape[1]
    back = xp.matrix_transpose
    table_bar[:, 1:, ...] *= 2.0
    for stride, power in _powers(schedule):
        later = xp.reshape(table_bar[stride:, : n - stride, ...], (-1, n_neurons))
        shape = n - stride, n - stride, channels, channels, n_neurons
        moved = xp.reshape(later @ back(power), shape)
        table_bar[:-stride, : n - stride, ...] += moved
    bar = zeros(pulses.shape, nodes)
    for part in _parts(n, channels, width):
        here = n - part.start
        flat = xp.reshape(table_bar[part, :here, ...], (-1, n_neurons)) @ back(sources)
        products_bar = xp.reshape(flat, (-1, here, channels, channels, width))
        for l in range(part.start, part.stop):
            own = products_bar[l - part.start, : n - l, ...]
            bar[l:, ...] += xp.sum(own * pulses[l, ...][None, None, ...], axis=2)
            bar[l, ...] += xp.sum(own * pulses[l:, :, None, :], axis=(0, 1))
    shape = n, channels, schedule.n_panels, -1
    by_panel = xp.permute_dims(xp.reshape(bar, shape), (0, 2, 1, 3))
    return xp.reshape(by_panel, nodes.shape)


def _by_step(schedule: Schedule, nodes: Any) -> Any:
    """The nodes of all panels of a step side by side, (n_steps, n_channels, p q N)."""
    xp, n, p = namespace(nodes), schedule.n_steps, schedule.n_panels
    channels = nodes.shape[1]
    by_panel = xp.reshape(nodes, (n, p, channels, -1))
    return xp.reshape(xp.permute_dims(by_panel, (0, 2, 1, 3)), (n, channels, -1))


def _source_map(schedule: Schedule) -> Any:
    """From products at the nodes of a step to the state at its end, (p q N, N)."""
    panel = schedule.panel
    alpha = schedule.at_nodes(panel)[2]
    square = alpha * panel.S if isinstance(alpha, float) else alpha[:, None] * panel.S
    maps = [square]
    for _ in range(schedule.n_panels - 1):
        maps.append(maps[-1] @ panel.E)
    return namespace(square).concat(maps[::-1], axis=0)


def _powers(schedule: Schedule) -> Iterator[tuple[int, Any]]:
    """Strides 1, 2, 4, … and as many steps of the linear network."""
    power = schedule.panel.E
    for _ in range(schedule.n_panels - 1):
        power = power @ schedule.panel.E
    stride = 1
    while stride < schedule.n_steps:
        yield stride, power
        stride, power = 2 * stride, power @ power


def _parts(n_steps: int, channels: int, width: int) -> Iterator[slice]:
    return batches(n_steps, 8.0 * n_steps * channels**2 * width, _PRODUCT_BYTES)


#: Memory for products of the series that are used at once.
_SCRATCH_BYTES = 2**24


@dataclass(frozen=True, eq=False)
class Response:
    """Kernels R and D of all neurons, and what is needed to differentiate them.

    A `greenfold.systems.KernelsOfAll`, on the host or on a device.

    Attributes
    ----------
    linear : array (n_inputs, n_channels, n_neurons)
        R, in order of time.
    pairs : array (n_inputs (n_inputs + 1) / 2, n_channels, n_channels, n_neurons) or None
        D, ordered by the later step m = 0, 1, … and, within it, by the distance
        d = m − n = 0 … m; the first channel belongs to the earlier step.
    nodes : array (n_steps n_panels, n_channels, q n_neurons) or None
        Response to a unit pulse at the quadrature nodes, by time since the pulse.
    n_steps : int
        Steps of the stimuli, of which the first n_inputs reach the readout.
    """

    schedule: Schedule
    u: Any
    linear: Any
    pairs: Any
    nodes: Any
    n_steps: int

    @property
    def read_steps(self) -> int:
        """Steps of the stimuli that reach the readout."""
        return self.schedule.n_inputs

    def full(self) -> tuple[np.ndarray, np.ndarray]:
        """Kernels as plain arrays over flat (channel, step) indices.

        Returns
        -------
        a : ndarray (D, n_neurons)
            D = n_channels · n_steps, channels one after the other.
        C : ndarray (D, D, n_neurons)
            Symmetric in its first two indices.
        """
        n_inputs, n_channels, n = self.linear.shape
        C = np.zeros((n_channels, self.n_steps, n_channels, self.n_steps, n))
        for later in range(n_inputs):
            first = later * (later + 1) // 2
            # Distance d = 0 … later; earlier = later − d.
            block = self.pairs[first : first + later + 1][::-1].transpose(1, 0, 2, 3)
            C[:, : later + 1, :, later] += block / 2
            C[:, later, :, : later + 1] += block.transpose(2, 0, 1, 3) / 2
        size = n_channels * self.n_steps
        return self.matrix(), C.reshape(size, size, n)

    def matrix(self) -> np.ndarray:
        """R as (n_channels · n_steps, n_neurons), zero after the readout."""
        n_inputs, n_channels, n = self.linear.shape
        padded = np.zeros((n_channels, self.n_steps, n))
        padded[:, :n_inputs] = self.linear.transpose(1, 0, 2)
        return padded.reshape(-1, n)

    def products(self, X: Any) -> Any:
        """Products x_n x_m of the series, (n_cases, n_pairs · n_channels²)."""
        made = features(X[:, :, : self.schedule.n_inputs])
        return namespace(X).reshape(made, (X.shape[0], -1))

    def states_of(self, X: Any, products: Any) -> Any:
        """States of series (n_cases, n_channels, n_steps), from kept products or not."""
        xp, n = namespace(X), self.linear.shape[2]
        X = X[:, :, : self.schedule.n_inputs]
        flat = xp.reshape(xp.permute_dims(X, (0, 2, 1)), (X.shape[0], -1))
        Y = flat @ xp.reshape(self.linear, (-1, n))
        if self.pairs is None:
            return Y
        pairs = xp.reshape(self.pairs, (-1, n))
        if products is not None:
            return Y + products @ pairs
        room = working_bytes(X) / 2 if on_gpu(X) else _SCRATCH_BYTES
        parts = list(batches(X.shape[0], 8.0 * pairs.shape[0], room))
        # One piece of memory for all parts: fresh memory costs as much as the products
        # where an allocator hands it back at once, as on the workers of a cluster.
        shape = parts[0].stop, *self.pairs.shape[:-1]
        scratch = xp.empty(shape, dtype=X.dtype, device=device(X))
        for part in parts:
            made = features(X[part, ...], scratch[: part.stop - part.start, ...])
            Y[part, ...] += xp.reshape(made, (made.shape[0], -1)) @ pairs
        return Y

    def pull(
        self, v: np.ndarray, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> np.ndarray:
        """Gradient with respect to u of a function of z = a·x + xᵀCx, for one readout.

        Parameters
        ----------
        v : ndarray (n_neurons,)
        a_bar : ndarray (n_channels, n_steps)
        C_bar : ndarray (n_channels, n_steps, n_channels, n_steps) or None
            Symmetric.
        """
        if not isinstance(self.linear, np.ndarray):
            return to_host(self._pull_there(v, a_bar, C_bar))
        nodes = None if self.nodes is None else by_step(self.schedule, self.nodes)
        readout = OneReadout(self.schedule, v, self.n_steps)
        return pull(readout, nodes, a_bar, C_bar)

    def _pull_there(
        self, v: np.ndarray, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> Any:
        """The same where the kernels live, through the table of all neurons."""
        n, readout = self.schedule.n_inputs, like(v, self.linear)
        linear_bar = like(a_bar.T[:n].copy(), self.linear)[..., None] * readout
        if C_bar is None or self.pairs is None:
            return pullback(self, linear_bar)
        by_distance = np.zeros((n, n, *self.pairs.shape[1:3]))
        for m in range(n):
            by_distance[m, : m + 1] = C_bar[:, m::-1, :, m].transpose(1, 0, 2)
        table_bar = like(by_distance, self.linear)[..., None] * readout
        return _pullback_of_table(self, linear_bar, table_bar)


def table_bytes(schedule: Schedule, n_neurons: int, n_channels: int) -> float:
    """Memory that `respond` takes at order 1."""
    return 2.5 * 8.0 * n_neurons * (schedule.n_inputs * n_channels) ** 2


def respond(schedule: Schedule, u: Any, n_steps: int | None = None) -> Response:
    """Compute the kernels for one input projection.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, or of order 1 with a gain of degree 2 and without a tail.
    u : array (n_neurons, n_channels)
        In the namespace and on the device of the schedule's matrices.
    n_steps : int, optional
        Steps of the stimuli; those that reach the readout by default.
    """
    n_steps = schedule.n_inputs if n_steps is None else n_steps
    starts = sweeps.pulse_starts(schedule, u)
    linear = sweeps.read_pulse(schedule, u, starts)
    if schedule.order == 0 or schedule.tail is not None:
        return Response(schedule, u, linear, None, None, n_steps)
    nodes = sweeps.pulse_nodes(schedule, u, starts)
    make = pair_table if on_gpu(nodes) else _pair_table
    table = sweeps.read(schedule, make(schedule, nodes))
    xp = namespace(u)
    pairs = xp.concat([table[m, : m + 1, ...] for m in range(schedule.n_steps)], axis=0)
    return Response(schedule, u, linear, pairs, nodes, n_steps)


def _pair_table(schedule: Schedule, nodes: Any) -> Any:
    """Response to pairs of unit pulses, ``[l, d]``: l steps after the later one.

    D(l) = D(l − 1) E + Σ_j S_j (ρ_j(l + d) ∘ ρ_j(l)) with ρ the pulse response at the
    nodes: one matrix product for all distances d at once.
    """
    xp = namespace(nodes)
    panel, n, p = schedule.panel, schedule.n_steps, schedule.n_panels
    width = nodes.shape[-1]
    channels = nodes.shape[1]
    n_neurons = panel.E.shape[0]
    alpha = schedule.at_nodes(panel)[2]
    by_step = xp.reshape(nodes, (n, p, channels, width))
    table = zeros((n, n, channels, channels, n_neurons), nodes)
    # State and source side by side: one product moves both, and the memory is reused.
    # Two dimensions, because a stack of single rows would be multiplied row by row.
    pairs = channels * channels
    both = zeros((n * pairs, n_neurons + width), nodes)
    square = alpha * panel.S if isinstance(alpha, float) else alpha[:, None] * panel.S
    move = xp.concat([panel.E, square], axis=0)
    for l in range(n):
        here = both[: (n - l) * pairs, :]
        for a in range(p):
            multiply_into(
                xp.reshape(here, (n - l, channels, channels, -1))[..., n_neurons:],
                by_step[l:, a, :, None, :],
                by_step[l, a, None, :, :][None, ...],
            )
            here[:, :n_neurons] = here @ move
        shape = (n - l, channels, channels, n_neurons)
        table[l, : n - l, ...] = xp.reshape(here[:, :n_neurons], shape)
    # A pair of different steps enters the square of the state twice.
    table[:, 1:, ...] = 2.0 * table[:, 1:, ...]
    return table


def features(X: Any, out: Any = None) -> Any:
    """Products x_n x_m in the order of `Response.pairs`.

    Parameters
    ----------
    X : array (n_cases, n_channels, n_steps)
    out : array (n_cases, n_pairs, n_channels, n_channels), optional
        Where to write them.

    Returns
    -------
    array (n_cases, n_pairs, n_channels, n_channels)
    """
    xp = namespace(X)
    n_cases, n_channels, n_steps = X.shape
    n_pairs = n_steps * (n_steps + 1) // 2
    # Written in place, pairs of the backward stimulus with one later step at a time:
    # collecting and joining them would move these numbers, by far the most, twice more.
    backward = xp.permute_dims(xp.flip(X, axis=2), (0, 2, 1))
    if out is None:
        shape = n_cases, n_pairs, n_channels, n_channels
        out = xp.empty(shape, dtype=X.dtype, device=device(X))
    for m in range(n_steps):
        first = m * (m + 1) // 2
        earlier = backward[:, n_steps - 1 - m :, :, None]
        multiply_into(out[:, first : first + m + 1, ...], earlier, X[:, None, None, :, m])
    return out


def states(response: Response, X: Any) -> list[Any]:
    """Readout states of a batch, one entry per order.

    Parameters
    ----------
    response : Response
    X : array (n_cases, n_channels, n_inputs)

    Returns
    -------
    list of array (n_cases, n_neurons)
    """
    xp = namespace(X)
    n_neurons = response.linear.shape[2]
    by_time = xp.reshape(xp.permute_dims(X, (0, 2, 1)), (X.shape[0], -1))
    found = [by_time @ xp.reshape(response.linear, (-1, n_neurons))]
    if response.pairs is not None:
        products = xp.reshape(features(X), (X.shape[0], -1))
        found.append(products @ xp.reshape(response.pairs, (-1, n_neurons)))
    return found


def states_pullback(response: Response, X: Any, cotangent: Any) -> tuple[Any, Any]:
    """Cotangents of ``linear`` and ``pairs`` from those of the states of a batch."""
    xp = namespace(X)
    by_time = xp.reshape(xp.permute_dims(X, (0, 2, 1)), (X.shape[0], -1))
    linear_bar = xp.reshape(xp.matrix_transpose(by_time) @ cotangent, response.linear.shape)
    if response.pairs is None:
        return linear_bar, None
    products = xp.reshape(features(X), (X.shape[0], -1))
    pairs_bar = xp.reshape(xp.matrix_transpose(products) @ cotangent, response.pairs.shape)
    return linear_bar, pairs_bar


def pullback(response: Response, linear_bar: Any, pairs_bar: Any = None) -> Any:
    """Gradient with respect to u, given the cotangents of R and D.

    Parameters
    ----------
    response : Response
    linear_bar, pairs_bar : array
        Shaped like ``response.linear`` and ``response.pairs``.

    Returns
    -------
    array (n_neurons, n_channels)
    """
    if pairs_bar is None:
        return _pullback_of_table(response, linear_bar, None)
    n = response.schedule.n_steps
    table_bar = zeros((n, n, *pairs_bar.shape[1:]), response.u)
    for m in range(n):
        first = m * (m + 1) // 2
        table_bar[m, : m + 1, ...] = pairs_bar[first : first + m + 1, ...]
    return _pullback_of_table(response, linear_bar, table_bar)


def _pullback_of_table(response: Response, linear_bar: Any, table_bar: Any) -> Any:
    """The same with the cotangent of D as a table ``[m, d]`` of step and distance."""
    schedule, nodes_bar = response.schedule, None
    ends_bar, drive_bar = sweeps.read_pulse_adjoint(schedule, linear_bar)
    if table_bar is not None:
        back = pair_table_adjoint if on_gpu(table_bar) else _pair_table_adjoint
        nodes_bar = back(schedule, response.nodes, sweeps.read(schedule, table_bar))
    return sweeps.pulse_adjoint(schedule, ends_bar, nodes_bar, drive_bar)


def _pair_table_adjoint(schedule: Schedule, nodes: Any, table_bar: Any) -> Any:
    """Cotangent of the pulse responses at the nodes from that of the pair table."""
    xp = namespace(nodes)
    panel, n, p = schedule.panel, schedule.n_steps, schedule.n_panels
    channels, width = nodes.shape[1], nodes.shape[2]
    alpha = schedule.at_nodes(panel)[2]
    transpose = xp.matrix_transpose
    by_step = xp.reshape(nodes, (n, p, channels, width))
    bar = zeros((n, p, channels, width), nodes)
    current = zeros((0, channels, channels, panel.E.shape[0]), nodes)
    for l in range(n - 1, -1, -1):
        fresh = table_bar[l, : n - l, ...]
        fresh = xp.concat([fresh[:1, ...], 2.0 * fresh[1:, ...]], axis=0)
        if current.shape[0]:
            fresh = xp.concat(
                [fresh[: n - l - 1, ...] + current, fresh[n - l - 1 :, ...]], axis=0
            )
        current = fresh
        for a in range(p - 1, -1, -1):
            flat = xp.reshape(current, (-1, current.shape[-1]))
            product_bar = alpha * xp.reshape(
                flat @ transpose(panel.S), (n - l, channels, channels, width)
            )
            earlier, later = by_step[l:, a, ...], by_step[l, a, ...]
            bar[l:, a, ...] = bar[l:, a, ...] + xp.sum(
                product_bar * later[None, None, ...], axis=2
            )
            bar[l, a, ...] = bar[l, a, ...] + xp.sum(
                product_bar * earlier[:, :, None, :], axis=(0, 1)
            )
            current = xp.reshape(flat @ transpose(panel.E), current.shape)
    return xp.reshape(bar, (n * p, channels, width))
