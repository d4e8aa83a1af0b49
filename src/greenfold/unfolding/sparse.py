"""A sparse network unfolded by products with W, without a propagator.

Time in units of 1/r turns τ ẏ = −y + W y + u x into ẏ = (M − 1) y + D u x, with r = 1/τ and
M = W; for neurons with time constants τ_i, r = max 1/τ_i, M = 1 + (W − 1)/(r τ_i) and
D = 1/(r τ_i). Its propagator is a power series with Poisson weights (uniformisation),

    exp((M − 1) s) = Σ_j p_j(s) Mʲ ,    p_j(s) = e⁻ˢ sʲ / j! ,

and the response to a unit pulse of one step that began b and ended a before the readout is
Σ_j ∫ₐᵇ p_j(s) ds Mʲ D u. A network in discrete time has powers of its step M = E instead.
All weights are positive. If |λ| ≤ 1 for the eigenvalues of M, nothing cancels, and a few
more powers than s suffice; otherwise, time is cut into stretches that are short enough.

In a `Product`, rows of states lie side by side in memory, each neuron after another: scipy
and cuSPARSE then multiply them without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammainc, gammaln

from .._base.arrays import (
    Array,
    contiguous,
    is_host,
    is_sparse,
    like,
    namespace,
    on_gpu,
    sparse_like,
    to_host,
    zeros,
)
from ..networks.echo_state import EchoStateNetwork
from ..networks.matrices import plus_diagonal, scaled_rows
from ..networks.reservoir import Reservoir
from ..networks.spectra import circulant_column, connected
from ..systems import LinearSystem, NormalModes
from .linear import BlockModes, LinearOrder, modal_step, normal_modes
from .propagators import HasArrays, Panel, StepPlan, at_nodes, gauss, node_mixes

_gammainc: Any = gammainc

#: Weight of the powers that are left out, relative to all.
_TRUNCATED = 1e-18
#: Longest stretch in units of 1/r: there, 1.6 products per unit are enough. If the powers
#: of M grow, large terms may cancel: their sum is at most this multiple of the vector.
_LONGEST, _CANCELLED = 256.0, 50.0
#: Numbers of powers whose growth is measured, and of random vectors times neurons.
_PROBED, _PROBES = 32, 4000
#: Number of powers at most, more than enough for the longest stretch.
_MOST = 600
#: Number of powers that are weighted at a time, and per stretch in discrete time.
_TOGETHER = 16
#: Relative size of a commutator that counts as zero, and largest part of a normal matrix
#: whose modes are computed.
_NORMAL, _NORMAL_PART = 1e-12, 1000
#: Number of nodes that integrate p_j over at most one unit of time, to rounding.
_NODES = 12
#: Largest size in bytes of the states that a product carries at a time on the host. With
#: 20,000 neurons and 2 million connections, a column took 5.6 ms among 200 columns, which
#: do not fit into the cache, and 1.3 ms among 16 to 64.
CACHED = 2**23


def in_columns(y: Array) -> Any:
    """Return the transpose of rows (n_cases, N), contiguous in memory."""
    return contiguous(y.T)


@dataclass(frozen=True, eq=False)
class Product(HasArrays):
    """A sparse matrix M that acts on rows of states, as y Mᵀ; make one with `of`."""

    matrix: Any
    transposed: Any
    #: Copies on other devices and of other types, each made once.
    _copies: dict[tuple[str, str], Product] = field(
        default_factory=lambda: dict[tuple[str, str], Product](), repr=False
    )

    @classmethod
    def of(cls, matrix: Any) -> Product:
        """Return the product with a sparse matrix on the host.

        Both factors are kept by columns. By rows, each addition waits for the one before:
        with 15 million connections, four columns took 39 ms by rows and 23 ms by columns.
        """
        return cls(matrix.tocsc(), matrix.tocsr().T)

    @property
    def n_rows(self) -> int:
        """Number of rows of M."""
        return int(self.matrix.shape[0])

    def __mul__(self, factor: float) -> Product:
        """Return the product with M times a factor."""
        return Product(self.matrix * factor, self.transposed * factor)

    def on(self, reference: Array, dtype: object) -> Product:
        """Return the product on the device of ``reference``, as ``dtype``."""
        if is_host(reference) and dtype == np.float64:
            return self
        place = "host" if is_host(reference) else str(reference.device)
        key = place, str(dtype)
        if key not in self._copies:
            both = self.matrix, self.transposed
            self._copies[key] = (
                Product.of(self.matrix.astype(dtype))
                if is_host(reference)
                else Product(*(sparse_like(one, reference, dtype) for one in both))
            )
        return self._copies[key]

    def __call__(self, y: Array) -> Any:
        """Return y Mᵀ for rows y (n_cases, N)."""
        return (self.matrix @ in_columns(y)).T

    def back(self, bar: Array) -> Any:
        """Return bar M, the adjoint."""
        return (self.transposed @ in_columns(bar)).T


def cached_rows(n_neurons: int) -> int:
    """Return the number of cases that a product on the host should carry at a time."""
    return max(8, CACHED // (8 * n_neurons))


@dataclass(frozen=True, eq=False)
class Flow(HasArrays):
    """The linear dynamics ẏ = (M − 1) y + D u x per 1/``rate``, or y' = M y + D u x."""

    M: Product
    #: D, (N,), or None for 1.
    scale: Any
    #: r, or None in discrete time.
    rate: float | None
    #: Logarithm of the growth of random vectors by Mʲ, for j = 0, 1, …; numbers, which
    #: stay on the host.
    growth: tuple[float, ...]

    @classmethod
    def of(cls, network: Reservoir | EchoStateNetwork) -> Flow:
        """Return the flow of a network near rest."""
        if isinstance(network, EchoStateNetwork):
            step, push = network.linear_step
            return cls(Product.of(step), push, None, (0.0,))
        if not isinstance(network.tau, np.ndarray):
            product = Product.of(network.linear_weights)
            return cls(product, None, 1 / network.tau, _growth(product))
        fastest = float(network.tau.min())
        decay = plus_diagonal(network.linear_weights, -1.0)
        product = Product.of(plus_diagonal(scaled_rows(fastest / network.tau, decay), 1.0))
        return cls(product, fastest / network.tau, 1 / fastest, _growth(product))

    def _terms(self, time: float) -> np.ndarray:
        """Return the expected sizes of the terms p_j(s) Mʲ x for unit vectors x."""
        rates, powers = np.diff(self.growth), np.arange(_MOST)
        beyond = np.arange(1, _MOST - len(self.growth) + 1) * rates[len(rates) // 2 :].max()
        logs = np.append(self.growth, self.growth[-1] + beyond)
        with np.errstate(over="ignore"):
            return np.exp(logs + powers * np.log(time) - time - gammaln(powers + 1.0))

    @cached_property
    def longest(self) -> float:
        """Longest time over which one series is accurate."""
        if self.rate is None:
            return float(_TOGETHER)
        time = _LONGEST
        while self._terms(time).sum() > _CANCELLED:
            time *= 0.8
        return time / self.rate

    def driven(self, columns: Array) -> Any:
        """Return D times columns (N, …)."""
        if self.scale is None:
            return columns
        shape = (-1, *(1 for _ in columns.shape[1:]))
        return columns * namespace(columns).reshape(self.scale, shape)

    def n_powers(self, length: float) -> int:
        """Return the number of powers that a series over ``length`` needs."""
        assert self.rate is not None
        terms = self._terms(length * self.rate)
        left = np.cumsum(terms[::-1])[::-1]  # from each power on
        return int(np.argmax(left < _TRUNCATED * left[0])) or _MOST

    def stretches(self, edges: np.ndarray) -> list[Stretch]:
        """Return the series of pulses between ``edges`` in time before the readout."""
        n_bins = len(edges) - 1
        if self.rate is None:
            parts = range(0, n_bins, _TOGETHER)
            sizes = (min(_TOGETHER, n_bins - start) for start in parts)
            return [
                Stretch(start, np.eye(size, size + 1), np.eye(1, size + 1, size)[0])
                for start, size in zip(parts, sizes, strict=True)
            ]
        count = max(1, ceil(edges[-1] / self.longest * (1 - 1e-12)))
        length = edges[-1] / count
        n_powers, found = self.n_powers(length), list[Stretch]()
        carry = poisson_weights(np.array([length * self.rate]), n_powers)[0]
        for index in range(count):
            inside = np.clip(edges - index * length, 0.0, length)
            used = np.flatnonzero(inside[1:] > inside[:-1])
            first, last = int(used[0]), int(used[-1]) + 1
            limits = inside[first : last + 1] * self.rate
            table = poisson_integrals(limits[:-1], limits[1:], n_powers)
            found.append(Stretch(first, table, carry))
        return found


class Stretch(NamedTuple):
    """The series of one stretch of time, from its end that is nearest to the readout."""

    #: First of the pulses that the stretch covers, the latest one being 0.
    first: int
    #: Weight of Mʲ in the responses to the pulses, (n_pulses, n_powers).
    table: np.ndarray
    #: Weight of Mʲ in the propagator over the stretch, (n_powers,).
    carry: np.ndarray


def poisson_weights(times: np.ndarray, n_powers: int) -> np.ndarray:
    """Return p_j(s) = e⁻ˢ sʲ/j! of times s below 700, (n_times, n_powers)."""
    ratios = times[:, None] / np.arange(1, n_powers)
    first = np.ones((len(times), 1))
    return np.exp(-times)[:, None] * np.cumprod(np.hstack([first, ratios]), axis=1)


def poisson_integrals(low: np.ndarray, high: np.ndarray, n_powers: int) -> np.ndarray:
    """Return ∫ p_j(s) ds from low to high, (n_intervals, n_powers)."""
    powers = np.arange(1.0, n_powers + 1)
    found = _gammainc(powers, high[:, None]) - _gammainc(powers, low[:, None])
    # Differences of short intervals would lose digits.
    short = np.flatnonzero(high - low < 1)
    nodes, weights = gauss(_NODES)
    span = (high - low)[short, None]
    at = low[short, None] + span * nodes
    values = poisson_weights(at.ravel(), n_powers).reshape(*at.shape, n_powers)
    found[short] = span * np.tensordot(values, weights, axes=(1, 0))
    return found


def _growth(product: Product) -> tuple[float, ...]:
    """Return the logarithm of the growth of random vectors by the powers of M."""
    n = product.n_rows
    x = np.random.default_rng(0).standard_normal((n, max(1, min(30, _PROBES // n))))
    found, total = [0.0], np.zeros(x.shape[1])
    for _ in range(_PROBED):
        x = product.matrix @ (x / np.linalg.norm(x, axis=0))
        sizes = np.linalg.norm(x, axis=0)
        if not sizes.all():  # nilpotent weights
            break
        total = total + np.log(sizes)
        found.append(float(total.max()))
    return tuple(found) if len(found) > 1 else (0.0, -1.0)


def normal_parts(
    M: Any,
) -> tuple[np.ndarray, Any, np.ndarray, np.ndarray] | None:
    """Return the blocks of a sparse normal matrix in small parts; None for all others.

    The results are as of `normal_modes`, for one matrix and with a sparse basis.
    """
    n_neurons = int(M.shape[0])
    x = np.random.default_rng(0).standard_normal(n_neurons)
    back = M.T
    one, other = np.asarray(M @ (back @ x)), np.asarray(back @ (M @ x))
    if not np.linalg.norm(one - other) <= _NORMAL * np.linalg.norm(other):
        return None
    found: list[tuple[np.ndarray, ...]] = []
    start = 0
    # A normal matrix has no connections between its strongly connected parts.
    for neurons, parts in connected(M, _NORMAL_PART):
        if is_sparse(parts):
            return None
        each = _plain_blocks(parts) or _blocks_of_each(parts)
        if each is None:
            return None
        numbers, bases, first, planes = each
        columns = start + np.arange(neurons.size).reshape(len(neurons), 1, -1)
        places = np.broadcast_arrays(neurons[:, :, None], columns)
        rows, columns = (one.ravel() for one in places)
        found.append((numbers, first + start, planes, bases.ravel(), rows, columns))
        start += neurons.size
    joined = map(np.concatenate, zip(*found, strict=True))
    numbers, first, planes, entries, rows, columns = joined
    make: Any = csr_array
    basis = make((entries, (rows, columns)), shape=(n_neurons, n_neurons))
    return numbers, basis, first, planes


def _plain_blocks(parts: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the blocks of single neurons or of pairs [[a, −b], [b, a]], else None."""
    n_parts, n = len(parts), int(parts.shape[1])
    turns = parts[:, 0, 0] == parts[:, -1, -1], parts[:, 0, -1] == -parts[:, -1, 0]
    if n > 2 or (n == 2 and not np.all(turns)):
        return None
    numbers = parts[:, 0, 0] + 1j * (parts[:, 1, 0] if n == 2 else 0.0)
    bases = np.tile(np.eye(n), (n_parts, 1, 1))
    return numbers, bases, n * np.arange(n_parts), np.full(n_parts, n == 2)


def _blocks_of_each(parts: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the blocks of normal matrices one by one, or None if one has none."""
    made: list[tuple[np.ndarray, ...]] = []
    for index, part in enumerate(parts):
        blocks = normal_modes([part])
        if blocks is None:
            return None
        (numbers,), basis, first, planes = blocks
        made.append((numbers, basis, first + index * len(part), planes))
    return tuple(np.concatenate(one) for one in zip(*made, strict=True))


@dataclass(frozen=True, eq=False)
class RingModes:
    """The `greenfold.systems.NormalModes` of circulant weights: Fourier modes."""

    responses: np.ndarray
    n_neurons: int

    def vectors(self, coordinates: np.ndarray) -> np.ndarray:
        """Return real vectors (n_neurons, …) from complex coordinates (n_blocks, …)."""
        waves = np.arange(len(coordinates))
        pairs = (waves > 0) & (2 * waves < self.n_neurons)
        sizes = np.where(pairs, np.sqrt(2), 1.0)
        turned = coordinates.T / sizes
        return np.fft.irfft(turned, self.n_neurons, axis=-1, norm="ortho").T


@dataclass(frozen=True, eq=False)
class PowerMap(HasArrays):
    """A block matrix of power series in M that acts on rows from the right.

    Block (i, k) is (Σ_j c_jik Mʲ B)ᵀ, with ``weights`` c (n_powers, n_in, n_out) and a
    first factor B: None for 1, a diagonal (N,) or a `Product`.
    """

    flow: Flow
    weights: Any
    first: Any = None
    #: Whether this is the transpose of the matrix.
    turned: bool = False

    __array_ufunc__ = None
    #: Memory per row that a product holds, in states.
    n_working = 2.0 * _TOGETHER

    @property
    def most_rows(self) -> int:
        """Number of rows to multiply at a time on the host."""
        return cached_rows(self.flow.M.n_rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and of columns."""
        n = self.flow.M.n_rows
        n_in, n_out = int(self.weights.shape[1]), int(self.weights.shape[2])
        return (n_out * n, n_in * n) if self.turned else (n_in * n, n_out * n)

    @property
    def T(self) -> PowerMap:
        """The transpose."""
        return PowerMap(self.flow, self.weights, self.first, not self.turned)

    def __matmul__(self, columns: Array) -> Any:
        xp = namespace(columns)
        if columns.ndim == 1:
            return (columns[None, :] @ self.T)[0, :]
        return xp.matrix_transpose(xp.matrix_transpose(columns) @ self.T)

    def __rmatmul__(self, rows: Array) -> Any:
        xp, n = namespace(rows), self.flow.M.n_rows
        flat = xp.reshape(rows, (-1, rows.shape[-1]))
        # (block, neuron, row)
        by_block = xp.reshape(xp.matrix_transpose(flat), (-1, n, flat.shape[0]))
        if self.turned:
            found = self._first(self._series(by_block), back=True)
        else:
            found = self._series(self._first(by_block, back=False))
        made = xp.matrix_transpose(xp.reshape(found, (-1, flat.shape[0])))
        return xp.reshape(made, (*rows.shape[:-1], -1))

    def _first(self, blocks: Array, *, back: bool) -> Any:
        if self.first is None:
            return blocks
        xp = namespace(blocks)
        if not isinstance(self.first, Product):
            return blocks * xp.reshape(self.first, (1, -1, 1))
        matrix = self.first.transposed if back else self.first.matrix
        each = [matrix @ contiguous(blocks[i, ...]) for i in range(blocks.shape[0])]
        return xp.stack(each)

    def _series(self, x: Array) -> Any:
        """Return Σ_j c_jik Mʲ x_i for blocks x (n_in, N, n_rows)."""
        xp, weights = namespace(x), self.weights
        M = self.flow.M.transposed if self.turned else self.flow.M.matrix
        if self.turned:
            weights = xp.permute_dims(weights, (0, 2, 1))
        n_powers, n_in, n_out = weights.shape
        n, n_rows = x.shape[1:]
        if n_in <= n_out:  # powers of x
            columns = contiguous(xp.reshape(xp.permute_dims(x, (1, 0, 2)), (n, -1)))
            found = zeros((n_out, n * n_rows), x)
            for js, block in _power_blocks(M, columns, n_powers):
                by_input = xp.reshape(block, (-1, n, n_in, n_rows))
                stacked = xp.reshape(
                    xp.permute_dims(by_input, (0, 2, 1, 3)), (-1, n * n_rows)
                )
                mix = xp.reshape(weights[js, ...], (-1, n_out))
                found += xp.matrix_transpose(mix) @ stacked
            return xp.reshape(found, (n_out, n, n_rows))
        flat, y = xp.reshape(x, (n_in, n * n_rows)), zeros((n, n_out * n_rows), x)
        for stop in range(n_powers, 0, -_TOGETHER):  # Horner's rule
            js = slice(max(0, stop - _TOGETHER), stop)
            mix = xp.permute_dims(weights[js, ...], (0, 2, 1))
            made = xp.reshape(mix, (-1, n_in)) @ flat
            made = xp.reshape(made, (-1, n_out, n, n_rows))
            made = xp.reshape(xp.permute_dims(made, (0, 2, 1, 3)), (-1, n, n_out * n_rows))
            for j in range(made.shape[0] - 1, -1, -1):
                y = M @ y
                y += made[j, ...]
        return xp.permute_dims(xp.reshape(y, (n, n_out, n_rows)), (1, 0, 2))


def _power_blocks(M: Any, x: Array, n_powers: int) -> Iterator[tuple[slice, Any]]:
    """Yield stacks of a few successive powers Mʲ x of columns x (N, k)."""
    xp, size = namespace(x), int(x.shape[0]) * int(x.shape[1])
    together = max(4, min(_TOGETHER, CACHED // (8 * size)))
    for start in range(0, n_powers, together):
        stop, made = min(start + together, n_powers), list[Any]()
        for j in range(start, stop):
            x = M @ x if j else x
            made.append(x)
        yield slice(start, stop), xp.stack(made)


def power_panel(
    network: Reservoir | EchoStateNetwork,
    flow: Flow,
    length: float,
    n_nodes: int,
    order: int,
) -> Panel:
    """Return a panel like `propagators.build`, whose matrices are series in M."""
    if flow.rate is None:
        unit = np.ones((1, 1, 1))
        E = PowerMap(flow, np.array([0.0, 1.0])[:, None, None])
        return Panel(length, E, PowerMap(flow, unit, flow.scale), nodes=np.empty(0))
    assert isinstance(network, Reservoir)
    span, n_powers = length * flow.rate, flow.n_powers(length)
    nodes, weights = gauss(n_nodes)

    def carried(times: np.ndarray) -> np.ndarray:
        """Return the series of E at some times, (n_powers, n_times)."""
        return poisson_weights(times * span, n_powers).T

    def pushed(times: np.ndarray) -> np.ndarray:
        return poisson_integrals(np.zeros(len(times)), times * span, n_powers).T

    end, drive = np.ones(1), flow.scale
    parts: dict[str, Any] = {
        "E": PowerMap(flow, carried(end)[:, None]),
        "F": PowerMap(flow, pushed(end)[:, None], drive),
    }
    if order:
        scaled = Product.of(scaled_rows(length / network.tau, network.weights))
        # E(length − s_j) is E at the mirrored node.
        source = (carried(nodes[::-1]) * weights)[:, :, None]
        parts["E_nodes"] = PowerMap(flow, carried(nodes)[:, None])
        parts["F_nodes"] = PowerMap(flow, pushed(nodes)[:, None], drive)
        parts["S"] = PowerMap(flow, source, scaled)
        if order >= 2:  # weight of the source at node i in the state at node k
            mixes = node_mixes(nodes, weights, 1.0)
            each = [carried(times) @ mix for times, mix in mixes]
            parts["B"] = PowerMap(flow, np.stack(each, axis=2), scaled)
    grid: dict[str, Any] = {"nodes": nodes * length, "order": order}
    coefficients = at_nodes(network, n_nodes) if order else (0.0,)
    return Panel(length, coefficients=coefficients, **grid, **parts)


class PowerOrder(LinearOrder):
    """The linear network along one plan, whose maps are sums of powers of M.

    All maps cost products of sparse matrices and a few columns; what they hold in memory is
    the columns and the result. Vectors are arrays of the library and on the device of the
    matrix M, or NumPy arrays, which go there and come back; weights d of the steps are
    always NumPy arrays. ``host`` is the order on the host, if this is a copy of it.
    """

    def __init__(
        self,
        plan: StepPlan[Panel],
        n_steps: int,
        flow: Flow,
        host: PowerOrder | None = None,
    ) -> None:
        super().__init__(plan, n_steps)
        self.flow, self._n_products, self._host = flow, 0, host

    @property
    def n_products(self) -> int:
        """Number of columns that were multiplied by M."""
        return self._n_products

    def on(self, reference: Array) -> PowerOrder:
        """Return the same object with its matrices on the device of ``reference``."""
        dtype = namespace(reference).float64
        plan, flow = self.plan.on(reference, dtype), self.flow.on(reference, dtype)
        return self if plan is self.plan else PowerOrder(plan, self.n_steps, flow, self)

    def beside(self, series: Array) -> LinearSystem:
        """Return the same system, with its products on the GPU of the series, if any."""
        return self.on(series) if on_gpu(series) else self

    def there(self, columns: Array) -> Any:
        """Return NumPy columns on the device of M, and others as they are."""
        reference = self.plan.step.nodes
        if not is_host(columns) or is_host(reference):
            return columns
        return like(np.ascontiguousarray(columns), reference)

    @cached_property
    def _powers(self) -> list[Any]:
        return [self.plan.step.E]  # no powers of E: each costs the products of E again

    @cached_property
    def _stretches(self) -> list[Stretch]:
        plan = self.plan
        steps = np.arange(plan.n_whole + 1) * (plan.step.length * plan.n_sub)
        if plan.tail is not None:
            steps = np.append(0.0, steps + plan.tail.length * plan.n_tail)
        return self.flow.stretches(steps)

    def _in_order(self, table: Array) -> Any:
        """Turn responses by time since the pulse into responses by time of the pulse.

        The map is self-adjoint.
        """
        if self.plan.tail is not None:
            return namespace(table).flip(table, axis=0)
        return self.read(table)

    def walk(self, x: Array, *, back: bool) -> Iterator[tuple[int, slice, Any]]:
        """Yield powers (n_powers, N, k) of columns x (N, k) in each stretch."""
        M = self.flow.M.transposed if back else self.flow.M.matrix
        xp, shape = namespace(x), x.shape
        for index, part in enumerate(self._stretches):
            carried = None
            if index + 1 < len(self._stretches):
                carried = zeros((int(shape[0]) * int(shape[1]),), x)
            self._n_products += (len(part.carry) - 1) * int(shape[1])
            for js, block in _power_blocks(M, x, len(part.carry)):
                yield index, js, block
                if carried is not None:
                    flat = xp.reshape(block, (block.shape[0], -1))
                    carried += like(part.carry[js].copy(), x) @ flat
            if carried is not None:
                x = xp.reshape(carried, shape)

    def summed(self, mixes: Callable[[int, slice], Any], x: Array, *, back: bool) -> Any:
        """Return Σ_p E_p Σ_j Mʲ x_pj by Horner's rule, from the farthest stretch on.

        E_p carries over the stretches before p, and ``mixes(p, js)`` returns x_pj of some
        powers, (n_powers, N, k).
        """
        M = self.flow.M.transposed if back else self.flow.M.matrix
        y: Any = None
        for index in range(len(self._stretches) - 1, -1, -1):
            part, farther, y = self._stretches[index], y, None
            for stop in range(len(part.carry), 0, -_TOGETHER):
                js = slice(max(0, stop - _TOGETHER), stop)
                made = mixes(index, js)
                for j in range(stop - 1, js.start - 1, -1):
                    ahead = made[j - js.start, ...]
                    if farther is not None and part.carry[j]:
                        ahead = ahead + float(part.carry[j]) * farther
                    y = ahead if y is None else M @ y + ahead
            self._n_products += (len(part.carry) - 1) * int(x.shape[-1])
        return y

    def responses(self, u: Array) -> Any:
        """Return the states read after a unit pulse in each step, (read_steps, C, N)."""
        found = self._by_pulse(self.flow.driven(self.there(u)), back=False)
        return to_host(found) if is_host(u) else found

    def _by_pulse(self, x: Array, *, back: bool) -> Any:
        """Return G_n x or its adjoint for columns x (N, k), as (read_steps, k, N)."""
        xp, (n, k) = namespace(x), x.shape
        found = zeros((self.plan.read_steps, int(n) * int(k)), x)
        for index, js, block in self.walk(contiguous(x), back=back):
            part = self._stretches[index]
            mix = like(np.ascontiguousarray(part.table[:, js]), x)
            flat = xp.reshape(block, (block.shape[0], -1))
            found[part.first : part.first + len(part.table), :] += mix @ flat
        by_pulse = xp.reshape(found, (-1, n, k))
        return xp.permute_dims(self._in_order(by_pulse), (0, 2, 1))

    def responses_adjoint(self, bar: Array) -> Any:
        """Return the gradient by u (N, C) from the cotangent of `responses`."""
        xp = namespace(bar)
        n_channels, n = bar.shape[1:]
        by_pulse = xp.permute_dims(self._in_order(bar), (0, 2, 1))
        flat = contiguous(xp.reshape(by_pulse, (by_pulse.shape[0], -1)))

        def mixes(index: int, js: slice) -> Any:
            part = self._stretches[index]
            mix = like(np.ascontiguousarray(part.table[:, js].T), bar)
            found = mix @ flat[part.first : part.first + len(part.table), :]
            return xp.reshape(found, (-1, n, n_channels))

        return self.flow.driven(self.summed(mixes, xp.empty((1, n_channels)), back=True))

    def readout_response(self, v: Array) -> Any:
        """Return L_v (n_steps, N) for v (N,), or (n_steps, N, r) for v (N, r)."""
        columns = self.there(v if v.ndim == 2 else v[:, None])
        xp = namespace(columns)
        rows = xp.permute_dims(self._by_pulse(columns, back=True), (0, 2, 1))
        found = zeros((self.n_steps, *rows.shape[1:]), columns)
        for step in range(rows.shape[0]):
            found[step, ...] = self.flow.driven(rows[step, ...])
        found = to_host(found) if is_host(v) else found
        return found if v.ndim == 2 else found[..., 0]

    def response_sum(self, d: np.ndarray) -> PowerSum:
        """Return G(d) for weights d (n_channels, n_steps) of the steps."""
        by_pulse = self._in_order(np.ascontiguousarray(d[:, : self.plan.read_steps].T)).T
        weights = [
            by_pulse[:, part.first : part.first + len(part.table)] @ part.table
            for part in self._stretches
        ]
        return PowerSum(self, weights)

    @cached_property
    def _modes(self) -> NormalModes | None:
        """The modes of circulant weights, or of small parts that are normal."""
        if self._host is not None:
            return self._host.modes()
        scale, M = self.flow.scale, self.flow.M.matrix
        if scale is not None and (scale != scale[0]).any():
            return None
        column = circulant_column(M)
        if column is not None:
            waves = np.fft.rfft(column)
            return RingModes(self._modal(waves), len(column))
        found = normal_parts(M)
        if found is None:
            return None
        numbers, *basis = found
        return BlockModes(self._modal(numbers), *basis)

    def _modal(self, numbers: np.ndarray) -> np.ndarray:
        """Return γ (n_steps, n_blocks) from the complex numbers of M in its blocks."""
        rate = self.flow.rate
        drive = 1.0 if self.flow.scale is None else float(self.flow.scale[0])

        def step(length: float) -> tuple[np.ndarray, np.ndarray]:
            if rate is None:
                return numbers, np.full(len(numbers), drive, dtype=complex)
            return modal_step((numbers - 1) * rate, rate * drive, length)

        return self.modal(step)

    def reduced(self, v: Array, u: Array) -> Any:
        """Return vᵀ G_n u (n_steps, a, b) for v (N, a) and u (N, b)."""
        given, v, u = u, self.there(v), self.there(u)
        xp, back = namespace(u), v.shape[1] < u.shape[1]
        start, end = (v, self.flow.driven(u)) if back else (self.flow.driven(u), v)
        found = zeros((self.plan.read_steps, int(end.shape[1]) * int(start.shape[1])), u)
        across = contiguous(xp.matrix_transpose(end))
        walked = self.walk(contiguous(start), back=back) if found.shape[1] else ()
        for index, js, block in walked:
            part = self._stretches[index]
            met = xp.stack([across @ block[j, ...] for j in range(block.shape[0])])
            mix = like(np.ascontiguousarray(part.table[:, js]), u)
            flat = xp.reshape(met, (block.shape[0], -1))
            found[part.first : part.first + len(part.table), :] += mix @ flat
        shape = self.plan.read_steps, end.shape[1], start.shape[1]
        by_step = self._in_order(xp.reshape(found, shape))
        made = zeros((self.n_steps, *shape[1:]), u)
        made[: shape[0], ...] = by_step
        made = xp.matrix_transpose(made) if back else made
        return to_host(made) if is_host(given) else made


class PowerSum:
    """The sum G(d) = Σ_n d_n G_n as a series in M, a `greenfold.systems.ResponseSum`."""

    def __init__(self, order: PowerOrder, weights: list[np.ndarray]) -> None:
        # The weights of the powers of M in each stretch have shape (n_channels, n_powers).
        self._order, self._weights = order, weights

    def matrix(self) -> None:
        """Return None: the matrix is never formed."""
        return

    def drive(self, u: Array) -> Any:
        """Return the states (N, r) for u (N, n_channels, r)."""
        given, u = u, self._order.there(u)
        xp, (n, n_channels, r) = namespace(u), u.shape
        pushed = self._order.flow.driven(u)
        flat = contiguous(xp.reshape(xp.permute_dims(pushed, (1, 0, 2)), (n_channels, -1)))

        def mixes(index: int, js: slice) -> Any:
            mix = like(np.ascontiguousarray(self._weights[index][:, js].T), u)
            return xp.reshape(mix @ flat, (-1, n, r))

        found = self._order.summed(mixes, u, back=False)
        return to_host(found) if is_host(given) else found

    def pull(self, v: Array) -> Any:
        """Return G(d)ᵀ v as (N, n_channels), or (N, n_channels, r) for v (N, r)."""
        columns = self._order.there(v if v.ndim == 2 else v[:, None])
        xp, (n, r) = namespace(columns), columns.shape
        found = zeros((len(self._weights[0]), int(n) * int(r)), columns)
        for index, js, block in self._order.walk(contiguous(columns), back=True):
            mix = like(np.ascontiguousarray(self._weights[index][:, js]), columns)
            found += mix @ xp.reshape(block, (block.shape[0], -1))
        made = xp.permute_dims(xp.reshape(found, (-1, n, r)), (1, 0, 2))
        made = self._order.flow.driven(made)
        made = to_host(made) if is_host(v) else made
        return made if v.ndim == 2 else made[..., 0]
