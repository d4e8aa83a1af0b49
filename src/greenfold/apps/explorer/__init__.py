"""A page on which you turn the input projection by hand: one HTML file that works offline.

`make_explorer` makes the page from a network and series of two or more classes. It needs
jinja2 (``pip install greenfold[report]``). The page computes with the numbers stored in it.
Therefore the series are first thinned and rounded, and the solutions are those of the
rounded series.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

import greenfold as gf

from ..._base.checks import must, require
from ..._base.files import plain
from ..._base.messages import listed
from ...estimators.base import class_weights
from ...networks.matrices import dense
from ...optimizers.convex import Convex
from ...optimizers.linear import LinearProblem
from ..report.comparison import Split
from ..report.page import fill_template, write_page

__all__ = ["Source", "Start", "make_explorer"]

#: Largest numbers of values per series (over all channels) and of series per part.
MAX_VALUES, MAX_SERIES = 160, 300
#: Largest number of values of all series of a data set: 16 bits each, 220 kB as text. If
#: less room than the second number is left, fewer pairs of classes are solved. A data set
#: always has room for the third number.
MAX_NUMBERS, _ENOUGH_NUMBERS, _FEWEST_NUMBERS = 84_000, 40_000, 2_000
#: Largest numbers of classes and channels, and of pairs of classes that are solved.
MAX_CLASSES, MAX_CHANNELS, MAX_PAIRS = 20, 8, 3
_LEVELS = 32_000
#: Values of η on the slider, and readout times as shares of the duration.
ETAS = (1.0, 2.0, 5.0, 10.0, 20.0)
TIMES = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)
N_RANDOM, N_NOISES = 50, 25
#: Quantiles of the accuracy of random projections that bound the band.
BAND = (0.1, 0.5, 0.9)

#: JavaScript modules; each imports only from modules before it.
MODULES = (
    "numbers", "eigen", "sphere", "network", "moments", "problem", "climb", "reference",
    "own_file", "address", "embed", "tour", "draw", "ring", "gauge", "clouds", "curves",
    "view", "words", "frame", "main",
)  # fmt: skip
_IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.M)

#: Largest numbers of neurons with E and F in double precision, and in any precision.
DOUBLE_NEURONS, MAX_NEURONS = 64, 128
_N_EDGES = 90  # number of connections to draw
#: Size of a page in bytes, and of its fixed part: script, style and text.
PAGE_BYTES, _FIXED_BYTES = 500_000, 80_000
_BASE64 = 4 / 3  # four characters for three bytes


def _text(labels: ArrayLike) -> list[str]:
    return [str(label) for label in np.asarray(labels).tolist()]


@dataclass(frozen=True, eq=False)
class Source(Split):
    """Labelled series with class weights and scaling."""

    #: Factor on the weight of a class, by its name.
    class_weights: dict[str, float] = field(default_factory=dict)
    scaling: float = 1.0  # ‖μ‖ as the series enter the network
    n_series: int = MAX_SERIES  # of training and of test on the page, each

    @classmethod
    def kept_in(cls, classifier: gf.ReservoirClassifier, name: str) -> Source:
        """Return the training series stored in a classifier; raise if there are none."""
        stream = getattr(classifier, "_stream", None)
        if stream is None or not len(stream.sample.codes):
            how = f"name a data set or file after it: greenfold explore {name} DATA."
            raise ValueError(f"`{name}` holds no series to show; {how}")
        sample = stream.sample
        kept = np.bincount(sample.codes, minlength=len(classifier.classes_))
        # A sample represents all series of its class.
        factors = stream.counts / np.maximum(kept, 1)
        values = np.ldexp(sample.values, classifier._exponent)
        note = f"Training series stored in {name}."
        source = cls(name, values, classifier.classes_[sample.codes], note=note)
        return source._as_fitted(classifier, stream.counts, factors / factors.max())

    def with_model(self, classifier: gf.ReservoirClassifier) -> Source:
        """Return the series with the class weights and the scaling of a model."""
        given, fitted = self.n_channels, classifier.n_channels_in_
        has = f"`{self.name}` has {given} channel(s), but the model was fitted on {fitted}."
        require(given == fitted, has)
        names, labels = _text(classifier.classes_), _text(self.y)
        unknown = min(set(labels) - set(names), default=None)
        has = f"`{self.name}` holds the class {unknown!r}, which the model does not know"
        require(unknown is None, f"{has}; it knows {listed(sorted(names))}.")
        counts = np.array([labels.count(one) for one in names], dtype=float)
        return self._as_fitted(classifier, counts, np.ones(len(counts)))

    def _as_fitted(
        self, classifier: gf.ReservoirClassifier, counts: np.ndarray, factors: np.ndarray
    ) -> Source:
        each = class_weights(classifier, counts) * factors
        weights = dict(zip(_text(classifier.classes_), each.tolist(), strict=True))
        # Without its own scaling, a model uses the unit of the series. The page sets ‖μ‖
        # and cannot know this unit for each pair.
        given = classifier.input_scaling
        scaling = 1.0 if given is None else float(given)
        return replace(self, class_weights=weights, scaling=scaling)

    @property
    def n_channels(self) -> int:
        """Return the number of channels of the first series."""
        return np.atleast_2d(np.asarray(self.X[0])).shape[0]


@dataclass(frozen=True, eq=False)
class Start:
    """Heading and initial state of the page; None means its default or a random u.

    Parameters
    ----------
    eta, noise : float, optional
        Weight of the variance, and readout noise.
    u : ndarray (n_neurons, n_channels), optional
        The input projection.
    label : str
        The owner of that u, for the button.
    title, note : str
        The heading, and a sentence on the network.
    """

    eta: float | None = None
    noise: float | None = None
    u: np.ndarray | None = None
    label: str = ""
    title: str = "Tune u yourself"
    note: str = ""

    @classmethod
    def of(cls, classifier: gf.ReservoirClassifier, name: str) -> Start:
        """Return u, η and noise of a model, and what the page does not show of it."""
        said = []
        if classifier.order:
            said.append("The model is non-linear; this page shows its linear part.")
        if not (isinstance(classifier.readout, str) and classifier.readout == "end"):
            said.append(
                "The model has its own readout; this page reads the network at one time."
            )
        if len(classifier.classes_) > 2:
            first = classifier.classes_[classifier.compared_[0]]
            said.append(f"The u shown is the model's u for {first} against the rest.")
        noise, u = classifier.readout_noise or None, classifier.heads_[0].u
        title, note = f"Tune the u of {name}", " ".join(said)
        return cls(float(classifier.eta_), noise, u, "The model's u", title, note)


@dataclass(frozen=True, eq=False)
class PageSeries:
    """Labelled series as stored in the page, (n_cases, n_channels, n_steps)."""

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
    judged: str = "test"  # or "training", if X_test is X
    thinned: list[str] = field(default_factory=list)  # sentences about omitted parts

    def pairs(self) -> list[tuple[int, int]]:
        """Return pairs of classes (ζ = −1, ζ = +1), the most frequent ones first."""
        counts = np.bincount(self.codes, minlength=len(self.classes))
        seen = np.flatnonzero(counts >= 2).tolist()
        return sorted(combinations(seen, 2), key=lambda pair: -min(counts[list(pair)]))

    def stimuli(self, pair: tuple[int, int]) -> gf.SampleStimuli:
        """Return the moments of one pair, in its own coordinates."""
        chosen = np.isin(self.codes, pair)
        codes = self.codes[chosen]
        share = {c: float((codes == c).sum() * self.weights[c]) for c in pair}
        return gf.SampleStimuli(
            self.X[chosen], codes, class_weight=share, length=self.scaling
        )


def prepare(
    source: Source, n_steps: int | None = None, max_numbers: int = MAX_NUMBERS
) -> PageSeries:
    """Return the series in a form that fits in a page, and notes about omitted parts.

    Series of different lengths are aligned at their ends; shorter series are padded with
    their first value at the beginning. ``n_steps`` is by default as large as fits.
    """
    name, thinned = source.name, []
    values, labels = _cube(source.X, thinned), _text(source.y)
    classes = list(dict.fromkeys(_text(np.unique(source.y))))
    counts = {one: labels.count(one) for one in classes}
    got = ", ".join(f"{counts[one]} of {one!r}" for one in classes[:5])
    two = sum(count >= 2 for count in counts.values()) >= 2
    must(two, name, "hold two classes of at least two series each", got)
    n_channels, given_steps = values.shape[1:]
    few = len(classes) <= MAX_CLASSES and n_channels <= MAX_CHANNELS
    most = f"have at most {MAX_CLASSES} classes and {MAX_CHANNELS} channels"
    how = "(choose classes with `--classes`, or leave channels out)"
    must(few, name, f"{most} {how}", f"{len(classes)} classes and {n_channels} channels")
    parts = {"training": (values, labels)}
    if source.X_test is not None and source.y_test is not None:
        others, found = _cube(source.X_test, [], given_steps), _text(source.y_test)
        known = [i for i, label in enumerate(found) if label in classes]
        if known:
            parts["test"] = others[known], [found[i] for i in known]
    # Each step is a mean over the same number of the given steps.
    fits = max(1, MAX_VALUES // n_channels)
    length = n_steps or -(-given_steps // -(-given_steps // fits))
    if length != given_steps:
        how = "averaged to" if length < given_steps else "repeated to fill"
        thinned.append(f"{given_steps} steps of each series were {how} {length}.")
    room = max(2 * len(classes), max_numbers // (n_channels * length * len(parts)))
    kept = {}
    for part, (values, labels) in parts.items():
        codes = np.array([classes.index(label) for label in labels])
        values = values if length == given_steps else _resample(values, length)
        kept[part] = _thin(values, codes, min(source.n_series, room), part, thinned)
    unit = float(max(np.abs(values).max() for values, _ in kept.values())) / _LEVELS
    zeros = f"`{name}` holds only zeros, which cannot be classified."
    require(np.isfinite(unit) and unit > 0, zeros)
    kept = {part: (np.rint(X / unit) * unit, codes) for part, (X, codes) in kept.items()}
    judged = "test" if "test" in kept else "training"
    weights = np.array([float(source.class_weights.get(one, 1.0)) for one in classes])
    series = (*kept["training"], *kept[judged], unit, source.scaling, judged, thinned)
    return PageSeries(name, source.note, classes, weights, *series)


def _cube(
    X: Iterable[ArrayLike], thinned: list[str], n_steps: int | None = None
) -> np.ndarray:
    """Return series as (n_cases, n_channels, n_steps), padded to one length."""
    series = [np.atleast_2d(np.asarray(one, dtype=float)) for one in X]
    require(series, "there are no series to explore.")
    lengths = {one.shape[1] for one in series}
    longest = max(lengths) if n_steps is None else n_steps
    if len(lengths) > 1:
        thinned.append(
            f"Series of {min(lengths)} to {max(lengths)} steps are aligned at their ends; "
            "shorter series are filled with their first value at the beginning."
        )
    cut = [one[:, -longest:] for one in series]
    before = [((0, 0), (longest - one.shape[1], 0)) for one in cut]
    made = np.stack([np.pad(one, n, "edge") for one, n in zip(cut, before, strict=True)])
    finite = np.isfinite(made).all()
    require(finite, "series must be finite; fill missing values, or use --trim.")
    return made


def _resample(values: np.ndarray, n_steps: int) -> np.ndarray:
    """Return means over ``n_steps`` equal intervals of series constant over their steps."""
    old = values.shape[2]
    edges = np.linspace(0, old, n_steps + 1)
    total = np.concatenate([np.zeros((*values.shape[:2], 1)), values.cumsum(2)], axis=2)
    whole = np.minimum(edges.astype(int), old - 1)
    at = total[..., whole] + (edges - whole) * values[..., whole]
    return np.diff(at, axis=2) * (n_steps / old)


def _thin(
    values: np.ndarray, codes: np.ndarray, room: int, part: str, thinned: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return evenly spaced series of each class with their codes, about ``room`` in all."""
    if len(codes) <= room:
        return values, codes
    kept: list[int] = []
    for c in np.unique(codes):
        members = np.flatnonzero(codes == c)
        share = max(min(2, len(members)), int(room * len(members) / len(codes)))
        kept += members[np.linspace(0, len(members) - 1, share).astype(int)].tolist()
    index = np.sort(kept)
    thinned.append(f"The page holds {len(index)} of {len(codes)} {part} series.")
    return values[index], codes[index]


