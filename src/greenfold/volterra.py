"""The unfolded network as kernels of the stimulus, for all neurons at once.

At order 0 the read-out state is linear in the stimulus, at order 1 of a quadratic gain
it is quadratic:

    y_i = Σ_n R_in x_n + Σ_{n ≤ m} D_inm x_n x_m

(paper, `solution_linear_Greens`, `G2-general`). R and D depend on u and the network
only, so their cost is independent of the number of stimuli: about K²/2 · N² (q + 1)
multiplications for D, because the response to a pair of pulses depends on their
distance and on the time since the later one. With many stimuli this is far cheaper
than stepping each of them through the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from ._arrays import like, namespace
from .stepping import Schedule


@dataclass(frozen=True, eq=False)
class Response:
    """Kernels R and D of all neurons, and what `pullback` needs to differentiate them.

    Attributes
    ----------
    linear : array (n_inputs, n_channels, n_neurons)
        R, in order of time.
    pairs : array (n_inputs (n_inputs + 1) / 2, n_channels, n_channels, n_neurons) or None
        D, ordered by the later step m = 0, 1, … and, within it, by the distance
        d = m − n = 0 … m; the first channel belongs to the earlier step.
    nodes : array (n_steps n_panels, n_channels, q n_neurons) or None
        Response to a unit pulse at the quadrature nodes, by time since the pulse.
    """

    schedule: Schedule
    u: Any
    linear: Any
    pairs: Any
    nodes: Any


def table_bytes(schedule: Schedule, n_neurons: int, n_channels: int) -> float:
    """Memory that `respond` takes at order 1."""
    return 2.5 * 8.0 * n_neurons * (schedule.n_inputs * n_channels) ** 2


def respond(schedule: Schedule, u: Any) -> Response:
    """Compute the kernels for one input projection.

    Parameters
    ----------
    schedule : Schedule
        Of order 0, or of order 1 with a gain of degree 2 and without a tail.
    u : array (n_neurons, n_channels)
        In the namespace and on the device of the schedule's matrices.
    """
    ends, nodes = pulse_responses(schedule, u)
    if schedule.tail is not None:
        return Response(schedule, u, _through_tail(schedule, ends, u), None, None)
    linear = _read(schedule, ends)
    if schedule.order == 0:
        return Response(schedule, u, linear, None, None)
    xp = namespace(u)
    table = _pair_table(schedule, nodes)
    table = _read(schedule, table)
    pairs = xp.concat([table[m, : m + 1, ...] for m in range(schedule.n_steps)], axis=0)
    return Response(schedule, u, linear, pairs, nodes)


def pulse_responses(schedule: Schedule, u: Any) -> tuple[Any, Any]:
    """Response to a unit pulse over the first step, at step ends and at the nodes.

    Returns ``ends`` (n_steps, C, N) and ``nodes`` (n_steps n_panels, C, q N); nodes is
    None at order 0.
    """
    xp = namespace(u)
    panel, n_panels = schedule.panel, schedule.n_panels
    drive = xp.matrix_transpose(u)
    y = xp.zeros_like(drive)
    starts, ends = [], []
    for index in range(schedule.n_steps * n_panels):
        starts.append(y)
        y = y @ panel.E + drive @ panel.F if index < n_panels else y @ panel.E
        if (index + 1) % n_panels == 0:
            ends.append(y)
    if not ends:  # a readout inside the first step
        return like(np.zeros((0, *drive.shape)), u), None
    if schedule.order == 0:
        return xp.stack(ends), None
    # All panels in one product: single rows would be bound by the matrix's memory.
    nodes = xp.reshape(xp.stack(starts), (-1, drive.shape[1])) @ panel.E_nodes
    nodes = xp.reshape(nodes, (len(starts), drive.shape[0], -1))
    nodes[:n_panels, ...] = nodes[:n_panels, ...] + drive @ panel.F_nodes
    return xp.stack(ends), nodes


def _read(schedule: Schedule, table: Any) -> Any:
    """Combine responses by time since the pulse into responses by time of the pulse.

    ``table[l]`` is a response l steps after the (later) pulse; entry n of the result is
    Σ_k w_k table[k − n] with the readout weights w. The map is symmetric, hence its own
    adjoint.
    """
    xp = namespace(table)
    n = schedule.n_steps
    if not schedule.weights[:-1].any():
        return xp.flip(table, axis=0) * float(schedule.weights[-1])
    padded = np.append(schedule.weights, np.zeros(n))
    hankel = like(padded[np.arange(n)[:, None] + np.arange(n)], table)
    return xp.reshape(hankel @ xp.reshape(table, (n, -1)), table.shape)


def _through_tail(schedule: Schedule, ends: Any, u: Any) -> Any:
    """Linear kernels at a readout inside the step after the last whole one."""
    xp = namespace(u)
    tail = schedule.tail
    assert tail is not None
    drive = xp.matrix_transpose(u)
    last = xp.zeros_like(drive)
    carried = xp.flip(ends, axis=0)
    for _ in range(schedule.tail_panels):
        carried = carried @ tail.E
        last = last @ tail.E + drive @ tail.F
    return xp.concat([carried, last[None, ...]], axis=0)


def _through_tail_adjoint(schedule: Schedule, linear_bar: Any) -> tuple[Any, Any]:
    """Cotangents of ``ends`` and of the drive from that of the linear kernels."""
    xp = namespace(linear_bar)
    transpose = xp.matrix_transpose
    tail = schedule.tail
    assert tail is not None
    carried_bar, last_bar = linear_bar[:-1, ...], linear_bar[-1, ...]
    drive_bar = xp.zeros_like(last_bar)
    for _ in range(schedule.tail_panels):
        carried_bar = carried_bar @ transpose(tail.E)
        drive_bar = drive_bar + last_bar @ transpose(tail.F)
        last_bar = last_bar @ transpose(tail.E)
    return xp.flip(carried_bar, axis=0), drive_bar


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
    alpha = schedule.coefficients[2]
    by_step = xp.reshape(nodes, (n, p, channels, width))
    table = like(np.zeros((n, n, channels, channels, n_neurons)), nodes)
    # State and source side by side: one product moves both, and the memory is reused.
    # Two dimensions, because a stack of single rows would be multiplied row by row.
    pairs = channels * channels
    both = like(np.zeros((n * pairs, n_neurons + width)), nodes)
    move = xp.concat([panel.E, alpha * panel.S], axis=0)
    for l in range(n):
        here = both[: (n - l) * pairs, :]
        for a in range(p):
            _multiply_into(
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


def _multiply_into(target: Any, one: Any, other: Any) -> None:
    """Write a product into a view."""
    if isinstance(target, np.ndarray):
        np.multiply(one, other, out=target)
    else:
        target[...] = one * other


def full_kernels(response: Response, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Kernels of all neurons as plain arrays over flat (channel, step) indices.

    Returns
    -------
    a : ndarray (D, n_neurons)
        D = n_channels · n_steps, channels one after the other.
    C : ndarray (D, D, n_neurons)
        Symmetric in its first two indices.
    """
    n_inputs, n_channels, n = response.linear.shape
    a = np.zeros((n_channels, n_steps, n))
    a[:, :n_inputs] = response.linear.transpose(1, 0, 2)
    C = np.zeros((n_channels, n_steps, n_channels, n_steps, n))
    for later in range(n_inputs):
        first = later * (later + 1) // 2
        # Distance d = 0 … later; earlier = later − d.
        block = response.pairs[first : first + later + 1][::-1].transpose(1, 0, 2, 3)
        C[:, : later + 1, :, later] += block / 2
        C[:, later, :, : later + 1] += block.transpose(2, 0, 1, 3) / 2
    size = n_channels * n_steps
    return a.reshape(size, n), C.reshape(size, size, n)


