"""What a network is judged by: its certified κ*, the gradient, and series held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from .. import _validation as check
from ..echo_state import EchoStateNetwork
from ..noise import covariance, state_covariance
from ..optimizers import Projections, optimize
from ..optimizers.linear import LinearProblem
from ..reservoir import Reservoir
from ..stimuli import SampleStimuli, Stimuli
from ..unfolding import unfold
from ..unfolding.generator import Rates, rates_pullback, step_pullback
from .network_parameters import Family, rates_of

#: Relative gap to the bound at which a network counts as solved; the pair itself is solved
#: to rounding before.
_GAP = 1e-3


def split_stimuli(
    stimuli: Stimuli, held_out: Any, rng: np.random.Generator
) -> tuple[Stimuli, Stimuli | None]:
    """Stimuli to choose by, and others to report on, in the unit of the first.

    Parameters
    ----------
    stimuli : Stimuli
    held_out : float, Stimuli or None
        See `optimize_reservoir`.
    rng : numpy Generator
    """
    if held_out is None:
        return stimuli, None
    if isinstance(held_out, Stimuli):
        if (held_out.n_channels, held_out.n_steps) != (stimuli.n_channels, stimuli.n_steps):
            raise ValueError(
                f"`held_out` has series of {held_out.n_channels} × {held_out.n_steps} "
                f"values, but `stimuli` of {stimuli.n_channels} × {stimuli.n_steps}."
            )
        return stimuli, held_out
    share = check.positive(held_out, "held_out")
    if share >= 1:
        raise ValueError(f"`held_out` is a share below 1; got {share:g}.")
    if not isinstance(stimuli, SampleStimuli):
        return stimuli, None
    if stimuli.signs is None or stimuli._raw is None:
        raise ValueError(
            "`held_out` = a share needs the series in memory, and those of these stimuli "
            "are elsewhere or gone; give other stimuli to report on, or None."
        )
    sides: list[list[np.ndarray]] = [[], []]
    for sign in (-1, 1):
        index = rng.permutation(np.flatnonzero(stimuli.signs == sign))
        n_out = min(max(1, round(share * len(index))), len(index) - 1)
        if n_out < 1:
            raise ValueError(
                "`held_out` needs at least two series of either class; pass "
                "held_out=None to report none."
            )
        sides[0].append(index[n_out:])
        sides[1].append(index[:n_out])
    kept, out = (np.sort(np.concatenate(side)) for side in sides)
    as_given, labels = stimuli._raw, stimuli.classes[(stimuli.signs > 0).astype(int)]
    weights = dict(zip(stimuli.classes.tolist(), stimuli.class_share, strict=True))
    scaled = stimuli.scale != 1 or stimuli.centre.any()
    chosen = SampleStimuli(
        as_given[kept],
        labels[kept],
        class_weight=weights,
        normalize="paper" if scaled else None,
        length=float(np.linalg.norm(stimuli.mu)) if scaled else 1.0,
    )
    reported = SampleStimuli(
        chosen.transform(as_given[out]), labels[out], class_weight=weights, normalize=None
    )
    return chosen, reported


@dataclass(frozen=True, eq=False)
class Task:
    """What a network is judged by.

    Attributes
    ----------
    stimuli : Stimuli
    dt, eta : float
    readout, noise
        As in `optimize_reservoir`.
    """

    stimuli: Stimuli
    dt: float
    eta: float
    readout: Any = None
    noise: Any = None

    def solve(self, network: Any) -> Projections:
        """Certified u and v of a network."""
        return optimize(
            self.system(network),
            self.stimuli,
            self.eta,
            tol=_GAP,
            state_noise=None
            if self.noise is None
            else state_covariance(network, self.noise),
        )

    def system(self, network: Any) -> Any:
        """The linear order of a network."""
        return unfold(
            network, n_steps=self.stimuli.n_steps, dt=self.dt, readout=self.readout
        )

    def margin(self, network: Any, found: Projections, stimuli: Stimuli) -> float:
        """κ of solved projections on other stimuli, the noise included."""
        problem = LinearProblem(self.system(network).maps, stimuli, self.eta)
        a = problem.kernel(found.u.reshape(network.n_neurons, -1), found.v)
        cost = 0.0 if found.noise_cost is None else sum(found.noise_cost.values())
        return problem.margin_of_kernel(a).value - cost

    def gradient(self, family: Family, network: Any, found: Projections) -> np.ndarray:
        """dκ*/dx at a solved network, by the envelope theorem."""
        u, v = found.u.reshape(network.n_neurons, -1), found.v
        maps = self.system(network).maps
        problem = LinearProblem(maps, self.stimuli, self.eta)
        d = problem.by_channel(problem.gradient_at(problem.kernel(u, v)))
        if isinstance(network, EchoStateNetwork):
            ((_, bar),) = step_pullback(maps.schedule, u, v, d)
            return family.gradient(network, bar, u, 0.0)
        rates = rates_of(network, u)
        bar = rates_pullback(maps.schedule, rates, u, v, d)
        spread = 0.0
        if self.noise is not None:
            own, spread = self._noise_pullback(network, rates.own, v)
            bar = Rates(bar.own + own, bar.drive)
        return family.gradient(network, bar, u, spread)

    def _noise_pullback(
        self, network: Reservoir, R: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Of −(η/2) vᵀPv with RP + PRᵀ = −Q: with respect to R and to log Q."""
        n = network.n_neurons
        tau = np.broadcast_to(np.asarray(network.tau, dtype=float), (n,))
        Q = covariance(self.noise, "noise", n) / np.outer(tau, tau)
        P = solve_continuous_lyapunov(R, -Q)
        adjoint = solve_continuous_lyapunov(R.T, -np.outer(v, v))
        return -self.eta * adjoint @ P, -0.5 * self.eta * float(np.vdot(adjoint, Q))