@dataclass(frozen=True)
class SliderGrid:
    """The values of η and readout steps of a page; the page starts near the η ``usual``."""

    etas: tuple[float, ...]
    steps: tuple[int, ...]
    usual: float = 10.0

    @classmethod
    def of(cls, n_steps: int, eta: float | None = None) -> SliderGrid:
        """Return the grid of a page for series of ``n_steps`` steps, including ``eta``."""
        etas = sorted(set(ETAS) if eta is None else {*ETAS, float(eta)})
        steps = sorted({max(1, round(share * n_steps)) for share in TIMES})
        return cls(tuple(etas), tuple(steps), cls.usual if eta is None else float(eta))

    def __len__(self) -> int:
        return len(self.etas) * len(self.steps)


@dataclass(frozen=True, eq=False)
class SolvedPair:
    """Solutions for one pair of classes; leading axes are η and the readout step."""

    pair: tuple[int, int]
    grid: SliderGrid
    u: np.ndarray
    v: np.ndarray
    soft_margin: np.ndarray
    bound: np.ndarray
    random: np.ndarray  # κ of random u, each with its best readout
    noises: np.ndarray
    #: Quantiles `BAND` of the accuracy of the random u under each noise.
    random_accuracy: np.ndarray


def solve_grid(
    unfolding: gf.Unfolding,
    series: PageSeries,
    pair: tuple[int, int],
    grid: SliderGrid,
    seed: int = 0,
    on_step: Callable[[], None] | None = None,
) -> SolvedPair:
    """Return the solutions for a pair of classes at every η and readout time of a grid."""
    stimuli = series.stimuli(pair)
    channels, neurons = stimuli.n_channels, unfolding.n_neurons
    # The network may be drawn from the plain stream of this seed; u would be rows of W.
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
            best = gf.optimize(system, stimuli, eta, Convex(gap=1e-3))
            best.raise_if_interrupted()
            u[i, j], v[i, j] = best.u.reshape(neurons, channels), best.v
            margin[i, j], separation[i, j] = best.soft_margin, best.separation
            bound[i, j] = np.nan if best.upper_bound is None else best.upper_bound
            a = kernels[i, j]
            random[i, j] = a @ stimuli.mu - 0.5 * eta * ((a @ stimuli.psi) * a).sum(1)
    # Noise matters from about the initial distance between the classes.
    usual = int(np.argmin(np.abs(np.log(np.array(grid.etas) / grid.usual))))
    apart = float(separation[usual, -1])
    apart = apart if np.isfinite(apart) and apart > 0 else 1.0
    power = 10.0 ** np.floor(np.log10(apart))
    most = next(f * power for f in (1, 2, 3, 5, 8, 10) if f * power >= apart)
    noises = np.linspace(0.0, most, N_NOISES)
    accuracy = accuracies(series, pair, kernels.reshape(-1, len(stimuli.mu)), noises)
    accuracy = accuracy.reshape(*shape, N_RANDOM, N_NOISES)
    band = np.moveaxis(np.quantile(accuracy, BAND, axis=2), 0, 2)
    return SolvedPair(pair, grid, u, v, margin, bound, random, noises, band)


