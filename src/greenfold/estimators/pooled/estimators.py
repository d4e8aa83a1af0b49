"""The pooled estimators: features of a reservoir bank, and ridge regression on them.

The features are standardised and weighted by kind. There are more features than cases, so
the ridge regression is solved in its dual form.

More than `DUAL_CASES` series are divided at random into parts of a few thousand. Each part
is solved separately, with the same penalty, and the solutions are averaged. For kernel
ridge regression, this divide and conquer loses little while the parts are large (Zhang,
Duchi and Wainwright, 2015). The penalty is the one for which the average best predicts a
few hundred held-out series; these series also calibrate the probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import array_api_compat as compat
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..._base import model_files
from ..._base.arrays import Array, batches, exponent, like, to_host
from ..._base.model_files import refuse_file
from ..._base.progress import tell, watched
from ..._base.threads import with_few_threads
from ...math.decisions import fit_slope
from ...math.ridge import PENALTIES, dual_path, mean_square, solve_dual
from ...stimuli.chunks import by_chunks
from ..base import (
    ClassLabels,
    SeriesClassifier,
    SeriesEstimator,
    SeriesLike,
    SeriesRegressor,
    class_weights,
    describe_fitted,
)
from ..onnx import Graph, export
from ..parameters import (
    CLASS_WEIGHT,
    COUNT,
    N_JOBS,
    RANDOM_STATE,
    VERBOSE,
    ClassWeight,
    RandomState,
    Rules,
    one_of,
)
from ..series import SeriesByLength, read_by_length, read_labels, read_targets, read_weights
from . import feature_map
from .feature_map import (
    GROUP,
    KINDS,
    N_ROWS,
    N_SIGNALS,
    ROW_WEIGHTS,
    FeatureMap,
    FilterBank,
    LinearHead,
    ScaleReservoir,
    draw_bank,
    fit_map,
    has_numba,
)

#: Largest number of series to solve all at once; the cost grows as the cube of the number.
DUAL_CASES = 4096
#: Largest size in bytes at which the features of the training series are kept.
KEPT_BYTES = 2**30
#: Approximate number of series per part, and of held-out series.
PART_CASES = 2500
HELD_OUT = 512
#: Relative spread below which a feature varies only by rounding.
_ROUNDING = 1e-5
#: Number of columns to standardise at a time.
_COLUMNS = 2**11


@dataclass(kw_only=True, eq=False, repr=False)
class PooledEstimator(SeriesEstimator):
    """A base class for the transformer, the classifier and the regressor."""

    _rules: ClassVar[Rules] = {
        "n_scales": (COUNT,),
        "n_oscillators": (COUNT,),
        "n_readouts": (COUNT,),
        "scaling": (one_of("set", "series"),),
        "engine": (one_of("auto", "numba", "array"),),
        "random_state": RANDOM_STATE,
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }
    _takes_any_length: ClassVar[bool] = True
    _last_fitted: ClassVar[str] = "head_"
    map_: FeatureMap = field(init=False)
    head_: LinearHead = field(init=False)
    penalty_: float = field(init=False)
    held_out_cases_: np.ndarray | None = field(init=False)
    _head_seed: int = field(init=False)

    n_scales: int = 8
    n_oscillators: int = 32
    n_readouts: int = 88
    scaling: str = "set"
    engine: str = "auto"
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_readouts % GROUP or self.n_readouts < 2 * GROUP:
            self._refuse("n_readouts", f"a multiple of {GROUP}, at least {2 * GROUP}")

    def _read(self, X: SeriesLike, *, fitting: bool) -> SeriesByLength:
        return read_by_length(self, X, fitting=fitting, most=DUAL_CASES)

    def _fit_map(self, series: SeriesByLength) -> None:
        """Draw the bank, and compute the scale and thresholds from the series."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        bank = draw_bank(
            float(np.median(series.lengths)),
            series.n_channels,
            rng,
            n_scales=self.n_scales,
            n_oscillators=self.n_oscillators,
            n_readouts=self.n_readouts,
        )
        engine = self._engine(series)
        self.map_ = fit_map(bank, series, rng, scaling=self.scaling, engine=engine)
        self._head_seed = int(rng.integers(2**31))

    def _fit_head(
        self, series: SeriesByLength, targets: np.ndarray, weights: np.ndarray | None = None
    ) -> HeadFit:
        tell("thresholds")
        self._fit_map(series)
        given, seed = (self.map_, series, targets, weights), self._head_seed
        found = fit_head(*given, seed=seed, n_jobs=self.n_jobs)
        self.penalty_, self.held_out_cases_ = found.penalty, found.cases
        return found

    def _scores(self, X: SeriesLike) -> np.ndarray:
        check_is_fitted(self)
        series = self._read(X, fitting=False)
        return self.map_.scores(series, self.head_, self.n_jobs)

    def _engine(self, series: SeriesByLength) -> str:
        if self.engine == "numba" and not has_numba():
            how = "install it with: pip install greenfold[fast]"
            raise ImportError(f"engine='numba' needs numba; {how}")
        if self.engine != "auto":
            return self.engine
        if not series.groups or isinstance(series.groups[0][1], np.ndarray):
            return feature_map.auto_engine()
        return "numba" if has_numba() else "array"  # for later series on the host


