"""What travels in a page: series, thinned and rounded, and what is solved on them.

The page computes with the very numbers that travel in it. So series are thinned and
rounded here, before anything is solved, and what is solved belongs to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from ... import SampleStimuli, Unfolding, optimize
from ..._base.checks import must, require
from ...optimizers.linear import LinearProblem

#: Values of one series, over all channels, and series of each part that a page carries.
MAX_VALUES, MAX_SERIES = 160, 300
#: Numbers of all series of one data set: 16 bits each, 220 kB as text.
MAX_NUMBERS = 84_000
MAX_CLASSES, MAX_CHANNELS = 20, 8
_LEVELS = 32_000
#: η of the slider, and readout times as shares of the duration.
ETAS = (1.0, 2.0, 3.0, 5.0, 10.0)
TIMES = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
N_RANDOM, N_NOISES = 50, 25
#: Shares of the random projections between which the band of their accuracies lies.
BAND = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class PageSeries:
    """Labelled series as they stand on the page, (n_cases, n_channels, n_steps)."""

    name: str
    note: str
    classes: list[str]
    weights: np.ndarray  # factor on the weight of a whole class
    X: np.ndarray
    codes: np.ndarray
    X_test: np.ndarray
    codes_test: np.ndarray
    unit: float  # all values are multiples of it
    scaling: float = 1.0  # ‖μ‖ as the series enter the network
    judged: str = "test"  # or "training", where X_test is X
    #: What was left out, a sentence each.
    thinned: list[str] = field(default_factory=list)

    @property
    def n_channels(self) -> int:
        """Number of channels C."""
        return self.X.shape[1]

    @property
    def n_steps(self) -> int:
        """Number of steps K."""
        return self.X.shape[2]

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of classes (ζ = −1, ζ = +1), the most frequent ones first."""
        counts = np.bincount(self.codes, minlength=len(self.classes))
        seen = [c for c in range(len(self.classes)) if counts[c] >= 2]
        pairs = [(a, b) for i, a in enumerate(seen) for b in seen[i + 1 :]]
        return sorted(pairs, key=lambda pair: -min(counts[list(pair)]))

    def stimuli(self, pair: tuple[int, int]) -> SampleStimuli:
        """Moments of one pair, in its own coordinates."""
        chosen = np.isin(self.codes, pair)
        codes = self.codes[chosen]
        share = {c: float((codes == c).sum() * self.weights[c]) for c in pair}
        return SampleStimuli(self.X[chosen], codes, class_weight=share, length=self.scaling)


