"""What the page does not compute: solved projections and bounds on a grid of η and T."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from ...optimizers.linear import LinearProblem
from ...optimizers.run import optimize
from ...unfolding.unfolding import Unfolding
from .material import Material

#: η of the slider, and readout times as shares of the duration.
ETAS = (1.0, 2.0, 3.0, 5.0, 10.0)
TIMES = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
N_RANDOM = 50
N_NOISES = 25
#: Shares of the random projections between which the band of their accuracies lies.
BAND = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Grid:
    """Values of η and steps at which the network is read.

    Attributes
    ----------
    etas : tuple of float
    steps : tuple of int
        The state at the end of so many steps is read.
    usual : float
        η at which the page begins; one of ``etas``, or the closest of them is meant.
    """

    etas: tuple[float, ...]
    steps: tuple[int, ...]
    usual: float = 3.0

    @classmethod
    def of(cls, n_steps: int, eta: float | None = None) -> Grid:
        """The page's grid for series of so many steps; ``eta`` is added to it."""
        etas = sorted(set(ETAS) if eta is None else {*ETAS, float(eta)})
        steps = sorted({max(1, round(share * n_steps)) for share in TIMES})
        return cls(tuple(etas), tuple(steps), cls.usual if eta is None else float(eta))

    def __len__(self) -> int:
        return len(self.etas) * len(self.steps)


@dataclass(frozen=True, eq=False)
class Solved:
    """One pair of classes on a grid; leading axes are η and the readout step.

    Attributes
    ----------
    pair : tuple of int
        Codes of ζ = −1 and ζ = +1.
    grid : Grid
    u : ndarray (n_etas, n_steps, n_neurons, n_channels)
    v : ndarray (n_etas, n_steps, n_neurons)
    soft_margin, bound : ndarray (n_etas, n_steps)
        κ that u and v reach, and what no unit projections exceed.
    random : ndarray (n_etas, n_steps, N_RANDOM)
        κ of random u, the readout solved for each.
    noises : ndarray (N_NOISES,)
        Standard deviations of the readout noise.
    random_accuracy : ndarray (n_etas, n_steps, len(BAND), N_NOISES)
        Quantiles of the accuracy of the random u under readout noise.
    """

    pair: tuple[int, int]
    grid: Grid
    u: np.ndarray
    v: np.ndarray
    soft_margin: np.ndarray
    bound: np.ndarray
    random: np.ndarray
    noises: np.ndarray
    random_accuracy: np.ndarray


def solve_grid(
    unfolding: Unfolding,
    material: Material,
    pair: tuple[int, int],
    grid: Grid | None = None,
    *,
    seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> Solved:
    """Solve one pair at every η and readout time of a grid.

    Parameters
    ----------
    unfolding : Unfolding
        Linear, of the material's number of steps.
    material : Material
    pair : tuple of int
        Codes of the classes, ascending.
    grid : Grid, optional
    seed : int
        Of the random projections.
    on_step : callable, optional
        Called before each point of the grid.
    """
    grid = grid or Grid.of(unfolding.n_steps)
    stimuli = material.stimuli(pair)
    channels, neurons = stimuli.n_channels, unfolding.n_neurons
    # A network of that seed has the plain stream: u would be rows of its weights.
    rng = np.random.default_rng([seed, 1])
    drawn = rng.standard_normal((N_RANDOM, neurons, channels))
    drawn /= np.linalg.norm(drawn, axis=(1, 2), keepdims=True)
    shape = len(grid.etas), len(grid.steps)
    u, v = np.empty((*shape, neurons, channels)), np.empty((*shape, neurons))
    margin, bound = np.empty(shape), np.empty(shape)
    random = np.empty((*shape, N_RANDOM))
    kernels = np.empty((*shape, N_RANDOM, len(stimuli.mu)))
    separation = np.empty(shape)
    for j, step in enumerate(grid.steps):
        system = unfolding.with_readout(step * unfolding.dt)
        problem = LinearProblem(system.maps, stimuli, 1.0)
        for k, one in enumerate(drawn):
            kernels[:, j, k] = problem.kernels(one, np.array(grid.etas)).T
        for i, eta in enumerate(grid.etas):
            if on_step is not None:
                on_step()
            best = optimize(system, stimuli, eta, tol=1e-3)
            best.raise_if_interrupted()
            u[i, j], v[i, j] = best.u.reshape(neurons, channels), best.v
            margin[i, j], separation[i, j] = best.soft_margin, best.separation
            bound[i, j] = np.nan if best.upper_bound is None else best.upper_bound
            a = kernels[i, j]
            random[i, j] = a @ stimuli.mu - 0.5 * eta * ((a @ stimuli.psi) * a).sum(1)
    # As far as the classes are apart, where the page begins: there noise is felt.
    usual = int(np.argmin(np.abs(np.log(np.array(grid.etas) / grid.usual))))
    noises = np.linspace(0.0, _round_up(float(separation[usual, -1])), N_NOISES)
    accuracy = accuracies(material, pair, kernels.reshape(-1, len(stimuli.mu)), noises)
    accuracy = accuracy.reshape(*shape, N_RANDOM, N_NOISES)
    band = np.moveaxis(np.quantile(accuracy, BAND, axis=2), 0, 2)
    return Solved(pair, grid, u, v, margin, bound, random, noises, band)


def accuracies(
    material: Material,
    pair: tuple[int, int],
    kernels: np.ndarray,
    noises: Sequence[float] | np.ndarray,
) -> np.ndarray:
    """Accuracy of kernels (n_kernels, D) under readout noise, (n_kernels, n_noises).

    The plane between the clouds is trained on the training series, with the noise known.
    """
    stimuli = material.stimuli(pair)
    train, test = (np.isin(c, pair) for c in (material.codes, material.codes_test))
    codes = (material.codes[train] == pair[1]).astype(int)
    judged = (material.codes_test[test] == pair[1]).astype(int)
    flat = stimuli.transform(material.X[train]).reshape(len(codes), -1)
    flat_test = stimuli.transform(material.X_test[test]).reshape(len(judged), -1)
    share = material.weights[list(pair)] * np.bincount(codes, minlength=2)
    z, z_test = flat @ kernels.T, flat_test @ kernels.T
    low, high = z[codes == 0].mean(0), z[codes == 1].mean(0)
    variance = ((z - np.where(codes[:, None] == 1, high, low)) ** 2).mean(0)
    # The plane of `decisions.decide` for two clouds, all kernels at once.
    apart = np.maximum(high - low, np.finfo(float).tiny)
    odds = float(np.log(share[1] / share[0]))
    sign = np.where(judged == 1, 1.0, -1.0)[:, None]
    found = np.empty((len(kernels), len(noises)))
    for i, noise in enumerate(np.asarray(noises, dtype=float)):
        plane = (low + high) / 2 - odds * (variance + noise**2) / apart
        beyond = sign * (z_test - plane)
        correct = ndtr(beyond / noise) if noise else 0.5 * (1 + np.sign(beyond))
        found[:, i] = correct.mean(0)
    return found


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, … that is not below a value; 1 for what is not positive."""
    if not (np.isfinite(value) and value > 0):
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(f * power for f in (1, 2, 3, 5, 8, 10) if f * power >= value))
