"""A batch of stimuli carried through the unfolded network, step by step.

Writing φ(y) = φ'(0) y + f(y) and counting powers of f, y = Σ_k y⁽ᵏ⁾ with

    (τ∂ + 1 − φ'(0) W) y⁽ᵏ⁾ = W [f(Σ_i y⁽ⁱ⁾)]_{order k−1}

(paper, equations 9 and 11, `rate-series`, `first_order_correction`, for any order): each
order is the same linear network driven by products of lower ones, a feed-forward
structure. The forward pass and its adjoint cost a few matrix products per step, whatever
the gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any

from .._base.arrays import namespace
from .propagators import Propagators
from .schedule import Schedule


def polynomial(coefficients: Sequence[Any], y: Any) -> Any:
    """Σ_p c_p y^p as a new array, in place: what costs here is the way to memory.

    A polynomial that is odd or even is one of y², with half the terms. Coefficients are
    numbers, or arrays for the last axis of y.
    """
    xp = namespace(y)
    used = [p for p, c in enumerate(coefficients) if _counts(c)]
    if not used:
        return xp.zeros_like(y)
    first = used[0]
    stride = 2 if len(used) > 1 and all((p - first) % 2 == 0 for p in used) else 1
    base = y * y if stride == 2 else y
    total = xp.zeros_like(y)
    total += coefficients[used[-1]]
    for p in range(used[-1] - stride, first - 1, -stride):
        total *= base
        total += coefficients[p]
    for _ in range(first):
        total *= y
    return total


def _counts(coefficient: Any) -> bool:
    """Whether a coefficient is an array, or a number other than zero."""
    return not isinstance(coefficient, float) or coefficient != 0


def expanded(terms: list[Any], order: int, coefficients: Sequence[Any]) -> Any:
    """Order m of f(Σ_i ε^i terms_i) for the polynomial f.

    With δ = Σ_{i≥1} ε^i terms_i it is Σ_{j≤m} f⁽ʲ⁾(terms_0)/j! · [δ^j]_m: polynomials of
    the order 0 alone, and powers of δ up to m, whatever the degree of f.
    """
    if order == 0:
        return polynomial(coefficients, terms[0])
    total = None
    # Orders j … m of δ^j; entry i is order j + i.
    power = terms[1 : order + 1]
    for j in range(1, order + 1):
        if j > 1:
            power = [
                sum(
                    (power[i] * terms[1 + n - i] for i in range(1, n + 1)),
                    power[0] * terms[1 + n],
                )
                for n in range(order - j + 1)
            ]
        slopes = [comb(p, j) * c for p, c in enumerate(coefficients)][j:]
        if not any(_counts(c) for c in slopes):
            continue
        part = polynomial(slopes, terms[0])
        part *= power[order - j]
        total = part if total is None else total + part
    return namespace(terms[0]).zeros_like(terms[0]) if total is None else total


def without_line(coefficients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Coefficients of f, the gain without its linear part."""
    return (0.0, 0.0, *coefficients[2:])


