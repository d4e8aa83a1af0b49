"""Memory capacity: how much of its past input a system remembers, under noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.printing import Shown
from .._base.threads import with_few_threads
from ..devices.device import Device, Restricted
from ..optimizers.run import optimize
from ..stimuli.regression import RegressionTask
from ..systems import System, rows_of


@dataclass(frozen=True, eq=False, repr=False)
class MemoryCapacity(Shown):
    """The memory of a system: how well its state reveals white input of some steps ago.

    Attributes
    ----------
    delays, capacity : ndarray (n_delays,)
        Share of the variance of the input ``delays`` steps ago that the readout recovers,
        with noise; ``total`` is the sum.
    bound : float or None
        Largest total that any u could reach; None if u was given or random.
    u : ndarray
        The input projection; the best one of several random ones.
    random : ndarray or None
        Totals of the random input projections.
    """

    delays: np.ndarray
    capacity: np.ndarray
    total: float
    bound: float | None
    u: np.ndarray
    random: np.ndarray | None = None

    def _facts(self) -> dict[str, Any]:
        facts = {"total": self.total, "bound": self.bound, "delays": len(self.delays)}
        if self.random is not None:
            facts |= {"mean": float(self.random.mean()), "draws": len(self.random)}
        return facts


@with_few_threads(rows_of)
def memory_capacity(
    system: System,
    u: ArrayLike = "solved",
    *,
    delays: ArrayLike | None = None,
    device: Device | None = None,
    n_draws: int = 10,
    rng: np.random.Generator | int | None = None,
) -> MemoryCapacity:
    """Return the memory capacity of a linear system for white input of unit variance.

    Parameters
    ----------
    system : System
        A linear system; its ``n_steps`` limits how far back it can look.
    u : "solved", "random" or array_like (n_inputs,)
        The input projection: solved for all ``delays`` together, random, or given.
    delays : array_like of int, optional
        Delays in steps, 0 for the last step; by default, all that the system sees.
    device : Device, optional
        Device with one standard deviation as ``readout_noise``: that of independent noise
        on each state when it is read, for input of unit variance; 0.1 by default. Without
        noise, every u of a generic network remembers as many steps as the network has
        neurons. The device may also restrict ``inputs`` and ``outputs``.
    n_draws, rng
        Number of random u to draw, and the source of randomness.

    Examples
    --------
    >>> from greenfold import Reservoir, unfold
    >>> from greenfold.analysis import memory_capacity
    >>> network = unfold(Reservoir.random(12, tau=2.0, rng=0), n_steps=20, dt=0.5)
    >>> solved = memory_capacity(network, delays=range(1, 5))
    >>> drawn = memory_capacity(network, "random", delays=range(1, 5), rng=1)
    >>> bool(solved.total > drawn.random.max())
    True
    """
    linear = getattr(system, "is_linear", False)
    got = "a non-linear one: take its linear order, or solve RegressionTask.from_series"
    check.must(linear, "system", "be linear", got)
    steps = np.atleast_1d(np.arange(system.n_steps) if delays is None else delays)
    device = Device(readout_noise=0.1) if device is None else device
    noise = np.asarray(0.0 if device.readout_noise is None else device.readout_noise)
    wanted = "have one positive standard deviation as `readout_noise`: without noise "
    wanted += "every u of a generic network remembers equally much"
    check.must(noise.ndim == 0 and noise > 0, "device", wanted, device.readout_noise)
    ridge = float(noise) ** 2
    task = RegressionTask.memory(steps, system.n_steps, ridge=ridge)
    chosen = replace(device, readout_noise=None)
    known = not isinstance(u, str) or u in ("solved", "random")
    check.must(known, "u", "be 'solved', 'random' or an array", repr(u))
    totals = None
    if isinstance(u, str) and u == "random":
        generator = check.generator(rng, beside=True)
        part = chosen.part_of(system) or Restricted(system)
        found = []
        for _ in range(check.count(n_draws, "n_draws")):
            given = part.whole_input(generator.standard_normal(part.n_inputs))
            found.append(optimize(system, task, device=chosen, u=given))
        best = max(found, key=lambda one: one.gain)
        totals = np.array([one.gain for one in found])
    else:
        given = None if isinstance(u, str) else u
        drawing = rng if given is None else None
        best = optimize(system, task, device=chosen, u=given, rng=drawing)
        best.raise_if_interrupted()
    return MemoryCapacity(steps, best.r2, best.gain, best.upper_bound, best.u, totals)