def prepare(
    name: str,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    note: str = "",
    n_steps: int | None = None,
    class_weights: dict[Any, float] | None = None,
    scaling: float = 1.0,
    max_series: int = MAX_SERIES,
    max_numbers: int = MAX_NUMBERS,
) -> PageSeries:
    """Thin series to what a page can carry, and say what was left out.

    Series of different lengths end together; a shorter one stays at its first value before
    it begins. ``n_steps`` is by default as large as fits.
    """
    thinned: list[str] = []
    values = _cube(X, thinned)
    labels = [str(label) for label in np.asarray(y).tolist()]
    classes = list(dict.fromkeys(str(label) for label in np.unique(y).tolist()))
    counts = [labels.count(one) for one in classes]
    got = ", ".join(f"{n} of {c!r}" for c, n in zip(classes[:5], counts, strict=False))
    two = sum(count >= 2 for count in counts) >= 2
    must(two, name, "hold two classes of at least two series each", got)
    n_channels, given_steps = values.shape[1:]
    wanted = (
        f"have at most {MAX_CLASSES} classes and {MAX_CHANNELS} channels (choose classes "
    )
    got = f"{len(classes)} classes and {n_channels} channels"
    few = len(classes) <= MAX_CLASSES and n_channels <= MAX_CHANNELS
    must(few, name, f"{wanted}with `--classes`, or leave channels out)", got)
    codes = np.array([classes.index(label) for label in labels])
    others, other_codes = values[:0], codes[:0]
    if X_test is not None:
        found = [str(label) for label in np.asarray(y_test).tolist()]
        known = [i for i, label in enumerate(found) if label in classes]
        others = _cube(X_test, [], given_steps)[known]
        other_codes = np.array([classes.index(found[i]) for i in known], dtype=int)
    judged = "test" if len(others) else "training"
    # Each step is the mean of as many of the series as the others.
    most = max(1, MAX_VALUES // n_channels)
    length = n_steps or -(-given_steps // -(-given_steps // most))
    if length != given_steps:
        how = "averaged to" if length < given_steps else "repeated to fill"
        thinned.append(f"{given_steps} steps of each series were {how} {length}.")
        values, others = _resample(values, length), _resample(others, length)
    size = n_channels * length * (1 if judged == "training" else 2)
    room = min(max_series, max(2 * len(classes), max_numbers // size))
    values, codes = _thin(values, codes, room, "training", thinned)
    others, other_codes = _thin(others, other_codes, room, "test", thinned)
    unit = float(max(np.abs(values).max(), np.abs(others).max(initial=0.0))) / _LEVELS
    zeros = f"`{name}` holds nothing but zeros; there is nothing to tell apart."
    require(np.isfinite(unit) and unit > 0, zeros)
    values, others = (np.rint(part / unit) * unit for part in (values, others))
    if judged == "training":
        others, other_codes = values, codes
    weights = np.array([float((class_weights or {}).get(one, 1.0)) for one in classes])
    series = (values, codes, others, other_codes)
    return PageSeries(name, note, classes, weights, *series, unit, scaling, judged, thinned)


def _cube(X: Any, thinned: list[str], n_steps: int | None = None) -> np.ndarray:
    """Series as (n_cases, n_channels, n_steps), those of unequal lengths filled up."""
    series = [np.atleast_2d(np.asarray(one, dtype=float)) for one in X]
    require(series, "there are no series to explore.")
    lengths = {one.shape[1] for one in series}
    longest = max(lengths) if n_steps is None else n_steps
    if len(lengths) > 1:
        thinned.append(
            f"Series of {min(lengths)} to {max(lengths)} steps end together; shorter ones "
            "stay at their first value before they begin."
        )
    cut = [one[:, -longest:] for one in series]
    before = [((0, 0), (longest - one.shape[1], 0)) for one in cut]
    made = np.stack([np.pad(one, n, "edge") for one, n in zip(cut, before, strict=True)])
    finite = np.isfinite(made).all()
    require(finite, "series must be finite; fill missing values, or use --trim.")
    return made


def _resample(values: np.ndarray, n_steps: int) -> np.ndarray:
    """Means over equal stretches of time of series that are constant over their steps."""
    old = values.shape[2]
    edges = np.linspace(0, old, n_steps + 1)
    total = np.concatenate([np.zeros((*values.shape[:2], 1)), values.cumsum(2)], axis=2)
    whole = np.minimum(edges.astype(int), old - 1)
    at = total[..., whole] + (edges - whole) * values[..., whole]
    return np.diff(at, axis=2) * (n_steps / old)


def _thin(
    values: np.ndarray, codes: np.ndarray, room: int, part: str, thinned: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Every so-many-th series of each class."""
    if len(codes) <= room:
        return values, codes
    kept: list[int] = []
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        share = max(min(2, len(members)), int(room * len(members) / len(codes)))
        kept += members[np.linspace(0, len(members) - 1, share).astype(int)].tolist()
    index = np.sort(kept)
    thinned.append(f"{len(index)} of {len(codes)} {part} series are on the page.")
    return values[index], codes[index]


@dataclass(frozen=True)
class Grid:
    """Values of η, the page begins near ``usual``, and steps at whose end it is read."""

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
class SolvedPair:
    """One pair of classes on a grid; leading axes are η and the readout step."""

    pair: tuple[int, int]
    grid: Grid
    u: np.ndarray
    v: np.ndarray
    soft_margin: np.ndarray
    bound: np.ndarray
    random: np.ndarray  # κ of random u, the readout solved for each
    noises: np.ndarray
    #: Quantiles `BAND` of the accuracy of the random u under each noise.
    random_accuracy: np.ndarray


def solve_grid(
    unfolding: Unfolding,
    series: PageSeries,
    pair: tuple[int, int],
    grid: Grid | None = None,
    *,
    seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> SolvedPair:
    """Solve one pair of classes at every η and readout time of a grid."""
    grid = grid or Grid.of(unfolding.n_steps)
    stimuli = series.stimuli(pair)
    channels, neurons = stimuli.n_channels, unfolding.n_neurons
    # A network of that seed has the plain stream: u would be rows of its weights.
    rng = np.random.default_rng([seed, 1])
    drawn = rng.standard_normal((N_RANDOM, neurons, channels))
    drawn /= np.linalg.norm(drawn, axis=(1, 2), keepdims=True)
    shape = len(grid.etas), len(grid.steps)
    u, v = np.empty((*shape, neurons, channels)), np.empty((*shape, neurons))
    margin, bound, separation = np.empty((3, *shape))
    random = np.empty((*shape, N_RANDOM))
    kernels = np.empty((*shape, N_RANDOM, len(stimuli.mu)))
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
    accuracy = accuracies(series, pair, kernels.reshape(-1, len(stimuli.mu)), noises)
    accuracy = accuracy.reshape(*shape, N_RANDOM, N_NOISES)
    band = np.moveaxis(np.quantile(accuracy, BAND, axis=2), 0, 2)
    return SolvedPair(pair, grid, u, v, margin, bound, random, noises, band)


def accuracies(
    series: PageSeries,
    pair: tuple[int, int],
    kernels: np.ndarray,
    noises: Sequence[float] | np.ndarray,
) -> np.ndarray:
    """Accuracy of kernels (n_kernels, D) under readout noise, (n_kernels, n_noises).

    The plane between the clouds is trained with the noise known.
    """
    stimuli = series.stimuli(pair)
    train, test = (np.isin(c, pair) for c in (series.codes, series.codes_test))
    codes = (series.codes[train] == pair[1]).astype(int)
    sign = np.where(series.codes_test[test] == pair[1], 1.0, -1.0)[:, None]
    share = series.weights[list(pair)] * np.bincount(codes, minlength=2)
    z, z_test = (
        stimuli.transform(X).reshape(len(X), -1) @ kernels.T
        for X in (series.X[train], series.X_test[test])
    )
    low, high = z[codes == 0].mean(0), z[codes == 1].mean(0)
    variance = ((z - np.where(codes[:, None] == 1, high, low)) ** 2).mean(0)
    # The plane of `decisions.decide` for two clouds, all kernels at once.
    apart = np.maximum(high - low, np.finfo(float).tiny)
    odds = float(np.log(share[1] / share[0]))
    found = np.empty((len(kernels), len(noises)))
    for i, noise in enumerate(np.asarray(noises, dtype=float)):
        plane = (low + high) / 2 - odds * (variance + noise**2) / apart
        beyond = sign * (z_test - plane)
        correct = ndtr(beyond / noise) if noise else 0.5 * (1 + np.sign(beyond))
        found[:, i] = correct.mean(0)
    return found


def _round_up(value: float) -> float:
    """The next of 1, 2, 3, 5, 8, 10, … from a value on; 1 if it is not positive."""
    if not (np.isfinite(value) and value > 0):
        return 1.0
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(f * power for f in (1, 2, 3, 5, 8, 10) if f * power >= value))
