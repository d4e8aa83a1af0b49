"""The scikit-learn estimator: a reservoir with both projections solved for.

How a reservoir classifier is fitted: from class moments, or from the series.

A fit on series in chunks: what is known of all of them is summed up where they are.

Checks of the estimator's parameters, in scikit-learn's wording.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..._base.checks import shown
from ..._base.codec import Saved
from ..._base.threads import rows_of_estimator, rows_to_read, with_few_threads
from ...analysis.eta import ETAS, FALLBACK, EtaChoice, Folds, cross_validate, may_hold_out
from ...dynamics.dynamics import Dynamics
from ...math.decisions import Clouds, Decision, decide
from ...networks.gains import Gain
from ...networks.reservoir import Reservoir, UnstableError
from ...stimuli.base import Series
from ...stimuli.chunks import Chunks, by_chunks, chunks_of
from ...stimuli.class_moments import (
    ClassMoments,
    checked_chunk,
    merge_classes,
    moments_of_chunk,
    small_codes,
)
from ...stimuli.frame import Frame, frame_in_chunks, frame_with_series, frames_of
from ...systems import Network
from ...unfolding.unfolding import unfold
from ..series import read_labelled, read_labels_of_chunks, read_series
from .heads import Head, Solved, read_out, share_input, solve_head
from .stream import ClassStream, StreamSample

__all__ = ["ReservoirClassifier"]


def _positive(value: Any) -> bool:
    return _number(value) and value > 0


def _number(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return False
    return math.isfinite(value)


def _integer(value: Any, least: int) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        return False
    return int(value) >= least


def _one_of(value: Any, *names: str) -> bool:
    return isinstance(value, str) and value in names


def _numbers(value: Any, ndim: tuple[int, ...]) -> bool:
    if isinstance(value, str) or value is None:
        return False
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return array.ndim in ndim and array.size > 0 and bool(np.isfinite(array).all())


def _reservoir(value: Any) -> bool:
    if value is None or isinstance(value, Network):
        return True
    dense = value.toarray() if hasattr(value, "toarray") else value
    return _numbers(dense, (2,)) and np.shape(dense)[0] == np.shape(dense)[1]


def _class_weight(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value) and all(_positive(w) for w in value.values())
    return value is None or _one_of(value, "balanced")


#: Parameter to (test, what it must be).
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "input_projection": (
        lambda x: _one_of(x, "optimal", "shared", "random") or _numbers(x, (1, 2)),
        "'optimal', 'shared', 'random' or an array of shape (n_neurons,) or "
        "(n_neurons, n_channels)",
    ),
    "order": (
        lambda x: _one_of(x, "exact") or _integer(x, 0),
        "an int, at least 0, or 'exact'",
    ),
    "alpha": (_number, "a finite number"),
    "n_neurons": (lambda x: _integer(x, 1), "an int, at least 1"),
    "g": (_positive, "a positive number"),
    "tau": (lambda x: _one_of(x, "auto") or _positive(x), "a positive number or 'auto'"),
    "duration": (_positive, "a positive number"),
    "reservoir": (_reservoir, "None, a Reservoir or a square matrix of weights"),
    "eta": (lambda x: _one_of(x, "cv") or _positive(x), "a positive number or 'cv'"),
    "input_scaling": (lambda x: x is None or _positive(x), "a positive number or None"),
    "threshold": (lambda x: _one_of(x, "trained", "origin"), "'trained' or 'origin'"),
    "readout": (
        lambda x: _one_of(x, "end", "integrated") or _positive(x) or _numbers(x, (1,)),
        "'end', 'integrated', a time in (0, duration] or an array of weights, one a step",
    ),
    "readout_noise": (lambda x: _number(x) and x >= 0, "a number, at least 0"),
    "class_weight": (
        _class_weight,
        "None, 'balanced' or a dict of positive weights",
    ),
    "certify": (lambda x: isinstance(x, bool | np.bool_), "a bool"),
    "n_jobs": (
        lambda x: x is None or (_integer(x, -(10**6)) and x != 0),
        "None or an int other than 0",
    ),
}


def check_parameters(estimator: Any) -> None:
    """Refuse a parameter out of its range, naming it."""
    for name, (good, wanted) in _RULES.items():
        value = getattr(estimator, name)
        if not good(value):
            refuse(estimator, name, wanted, value)
    if estimator.order and _one_of(estimator.input_projection, "shared"):
        wanted = "'optimal', 'random' or an array beyond order 0, as one input projection "
        wanted += "for all classes is solved for in the linear network"
        refuse(estimator, "input_projection", wanted, "shared")
    time = estimator.readout
    if _number(time) and time > estimator.duration * (1 + 1e-12):
        refuse(estimator, "readout", f"a time in (0, {estimator.duration:g}]", time)


def refuse(estimator: Any, name: str, wanted: str, value: Any) -> None:
    """Raise the error of a wrong parameter."""
    raise ValueError(
        f"The {name!r} parameter of {type(estimator).__name__} must be {wanted}. "
        f"Got {shown(value)} instead."
    )


#: Draws of a network before its `g` is given up as unstable.
_DRAWS = 100


def make_reservoir(estimator: Any, rng: np.random.Generator) -> Any:
    """The network that the parameters describe, with τ = 0.25 where it is chosen later."""
    tau = 0.25 if isinstance(estimator.tau, str) else float(estimator.tau)
    given = estimator.reservoir
    if isinstance(given, Network):
        return given
    gain = Gain.quadratic(estimator.alpha) if estimator.order else Gain.linear()
    try:
        if given is not None:
            return Reservoir(given, tau, gain)
        # Small networks scatter around the spectral radius g; those that happen to be
        # unstable are drawn again, so that no seed fails by chance.
        size, g = estimator.n_neurons, estimator.g
        return Reservoir.random(size, g, tau, gain, rng, max_draws=_DRAWS)
    except UnstableError as error:
        # Said here in the words of the estimator, which has no `allow_unstable`.
        name, what = ("g", "lower it") if given is None else ("reservoir", "scale it")
        other = (
            ""
            if estimator.order
            else ", or pass reservoir=Reservoir(weights, allow_unstable=True)"
        )
        raise ValueError(
            f"The {name!r} parameter of {type(estimator).__name__} makes the network "
            f"unstable: the largest real part of its eigenvalues is {error.abscissa:.4g} "
            f"and must be below 1; {what} by a factor of {0.9 / error.abscissa:.2g}{other}."
        ) from None


def keep_input(
    estimator: Any, rng: np.random.Generator, n_neurons: int, n_channels: int
) -> np.ndarray | None:
    """The input projection that is not solved for, (n_neurons, n_channels), or None."""
    wish = estimator.input_projection
    if isinstance(wish, str):
        if wish != "random":
            return None
        u = rng.standard_normal((n_neurons, n_channels))
    else:
        u = np.asarray(wish, dtype=np.float64)
        u = u[:, None] if u.ndim == 1 else u
        if u.shape != (n_neurons, n_channels) or not u.any():
            wanted = f"non-zero and of shape ({n_neurons}, {n_channels})"
            refuse(estimator, "input_projection", wanted, wish)
    return u / np.linalg.norm(u)


def class_weights(estimator: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Weight of one series of each class; ``counts`` are numbers or weights of series."""
    wish = estimator.class_weight
    if wish is None:
        return np.ones(len(classes))
    if isinstance(wish, str):
        counted = np.where(counts > 0, counts, 1.0)
        return counts.sum() / (len(classes) * counted)
    known = set(classes.tolist())
    unknown = [label for label in wish if label not in known]
    if unknown:
        refuse(estimator, "class_weight", f"keyed by labels among {sorted(known)}", wish)
    return np.array([float(wish.get(label, 1.0)) for label in classes.tolist()])


