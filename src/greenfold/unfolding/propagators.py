"""Steps of a network with constant input, and the plan that lays them along a stimulus.

A `Panel` is a step of the unfolded network, with exact propagation, quadrature and all
orders. With A = I − W diag(φ') and the slopes φ' at rest, the linear network moves over a
time s by

    E(s) = exp(−A s/τ),    F(s) = A⁻¹ (I − E(s)),    y → E(s) y + F(s) u x.

For neurons with time constants τ_i of mean τ, A, W and u are multiplied by τ/τ_i from the
left. Writing φ(y) = φ'(0) y + f(y) and counting powers of f gives y = Σ_k y⁽ᵏ⁾ with

    (τ∂ + 1 − φ'(0) W) y⁽ᵏ⁾ = W [f(Σ_i y⁽ⁱ⁾)]⁽ᵏ⁻¹⁾

where [·]⁽ᵏ⁻¹⁾ is the part of order k − 1 (paper, equations 9 and 11, `rate-series`,
`first_order_correction`, for any order). Each order is the same linear network, driven by
products of lower orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from math import ceil, comb, factorial, lgamma, log
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, is_array, is_host, like, namespace
from ..networks import matrices, spectra
from ..networks.matrices import dense
from ..networks.reservoir import Reservoir

#: Largest exponent β (see `plan_quadrature`) of one quadrature panel. The cost per unit of
#: time is flat around this value. At order 1, no node feeds another, and few long panels
#: need fewer nodes in total.
_PANEL_EXPONENT, _SINGLE_EXPONENT = 4.0, 24.0
_MAX_PANELS = 2000
#: Norm below which the series of φ₁ up to the 12th power is exact to rounding: the first
#: omitted term is 0.5¹³/14! ≈ 1.4e-15 of the leading term.
_SERIES_RADIUS, _SERIES_TERMS = 0.5, 12


class HasArrays:
    """A dataclass of host arrays that can be moved to a device."""

    def on(self, reference: Array, dtype: object) -> Self:
        """Return a copy with its arrays on the device of ``reference``, as ``dtype``."""

        def moved(value: object) -> object:
            if is_host(value):
                return like(value, reference, dtype)
            if isinstance(value, tuple):
                return tuple(map(moved, cast(tuple[object, ...], value)))
            return value.on(reference, dtype) if isinstance(value, HasArrays) else value

        this: Any = self  # a dataclass
        return replace(this, **{f.name: moved(getattr(self, f.name)) for f in fields(this)})


class Step(HasArrays):
    """One step of the network with constant input, forward and back; hashed by identity.

    States are rows of deviations from the resting state. States of an expansion have its
    orders on a leading axis. ``advance(y, push, slopes)`` returns the state at the end as a
    new array and appends to ``slopes`` the values that the way back needs. ``retreat(bar,
    slopes)`` returns the cotangents of state and push, and may overwrite ``bar``.
    """

    n_neurons: int
    #: Number of orders of an expansion; None without an expansion.
    n_orders: int | None = None
    #: Memory per case that ``advance`` holds, in states.
    n_working: float = 10.0
    #: Memory per case that ``advance`` leaves in ``slopes``, in states.
    n_slopes: float = 1.0
    #: Number of cases to carry at a time on the host. With 256 rows, a dense product is
    #: near its peak speed and its result is still in the cache; 1000 rows of 100 neurons
    #: took 1.4 times as long per case.
    most_rows: int = 256
    #: Memory in bytes that a walk may use in any case. A network of 20,000 neurons needs 2
    #: GB to keep the states of 200 series of 70 steps, and to walk them once less.
    least_bytes: float = 0.0
    #: Whether the transpose of states is contiguous in memory.
    by_columns: bool = False
    #: Power of the length of a step with which the error at the end of a stimulus falls.
    accuracy: int = 4
    advance: ClassVar[Callable[..., Any]]
    retreat: ClassVar[Callable[..., tuple[Any, Any]]]

    def input_map(self, u: Array) -> Any:
        """Return the matrix from inputs to pushes, by default the input itself."""
        return namespace(u).matrix_transpose(u)

    def input_map_pullback(self, bar: Array) -> Any:
        """Apply the adjoint of `input_map`, to a gradient (N, n_channels)."""
        return namespace(bar).matrix_transpose(bar)

    def push(self, inputs: Array, input_map: Array) -> Any:
        """Return the pushes (n_cases, …) of inputs (n_cases, n_channels)."""
        if not self.by_columns:
            return inputs @ input_map
        return (input_map.T @ inputs.T).T


StepT = TypeVar("StepT", bound=Step, covariant=True)


@dataclass(frozen=True, eq=False)
class StepPlan(Generic[StepT]):
    """Steps of the stimulus, each cut into equal sub-steps, and times of the readout."""

    #: One of the ``n_sub`` sub-steps of a whole step.
    step: StepT
    n_sub: int
    #: Weight of the state at the end of each whole step in the readout, (n_whole,). All
    #: weights are zero if there is a tail: its end is then the readout.
    weights: np.ndarray
    #: One of the ``n_tail`` sub-steps of a last, shortened step.
    tail: Any = None
    n_tail: int = 0
    #: Initial state of every series, as a deviation from the resting state, (n_neurons,).
    start: np.ndarray | None = None
    #: Whether to read each state of weight one separately, on a leading time axis, instead
    #: of their sum.
    every: bool = False

    @cached_property
    def n_whole(self) -> int:
        """Number of whole steps."""
        return len(self.weights)

    @cached_property
    def read_steps(self) -> int:
        """Number of steps of the stimulus that reach the readout."""
        return self.n_whole + (self.tail is not None)

    @cached_property
    def kinds(self) -> list[StepT]:
        """The regular step, and the step of the tail if there is a tail."""
        return [self.step] if self.tail is None else [self.step, self.tail]

    @cached_property
    def places(self) -> list[tuple[int, StepT, float]]:
        """(step of the stimulus, `Step`, weight of the state at its end), in time order."""
        steps = [(self.step, self.n_sub, float(weight)) for weight in self.weights]
        if self.tail is not None:
            steps.append((self.tail, self.n_tail, 1.0))
        return [
            (index, step, weight if sub + 1 == count else 0.0)
            for index, (step, count, weight) in enumerate(steps)
            for sub in range(count)
        ]

    def on(self, reference: Array, dtype: object) -> StepPlan[StepT]:
        """Return the same plan with its matrices on the device of ``reference``."""
        if is_host(reference) and dtype == np.float64:
            return self
        tail = None if self.tail is None else self.tail.on(reference, dtype)
        start = None if self.start is None else like(self.start, reference, dtype)
        return replace(self, step=self.step.on(reference, dtype), tail=tail, start=start)


def plan_readout(
    readout: ArrayLike, n_steps: int, dt: float
) -> tuple[np.ndarray, float | None]:
    """Return the weights of the step ends, and the readout time if inside a step.

    ``readout`` is a time in (0, n_steps · dt], or one weight per step.
    """
    number = not isinstance(readout, bool)
    check.must(number, "readout", "be a time or one weight per step", repr(readout))
    value = check.host_array(readout, "readout", ndim=(0, 1))
    if value.ndim == 1:
        wanted = f"have one weight per step, shape ({n_steps},)"
        check.must(value.shape == (n_steps,), "readout", wanted, f"shape {value.shape}")
        check.must(value.any(), "readout", "weight at least one step", "zeros only")
        return value, None
    time = float(value)
    fits = 0 < time <= n_steps * dt * (1 + 1e-12)
    check.must(fits, "readout", f"be a time in (0, {n_steps * dt:g}]", f"{time:g}")
    steps = time / dt
    nearest = round(steps)
    weights = np.zeros(n_steps)
    if nearest >= 1 and abs(steps - nearest) < 1e-9 * max(1.0, steps):
        weights[nearest - 1] = 1.0
        return weights, None
    return weights, time


def make_plan(
    make_step: Callable[[float], tuple[StepT, int]],
    dt: float,
    weights: np.ndarray,
    time: float | None = None,
    *,
    start: np.ndarray | None = None,
) -> StepPlan[StepT]:
    """Make the plan of a readout, given in the form that `plan_readout` returns.

    ``make_step`` maps the length of a step to a sub-step and the number of sub-steps.
    """
    step, n_sub = make_step(dt)
    if time is None:
        used = int(np.flatnonzero(weights)[-1]) + 1
        return StepPlan(step, n_sub, np.asarray(weights, dtype=float)[:used], start=start)
    whole = int(time // dt)
    tail, n_tail = make_step(time - whole * dt)
    return StepPlan(step, n_sub, np.zeros(whole), tail, n_tail, start)


def norm_bound(Z: np.ndarray) -> float:
    """Return the geometric mean of the 1- and ∞-norm, a cheap bound on the 2-norm."""
    norms = (np.linalg.norm(Z, kind) for kind in (1, np.inf))
    return float(np.prod(np.sqrt(list(norms))))


def phi_functions(Z: np.ndarray, upto: int) -> list[np.ndarray]:
    """Return φ₀ … φ_upto of a matrix, the weights of exponential integrators; upto ≥ 1.

        φ₀(Z) = exp(Z),    φ_k(Z) = Σ_j Zʲ / (j + k)!

    The method is the modified scaling and squaring of Skaflestad & Wright (2009): a short
    series at a small argument, then doublings. The recurrence φ_(k+1) = (φ_k − 1/k!)/Z
    would cancel for small Z. φ₀ and φ₁ give the Green's function of the linear network and
    its integral over a step (paper, equation 2, `Greensfunction`).
    """
    identity, norm = np.eye(len(Z)), norm_bound(Z)
    doublings = max(0, ceil(np.log2(norm / _SERIES_RADIUS))) if norm > 0 else 0
    small = Z / 2.0**doublings
    # Horner: φ_p = (1/p!) (1 + Z/(p+1) (1 + Z/(p+2) (…))).
    top = identity + small / (upto + _SERIES_TERMS)
    for j in range(_SERIES_TERMS - 1, 0, -1):
        top = identity + small @ top / (upto + j)
    found = [top / factorial(upto)]
    for k in range(upto - 1, -1, -1):
        found.insert(0, identity / factorial(k) + small @ found[0])
    for _ in range(doublings):
        found = doubled(found)
    return found


def doubled(phi: list[np.ndarray]) -> list[np.ndarray]:
    """Return φ-functions of 2Z from those of Z; nothing cancels in a decaying network.

    φ_k(2Z) = 2⁻ᵏ [φ₀(Z) φ_k(Z) + Σ_j φ_j(Z)/(k − j)!], where j runs from 1 to k.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        found = [phi[0] @ phi[0]]
        for k in range(1, len(phi)):
            total = phi[0] @ phi[k]
            for j in range(1, k + 1):
                total += phi[j] if k - j < 2 else phi[j] / factorial(k - j)
            total /= 2.0**k
            found.append(total)
    if not all(np.isfinite(matrix).all() for matrix in found):
        problem = "the states of this unstable network exceed the range of floats in one"
        advice = "shorten `dt` or scale the weights down"
        raise OverflowError(f"{problem} step; {advice}.")
    return found


