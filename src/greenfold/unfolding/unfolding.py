"""The network unfolded to a chosen order, as a system of `greenfold.systems`.

States and gradients of many stimuli are computed in the cheaper of two ways: a `Walk`
carries every case through the network; `StateKernels` are computed once and applied to
every case.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, like, namespace
from .._base.printing import Shown
from .._base.threads import with_few_threads
from ..networks.echo_state import EchoStateNetwork
from ..networks.matrices import by_products, dense
from ..networks.reservoir import Reservoir
from ..systems import ResponseSum, System
from .kernels import (
    Kernel,
    ReadoutKernels,
    StateKernels,
    state_kernels,
    table_bytes,
)
from .linear import LinearOrder
from .propagators import (
    Panel,
    StepPlan,
    build,
    build_map,
    make_plan,
    plan_quadrature,
    plan_readout,
)
from .sparse import Flow, PowerOrder, power_panel
from .walk import Walk, checked_cotangent

#: Largest size of a table of kernels, in bytes; larger tables are not formed.
TABLE_BYTES = 2**30


@with_few_threads(lambda reservoir: reservoir.n_neurons)
def unfold(
    reservoir: Reservoir | EchoStateNetwork,
    *,
    n_steps: int,
    dt: float | None = None,
    order: int = 0,
    readout: ArrayLike | None = None,
    tol: float | None = None,
) -> Unfolding:
    """Return the feed-forward map from stimuli to states that a reservoir computes.

    The stimuli have ``n_steps`` steps of length ``dt`` and are constant during each step.
    The states are expanded in the non-linearity (paper, equation 9, `rate-series`).

    Parameters
    ----------
    reservoir : Reservoir or EchoStateNetwork
        The network to unfold. States are deviations from its resting state.
    n_steps : int
        Number of steps K of the stimuli.
    dt : float
        Length Δ of a step, in the unit of ``reservoir.tau``; 1 by default in discrete time.
    order : int
        Order of the expansion in the non-linearity: 0 is the linear network, 1 is the
        paper's O(α), and any higher order works. Discrete time has only order 0.
    readout : None, float or array_like (n_steps,)
        When the state is read: at the end T = KΔ (None), at a time in (0, T], or as a
        weighted sum over the ends of the steps (time-integrated readout).
    tol : float, optional
        Tolerated relative error of the quadrature inside a step (`plan_quadrature`), from
        order 1 on; 1e-10 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import Gain, Reservoir, unfold
    >>> reservoir = Reservoir.random(50, gain=Gain.quadratic(0.05), rng=0)
    >>> unfolding = unfold(reservoir, n_steps=20, dt=0.5, order=1)
    >>> X = np.random.default_rng(1).standard_normal((3, 20))
    >>> unfolding.states(X, np.ones(50) / np.sqrt(50)).shape
    (3, 50)
    """
    discrete = isinstance(reservoir, EchoStateNetwork)
    kinds, wanted = Reservoir | EchoStateNetwork, "be a Reservoir or an EchoStateNetwork"
    check.instance(reservoir, kinds, "reservoir", wanted)
    n_steps = check.count(n_steps, "n_steps")
    dt = check.positive(1.0 if dt is None and discrete else dt, "dt")
    order = check.count(order, "order", minimum=0)
    check.without_effect(tol is not None and not order, "tol", "at order 0")
    tol = check.positive(1e-10 if tol is None else tol, "tol")
    gain = reservoir.gain
    expands = not discrete and len(reservoir.coefficients) > 2
    check.without_effect(order > 0 and gain.is_linear, "order", "for a linear gain")
    if order and not expands:
        why = f"needs Taylor coefficients, but the gain {gain.name} has only its slope"
        if discrete:
            why = "is not available in discrete time, which is unfolded at order 0"
        raise ValueError(
            f"`order` = {order} {why}; use `Dynamics`, which runs the network itself."
        )
    flow = Flow.of(reservoir) if by_products(reservoir.weights) else None
    panel, n_panels = _panels(reservoir, flow, dt, order, tol)
    grid = n_steps, dt, order, tol, np.eye(1, n_steps, n_steps - 1)[0], None
    found = Unfolding(reservoir, *grid, panel, n_panels, flow)
    return found if readout is None else found.with_readout(readout)


def _panels(
    network: Reservoir | EchoStateNetwork,
    flow: Flow | None,
    length: float,
    order: int,
    tol: float,
) -> tuple[Panel, int]:
    """Return a panel of a step of some length, and the number of panels per step."""
    if isinstance(network, EchoStateNetwork):
        if flow is not None:
            return power_panel(network, flow, length, 0, 0), 1
        E, push = network.linear_step
        return build_map(dense(E, "dense steps", "use `Dynamics`"), push, length), 1
    n_panels, n_nodes = plan_quadrature(network, length, order, tol)
    if flow is not None:
        n_panels = max(n_panels, ceil(length / flow.longest))
        return power_panel(network, flow, length / n_panels, n_nodes, order), n_panels
    matrices = n_nodes * (3 + (n_nodes if order >= 2 else 0))
    needed = 8.0 * network.n_neurons**2 * matrices
    size = f"{needed / 2**30:.1f} GiB of propagators for {network.n_neurons} neurons"
    problem = f"`order` = {order} needs {size}; lower `order`, or raise `tol`."
    check.require(needed <= 8 * TABLE_BYTES, problem, MemoryError)
    return build(network, length / n_panels, n_nodes, order), n_panels


@dataclass(frozen=True, eq=False, repr=False)
class Unfolding(System, Shown):
    """A reservoir unfolded into a feed-forward map from stimuli to states; see `unfold`.

    Stimuli ``X`` have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps); the input
    projection ``u`` has shape (n_neurons,) or (n_neurons, n_channels). Batch work runs in
    float64 in the array namespace and on the device of ``X``.

    In addition to the arguments of `unfold`, an unfolding has ``readout_weights``
    (n_steps,), the weights of the states at the ends of the steps in the readout, and
    ``readout_time``, the time of a readout inside a step, or None.
    """

    reservoir: Any
    n_steps: int
    dt: float
    order: int
    tol: float
    readout_weights: np.ndarray
    readout_time: float | None
    _panel: Panel = field(repr=False)
    _n_panels: int = field(repr=False)
    #: What to multiply with in place of propagators, for a large sparse network.
    _flow: Flow | None = field(repr=False)
    #: Number of neurons N: rows of the input projection, and entries of the readout.
    n_neurons: int = field(init=False)
    n_inputs: int = field(init=False)
    n_outputs: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("n_neurons", "n_inputs", "n_outputs"):
            object.__setattr__(self, name, self._panel.n_neurons)

    def _facts(self) -> dict[str, Any]:
        weighted = np.flatnonzero(self.readout_weights)
        time = self.readout_time
        if time is None and len(weighted) > 1:
            read = f"weighted over {len(weighted)} steps"
        else:
            read = f"at {(weighted[0] + 1) * self.dt if time is None else time:.4g}"
        facts = {"reservoir": self.reservoir, "steps": self.n_steps, "dt": self.dt}
        return facts | {"order": self.order, "read": read}

    def __getstate__(self) -> dict[str, Any]:
        # Leave out cached parts, which would take most of the space.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def duration(self) -> float:
        """Duration T = KΔ of the stimuli."""
        return self.n_steps * self.dt

    @property
    def is_linear(self) -> bool:
        """Whether this is the linear order."""
        return self.order == 0

    @property
    def degree(self) -> int:
        """Degree of the states as polynomials of the stimulus."""
        return self.order * (len(self.reservoir.coefficients) - 2) + 1 if self.order else 1

    @property
    def readout(self) -> float | np.ndarray:
        """Readout in the form that `with_readout` takes."""
        return self.readout_weights if self.readout_time is None else self.readout_time

    @cached_property
    def linear(self) -> Unfolding:
        """The same unfolding at order 0."""
        return self if self.order == 0 else replace(self, order=0)

    @property
    def maps(self) -> LinearOrder:
        """The three maps of order 0 for the optimisers, without checks of arguments."""
        return self._maps

    @cached_property
    def _maps(self) -> LinearOrder:
        if self._flow is not None:
            return PowerOrder(self._plan, self.n_steps, self._flow)
        return LinearOrder(self._plan, self.n_steps)

    @cached_property
    def _plan(self) -> StepPlan[Panel]:
        whole = replace(self._panel, order=self.order), self._n_panels

        def panels(length: float) -> tuple[Panel, int]:
            if length == self.dt:
                return whole
            return _panels(self.reservoir, self._flow, length, self.order, self.tol)

        return make_plan(panels, self.dt, self.readout_weights, self.readout_time)

    def with_readout(self, readout: ArrayLike) -> Unfolding:
        """Return the same unfolding with another ``readout``; see `unfold`."""
        weights, time = plan_readout(readout, self.n_steps, self.dt)
        if time is not None and isinstance(self.reservoir, EchoStateNetwork):
            wanted = f"be a multiple of the step {self.dt:g} in discrete time"
            check.must(False, "readout", wanted, f"{time:g}, inside a step")
        return replace(self, readout_weights=weights, readout_time=time)

    def at_order(self, order: int, *, tol: float | None = None) -> Unfolding:
        """Return the same unfolding at another order and, if given, another ``tol``."""
        tol = self.tol if tol is None and order else tol
        grid = {"n_steps": self.n_steps, "order": order}
        made = unfold(self.reservoir, dt=self.dt, tol=tol, **grid)
        return made.with_readout(self.readout)

    def _inputs(self, X: ArrayLike | Array, u: ArrayLike) -> tuple[Any, np.ndarray]:
        series = check.stimuli(check.present(X), self.n_steps)
        return series, check.input_projection(u, self.n_neurons, series.shape[1])

    @property
    def has_kernels(self) -> bool:
        """Whether states are at most quadratic in the stimulus, so that `kernels` exist."""
        return not self.order or (self.order, len(self.reservoir.coefficients)) == (1, 3)

    def _require_kernels(self) -> None:
        wanted = "be 0, or 1 with a quadratic gain, to give kernels (or use `states`)"
        gain = self.reservoir.gain.name
        got = f"{self.order} with the gain {gain}, which gives terms beyond the square"
        check.must(self.has_kernels, "order", wanted, got)

    def _require_memory(self, what: str, needed: float) -> None:
        gib = f"{needed / 2**30:.3g} GiB, more than the {TABLE_BYTES / 2**30:g} GiB allowed"
        size = f"{self.n_neurons} neurons and {self.n_steps} steps"
        advice = "use `states`, `kernels` and `pullback`, which never form it"
        problem = f"{what} of {size} would need {gib}; {advice}."
        check.require(needed <= TABLE_BYTES, problem, MemoryError)

    def has_kernels_of_all(self, n_channels: int = 1) -> bool:
        """Return whether `kernels_of_all` exists for this order and readout, and fits."""
        if self.order == 0 or self._flow is not None:
            return self.order == 0
        needed = table_bytes(self._plan.read_steps, self.n_neurons, n_channels)
        return self.has_kernels and self._plan.tail is None and needed <= TABLE_BYTES

    def prefers_kernels(self, n_cases: int, n_channels: int = 1) -> bool:
        """Return whether kernels of all neurons are cheaper than stepping ``n_cases``.

        The comparison counts multiplications. Stepping takes 2 (q + 1) N² per case and
        panel. The kernels take (K C)²/2 · N per case, after (K C)²/2 · (q + 1) N² once.
        """
        if self.order == 0:
            width = self._plan.read_steps * n_channels
            return self._flow is None or 8.0 * self.n_neurons * width <= TABLE_BYTES
        if not self.has_kernels_of_all(n_channels):
            return False
        n, plan = self.n_neurons, self._plan
        per_step = (len(plan.step.nodes) + 1) * n * plan.n_sub
        pairs = (plan.read_steps * n_channels) ** 2 / 2
        by_kernels = pairs * n * (n_cases + per_step)
        return by_kernels < n_cases * plan.read_steps * 2 * per_step * n

    def kernels_of_all(self, u: ArrayLike, reference: Array | None = None) -> StateKernels:
        """Return the kernels of all neurons for one u (orders 0 and 1).

        They are on the device of ``reference``, or on the host if it is None.
        """
        self._require_kernels()
        if self.order and self._plan.tail is not None:
            wanted = "be the end of a step for the kernels of all neurons beyond order 0"
            check.must(False, "readout", wanted, "a time inside a step, use `states`")
        projection = check.input_projection(u, self.n_neurons)
        if self.order:
            needed = table_bytes(self._plan.read_steps, *projection.shape)
            self._require_memory("the kernels of all neurons", needed)
        if reference is None:
            return state_kernels(self.maps, projection)
        return state_kernels(self.maps.on(reference), like(projection, reference))

    @with_few_threads(lambda self: self.n_neurons)
    def states(
        self,
        X: ArrayLike | Array,
        u: ArrayLike,
        *,
        trajectories: bool = False,
        orders: bool = False,
    ) -> Any:
        """Return the network states at the readout, (n_cases, n_neurons).

        They are the sum of all orders (paper, equations 3 and 9, `solution_linear_Greens`,
        `rate-series`).

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        u : array_like (n_neurons,) or (n_neurons, n_channels)
        trajectories : bool
            Return the states at the end of every step, (n_cases, n_steps, n_neurons).
        orders : bool
            Return the orders 0 … ``order`` separately, on one more leading axis.
        """
        series, projection = self._inputs(X, u)
        xp = namespace(series)
        if not trajectories and self.prefers_kernels(*series.shape[:2]):
            found = self.kernels_of_all(projection, series).states(series, orders=orders)
        else:
            every = self.with_readout(np.ones(self.n_steps)) if trajectories else self
            walk = Walk(every._plan, series, projection, dtype=xp.float64, orders=orders)
            found = walk.trajectories() if trajectories else walk.states
        problem = f"the states of order {self.order} exceed the range of floats"
        finite = bool(xp.all(xp.isfinite(found)))
        check.require(finite, f"{problem}; scale `X` or `u` down.", OverflowError)
        return found

    @with_few_threads(lambda self: self.n_neurons)
    def pullback(
        self,
        X: ArrayLike | Array,
        u: ArrayLike,
        cotangent: ArrayLike | Array,
        v: ArrayLike | None = None,
    ) -> Any:
        """Return the gradient with respect to the projections, by the adjoint method.

        For any function L of the states Y = ``states(X, u)``, pass ``cotangent`` = ∂L/∂Y
        and get ∂L/∂u. For a function of the readout z = Y v, pass v and ``cotangent`` =
        ∂L/∂z and get (∂L/∂u, ∂L/∂v). The cost is about twice that of `states`, in bounded
        memory.

        Parameters
        ----------
        X, u
            As in `states`; the gradient has the shape of ``u``.
        cotangent : array (n_cases, n_neurons), or (n_cases,) with ``v``
        v : array_like (n_neurons,), optional
        """
        series, projection = self._inputs(X, u)
        bar, readout = checked_cotangent(cotangent, series, self.n_neurons, v)
        if self.prefers_kernels(*series.shape[:2]):
            kernels = self.kernels_of_all(projection, series)
            u_bar, v_bar = kernels.gradients(series, bar, readout)
        else:
            walk = Walk(self._plan, series, projection, dtype=namespace(series).float64)
            u_bar, v_bar = walk.pullback(bar, readout)
        u_bar = namespace(u_bar).reshape(u_bar, np.shape(u))
        return u_bar if readout is None else (u_bar, v_bar)

    @with_few_threads(lambda self: self.n_neurons)
    def kernels(self, u: ArrayLike, v: ArrayLike) -> Kernel:
        """Collapse the reservoir with projections u and v into one `Kernel`.

        It contracts G⁽¹⁾ and G⁽²⁾ (paper, equations 3 and 12, `solution_linear_Greens`,
        `G2-general`) with u and v.
        """
        projection = check.input_projection(u, self.n_neurons)
        found = self.readout_kernels(v).at(projection)
        quadratic = None if found.C is None else np.ascontiguousarray(found.C)
        return Kernel(np.ascontiguousarray(found.a), quadratic)

    def readout_kernels(self, v: ArrayLike) -> ReadoutKernels:
        """Return the kernels of one readout as a function of u (orders 0 and 1)."""
        self._require_kernels()
        return ReadoutKernels(self.maps, check.readout_vector(v, self.n_neurons))

    def input_response(self, u: ArrayLike) -> np.ndarray:
        """Return the linear response Rᵤ to one u, (n_channels · n_steps, n_neurons).

        The state of the linear network is ``x.ravel() @ input_response(u)``.
        """
        return self.maps.input_response(check.input_projection(u, self.n_neurons))

    def readout_response(self, v: ArrayLike) -> np.ndarray:
        """Return the linear response L_v of a readout: row n is l_n with a_n = l_n · u.

        It has shape (n_steps, n_neurons) and is zero after the readout. Several v add an
        axis.
        """
        vectors = check.host_array(v, "v", ndim=(1, 2))
        check.readout_vector(vectors.reshape(len(vectors), -1)[:, 0], self.n_neurons)
        return self.maps.readout_response(vectors)

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """Return G(d) = Σ_n d_n G⁽¹⁾_n for weights d (n_channels, n_steps) of the steps."""
        return self.maps.response_sum(d)

    def greens1(self) -> np.ndarray:
        """Return the first-order Green's function, binned (equation 2, `Greensfunction`).

        Entry [n, i, p] is the state of neuron i at the readout after unit input to neuron p
        in step n.
        """
        n = self.n_neurons
        self._require_memory("G⁽¹⁾", 8.0 * self.n_steps * n**2)
        response = self.maps.input_response(np.eye(n)).reshape(n, self.n_steps, n)
        return np.ascontiguousarray(response.transpose(1, 2, 0))

    def greens2(self) -> np.ndarray:
        """Return the second-order Green's function, binned (equation 12, `G2-general`).

        For small networks only: it has N³ K² entries. Entry [i, p, q, n, m], α included, is
        the coefficient of x_n x_m u_p u_q in the state of neuron i; it is symmetric under
        (p, n) ↔ (q, m).
        """
        n, k = self.n_neurons, self.n_steps
        wanted = "be 1, with a quadratic gain, to give G⁽²⁾"
        check.must(self.order, "order", wanted, "0, a linear network")
        self._require_kernels()
        # The kernels and the result are in memory at the same time.
        self._require_memory("G⁽²⁾", 8.0 * 3.5 * n**3 * k**2)
        _, pairs = self.kernels_of_all(np.eye(n)).full()
        # With one channel per neuron, the axes are (p, n, q, m, i).
        return pairs.reshape(n, k, n, k, n).transpose(4, 0, 2, 1, 3)
