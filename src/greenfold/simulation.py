"""Simulate the full network: an independent check that shares no code with the rest.

`engine="scipy"` integrates the differential equation with an adaptive high-order
Runge–Kutta method, restarted at each step of the stimulus, or with an implicit method if
the network is stiff. `engine="nest"` runs the network in the NEST simulator, as in the
paper.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from ._base import checks as check
from ._base.arrays import Array, batches, like
from ._base.threads import with_few_threads
from .networks import matrices, spectra
from .networks.echo_state import EchoStateNetwork
from .networks.reservoir import Reservoir

#: Cases integrated together share one step-size control, whose error norm averages over
#: them. Batches are small enough that a single bad case matters.
_CASES_TOGETHER = 256
#: An explicit method is stable while a step times the fastest rate is below about 6. If it
#: needs more than this many steps per step of the stimulus, the network counts as stiff.
_EXPLICIT_REACH, _STIFF_STEPS = 6.0, 200


@with_few_threads(lambda reservoir: reservoir.n_neurons)
def simulate(
    reservoir: Reservoir | EchoStateNetwork,
    X: ArrayLike | Array,
    u: ArrayLike,
    dt: ArrayLike | None = None,
    engine: str = "scipy",
    *,
    trajectories: bool = False,
    rtol: float | None = None,
    resolution: float | None = None,
) -> Any:
    """Simulate a network from rest and return its states.

    In continuous time, it integrates τ ẏ = −y + W φ(y) + b + u x(t) (equation 1,
    `eom_network`).

    Parameters
    ----------
    reservoir : Reservoir or EchoStateNetwork
        The network. States are deviations from its resting state.
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        Stimuli, constant over steps of length ``dt``.
    u : array_like (n_neurons,) or (n_neurons, n_channels)
    dt : float or array_like (n_steps,)
        Length of a step, or of each step (engine "scipy"). A network in discrete time takes
        none.
    engine : {"scipy", "nest"}
        "scipy" supports any gain. It uses DOP853, or LSODA case by case if the network is
        stiff. "nest" supports a linear or tanh network and needs the extra
        ``greenfold[nest]``. It resets the NEST kernel of this process and takes about a
        millisecond per time point for 100 neurons, so use it for a few series.
    trajectories : bool
        Return the states at the end of each step instead of only the last states.
    rtol : float, optional
        Relative tolerance of the ODE solver (engine "scipy"); 1e-10 by default.
    resolution : float, optional
        Time step of NEST in the unit of ``dt`` (engine "nest"), rounded so that ``dt`` is a
        multiple of it; by default a hundredth of the shorter of ``tau`` and ``dt``.

    Returns
    -------
    array (n_cases, n_neurons) or (n_cases, n_steps, n_neurons)
        States, in the array namespace of ``X``. The simulation runs on the host and raises
        a FloatingPointError if the true dynamics diverge.
    """
    discrete = isinstance(reservoir, EchoStateNetwork)
    kinds, wanted = Reservoir | EchoStateNetwork, "be a Reservoir or an EchoStateNetwork"
    check.instance(reservoir, kinds, "reservoir", wanted)
    shape: tuple[int, ...] = getattr(X, "shape", ()) or np.asarray(X).shape
    reference = check.stimuli(X, shape[-1] if shape else 0)
    host = check.host_array(reference, "X")
    projection = check.input_projection(u, reservoir.n_neurons, host.shape[1])
    check.must(engine in ("scipy", "nest"), "engine", 'be "scipy" or "nest"', repr(engine))
    if discrete:
        wanted = 'be "scipy" for an EchoStateNetwork, in discrete time'
        check.must(engine == "scipy", "engine", wanted, repr(engine))
    for name, given, idle in (
        ("dt", dt, discrete),
        ("rtol", rtol, discrete or engine == "nest"),
        ("resolution", resolution, engine == "scipy"),
    ):
        when = "in discrete time" if discrete else f"with engine={engine!r}"
        check.without_effect(idle and given is not None, name, when)
    if isinstance(reservoir, EchoStateNetwork):
        states = _run_map(reservoir, host, projection)
    elif engine == "scipy":
        rtol = check.positive(1e-10 if rtol is None else rtol, "rtol")
        lengths = _step_lengths(dt, host.shape[2])
        states = _run_scipy(reservoir, host, projection, lengths, rtol)
    else:
        states = _run_nest(
            reservoir, host, projection, check.positive(dt, "dt"), resolution
        )
    return like(states if trajectories else states[:, -1], reference)


def _step_lengths(dt: ArrayLike | None, n_steps: int) -> np.ndarray:
    """Return the length of each step."""
    if dt is None or np.ndim(dt) == 0:
        return np.full(n_steps, check.positive(dt, "dt"))
    lengths = check.host_array(dt, "dt", ndim=(1,))
    fits = lengths.shape == (n_steps,) and (lengths > 0).all()
    wanted = f"be one positive length, or one for each of {n_steps} steps"
    check.must(fits, "dt", wanted, f"shape {lengths.shape}")
    return lengths


def _run_map(network: EchoStateNetwork, X: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the states of a network in discrete time after each step."""
    n_cases, _, n_steps = X.shape
    found = np.empty((n_cases, n_steps, network.n_neurons))
    bias = 0.0 if network.bias is None else network.bias
    y = np.tile(network.rest, (n_cases, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(n_steps):
            active = network.gain(y @ network.weights.T + X[:, :, step] @ u.T + bias)
            y = (1 - network.leak) * y + network.leak * active
            _refuse_divergence(y, step)
            found[:, step] = y - network.rest
    return found


def _run_scipy(
    reservoir: Reservoir, X: np.ndarray, u: np.ndarray, dt: np.ndarray, rtol: float
) -> np.ndarray:
    n_cases, _, n_steps = X.shape
    found = np.empty((n_cases, n_steps, reservoir.n_neurons))
    stiff = _is_stiff(reservoir, float(dt.max()))
    for part in batches(n_cases, 1, 1 if stiff else _CASES_TOGETHER):
        y = np.zeros((part.stop - part.start, reservoir.n_neurons))
        for step in range(n_steps):
            drive, length = X[part, :, step] @ u.T, float(dt[step])
            y = _integrate(reservoir, y, drive, length, rtol, stiff)
            y = _refuse_divergence(y, step, part.start)
            found[part, step] = y
    return found


def _refuse_divergence(y: np.ndarray | None, step: int, first: int = 0) -> np.ndarray:
    """Return the states after a step; raise if they are None or not finite."""
    if y is not None and np.isfinite(y).all():
        return y
    where = f"the batch of case {first}"
    if y is not None:
        where = f"case {first + int(np.argwhere(~np.isfinite(y))[0][0])}"
    raise FloatingPointError(
        f"the simulated network diverges in step {step} of {where}; scale `X` down, or "
        "weaken the non-linearity."
    )


def _integrate(
    reservoir: Reservoir,
    y: np.ndarray,
    drive: np.ndarray,
    dt: float,
    rtol: float,
    stiff: bool,
) -> np.ndarray | None:
    """Integrate one step of the stimulus for a batch; return None if the solver fails."""
    W, tau, gain = reservoir.weights, reservoir.tau, reservoir.gain
    # Integrate the whole equation; only the state and its tolerance are relative to rest.
    rest, bias = reservoir.rest, 0.0 if reservoir.bias is None else reservoir.bias
    constant, identity = drive + bias - rest, np.eye(reservoir.n_neurons)

    def slope(_: float, flat: np.ndarray) -> np.ndarray:
        state = flat.reshape(y.shape)
        return ((constant - state + gain(rest + state) @ W.T) / tau).ravel()

    def jacobian(_: float, state: np.ndarray) -> np.ndarray:
        """Return the Jacobian of one case; a stiff batch has only one case."""
        return ((W * gain.derivative(rest + state) - identity).T / tau).T

    # The absolute tolerance scales with the drive.
    scale = max(np.abs(drive).max(), np.abs(y).max())
    if scale == 0:
        return y
    method: dict[str, Any] = {"method": "DOP853"}
    if stiff:
        # The response of a stiff network is small, but it must be resolved.
        scale /= np.abs(jacobian(0.0, y[0])).max()
        method = {"method": "LSODA", "jac": jacobian}
    tolerance = {"rtol": rtol, "atol": rtol * scale * 1e-2}
    with np.errstate(over="ignore", invalid="ignore"), warnings.catch_warnings():
        if stiff:
            warnings.simplefilter("ignore", UserWarning)  # `success` reports a failure
        solve: Any = solve_ivp
        run = solve(slope, (0.0, dt), y.ravel(), **method, **tolerance)
    return run.y[:, -1].reshape(y.shape) if run.success else None


def _is_stiff(reservoir: Reservoir, dt: float) -> bool:
    """Return whether stability, not accuracy, limits the steps of an explicit method."""
    decay = matrices.plus_diagonal(-reservoir.linear_weights, 1.0)
    rates = matrices.scaled_rows(1 / np.asarray(reservoir.tau), decay)
    # Use the real parts: any method must follow a fast mode that oscillates.
    return spectra.largest(rates, "real part") * dt > _EXPLICIT_REACH * _STIFF_STEPS


#: NEST counts time in ms on a grid. One resolution step of the model is mapped to this many
#: ms, so that any `tau` and `dt` can be represented.
_TICK = 0.1


def _run_nest(
    reservoir: Reservoir, X: np.ndarray, u: np.ndarray, dt: float, resolution: float | None
) -> np.ndarray:
    """Run the network in NEST and return its states at the end of each step.

    Rate neurons with instantaneous connections are driven by one `step_rate_generator` per
    channel. A linear network uses W itself. For tanh, NEST applies the gain to the *summed*
    input: τ ρ̇ = −ρ + tanh(W ρ + u s). If the input is low-pass filtered by τ ṡ = −s + x,
    then y = W ρ + u s obeys the reservoir's equation exactly.
    """
    kind = reservoir.gain.nest_model
    wanted = 'have a linear or tanh gain for engine="nest" (engine="scipy" takes any)'
    check.must(kind, "reservoir", wanted, reservoir.gain.name)
    assert kind is not None
    plain = reservoir.bias is None and not isinstance(reservoir.tau, np.ndarray)
    wanted = 'have no bias and one time constant for engine="nest" (not engine="scipy")'
    check.must(plain, "reservoir", wanted, repr(reservoir))
    os.environ.setdefault("PYNEST_QUIET", "1")  # no banner on the user's terminal
    with check.needs('engine "nest"', "nest"):
        import nest  # pyright: ignore[reportMissingTypeStubs]
    wanted = min(reservoir.mean_tau, dt) / 100 if resolution is None else resolution
    per_step = max(1, round(dt / check.positive(wanted, "resolution")))
    tau = reservoir.mean_tau * _TICK * per_step / dt
    W = reservoir.weights
    return np.array([_run_case(nest, kind, W, tau, x, u, per_step) for x in X])


def _run_case(
    nest: Any,
    model: str,
    W: np.ndarray,
    tau: float,
    x: np.ndarray,
    u: np.ndarray,
    per_step: int,
) -> np.ndarray:
    n, n_channels = u.shape
    n_steps = int(x.shape[1])
    nest.ResetKernel()
    nest.verbosity = nest.VerbosityLevel.ERROR
    nest.resolution = _TICK
    nest.use_wfr = True
    # Instantaneous connections are iterated to convergence in each time step.
    nest.wfr_tol = 1e-10
    nest.wfr_max_iterations = 100
    nest.wfr_comm_interval = _TICK
    quiet = {"tau": tau, "lambda": 1.0, "mu": 0.0, "sigma": 0.0, "rate": 0.0}
    instantly = {"synapse_model": "rate_connection_instantaneous"}
    neurons = nest.Create(model, n, params={**quiet, "linear_summation": True})
    nest.Connect(neurons, neurons, "all_to_all", {**instantly, "weight": W})
    driven = neurons
    filtered = model != "lin_rate_ipn"
    if filtered:
        driven = nest.Create("lin_rate_ipn", n_channels, params=quiet)
        nest.Connect(driven, neurons, "all_to_all", {**instantly, "weight": u})
    # A generator that switches at time t reaches its targets one resolution step later, the
    # shortest delay, if it was created after them; otherwise its signal arrives earlier.
    # Its first switch can be at step one, so the clock of the network starts at step two.
    times = _TICK * (1 + per_step * np.arange(n_steps))
    sources = nest.Create("step_rate_generator", n_channels)
    for channel in range(n_channels):
        sources[channel].set(amplitude_times=times, amplitude_values=x[channel])
    delayed = {"synapse_model": "rate_connection_delayed", "delay": _TICK}
    if filtered:
        nest.Connect(sources, driven, "one_to_one", {**delayed, "weight": 1.0})
    else:
        nest.Connect(sources, driven, "all_to_all", {**delayed, "weight": u})
    recorded = neurons if driven is neurons else neurons + driven
    nest.Simulate(2 * _TICK)
    rates = np.empty((n_steps, len(recorded)))
    for step in range(n_steps):
        nest.Simulate(_TICK * per_step)
        rates[step] = recorded.get("rate")
    if not filtered:
        return rates
    return rates[:, :n] @ W.T + rates[:, n:] @ u.T