def accuracies(
    series: PageSeries, pair: tuple[int, int], kernels: np.ndarray, noises: Iterable[float]
) -> np.ndarray:
    """Return the accuracy of kernels (n_kernels, D) under noise, (n_kernels, n_noises).

    The separating plane is fitted for each noise.
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
    found = []
    for noise in noises:
        plane = (low + high) / 2 - odds * (variance + noise**2) / apart
        beyond = sign * (z_test - plane)
        correct = ndtr(beyond / noise) if noise else 0.5 * (1 + np.sign(beyond))
        found.append(correct.mean(0))
    return np.stack(found, axis=1)


def asset(name: str) -> str:
    """Return the text of a file in the package."""
    folder = files("greenfold.apps.explorer").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")


def script() -> str:
    """Return all modules as one script, in order, without imports and exports."""
    texts = {name: asset(f"js/{name}.js") for name in MODULES}
    bare = {name: _EXPORT.sub("", _IMPORT.sub("", text)) for name, text in texts.items()}
    return "\n".join(f"// {name}.js\n{text.strip()}\n" for name, text in bare.items())


Sets = Sequence[tuple[PageSeries, Sequence[SolvedPair]]]


def render(
    unfolding: gf.Unfolding, sets: Sets, start: Start | None = None, command: str = ""
) -> str:
    """Return the page as text, for data sets with the unfolding's number of steps."""
    neurons, steps, start = unfolding.n_neurons, unfolding.n_steps, start or Start()
    must(
        neurons <= MAX_NEURONS, "unfolding", f"have at most {MAX_NEURONS} neurons", neurons
    )
    for one, _ in sets:
        got = f"{one.name!r} with {one.X.shape[2]}"
        same = one.X.shape[2] == steps
        must(same, "sets", f"have the {steps} steps of `unfolding`", got)
    begin = {name: getattr(start, name) for name in ("eta", "noise", "label")}
    content = {
        "network": _network(unfolding),
        "sets": [_set(series, solved) for series, solved in sets],
        "start": begin | {"u": None if start.u is None else _encode(start.u, "<f8")},
    }
    # "</script>" in a name must not end the script.
    written = json.dumps(plain(content), allow_nan=False).replace("<", "\\u003c")
    return fill_template(
        "explorer/assets/explorer.html",
        title=start.title,
        note=start.note,
        command=command,
        style=asset("explorer.css"),
        script=script(),
        content=written,
        version=gf.__version__,
    )


