"""What a device will deliver: an interval on κ where its response was estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from .._base import checks as check
from .._base.printing import Shown
from .._base.progress import display
from .._base.threads import rows_of, with_few_threads
from ..devices.device import Device
from ..devices.response import MeasuredResponse
from ..optimizers.ascent import ascend
from ..optimizers.linear import LinearProblem
from ..optimizers.masks import solve_mask_near
from ..optimizers.result import Candidate, Projections
from ..stimuli.base import Stimuli

#: Evaluations of the ascent on a replicate, which starts at the solution of the estimate.
_EVALUATIONS = 100
#: Size γ of the errors that are added before u is solved; 1/γ of them before it is judged.
#: Smaller ones would ask how u turns at this estimate only, which differs much between
#: recordings: near an optimum that is flat it turns far after small errors.
_GAMMA = 1.0
#: The same for masks of a few levels, which larger errors would exchange for others.
_GAMMA_OF_LEVELS = 0.3


@dataclass(frozen=True, eq=False, repr=False)
class MarginInterval(Shown):
    """Confidence interval on the soft margin that a device will show.

    Attributes
    ----------
    estimate : float
        κ on the device, free of the favour of having been solved on the estimate.
    low, high : float
        Ends of the interval.
    level : float
        Its confidence.
    optimism : float
        How much better the projections look on the estimated response.
    n_replicates : int
    """

    estimate: float
    low: float
    high: float
    level: float
    optimism: float
    n_replicates: int

    def _facts(self) -> dict[str, Any]:
        names = ("estimate", "low", "high", "level", "optimism")
        return {name: getattr(self, name) for name in names}


@with_few_threads(rows_of)
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
    """Interval on κ of projections on the device whose response was fitted.

    Parameters
    ----------
    system : MeasuredResponse
        Made by `MeasuredResponse.fit`.
    stimuli : GaussianStimuli or SampleStimuli
    projections : Projections
        Of `optimize(system, stimuli)`; their η is used.
    level : float
        Confidence, between 0 and 1.
    n_replicates : int
        Replicates of the response; twice as many as the fit has blocks are enough.
    solved : bool
        Whether u was solved on this response; False for a u chosen without it, for which
        only the readout is solved on each replicate.
    device : Device, optional
        As given to `optimize`: a mask of the same kind is solved on each replicate. Of
        noise it may have ``input_noise`` and one standard deviation of ``readout_noise``.
    rng : numpy Generator, int or None

    Notes
    -----
    Projections that were solved on an estimate do better on it than on the device, because
    the solution follows the errors. The coupled bootstrap sees that (Oliveira, Lei &
    Tibshirani 2021): with errors e drawn anew, the responses G + γe and G − e/γ are
    independent, so that what is solved on the first is judged on the second without favour.
    What noise of the judge itself costs, (η/2) tr ψ cov(a), is known and added back. What
    is not known of the favour is part of the interval: by how much stretches of time
    disagree, and what errors twice as large cost. Errors of μ and ψ, which are given, are
    not.
    """
    measured, got = isinstance(system, MeasuredResponse), type(system).__name__
    check.must(measured, "system", "be a MeasuredResponse that was fitted", got, TypeError)
    level = check.positive(level, "level")
    check.must(level < 1, "level", "lie between 0 and 1", f"{level:g}")
    n_replicates = check.count(n_replicates, "n_replicates", minimum=10)
    stimuli.match(system)
    fitted = system.fitted
    if fitted is None:
        raise ValueError("`system` has no errors; make it with MeasuredResponse.fit.")
    device = Device() if device is None else device
    eta, v = projections.eta, projections.v
    u = check.input_projection(projections.u, system.n_inputs, stimuli.n_channels)
    part = device.part_of(system)
    if part is not None:
        u, v = part.own_input(u, stimuli.n_channels), v[part.outputs]
    device.match(u.size)
    stimuli, cost = _under_noise(device, stimuli, eta)

    def problem(G: np.ndarray) -> LinearProblem:
        response = MeasuredResponse(G)
        return LinearProblem(device.part_of(response) or response, stimuli, eta)

    here = problem(fitted.whole)
    value = _margin(here, u, v)
    # Of errors drawn as ε_b s_b over blocks b the mean needs second moments only: one block
    # after the other gives them, with both signs, and how far the blocks disagree.
    gamma = _GAMMA_OF_LEVELS if device.is_discrete else _GAMMA
    n_blocks = len(fitted.influence)
    n_pairs = min(n_replicates // 2, n_blocks)
    blocks = check.generator(rng).permutation(n_blocks)[:n_pairs]
    pairs, kept = np.empty((n_pairs, 2)), np.empty((n_pairs, 2))
    with display() as shown, shown.bar("replicates", n_pairs) as bar:
        for k, block in enumerate(blocks):
            for side, sign in enumerate((1, -1)):
                error = sign * np.sqrt(n_blocks) * fitted.influence[block]
                changed = fitted.shortened(fitted.whole + gamma * error)
                there = problem(changed)
                if solved:
                    again = _solved_again(there, u, device)
                    new_u, new_v = again.u, again.v
                else:
                    new_u, new_v = u, there.best_readout(u)[0]
                judge = problem(fitted.whole - error / gamma)
                pairs[k, side] = _margin(judge, new_u, new_v)
                kept[k, side] = _margin(here, new_u, new_v)
            bar.advance()
    judged = pairs.mean(1)
    errors = np.array([problem(one).kernel(u, v) for one in fitted.influence])
    costs = 0.5 * eta * n_blocks * ((errors @ stimuli.psi) * errors).sum(1)
    judged += gamma**-2 * costs[blocks]
    # What was judged was solved with errors of (1 + γ²) times the variance. That lost it
    # anything from nothing, where errors have long turned u as far as they can, to as much
    # as errors of γ² lose on the estimate, where the loss is quadratic.
    lost = max(value - float(kept.mean()), 0.0)
    estimate = float(judged.mean() + costs.mean()) + lost / 2
    slope = here.gradient_at(here.kernel(u, v))
    spread = float(((errors @ slope) ** 2).sum()) + float(judged.var(ddof=1)) / n_pairs
    spread += lost**2 / 12
    half = float(student_t.ppf((1 + level) / 2, n_pairs - 1)) * np.sqrt(spread)
    return MarginInterval(
        estimate=estimate - cost,
        low=float(estimate - half) - cost,
        high=float(estimate + half) - cost,
        level=level,
        optimism=value - estimate,
        n_replicates=2 * n_pairs,
    )


def _under_noise(device: Device, stimuli: Stimuli, eta: float) -> tuple[Stimuli, float]:
    """Stimuli with the noise of the input, and what that of the outputs costs κ."""
    known = device.state_noise is None and device.bits is None
    text = "have no state noise and no bits, which the interval does not know"
    check.must(known, "device", text, device)
    one, got = np.ndim(device.readout_noise) == 0, f"shape {np.shape(device.readout_noise)}"
    text = "be one standard deviation for an interval"
    check.must(one, "readout_noise", text, got)
    if device.input_noise is not None:
        psi = np.asarray(stimuli.psi)
        psi = psi + device.noise(len(psi), 1)["input"]
        stimuli = Stimuli(stimuli.mu, psi, stimuli.n_channels, stimuli.n_steps)
    # Of a readout of unit norm, independent noise of one size takes the same from every κ.
    return stimuli, eta / 2 * float(device.readout_noise or 0.0) ** 2


def _solved_again(problem: LinearProblem, u: np.ndarray, device: Device) -> Candidate:
    """Projections of a replicate, from those of the estimate."""
    if device.kind is not None:
        return solve_mask_near(problem, device, u)
    found = ascend(problem, u, max_iter=_EVALUATIONS, tol=1e-9)
    found.raise_if_interrupted()
    return found


def _margin(problem: LinearProblem, u: np.ndarray, v: np.ndarray) -> float:
    return problem.margin_of_kernel(problem.kernel(u, v)).value