def readout_weights(estimator: Any, n_steps: int) -> Any:
    """The readout in the form that `unfold` takes."""
    wish = estimator.readout
    if isinstance(wish, str):
        return None if wish == "end" else np.full(n_steps, 1 / n_steps)
    if np.ndim(wish) == 0:
        return float(wish)
    weights = np.asarray(wish, dtype=np.float64)
    if weights.shape != (n_steps,) or not weights.any():
        refuse(estimator, "readout", f"{n_steps} weights, one a step, not all zero", wish)
    return weights


#: Time constants that "auto" compares, relative to the duration: around the paper's 1/40,
#: from a network that sees the end of a series only to one that hardly forgets.
_TAUS = np.array([1 / 160, 1 / 80, 1 / 40, 1 / 20, 1 / 10])
#: η is chosen again when a stream has grown by this factor: that costs as much as a few
#: choices on the whole of it, and the last one has seen two thirds of the series.
_GROWTH = 1.5
#: Error allowed to a state of the integrated network, relative to the largest.
_STATE_ERROR = 1e-5


class ReservoirFitting(BaseEstimator):
    """The steps of a fit; parameters and attributes are `ReservoirClassifier`'s."""

    input_projection: Any
    order: int | str
    tau: Any
    duration: float
    eta: Any
    input_scaling: float | None
    threshold: str
    readout_noise: float
    certify: bool
    random_state: Any
    n_jobs: int | None
    classes_: np.ndarray
    n_features_in_: int
    n_channels_in_: int
    calibration_: float | None
    shared_bound_: float | None
    _any_length: bool
    _exponent: int
    _stream: ClassStream

    def _fit_series(self, series: Series, codes: np.ndarray, weights: np.ndarray) -> None:
        """Fit where the series themselves are needed."""
        totals = np.bincount(codes, weights, minlength=len(self.classes_))
        per_class = class_weights(self, self.classes_, totals)
        if self.order:
            weighted = weights * per_class[codes]
            frames = [
                frame_with_series(series, codes == c, weighted, self.input_scaling)
                for c in self.compared_
            ]
        else:
            frames = frames_of(
                series, codes, weights, per_class, self.compared_, self.input_scaling
            )
        self._choose(series, codes, weights, per_class)
        heads = self._solve(frames)
        Z = read_out(heads, lambda: self.unfolding_, series)
        self._settle(heads, Clouds.of(Z, codes, weights, per_class))

    def _fit_stream(
        self, series: Series, codes: np.ndarray, weights: np.ndarray, *, whole: bool
    ) -> None:
        """Add a batch to the stream and fit from the class moments.

        η and an automatic τ are chosen on the batch where it is the ``whole`` of the data,
        else on the sample of the stream, and chosen again as the stream grows.
        """
        self._stream.add(series, codes, weights)
        self._solve_stream((series, codes, weights) if whole else None)

    def _solve_stream(
        self, whole: tuple[Series, np.ndarray, np.ndarray] | None = None
    ) -> None:
        """Solve from what is known of the stream, and of ``whole``, where that is all."""
        stream = self._stream
        per_class = class_weights(self, self.classes_, stream.counts)
        series, codes, weights = stream.sampled() if whole is None else whole
        if stream.n_seen >= _GROWTH * stream.chosen_at and self._choose(
            series, codes, weights, per_class
        ):
            stream.chosen_at = stream.n_seen
        frames = [stream.frame(c, per_class, self.input_scaling) for c in self.compared_]
        heads = self._solve(frames)
        self._settle(heads, stream.clouds(heads, per_class))

    def _forget(self) -> None:
        """Drop what an earlier fit left and this one may not replace."""
        for name in ("_stream", "heads_", "reservoir_", "_unfolding_"):
            if hasattr(self, name):
                delattr(self, name)
        self.eta_scores_: EtaChoice | None = None
        self.shared_bound_ = None
        self.calibration_ = None

    @property
    def compared_(self) -> list[int]:
        """Index of the class that each head compares with the rest."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _unit_exponent(self, values: np.ndarray) -> int:
        """Power of two that brings the series to order one, so that no square overflows."""
        largest = float(np.abs(values).max())
        if self.input_scaling is None or largest == 0:
            return 0
        return int(np.clip(np.frexp(largest)[1], -1000, 1000))

    def _in_unit(self, series: Series) -> Series:
        """Series in the internal unit; exact, because it is a power of two."""
        if self._exponent == 0:
            return series
        return replace(series, values=np.ldexp(series.values, -self._exponent))

    def _build(self) -> None:
        """Draw the network, and the input projection that is not solved for."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        self.reservoir_ = make_reservoir(self, rng)
        self._kept = keep_input(self, rng, self.reservoir_.n_neurons, self.n_channels_in_)
        self._fold_seed = int(rng.integers(2**31))

    def _begin_stream(self, series: Series) -> None:
        self._stream = ClassStream.empty(
            len(self.classes_), (series.n_channels, series.n_steps), self._fold_seed
        )

    def _choose(
        self, series: Series, codes: np.ndarray, weights: np.ndarray, per_class: np.ndarray
    ) -> bool:
        """Choose τ and η where they are to be chosen; whether there was enough to do so.

        The series that are held out for it calibrate the probabilities too, also where
        both are given.
        """
        self.eta_ = FALLBACK if self.eta == "cv" else float(self.eta)
        if not may_hold_out(series, codes):
            return False
        if self.tau == "auto":
            self._choose_tau(series, codes, weights, per_class)
        found = self._cross_validate(self.unfolding_, series, codes, weights, per_class)
        self.calibration_ = found.calibration
        if self.eta == "cv":
            self.eta_scores_, self.eta_ = found, found.best
        return True

    def _choose_tau(
        self, series: Series, codes: np.ndarray, weights: np.ndarray, per_class: np.ndarray
    ) -> None:
        """Keep the time constant of the best held-out score."""

        def score(reservoir: Reservoir) -> float:
            unfolding = self._unfold(reservoir)
            found = self._cross_validate(unfolding, series, codes, weights, per_class)
            return found.score.max()

        tried = [self.reservoir_.with_tau(tau) for tau in self.duration * _TAUS]
        self.reservoir_ = max(tried, key=score)  # the first among equals
        if hasattr(self, "_unfolding_"):
            del self._unfolding_

    def _unfold(self, reservoir: Reservoir) -> Solved:
        n_steps = self.n_features_in_
        given: dict[str, Any] = {
            "n_steps": n_steps,
            "dt": self.duration / n_steps,
            "readout": readout_weights(self, n_steps),
        }
        if isinstance(self.order, int | np.integer):
            return unfold(reservoir, order=int(self.order), **given)
        if reservoir.gain.is_linear:
            return unfold(reservoir, **given)
        return Dynamics(reservoir, tol=_STATE_ERROR, **given)

    @property
    def unfolding_(self) -> Solved:
        """The unfolded network, or the integrated one for ``order="exact"``.

        Made again where a file or a pickle does not hold it.
        """
        if not hasattr(self, "_unfolding_"):
            self._unfolding_ = self._unfold(self.reservoir_)
        return self._unfolding_

    def _cross_validate(
        self,
        unfolding: Solved,
        series: Series,
        codes: np.ndarray,
        weights: np.ndarray,
        per_class: np.ndarray,
    ) -> EtaChoice:
        folds = Folds(
            series,
            codes,
            weights,
            per_class,
            self._fold_seed,
            u=self._kept,
            shared=self._shares,
            scaling=self.input_scaling,
            noise=float(self.readout_noise),
            threshold=self.threshold,
            n_jobs=self.n_jobs,
        )
        etas = ETAS if self.eta == "cv" else np.array([float(self.eta)])
        return cross_validate(unfolding.maps, folds, etas)

    def _solve(self, frames: list[Frame]) -> list[Head]:
        """Projections of every comparison, in the internal unit."""
        jobs = (
            delayed(solve_head)(
                self.unfolding_,
                frame,
                self.eta_,
                self._kept,
                certify=bool(self.certify),
                seed=c,
            )
            for c, frame in zip(self.compared_, frames, strict=True)
        )
        found: Any = Parallel(self.n_jobs, prefer="threads")(jobs)
        self.shared_bound_ = None
        if self._shares:
            self.shared_bound_ = found[0].bound
            if len(found) > 1:
                system: Any = self.unfolding_  # of order 0 there is no other
                found, self.shared_bound_ = share_input(
                    system, frames, self.eta_, found, certify=bool(self.certify)
                )
        return found

    @property
    def _shares(self) -> bool:
        """Whether one input projection is solved for all classes together."""
        wish = self.input_projection
        return isinstance(wish, str) and wish == "shared"

    def _settle(self, heads: list[Head], clouds: Clouds) -> None:
        """Keep the heads in the units of the series as given, and decide."""
        decision = decide(clouds, noise=float(self.readout_noise), threshold=self.threshold)
        decision = replace(decision, sureness=self.calibration_)
        own = [
            replace(
                head,
                centre=np.ldexp(head.centre, self._exponent),
                scale=float(np.ldexp(head.scale, -self._exponent)),
            )
            for head in heads
        ]
        self._publish(own, decision)

    def _publish(self, heads: list[Head], decision: Decision) -> None:
        """Fitted attributes: plain for two classes, stacked for more."""
        self.heads_, self.decision_ = heads, decision
        one = len(self.classes_) == 2
        flat = self.n_channels_in_ == 1

        def gather(values: list[Any]) -> Any:
            return values[0] if one else np.stack(values)

        inputs = [h.u[:, 0] if flat else h.u for h in heads]
        self.u_ = inputs[0] if self._shares else gather(inputs)
        self.v_ = gather([h.v for h in heads])
        self.centre_ = gather([h.centre for h in heads])
        self.scale_ = gather([h.scale for h in heads])
        self.soft_margin_ = gather([h.soft_margin for h in heads])
        self.soft_margin_bound_ = gather([h.bound for h in heads])
        self.n_iter_ = gather([h.n_iter for h in heads])
        self.kernel_ = heads[0].kernel if one else [h.kernel for h in heads]
        self.validity_ = heads[0].validity if one else [h.validity for h in heads]
        self.coupling_ = decision.coupling
        self.threshold_ = float(decision.threshold[0]) if one else decision.threshold

    def __getstate__(self) -> dict[str, Any]:
        state: Any = dict(super().__getstate__())  # pyright: ignore[reportCallIssue, reportArgumentType]
        state.pop("_unfolding_", None)  # large, and quickly made again
        return state