def room_for_series(n_neurons: int, n_channels: int, n_pairs: int = 1) -> int:
    """Return how many values of series, of 16 bits each, fit in a page with its pairs."""
    matrices = 2 * n_neurons**2 * (8 if n_neurons <= DOUBLE_NEURONS else 4)
    point = n_neurons * (n_channels + 1) + N_RANDOM + len(BAND) * N_NOISES
    # κ and the bound of a point are written as text.
    grid_size = len(SliderGrid.of(100, 0.5))  # with the η of a model
    solved = n_pairs * grid_size * (4 * point + 30)
    left = PAGE_BYTES - _FIXED_BYTES - _BASE64 * (matrices + solved)
    return int(left / (2 * _BASE64))


def _network(unfolding: gf.Unfolding) -> dict[str, Any]:
    E, F = propagators(unfolding)
    kind = "<f8" if unfolding.n_neurons <= DOUBLE_NEURONS else "<f4"
    given = dense(unfolding.reservoir.weights, "the page", "show a smaller network")
    weights = np.array(given, dtype=float)
    np.fill_diagonal(weights, 0.0)
    strongest = np.argsort(-np.abs(weights), axis=None)[:_N_EDGES]
    edges = np.stack(np.unravel_index(strongest, weights.shape), axis=1)
    return {
        "neurons": unfolding.n_neurons,
        "steps": unfolding.n_steps,
        "dt": unfolding.dt,
        "single": kind == "<f4",
        "E": _encode(E, kind),
        "F": _encode(F, kind),
        "edges": edges[weights[tuple(edges.T)] != 0],
    }


