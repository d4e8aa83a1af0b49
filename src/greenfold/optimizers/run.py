"""`optimize`: one entry point to every method."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, overload

import numpy as np

from .._base import checks as check
from ..devices.device import Device
from ..stimuli.base import Stimuli
from ..stimuli.regression import RegressionTask
from ..systems import System, lacking
from .methods import LINEAR, NONLINEAR, Run
from .regression import RegressionProjections, optimize_task
from .result import Projections


@overload
def optimize(
    system: System, stimuli: RegressionTask, **options: Any
) -> RegressionProjections: ...


@overload
def optimize(
    system: System,
    stimuli: Stimuli,
    eta: float = ...,
    method: str | None = ...,
    **options: Any,
) -> Projections: ...


def optimize(  # pyright: ignore[reportInconsistentOverload]
    system: System,
    stimuli: Stimuli | RegressionTask,
    eta: float = 10.0,
    method: str | None = None,
    *,
    device: Device | None = None,
    u: Any = None,
    n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    rng: np.random.Generator | int | None = None,
) -> Projections | RegressionProjections:
    """Find the projections u and v that maximise the soft margin.

    Parameters
    ----------
    system : System
        What is to be optimised, with its readout: an `Unfolding`, or anything else with
        the maps of :mod:`greenfold.systems`.
    stimuli : GaussianStimuli, SampleStimuli or RegressionTask
        Of a `RegressionTask` u and the readouts of all targets are solved; of the other
        arguments it takes ``device``, ``u``, ``n_starts``, ``max_iter``, ``tol`` and
        ``rng``.
    eta : float
        Control parameter η of the soft margin; see `choose_eta`.
    method : {"convex", "ascent", "alternating", "random"}, optional
        "convex" (order 0, its default): the best pair found, with an upper bound on what
        any pair could reach; "certified" as the global optimum where the two meet.
        "ascent" (order ≥ 1, its default): quasi-Newton ascent of max_v κ(u, v) on the
        sphere, from the certified linear optimum with both signs and from random vectors.
        Through `Dynamics`, from the order-1 optimum too where the gain has a square, and
        roughly first: with some series, long sub-steps and single precision.
        "alternating": the paper's algorithm, linear (order 0) or as its Algorithm 1
        (order 1), from random input projections.
        "random": random input projections with the optimal readout each, the state of
        the art to compare with; the best is returned, all are in `starts`.
    device : Device, optional
        What the hardware can do: masks, inputs and outputs, bits, noise. Of a
        `RegressionTask` it may have inputs and outputs alone.
    u : array_like (n_neurons,) or (n_neurons, n_channels), optional
        Keep this input projection, scaled to unit norm, and solve for v only.
    n_starts : int, optional
        Number of starts; 10 for "alternating" and "random" by default. For "ascent" the
        first two are the linear optimum with both signs, and by default there are no
        others for separable stimuli (`separability` ≥ 1.5), four more otherwise (and
        the order-1 optimum before these, through `Dynamics`).
    max_iter : int, optional
        Largest number of iterations, 300 by default: singular value decompositions
        ("convex"), evaluations per start, after its first ("ascent"), rounds per start
        ("alternating").
    tol : float, optional
        Relative gap to stop at ("convex", default 1e-4), or relative gain per step or
        round that counts as saturation ("ascent" 1e-7, or 1e-5 for more than 2000 series
        through `Dynamics`; "alternating" 1e-6).
    rng : numpy Generator, int or None
        Source of the random starts, and of roundings of a mask. "convex" uses none.

    Returns
    -------
    Projections
        Or `RegressionProjections` of a task.

    Warns
    -----
    ExpansionWarning
        Where the perturbation expansion of a non-linear network is not trustworthy at
        the result; see `Projections.validity`.

    Notes
    -----
    Ctrl-C returns the best projections found so far with the status "interrupted"; before
    the first evaluation there are none, and KeyboardInterrupt is raised.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, Reservoir, optimize, unfold
    >>> reservoir = Reservoir.random(50, rng=3)
    >>> stimuli = GaussianStimuli.random(10, strength=1.0, rng=4)
    >>> best = optimize(unfold(reservoir, n_steps=10, dt=1.0), stimuli)
    >>> best.status
    'certified'
    """
    started = time.perf_counter()
    if not isinstance(system, System):
        raise TypeError(
            "`system` must have the maps of greenfold.systems.System, as what `unfold` "
            f"returns has; {type(system).__name__} lacks {', '.join(lacking(system))}."
        )
    device = Device() if device is None else _device(device)
    whole, part = system, device.part_of(system)
    system = whole if part is None else part
    if isinstance(stimuli, RegressionTask):
        _refuse_for_task(device)
        if part is not None and u is not None:
            u = part.own_input(u, stimuli.n_channels)
        found = optimize_task(system, stimuli, u, n_starts, max_iter, tol, rng)
        if part is None:
            return found
        return replace(found, u=part.whole_input(found.u), V=part.whole_readout(found.V))
    if not isinstance(stimuli, Stimuli):
        raise TypeError(
            "`stimuli` must be GaussianStimuli or SampleStimuli, or of another subclass of "
            f"greenfold.stimuli.Stimuli; got {type(stimuli).__name__}."
        )
    stimuli.match(system)
    if part is not None and u is not None:
        u = part.own_input(u, stimuli.n_channels)
    eta = check.positive(eta, "eta")
    read = None if part is None else part.outputs
    noise = device.noise(len(stimuli.mu), whole.n_outputs, read)
    device.match(system.n_inputs * stimuli.n_channels)
    if not system.is_linear:
        _refuse_beyond_linear(device)
    if device.kind is not None and (u is not None or method not in (None, "convex")):
        raise ValueError(
            f"`{'method' if u is None else 'u'}` does not go with a mask, which is solved "
            "from the certified optimum; leave one of them out."
        )
    methods = LINEAR if system.is_linear else NONLINEAR
    method = next(iter(methods)) if method is None else method
    if method not in methods:
        raise ValueError(
            f"`method` must be one of {', '.join(methods)} for a "
            f"{'linear' if system.is_linear else 'non-linear'} system; got {method!r}."
        )
    if n_starts is not None:
        check.count(n_starts, "n_starts")
    max_iter = check.count(300 if max_iter is None else max_iter, "max_iter")
    tol = None if tol is None else check.positive(tol, "tol")
    run = Run(
        system,
        stimuli,
        eta,
        started,
        n_starts,
        max_iter,
        tol,
        check.generator(rng, beside=method == "random"),
        device,
        noise,
    )
    made = run.given(u) if u is not None else methods[method](run)
    if part is None:
        return made
    return replace(made, u=part.whole_input(made.u), v=part.whole_readout(made.v))


def _device(device: Any) -> Device:
    if not isinstance(device, Device):
        raise TypeError(f"`device` must be a Device; got {type(device).__name__}.")
    return device


def _refuse_for_task(device: Device) -> None:
    if device.kind is not None or device.bits is not None or device.has_noise:
        raise ValueError(
            "`device` must have no mask, bits or noise for a RegressionTask, of which only "
            "inputs and outputs can be chosen; noise on what is read is its `ridge`."
        )


def _refuse_beyond_linear(device: Device) -> None:
    if device.has_noise:
        raise ValueError(
            "`state_noise`, `input_noise` and `readout_noise` are solved on linear systems "
            "only; solve the linear order, or draw noisy series."
        )
    if device.kind is not None or device.bits is not None:
        raise ValueError(
            f"`{'bits' if device.kind is None else 'mask'}` is solved on linear systems "
            "only; solve the linear order, and give its `u` to this one."
        )
