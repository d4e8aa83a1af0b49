"""From series, or a saved model, and a network to a page: thinned, solved, written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ... import EchoStateNetwork, Reservoir, ReservoirClassifier, Unfolding, unfold
from ..._base import checks as check
from ...estimators.margin.classifier import class_weights
from ..report.comparison import Split
from .page import MAX_NEURONS, Start, room_for_series, write_explorer
from .series import (
    MAX_NUMBERS,
    MAX_SERIES,
    Grid,
    PageSeries,
    SolvedPair,
    prepare,
    solve_grid,
)

#: Pairs of classes that are solved where there are more than two classes.
MAX_PAIRS = 3
#: Numbers of series for which pairs are left out, and those that are kept in any case.
_ENOUGH_NUMBERS, _FEWEST_NUMBERS = 40_000, 2_000


def _text(labels: Any) -> list[str]:
    return [str(label) for label in np.asarray(labels).tolist()]


@dataclass(frozen=True, eq=False)
class Source(Split):
    """Labelled series with what is known of them."""

    #: Factor on the weight of a class, by its name.
    class_weights: dict[str, float] = field(default_factory=dict)
    scaling: float = 1.0  # ‖μ‖ as the series enter the network
    n_series: int = MAX_SERIES  # of training and of test on the page, each

    def only(self, classes: Sequence[str]) -> Source:
        """The same with some of the classes; ValueError where a class does not occur."""
        found = sorted(set(_text(self.y)))
        shown = ", ".join(found[:8]) + (", …" if len(found) > 8 else "")
        for one in classes:
            none = f"`classes` names {one!r}, which is none of the classes of {self.name}"
            check.require(one in found, f"{none}: {shown}.")

        def part(X: Any, y: Any) -> tuple[Any, Any]:
            kept = [i for i, one in enumerate(_text(y)) if one in classes]
            return [X[i] for i in kept], np.asarray(y)[kept]

        X, y = part(self.X, self.y)
        X_test, y_test = (
            ([], None) if self.X_test is None else part(self.X_test, self.y_test)
        )
        tested = {"X_test": X_test, "y_test": y_test} if X_test else {}
        return replace(self, X=X, y=y, **{"X_test": None, "y_test": None, **tested})

    @property
    def n_channels(self) -> int:
        """Number of channels of the first series."""
        return np.atleast_2d(np.asarray(self.X[0])).shape[0]


@dataclass(frozen=True, eq=False)
class Explorer:
    """A page that was made: where, its network, and its data sets with what is solved."""

    path: Path
    unfolding: Unfolding
    sets: list[tuple[PageSeries, list[SolvedPair]]]


def make_explorer(
    path: str | Path,
    sources: Sequence[Source],
    reservoir: Reservoir | EchoStateNetwork,
    *,
    duration: float = 10.0,
    start: Start | None = None,
    title: str = "Turn u yourself",
    note: str = "",
    command: str = "",
    seed: int = 0,
    on_step: Callable[[str, float], None] | None = None,
) -> Explorer:
    """Make the page of one or more data sets on one network.

    Parameters
    ----------
    path : str or Path
    sources : sequence of Source
        Labelled series. All are brought to the steps of the first.
    reservoir : Reservoir or EchoStateNetwork
    duration : float
        Time that a series takes; in discrete time it takes as many steps as it has.
    start : Start, optional
        Where the page begins.
    title, note, command : str
        The heading, a sentence on the network, and the command that made the page.
    seed : int
        Of the random projections.
    on_step : callable, optional
        Called with words and the share of the work that follows, before each part.
    """
    neurons = reservoir.n_neurons
    most = f"the explorer shows networks of up to {MAX_NEURONS}: take a smaller one."
    check.require(neurons <= MAX_NEURONS, f"`reservoir` has {neurons} neurons; {most}")
    prepared: list[PageSeries] = []
    for source in sources:
        prepared.append(_prepare(source, neurons, prepared, len(sources)))
    n_steps = prepared[0].n_steps
    dt = 1.0 if isinstance(reservoir, EchoStateNetwork) else duration / n_steps
    unfolding = unfold(reservoir, n_steps=n_steps, dt=dt)
    grid = Grid.of(n_steps, None if start is None else start.eta)
    chosen = [
        one.pairs()[: _n_pairs(neurons, one.n_channels, len(one.classes))]
        for one in prepared
    ]
    share = 1.0 / (len(grid) * sum(len(pairs) for pairs in chosen))

    def solve(series: PageSeries, pair: tuple[int, int]) -> SolvedPair:
        words = f"solving {' or '.join(series.classes[c] for c in pair)}"
        step = None if on_step is None else partial(on_step, words, share)
        return solve_grid(unfolding, series, pair, grid, seed=seed, on_step=step)

    sets = [
        (series, [solve(series, pair) for pair in pairs])
        for series, pairs in zip(prepared, chosen, strict=True)
    ]
    shown = {"title": title, "note": note, "command": command}
    return Explorer(
        write_explorer(path, unfolding, sets, start=start, **shown), unfolding, sets
    )


def _room(n_neurons: int, n_channels: int, n_pairs: int) -> int:
    """Numbers of series that fit beside so many solved pairs."""
    size = len(Grid.of(100, 0.5))  # with the η of a model
    return room_for_series(n_neurons, n_channels, size, n_pairs)


def _n_pairs(n_neurons: int, n_channels: int, n_classes: int) -> int:
    """Pairs to solve: as many as leave room for series, one at least."""
    most = min(MAX_PAIRS, n_classes * (n_classes - 1) // 2)
    while most > 1 and _room(n_neurons, n_channels, most) < _ENOUGH_NUMBERS:
        most -= 1
    return max(most, 1)


def _prepare(
    source: Source, n_neurons: int, before: Sequence[PageSeries], n_sources: int
) -> PageSeries:
    """Thin one data set so that all of them fit on the page."""
    n_classes = len(set(np.asarray(source.y).tolist()))
    pairs = _n_pairs(n_neurons, source.n_channels, n_classes) * n_sources
    room = _room(n_neurons, source.n_channels, pairs)
    room -= sum(one.X.size + one.X_test.size * (one.judged == "test") for one in before)
    given: dict[str, Any] = vars(source) | {"max_series": source.n_series}
    del given["n_series"]
    steps = before[0].n_steps if before else None
    most = max(_FEWEST_NUMBERS, min(MAX_NUMBERS, room))
    return prepare(**given, n_steps=steps, max_numbers=most)


def which_came_first(
    n_cases: int,
    n_steps: int = 70,
    noise: float = 0.6,
    rng: np.random.Generator | int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw **synthetic** series of two opposite bumps; y = +1 where the upper comes first.

    The bumps vary in time and height on red noise of standard deviation ``noise``.
    """
    n_cases, n_steps = check.count(n_cases, "n_cases"), check.count(n_steps, "n_steps")
    rng = check.generator(rng)
    t = (np.arange(n_steps) + 0.5) / n_steps
    y = rng.permutation(np.where(np.arange(n_cases) % 2, 1, -1))
    X = np.zeros((n_cases, n_steps))
    for place, sign in ((0.36, 1), (0.68, -1)):
        centre = place + 0.04 * rng.standard_normal((n_cases, 1))
        height = 1 + 0.3 * rng.standard_normal((n_cases, 1))
        X += sign * y[:, None] * height * np.exp(-0.5 * ((t - centre) / 0.05) ** 2)
    # Red noise of unit variance that forgets in a twentieth of the time.
    keep = np.exp(-20 / n_steps)
    walk = rng.standard_normal((n_cases, n_steps))
    for n in range(1, n_steps):
        walk[:, n] = keep * walk[:, n - 1] + np.sqrt(1 - keep**2) * walk[:, n]
    return X + noise * walk, y