def propagators(unfolding: gf.Unfolding) -> tuple[np.ndarray, np.ndarray]:
    """Return E and F of one step of the linear network, y ↦ E y + F u x."""
    n, linear = unfolding.n_neurons, unfolding.linear
    pulse = linear.with_readout(unfolding.dt).input_response(np.eye(n))
    F = pulse.reshape(n, unfolding.n_steps, n)[:, 0].T
    # The maps of a system always include input; the panel has the propagator without it.
    return np.linalg.matrix_power(linear._panel.E.T, linear._n_panels), F


def _set(series: PageSeries, solved: Sequence[SolvedPair]) -> dict[str, Any]:
    parts = {"train": (series.X, series.codes)}
    if series.judged == "test":
        parts["test"] = (series.X_test, series.codes_test)
    proven = [one.pair for one in solved]
    return {
        "name": series.name,
        "note": series.note,
        "thinned": series.thinned,
        "classes": series.classes,
        "weights": series.weights,
        "channels": series.X.shape[1],
        "scaling": series.scaling,
        "unit": series.unit,
        # Pairs with a bound first.
        "pairs": proven + [pair for pair in series.pairs() if pair not in proven],
        **{
            name: {"X": _encode(np.rint(X / series.unit), "<i2"), "codes": _encode(c, "u1")}
            for name, (X, c) in parts.items()
        },
        "solved": [
            {
                "pair": one.pair,
                "etas": one.grid.etas,
                "steps": one.grid.steps,
                "kappa": one.soft_margin.ravel(),
                "bound": one.bound.ravel(),
                "u": _encode(one.u, "<f4"),
                "v": _encode(one.v, "<f4"),
                "random": _encode(one.random, "<f4"),
                "noises": one.noises,
                "accuracy": _encode(one.random_accuracy, "<f4"),
            }
            for one in solved
        ],
    }


def _encode(array: np.ndarray, kind: str) -> str:
    """Return numbers as text (base64), row by row."""
    return base64.b64encode(np.ascontiguousarray(array).astype(kind).tobytes()).decode()


class Explorer(NamedTuple):
    """A page: its path, its network, and its data sets with their solutions."""

    path: Path
    unfolding: gf.Unfolding
    sets: list[tuple[PageSeries, list[SolvedPair]]]


