"""The attractor of a closed loop: its likeness to the training series, its exponents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._base import model_files
from ...dynamics.integration import DrivenNetwork
from ...systems import Divergence

#: Levels of the quantiles that are compared.
_LEVELS = (np.arange(40) + 0.5) / 40
#: Shortest loop to judge, in steps: the distribution of a shorter one says little.
SHORTEST = 1000
#: Distance of two distributions that counts as a difference, in deviations, and relative to
#: the distance between the halves of the training series.
_DISTANCE, _RELATIVE = 0.5, 2.0
#: Range below which a loop is constant, in deviations, and number of steps to look at.
_CONSTANT, _STEPS = 1e-6, 100


@dataclass(frozen=True, eq=False)
class Attractor:
    """The distribution of each channel in training, to compare closed loops with.

    Attributes
    ----------
    quantiles : ndarray (n_levels, n_channels)
    tolerances : ndarray (n_channels,)
        Largest distance of a loop's distribution: the mean difference of the quantiles,
        which is the Wasserstein distance, in deviations.
    """

    quantiles: np.ndarray
    tolerances: np.ndarray

    @classmethod
    def of(cls, series: list[np.ndarray]) -> Attractor:
        """Return the distribution of all samples; series are in deviations."""
        firsts = np.concatenate([one[: (len(one) + 1) // 2] for one in series])
        lasts = np.concatenate([one[len(one) // 2 :] for one in series])
        drift = _distances(_quantiles(firsts), _quantiles(lasts))
        return cls(
            _quantiles(np.concatenate(series)), np.maximum(_DISTANCE, _RELATIVE * drift)
        )

    def complaint(self, made: np.ndarray) -> str | None:
        """Return how the second half of a loop (n_steps, n_channels) differs, or None."""
        late = made[len(made) // 2 :]
        found = _distances(_quantiles(late), self.quantiles)
        worst = int(np.argmax(found - self.tolerances))
        if found[worst] <= self.tolerances[worst]:
            return None
        told = f"the distribution of channel {worst} is {found[worst]:.2g} deviations away "
        told += "from that of the training series"
        settled = (np.ptp(late[-_STEPS:], axis=0) <= _CONSTANT).all()
        return f"{told}, and the loop ends at a constant" if settled else told


def _quantiles(rows: np.ndarray) -> np.ndarray:
    return np.quantile(rows, _LEVELS, axis=0)


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.abs(one - other).mean(0)


def lyapunov_exponents(
    network: DrivenNetwork,
    readout: np.ndarray,
    intercept: np.ndarray,
    state: np.ndarray,
    x: np.ndarray,
    n: int,
    n_steps: int,
    limit: float,
) -> np.ndarray:
    """Return the n largest Lyapunov exponents of a closed loop per step, falling.

    The readout (n_read, n_channels) reads the last ``n_read`` states of the network. The
    loop starts at a state and its sample x. Tangents follow it with the exact derivative of
    each step, and are orthogonalised after it (Benettin et al., Meccanica 15, 1980). A
    tenth of the steps comes before, for the tangents to align. A sample above ``limit``
    raises `Divergence`.
    """
    n_states, first = len(state), len(state) - len(readout)
    random = np.random.default_rng(0).standard_normal((n_states + len(x), n))
    tangents = np.linalg.qr(random)[0].T
    sums, before = np.zeros(n), n_steps // 10
    for index in range(-before, n_steps):
        d, dx = np.split(tangents, [n_states], axis=1)
        state, d = network.advance_tangents(state, x, d, dx)
        dx = d[:, first:] @ readout
        x = state[first:] @ readout + intercept
        if not np.abs(x).max() <= limit:
            raise Divergence(index + before, 0)
        Q, R = np.linalg.qr(np.hstack([d, dx]).T)
        tangents = Q.T
        if index >= 0:
            with np.errstate(divide="ignore"):  # a direction that is lost at once
                sums += np.log(np.abs(np.diag(R)))
    return np.sort(sums / n_steps)[::-1]


ATTRACTOR = model_files.Object(
    Attractor,
    quantiles=model_files.Numbers(len(_LEVELS), None),
    tolerances=model_files.Numbers(None, positive=True),
)
