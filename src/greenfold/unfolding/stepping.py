"""A batch of stimuli carried through the unfolded network, step by step.

Writing φ(y) = φ'(0) y + f(y) and counting powers of f, y = Σ_k y⁽ᵏ⁾ with

    (τ∂ + 1 − φ'(0) W) y⁽ᵏ⁾ = W [f(Σ_i y⁽ⁱ⁾)]_{order k−1}

(paper, `rate-series`, `first_order_correction`, for any order): each order is the same
linear network driven by products of lower ones, a feed-forward structure. The forward
pass and its adjoint cost a few matrix products per step, whatever the gain.
"""

from __future__ import annotations

from typing import Any

from .._arrays import namespace
from .propagators import Propagators
from .schedule import Schedule


def _powers(terms: list[Any], upto: int, degree: int) -> list[list[Any]]:
    """Orders 0…upto of (Σ_i ε^i terms_i)^p for p = 0…degree (index 0 is unused)."""
    table: list[list[Any]] = [[], terms[: upto + 1]]
    for _ in range(2, degree + 1):
        last = table[-1]
        table.append(
            [
                sum((last[i] * terms[m - i] for i in range(1, m + 1)), last[0] * terms[m])
                for m in range(upto + 1)
            ]
        )
    return table


def source(terms: list[Any], upto: int, coefficients: tuple[Any, ...]) -> list[Any]:
    """Orders 0…upto of f(Σ_i ε^i terms_i), f the gain without its linear part."""
    degree = len(coefficients) - 1
    table = _powers(terms, upto, degree)
    return [
        sum(
            (coefficients[p] * table[p][m] for p in range(3, degree + 1)),
            coefficients[2] * table[2][m],
        )
        for m in range(upto + 1)
    ]


def source_slope(terms: list[Any], upto: int, coefficients: tuple[Any, ...]) -> list[Any]:
    """Orders 0…upto of f'(Σ_i ε^i terms_i)."""
    degree = len(coefficients) - 1
    table = _powers(terms, upto, degree - 1)
    return [
        sum(
            (p * coefficients[p] * table[p - 1][m] for p in range(3, degree + 1)),
            2 * coefficients[2] * table[1][m],
        )
        for m in range(upto + 1)
    ]


def _at_nodes(
    y: list[Any], drive: Any, panel: Propagators, order: int, coefficients
) -> Any:
    """States of every order at the nodes, and the sources they make.

    Returns lists ``states`` (orders 0…order−1) and ``sources`` (orders 1…order).
    """
    states = [y[0] @ panel.E_nodes + drive @ panel.F_nodes]
    sources: list[Any] = []
    for k in range(1, order + 1):
        sources.append(source(states, k - 1, coefficients)[k - 1])
        if k < order:
            states.append(y[k] @ panel.E_nodes + sources[-1] @ panel.B)
    return states, sources


def forward(
    schedule: Schedule, X: Any, u: Any, *, trajectories: bool = False, keep: bool = False
) -> tuple[list[Any], Any, list[list[Any]]]:
    """Propagate a batch.

    Parameters
    ----------
    schedule : Schedule
        On the device of ``X``.
    X : array (n_cases, n_channels, n_steps)
    u : array (n_neurons, n_channels)
    trajectories : bool
        Also return the states at the end of every whole step.
    keep : bool
        Also return the states at the beginning of every panel, for `pullback`.

    Returns
    -------
    states : list of array (n_cases, n_neurons)
        Read-out state, one entry per order.
    steps : list of list of array, or empty
        ``steps[k][n]``: order k at the end of step n.
    kept : list of list of array, or empty
    """
    xp = namespace(X)
    order = schedule.order
    zero = xp.zeros_like(X[:, 0, 0][:, None] * u[:, 0][None, :])
    y = [zero] * (order + 1)
    read = [zero] * (order + 1)
    steps: list[list[Any]] = [[] for _ in range(order + 1)]
    kept: list[list[Any]] = []
    path = schedule.walk()
    for place, (step, panel, weight) in enumerate(path):
        if keep:
            kept.append(y)
        drive = X[:, :, step] @ xp.matrix_transpose(u)
        ahead = [yk @ panel.E for yk in y]
        ahead[0] = ahead[0] + drive @ panel.F
        if order:
            coefficients = schedule.at_nodes(panel)
            _, sources = _at_nodes(y, drive, panel, order, coefficients)
            for k in range(1, order + 1):
                ahead[k] = ahead[k] + sources[k - 1] @ panel.S
        y = ahead
        if weight:
            read = [r + weight * yk for r, yk in zip(read, y, strict=True)]
        last_of_step = place + 1 == len(path) or path[place + 1][0] != step
        if trajectories and last_of_step and panel is not schedule.tail:
            for k in range(order + 1):
                steps[k].append(y[k])
    return read, steps, kept


def pullback(
    schedule: Schedule, X: Any, u: Any, kept: list[list[Any]], cotangent: Any
) -> Any:
    """Adjoint of `forward`: gradient with respect to u of Σ cotangent · states.

    Parameters
    ----------
    schedule, X, u
        As in `forward`.
    kept : list of list of array
        From `forward` with ``keep=True``.
    cotangent : array (n_cases, n_neurons)
        Derivative of a scalar with respect to the read-out states, all orders summed.

    Returns
    -------
    array (n_neurons, n_channels)
    """
    xp = namespace(X)
    order = schedule.order
    transpose = xp.matrix_transpose
    gradient = xp.zeros_like(u)
    bar = [xp.zeros_like(cotangent)] * (order + 1)
    path = schedule.walk()
    for place in range(len(path) - 1, -1, -1):
        step, panel, weight = path[place]
        if weight:
            bar = [b + weight * cotangent for b in bar]
        y = kept[place]
        drive = X[:, :, step] @ transpose(u)
        before = [b @ transpose(panel.E) for b in bar]
        drive_bar = bar[0] @ transpose(panel.F)
        if order:
            coefficients = schedule.at_nodes(panel)
            states, _ = _at_nodes(y, drive, panel, order, coefficients)
            slopes = source_slope(states, order - 1, coefficients)
            node_bar = [xp.zeros_like(states[0])] * order
            for k in range(order, 0, -1):
                source_bar = bar[k] @ transpose(panel.S)
                if k < order:
                    source_bar = source_bar + node_bar[k] @ transpose(panel.B)
                # ∂[f]_{k−1}/∂y⁽ⁱ⁾ = [f']_{k−1−i}
                for i in range(k):
                    node_bar[i] = node_bar[i] + source_bar * slopes[k - 1 - i]
            for k in range(order):
                before[k] = before[k] + node_bar[k] @ transpose(panel.E_nodes)
            drive_bar = drive_bar + node_bar[0] @ transpose(panel.F_nodes)
        gradient = gradient + transpose(drive_bar) @ X[:, :, step]
        bar = before
    return gradient