def make_explorer(
    path: str | Path,
    sources: Sequence[Source],
    reservoir: gf.Reservoir | gf.EchoStateNetwork,
    *,
    duration: float = 10.0,
    start: Start | None = None,
    command: str = "",
    seed: int = 0,
    on_step: Callable[[str, float], None] | None = None,
) -> Explorer:
    """Write the explorer page for one or more data sets and one network.

    Parameters
    ----------
    path : str or Path
        File to write.
    sources : sequence of Source
        Labelled series. All are resampled to the number of steps of the first.
    reservoir : Reservoir or EchoStateNetwork
        The network, of at most 128 neurons.
    duration : float
        Duration of a series; unused in discrete time.
    start : Start, optional
        Heading and initial state of the page.
    command : str
        The command that made the page.
    seed : int
        Seed for the random projections.
    on_step : callable, optional
        Called before each part with a description and its share of the work.
    """
    neurons, start = reservoir.n_neurons, start or Start()
    most = f"the explorer shows at most {MAX_NEURONS}: use a smaller network."
    require(neurons <= MAX_NEURONS, f"`reservoir` has {neurons} neurons; {most}")
    chosen: list[tuple[PageSeries, list[tuple[int, int]]]] = []
    used = 0  # values of the series that are already on the page
    for source in sources:
        n_classes, n_channels = len(set(_text(source.y))), source.n_channels
        # As many pairs as leave enough room for the series, but at least one.
        n_pairs = max(1, min(MAX_PAIRS, n_classes * (n_classes - 1) // 2))
        while (
            n_pairs > 1 and room_for_series(neurons, n_channels, n_pairs) < _ENOUGH_NUMBERS
        ):
            n_pairs -= 1
        room = room_for_series(neurons, n_channels, n_pairs * len(sources)) - used
        steps = chosen[0][0].X.shape[2] if chosen else None
        series = prepare(source, steps, max(_FEWEST_NUMBERS, min(MAX_NUMBERS, room)))
        used += series.X.size + series.X_test.size * (series.judged == "test")
        chosen.append((series, series.pairs()[:n_pairs]))
    n_steps = chosen[0][0].X.shape[2]
    dt = 1.0 if isinstance(reservoir, gf.EchoStateNetwork) else duration / n_steps
    unfolding = gf.unfold(reservoir, n_steps=n_steps, dt=dt)
    grid = SliderGrid.of(n_steps, start.eta)
    share = 1.0 / (len(grid) * sum(len(pairs) for _, pairs in chosen))
    sets = [(series, []) for series, _ in chosen]
    for (series, pairs), (_, solved) in zip(chosen, sets, strict=True):
        for pair in pairs:
            words = f"solving {' against '.join(series.classes[c] for c in pair)}"
            step = None if on_step is None else partial(on_step, words, share)
            solved.append(solve_grid(unfolding, series, pair, grid, seed, step))
    page = write_page(path, render(unfolding, sets, start, command))
    return Explorer(page, unfolding, sets)


def which_came_first(n_cases: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw **synthetic** series of two opposite bumps; y = +1 if the upper comes first.

    The bumps vary in time and height, and have red noise.
    """
    rng, n_steps = np.random.default_rng(seed), 70
    t = (np.arange(n_steps) + 0.5) / n_steps
    y = rng.permutation(np.where(np.arange(n_cases) % 2, 1, -1))
    X = np.zeros((n_cases, n_steps))
    for place, sign in ((0.36, 1), (0.68, -1)):
        centre = place + 0.04 * rng.standard_normal((n_cases, 1))
        height = 1 + 0.3 * rng.standard_normal((n_cases, 1))
        X += sign * y[:, None] * height * np.exp(-0.5 * ((t - centre) / 0.05) ** 2)
    # Red noise of unit variance; its correlation time is a twentieth of the duration.
    keep = np.exp(-20 / n_steps)
    walk = rng.standard_normal((n_cases, n_steps))
    for n in range(1, n_steps):
        walk[:, n] = keep * walk[:, n - 1] + np.sqrt(1 - keep**2) * walk[:, n]
    return X + 0.6 * walk, y


def built_in_source(seed: int = 0) -> Source:
    """Return `which_came_first` as a synthetic data set for the explorer."""
    X, y = which_came_first(500, seed)
    names = np.where(y > 0, "up first", "down first")
    note = "Two opposite bumps, in either order, on red noise; made by greenfold."
    parts = (X[:200], names[:200], X[200:], names[200:])
    return Source("Which bump came first", *parts, note, n_series=200)
