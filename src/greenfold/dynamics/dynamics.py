"""The network itself as a system: integrated to a tolerance, and differentiated.

`Dynamics` stands beside `Unfolding`. What one unfolds the other integrates, so nothing is
expanded and nothing left out but the error of the sub-steps, which is measured.

The same stimuli at one projection after the other, with one number of sub-steps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from .._base import checks as check
from .._base.arrays import like, namespace
from .._base.threads import rows_of, with_few_threads
from ..networks.echo_state import EchoStateNetwork
from ..networks.gains import Gain
from ..networks.reservoir import Reservoir
from ..unfolding.greens_sum import LinearOrder
from ..unfolding.unfolding import Unfolding, unfold
from . import batch
from .step_control import StepError, plan_substeps, probe_of_norms, probe_series, step_error
from .steppers import Excess, exponential_step, leaky_step
from .walk import Course, Stepper, make_course


class Planner(Protocol):
    """Finds the course that keeps to a tolerance."""

    def __call__(self, X: Any, u: np.ndarray, at_least: int) -> Course:
        """The course with at least so many sub-steps."""
        ...


class Prepared:
    """States and gradients for an optimiser.

    An optimiser compares projections, so it must not see the sub-steps change between
    them: they are found at the first projection and kept. `settle` looks at the error
    where the optimiser has arrived.

    Parameters
    ----------
    plan : Planner
    check : callable
        Brings u into the shape (n_neurons, n_channels).
    X : array (n_cases, n_channels, n_steps)
        Checked. In single precision, so is the work.
    """

    def __init__(self, plan: Planner, check: Callable[[Any], np.ndarray], X: Any) -> None:
        self._plan, self._check, self._X = plan, check, X
        self._course: Course | None = None

    @property
    def n_sub(self) -> int | None:
        """Sub-steps of a step; None before the first projection."""
        return None if self._course is None else self._course.n_sub

    def __call__(self, u: Any) -> batch.Linearization:
        """States at u, with the way back from them."""
        u = self._check(u)
        if self._course is None:
            self._course = self._plan(self._X, u, 0)
        try:
            return batch.Linearization(self._course, self._X, u)
        except batch.Divergence:
            # Long sub-steps may diverge where the network does not.
            if self.settle(u):
                raise
            return batch.Linearization(self._course, self._X, u)

    def settle(self, u: Any) -> bool:
        """Whether the sub-steps keep to the tolerance at u too; if not, they now do."""
        before = self._course
        at_least = 0 if before is None else before.n_sub
        self._course = self._plan(self._X, self._check(u), at_least)
        return before is not None and self._course.n_sub == before.n_sub


class Dynamics:
    """The true dynamics τ ẏ = −y + W φ(y) + b + u x(t) (equation 1, `eom_network`).

    An echo state network is run as it is, step by step and without an error. States are
    deviations from the rest state of the network.

    Stimuli ``X`` have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), the
    input projection ``u`` shape (n_neurons,) or (n_neurons, n_channels). Batch work runs in
    the array namespace and on the device of ``X``, in float32 if that is its dtype, else in
    float64, and in bounded memory.

    Parameters
    ----------
    reservoir : Reservoir or EchoStateNetwork
        With any gain.
    n_steps : int
        Number of steps K of the stimuli.
    dt : float
        Length Δ of a step, in the unit of ``reservoir.tau``. Of a network in discrete time
        a step is a step, 1 by default.
    readout : None, float or array_like (n_steps,)
        When the state is read: at the end T = KΔ (None), at a time in (0, T], or as a
        weighted sum over the ends of the steps (time-integrated readout).
    tol : float
        Error allowed to a state, relative to the largest one. From it follows, for the
        stimuli and the projection at hand, the number of sub-steps in a step: the largest
        series and some others are run with halved sub-steps to compare with. Stimuli in
        float32 do not come closer than their rounding.
    start : array_like (n_neurons,), optional
        The state in which every series begins, not counted from rest; at rest by default.
        Other simulators begin at zero, ``np.zeros(n_neurons)``.

    Attributes
    ----------
    step_error : StepError or None
        Sub-steps and error of the last call; None before the first.

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
        readout: Any = None,
        tol: float = 1e-6,
        start: Any = None,
    ) -> None:
        self.tol = check.positive(tol, "tol")
        # It checks the other arguments, and has the linear order.
        linear = unfold(reservoir, n_steps=n_steps, dt=dt, readout=readout)
        self._start = _checked_start(start, reservoir)
        self._set(linear, {})

    def _set(self, linear: Unfolding, steps: dict[float, Stepper]) -> None:
        self._linear, self._steps = linear, steps
        self._courses: dict[int, Course] = {}
        self.step_error: StepError | None = None
        self._discrete = isinstance(linear.reservoir, EchoStateNetwork)

    def __repr__(self) -> str:
        return (
            f"Dynamics({self.reservoir!r}, n_steps={self.n_steps}, dt={self.dt:g}, "
            f"tol={self.tol:g})"
        )

    @property
    def reservoir(self) -> Any:
        """The network."""
        return self._linear.reservoir

    @property
    def n_steps(self) -> int:
        """Steps of the stimuli."""
        return self._linear.n_steps

    @property
    def dt(self) -> float:
        """Length of a step."""
        return self._linear.dt

    @property
    def duration(self) -> float:
        """T = KΔ."""
        return self._linear.duration

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self._linear.n_neurons

    @property
    def n_inputs(self) -> int:
        """Rows of the input projection: the neurons."""
        return self.n_neurons

    @property
    def n_outputs(self) -> int:
        """Entries of the readout: the neurons."""
        return self.n_neurons

    @property
    def readout(self) -> Any:
        """The time of the readout, or the weights of the step ends."""
        return self._linear.readout

    @property
    def is_linear(self) -> bool:
        """Whether the gain is linear, and every series begins at rest."""
        return self.reservoir.gain.is_linear and self._start is None

    @property
    def degree(self) -> int | None:
        """1 for a linear gain; otherwise states are no polynomials of the stimulus."""
        return 1 if self.is_linear else None

    @property
    def linear(self) -> Unfolding:
        """The network at small states: the unfolding of order 0 with the same readout."""
        return self._linear

    @property
    def maps(self) -> LinearOrder:
        """The three maps of the linear order, from which an ascent starts."""
        return self._linear.maps

    def with_readout(self, readout: Any) -> Dynamics:
        """The same network read at another time, or integrated over time.

        Parameters
        ----------
        readout : float or array_like (n_steps,)
        """
        made = object.__new__(Dynamics)
        made.tol, made._start = self.tol, self._start
        made._set(self._linear.with_readout(readout), self._steps)
        return made

    def with_tol(self, tol: float) -> Dynamics:
        """The same network integrated to another tolerance.

        Parameters
        ----------
        tol : float
        """
        made = object.__new__(Dynamics)
        made.tol, made._start = check.positive(tol, "tol"), self._start
        made._set(self._linear, self._steps)
        return made

    @property
    def quadratic(self) -> Unfolding | None:
        """Order 1 of the gain up to its square at rest, a start for an optimiser.

        None where the gain has no quadratic part there, as tanh at zero, which is odd, and
        in discrete time.
        """
        network = None if self._discrete else _up_to_the_square(self.reservoir)
        if network is None:
            return None
        return unfold(
            network, n_steps=self.n_steps, dt=self.dt, order=1, readout=self.readout
        )

    def _step(self, length: float) -> Stepper:
        if length not in self._steps:
            self._steps[length] = _make_step(self.reservoir, length)
        return self._steps[length]

    def _course(self, n_sub: int) -> Course:
        if n_sub not in self._courses:
            linear = self._linear
            self._courses[n_sub] = make_course(
                self._step,
                linear.dt,
                n_sub,
                weights=linear.readout_weights,
                time=linear.readout_time,
                start=self._start,
            )
        return self._courses[n_sub]

    def _stimuli(self, X: Any) -> Any:
        X = check.stimuli(check.present(X), self.n_steps)
        xp = namespace(X)
        floating = xp.isdtype(X.dtype, "real floating")
        return X if floating else xp.astype(X, xp.float64)

    def _inputs(self, X: Any, u: Any) -> tuple[Any, np.ndarray]:
        X = self._stimuli(X)
        return X, check.input_projection(u, self.n_neurons, X.shape[1])

    def _planned(self, X: Any, u: np.ndarray, at_least: int = 0) -> Course:
        """The course that keeps to the tolerance for these stimuli and this projection."""
        if self._discrete:  # a map has no sub-steps, and does not err
            self.step_error = StepError(1, 0.0, ())
            return self._course(1)
        error = np.inf
        if at_least:
            with suppress(batch.Divergence):  # with shorter sub-steps it may not
                error = step_error(self._course, X, u, at_least)
        if error <= self.tol:
            found = StepError(at_least, error, tuple(probe_series(X).tolist()))
        else:
            found = plan_substeps(self._course, X, u, self.tol, start=at_least + 1)
        self.step_error = found
        return self._course(found.n_sub)

    @with_few_threads(rows_of)
    def states(
        self, X: Any, u: Any, *, trajectories: bool = False, n_sub: int | None = None
    ) -> Any:
        """Network states at the readout.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        u : array_like (n_neurons,) or (n_neurons, n_channels)
        trajectories : bool
            Return the states at the end of every step instead of the readout.
        n_sub : int, optional
            Sub-steps to take, whatever the error, so that the state of a series does not
            depend on the others.

        Returns
        -------
        array (n_cases, n_neurons)
            With ``trajectories``: (n_cases, n_steps, n_neurons).

        Raises
        ------
        FloatingPointError
            Where the network diverges, naming the series and the step.
        """
        whole = self.with_readout(np.ones(self.n_steps)) if trajectories else self
        X, projection = self._inputs(X, u)
        if n_sub is None:
            course = whole._planned(X, projection)
            self.step_error = whole.step_error
        else:
            course = whole._course(check.count(n_sub, "n_sub"))
        walk = batch.trajectories if trajectories else batch.states
        return walk(course, X, projection)

    @with_few_threads(rows_of)
    def pullback(
        self, X: Any, u: Any, cotangent: Any, v: Any = None, *, n_sub: int | None = None
    ) -> Any:
        """Gradient with respect to the projections, by the adjoint of the integrator.

        For any function L of the states Y = ``states(X, u)``, give ``cotangent`` =
        ∂L/∂Y and get ∂L/∂u. For a function of the readout z = Y v, give v and
        ``cotangent`` = ∂L/∂z and get (∂L/∂u, ∂L/∂v). It is the exact gradient of what
        `states` computes for the same ``X`` and ``u``.

        Parameters
        ----------
        X, u
            As in `states`.
        cotangent : array (n_cases, n_neurons), or (n_cases,) with ``v``
        v : array_like (n_neurons,), optional
        n_sub : int, optional
            As in `states`.

        Returns
        -------
        u_gradient : array, shaped like ``u``
            In float64, as every sum over series.
        v_gradient : array (n_neurons,)
            Only with ``v``.
        """
        X, projection = self._inputs(X, u)
        readout = None if v is None else check.readout_vector(v, self.n_neurons)
        wanted = (X.shape[0],) if readout is not None else (X.shape[0], self.n_neurons)
        host = check.host_array(cotangent, "cotangent")
        if host.shape != wanted:
            raise ValueError(
                f"`cotangent` must have shape {wanted}; got shape {host.shape}."
            )
        if n_sub is None:
            course = self._planned(X, projection)
        else:
            course = self._course(check.count(n_sub, "n_sub"))
        u_bar, v_bar = batch.pullback(course, X, projection, like(host, X), readout)
        if np.ndim(u) == 1:
            u_bar = namespace(X).reshape(u_bar, (self.n_neurons,))
        return u_bar if readout is None else (u_bar, v_bar)

    def probe(self, norms: np.ndarray) -> np.ndarray:
        """Series by which the number of sub-steps is found.

        Parameters
        ----------
        norms : ndarray (n_cases,)
            Squared norms of all series.

        Returns
        -------
        ndarray of int
            Positions of the eight largest and of eight spread over the others, sorted.
        """
        return probe_of_norms(norms)

    def prepare(self, X: Any) -> Prepared:
        """States of the same stimuli at one projection after the other.

        The number of sub-steps is found at the first projection and kept: an optimiser
        that compares projections is not to see it jump back and forth. Ask `settle` of
        what is returned whether it was enough for another projection.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)

        Returns
        -------
        Prepared
            Takes u, returns an object with ``states`` and ``pullback(cotangent, v)``.
        """
        X = self._stimuli(X)

        def projection(u: Any) -> np.ndarray:
            return check.input_projection(u, self.n_neurons, X.shape[1])

        return Prepared(self._planned, projection, X)