#: Moments of every class, a sample of the series, and the largest value.
_Summary = tuple[list[ClassMoments], StreamSample, float]


def fit_chunks(estimator: ReservoirFitting, chunks: Chunks, codes: np.ndarray) -> None:
    """Fit a classifier whose classes and shape are set.

    Parameters
    ----------
    estimator : ReservoirFitting
    chunks : Chunks
    codes : ndarray (n_cases,)
        Class of each series.
    """
    n_classes, shape = len(estimator.classes_), chunks.shape[1:]
    estimator._build()
    own = chunks.split(small_codes(codes, n_classes))
    moments, sample, largest = chunks.total(
        chunks.each(
            _summarise,
            (chunks.series, chunks.firsts, own),
            n_classes,
            shape,
            estimator._fold_seed,
        ),
        _merge,
    )
    exponent = estimator._exponent = estimator._unit_exponent(np.array([largest]))
    # Exact, because the unit is a power of two.
    values = np.ldexp(sample.values.astype(np.float64), -exponent)
    unit = float(np.ldexp(1.0, -exponent))
    estimator._stream = stream = ClassStream(
        [one.scaled(unit) for one in moments],
        replace(sample, values=values),
    )
    if estimator.order == 0:
        estimator._solve_stream()
        return
    per_class = class_weights(estimator, estimator.classes_, stream.counts)
    estimator._choose(*stream.sampled(), per_class)
    frames = [
        frame_in_chunks(
            chunks, stream.moments, codes, c, per_class, estimator.input_scaling, exponent
        )
        for c in estimator.compared_
    ]
    del estimator._stream  # beyond order 0 a stream does not go on
    heads = estimator._solve(frames)
    system = None if all(head.kernel for head in heads) else estimator.unfolding_
    shared = chunks.share((heads, system))
    parts = chunks.each(_read, (chunks.series, chunks.firsts), shape, shared, exponent)
    Z = np.concatenate(chunks.collect(parts))
    estimator._settle(heads, Clouds.of(Z, codes, np.ones(len(codes)), per_class))