def plan_quadrature(
    reservoir: Reservoir, length: float, order: int, tol: float
) -> tuple[int, int]:
    """Return the number of panels per step and of Gauss–Legendre nodes per panel.

    With a gain of degree p, the source of order k is a sum of products of up to k(p−1)+1
    states, and one more propagator carries it on. Over a panel of length h, it behaves like
    exp(β s/h) with β = (k(p−1)+2) ‖A‖ h/τ. The error of the Gauss rule is then
    β^(2q) (q!)⁴ / ((2q+1) ((2q)!)³). From order 2 on, the source is also interpolated
    between the nodes, with a mean error below 2 (β/4)^q / q!. Over a short first panel, the
    source itself is of size β^(kp). q is the smallest number of nodes whose error per
    panel, relative to that size, is below ``tol``.
    """
    degree = len(reservoir.coefficients) - 1
    if order == 0 or degree < 2:
        return 1, 0
    A = matrices.plus_diagonal(-reservoir.linear_weights, 1.0)
    size = spectra.norm(matrices.scaled_rows(reservoir.pace, A))
    factors = order * (degree - 1) + 2
    exponent = factors * size * length / reservoir.mean_tau
    longest = _PANEL_EXPONENT if order > 1 else _SINGLE_EXPONENT
    n_panels = max(1, ceil(min(exponent / longest, 1e9)))
    constants, most = length / reservoir.mean_tau, length * _MAX_PANELS / n_panels
    check.require(
        n_panels <= _MAX_PANELS,
        f"`dt` = {length:g} is {constants:.3g} time constants, and order {order} would "
        f"take {n_panels} quadrature panels in every step; the network settles long before "
        f"the end of a step, so shorten `dt` below {most:.3g}.",
    )
    if order > 1:
        return n_panels, _nodes_needed(exponent / n_panels, order, degree, tol)
    # Choose between few long and many short panels by the total number of nodes.
    shortest = max(n_panels, ceil(exponent / _PANEL_EXPONENT))
    plans = (
        (count, _nodes_needed(exponent / count, order, degree, tol))
        for count in {n_panels, *np.linspace(n_panels, shortest, 8).round().astype(int)}
    )
    return min(plans, key=lambda plan: (plan[0] * (plan[1] + 1), plan[0]))