def features(X: Any) -> Any:
    """Products x_n x_m in the order of `Response.pairs`.

    Parameters
    ----------
    X : array (n_cases, n_channels, n_steps)

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
    products = xp.empty(
        (n_cases, n_pairs, n_channels, n_channels), dtype=X.dtype, device=device(X)
    )
    for m in range(n_steps):
        first = m * (m + 1) // 2
        earlier = backward[:, n_steps - 1 - m :, :, None]
        products[:, first : first + m + 1, ...] = earlier * X[:, None, None, :, m]
    return products


def states(response: Response, X: Any) -> list[Any]:
    """Read-out states of a batch, one entry per order.

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
    schedule = response.schedule
    xp = namespace(response.u)
    drive_bar = xp.zeros_like(xp.matrix_transpose(response.u))
    if schedule.tail is None:
        ends_bar = _read(schedule, linear_bar)
    else:
        ends_bar, drive_bar = _through_tail_adjoint(schedule, linear_bar)
    nodes_bar = None
    if pairs_bar is not None:
        n = schedule.n_steps
        table_bar = like(np.zeros((n, n, *pairs_bar.shape[1:])), response.u)
        for m in range(n):
            first = m * (m + 1) // 2
            table_bar[m, : m + 1, ...] = pairs_bar[first : first + m + 1, ...]
        nodes_bar = _pair_table_adjoint(
            schedule, response.nodes, _read(schedule, table_bar)
        )
    return pulse_adjoint(schedule, ends_bar, nodes_bar, drive_bar)


def pulse_adjoint(schedule: Schedule, ends_bar: Any, nodes_bar: Any, drive_bar: Any) -> Any:
    """Gradient with respect to u from the cotangents of the pulse responses.

    Parameters
    ----------
    schedule : Schedule
    ends_bar : array (n_steps, n_channels, n_neurons)
    nodes_bar : array (n_steps n_panels, n_channels, q n_neurons) or None
    drive_bar : array (n_channels, n_neurons)
        What reaches the input on other ways; added to.

    Returns
    -------
    array (n_neurons, n_channels)
    """
    xp = namespace(drive_bar)
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


def _pair_table_adjoint(schedule: Schedule, nodes: Any, table_bar: Any) -> Any:
    """Cotangent of the pulse responses at the nodes from that of the pair table."""
    xp = namespace(nodes)
    panel, n, p = schedule.panel, schedule.n_steps, schedule.n_panels
    channels, width = nodes.shape[1], nodes.shape[2]
    alpha = schedule.coefficients[2]
    transpose = xp.matrix_transpose
    by_step = xp.reshape(nodes, (n, p, channels, width))
    bar = like(np.zeros((n, p, channels, width)), nodes)
    current = like(np.zeros((0, channels, channels, panel.E.shape[0])), nodes)
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