def built_in_source(seed: int = 0) -> Source:
    """`which_came_first` as a data set of the explorer's; drawn, never measured."""
    X, y = which_came_first(500, rng=seed)
    names = np.where(y > 0, "up first", "down first")
    note = "Two opposite bumps in one order or the other, on red noise; drawn by greenfold."
    parts = (X[:200], names[:200], X[200:], names[200:])
    return Source("Which bump came first", *parts, note, n_series=200)


def kept_series(classifier: ReservoirClassifier, name: str) -> Source:
    """The training series a saved classifier has kept; ValueError where there is none."""
    stream = getattr(classifier, "_stream", None)
    if stream is None or not len(stream.sample.codes):
        how = f"name some after it: greenfold explore {name} DATA."
        raise ValueError(f"`{name}` holds no series to show; {how}")
    sample = stream.sample
    kept = np.bincount(sample.codes, minlength=len(classifier.classes_))
    # A sample stands for all series of its class.
    factors = stream.counts / np.maximum(kept, 1)
    values = np.ldexp(sample.values, classifier._exponent)
    note = f"Series that {name} has kept from its training."
    source = Source(name, values, classifier.classes_[sample.codes], note=note)
    return _as_fitted(source, classifier, stream.counts, factors / factors.max())


def with_model(source: Source, classifier: ReservoirClassifier) -> Source:
    """Series for a model, weighted and scaled as it was told to."""
    given, fitted = source.n_channels, classifier.n_channels_in_
    has = f"`{source.name}` has {given} channel(s), but the model was fitted on {fitted}."
    check.require(given == fitted, has)
    names, labels = _text(classifier.classes_), _text(source.y)
    unknown = min(set(labels) - set(names), default=None)
    has = f"`{source.name}` holds the class {unknown!r}, which the model does not know"
    known = ", ".join(sorted(names)[:8])
    check.require(unknown is None, f"{has}; it knows {known}.")
    counts = np.array([labels.count(one) for one in names], dtype=float)
    return _as_fitted(source, classifier, counts, np.ones(len(counts)))


def _as_fitted(
    source: Source, classifier: Any, counts: np.ndarray, factors: np.ndarray
) -> Source:
    each = class_weights(classifier, classifier.classes_, counts) * factors
    weights = dict(zip(_text(classifier.classes_), each.tolist(), strict=True))
    # Without a scaling of its own a model takes the series in their unit, which the page,
    # where ‖μ‖ is given, cannot know for each pair.
    given = classifier.input_scaling
    scaling = 1.0 if given is None else float(given)
    return replace(source, class_weights=weights, scaling=scaling)


def start_of(classifier: ReservoirClassifier) -> Start:
    """Where a page of a model begins: at its u, η and noise."""
    noise = classifier.readout_noise or None
    return Start(float(classifier.eta_), noise, classifier.heads_[0].u, "The model's u")


def remarks(classifier: ReservoirClassifier) -> str:
    """What the page leaves out of a model, in sentences."""
    said = []
    if classifier.order:
        said.append("The model is non-linear; this page shows its linear part.")
    if not (isinstance(classifier.readout, str) and classifier.readout == "end"):
        said.append("The model has a readout of its own; here it is read at one time.")
    if len(classifier.classes_) > 2:
        first = classifier.classes_[classifier.compared_[0]]
        said.append(f"The model's u is the one for {first} against the rest.")
    return " ".join(said)