def _nodes_needed(beta: float, order: int, degree: int, tol: float) -> int:
    goal = log(tol) + order * degree * min(0.0, log(beta))
    if order == 1:
        # Over a long panel the source and its integral decay.
        goal -= max(0.0, log(beta))

    def log_error(q: int) -> float:
        gauss = 2 * q * log(beta) - log(2 * q + 1)
        gauss += 4 * lgamma(q + 1) - 3 * lgamma(2 * q + 1)
        interpolated = log(2) + q * log(beta / 4) - lgamma(q + 1)
        return gauss if order == 1 else max(gauss, interpolated)

    n_nodes = 1
    while log_error(n_nodes) > goal:
        n_nodes += 1
    return n_nodes


def times(rows: Array, matrix: Any) -> Any:
    """Return rows times a matrix, which may be a series that no library knows."""
    known = isinstance(matrix, np.ndarray) or is_array(matrix)
    return rows @ matrix if known else matrix.__rmatmul__(rows)


@dataclass(frozen=True, eq=False)
class Panel(Step):
    """A `Step` of the unfolded network; `build` and `build_map` make panels.

    A state has shape (order + 1, n_cases, N). Matrices act on rows from the right, ``y @
    E``, and are stored transposed, so that one product is enough for a whole batch.
    """

    length: float
    #: Propagator over the panel, (N, N).
    E: Any
    #: Response to a constant input over the panel, (N, N).
    F: Any
    #: Gauss–Legendre nodes s_j in (0, length), (q,).
    nodes: Any
    #: E(s_j)ᵀ of all nodes, side by side.
    E_nodes: Any = None
    #: F(s_j)ᵀ of all nodes, side by side.
    F_nodes: Any = None
    #: Weight of the source at each node in the state at the end, (q N, N).
    S: Any = None
    #: Weight of the source at each node in the state at each node, (q N, q N), at orders
    #: ≥ 2.
    B: Any = None
    order: int = 0
    #: Taylor coefficients of the gain at rest: numbers, or one per neuron at each node.
    coefficients: tuple[Any, ...] = (0.0,)

    def __post_init__(self) -> None:
        q = self.nodes.shape[0]
        slopes = self.order * q / (self.order + 1)  # at the nodes, except the last order
        sizes = {"n_orders": self.order + 1, "n_working": 4.0 * (q + 1), "n_slopes": slopes}
        vars(self).update(sizes, n_neurons=self.E.shape[0])
        if not is_array(self.E):  # a series, which says how many rows it takes
            vars(self).update(most_rows=self.E.most_rows)
            vars(self).update(n_working=self.n_working + self.E.n_working)

    @property
    def source_map(self) -> Any:
        """Map from squares of the states at the nodes to the state at the end, (q N, N)."""
        alpha = self.coefficients[2]
        return alpha * self.S if isinstance(alpha, float) else alpha[:, None] * self.S

    def input_map(self, u: Array) -> Any:
        """Return the effect of the input at the end of the panel and at its nodes."""
        # Multiply by u first: the input has rank n_channels, not N.
        xp = namespace(u)
        inputs = xp.matrix_transpose(u)
        if not self.order:
            return times(inputs, self.F)
        return xp.concat([times(inputs, self.F), times(inputs, self.F_nodes)], axis=1)

    def input_map_pullback(self, bar: Array) -> Any:
        """Adjoint of `input_map`."""
        n, back = self.n_neurons, namespace(bar).matrix_transpose
        found = back(times(bar[:, :n], self.F.T))
        if not self.order:
            return found
        return found + back(times(bar[:, n:], self.F_nodes.T))

    def advance(self, y: Array, push: Array, slopes: list[Any] | None = None) -> Any:
        """Return all orders at the end of the panel.

        Order 0 is the linear network, and drives order 1 (paper, equations 3, 10 and 11,
        `solution_linear_Greens`, `leading-deq`, `first_order_correction`).
        """
        n, order = self.n_neurons, self.order
        ahead = times(y, self.E)
        ahead[0, ...] += push[:, :n]
        if not order:
            return ahead
        f = (0.0, 0.0, *self.coefficients[2:])
        states = [times(y[0, ...], self.E_nodes)]
        states[0] += push[:, n:]
        for k in range(1, order + 1):
            source = expanded(states, k - 1, f)
            ahead[k, ...] += times(source, self.S)
            if k < order:
                carried = times(y[k, ...], self.E_nodes)
                states.append(carried + times(source, self.B))
        if slopes is not None:
            slope_of_f = tuple(p * c for p, c in enumerate(f))[1:]
            slopes.extend(expanded(states, m, slope_of_f) for m in range(order))
        return ahead

    def retreat(self, bar: Array, slopes: list[Any]) -> tuple[Any, Any]:
        """Return the cotangents of all orders at the start, and of the push."""
        xp, order = namespace(bar), self.order
        before = times(bar, self.E.T)
        if not order:
            return before, bar[0, ...]
        nodes_bar: list[Any] = [None] * order
        for k in range(order, 0, -1):
            source_bar = times(bar[k, ...], self.S.T)
            if k < order:
                source_bar += times(nodes_bar[k], self.B.T)
            # ∂[f]_{k−1}/∂y⁽ⁱ⁾ = [f']_{k−1−i}
            for i in range(k):
                part = source_bar * slopes[k - 1 - i]
                nodes_bar[i] = part if nodes_bar[i] is None else nodes_bar[i] + part
        for k in range(order):
            before[k, ...] += times(nodes_bar[k], self.E_nodes.T)
        return before, xp.concat([bar[0, ...], nodes_bar[0]], axis=1)


