"""How much of its past input a system remembers, under readout noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.printing import Shown
from .._base.threads import rows_of, with_few_threads
from ..devices.device import Device
from ..optimizers.result import RegressionProjections
from ..optimizers.run import optimize
from ..stimuli.regression import RegressionTask
from ..systems import System


@dataclass(frozen=True, eq=False, repr=False)
class MemoryCapacity(Shown):
    """Memory of a system: how well white input of some steps ago can be read.

    Attributes
    ----------
    delays : ndarray (n_delays,)
    capacity : ndarray (n_delays,)
        Share of the variance of the input so many steps ago that the readout recovers,
        noise included.
    total : float
        Their sum.
    bound : float or None
        No u reaches a larger total; None where u was given or drawn.
    u : ndarray
        The input projection; of drawn ones, the best.
    drawn : ndarray or None
        Totals of the drawn input projections.
    """

    delays: np.ndarray
    capacity: np.ndarray
    total: float
    bound: float | None
    u: np.ndarray
    drawn: np.ndarray | None = None

    def _facts(self) -> dict[str, Any]:
        facts = {"total": self.total, "bound": self.bound, "delays": len(self.delays)}
        if self.drawn is not None:
            facts |= {"mean": float(self.drawn.mean()), "draws": len(self.drawn)}
        return facts


@with_few_threads(rows_of)
def memory_capacity(
    system: System,
    u: Any = "solved",
    *,
    delays: Any = None,
    device: Device | None = None,
    n_draws: int = 10,
    rng: np.random.Generator | int | None = None,
) -> MemoryCapacity:
    """Memory capacity of a linear system for white input of unit variance.

    Parameters
    ----------
    system : System
        Linear; ``n_steps`` of it is how far back it can look.
    u : "solved", "random" or array_like (n_inputs,)
        The input projection: solved for these delays together, drawn, or given.
    delays : array_like of int, optional
        Steps ago, 0 for the last one; all that the system sees by default.
    device : Device, optional
        Its ``readout_noise``, for input of unit variance: one standard deviation of
        independent noise on every state as it is read, 0.1 by default. Without noise every
        u of a generic network remembers as many steps as there are neurons. It may have
        ``inputs`` and ``outputs`` too.
    n_draws : int
        Draws of a random u.
    rng : numpy Generator, int or None
        Of a random u.

    Returns
    -------
    MemoryCapacity

    Examples
    --------
    >>> from greenfold import Reservoir, unfold
    >>> from greenfold.analysis import memory_capacity
    >>> network = unfold(Reservoir.random(12, tau=2.0, rng=0), n_steps=20, dt=0.5)
    >>> solved = memory_capacity(network, delays=range(1, 5))
    >>> drawn = memory_capacity(network, "random", delays=range(1, 5), rng=1)
    >>> bool(solved.total > drawn.drawn.max())
    True
    """
    if not getattr(system, "is_linear", False):
        raise ValueError(
            "`system` must be linear; of a non-linear network take the linear order, or "
            "solve RegressionTask.from_series for it."
        )
    steps = (
        np.arange(system.n_steps) if delays is None else np.atleast_1d(np.asarray(delays))
    )
    device = Device(readout_noise=0.1) if device is None else device
    if np.ndim(device.readout_noise) or not device.readout_noise:
        raise ValueError(
            "`readout_noise` of `device` must be one positive standard deviation: without "
            "noise every u of a generic network remembers alike."
        )
    ridge = float(device.readout_noise) ** 2
    task = RegressionTask.memory(steps, system.n_steps, ridge=ridge)
    chosen = replace(device, readout_noise=None)
    if isinstance(u, str) and u == "random":
        generator = check.generator(rng, beside=True)
        found = [
            optimize(system, task, device=chosen, u=_drawn(system, chosen, generator))
            for _ in range(check.count(n_draws, "n_draws"))
        ]
        best = max(found, key=lambda one: one.gain)
        return _capacity(steps, best, np.array([one.gain for one in found]))
    if isinstance(u, str) and u != "solved":
        raise ValueError(f"`u` must be 'solved', 'random' or an array; got {u!r}.")
    given = None if isinstance(u, str) else u
    best = optimize(system, task, device=chosen, u=given, rng=rng)
    if best.status == "interrupted":
        raise KeyboardInterrupt
    return _capacity(steps, best, None)


def _capacity(
    steps: np.ndarray, best: RegressionProjections, drawn: np.ndarray | None
) -> MemoryCapacity:
    return MemoryCapacity(steps, best.r2, best.gain, best.upper_bound, best.u, drawn)


def _drawn(system: System, device: Device, rng: np.random.Generator) -> np.ndarray:
    """A random u of the inputs that are driven."""
    part = device.part_of(system)
    if part is None:
        return rng.standard_normal(system.n_inputs)
    return part.whole_input(rng.standard_normal(part.n_inputs))
