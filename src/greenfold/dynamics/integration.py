"""The full network as a system: integrated to a tolerance, with exact gradients.

`Unfolding` expands the network; `Dynamics` integrates it. Its only error comes from the
sub-steps and is measured. It computes the states that many separate stimuli leave. In a
`DrivenNetwork`, a single state continues: for a stream that is read as it arrives, or a
loop closed through the readout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from .._base import checks as check
from .._base.arrays import Array, batches, like, namespace, on_gpu, to_host
from .._base.threads import with_few_threads
from ..networks.echo_state import EchoStateNetwork, thinned
from ..networks.gains import Gain
from ..networks.reservoir import Reservoir
from ..systems import Divergence, System
from ..unfolding.linear import LinearOrder
from ..unfolding.propagators import StepPlan, make_plan
from ..unfolding.unfolding import Unfolding, unfold
from ..unfolding.walk import Walk, checked_cotangent
from .steppers import LeakyStep, TrueStep, make_step

#: Numbers of series to measure the error on: of the largest series, and of other series.
_N_LARGEST, _N_OTHERS = 8, 8
#: Share of `tol` allowed for the measured series, because other series may have larger
#: errors; and the largest number of sub-steps.
_MARGIN, _MAX_SUBSTEPS = 0.5, 256
#: Long sub-steps may diverge even if the network does not. If the length of a sub-step
#: times the fastest rate is below this, divergence is accepted if halved sub-steps diverge
#: at the same place.
_TRUSTED_REACH = 0.05
#: Number of steps whose inputs are projected in one product.
_BLOCK = 4096
#: A sparse product with one state pays off for sparse networks of at least this size.
_SPARSE_NEURONS = 300
#: Relative difference of two states below which the network has forgotten. States are only
#: as precise as a sum over neurons.
_FORGOTTEN = 1e-5


@dataclass(frozen=True)
class StepError:
    """The result of a comparison with halved sub-steps.

    Attributes
    ----------
    n_sub : int
        Number of sub-steps per step of the stimulus.
    error : float
        Largest error of a neuron at the end of any step, relative to the largest state of
        the measured series, estimated by the difference from halved sub-steps.
    series : tuple of int
        Indices of the measured series.
    """

    n_sub: int
    error: float
    series: tuple[int, ...]


class Dynamics(System):
    """The true dynamics of a network, integrated to a tolerance, with exact gradients.

    It integrates τ ẏ = −y + W φ(y) + b + u x(t) (equation 1, `eom_network`). An echo state
    network is run step by step, without error. States are deviations from the
    resting state of the network. ``X`` and ``u`` have the shapes of `Unfolding`. Batches
    run in the array namespace and on the device of ``X``, in float32 if that is its dtype,
    else in float64, and in bounded memory.

    Parameters
    ----------
    reservoir : Reservoir or EchoStateNetwork
        The network, with any gain.
    n_steps, dt, readout
        As in `unfold`.
    tol : float, optional
        Largest error of a state, relative to the largest state; 1e-6 by default. It
        determines the number of sub-steps per step, by a comparison with halved sub-steps
        for the largest series and some others. With float32 stimuli, the error is at least
        their rounding error. An echo state network takes none.
    start : array_like (n_neurons,), optional
        Initial state of every series, not relative to rest; the resting state by default.
        Other simulators start at zero, ``np.zeros(n_neurons)``.

    Attributes
    ----------
    reservoir, n_steps, dt, duration, readout, n_neurons, n_inputs, n_outputs, maps
        As in `Unfolding`.
    linear : Unfolding
        The network for small states: the unfolding of order 0 with the same readout.
    tol : float
    step_error : StepError or None
        Sub-steps and error of the last call; None before the first call.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import Dynamics, Gain, Reservoir
    >>> reservoir = Reservoir.random(50, gain=Gain.biased_tanh(0.5), rng=0)
    >>> dynamics = Dynamics(reservoir, n_steps=20, dt=0.5)
    >>> X = np.random.default_rng(1).standard_normal((3, 20))
    >>> dynamics.states(X, np.ones(50) / np.sqrt(50)).shape
    (3, 50)
    >>> dynamics.step_error.error < 1e-6
    True
    """

    def __init__(
        self,
        reservoir: Reservoir | EchoStateNetwork,
        *,
        n_steps: int,
        dt: float | None = None,
        readout: ArrayLike | None = None,
        tol: float | None = None,
        start: ArrayLike | None = None,
    ) -> None:
        exact = tol is not None and isinstance(reservoir, EchoStateNetwork)
        check.without_effect(exact, "tol", "in discrete time, which has no error")
        tol = check.positive(1e-6 if tol is None else tol, "tol")
        # This checks the other arguments, and gives the linear order.
        linear = unfold(reservoir, n_steps=n_steps, dt=dt, readout=readout)
        self._set(linear, tol, _checked_start(start, reservoir), {})

    def _set(
        self,
        linear: Unfolding,
        tol: float,
        start: np.ndarray | None,
        steps: dict[float, TrueStep],
    ) -> Dynamics:
        self.linear, self.reservoir = linear, linear.reservoir
        self.n_steps, self.dt, self.duration = linear.n_steps, linear.dt, linear.duration
        self.n_neurons = self.n_inputs = self.n_outputs = linear.n_neurons
        self.readout, self.tol, self._start = linear.readout, tol, start
        self.step_error: StepError | None = None
        self._discrete = isinstance(linear.reservoir, EchoStateNetwork)
        #: Steps by their length, shared by all readouts and tolerances; plans by number of
        #: sub-steps.
        self._steps, self._plans = steps, dict[int, StepPlan[TrueStep]]()
        return self

    def __repr__(self) -> str:
        grid = f"n_steps={self.n_steps}, dt={self.dt:g}, tol={self.tol:g}"
        return f"Dynamics({self.reservoir!r}, {grid})"

    @property
    def is_linear(self) -> bool:
        """Whether the gain is linear and every series starts at rest."""
        return self.reservoir.gain.is_linear and self._start is None

    @property
    def maps(self) -> LinearOrder:
        """The three maps of the linear order, which give an ascent its start."""
        return self.linear.maps

    @property
    def degree(self) -> int | None:
        """1 for a linear gain; None otherwise, because states are no polynomials then."""
        return 1 if self.is_linear else None

    def with_readout(self, readout: ArrayLike) -> Dynamics:
        """Return the same network with another ``readout``, as in `unfold`."""
        linear = self.linear.with_readout(readout)
        return object.__new__(Dynamics)._set(linear, self.tol, self._start, self._steps)

    def with_tol(self, tol: float) -> Dynamics:
        """Return the same network with another tolerance."""
        tol = check.positive(tol, "tol")
        return object.__new__(Dynamics)._set(self.linear, tol, self._start, self._steps)

    @cached_property
    def quadratic(self) -> Unfolding | None:
        """Order 1 of the network, its gain cut after the square, to start an optimiser.

        It is None in discrete time, or if the gain has no quadratic part at rest, like tanh
        at zero.
        """
        network = None if self._discrete else _up_to_the_square(self.reservoir)
        if network is None:
            return None
        made = unfold(network, n_steps=self.n_steps, dt=self.dt, order=1)
        return made.with_readout(self.readout)

    def _plan(self, n_sub: int) -> StepPlan[TrueStep]:
        """Return the plan with ``n_sub`` sub-steps per step."""

        def step(length: float) -> tuple[TrueStep, int]:
            length /= n_sub
            if length not in self._steps:
                self._steps[length] = make_step(self.reservoir, length)
            return self._steps[length], n_sub

        if n_sub not in self._plans:
            when = self.linear.readout_weights, self.linear.readout_time
            self._plans[n_sub] = make_plan(step, self.dt, *when, start=self._start)
        return self._plans[n_sub]

    def _stimuli(self, X: ArrayLike | Array) -> Any:
        """Return ``X`` as real numbers (n_cases, n_channels, n_steps)."""
        found = check.stimuli(check.present(X), self.n_steps)
        xp = namespace(found)
        real = xp.isdtype(found.dtype, "real floating")
        return found if real else xp.astype(found, xp.float64)

    def _inputs(self, X: ArrayLike | Array, u: ArrayLike) -> tuple[Any, np.ndarray]:
        found = self._stimuli(X)
        return found, check.input_projection(u, self.n_neurons, found.shape[1])

    def _planned(
        self, X: Array, u: np.ndarray, known: int = 0, n_sub: int | None = None
    ) -> StepPlan[TrueStep]:
        """Return the plan with given sub-steps, or one within the tolerance for X and u."""
        if n_sub is not None:
            fits = n_sub == 1 or not self._discrete
            check.must(fits, "n_sub", "be 1 in discrete time", n_sub)
            return self._plan(check.count(n_sub, "n_sub"))
        if self._discrete:  # a map has no sub-steps and no error
            self.step_error = StepError(1, 0.0, ())
        else:
            self.step_error = plan_substeps(self._plan, X, u, self.tol, known=known)
        return self._plan(self.step_error.n_sub)

    @with_few_threads(lambda self: self.n_neurons)
    def states(
        self,
        X: ArrayLike | Array,
        u: ArrayLike,
        *,
        trajectories: bool = False,
        n_sub: int | None = None,
    ) -> Any:
        """Return the network states at the readout.

        Parameters
        ----------
        X, u, trajectories
            As in `Unfolding.states`.
        n_sub : int, optional
            Number of sub-steps to take, whatever the error. The state of a series then does
            not depend on the other series.

        Returns
        -------
        array (n_cases, n_neurons)
            With ``trajectories``: (n_cases, n_steps, n_neurons).

        Raises
        ------
        FloatingPointError
            If the network diverges; the message names the series and the step.
        """
        every = self.with_readout(np.ones(self.n_steps)) if trajectories else self
        series, projection = self._inputs(X, u)
        walk = Walk(every._planned(series, projection, n_sub=n_sub), series, projection)
        if n_sub is None:
            self.step_error = every.step_error
        return walk.trajectories() if trajectories else walk.states

    @with_few_threads(lambda self: self.n_neurons)
    def pullback(
        self,
        X: ArrayLike | Array,
        u: ArrayLike,
        cotangent: ArrayLike | Array,
        v: ArrayLike | None = None,
        *,
        n_sub: int | None = None,
    ) -> Any:
        """Return the gradient with respect to the projections, by the adjoint.

        This is the exact gradient of the result of `states` for the same ``X`` and ``u``.

        Parameters
        ----------
        X, u, n_sub
            As in `states`.
        cotangent, v
            As in `Unfolding.pullback`.

        Returns
        -------
        u_gradient : array, shaped like ``u``
            In float64, like every sum over series.
        v_gradient : array (n_neurons,)
            Only with ``v``.
        """
        series, projection = self._inputs(X, u)
        bar, readout = checked_cotangent(cotangent, series, self.n_neurons, v)
        walk = Walk(self._planned(series, projection, n_sub=n_sub), series, projection)
        u_bar, v_bar = walk.pullback(bar, readout)
        u_bar = namespace(u_bar).reshape(u_bar, np.shape(u))
        return u_bar if readout is None else (u_bar, v_bar)

    def prepare(self, X: ArrayLike | Array, *, washout: int | None = None) -> Prepared:
        """Prepare to compute the states of the same stimuli at many projections.

        The first projection determines the number of sub-steps. It is kept, because states
        must not jump during an optimisation. The method ``settle(u)`` of the result tells
        whether the number suffices for another projection.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        washout : int, optional
            Read every step after this many steps, instead of the readout of the system.
            States and cotangents then have shape (n_steps − washout, n_cases, n_neurons).

        Returns
        -------
        Prepared
            A callable that takes u and returns an object with ``states`` and
            ``pullback(cotangent, v)``.
        """
        return Prepared(self._planned, self._stimuli(X), self.n_neurons, washout)


class Prepared:
    """The states and gradients of fixed stimuli at many u; see `Dynamics.prepare`."""

    def __init__(
        self,
        make: Callable[[Array, np.ndarray, int], StepPlan[TrueStep]],
        X: Array,
        n_neurons: int,
        washout: int | None,
    ) -> None:
        self._make, self._X, self._washout = make, X, washout
        self._n_neurons = n_neurons
        self._plan: StepPlan[TrueStep] | None = None

    @property
    def n_sub(self) -> int | None:
        """Return the number of sub-steps per step, or None before the first projection."""
        return None if self._plan is None else self._plan.n_sub

    def __call__(self, u: ArrayLike, scale: float | None = None) -> Walk:
        """Return the states at u, with their pullback.

        ``scale`` multiplies the weights of an echo state network that rests at zero. The
        pullback then also gives the derivative by its logarithm, ``scale_bar``.
        """
        if self._plan is None:
            self.settle(u)
        try:
            return self._walk(u, scale)
        except Divergence:
            # Long sub-steps may diverge even if the network does not.
            if self.settle(u):
                raise
            return self._walk(u, scale)

    def _projection(self, u: ArrayLike) -> np.ndarray:
        return check.input_projection(u, self._n_neurons, self._X.shape[1])

    def _walk(self, u: ArrayLike, scale: float | None) -> Walk:
        plan = self._plan
        assert plan is not None
        if scale is not None:
            assert isinstance(plan.step, LeakyStep)
            plan = replace(plan, step=plan.step.scaled(scale))
        given = plan, self._X, self._projection(u)
        walk = Walk(*given, keep=True, by_scale=scale is not None)
        _ = walk.states  # raises if it diverges
        return walk

    def settle(self, u: ArrayLike) -> bool:
        """Return whether the sub-steps meet the tolerance at u; if not, change them."""
        before = self.n_sub
        plan = self._make(self._X, self._projection(u), before or 0)
        if self._washout is not None:
            weights = (np.arange(self._X.shape[2]) >= self._washout).astype(float)
            plan = StepPlan(plan.step, plan.n_sub, weights, start=plan.start, every=True)
        self._plan = plan
        return before == plan.n_sub


def _checked_start(
    start: ArrayLike | None, network: Reservoir | EchoStateNetwork
) -> np.ndarray | None:
    """Return the initial state as a deviation from rest, or None if it is at rest."""
    if start is None:
        return None
    state, shape = check.host_array(start, "start", ndim=(1,)), (network.n_neurons,)
    wanted = f"have one entry per neuron, shape {shape}"
    check.must(state.shape == shape, "start", wanted, f"shape {state.shape}")
    deviation = state - network.rest
    return deviation if deviation.any() else None


def _up_to_the_square(reservoir: Reservoir) -> Reservoir | None:
    """Return the network with its gain cut after two Taylor coefficients at rest."""
    gain = reservoir.gain
    if gain.kind is not None and "degree" in gain.parameters:
        # The function and the resting state stay the same; only the series is cut.
        gain = Gain.of_kind(gain.kind, {**gain.parameters, "degree": 2})
    elif not reservoir.rest.any():
        gain = Gain.polynomial((0.0, *gain.coefficients[1:3]))
    network = replace(reservoir, gain=gain)
    found = network.coefficients
    return network if len(found) == 3 and np.any(found[2]) else None


def plan_substeps(
    make: Callable[[int], StepPlan[TrueStep]],
    X: Array,
    u: np.ndarray,
    tol: float,
    *,
    known: int = 0,
) -> StepError:
    """Find a number of sub-steps, near the smallest, with an error below ``tol``.

    ``make`` turns a number of sub-steps into a `StepPlan` on the host. ``known`` is a
    number that sufficed at another u: it is kept if it suffices here, and increased
    otherwise. The order of the method predicts how many sub-steps are needed, until the
    measured error agrees.

    Raises
    ------
    ValueError
        If more than 256 sub-steps per step would be needed.
    Divergence
        If the network diverges with short sub-steps too.
    """
    least = 1e3 * np.finfo(np.float64).eps
    wanted = f"be at least {least:.1g}, below which rounding hides the error of a step"
    check.must(tol >= least, "tol", wanted, f"{tol:g}")
    probe = _Probe(make, X, u)
    if known and (error := probe.error(known)) <= tol:
        return StepError(known, error, probe.series)
    n_sub = known + 1
    while True:
        error, fine = probe.error(n_sub), probe.ends(2 * n_sub)
        if isinstance(fine, Divergence) and probe.is_real(n_sub, fine):
            raise fine
        if error <= _MARGIN * tol:
            return StepError(n_sub, error, probe.series)
        wanted = 2.0 * n_sub
        if np.isfinite(error):
            order = make(n_sub).step.accuracy
            wanted = n_sub * (error / (_MARGIN * tol)) ** (1 / order)
        # Predictions far from the asymptotic regime are unreliable, so increase the number
        # at most eightfold.
        n_next = min(8 * n_sub, max(n_sub + 1, ceil(min(wanted, 1e9))))
        if n_next > _MAX_SUBSTEPS:
            if isinstance(fine, Divergence):
                raise fine
            raise ValueError(
                f"`tol` = {tol:g} needs more than {_MAX_SUBSTEPS} sub-steps per step of "
                f"the stimulus (the error is {error:.2g} with {n_sub} of them); "
                "shorten `dt`, or raise `tol`."
            )
        n_sub = n_next


class _Probe:
    """The measured series in float64, run with any number of sub-steps.

    Series on a GPU stay there: for 20,000 neurons with 2 million connections, the products
    for 16 series of 70 steps would take a host 20 s.
    """

    def __init__(
        self, make: Callable[[int], StepPlan[TrueStep]], X: Array, u: np.ndarray
    ) -> None:
        self.series = tuple(probe_series(X).tolist())
        chosen = np.stack([to_host(X[i, ...]) for i in self.series]).astype(np.float64)
        self._X = like(chosen, X) if on_gpu(X) else chosen
        self._make, self._u = make, u
        self._known: dict[int, np.ndarray | Divergence] = {}

    def ends(self, n_sub: int) -> np.ndarray | Divergence:
        """Return the states at the ends of the steps, or where they diverge."""
        if n_sub not in self._known:
            walk = Walk(self._make(n_sub), self._X, self._u)
            try:
                self._known[n_sub] = to_host(walk.trajectories(careful=True))
            except Divergence as error:
                self._known[n_sub] = Divergence(error.step, self.series[error.series])
        return self._known[n_sub]

    def error(self, n_sub: int) -> float:
        """Return the relative error by halved sub-steps; see `StepError`."""
        coarse, fine = self.ends(n_sub), self.ends(2 * n_sub)
        if isinstance(coarse, Divergence) or isinstance(fine, Divergence):
            return np.inf
        scale = float(np.abs(fine).max())
        if scale == 0:
            return 0.0
        halved = 2.0 ** self._make(n_sub).step.accuracy
        richardson = halved / (halved - 1)
        return richardson * float(np.abs(coarse - fine).max()) / scale

    def is_real(self, n_sub: int, fine: Divergence) -> bool:
        """Return whether sub-steps twice as long, but short, diverge at the same place."""
        coarse = self.ends(n_sub)
        return (
            isinstance(coarse, Divergence)
            and (coarse.step, coarse.series) == (fine.step, fine.series)
            and self._make(n_sub).step.reach <= _TRUSTED_REACH
        )


def probe_series(X: Array) -> np.ndarray:
    """Return the indices of the series to measure on, in increasing order."""
    n_cases = X.shape[0]
    if n_cases <= _N_LARGEST + _N_OTHERS:
        return np.arange(n_cases)
    xp, norms = namespace(X), list[np.ndarray]()
    # Read X in parts, because it may be mapped from a file larger than memory.
    for part in batches(n_cases, 16.0 * X.shape[1] * X.shape[2]):
        values = check.finite_batch(X[part, ...], xp, part.start)
        norms.append(to_host(xp.sum(values * values, axis=(1, 2))))
    return probe_of_norms(np.concatenate(norms))


def probe_of_norms(norms: np.ndarray) -> np.ndarray:
    """Return the same indices as `probe_series`, from the squared norms of the series.

    They are the eight series with the largest norms (n_cases,), and eight others.
    """
    if len(norms) <= _N_LARGEST + _N_OTHERS:
        return np.arange(len(norms))
    by_norm = np.argsort(norms, kind="stable")
    largest, others = by_norm[-_N_LARGEST:], by_norm[:-_N_LARGEST]
    spread = others[np.linspace(0, len(others) - 1, _N_OTHERS).round().astype(int)]
    return np.sort(np.concatenate([largest, spread]))


@dataclass(frozen=True, eq=False)
class DrivenNetwork:
    """A network driven through fixed input weights.

    Parameters
    ----------
    network : Reservoir or EchoStateNetwork
    weights : ndarray (n_neurons, n_channels)
        Input weights, at their full size.
    bias : ndarray (n_neurons,)
        A constant input, in addition to the bias of the network.
    dt : float
        Length of a step in continuous time.
    n_sub : int
        Number of sub-steps per step in continuous time.
    n_seen : int
        Number of last inputs in the state, which follow the neurons, the latest first.
    """

    network: Reservoir | EchoStateNetwork
    weights: np.ndarray
    bias: np.ndarray
    dt: float = 1.0
    n_sub: int = 1
    n_seen: int = 0

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.network.n_neurons

    @property
    def n_states(self) -> int:
        """Length of the state: the neurons, and the channels of the inputs seen."""
        return self.n_neurons + self.n_seen * self.weights.shape[1]

    def rest(self) -> np.ndarray:
        """Return the state at rest, after inputs of zero, (n_states,)."""
        return np.zeros(self.n_states)

    @cached_property
    def _step(self) -> TrueStep:
        return make_step(thinned(self.network), self.dt / self.n_sub)

    @cached_property
    def _input_map(self) -> np.ndarray:
        """The map from inputs and a constant to pushes, (n_channels + 1, width)."""
        return self._step.input_map(np.column_stack([self.weights, self.bias]))

    @cached_property
    def _weights(self) -> Any:
        """Weights for products with one state."""
        W: Any = self.network.weights
        small = sparse.issparse(W) or self.n_neurons < _SPARSE_NEURONS
        return W if small else thinned(self.network).weights

    def advance(self, states: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return states (n_lanes, n_states) one step after x (n_lanes, n_channels)."""
        push = x @ self._input_map[:-1] + self._input_map[-1]
        y, seen = states[:, : self.n_neurons], states[:, self.n_neurons :]
        for _ in range(self.n_sub):
            y = self._step.advance(y, push)
        return self._joined(y, x, seen)

    def _joined(self, y: np.ndarray, x: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Return the states with x as the latest of the inputs seen."""
        if not self.n_seen:
            return y
        return np.concatenate([y, x, seen[:, : seen.shape[1] - x.shape[1]]], axis=1)

    def advance_tangents(
        self, state: np.ndarray, x: np.ndarray, dstates: np.ndarray, dx: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a state one step after x, and the tangents there.

        Tangents of the state have shape (n_tangents, n_states), and those of the input
        (n_tangents, n_channels).
        """
        n = self.n_neurons
        push = (x @ self._input_map[:-1] + self._input_map[-1])[None]
        y, dy, dpush = state[None, :n], dstates[:, :n], dx @ self._input_map[:-1]
        for _ in range(self.n_sub):
            slopes: list[np.ndarray] = []
            y = self._step.advance(y, push, slopes)
            dy = self._step.push_forward(dy, dpush, slopes)
        ahead = self._joined(y, x[None], state[None, n:])
        return ahead[0], self._joined(dy, dx, dstates[:, n:])

    def run(self, x: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Return states (n_steps, n_states) along inputs (n_steps, n_channels)."""
        n, width = self.n_neurons, x.shape[1]
        found = np.empty((len(x), self.n_states))
        y = state[:n]
        for start in range(0, len(x), _BLOCK):
            part = slice(start, start + _BLOCK)
            push = x[part] @ self._input_map[:-1] + self._input_map[-1]
            discrete = isinstance(self._step, LeakyStep)
            walk = self._run_discrete if discrete else self._run_continuous
            y = walk(push, y, found[part, :n])
        before = state[n:].reshape(-1, width)[::-1]
        line = np.concatenate([before, x]) if self.n_seen else x
        for lag in range(self.n_seen):
            first = self.n_seen - lag
            seen = slice(n + lag * width, n + (lag + 1) * width)
            found[:, seen] = line[first : first + len(x)]
        return found

    def _run_continuous(
        self, push: np.ndarray, y: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        step, rows = self._step, y[None]
        for index in range(len(push)):
            for _ in range(self.n_sub):
                rows = step.advance(rows, push[index : index + 1])
            out[index] = rows[0]
        return rows[0]

    def _run_discrete(self, push: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
        step, W = self._step, self._weights
        assert isinstance(step, LeakyStep)
        for index in range(len(push)):
            p = W @ y
            p += push[index]
            ahead = step.change.value(p) * step.leak
            ahead += step.keep * y
            out[index] = y = ahead
        return y

    def memory(
        self,
        x: np.ndarray,
        tol: float = _FORGOTTEN,
        n_lanes: int = 32,
        states: np.ndarray | None = None,
    ) -> int:
        """Return the number of steps after which the network has forgotten its state.

        It is measured on inputs x (n_steps, n_channels), because a driven network often
        forgets much faster than the same network near rest. Copies of the network start at
        rest at ``n_lanes`` points of the series. They agree with the network driven all
        along when the root mean squared difference of the states is below ``tol`` times
        their standard deviation. If the network does not forget, the result is half of the
        steps. It is at least the number of inputs in the state. ``states`` are those along
        x, if they are known.
        """
        states = self.run(x, self.rest()) if states is None else states
        states = states[:, : self.n_neurons]
        if self.n_seen:
            alone = replace(self, n_seen=0)
            return max(alone.memory(x, tol, n_lanes, states), self.n_seen)
        longest = max(len(x) // 2, 1)
        begins = np.unique(np.linspace(1, len(x) - longest, n_lanes).astype(int))
        spread = float(states.std()) or 1.0
        lanes = np.zeros((len(begins), self.n_neurons))
        for index in range(longest):
            lanes = self.advance(lanes, x[begins + index])
            error = np.sqrt(np.mean((lanes - states[begins + index]) ** 2))
            if error <= tol * spread:
                return index + 1
        return longest
