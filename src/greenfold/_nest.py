"""The network in the NEST simulator, as the paper ran it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _validation as check
from .reservoir import Reservoir

#: NEST counts time in ms on a grid; one model resolution is mapped to this many ms, so
#: that any `tau` and `dt` are representable.
_TICK = 0.1


def run_nest(
    reservoir: Reservoir, X: np.ndarray, u: np.ndarray, dt: float, resolution: float | None
) -> np.ndarray:
    """States at the end of every step, (n_cases, n_steps, n_neurons).

    Rate neurons with instantaneous connections, driven by one `step_rate_generator` per
    channel. The linear network is W itself. For tanh, NEST applies the gain to the
    *summed* input, ρ with τ ρ̇ = −ρ + tanh(W ρ + u s): with the input low-pass filtered by
    τ ṡ = −s + x, y = W ρ + u s obeys the reservoir's equation exactly.
    """
    kind = _model_of(reservoir)
    nest = _import_nest()
    wanted = min(reservoir.mean_tau, dt) / 100 if resolution is None else resolution
    ratio = dt / check.positive(wanted, "resolution")
    per_step = max(1, round(ratio))
    tau = reservoir.mean_tau * _TICK * per_step / dt
    n_cases, _, n_steps = X.shape
    found = np.empty((n_cases, n_steps, reservoir.n_neurons))
    for case in range(n_cases):
        found[case] = _run_case(nest, kind, reservoir.weights, tau, X[case], u, per_step)
    return found


def _model_of(reservoir: Reservoir) -> str:
    model = reservoir.gain.nest_model
    if model is None:
        raise ValueError(
            f"`reservoir` has the gain {reservoir.gain.name}, which NEST has no rate "
            'neuron for; use Gain.linear() or Gain.tanh(), or engine="scipy".'
        )
    if reservoir.bias is not None or isinstance(reservoir.tau, np.ndarray):
        raise ValueError(
            "`reservoir` has a bias, or a time constant for each neuron, which the engine "
            '"nest" does not run; use engine="scipy".'
        )
    return model


def _import_nest() -> Any:
    os.environ.setdefault("PYNEST_QUIET", "1")  # no banner on the user's terminal
    try:
        import nest
    except ImportError:
        raise ImportError(
            'engine "nest" needs the NEST simulator; install it with '
            "`pip install greenfold[nest]`."
        ) from None
    return nest


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
    n_steps = x.shape[1]
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
    # A generator switched at time t reaches its targets one resolution step later, over
    # the shortest delay there is, if it was created after them (before them it would
    # arrive earlier). Its first switch can be at one step, so the clock of the network
    # starts at two.
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