def derivative(coefficients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Coefficients of f'."""
    return tuple(p * c for p, c in enumerate(without_line(coefficients)))[1:]


def _at_nodes(
    y: list[Any],
    push: Any,
    panel: Propagators,
    order: int,
    coefficients: tuple[Any, ...],
    *,
    last: bool = True,
) -> Any:
    """States of every order at the nodes, and the sources they make.

    ``push`` is what the input of the step adds to the states of order 0 there.

    Returns lists ``states`` (orders 0…order−1) and ``sources`` (orders 1…order, the last
    only if asked for).
    """
    states = [y[0] @ panel.E_nodes]
    states[0] += push
    sources: list[Any] = []
    f = without_line(coefficients)
    for k in range(1, order + last):
        sources.append(expanded(states, k - 1, f))
        if k < order:
            states.append(y[k] @ panel.E_nodes + sources[-1] @ panel.B)
    return states, sources


class _Pushes:
    """uᵀF of each panel: the input enters with rank n_channels, not N."""

    def __init__(self, schedule: Schedule, u: Any) -> None:
        transposed = namespace(u).matrix_transpose(u)
        self._panels = {
            id(panel): (transposed @ panel.F, transposed @ panel.F_nodes)
            for panel in (schedule.panel, schedule.tail)
            if panel is not None
        }

    def at_end(self, x: Any, panel: Propagators) -> Any:
        """What inputs x (n_cases, n_channels) add at the end of a panel."""
        return x @ self._panels[id(panel)][0]

    def at_nodes(self, x: Any, panel: Propagators) -> Any:
        """The same at its nodes."""
        return x @ self._panels[id(panel)][1]


class _PushesAdjoint:
    """Gradient with respect to u from the cotangents of what the input adds."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Propagators, Any, Any]] = {}

    def add(self, x: Any, panel: Propagators, end_bar: Any, nodes_bar: Any) -> None:
        """Cotangents at the end of a panel and, or None, at its nodes."""
        transposed = namespace(x).matrix_transpose(x)
        end = transposed @ end_bar
        nodes = None if nodes_bar is None else transposed @ nodes_bar
        if id(panel) in self._found:
            _, end_before, nodes_before = self._found[id(panel)]
            end += end_before
            nodes = nodes if nodes is None else nodes + nodes_before
        self._found[id(panel)] = panel, end, nodes

    def gradient(self) -> Any:
        """(n_neurons, n_channels)."""
        total = None
        for panel, end, nodes in self._found.values():
            transpose = namespace(end).matrix_transpose
            part = panel.F @ transpose(end)
            if nodes is not None:
                part = part + panel.F_nodes @ transpose(nodes)
            total = part if total is None else total + part
        return total


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
        Readout state, one entry per order.
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
    pushes = _Pushes(schedule, u)
    for place, (step, panel, weight) in enumerate(path):
        if keep:
            kept.append(y)
        x = X[:, :, step]
        ahead = [yk @ panel.E for yk in y]
        ahead[0] += pushes.at_end(x, panel)
        if order:
            push = pushes.at_nodes(x, panel)
            _, sources = _at_nodes(y, push, panel, order, schedule.at_nodes(panel))
            for k in range(1, order + 1):
                ahead[k] += sources[k - 1] @ panel.S
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
        Derivative of a scalar with respect to the readout states, all orders summed.

    Returns
    -------
    array (n_neurons, n_channels)
    """
    xp = namespace(X)
    order, transpose = schedule.order, xp.matrix_transpose
    bar = [xp.zeros_like(cotangent)] * (order + 1)
    path = schedule.walk()
    pushes, pushed = _Pushes(schedule, u), _PushesAdjoint()
    for place in range(len(path) - 1, -1, -1):
        step, panel, weight = path[place]
        if weight:
            bar = [b + weight * cotangent for b in bar]
        y = kept[place]
        x = X[:, :, step]
        before = [b @ transpose(panel.E) for b in bar]
        nodes_bar = None
        if order:
            push = pushes.at_nodes(x, panel)
            coefficients = schedule.at_nodes(panel)
            states = _at_nodes(y, push, panel, order, coefficients, last=False)[0]
            slope_of_f = derivative(coefficients)
            slopes = [expanded(states, m, slope_of_f) for m in range(order)]
            node_bar: list[Any] = [None] * order
            for k in range(order, 0, -1):
                source_bar = bar[k] @ transpose(panel.S)
                if k < order:
                    source_bar += node_bar[k] @ transpose(panel.B)
                # ∂[f]_{k−1}/∂y⁽ⁱ⁾ = [f']_{k−1−i}
                for i in range(k):
                    part = source_bar * slopes[k - 1 - i]
                    node_bar[i] = part if node_bar[i] is None else node_bar[i] + part
            for k in range(order):
                before[k] += node_bar[k] @ transpose(panel.E_nodes)
            nodes_bar = node_bar[0]
        pushed.add(x, panel, bar[0], nodes_bar)
        bar = before
    return pushed.gradient()
