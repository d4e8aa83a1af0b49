"""What a mask buys on a device that was recorded: beside random masks and the bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _validation as check
from .._repr import Shown
from .._threads import rows_of, with_few_threads
from ..measured import MeasuredResponse
from ..optimizers import Projections
from ..optimizers.bounded import into_box
from ..optimizers.masks import Mask, read_mask
from ..optimizers.run import optimize
from ..stimuli import Stimuli
from .interval import MarginInterval, margin_interval


@dataclass(frozen=True, eq=False, repr=False)
class MaskStudy(Shown):
    """A solved mask, what to expect of it, and what random masks reach.

    Attributes
    ----------
    projections : Projections
        The mask u (unit norm) and its readout v, with κ on the estimated response and the
        bound.
    values : ndarray, shape of ``projections.u``
        The mask as the device takes it: ±1 for signs, the given levels, else u itself.
    interval : MarginInterval
        κ that the device will show.
    drawn : ndarray (n_draws,)
        κ of random masks of the same kind with the optimal readout each, on the estimated
        response.
    """

    projections: Projections
    values: np.ndarray
    interval: MarginInterval
    drawn: np.ndarray

    @property
    def random_margin(self) -> float:
        """Mean κ of the random masks."""
        return float(self.drawn.mean())

    @property
    def gain(self) -> float | None:
        """Expected κ over that of a random mask; None where the latter is not positive.

        The solved mask is judged without favour and the random ones with that of their
        readouts, so that the gain is rather understated.
        """
        if self.random_margin <= 0:
            return None
        return self.interval.estimate / self.random_margin

    def _facts(self) -> dict[str, Any]:
        return {
            "soft_margin": self.interval.estimate,
            "low": self.interval.low,
            "high": self.interval.high,
            "share": self.projections.share,
            "random": self.random_margin,
            "gain": self.gain,
        }


@with_few_threads(rows_of)
def study_mask(
    system: MeasuredResponse,
    stimuli: Stimuli,
    eta: float = 10.0,
    *,
    mask: str | None = None,
    levels: Any = None,
    box: Any = None,
    input_noise: float = 0.0,
    readout_noise: float = 0.0,
    n_draws: int = 20,
    n_replicates: int = 40,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> MaskStudy:
    """Solve for a mask on a recorded device, and say what it buys.

    Parameters
    ----------
    system : MeasuredResponse
        Made by `MeasuredResponse.fit`.
    stimuli : GaussianStimuli or SampleStimuli
    eta : float
    mask, levels, box : optional
        Which masks the device can have, as for `optimize`; none of them for a free one.
    input_noise, readout_noise : float
        Standard deviations of independent noise on every value of the stimuli and on every
        output as it is read.
    n_draws : int
        Random masks to compare with.
    n_replicates, level
        Of the interval, see `margin_interval`.
    rng : numpy Generator, int or None

    Returns
    -------
    MaskStudy

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import GaussianStimuli, MeasuredResponse
    >>> from greenfold.diagnosis import study_mask
    >>> rng = np.random.default_rng(0)
    >>> drive = rng.standard_normal((2000, 4))
    >>> states = np.zeros((2000, 4))
    >>> for t in range(1, 2000):
    ...     states[t] = 0.5 * np.roll(states[t - 1], 1) + drive[t]
    >>> device = MeasuredResponse.fit(drive, states, n_steps=5)
    >>> stimuli = GaussianStimuli.random(5, strength=1.0, rng=1)
    >>> study = study_mask(device, stimuli, mask="sign", n_replicates=10, rng=0)
    >>> study.values.shape, sorted(set(np.abs(study.values).tolist()))
    ((4,), [1.0])
    """
    generator = check.generator(rng)
    eta = check.positive(eta, "eta")
    kind: dict[str, Any] = {"mask": mask, "levels": levels, "box": box}
    sizes = {"input_noise": input_noise, "readout_noise": readout_noise}
    noise: dict[str, Any] = {
        name: check.positive(size, name) for name, size in sizes.items() if size != 0
    }
    best = optimize(system, stimuli, eta, rng=generator, **kind, **noise)
    best.raise_if_interrupted()
    shape = (system.n_inputs, stimuli.n_channels)
    wanted = read_mask(mask, levels, box, system.n_inputs * stimuli.n_channels)
    drawn = [
        optimize(
            system, stimuli, eta, u=random_mask(wanted, shape, generator), **noise
        ).soft_margin
        for _ in range(check.count(n_draws, "n_draws"))
    ]
    noisy = stimuli
    if input_noise:
        psi = np.asarray(stimuli.psi)
        psi = psi + input_noise**2 * np.eye(len(psi))
        noisy = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
    interval = margin_interval(
        system, noisy, best, level=level, n_replicates=n_replicates, rng=generator, **kind
    )
    # Of a readout of unit norm, independent noise of one size takes the same from every κ.
    cost = eta / 2 * readout_noise**2
    interval = replace(
        interval,
        estimate=interval.estimate - cost,
        low=interval.low - cost,
        high=interval.high - cost,
    )
    return MaskStudy(best, device_values(best.u, wanted), interval, np.array(drawn))


def random_mask(
    mask: Mask | None, shape: tuple[int, int], rng: np.random.Generator
) -> np.ndarray:
    """A mask of the kind, drawn without looking at any stimuli.

    Parameters
    ----------
    mask : Mask or None
        None for a free one, which is Gaussian.
    shape : (int, int)
        Inputs and channels.
    rng : numpy Generator
    """
    if mask is None:
        return rng.standard_normal(shape)
    if not mask.is_discrete:
        found = rng.standard_normal(shape)
        if mask.low >= 0:
            found = np.abs(found)
        return into_box(found, mask.low, mask.high)
    levels = mask.levels
    if levels is None:
        levels = np.linspace(-1, 1, mask.n_levels or 2)
    while True:  # all entries zero is no mask
        found = rng.choice(levels, shape)
        if found.any():
            return found


def device_values(u: np.ndarray, mask: Mask | None) -> np.ndarray:
    """A unit mask in the levels that were given; as it is where there are none."""
    if mask is None or mask.levels is None:
        return u
    largest = float(np.abs(u).max())
    # The largest level need not occur: take the factor that meets the levels best.
    tried = []
    for size in np.unique(np.abs(mask.levels[mask.levels != 0])):
        away = np.abs((u * (size / largest))[..., None] - mask.levels)
        tried.append((float(away.min(-1).max()) / size, mask.levels[away.argmin(-1)]))
    return min(tried, key=lambda one: one[0])[1]
