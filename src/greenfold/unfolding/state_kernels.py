"""The unfolded network as kernels of the stimulus, for all neurons at once.

At order 0 the readout state is linear in the stimulus, at order 1 of a quadratic gain
it is quadratic:

    y_i = Σ_n R_in x_n + Σ_{n ≤ m} D_inm x_n x_m

(paper, equations 3 and 12, `solution_linear_Greens`, `G2-general`). R and D depend on u
and the network only, so their cost is independent of the number of stimuli: about
K²/2 · N² (q + 1) multiplications for D, because the response to a pair of pulses depends
on their distance and on the time since the later one. With many stimuli this is far
cheaper than stepping each of them through the network.

With ρ the pulse response at the nodes, D follows the recursion

    D(l) = D(l − 1) E + s(l),    s(l) = Σ_j S_j (ρ_j(l + d) ∘ ρ_j(l)),

for all distances d at once. A GPU spends its time on starting small products, so there the
recursion is solved by doubling: after the round with stride k every entry holds the sum of
its last 2k sources,

    D(l) ← D(l) + D(l − k) E^k,    k = 1, 2, 4, …

which takes log₂ of the number of steps rounds and as many times the multiplications. The
way back is the same in the other direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from array_api_compat import device

from .._base import checks as check
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
from .kernel import ReadoutKernels
from .linear import LinearOrder

#: Memory for the products at the nodes that are formed at once on a GPU; on the host it is
#: one step after the other.
_PRODUCT_BYTES = 2**28
#: Memory for products of the series that are used at once.
_SCRATCH_BYTES = 2**24


def table_bytes(read_steps: int, n_neurons: int, n_channels: int) -> float:
    """Memory that `state_kernels` takes at order 1."""
    return 2.5 * 8.0 * n_neurons * (read_steps * n_channels) ** 2


@dataclass(frozen=True, eq=False)
class StateKernels:
    """Kernels R and D of all neurons, and what is needed to differentiate them.

    A `greenfold.systems.KernelsOfAll`, on the host or on a device; made by
    `state_kernels`.

    Attributes
    ----------
    order : LinearOrder
        Where the kernels live.
    u : array (n_neurons, n_channels)
    linear : array (read_steps, n_channels, n_neurons)
        R, in order of time.
    pairs : array (read_steps (read_steps + 1) / 2, n_channels, n_channels, N) or None
        D, ordered by the later step m = 0, 1, … and, within it, by the distance
        d = m − n = 0 … m; the first channel belongs to the earlier step.
    nodes : array (n_whole, n_channels, n_sub q n_neurons) or None
        Response to a unit pulse at the quadrature nodes, by time since the pulse.
    """

    order: LinearOrder
    u: Any
    linear: Any
    pairs: Any
    nodes: Any

    @property
    def read_steps(self) -> int:
        """Steps of the stimuli that reach the readout."""
        return self.order.plan.read_steps

    def full(self) -> tuple[np.ndarray, np.ndarray]:
        """Plain arrays a (D, n_neurons) and symmetric C (D, D, n_neurons).

        D = n_channels · n_steps, channels one after the other.
        """
        read_steps, n_channels, n = self.linear.shape
        K = self.order.n_steps
        C = np.zeros((n_channels, K, n_channels, K, n))
        for later in range(read_steps):
            # Distance d = 0 … later; earlier = later − d.
            block = self.pairs[_pairs_of(later)][::-1].transpose(1, 0, 2, 3)
            C[:, : later + 1, :, later] += block / 2
            C[:, later, :, : later + 1] += block.transpose(2, 0, 1, 3) / 2
        return self.order.padded(self.linear), C.reshape(n_channels * K, -1, n)

    def products(self, X: Any) -> Any:
        """Products x_n x_m of the series, (n_cases, n_pairs · n_channels²)."""
        return namespace(X).reshape(self._products(X), (X.shape[0], -1))

    def _products(self, X: Any, out: Any = None) -> Any:
        """The same in the order of `pairs`, written into ``out`` where it is given."""
        xp, X = namespace(X), X[:, :, : self.read_steps]
        n_cases, n_channels, n_steps = X.shape
        # Written in place, pairs of the backward stimulus with one later step at a time:
        # collecting and joining them would move these numbers, by far the most, twice more.
        backward = xp.permute_dims(xp.flip(X, axis=2), (0, 2, 1))
        if out is None:
            shape = n_cases, n_steps * (n_steps + 1) // 2, n_channels, n_channels
            out = xp.empty(shape, dtype=X.dtype, device=device(X))
        for m in range(n_steps):
            earlier = backward[:, n_steps - 1 - m :, :, None]
            multiply_into(out[:, _pairs_of(m), ...], earlier, X[:, None, None, :, m])
        return out

    def _by_time(self, X: Any) -> Any:
        """Series as rows that R takes, (n_cases, read_steps · n_channels)."""
        xp = namespace(X)
        by_time = xp.permute_dims(X[:, :, : self.read_steps], (0, 2, 1))
        return xp.reshape(by_time, (X.shape[0], -1))

    def states_of(self, X: Any, products: Any, *, orders: bool = False) -> Any:
        """States of series (n_cases, n_channels, n_steps), from kept products or not.

        With ``orders``, both orders are given apart, on a leading axis.
        """
        xp, n = namespace(X), self.linear.shape[2]
        Y = self._by_time(X) @ xp.reshape(self.linear, (-1, n))
        if self.pairs is None:
            return Y[None, ...] if orders else Y
        squares = xp.zeros_like(Y) if orders else Y
        pairs = xp.reshape(self.pairs, (-1, n))
        if products is not None:
            squares += products @ pairs
        else:
            room = working_bytes(X) / 2 if on_gpu(X) else _SCRATCH_BYTES
            parts = list(batches(X.shape[0], 8.0 * pairs.shape[0], room))
            # One piece of memory for all parts: fresh memory costs as much as the products
            # where an allocator hands it back at once, as on the workers of a cluster.
            shape = parts[0].stop, *self.pairs.shape[:-1]
            scratch = xp.empty(shape, dtype=X.dtype, device=device(X))
            for part in parts:
                made = self._products(X[part, ...], scratch[: part.stop - part.start, ...])
                squares[part, ...] += xp.reshape(made, (made.shape[0], -1)) @ pairs
        return xp.stack([Y, squares]) if orders else Y

    def _batches(self, X: Any) -> Iterator[tuple[slice, Any]]:
        """Parts of many series, checked and in float64, as they fit into memory."""
        xp, width = namespace(X), self.read_steps * X.shape[1]
        squares = 0 if self.pairs is None else width**2
        held = 8.0 * (2 * self.linear.shape[2] + 2 * width + squares)
        for part in batches(X.shape[0], held, working_bytes(X)):
            yield part, check.finite_batch(X[part, ...], xp, part.start)

    def states(self, X: Any, *, orders: bool = False) -> Any:
        """States of many series, not checked yet."""
        with np.errstate(over="ignore", invalid="ignore"):  # left to the caller
            found = [
                self.states_of(batch, None, orders=orders) for _, batch in self._batches(X)
            ]
        return found[0] if len(found) == 1 else namespace(X).concat(found, axis=-2)

    def gradients(self, X: Any, cotangent: Any, v: Any = None) -> tuple[Any, Any]:
        """With respect to u and, where given, v; arguments as in `Walk.pullback`."""
        xp = namespace(X)
        back, v_bar = xp.matrix_transpose, None
        linear_bar = xp.zeros_like(self.linear)
        pairs_bar = None if self.pairs is None else xp.zeros_like(self.pairs)
        readout = None if v is None else like(v, X)
        for part, batch in self._batches(X):
            bar = cotangent[part, ...]
            products = None if pairs_bar is None else self.products(batch)
            if readout is not None:
                found = bar @ self.states_of(batch, products)
                v_bar = found if v_bar is None else v_bar + found
                bar = bar[:, None] * readout[None, :]
            made = back(self._by_time(batch)) @ bar
            linear_bar += xp.reshape(made, linear_bar.shape)
            if pairs_bar is not None:
                pairs_bar += xp.reshape(back(products) @ bar, pairs_bar.shape)
        return self.pullback(linear_bar, pairs_bar), v_bar

    def pull(
        self, v: np.ndarray, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> np.ndarray:
        """Gradient with respect to u from the cotangents of a v and of symmetric C v.

        They have the shapes of `Kernel`.
        """
        if isinstance(self.linear, np.ndarray):
            return ReadoutKernels(self.order, v).pull(self.nodes, a_bar, C_bar)
        # Elsewhere, through the table of all neurons.
        n, readout = self.read_steps, like(v, self.linear)
        linear_bar = like(a_bar.T[:n].copy(), self.linear)[..., None] * readout
        table_bar = None
        if C_bar is not None and self.pairs is not None:
            by_distance = np.zeros((n, n, *self.pairs.shape[1:3]))
            for m in range(n):
                by_distance[m, : m + 1] = C_bar[:, m::-1, :, m].transpose(1, 0, 2)
            table_bar = like(by_distance, self.linear)[..., None] * readout
        return to_host(self._pullback_of_table(linear_bar, table_bar))

    def pullback(self, linear_bar: Any, pairs_bar: Any = None) -> Any:
        """Gradient (n_neurons, n_channels) with respect to u from cotangents of R and D."""
        if pairs_bar is None:
            return self._pullback_of_table(linear_bar, None)
        n = self.read_steps
        table_bar = zeros((n, n, *pairs_bar.shape[1:]), self.u)
        for m in range(n):
            table_bar[m, : m + 1, ...] = pairs_bar[_pairs_of(m), ...]
        return self._pullback_of_table(linear_bar, table_bar)

    def _pullback_of_table(self, linear_bar: Any, table_bar: Any) -> Any:
        """The same with the cotangent of D as a table ``[m, d]`` of step and distance."""
        order, nodes_bar = self.order, None
        ends_bar, inputs_bar = order.read_pulse_adjoint(linear_bar)
        if table_bar is not None:
            table_bar = order.read(table_bar)
            table_bar[:, 1:, ...] *= 2.0
            nodes_bar = pair_table_adjoint(order, self.nodes, table_bar)
        return order.pulse_adjoint(ends_bar, nodes_bar, inputs_bar)


def _pairs_of(later: int) -> slice:
    """Where the pairs with one later step are."""
    first = later * (later + 1) // 2
    return slice(first, first + later + 1)


def state_kernels(order: LinearOrder, u: Any) -> StateKernels:
    """Compute the kernels for one u (n_neurons, n_channels) where the plan lives.

    Its panels are of order 0, or of order 1 with a gain of degree 2 and without a tail.
    """
    starts = order.pulse_starts(u)
    linear = order.read_pulse(u, starts)
    if order.plan.step.order == 0 or order.plan.tail is not None:
        return StateKernels(order, u, linear, None, None)
    nodes = order.pulse_nodes(u, starts)
    table = order.read(pair_table(order, nodes))
    # A pair of different steps enters the square of the state twice.
    table[:, 1:, ...] *= 2.0
    pairs = [table[m, : m + 1, ...] for m in range(order.plan.n_whole)]
    return StateKernels(order, u, linear, namespace(u).concat(pairs, axis=0), nodes)


# The response to pairs of pulses, ``[l, d]``: l steps after the later one, d between them.
# It has no meaning where l + d reaches the number of steps.


def pair_table(order: LinearOrder, pulses: Any) -> Any:
    """D by time since the later pulse, from responses at the nodes: (n, n, C, C, N)."""
    xp, sources = namespace(pulses), _step_sources(order)
    n, channels, width = pulses.shape
    n_neurons = sources.shape[1]
    table = zeros((n, n, channels, channels, n_neurons), pulses)
    scratch = None
    for part in _product_parts(pulses):
        here = n - part.start
        shape = part.stop - part.start, here, channels, channels, width
        if scratch is None:  # the first part is the largest
            scratch = zeros((prod(shape),), pulses)
        products = xp.reshape(scratch[: prod(shape)], shape)
        for l in range(part.start, part.stop):
            now = products[l - part.start, : n - l, ...]
            multiply_into(now, pulses[l:, :, None, :], pulses[l, ...][None, None, ...])
        made = xp.reshape(products, (-1, width)) @ sources
        table[part, :here, ...] = xp.reshape(made, (*shape[:-1], n_neurons))
    for earlier, later, count, E in _rounds(order, table):
        before = table[earlier, :count, ...]
        moved = xp.reshape(before, (-1, n_neurons)) @ E
        table[later, :count, ...] += xp.reshape(moved, before.shape)
    return table


def pair_table_adjoint(order: LinearOrder, pulses: Any, table_bar: Any) -> Any:
    """Cotangent of the responses from that of `pair_table`, which is overwritten."""
    xp, sources = namespace(pulses), _step_sources(order)
    n, channels, width = pulses.shape
    n_neurons, back = sources.shape[1], xp.matrix_transpose
    for earlier, later, count, E in reversed(list(_rounds(order, table_bar))):
        after = table_bar[later, :count, ...]
        moved = xp.reshape(after, (-1, n_neurons)) @ back(E)
        table_bar[earlier, :count, ...] += xp.reshape(moved, after.shape)
    bar = zeros(pulses.shape, pulses)
    for part in _product_parts(pulses):
        here = n - part.start
        flat = xp.reshape(table_bar[part, :here, ...], (-1, n_neurons)) @ back(sources)
        products_bar = xp.reshape(flat, (-1, here, channels, channels, width))
        for l in range(part.start, part.stop):
            own = products_bar[l - part.start, : n - l, ...]
            bar[l:, ...] += xp.sum(own * pulses[l, ...][None, None, ...], axis=2)
            bar[l, ...] += xp.sum(own * pulses[l:, :, None, :], axis=(0, 1))
    return bar


def _rounds(order: LinearOrder, table: Any) -> Iterator[tuple[slice, slice, int, Any]]:
    """Rows that are carried to later rows, how many distances of them, and by which E."""
    n, E = order.plan.n_whole, order.step[0]
    if not on_gpu(table):
        for l in range(1, n):
            yield slice(l - 1, l), slice(l, l + 1), n - l, E
        return
    stride = 1
    while stride < n:
        yield slice(0, n - stride), slice(stride, n), n - stride, E
        stride, E = 2 * stride, E @ E


def _step_sources(order: LinearOrder) -> Any:
    """From products at the nodes of a step to the state at its end, (n_sub q N, N)."""
    maps = [order.plan.step.source_map]
    for _ in range(order.plan.n_sub - 1):
        maps.append(maps[-1] @ order.plan.step.E)
    return namespace(maps[0]).concat(maps[::-1], axis=0)


def _product_parts(pulses: Any) -> Iterator[slice]:
    """Steps whose products at the nodes are formed at once."""
    n_steps, channels, width = pulses.shape
    room = _PRODUCT_BYTES if on_gpu(pulses) else 0
    return batches(n_steps, 8.0 * n_steps * channels**2 * width, room)
