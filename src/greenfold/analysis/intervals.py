"""Confidence intervals for κ of a mask, or of any projections, on a recorded device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from .._base import checks as check
from .._base.printing import Shown
from .._base.progress import display, watched
from .._base.threads import with_few_threads
from ..devices.device import Device, Restricted
from ..devices.response import MeasuredResponse
from ..optimizers.linear import LinearProblem, ascend
from ..optimizers.regression import LinearRegression
from ..optimizers.result import Projections
from ..stimuli.base import Stimuli
from ..systems import rows_of

#: Largest number of evaluations of the ascent on a replicate, which starts at the solution
#: on the estimate.
_EVALUATIONS = 100
#: Number of parts of a recording. Projections are solved on all parts but one and judged on
#: that part. With more parts, the solutions are closer to the solution on the whole
#: recording, and the judgement is noisier.
_N_PARTS = 8
#: Share of the non-linearity from which on the response to weak series is not known.
BENT = 0.02
#: The same for its odd part, saturation: a gain that is off by √(1.5 · 0.005) = 9 %.
_SATURATED = 0.005


@dataclass(frozen=True, eq=False, repr=False)
class MarginInterval(Shown):
    """A confidence interval, ``low`` to ``high``, for the soft margin on the device.

    Attributes
    ----------
    estimate : float
        κ on the device, corrected for the optimism of the solution.
    low, high, level : float
        Ends of the interval, and its confidence. The ends are infinite if the device bends
        its outputs or saturates too much for a promise.
    optimism : float
        Excess of κ on the estimated response over ``estimate``.
    n_replicates : int
    """

    estimate: float
    low: float
    high: float
    level: float
    optimism: float
    n_replicates: int

    @property
    def is_known(self) -> bool:
        """Whether the ends are finite."""
        return bool(np.isfinite(self.low))

    def _facts(self) -> dict[str, Any]:
        names = ("estimate", "low", "high", "level", "optimism")
        return {name: getattr(self, name) for name in names}


@with_few_threads(rows_of)
@watched
def margin_interval(
    system: MeasuredResponse,
    stimuli: Stimuli,
    projections: Projections,
    *,
    level: float = 0.95,
    n_replicates: int = 100,
    solved: bool = True,
    device: Device | None = None,
    rng: np.random.Generator | int | None = None,
) -> MarginInterval:
    """Return a confidence interval for the soft margin κ on a recorded device.

    Parameters
    ----------
    system : MeasuredResponse
        Made by `MeasuredResponse.fit`.
    stimuli : GaussianStimuli or SampleStimuli
    projections : Projections
        The result of `optimize(system, stimuli)`, whose η is used.
    level : float
    n_replicates : int
        Number of solutions behind the interval, eight for each division of the recording.
    solved : bool
        Whether u was solved on this response. If False, u is kept and only the readout is
        solved on each replicate.
    device : Device, optional
        The device that you passed to `optimize`. A mask of the same kind is solved on each
        replicate. It may have ``input_noise``, and one standard deviation as
        ``readout_noise``.
    rng : numpy Generator, int or None

    Notes
    -----
    Projections solved on an estimate do better on it than on the device, because the
    solution follows the errors of the estimate. They are therefore solved again on seven
    eighths of the blocks of the recording and judged on the remaining eighth, for each
    eighth in turn. The known cost of the noise in that eighth, (η/2) tr ψ cov(a), is added
    back. The disagreement of the eighths gives the width of the interval. It is widened
    by what κ is on the response of a weakly driven device, which the curvature of the
    recording tells, and at the moments of its drift. If more than 2 % of the variance is
    non-linear, this correction is not reliable, and the interval is infinite. It may exceed
    ``projections.upper_bound``, which holds on the estimated response; the estimate does
    not. The interval does not include errors of μ and ψ, which are taken as given.
    """
    check.instance(system, MeasuredResponse, "system", "be a fitted MeasuredResponse")
    level = check.positive(level, "level")
    check.must(level < 1, "level", "lie between 0 and 1", f"{level:g}")
    n_replicates = check.count(n_replicates, "n_replicates", minimum=10)
    stimuli.match(system)
    fitted = system.fitted
    if fitted is None:
        raise ValueError("`system` has no error estimates; use MeasuredResponse.fit.")
    device = Device() if device is None else device
    eta, part = projections.eta, device.part_of(system) or Restricted(system)
    u = part.own_input(projections.u, stimuli.n_channels)
    v = projections.v[part.outputs]
    if device.mask is not None:
        device.mask.match(u.shape)
    stimuli, cost = _under_noise(device, stimuli, eta)

    def problem(G: np.ndarray) -> LinearProblem:
        response = MeasuredResponse(G)
        return LinearProblem((device.part_of(response) or response).maps, stimuli, eta)

    # Blocks are exchangeable, so any eighth of them may judge.
    influence, n_rounds = fitted.influence, max(round(n_replicates / _N_PARTS), 1)
    judged, generator = np.empty((n_rounds, _N_PARTS)), check.generator(rng)
    with display() as shown, shown.bar("replicates", judged.size) as bar:
        for i in range(n_rounds):
            order = generator.permutation(len(influence))
            for k in range(_N_PARTS):
                error = influence[order[k::_N_PARTS]].sum(0)
                others = fitted.whole - error * (_N_PARTS / (_N_PARTS - 1))
                there, new_u = problem(fitted.estimated(others)), u
                if solved:
                    new_u, new_v = solved_again(there, u, device)
                else:
                    new_v = there.best_readout(u)[0]
                errors = np.array([problem(one).kernel(new_u, new_v) for one in influence])
                noise = eta / 2 * _N_PARTS * float(((errors @ stimuli.psi) * errors).sum())
                judge = problem(fitted.whole + _N_PARTS * error)
                judged[i, k] = judge.margin(new_u, new_v).value + noise
                bar.advance()
    spread = np.sqrt(float(judged.var(1, ddof=1).mean()) / _N_PARTS)
    half = float(student_t.ppf((1 + level) / 2, _N_PARTS - 1)) * spread
    bound = np.inf if projections.upper_bound is None else projections.upper_bound
    middle = float(judged.mean()) - cost
    # Mean of a normal distribution of the judged values that is cut off at the bound.
    room = (bound - middle) / max(spread, 1e-300)
    estimate = min(middle - spread * np.exp(norm.logpdf(room) - norm.logcdf(room)), bound)
    value = problem(fitted.whole).margin(u, v).value
    others = [problem(one).margin(u, v).value for one in fitted.other_responses()]
    shifts = [0.0, *(one - value for one in others)]
    ends = min(middle, bound) - half + min(shifts), middle + half + max(shifts)
    shares = fitted.shares
    saturated = shares.odd > _SATURATED + 2 * shares.error
    if saturated or shares.nonlinearity > BENT:
        ends = -np.inf, np.inf
    return MarginInterval(estimate, *ends, level, value - cost - estimate, judged.size)


def _under_noise(device: Device, stimuli: Stimuli, eta: float) -> tuple[Stimuli, float]:
    """Return the stimuli with input noise, and the cost of the readout noise in κ."""
    known = device.state_noise is None and device.bits is None
    text = "have no state noise and no bits, which the interval does not support"
    check.must(known, "device", text, device)
    noise = np.asarray(0.0 if device.readout_noise is None else device.readout_noise)
    text = "be one standard deviation for an interval"
    check.must(noise.ndim == 0, "readout_noise", text, f"shape {noise.shape}")
    if device.input_noise is not None:
        psi = np.asarray(stimuli.psi)
        psi = psi + device.noise(len(psi), 1)["input"]
        stimuli = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
    # With a readout of unit norm, independent noise of equal size lowers every κ equally.
    return stimuli, eta / 2 * float(noise) ** 2


def solved_again(
    problem: LinearProblem | LinearRegression, u: np.ndarray, device: Device
) -> tuple[np.ndarray, np.ndarray]:
    """Return the projections solved on a replicate, starting from u of the estimate."""
    if device.mask is not None:
        return device.mask.improve(problem, u)[:2]
    found = ascend(problem, u, max_iter=_EVALUATIONS, tol=1e-9)
    found.raise_if_interrupted()
    return found.u, found.v
