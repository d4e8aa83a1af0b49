"""The function `optimize`, which checks a problem and hands it to a method."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.progress import watched
from .._base.threads import with_few_threads
from ..devices.device import Device
from ..devices.masks import Mask
from ..math.class_moments import trace
from ..stimuli.base import Stimuli
from ..stimuli.regression import RegressionTask
from ..stimuli.sequences import SequenceTask
from ..systems import System, rows_of
from .alternating import Alternating
from .ascent import Ascent
from .convex import Convex
from .method import (
    Method,
    Run,
    n_beside,
    names_of_methods,
    random_margins,
)
from .regression import random_losses, regress_given, regress_within
from .result import Projections, RegressionProjections
from .sequence_loss import solve_sequences

#: η if none is given, and largest η times a variance, so that its square does not overflow.
_ETA, _LARGEST = 10.0, 1e100


@overload
def optimize(
    system: System,
    stimuli: RegressionTask | SequenceTask,
    eta: None = None,
    method: Method | str | None = None,
    *,
    device: Device | None = None,
    u: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> RegressionProjections: ...


@overload
def optimize(
    system: System,
    stimuli: Stimuli,
    eta: float | None = None,
    method: Method | str | None = None,
    *,
    device: Device | None = None,
    u: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> Projections: ...


@with_few_threads(rows_of)
@watched
def optimize(
    system: System,
    stimuli: Stimuli | RegressionTask | SequenceTask,
    eta: float | None = None,
    method: Method | str | None = None,
    *,
    device: Device | None = None,
    u: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
) -> Projections | RegressionProjections:
    """Return the projections u and v that maximise the soft margin.

    They are the best stationary point on unit vectors u and v that the method finds (paper,
    equation 8, `def_opt_with_Lagrange`).

    An argument that cannot change the result of a problem is refused.

    Parameters
    ----------
    system : System
        The system to optimise, with its readout: an `Unfolding`, a `Dynamics`, or your own
        subclass of `greenfold.systems.System`.
    stimuli : GaussianStimuli, SampleStimuli, RegressionTask or SequenceTask
        For a `RegressionTask`, `optimize` solves for u and the readouts of all targets. For
        a `SequenceTask`, which needs `Dynamics`, it solves for u and readouts that apply at
        every step.
    eta : float, optional
        Control parameter η of the soft margin, 10 by default; see `choose_eta`. A task has
        its own penalty instead.
    method : Method or {"convex", "exact", "ascent", "alternating", "random"}, optional
        How to search. A name stands for the method with its default settings; to change
        them, pass the object, such as ``Convex(gap=1e-6)``.

        - `Convex`, the default for linear systems, gives the best pair with an upper bound
          on the soft margin of any pair. If the two meet, the pair is "certified".
        - `Exact` is `Convex` with up to a million bounds.
        - `Ascent`, the default for non-linear systems, starts from the linear optimum.
        - `Alternating` is the paper's algorithm.
        - `RandomDraws` gives the best of random input projections.

        A `RegressionTask` or `SequenceTask` takes `Convex` if the system is linear, and
        `Ascent` otherwise.
    device : Device, optional
        Constraints of the hardware: masks, inputs and outputs, bits, and noise. With a
        task, a device may have a mask (RegressionTask), and restrict inputs and outputs.
    u : array_like (n_neurons,) or (n_neurons, n_channels), optional
        A given input projection. It is scaled to unit norm and kept; `optimize` then
        solves only for v, without a ``method``.
    rng : numpy Generator, int or None
        Source of random starts, of the random roundings of a mask, and of random
        projections.

    Returns
    -------
    Projections
        The result; `RegressionProjections` for a task. Ctrl-C returns the best result so
        far, with the status "interrupted"; before the first evaluation it raises
        KeyboardInterrupt. `greenfold.progress` shows κ and the gap to its bound during the
        search.

    Warns
    -----
    ExpansionWarning
        If the perturbation expansion of a non-linear network is not trustworthy at the
        result; see `Projections.validity`.
    SlowFitWarning
        Before an ascent that takes more than a minute on series in memory. If an order of
        two or more would take a day, `optimize` raises a ValueError instead.

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
    wanted = "be a subclass of greenfold.systems.System, like the result of `unfold`"
    check.instance(system, System, "system", wanted)
    tasks = Stimuli | RegressionTask | SequenceTask
    wanted = "be GaussianStimuli, SampleStimuli or another subclass of Stimuli"
    check.instance(stimuli, tasks, "stimuli", wanted)
    check.instance(device, Device | None, "device", "be a Device")
    device = Device() if device is None else device
    whole, part = system, device.part_of(system)
    system = whole if part is None else part
    stimuli.match(system)
    idle = "be left out, because `u` is given"
    given = None
    if u is not None:
        check.must(method is None, "method", idle, repr(method))
        check.must(rng is None, "rng", idle, repr(rng))
        check.must(device.mask is None, "device", f"have no mask: {idle[12:]}", device)
        given = check.input_projection(u, whole.n_inputs, stimuli.n_channels)
        given = given if part is None else part.own_input(given, stimuli.n_channels)
        check.require(given.any(), "`u` is zero; pass a non-zero input projection.")
        given = given / np.abs(given).max()  # so that its square does not overflow
        given = given / np.linalg.norm(given)
    if isinstance(stimuli, RegressionTask | SequenceTask):
        idle = "be left out for a task, which has its own penalty"
        check.must(eta is None, "eta", idle, repr(eta))
        device.refuse_for_task(masks=isinstance(stimuli, RegressionTask))
        found = _solve_task(system, stimuli, method, given, rng, device.mask)
        if part is not None:
            whole_u, whole_V = part.whole_input(found.u), part.whole_readout(found.V)
            found = replace(found, u=whole_u, V=whole_V)
        size = stimuli.n_channels * stimuli.n_steps
        if isinstance(stimuli, SequenceTask) or not (n := n_beside(system, size)):
            return found
        drawn = partial(random_losses, system, stimuli, n, device.mask)
        return replace(found, drawn=drawn)
    eta = check.positive(_ETA if eta is None else eta, "eta")
    size = eta * trace(stimuli.psi)
    why = "which is too large for floats; scale the stimuli to about one, or lower `eta`"
    problem = f"η times the variance of `stimuli` is {size:.1g}, {why}."
    check.require(size <= _LARGEST, problem, OverflowError)
    read = None if part is None else part.outputs
    noise = device.noise(len(stimuli.mu), whole.n_outputs, read)
    if device.mask is not None:
        device.mask.match((system.n_inputs, stimuli.n_channels))
    if not system.is_linear:
        device.refuse_beyond_linear()
    chosen = _method(method, linear=system.is_linear)
    if device.mask is not None and not chosen.takes_masks:
        names = names_of_methods(True, lambda one: one.takes_masks)
        wanted = f"be {' or '.join(names)} with a mask"
        check.must(False, "method", wanted, repr(method))
    # Otherwise, a random u would be a row of the weights that the same seed draws. Ascents
    # from such a u may end anywhere.
    ascends = isinstance(chosen, Convex | Ascent | Alternating)
    generator = check.generator(rng, beside=not ascends)
    run = Run(system, stimuli, eta, device, noise, generator, started)
    if given is None:
        idle = f"be left out, because {chosen!r} draws nothing on this problem"
        check.must(rng is None or chosen.draws(run), "rng", idle, repr(rng))
        made = chosen.solve(run)
    else:
        made = run.given(given)
    if part is not None:
        made = replace(made, u=part.whole_input(made.u), v=part.whole_readout(made.v))
    if chosen.name == "random" or not (n := n_beside(system, len(stimuli.mu))):
        return made
    return replace(made, drawn=partial(random_margins, run, n))


def _method(method: Method | str | None, *, linear: bool) -> Method:
    if method is not None:
        return Method.of(method, linear=linear)
    return Convex() if linear else Ascent()


def _solve_task(
    system: System,
    task: RegressionTask | SequenceTask,
    method: Method | str | None,
    u: np.ndarray | None,
    rng: np.random.Generator | int | None,
    mask: Mask | None,
) -> RegressionProjections:
    """Return u and the readouts of a task."""
    sees = isinstance(task, SequenceTask) and task.see_input
    chosen = _method(method, linear=system.is_linear and not sees)
    generator = check.generator(rng)
    if isinstance(task, SequenceTask):
        return solve_sequences(system, task, chosen, u=u, rng=generator)
    if u is not None:
        return regress_given(system, task, u)
    single = isinstance(chosen, Ascent) and chosen.n_starts == 1
    idle = f"be left out, because {chosen!r} starts from the linear optimum alone"
    check.must(rng is None or not single, "rng", idle, repr(rng))
    found = chosen.regress(system, task, generator)
    return found if mask is None else regress_within(system, task, mask, found, generator)