class ReservoirFeatures(TransformerMixin, PooledEstimator, kind="pooled_features"):
    """A transformer that computes features of series from a bank of reservoirs.

    The series drive reservoirs of damped oscillators, each with its own time scale. Random
    readouts of the states, and the first and second differences of the readouts, are pooled
    over time. Features do not depend on when something happened, except positions and the
    features of halves and quarters of the time.

    Parameters
    ----------
    n_scales : int, default 8
        Number of reservoirs, with time scales spaced evenly in their logarithm from 1.5
        steps to half the typical length of the training series.
    n_oscillators : int, default 32
        Number of damped oscillators per reservoir.
    n_readouts : int, default 88
        Number of random readouts per reservoir, a multiple of 8.
    scaling : {"set", "series"}, default "set"
        "set" standardises each channel by its mean and deviation over the training set, so
        the level and amplitude of a series matter. "series" uses the mean and deviation of
        each series.
    engine : {"auto", "numba", "array"}, default "auto"
        "numba" is compiled and more than ten times as fast on one thread; "array" needs
        only the array library. "auto" compiles if numba is installed (extra
        ``greenfold[fast]``), and otherwise warns once (`SlowEngineWarning`). Arrays of
        PyTorch and CuPy are always processed by their own library, on their device.
    random_state : int, RandomState or None, default None
        Seed of the oscillators, readouts and thresholds.
    n_jobs : int or None, default None
        Number of threads in which the compiled engine processes series.
    verbose : bool, default False
        Show the progress of a fit if stderr is a terminal.

    Attributes
    ----------
    map_ : FeatureMap
        The bank (``map_.bank``), thresholds and scale.
    n_features_in_, n_channels_in_ : int
        Number of steps of the longest training series, and number of channels.

    Notes
    -----
    Series are arrays (n_cases, n_steps) or (n_cases, n_channels, n_steps), or lists of
    (n_steps,) or (n_channels, n_steps) arrays of any length. NaN inside a series is filled
    by a straight line; NaN at its ends is cut off.

    There are 114 features per readout: 38 of the readout itself, and 38 of each of its two
    differences (see ``KINDS`` in ``pooled.feature_map``). Computation is in single
    precision; a feature that counts steps above a threshold may differ by a step between
    engines.

    A slow reservoir is read every τ₀/6 steps, but at least 128 times per series.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.pooled import ReservoirFeatures
    >>> X, y = synthetic_heartbeats(20, rng=0)
    >>> ReservoirFeatures(n_readouts=16, random_state=0).fit_transform(X).shape
    (20, 14592)
    """

    _last_fitted: ClassVar[str] = "map_"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # features are float32 in any case
        return tags

    @watched
    def fit(self, X: ArrayLike, y: object = None) -> ReservoirFeatures:
        """Draw the bank, and compute the scale and thresholds from the series.

        ``y`` is ignored.
        """
        self._check_parameters()
        with self._all_or_nothing():
            self._fit_map(self._read(X, fitting=True))
        return self

    @by_chunks
    def transform(self, X: SeriesLike) -> Any:
        """Return features (n_cases, n_features_out), float32, on the device of ``X``."""
        check_is_fitted(self)
        series = self._read(X, fitting=False)
        scales = range(len(self.map_.widths))
        blocks = [self.map_.blocks(series, scale, self.n_jobs) for scale in scales]
        return compat.array_namespace(*blocks).concat(blocks, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return feature names such as ``scale0_above1_difference2_readout17``."""
        check_is_fitted(self)
        counts = {kind: rows.stop - rows.start for kind, rows in KINDS.items()}
        names = [
            f"scale{scale}_{kind}{i if n > 1 else ''}_difference{s}_readout{d}"
            for scale, one in enumerate(self.map_.bank.scales)
            for kind, n in counts.items()
            for i in range(n)
            for s in range(N_SIGNALS)
            for d in range(one.n_readouts)
        ]
        return np.array(names, dtype=object)


@dataclass(kw_only=True, eq=False, repr=False)
class PooledReservoirClassifier(
    SeriesClassifier, PooledEstimator, kind="pooled_classifier"
):
    """A classifier of time series that are not aligned, with pooled reservoir features.

    It fits ridge regression to the features of `ReservoirFeatures`, with one target per
    class. Leave-one-out chooses the penalty and calibrates the probabilities.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, engine, random_state, n_jobs, verbose
        See `ReservoirFeatures`.
    class_weight : {None, "balanced"} or dict, default None
        Weight of each series of a class.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    map_, n_features_in_, n_channels_in_
        As in `ReservoirFeatures`.
    head_ : LinearHead
        Coefficients and intercept.
    slope_ : float
        Factor of the scores in the softmax that gives the probabilities.
    penalty_ : float
        Ridge penalty, in units of the squared (standardised, weighted) features.
    held_out_scores_ : ndarray (n,) or (n, n_classes)
        Decision values of the training series ``held_out_cases_``, each computed without
        that series; None in a loaded classifier.
    held_out_cases_ : ndarray (n,) of int
        All training series if there are at most 4096, else 512 drawn at random.

    See Also
    --------
    greenfold.ReservoirClassifier : For aligned series; its predictor is one vector.

    Notes
    -----
    Series are as in `ReservoirFeatures`. A fit uses about 320 kB of memory per training
    series at the defaults, up to 1 GiB; beyond that, it computes the features twice instead
    of keeping them. Beyond 4096 series, the ridge regression is an average over parts of
    about 2500 series, and time grows linearly with the number of series. Predictions keep
    no features.

    Pass series that do not fit into memory as you do to `greenfold.ReservoirClassifier`.
    The parts are then solved where the series are stored, with the same result up to
    rounding.

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.pooled import PooledReservoirClassifier
    >>> X, y = synthetic_heartbeats(120, rng=0)
    >>> classifier = PooledReservoirClassifier(random_state=0).fit(X[:60], y[:60])
    >>> bool(classifier.score(X[60:], y[60:]) > 0.8)
    True
    """

    _rules: ClassVar[Rules] = {**PooledEstimator._rules, "class_weight": CLASS_WEIGHT}
    slope_: float = field(init=False)
    held_out_scores_: np.ndarray | None = field(init=False)
    class_weight: ClassWeight = None

    @with_few_threads(lambda X: len(X))  # of the Gram matrix
    @watched
    def fit(
        self, X: SeriesLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> PooledReservoirClassifier:
        """Draw the bank and fit the ridge regression to class labels ``y`` (n_cases,).

        ``sample_weight`` (n_cases,) holds weights of the series in the ridge regression;
        ``class_weight`` multiplies them. A weight of two counts like two copies, and a
        weight of zero leaves the series out. The scale and thresholds of the features use
        all distinct series, and leave-one-out leaves out all copies of a series together.
        With more than 4096 series, weights affect only the ridge regression.
        """
        self._check_parameters()
        with self._all_or_nothing():
            series = self._read(X, fitting=True)
            labels = read_labels(self, y, len(series))
            given = read_weights(sample_weight, len(series))
            used = np.flatnonzero(given > 0)
            if len(used) < len(given):
                series, labels, given = series.take(used), labels[used], given[used]
            codes = self._encode(labels)
            n_classes = len(self.classes_)
            if len(series) <= DUAL_CASES:
                # Merge copies of a series and add their weights; order series by content.
                same = np.unique(series.hashes(), return_inverse=True)[1].ravel()
                both = same * n_classes + codes
                _, first, copy = np.unique(both, return_index=True, return_inverse=True)
                given = np.bincount(copy.ravel(), given)
                series, codes, used = series.take(first), codes[first], used[first]
            totals = np.bincount(codes, given)
            weights = given * class_weights(self, totals)[codes]
            targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
            if n_classes == 2:
                targets = targets[:, 1:]
            head, _, cases, held_out = self._fit_head(series, targets, weights)
            each = np.concatenate([-held_out, held_out], 1) if n_classes == 2 else held_out
            self.slope_ = fit_slope(each, codes[cases], weights[cases])
            order = np.argsort(used[cases])  # the order of the input
            held_out, self.held_out_cases_ = held_out[order], used[cases][order]
            self.held_out_scores_ = held_out[:, 0] if n_classes == 2 else held_out
            self.head_ = head
        return self

    @by_chunks
    def decision_function(self, X: SeriesLike) -> np.ndarray:
        """Return decision values (n_cases,) or (n_cases, n_classes), fitted to ±1.

        For two classes, positive values mean ``classes_[1]``. For more, the largest wins.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @by_chunks
    def predict_proba(self, X: SeriesLike) -> np.ndarray:
        """Return probabilities (n_cases, n_classes), calibrated on held-out series."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            odds = 2 * self.slope_ * scores
            return np.stack([expit(-odds), expit(odds)], axis=1)
        return softmax(self.slope_ * scores, axis=1)


class PooledReservoirRegressor(SeriesRegressor, PooledEstimator, kind="pooled_regressor"):
    """A regressor of numbers from time series, with pooled reservoir features.

    It fits ridge regression to the features of `ReservoirFeatures`. Leave-one-out chooses
    the penalty.

    Parameters
    ----------
    n_scales, n_oscillators, n_readouts, scaling, engine, random_state, n_jobs, verbose
        See `ReservoirFeatures`.

    Attributes
    ----------
    held_out_predictions_ : ndarray (n,) or (n, n_targets)
        Predictions for the training series ``held_out_cases_``, each computed without that
        series; None in a loaded regressor.
    map_, head_, penalty_, held_out_cases_, n_features_in_, n_channels_in_
        As in `PooledReservoirClassifier`.

    Notes
    -----
    Series are as in `ReservoirFeatures`. Several targets share one penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold.estimators.pooled import PooledReservoirRegressor
    >>> rng = np.random.default_rng(0)
    >>> period = rng.uniform(5, 15, 80)
    >>> phase = rng.uniform(0, 6, (80, 1))
    >>> X = np.sin(2 * np.pi * np.arange(60) / period[:, None] + phase)
    >>> regressor = PooledReservoirRegressor(random_state=0).fit(X[:60], period[:60])
    >>> bool(regressor.score(X[60:], period[60:]) > 0.9)
    True
    """

    held_out_predictions_: np.ndarray | None

    @with_few_threads(lambda X: len(X))  # of the Gram matrix
    @watched
    def fit(self, X: SeriesLike, y: ArrayLike) -> PooledReservoirRegressor:
        """Draw the bank and fit ``y`` of shape (n_cases,) or (n_cases, n_targets)."""
        self._check_parameters()
        with self._all_or_nothing():
            series = self._read(X, fitting=True)
            targets = read_targets(self, y, len(series))
            self._flat = targets.ndim == 1
            # Scale by powers of two, because coefficients are in single precision.
            self._exponents = exponent(targets.reshape(len(targets), -1), 0)
            table = np.ldexp(targets.reshape(len(targets), -1), -self._exponents)
            # One penalty serves targets of different units, so scale each by its deviation.
            unit = table.std(axis=0)
            unit[unit == 0] = 1
            head, _, _, held_out = self._fit_head(series, table / unit)
            held_out = np.ldexp(held_out * unit, self._exponents)
            self.held_out_predictions_ = held_out[:, 0] if self._flat else held_out
            self.head_ = LinearHead(
                head.means,
                [(part * unit).astype(np.float32) for part in head.coefficients],
                head.intercept * unit,
            )
        return self

    @by_chunks
    def predict(self, X: SeriesLike) -> np.ndarray:
        """Predict targets (n_cases,) or (n_cases, n_targets)."""
        found = np.ldexp(self._scores(X), self._exponents)
        return found[:, 0] if self._flat else found


def to_onnx(
    estimator: PooledReservoirClassifier | PooledReservoirRegressor,
    path: str | Path | None = None,
    *,
    dtype: str = "float64",
) -> Any:
    """Export a fitted classifier or regressor as an ONNX graph.

    The estimator must be fitted on series of equal length. If you pass a ``path``, the
    graph is also written to it. The input is of ``dtype``, "float64" or "float32"; features
    are always in single precision.

    Returns
    -------
    onnx.ModelProto
        Input ``X``: (n_cases, n_steps), or (n_cases, n_channels, n_steps) for several
        channels, without missing values. Outputs of a classifier: ``decision`` (n_cases,)
        or (n_cases, n_classes), ``label`` (n_cases,) and ``probability`` (n_cases,
        n_classes); of a regressor: ``prediction`` (n_cases,) or (n_cases, n_targets).

    Notes
    -----
    The graph computes the same as the array engine. It accepts only complete series of the
    training length, because other lengths and gaps would each need a graph of their own.
    onnxruntime agrees with the estimator up to about 1e-3 of the largest score, because
    rounding may move a reading across a threshold.
    """
    if getattr(estimator, "_any_length", False):
        was = f"The {type(estimator).__name__} was fitted on series of unequal length"
        fix = "fit it on series of equal length to export it"
        raise ValueError(f"{was}, but a graph has one length; {fix}.")

    def compute(graph: Graph, X: Any) -> None:
        made, head = estimator.map_, estimator.head_
        x = made.standardise(X)
        scores = made.array_scores(x, head) + head.intercept
        if isinstance(estimator, PooledReservoirRegressor):
            scores = scores * np.ldexp(1.0, estimator._exponents)
            graph.output("prediction", scores[:, 0] if estimator._flat else scores)
            return
        two = len(estimator.classes_) == 2
        each = graph.concat([-scores, scores], axis=1) if two else scores
        graph.decide(scores, each * estimator.slope_, estimator.classes_)

    return export(estimator, path, dtype, compute)


# Ridge regression


class HeadFit(NamedTuple):
    """A fitted head, the held-out ``cases``, and their scores computed without them."""

    head: LinearHead
    penalty: float
    cases: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class _Features:
    """Standardised features (features − mean) · factor of each reservoir."""

    made: FeatureMap
    scales: list[tuple[np.ndarray, np.ndarray]]
    n_jobs: int | None

    def blocks(self, series: SeriesByLength) -> Iterator[Array]:
        """Yield the features of the series, reservoir by reservoir."""
        for scale, (mean, factor) in enumerate(self.scales):
            block = self.made.blocks(series, scale, self.n_jobs)
            block -= like(mean, block)
            block *= like(factor, block, block.dtype)
            yield block

    def head(self, coefficients: list[np.ndarray], intercept: np.ndarray) -> LinearHead:
        """Return the head with coefficients for standardised features."""
        own = [
            (W * factor[:, None]).astype(np.float32)
            for W, (_, factor) in zip(coefficients, self.scales, strict=True)
        ]
        return LinearHead([mean for mean, _ in self.scales], own, intercept)


def fit_head(
    made: FeatureMap,
    series: SeriesByLength,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
) -> HeadFit:
    """Fit ridge regression to the features of training series.

    ``targets`` are (n_cases, n_targets), and ``weights`` (n_cases,) are the weights of the
    cases. ``seed`` determines how more than `DUAL_CASES` series are divided into parts.
    """
    n, features = len(series), _Features(made, [], n_jobs)
    omega = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if n > DUAL_CASES:
        return _fit_parts(features, series, targets, omega, seed)
    keep = 4 * n * sum(made.widths) <= KEPT_BYTES
    gram, kept = np.zeros((n, n)), []
    for scale in range(len(made.widths)):
        tell(f"features of reservoir {scale + 1} of {len(made.widths)}")
        block = made.blocks(series, scale, n_jobs)
        features.scales.append(standard(block))
        gram += gram_of(block)
        if keep:
            kept.append(block)
        del block
    solution = solve_dual(gram, targets, omega)
    given = series, solution.dual, targets, omega, features
    intercept, coefficients = _weigh(*given, kept=kept if keep else None)
    head = features.head(coefficients, intercept)
    return HeadFit(head, solution.penalty, np.arange(n), solution.held_out)


def standard(block: Array) -> tuple[np.ndarray, np.ndarray]:
    """Standardise features in place; return their means, float32, and factors.

    A factor brings a centred feature to its weight; it is zero for a constant feature.
    """
    xp = compat.array_namespace(block)
    n, width = block.shape
    equal = like(np.full((1, n), 1 / n, np.float32), block)
    mean = to_host(equal @ block)[0]
    block -= like(mean, block)
    square = np.empty(width)
    for columns in batches(width, 1, _COLUMNS):
        part = block[:, columns]
        square[columns] = to_host(xp.sum(part * part, axis=0))
    deviation = np.sqrt(square / n)
    weight = np.repeat(ROW_WEIGHTS, width // N_ROWS)
    varies = deviation > _ROUNDING * np.abs(mean) + np.finfo(np.float32).tiny
    factor = np.where(varies, weight / np.where(varies, deviation, 1), 0)
    block *= like(factor, block, block.dtype)
    return mean, factor


def gram_of(block: Array) -> np.ndarray:
    """Return F Fᵀ, computed in single precision; NumPy computes only one triangle."""
    return to_host(block @ block.T).astype(np.float64)


def _weigh(
    few: SeriesByLength,
    dual: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    features: _Features,
    n_parts: int = 1,
    *,
    kept: list[Array] | None = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the contribution of some cases to the intercept and the coefficients.

    ``kept`` holds their features, if they fit into memory.
    """
    blocks = features.blocks(few) if kept is None else kept
    share = weights / weights.sum()
    both = np.concatenate([dual, share[:, None]], axis=1) / n_parts
    intercept, coefficients = share @ targets / n_parts, []
    for block in blocks:
        wide = like(both, block, block.dtype)
        found = to_host(block.T @ wide).astype(np.float64)
        intercept = intercept - n_parts * (found[:, -1] @ found[:, :-1])
        coefficients.append(found[:, :-1])
    return intercept, coefficients


def _fit_parts(
    features: _Features,
    series: SeriesByLength,
    targets: np.ndarray,
    omega: np.ndarray,
    seed: int,
) -> HeadFit:
    order = series.order[np.random.default_rng(seed).permutation(len(series))]
    cases, others = np.sort(order[:HELD_OUT]), order[HELD_OUT:]
    n_parts = max(2, round(len(others) / PART_CASES))
    parts = [np.sort(part) for part in np.array_split(others, n_parts)]
    first = series.take(parts[0])
    for scale in range(len(features.made.widths)):
        block = features.made.blocks(first, scale, features.n_jobs)
        features.scales.append(standard(block))
    held = series.once(_held_blocks, features, series.take(cases))
    own = [targets[part] for part in parts], [omega[part] for part in parts]
    # The first part sets the unit of the penalties of all parts.
    begun = [[entries[0]] for entries in own]
    found = list(series.each_part(_solve_part, parts[:1], begun, None, features, held))
    penalties = found[0][0]
    left = [entries[1:] for entries in own]
    found += series.each_part(_solve_part, parts[1:], left, penalties, features, held)
    scores = sum(part_scores / n_parts for _, _, part_scores in found)
    errors = ((scores - targets[cases]) ** 2).mean(axis=2) @ omega[cases]
    best = int(errors.argmin())
    duals = [dual[best] for _, dual, _ in found]
    coefficients: list[Any] = [0.0] * len(features.scales)
    intercept = np.zeros(targets.shape[1])
    for added, weighed in series.each_part(_weigh, parts, (duals, *own), features, n_parts):
        intercept += added
        coefficients = [a + b for a, b in zip(coefficients, weighed, strict=True)]
    head = features.head(coefficients, intercept)
    return HeadFit(head, float(penalties[best]), cases, np.asarray(scores)[best])


def _held_blocks(features: _Features, outside: SeriesByLength) -> list[Array]:
    return list(features.blocks(outside))


def _solve_part(
    few: SeriesByLength,
    targets: np.ndarray,
    own: np.ndarray,
    penalties: np.ndarray | None,
    features: _Features,
    held: list[Array],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return penalties, dual coefficients for each, and scores of held-out series."""
    n = len(few)
    gram, cross = np.zeros((n, n)), np.zeros((held[0].shape[0], n))
    for outside, block in zip(held, features.blocks(few), strict=True):
        gram += gram_of(block)
        cross += to_host(outside @ block.T).astype(np.float64)
    if penalties is None:
        penalties = PENALTIES * mean_square(gram, own)
    duals = np.stack([dual for dual, _ in dual_path(gram, targets, own, penalties)])
    share = own / own.sum()
    return penalties, duals, (cross - share @ gram) @ duals + share @ targets


# Files

#: Largest stride, which a series of eight million steps has.
_LONGEST_STRIDE = 2**16
#: Version of the layout of features (`KINDS`); raised when it changes.
_LAYOUT = 1

_NEURONS = (2, "n_oscillators")
_FEATURES = (N_ROWS, N_SIGNALS, "n_readouts")

_SCALE = model_files.Object(
    ScaleReservoir,
    decay_times=model_files.Numbers("n_oscillators", positive=True, dtype=np.float64),
    frequencies=model_files.Numbers("n_oscillators", dtype=np.float64),
    u=model_files.Numbers(_NEURONS, "channels", dtype=np.float64),
    readouts=model_files.Numbers(_NEURONS, "n_readouts", dtype=np.float64),
    stride=model_files.COUNT,
)


def _taken_map(made: FeatureMap) -> dict[str, Any]:
    return {**vars(made), "layout": _LAYOUT, "scales": made.bank.scales}


def _made_map(layout: int, scales: list[ScaleReservoir], **parts: Any) -> FeatureMap:
    bank = FilterBank(tuple(scales), scales[0].u.shape[1])
    return FeatureMap(bank=bank, engine="array", **parts)


_THRESHOLDS = model_files.Numbers(3, (N_SIGNALS, "n_readouts"), dtype=np.float32)
_MAP = model_files.Object(
    _made_map,
    _taken_map,
    layout=model_files.one_of([_LAYOUT]),
    scales=model_files.Several(_SCALE, "n_scales"),
    thresholds=model_files.Several(_THRESHOLDS, "n_scales"),
    mean=model_files.Maybe(model_files.Numbers("channels", dtype=np.float64)),
    deviation=model_files.Maybe(
        model_files.Numbers("channels", positive=True, dtype=np.float64)
    ),
)


def _head(n_targets: model_files.Length) -> model_files.Object:
    width = model_files.Numbers(_FEATURES, dtype=np.float32)
    height = model_files.Numbers(_FEATURES, n_targets, dtype=np.float32)
    return model_files.Object(
        LinearHead,
        intercept=model_files.Numbers(n_targets, dtype=np.float64),
        means=model_files.Several(width, "n_scales"),
        coefficients=model_files.Several(height, "n_scales"),
    )


def _finish(made: Any) -> None:
    """Check the loaded estimator, and choose the engine; this machine may lack numba."""
    longest = min(made.n_features_in_, _LONGEST_STRIDE)
    if any(one.stride > longest for one in made.map_.bank.scales):
        refuse_file("its reservoirs have an impossible stride.")
    standardised = [made.map_.mean is not None, made.map_.deviation is not None]
    if standardised != [made.scaling == "set"] * 2:
        refuse_file("its means and deviations do not fit its scaling.")
    if getattr(made, "_flat", False) and len(made.head_.intercept) != 1:
        refuse_file(f"it has {len(made.head_.intercept)} targets, but declares one.")
    engine = feature_map.auto_engine() if made.engine == "auto" else made.engine
    made.map_ = replace(made.map_, engine=engine if has_numba() else "array")
    # Held-out predictions are not saved.
    if isinstance(made, PooledReservoirClassifier):
        made.held_out_cases_ = made.held_out_scores_ = None
    elif isinstance(made, PooledReservoirRegressor):
        made.held_out_cases_ = made.held_out_predictions_ = None


_MAPPED: dict[str, model_files.Field] = {"_any_length": model_files.FLAG, "map_": _MAP}

describe_fitted(ReservoirFeatures, _finish, **_MAPPED)
describe_fitted(
    PooledReservoirClassifier,
    _finish,
    **_MAPPED,
    classes_=ClassLabels(),
    head_=_head("scores"),
    penalty_=model_files.POSITIVE,
    slope_=model_files.POSITIVE,
)
describe_fitted(
    PooledReservoirRegressor,
    _finish,
    **_MAPPED,
    head_=_head("targets"),
    penalty_=model_files.POSITIVE,
    _flat=model_files.FLAG,
    _exponents=model_files.Numbers("targets", dtype=np.int64),
)