def polynomial(coefficients: Sequence[Any], y: Array) -> Any:
    """Return Σ_p c_p yᵖ as a new array, computed in place to save memory traffic.

    An odd or even polynomial is evaluated in y², with half the terms. Coefficients are
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


def _counts(coefficient: object) -> bool:
    """Return whether a coefficient is an array, or a number other than zero."""
    return not isinstance(coefficient, float) or coefficient != 0.0


def expanded(terms: list[Any], order: int, coefficients: Sequence[Any]) -> Any:
    """Return order m of f(Σ_i εⁱ terms_i) for the polynomial f.

    With δ = Σ_i εⁱ terms_i over i ≥ 1, it is Σ_j f⁽ʲ⁾(terms_0)/j! · [δʲ]_m over j ≤ m. For
    m = 0, it drives order 1 (paper, equation 11, `first_order_correction`).
    """
    if order == 0:
        return polynomial(coefficients, terms[0])
    total = None
    # ``power`` holds the orders j … m of δ^j; entry i is order j + i.
    power = terms[1 : order + 1]
    for j in range(1, order + 1):
        if j > 1:
            ahead = range(order - j + 1)
            power = [sum(power[i] * terms[1 + n - i] for i in range(n + 1)) for n in ahead]
        slopes = [comb(p, j) * c for p, c in enumerate(coefficients)][j:]
        if not any(_counts(c) for c in slopes):
            continue
        part = polynomial(slopes, terms[0])
        part *= power[order - j]
        total = part if total is None else total + part
    return namespace(terms[0]).zeros_like(terms[0]) if total is None else total


def build(reservoir: Reservoir, length: float, n_nodes: int, order: int) -> Panel:
    """Compute one panel on the host; `plan_quadrature` gives the number of nodes."""
    (A, W), tau = _in_mean_time(reservoir), reservoir.mean_tau
    n = len(A)
    nodes, weights = gauss(n_nodes)
    E, F = _propagators(A, np.append(nodes, 1.0) * (length / tau))
    if isinstance(reservoir.pace, np.ndarray):
        np.multiply(F, reservoir.pace, out=F)
    # E(length − s_j) is E at the mirrored node.
    S = (weights * length / tau)[:, None, None] * (E[-2::-1] @ W)[:n_nodes]

    def side_by_side(stack: np.ndarray) -> np.ndarray:
        """Put the transposes of (q, N, N) matrices M_j into a block row (N, q N)."""
        return np.ascontiguousarray(stack.transpose(2, 0, 1)).reshape(n, len(stack) * n)

    return Panel(
        length=length,
        E=np.ascontiguousarray(E[-1].T),
        F=np.ascontiguousarray(F[-1].T),
        nodes=nodes * length,
        E_nodes=side_by_side(E[:-1]),
        F_nodes=side_by_side(F[:-1]),
        S=np.ascontiguousarray(S.transpose(0, 2, 1)).reshape(n_nodes * n, n),
        B=_node_weights(A, W, nodes, weights, length / tau) if order >= 2 else None,
        order=order,
        coefficients=at_nodes(reservoir, n_nodes) if order else (0.0,),
    )


def gauss(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and weights of Gauss–Legendre on (0, 1), or none for order 0."""
    if not n_nodes:
        return np.empty(0), np.empty(0)
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return (nodes + 1) / 2, weights / 2