def _make_step(network: Any, length: float) -> Stepper:
    """One (sub-)step of a network of either kind."""
    gain, rest = network.gain, network.rest
    if isinstance(network, EchoStateNetwork):
        return leaky_step(
            network.weights,
            network.leak,
            gain,
            gain.derivative,
            bias=network.bias,
            rest=rest,
            joint=gain.with_derivative,
        )
    tau = np.broadcast_to(np.asarray(network.tau), (network.n_neurons,))
    excess = Excess.around(rest, gain, gain.derivative, gain.with_derivative)
    return exponential_step(network.weights, tau, excess, length)


def _checked_start(start: Any, network: Any) -> np.ndarray | None:
    """Where series begin, as a deviation from rest; None for at rest."""
    if start is None:
        return None
    state = check.host_array(start, "start", ndim=(1,))
    if state.shape != (network.n_neurons,):
        raise ValueError(
            f"`start` must have one entry per neuron, shape ({network.n_neurons},); got "
            f"shape {state.shape}."
        )
    deviation = state - network.rest
    return deviation if deviation.any() else None


def _up_to_the_square(reservoir: Reservoir) -> Reservoir | None:
    """The same network with a gain of two Taylor coefficients at its rest state."""
    gain = reservoir.gain
    if gain.kind is not None and "degree" in gain.parameters:
        # The function is the same, and with it the rest state; only its series is cut.
        cut = Gain.of_kind(gain.kind, {**gain.parameters, "degree": 2})
    elif not reservoir.rest.any():
        cut = Gain.polynomial((0.0, *gain.coefficients[1:3]))
    elif len(gain.coefficients) <= 3:
        cut = gain
    else:
        return None
    network = replace(reservoir, gain=cut)
    found = network.coefficients
    return network if len(found) == 3 and np.any(found[2]) else None