def _summarise(
    X: Any, first: int, codes: np.ndarray, n_classes: int, shape: tuple[int, int], seed: int
) -> _Summary:
    moments = moments_of_chunk(X, first, codes, n_classes, shape)
    host = np.asarray(checked_chunk(X, first, shape))
    empty = StreamSample.empty(n_classes, shape, seed)
    sample = empty.add(Series(host), codes.astype(int), np.ones(len(codes)), first)
    return moments, sample, float(max(host.max(), -host.min()))


def _merge(one: _Summary, other: _Summary) -> _Summary:
    moments = merge_classes(one[0], other[0])
    return moments, one[1].merge(other[1]), max(one[2], other[2])


def _read(
    X: Any,
    first: int,
    shape: tuple[int, int],
    fitted: tuple[list[Head], Solved | None],
    exponent: int,
) -> np.ndarray:
    heads, system = fitted
    values = np.ldexp(
        np.asarray(checked_chunk(X, first, shape), dtype=np.float64), -exponent
    )

    def made() -> Solved:
        assert system is not None
        return system

    return read_out(heads, made, Series(values))


def _is_linear(classifier: ReservoirClassifier) -> bool:
    if classifier.order:
        raise AttributeError(
            "partial_fit needs order=0: beyond it, the series themselves must be kept."
        )
    return True


