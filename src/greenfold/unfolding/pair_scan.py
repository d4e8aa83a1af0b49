"""The response to pairs of pulses on a GPU: few large products in place of many small ones.

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
from typing import Any

from .._arrays import batches, namespace, zeros
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