def at_nodes(reservoir: Reservoir, n_nodes: int) -> tuple[Any, ...]:
    """Return the Taylor coefficients of the gain: numbers, or one per neuron and node."""
    found = reservoir.coefficients
    numbers = all(isinstance(c, float) for c in found)
    return found if numbers else tuple(np.tile(c, n_nodes) for c in found)


def build_map(E: np.ndarray, push: np.ndarray, length: float) -> Panel:
    """Return a discrete-time step, y_i → (E y)_i + push_i (u x)_i, without nodes."""
    rows = np.ascontiguousarray(E.T)
    return Panel(length, rows, np.diag(push), nodes=np.empty(0))


def _in_mean_time(reservoir: Reservoir) -> tuple[np.ndarray, np.ndarray]:
    """Return A and W with time in units of the mean time constant."""
    what, instead = "dense propagators", "`unfold` chooses products with sparse weights"
    weights = dense(reservoir.weights, what, instead)
    A = np.eye(len(weights)) - dense(reservoir.linear_weights, what, instead)
    if not isinstance(reservoir.pace, np.ndarray):
        return A, weights
    pace = reservoir.pace[:, None]
    return pace * A, pace * weights


def _propagators(A: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E(s) = exp(−A s) and F(s) = ∫₀ˢ exp(−A r) dr for m times s, (m, N, N)."""
    E, F = np.empty((2, len(times), *A.shape))
    # Treat one time after another: a stack of temporaries would multiply the memory.
    for index, time in enumerate(times):
        E[index], F[index] = phi_functions(-time * A, 1)
        F[index] *= time
    return E, F


def _node_weights(
    A: np.ndarray, W: np.ndarray, nodes: np.ndarray, weights: np.ndarray, span: float
) -> np.ndarray:
    """Return the weight of the source at node i in the state at node j, as (q N, q N).

    It is (1/τ) ∫ E(s_j − s) ℓ_i(s) ds W over 0 ≤ s ≤ s_j, with the Lagrange polynomials ℓ_i
    of the nodes.
    """
    q, n = len(nodes), len(A)
    B = np.empty((q, n, q, n))  # [source node, source neuron, target node, target neuron]
    for j, (times, mix) in enumerate(node_mixes(nodes, weights, span)):
        E, _ = _propagators(A, times)
        B[:, :, j, :] = (np.tensordot(mix.T, E, axes=1) @ W).transpose(0, 2, 1)
    return B.reshape(q * n, q * n)


def node_mixes(
    nodes: np.ndarray, weights: np.ndarray, span: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield times and weights of E W in the state at each node, from sources at all nodes.

    Weights have shape (n_times, q), for the times (n_times,) of E and the sources at q
    nodes.
    """
    q = len(nodes)
    legendre: Callable[..., np.ndarray] = np.polynomial.legendre.legvander
    to_lagrange = np.linalg.inv(legendre(2 * nodes - 1, q - 1))
    for node in nodes:
        # E(s_j (1 − c_l)) is E at the mirrored node of the shortened panel.
        lagrange = np.matmul(legendre(2 * nodes * node - 1, q - 1), to_lagrange)  # (l, i)
        mix = np.asarray((weights * node * span)[:, None] * lagrange)
        yield nodes[::-1] * node * span, mix