class ReservoirClassifier(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClassifierMixin,
    Saved,
    ReservoirFitting,
    kind="classifier",
):
    """Classify time series by a reservoir whose input projection and readout are solved.

    The projections maximise the soft margin κ of the network states (paper, equation 6,
    `soft_margin_approx_Gaussian`). A fitted reservoir is one kernel per class, so that
    prediction is a matrix product, not a simulation (except with ``order="exact"``).

    Parameters
    ----------
    input_projection : {"optimal", "shared", "random"} or array_like, default "optimal"
        "optimal" solves for u, one for each class where there are more than two; "shared"
        solves for one u that serves all classes (``order=0``), as a device with one mask
        needs it: the sum of their soft margins is maximised, each with its own readout.
        "random" draws u, as usual in reservoir computing; an array of shape (n_neurons,)
        or (n_neurons, n_channels) is kept, at unit norm.
    order : int or "exact", default 0
        Order of the expansion in the non-linearity: 0 is the linear network, 1 the
        paper's O(α). "exact" expands nothing: the projections are solved for through the
        integrated network (`Dynamics`), from the linear optimum on, and `predict` runs it
        on the series, in batches, where the other orders take a product.
    alpha : float, default 0.05
        Non-linearity of the gain φ(y) = y + αy²; used from order 1 on. It does not
        saturate: with ``order="exact"`` a strong series may make it diverge, which is an
        error. Pass ``reservoir=Reservoir.random(100, gain=Gain.tanh())`` for one that does.
    n_neurons : int, default 100
    g : float, default 0.9
        Spread of the random weights, W_ij ~ N(0, g²/N). Unstable draws are repeated.
    tau : float or "auto", default 0.25
        Time constant, in the unit of ``duration``. "auto" compares five values from
        T/160 to T/10 by cross-validation; see `choose_tau` for the paper's way.
    duration : float, default 10
        Time T that the longest series takes.
    reservoir : Reservoir or array_like (n_neurons, n_neurons), optional
        Own network instead of a random one. A Reservoir brings its own time constant
        (unless ``tau="auto"``) and gain.
    eta : float or "cv", default "cv"
        Control parameter η of the soft margin; "cv" chooses it by cross-validation at the
        linear order, under ``readout_noise``.
    input_scaling : float or None, default 1
        ‖μ‖, half the distance of the class means as the network sees them; None leaves
        the series in their own unit.
    threshold : {"trained", "origin"}, default "trained"
        Where the plane along v lies: trained on the clouds of states, or through the
        origin half-way between the class means, as in the paper.
    readout : {"end", "integrated"}, float or array_like (n_steps,), default "end"
        When the network is read: at T, averaged over time, at a chosen time, or with a
        weight for each step.
    readout_noise : float, default 0
        Standard deviation of the noise that every neuron's state will carry when it is
        read. η, threshold and probabilities allow for it.
    class_weight : {None, "balanced"} or dict, default None
        Weight of a series of each class. It says how much a class counts: in the mean of
        the rest that another class is told from, in the plane of decision, and, by its
        square root, in the choice of η. How far series scatter inside a class is taken
        from all of them as they are.
    certify : bool, default False
        Spend the time to bring the upper bound on the soft margin down to it (order 0).
        The bound is valid in any case, but may be loose for large η.
    random_state : int, RandomState or None, default None
        Draws the network, the random projection and the folds.
    n_jobs : int or None, default None
        Threads over folds and classes.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    u_ : ndarray (n_neurons,) or (n_neurons, n_channels)
        Input projection of unit norm. With more than two classes there is one for each,
        along a new first axis, except with ``input_projection="shared"``.
    v_ : ndarray (n_neurons,) or (n_classes, n_neurons)
        Readout of unit norm.
    soft_margin_ : float or ndarray (n_classes,)
    soft_margin_bound_ : float or ndarray (n_classes,)
        No unit projections reach a larger soft margin at this η (NaN beyond order 0); of
        each class for itself, also where u is shared.
    shared_bound_ : float or None
        With ``input_projection="shared"``: no single u reaches a larger sum of
        ``soft_margin_`` over the classes. None otherwise.
    kernel_ : Kernel or list of Kernel
        The collapsed predictor, for series (x − ``centre_``) · ``scale_``; None where the
        order is beyond what plain kernels hold, and with ``order="exact"``.
    centre_ : ndarray (n_channels, n_steps) or (n_classes, n_channels, n_steps)
    scale_ : float or ndarray (n_classes,)
    threshold_ : float or ndarray (n_classes,)
        Subtracted from the (coupled) readout values to give the decision values.
    coupling_ : ndarray (1, 1) or (n_classes, n_classes)
        Weights by which the readouts of all classes decide together.
    reservoir_ : Reservoir
    eta_ : float
    eta_scores_ : EtaChoice or None
        The cross-validation, where there was one; its ``note`` says so where the best η
        is the last of those compared.
    calibration_ : float or None
        Factor by which probabilities of series that were held out are right, see
        `predict_proba`; None where none could be held out.
    validity_ : Validity or None, or list of them
        How far the expansion can be trusted (order ≥ 1).
    n_iter_ : int or ndarray (n_classes,)
    n_features_in_ : int
        Steps of the longest series.
    n_channels_in_ : int

    Notes
    -----
    Series are arrays (n_cases, n_steps) or (n_cases, n_channels, n_steps), or lists of
    (n_steps,) or (n_channels, n_steps) arrays of any length. All end at the readout: a
    short one starts later, and the network rests before. What lies further back than the
    longest training series is not seen.

    More than two classes are told apart one against the rest, each with its own
    projections, or its own readout of one network ("shared"; centre and scale of a class
    are then applied to what is read, as the network is linear); a linear discriminant
    analysis of all readout values then decides.

    Series that do not fit into memory are handed in as a dask array, or as what
    `greenfold.datasets.open_series` returns, in both cases of equal length. Moments, and
    beyond order 0 the sums over states, are formed where the series are; η, an automatic τ
    and the calibration come from a random sample of a thousand series, all of them where
    there are no more. Of a dask array predictions are dask arrays, computed when they are
    asked for.

    Examples
    --------
    >>> from greenfold.estimators.margin import ReservoirClassifier
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> X, y = synthetic_heartbeats(200, rng=0)
    >>> classifier = ReservoirClassifier(random_state=0).fit(X[:100], y[:100])
    >>> bool(classifier.score(X[100:], y[100:]) > 0.8)
    True
    >>> classifier.kernel_.linear.shape
    (1, 140)
    """

    def __init__(
        self,
        *,
        input_projection: Any = "optimal",
        order: int | str = 0,
        alpha: float = 0.05,
        n_neurons: int = 100,
        g: float = 0.9,
        tau: float | str = 0.25,
        duration: float = 10.0,
        reservoir: Any = None,
        eta: float | str = "cv",
        input_scaling: float | None = 1.0,
        threshold: str = "trained",
        readout: Any = "end",
        readout_noise: float = 0.0,
        class_weight: Any = None,
        certify: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.input_projection = input_projection
        self.order = order
        self.alpha = alpha
        self.n_neurons = n_neurons
        self.g = g
        self.tau = tau
        self.duration = duration
        self.reservoir = reservoir
        self.eta = eta
        self.input_scaling = input_scaling
        self.threshold = threshold
        self.readout = readout
        self.readout_noise = readout_noise
        self.class_weight = class_weight
        self.certify = certify
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    # Fitting

    @with_few_threads(rows_of_estimator)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ReservoirClassifier:
        """Solve for the projections.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        y : array_like (n_cases,)
            Class labels.
        sample_weight : array_like (n_cases,), optional
            Weight of each series: one of weight two counts as two of them, one of weight
            zero as none. ``class_weight`` multiplies it.

        Returns
        -------
        self
        """
        check_parameters(self)
        chunks = chunks_of(X)
        if chunks is not None:
            y = read_labels_of_chunks(self, chunks, y, sample_weight)
            self._forget()
            fit_chunks(self, chunks, self._code(y))
            return self
        series, y, weights = read_labelled(self, X, y, sample_weight, fitting=True)
        self._forget()
        codes = self._code(y)
        self._exponent = self._unit_exponent(series.values)
        series = self._in_unit(series)
        self._build()
        if self.order == 0 and series.present is None:
            self._begin_stream(series)
            self._fit_stream(series, codes, weights, whole=True)
        else:
            self._fit_series(series, codes, weights)
        return self

    def _code(self, y: np.ndarray) -> np.ndarray:
        """Keep the classes, and say which of them each series is of."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} can not tell classes apart in data with one class: "
                f"y holds {self.classes_.tolist()[0]!r} only."
            )
        return codes

    @available_if(_is_linear)
    @with_few_threads(rows_of_estimator)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> ReservoirClassifier:
        """Add a batch of a stream and solve again (linear order).

        Of the stream are kept the mean and covariance of each class, and a sample of at
        most a thousand series (twenty of each class where there are many), so that memory
        does not grow with it. A classifier that was fitted, or loaded, goes on.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Series of equal length.
        y : array_like (n_cases,)
        classes : array_like (n_classes,), optional
            All labels that will ever occur; needed at the first call.
        sample_weight : array_like (n_cases,), optional
            As in `fit`.

        Returns
        -------
        self

        Notes
        -----
        With ``eta="cv"``, η is chosen on the sample as soon as it holds two series of at
        least two classes (until then it is 10), and again each time the stream has grown
        by half; so is the time constant with ``tau="auto"``.
        """
        check_parameters(self)
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        series, y, weights = read_labelled(self, X, y, sample_weight, fitting=first)
        if series.present is not None or not (first or hasattr(self, "_stream")):
            raise ValueError(
                "partial_fit needs series of equal length, and a classifier that was "
                "neither fitted on unequal ones nor saved with resumable=False."
            )
        if first:
            self._forget()
            self.classes_ = np.unique(np.asarray(classes))
            if len(self.classes_) < 2:
                raise ValueError(f"classes must hold at least two labels; got {classes!r}.")
            self._exponent = self._unit_exponent(series.values)
            self._build()
            self._begin_stream(series)
        elif classes is not None and not np.array_equal(
            self.classes_, np.unique(np.asarray(classes))
        ):
            raise ValueError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, "
                f"was: {self.classes_!r}"
            )
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, len(self.classes_) - 1)
        if not (self.classes_[codes] == y).all():
            strange = np.setdiff1d(y, self.classes_)[:3].tolist()
            raise ValueError(f"y holds labels that are not in classes: {strange}.")
        self._fit_stream(self._in_unit(series), codes, weights, whole=False)
        return self

    # Prediction

    def __sklearn_is_fitted__(self) -> bool:
        # The last that a fit sets; one that was interrupted has classes, but no heads.
        return hasattr(self, "heads_")

    @by_chunks
    @with_few_threads(rows_to_read)
    def read_out(self, X: Any) -> np.ndarray:
        """Readout values (n_cases, n_heads)."""
        check_is_fitted(self)
        series = read_series(self, X, fitting=False)
        return read_out(self.heads_, lambda: self.unfolding_, series)

    @by_chunks
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases,) or (n_cases, n_classes)
            Two classes: readout value minus threshold, positive for ``classes_[1]``.
            More: log-probabilities up to a constant, the largest wins.
        """
        Z = self.read_out(X)
        scores = self.decision_.scores(Z)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @by_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Class labels.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases,)
        """
        scores = self.decision_function(X)
        index = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)
        return self.classes_[index]

    @by_chunks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, calibrated on training series that were held out.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases, n_classes)

        Notes
        -----
        Gaussian clouds of states along v give log-odds, d below those of the first class;
        the probabilities are in proportion to (1 + d) to the power of −``calibration_``.
        The clouds of the series that v was solved for are too narrow: the factor comes
        from the folds of the cross-validation, solved at the η chosen or given, at the
        linear order.
        """
        Z = self.read_out(X)
        return self.decision_.probabilities(Z)

    @by_chunks
    @with_few_threads(rows_to_read)
    def transform(self, X: Any) -> np.ndarray:
        """Network states at the readout.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list

        Returns
        -------
        ndarray (n_cases, n_neurons) or (n_cases, n_classes · n_neurons)
            With more than two classes, the states under each class's input projection,
            one after the other.
        """
        check_is_fitted(self)
        series = read_series(self, X, fitting=False)
        states = [head.states(series, self.unfolding_) for head in self.heads_]
        return np.concatenate(states, axis=1)

    @property
    def _n_features_out(self) -> int:
        return len(self.heads_) * self.reservoir_.n_neurons

    # Files

    def save(self, path: str | Path, *, resumable: bool = True) -> None:
        """Write the fitted classifier to a file that holds no code.

        Read it with `greenfold.load`.

        Parameters
        ----------
        path : str or Path
            Replaced if it exists, in one step at the end.
        resumable : bool
            Keep what `partial_fit` needs to go on: class covariances and a sample of the
            training series. False leaves them out, for a small file that holds no series.
        """
        kept = copy(self)
        if not resumable:
            vars(kept).pop("_stream", None)
        super(ReservoirClassifier, kept).save(path)
