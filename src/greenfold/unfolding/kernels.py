"""Kernels of the stimulus, z = a · x + xᵀ C x, from an unfolded network.

With both projections fixed, this is a `Kernel`; as a function of u, it is `ReadoutKernels`.
The kernels of all neurons (`StateKernels`) cost the same for any number of stimuli. For
many stimuli, this is far cheaper than stepping each of them through the network. C exists
at order 1 of a quadratic gain; order 0 has no C. Linear systems for which their kernels are
all there is, such as devices, derive from `KnownByMaps`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base import model_files
from .._base.arrays import (
    Array,
    batches,
    empty,
    like,
    multiply_into,
    namespace,
    on_gpu,
    to_host,
    working_bytes,
    zeros,
)
from .._base.printing import Shown
from ..systems import LinearSystem, System
from .linear import LinearOrder
from .walk import checked_cotangent

#: Memory for the products at the nodes that a GPU forms at once (the host forms one step
#: after another), and for the products of the series used at once.
_PRODUCT_BYTES, _SCRATCH_BYTES = 2**28, 2**24


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Shown, model_files.Saved, kind="kernel"):
    """The predictor z = a · x + xᵀ C x that a network with projections u and v computes."""

    #: a (n_channels, n_steps), in order of time; zero after the readout.
    linear: np.ndarray
    #: C (n_channels, n_steps, n_channels, n_steps) or None, symmetric under exchange of its
    #: two (channel, step) pairs.
    quadratic: np.ndarray | None = None

    def __post_init__(self) -> None:
        linear = check.host_array(self.linear, "linear", ndim=(2,))
        object.__setattr__(self, "linear", linear)
        if self.quadratic is None:
            return
        quadratic = check.host_array(self.quadratic, "quadratic", ndim=(4,))
        shape = (*linear.shape, *linear.shape)
        wanted = f"have shape {shape} to match `linear`"
        check.must(quadratic.shape == shape, "quadratic", wanted, quadratic.shape)
        object.__setattr__(self, "quadratic", quadratic)

    def _facts(self) -> dict[str, Any]:
        order = 0 if self.quadratic is None else 1
        return {"channels": len(self.linear), "steps": self.n_steps, "order": order}

    @property
    def n_steps(self) -> int:
        """Number of steps of the stimuli."""
        return self.linear.shape[1]

    def decision_values(self, X: ArrayLike | Array) -> Any:
        """Return the readout z (n_cases,) of each stimulus, float64 on the device of ``X``.

        X is (n_cases, n_steps) or (n_cases, n_channels, n_steps), of any array library.
        """
        series = check.stimuli(X, self.n_steps)
        xp, n_channels, size = namespace(series), len(self.linear), self.linear.size
        wanted, shape = f"have {n_channels} channel(s), like the kernel", series.shape
        check.must(shape[1] == n_channels, "X", wanted, f"shape {tuple(shape)}")
        a, C = like(self.linear.reshape(size), series), self.quadratic
        square = None if C is None else like(C.reshape(size, size), series)
        found, held = list[Any](), 8.0 * size * (2 if C is None else 3)
        for part in batches(shape[0], held, working_bytes(series)):
            batch = check.finite_batch(series[part, ...], xp, part.start)
            flat = xp.reshape(batch, (batch.shape[0], size))
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                z = flat @ a
                if square is not None:
                    z = z + xp.sum((flat @ square) * flat, axis=1)
            found.append(check.finite_result(z, xp))
        return xp.concat(found) if len(found) > 1 else found[0]

    def predict(self, X: ArrayLike | Array) -> Any:
        """Return the class ±1 of each stimulus: the sign of z, +1 at zero."""
        z = self.decision_values(X)
        xp = namespace(z)
        return xp.where(z >= 0, xp.ones_like(z), -xp.ones_like(z))


_AXES = ("channels", "steps")
KERNEL = model_files.describe(
    "kernel",
    Kernel,
    linear=model_files.Numbers(*_AXES),
    quadratic=model_files.Maybe(model_files.Numbers(*_AXES, *_AXES)),
)


class KnownByMaps(LinearSystem, System):
    """A linear system whose other methods follow from its three maps."""

    @abstractmethod
    def _carry_back(self, R_bar: np.ndarray) -> np.ndarray:
        """Return ∂L/∂u (n_inputs, n_channels), the adjoint of Rᵤ.

        ``R_bar`` is ∂L/∂Rᵤ (n_channels, n_steps, n_outputs).
        """

    @property
    def is_linear(self) -> bool:
        """Whether the system is linear, which it always is."""
        return True

    @property
    def degree(self) -> int:
        """Degree of the states as polynomials of the stimulus."""
        return 1

    @property
    def maps(self) -> KnownByMaps:
        """The system itself."""
        return self

    def _inputs(self, X: ArrayLike | Array, u: ArrayLike) -> tuple[Any, np.ndarray]:
        series = check.stimuli(X, self.n_steps)
        return series, check.input_projection(u, self.n_inputs, series.shape[1])

    def states(self, X: ArrayLike | Array, u: ArrayLike) -> Any:
        """Return the states at readout, (n_cases, n_outputs), on the device of ``X``."""
        series, projection = self._inputs(X, u)
        xp = namespace(series)
        flat = xp.reshape(check.finite_batch(series, xp), (series.shape[0], -1))
        return flat @ like(self.input_response(projection), series)

    def pullback(
        self,
        X: ArrayLike | Array,
        u: ArrayLike,
        cotangent: ArrayLike | Array,
        v: ArrayLike | None = None,
    ) -> Any:
        """Return the gradient with respect to the projections; see `Unfolding.pullback`."""
        series, projection = self._inputs(X, u)
        flat = check.host_array(series, "X").reshape(series.shape[0], -1)
        bar, readout = checked_cotangent(cotangent, flat, self.n_outputs, v)
        if readout is not None:
            d = (bar @ flat).reshape(projection.shape[1], -1)
            u_bar = (d @ self.readout_response(readout)).T.reshape(np.shape(u))
            return u_bar, (flat @ self.input_response(projection)).T @ bar
        R_bar = (flat.T @ bar).reshape(projection.shape[1], self.n_steps, -1)
        return self._carry_back(R_bar).reshape(np.shape(u))

    def kernels(self, u: ArrayLike, v: ArrayLike) -> Kernel:
        """Return the predictor a_(c,n) = vᵀ G_n u_c of one pair of projections u, v."""
        projection = check.input_projection(u, self.n_inputs)
        readout = check.readout_vector(v, self.n_outputs)
        return Kernel(np.ascontiguousarray((self.readout_response(readout) @ projection).T))


class ReadoutKernels:
    """The map u ↦ (a, C) for one readout v, several times cheaper than for all neurons.

    C = Σ_k R_kᵀ diag(s_k) R_k. R_k are the responses at the nodes of step k to a pulse in
    each earlier step, and s_k is the readout carried back to step k.
    """

    def __init__(self, linear: LinearOrder, v: np.ndarray) -> None:
        self._linear, plan = linear, linear.plan
        self._rows, self._weights = linear.readout_response(v), None
        if plan.step.order:
            bars = linear.carry_back(v)
            self._weights = source_weights(linear, bars)
            self._tail_bars = bars[plan.n_whole * plan.n_sub :]

    def at(self, u: np.ndarray) -> KernelsAt:
        """Return the kernels at one u (n_neurons, n_channels)."""
        a = u.T @ self._rows.T
        if self._weights is None:
            return KernelsAt(a, None, partial(self.pull, None))
        linear, K, n_channels = self._linear, self._linear.n_steps, u.shape[1]
        starts = linear.pulse_starts(u)
        responses = linear.pulse_nodes(u, starts)
        C = np.zeros((K, n_channels, K, n_channels))
        backward = _backward(responses)
        for step, weights in enumerate(self._weights):
            if weights.any():
                _add_square(C, backward[-(step + 1) * n_channels :], weights)
        tail = linear.plan.tail
        current = starts[:: linear.plan.n_sub][::-1].copy()  # earliest pulse first
        for bar in self._tail_bars:  # the panels of a shortened last step
            at_nodes = current @ tail.E_nodes
            at_nodes[-1] += u.T @ tail.F_nodes
            weights = tail.coefficients[2] * (tail.S @ bar)
            _add_square(C, at_nodes.reshape(-1, len(weights)), weights)
            current = current @ tail.E
            current[-1] += u.T @ tail.F
        return KernelsAt(a, C.transpose(1, 0, 3, 2), partial(self.pull, responses))

    def pull(
        self, responses: np.ndarray | None, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> Any:
        """Return the gradient by u of a function of z, read at the ends of steps.

        ``responses`` are the `LinearOrder.pulse_nodes` of u.
        """
        gradient = (a_bar @ self._rows).T
        if C_bar is None or responses is None or self._weights is None:
            return gradient
        linear, n, n_channels = self._linear, self._linear.plan.n_whole, len(a_bar)
        by_time = C_bar.transpose(1, 0, 3, 2)[:n, :, :n]  # (step, channel, step, channel)
        backward = _backward(responses)
        bar = np.zeros_like(backward)
        for step, weights in enumerate(self._weights):
            so_far = backward[-(step + 1) * n_channels :]
            square = by_time[: step + 1, :, : step + 1].reshape(len(so_far), -1)
            change = square @ so_far
            change *= 2 * weights
            bar[-len(so_far) :] += change
        bar = bar.reshape(responses.shape)[::-1]
        nothing = np.zeros((n_channels, len(gradient)))
        return gradient + linear.pulse_adjoint(None, bar, nothing)


@dataclass(frozen=True, eq=False)
class KernelsAt:
    """Kernels a and C of one readout at one u, shaped as in `Kernel`.

    ``pullback(a_bar, C_bar)`` returns the gradient by u from the cotangents of a and C;
    C_bar must be symmetric.
    """

    a: np.ndarray
    C: np.ndarray | None
    pullback: Callable[[np.ndarray, np.ndarray | None], np.ndarray]


class SquareOfInput:
    """The quadratic form m₁ of u in ⟨ζ z⟩ (paper, equation 12, `G2-general`).

    It contracts G⁽²⁾ with a readout and a second moment of the stimuli, without forming
    G⁽²⁾.
    """

    def __init__(self, linear: LinearOrder) -> None:
        self._linear, each = linear, np.eye(linear.n_inputs)
        # Responses at the nodes to a pulse into each neuron.
        self._responses = linear.pulse_nodes(each, linear.pulse_starts(each))

    def __call__(self, v: np.ndarray, second_moment: np.ndarray) -> np.ndarray:
        """Return m₁ as (n_channels, N, n_channels, N) for a second moment (D, D)."""
        K = self._linear.n_steps
        n_channels = len(second_moment) // K
        moment = second_moment.reshape(n_channels, K, n_channels, K)
        total = np.zeros((n_channels, len(v), n_channels, len(v)))
        bars = self._linear.carry_back(v)
        for step, weights in enumerate(source_weights(self._linear, bars)):
            so_far = self._responses[: step + 1][::-1]  # (step + 1, N, width)
            weighted = so_far * weights
            for c, d in np.ndindex(n_channels, n_channels):
                now = moment[c, : step + 1, d, : step + 1]
                mixed = np.tensordot(now, so_far, axes=(1, 0))
                total[c, :, d, :] += np.tensordot(weighted, mixed, axes=((0, 2), (0, 2)))
        return total


def source_weights(linear: LinearOrder, bars: np.ndarray) -> np.ndarray:
    """Return the weights in z of the squared states at the nodes, (n_whole, n_sub q N)."""
    plan = linear.plan
    whole = bars[: plan.n_whole * plan.n_sub]
    weights = plan.step.coefficients[2] * (whole @ plan.step.S.T)
    return weights.reshape(plan.n_whole, plan.n_sub * weights.shape[1])


def _backward(responses: np.ndarray) -> np.ndarray:
    """Return responses at the nodes, earliest pulse first, one row per (step, channel).

    The last k steps are the responses in step k to a pulse in each step so far.
    """
    return responses[::-1].reshape(-1, responses.shape[2])


def _add_square(C: np.ndarray, responses: np.ndarray, weights: np.ndarray) -> None:
    """Add Rᵀ diag(s) R to the block of C of the steps so far, (step, channel) pairs."""
    block = (responses * weights) @ responses.T
    n_channels = C.shape[1]
    n = len(block) // n_channels
    C[:n, :, :n] += block.reshape(n, n_channels, n, n_channels)


def table_bytes(read_steps: int, n_neurons: int, n_channels: int) -> float:
    """Return the memory of `state_kernels` at order 1, in bytes."""
    return 2.5 * 8.0 * n_neurons * (read_steps * n_channels) ** 2


@dataclass(frozen=True, eq=False)
class StateKernels:
    """Kernels R and D of all neurons at one u, on the device of ``order``.

    y_i = Σ_n R_in x_n + Σ_nm D_inm x_n x_m over n ≤ m (paper, equations 3 and 12,
    `solution_linear_Greens`, `G2-general`).
    """

    order: LinearOrder
    u: Any
    #: R in order of time, (read_steps, n_channels, n_neurons).
    linear: Any
    #: D, sorted by the later step m and then by the distance d = m − n = 0 … m, (n_pairs,
    #: n_channels, n_channels, N) or None; the first channel belongs to the earlier step.
    pairs: Any
    #: Response at the nodes by time since a unit pulse, (n_whole, C, n_sub q N).
    nodes: Any

    @property
    def read_steps(self) -> int:
        """Number of steps of the stimuli that reach the readout."""
        return self.order.plan.read_steps

    def full(self) -> tuple[np.ndarray, np.ndarray]:
        """Return plain arrays a (D, n_neurons) and symmetric C (D, D, n_neurons).

        D = n_channels · n_steps, channel after channel.
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

    def products(self, X: Array, out: Array | None = None) -> Any:
        """Return products x_n x_m of the series, (n_cases, n_pairs · n_channels²)."""
        xp, read = namespace(X), X[:, :, : self.read_steps]
        n_cases, n_channels, n_steps = read.shape
        # Write in place, one later step at a time: joining parts would move these arrays,
        # by far the largest, twice more.
        backward = xp.permute_dims(xp.flip(read, axis=2), (0, 2, 1))
        shape = n_cases, n_steps * (n_steps + 1) // 2, n_channels, n_channels
        made = empty(shape, X) if out is None else out
        for m in range(n_steps):
            earlier = backward[:, n_steps - 1 - m :, :, None]
            multiply_into(made[:, _pairs_of(m), ...], earlier, read[:, None, None, :, m])
        return xp.reshape(made, (n_cases, -1))

    def _by_time(self, X: Array) -> Any:
        """Return the series as rows for R, (n_cases, read_steps · n_channels)."""
        xp = namespace(X)
        by_time = xp.permute_dims(X[:, :, : self.read_steps], (0, 2, 1))
        return xp.reshape(by_time, (X.shape[0], -1))

    def states_of(self, X: Array, products: Array | None, *, orders: bool = False) -> Any:
        """Return the states of series, with both orders separate if ``orders``.

        ``products`` are the products of the series if they were kept, or None.
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
            # Reuse one buffer: fresh memory can cost as much time as the products.
            shape = parts[0].stop, *self.pairs.shape[:-1]
            scratch = empty(shape, X)
            for part in parts:
                out = scratch[: part.stop - part.start, ...]
                squares[part, ...] += self.products(X[part, ...], out) @ pairs
        return xp.stack([Y, squares]) if orders else Y

    def _batches(self, X: Array) -> Iterator[tuple[slice, Any]]:
        """Yield parts of the series that fit into memory, checked and in float64."""
        xp, width = namespace(X), self.read_steps * X.shape[1]
        squares = 0 if self.pairs is None else width**2
        held = 8.0 * (2 * self.linear.shape[2] + 2 * width + squares)
        for part in batches(X.shape[0], held, working_bytes(X)):
            yield part, check.finite_batch(X[part, ...], xp, part.start)

    def states(self, X: Array, *, orders: bool = False) -> Any:
        """Return the states of many series; the caller checks that they are finite."""
        with np.errstate(over="ignore", invalid="ignore"):  # left to the caller
            found = [self.states_of(x, None, orders=orders) for _, x in self._batches(X)]
        return found[0] if len(found) == 1 else namespace(X).concat(found, axis=-2)

    def gradients(
        self, X: Array, cotangent: Array, v: np.ndarray | None = None
    ) -> tuple[Any, Any]:
        """Return the gradients by u and, if given, v; arguments as in `Walk.pullback`."""
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
        """Return the gradient by u from the cotangents of a v and of symmetric C v."""
        if isinstance(self.linear, np.ndarray):
            return ReadoutKernels(self.order, v).pull(self.nodes, a_bar, C_bar)
        # On a GPU, use the table of all neurons.
        n, readout = self.read_steps, like(v, self.linear)
        linear_bar = like(a_bar.T[:n].copy(), self.linear)[..., None] * readout
        table_bar = None
        if C_bar is not None and self.pairs is not None:
            by_distance = np.zeros((n, n, *self.pairs.shape[1:3]))
            for m in range(n):
                by_distance[m, : m + 1] = C_bar[:, m::-1, :, m].transpose(1, 0, 2)
            table_bar = like(by_distance, self.linear)[..., None] * readout
        return to_host(self._pullback_of_table(linear_bar, table_bar))

    def pullback(self, linear_bar: Array, pairs_bar: Array | None = None) -> Any:
        """Return the gradient (n_neurons, n_channels) by u from cotangents of R and D."""
        if pairs_bar is None:
            return self._pullback_of_table(linear_bar, None)
        n = self.read_steps
        table_bar = zeros((n, n, *pairs_bar.shape[1:]), self.u)
        for m in range(n):
            table_bar[m, : m + 1, ...] = pairs_bar[_pairs_of(m), ...]
        return self._pullback_of_table(linear_bar, table_bar)

    def _pullback_of_table(self, linear_bar: Array, table_bar: Array | None) -> Any:
        """Return the gradient by u, with the cotangent of D as a table ``[m, d]``."""
        order = self.order
        if table_bar is None:
            return order.responses_adjoint(linear_bar)
        ends_bar, inputs_bar = order.read_pulse_adjoint(linear_bar)
        pairs_bar = order.read(table_bar)
        pairs_bar[:, 1:, ...] *= 2.0
        nodes_bar = pair_table_adjoint(order, self.nodes, pairs_bar)
        return order.pulse_adjoint(ends_bar, nodes_bar, inputs_bar)


def _pairs_of(later: int) -> slice:
    """Return the positions of the pairs with the given later step."""
    first = later * (later + 1) // 2
    return slice(first, first + later + 1)


def state_kernels(order: LinearOrder, u: Array) -> StateKernels:
    """Compute the kernels for one u (n_neurons, n_channels) on the device of the plan.

    They are G⁽¹⁾ and G⁽²⁾ contracted with u (paper, equation 12, `G2-general`).

    The panels of the plan must be of order 0, or of order 1 with a gain of degree 2 and
    without a tail.
    """
    if order.plan.step.order == 0 or order.plan.tail is not None:
        return StateKernels(order, u, order.responses(u), None, None)
    starts = order.pulse_starts(u)
    linear = order.read_pulse(u, starts)
    nodes = order.pulse_nodes(u, starts)
    table = order.read(pair_table(order, nodes))
    # A pair of different steps enters the square of the state twice.
    table[:, 1:, ...] *= 2.0
    pairs = [table[m, : m + 1, ...] for m in range(order.plan.n_whole)]
    return StateKernels(order, u, linear, namespace(u).concat(pairs, axis=0), nodes)


def pair_table(order: LinearOrder, pulses: Array) -> Any:
    """Return D by time since the later pulse, from responses at the nodes: (n, n, C, C, N).

    Entry [l, d] is the response l steps after the later of two pulses that are d steps
    apart, for l + d < n. With the pulse response ρ at the nodes, D(l) = D(l − 1) E + Σ_j
    S_j (ρ_j(l + d) ∘ ρ_j(l)) for all d at once. Small products would leave a GPU idle, so
    there the recursion is doubled: D(l) ← D(l) + D(l − k) Eᵏ for k = 1, 2, 4, ….
    """
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


def pair_table_adjoint(order: LinearOrder, pulses: Array, table_bar: Array) -> Any:
    """Return the cotangent of the responses; ``table_bar`` is overwritten."""
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


def _rounds(order: LinearOrder, table: Array) -> Iterator[tuple[slice, slice, int, Any]]:
    """Yield rows to carry to later rows, their number of distances, and the E to use."""
    n, power = order.plan.n_whole, order.step[0]
    if not on_gpu(table):
        for l in range(1, n):
            yield slice(l - 1, l), slice(l, l + 1), n - l, power
        return
    stride = 1
    while stride < n:
        yield slice(0, n - stride), slice(stride, n), n - stride, power
        stride, power = 2 * stride, power @ power


def _step_sources(order: LinearOrder) -> Any:
    """Return the map from products at a step's nodes to its end, (n_sub q N, N)."""
    maps = [order.plan.step.source_map]
    for _ in range(order.plan.n_sub - 1):
        maps.append(maps[-1] @ order.plan.step.E)
    return namespace(maps[0]).concat(maps[::-1], axis=0)


def _product_parts(pulses: Array) -> Iterator[slice]:
    """Yield the steps whose products at the nodes are formed together."""
    n_steps, channels, width = pulses.shape
    room = _PRODUCT_BYTES if on_gpu(pulses) else 0
    return batches(n_steps, 8.0 * n_steps * channels**2 * width, room)
