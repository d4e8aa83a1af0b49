"""The margin classifier, which solves for the input projection and readout of a reservoir.

Each comparison of a class with the rest is a `Head`, with its own origin, projections and
kernel. `ReservoirClassifier` solves the heads and decides between them; `to_numpy` and
`to_onnx` export a fitted one for use without greenfold.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy.special import ndtr
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .._base import checks as check
from .._base import model_files
from .._base.arrays import exponent, in_chunks, like, to_host
from .._base.files import replacing
from .._base.model_files import ModelFileError, refuse_file
from .._base.printing import Shown
from .._base.progress import AsPart, display, watched
from .._base.threads import with_few_threads
from ..analysis.eta import ETAS, FALLBACK, EtaChoice, Folds, cross_validate
from ..devices.noise import covariance
from ..devices.response import MeasuredResponse
from ..dynamics.integration import Dynamics
from ..math.class_moments import ClassMoments
from ..math.decisions import Clouds, Decision, decide
from ..networks.gains import Gain
from ..networks.reservoir import Reservoir
from ..optimizers.ascent import Ascent, foretell
from ..optimizers.convex import Convex, bound_near
from ..optimizers.linear import LinearProblem
from ..optimizers.run import optimize
from ..optimizers.shared import SharedProblem, solve_shared
from ..stimuli.base import Series
from ..stimuli.chunks import (
    by_chunks,
    checked_chunk,
    chunks_of,
    host_labels,
    merge_classes,
    moments_of_chunk,
    small_codes,
)
from ..stimuli.frame import (
    STREAM,
    ClassStream,
    Frame,
    StreamSample,
    frame_in_chunks,
    frame_with_series,
    frames_of,
)
from ..unfolding.kernels import KERNEL, Kernel
from ..unfolding.unfolding import Unfolding, unfold
from ..validity import Validity
from .base import (
    FITTED_NETWORK,
    ClassLabels,
    NetworkEstimator,
    SeriesClassifier,
    SeriesLike,
    Unset,
    class_weights,
    describe_fitted,
    rows_to_fit,
    rows_to_read,
    sizes_of,
)
from .onnx import Graph, export
from .parameters import (
    CLASS_WEIGHT,
    FLAG,
    N_JOBS,
    NONE,
    POSITIVE,
    ClassWeight,
    Idle,
    RandomState,
    Rules,
    array,
    one_of,
    real,
    whole,
)
from .series import match_shape, read_aligned, read_labelled, read_labels

__all__ = ["ModelFileError", "ReservoirClassifier", "noisy_accuracy", "to_numpy", "to_onnx"]

#: Time constants that "auto" compares, relative to the duration. They surround the paper's
#: 1/40, from a network that sees only the end of a series to one that hardly forgets.
_TAUS = np.array([1 / 160, 1 / 80, 1 / 40, 1 / 20, 1 / 10])
#: η is chosen again when a stream has grown by this factor. All choices together cost as
#: much as a few choices on all series, and the last choice has seen two thirds of them.
_GROWTH = 1.5
#: Tolerated error of the states of an integrated network, relative to the largest state.
_STATE_ERROR = 1e-5
#: Number of starts for an integrated network: the linear optimum with both signs.
_STARTS = 2

#: The systems that a classifier solves and reads.
Solved: TypeAlias = Unfolding | MeasuredResponse | Dynamics


@dataclass(frozen=True, eq=False, repr=False)
class Head(Shown):
    """A fitted comparison: its coordinates, projections and kernel."""

    #: Centre and scale of its `Frame`, in the original units of the series.
    centre: np.ndarray
    scale: float
    #: (n_inputs, n_channels) and (n_outputs,).
    u: np.ndarray
    v: np.ndarray
    #: None if the order is too high for plain kernels.
    kernel: Kernel | None
    #: κ, and a proven upper bound over all projections (NaN if there is none).
    soft_margin: float
    bound: float
    n_iter: int
    validity: Validity | None = None
    #: Number of sub-steps per step that the tolerance of an integrated network required on
    #: the training series; None for an unfolded network.
    n_sub: int | None = None

    def _facts(self) -> dict[str, Any]:
        facts = {"soft_margin": self.soft_margin, "bound": self.bound}
        return {**facts, "scale": self.scale, "u": self.u.shape, "kernel": self.kernel}

    def states(self, series: Series, system: Solved) -> np.ndarray:
        """Return the network states (n_cases, n_outputs)."""
        X = series.to_network(self.centre, self.scale)
        if isinstance(system, Dynamics):
            return to_host(system.states(X, self.u, n_sub=self.n_sub))
        return to_host(system.states(X, self.u))


_SUB_STEPS = model_files.Plain(
    "a number of sub-steps up to 10,000", lambda x: type(x) is int and 1 <= x <= 10_000
)
HEAD = model_files.Object(
    Head,
    centre=model_files.Numbers("channels", "steps"),
    scale=model_files.NUMBER,
    u=model_files.Numbers("inputs", "channels"),
    v=model_files.Numbers("outputs"),
    kernel=model_files.Maybe(KERNEL),
    soft_margin=model_files.NUMBER,
    validity=model_files.Maybe(model_files.Object(Validity)),
    n_sub=model_files.Maybe(_SUB_STEPS),
)


def solve_head(
    system: Solved,
    frame: Frame,
    eta: float,
    u: np.ndarray | None,
    *,
    certify: bool,
    seed: int,
) -> Head:
    """Solve one comparison, keeping ``u`` (n_neurons, n_channels) if it is given.

    With ``certify``, close the gap to the upper bound (order 0). Beyond order 0, the frame
    must hold its series, and ``seed`` determines the random starts.
    """
    n_sub = kernel = None
    stimuli, known = frame.stimuli, u is not None
    if isinstance(system, Dynamics):
        own = system.with_tol(system.tol)  # heads run in threads; each records its error
        method = None if known else Ascent(n_starts=_STARTS)
        found = optimize(own, stimuli, eta, method, u=u)
        assert own.step_error is not None
        n_sub = own.step_error.n_sub
    elif isinstance(system, Unfolding) and system.order:
        found = optimize(system, stimuli, eta, u=u, rng=None if known else seed)
    else:
        method = None if known else Convex() if certify else Convex(gap=np.inf)
        found = optimize(system, stimuli, eta, method, u=u)
    found.raise_if_interrupted()
    projection, bound = found.u.reshape(system.n_inputs, -1), found.upper_bound
    if known and system.is_linear:
        problem = LinearProblem(system.maps, stimuli, eta)
        bound = max(bound_near(problem, projection, found.v), found.soft_margin)
    recorded = isinstance(system, MeasuredResponse)
    if recorded or (isinstance(system, Unfolding) and system.has_kernels):
        kernel = system.kernels(projection, found.v)
    return Head(
        centre=frame.centre,
        scale=frame.scale,
        u=projection,
        v=found.v,
        kernel=kernel,
        soft_margin=found.soft_margin,
        bound=np.nan if bound is None else bound,
        n_iter=max(1, found.n_iter),
        validity=found.validity,
        n_sub=n_sub,
    )


def share_input(
    system: Unfolding | MeasuredResponse,
    frames: list[Frame],
    eta: float,
    alone: list[Head],
    *,
    certify: bool,
) -> tuple[list[Head], float]:
    """Solve all comparisons with one input projection (order 0); return heads and a bound.

    The bound limits the sum of the soft margins for any u. ``alone`` holds the heads solved
    separately, each with its own u. They serve as starts, and their bounds are kept.
    """
    parts = tuple(LinearProblem(system.maps, frame.stimuli, eta) for frame in frames)
    starts, separate = [head.u for head in alone], sum(head.bound for head in alone)
    found = solve_shared(SharedProblem(parts), starts, separate, certify=certify)
    heads = [
        replace(
            head,
            u=found.u,
            v=v,
            kernel=system.kernels(found.u, v),
            soft_margin=margin.value,
            bound=max(head.bound, margin.value),
            n_iter=max(1, found.n_iter),
        )
        for head, v, margin in zip(alone, found.V.T, found.margins, strict=True)
    ]
    return heads, found.bound


def read_out(heads: list[Head], system: Callable[[], Solved], series: Series) -> np.ndarray:
    """Return the readout values (n_cases, n_heads) of series in their original units.

    If all kernels are linear, one matrix product serves all heads. ``system`` returns the
    network, which runs once for each head without a kernel.
    """
    kernels: list[Any] = [head.kernel for head in heads]
    if any(kernel is None or kernel.quadratic is not None for kernel in kernels):
        values = [
            head.states(series, system()) @ head.v
            if head.kernel is None
            else head.kernel.decision_values(series.moved(head.centre, head.scale))
            for head in heads
        ]
        return np.stack(values, axis=1)
    weights, origin = _linear_rows(heads)
    with np.errstate(over="ignore", invalid="ignore"):  # reported below
        Z = series.values.reshape(len(series), -1) @ weights.reshape(len(heads), -1).T
    check.finite_result(Z, np)
    if series.present is None:
        return Z - origin.sum(axis=(1, 2))
    return Z - series.present @ origin.sum(axis=1).T


def _linear_rows(heads: list[Head]) -> tuple[np.ndarray, np.ndarray]:
    """Return weights and offsets of linear heads, (n_heads, n_channels, n_steps)."""
    rows = np.stack([head.kernel.linear * head.scale for head in heads if head.kernel])
    return rows, rows * np.stack([head.centre for head in heads])


class _Labelled(NamedTuple):
    """Series with their classes 0, 1, …, their weights, and the weight of each class."""

    series: Series
    codes: np.ndarray
    weights: np.ndarray
    per_class: np.ndarray


def _is_linear(classifier: ReservoirClassifier) -> bool:
    why = "partial_fit needs order=0, because higher orders need all series; use fit."
    check.require(not classifier.order, why, AttributeError)
    return True


@dataclass(kw_only=True, eq=False, repr=False)
class ReservoirClassifier(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    SeriesClassifier,
    NetworkEstimator,
    kind="classifier",
):
    """A time-series classifier that solves for a reservoir's input projection and readout.

    The projections maximise the soft margin κ of the network states (paper, equation 6,
    `soft_margin_approx_Gaussian`). A fitted reservoir collapses to one kernel per class, so
    a prediction is a matrix product, not a simulation (except with ``order="exact"``).

    Parameters
    ----------
    input_projection : {"solved", "shared", "random"} or array_like, default "solved"
        "solved" solves for u, with one u per class if there are more than two classes.
        "shared" solves for a single u, for devices with one mask (order 0); it maximises
        the sum of the soft margins of all classes. "random" draws u, as is usual in
        reservoir computing. An array (n_neurons,) or (n_neurons, n_channels) is used as u,
        scaled to unit norm.
    order : int or "exact", default 0
        Order of the expansion in the non-linearity: 0 is the linear network, 1 the paper's
        O(α). "exact" starts at the linear optimum and optimises through the integrated
        network (`Dynamics`); `predict` then runs this network on the series.
    alpha : float, default 0.05
        Non-linearity of the gain φ(y) = y + αy², used from order 1 on. This gain does not
        saturate: with ``order="exact"``, a strong series can make the network diverge,
        which raises an error. For a gain that saturates, pass
        ``reservoir=Reservoir.random(100, gain=Gain.tanh())``.
    n_neurons : int, default 100
    g : float, default 0.9
        Spread of the random weights, W_ij ~ N(0, g²/N). Unstable draws are repeated.
    tau : float or "auto", default 0.25
        Time constant, in the unit of ``duration``. "auto" compares five values from T/160
        to T/10 by cross-validation; `choose_tau` follows the paper.
    duration : float, default 10
        Duration T of the longest series.
    reservoir : Reservoir, MeasuredResponse or array_like (n_neurons, n_neurons), optional
        Your own network instead of a random one. A Reservoir keeps its own time constant
        (unless ``tau="auto"``) and gain. A MeasuredResponse of a device is linear (order
        0), has its own time step, and is read after the last step; u then has one row per
        input of the device, and v one entry per output.
    eta : float or "cv", default "cv"
        Control parameter η of the soft margin. "cv" chooses it by cross-validation at
        linear order, taking ``readout_noise`` into account.
    input_scaling : float or None, default 1
        ‖μ‖, half the distance between the class means at the network's input; None keeps
        the unit of the series.
    threshold : {"trained", "origin"}, default "trained"
        Position of the decision plane along v. "trained" fits it to the clouds of states;
        "origin" puts it at the origin, midway between the class means, as in the paper.
    readout : {"end", "integrated"}, float or array_like (n_steps,), default "end"
        When the network is read: at T ("end"), averaged over time ("integrated"), at a
        given time, or with one weight per step.
    readout_noise : float, default 0
        Standard deviation of the noise on each neuron's state when it is read. The choice
        of η, the threshold and the probabilities take it into account.
    class_weight : {None, "balanced"} or dict, default None
        Weight of each series of a class. It enters the mean of the rest that a class is
        compared with, the decision plane and, as its square root, the choice of η. It does
        not affect the scatter within a class.
    certify : bool, default False
        Spend extra time to lower the upper bound to the soft margin (order 0). The bound is
        always valid, but may be loose for large η.
    random_state : int, RandomState or None, default None
        Seed of the network, the random projection and the folds.
    n_jobs : int or None, default None
        Number of threads that process folds and classes in parallel.
    verbose : bool, default False
        Show the progress of a fit, with κ and the gap of each class, if stderr is a
        terminal.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
    u_ : ndarray (n_neurons,) or (n_neurons, n_channels)
        Input projection of unit norm. With more than two classes, a new first axis holds
        one projection per class, unless u is shared. The attributes of the readouts are
        stacked in the same way.
    v_ : ndarray (n_neurons,) or (n_classes, n_neurons)
        Readout of unit norm.
    soft_margin_, soft_margin_bound_ : float or ndarray (n_classes,)
        Soft margin κ, and an upper bound on it for all projections of unit norm at this η
        (NaN beyond order 0). The bound holds for each class separately, even if u is
        shared.
    shared_bound_ : float or None
        Upper bound on the sum of ``soft_margin_`` over the classes for any shared u; None
        if u is not shared.
    kernel_ : Kernel or list of Kernel
        Collapsed predictor for series (x − ``centre_``) · ``scale_``; None if the order is
        too high for plain kernels, and with ``order="exact"``.
    threshold_ : float or ndarray (n_classes,)
        Decision values are ``coupling_`` times the readout values, minus ``threshold_``.
        ``coupling_`` has shape (1, 1) or (n_classes, n_classes).
    reservoir_ : Reservoir or MeasuredResponse
    eta_ : float
        The η used. ``eta_scores_`` is the `EtaChoice` of its cross-validation, if there was
        one.
    calibration_ : float or None
        Exponent of `predict_proba`; None if no series could be held out.
    validity_ : Validity or None, or list of them
        How far you can trust the expansion (order ≥ 1).
    n_features_in_, n_channels_in_ : int
        Number of steps of the longest series, and number of channels.

    Notes
    -----
    Series are arrays (n_cases, n_steps) or (n_cases, n_channels, n_steps), or lists of
    (n_steps,) or (n_channels, n_steps) arrays of any length. All series end at the readout:
    a shorter series starts later, and the network is at rest until then. Steps further back
    than the longest training series are ignored.

    With more than two classes, each class is compared with the rest. Each comparison has
    its own projections or, with "shared", its own readout of one network. That network is
    linear, so the centre and scale of a class apply to the readout. A linear discriminant
    analysis of all readout values then decides.

    Pass series that do not fit into memory as a dask array, or as the result of
    `greenfold.datasets.open_series`; they must have equal length. The moments and, beyond
    order 0, the sums over states are computed where the series are stored. η, an automatic
    τ and the calibration come from a random sample of at most a thousand series.
    Predictions for a dask array are lazy dask arrays.

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

    _last_fitted = "heads_"
    _keeps_gain = 'order="exact" solves through the non-linear network'
    _rules: ClassVar[Rules] = {
        **NetworkEstimator._rules,
        "input_projection": (
            one_of("solved", "shared", "random"),
            *NetworkEstimator._rules["input_projection"][1:],
        ),
        "order": (whole(0), one_of("exact")),
        "alpha": (real(-np.inf, np.inf, "()"),),
        "tau": (POSITIVE, one_of("auto")),
        "eta": (POSITIVE, one_of("cv")),
        "input_scaling": (NONE, POSITIVE),
        "threshold": (one_of("trained", "origin"),),
        "readout": (
            one_of("end", "integrated"),
            POSITIVE,
            array("an array (n_steps,) of weights", 1),
        ),
        "class_weight": CLASS_WEIGHT,
        "certify": (FLAG,),
        "n_jobs": N_JOBS,
    }

    input_projection: str | ArrayLike = "solved"
    order: int | str = 0
    alpha: float = 0.05
    n_neurons: int = 100
    g: float = 0.9
    tau: float | str = 0.25
    duration: float = 10.0
    reservoir: Reservoir | MeasuredResponse | ArrayLike | None = None
    eta: float | str = "cv"
    input_scaling: float | None = 1.0
    threshold: str = "trained"
    readout: str | float | ArrayLike = "end"
    readout_noise: float = 0.0
    class_weight: ClassWeight = None
    certify: bool = False
    random_state: RandomState = None
    n_jobs: int | None = None
    verbose: bool = False

    def _idle(self) -> list[Idle]:
        own = self.reservoir if isinstance(self.reservoir, Reservoir) else None
        linear = own.gain.is_linear if own else self.alpha == 0
        fixed, recorded = not self._solves, isinstance(self.reservoir, MeasuredResponse)
        last = "with a MeasuredResponse, which is known after the last step only"
        return [
            *super()._idle(),
            (recorded, "with a MeasuredResponse, which is linear", ("order", "alpha")),
            (recorded, last, ("readout",)),
            (own is not None, "with a Reservoir, which has its own gain", ("alpha",)),
            (self.order == 0, "with order=0, which has no non-linearity", ("alpha",)),
            (linear, "with a network whose gain is linear", ("order",)),
            (self.order != 0, "beyond order 0, which has no bound", ("certify",)),
            (fixed, "with a given or random input projection", ("certify",)),
        ]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.order and self._shares:
            wanted = "'solved', 'random' or an array beyond order 0, because a shared "
            wanted += "input projection can be solved only in the linear network"
            self._refuse("input_projection", wanted)
        wish, last = self.readout, self.duration * (1 + 1e-12)
        if not isinstance(wish, str) and np.ndim(wish) == 0 and np.asarray(wish) > last:
            self._refuse("readout", f"a time in (0, {self.duration:g}]")

    # Fitting

    @with_few_threads(rows_to_fit)
    @watched
    def fit(
        self, X: SeriesLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> ReservoirClassifier:
        """Fit the classifier: solve for the input projections and readouts.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        y : array_like (n_cases,)
            Class labels.
        sample_weight : array_like (n_cases,), optional
            Weight of each series. A weight of two counts like two copies, and a weight of
            zero leaves the series out. ``class_weight`` multiplies it.
        """
        self._check_parameters()
        with self._all_or_nothing():
            if in_chunks(X):
                self._fit_chunks(X, y, sample_weight)
                return self
            series, y, weights = read_labelled(self, X, y, sample_weight, fitting=True)
            codes = self._encode(y)
            self._build()
            self._set_unit(float(np.abs(series.values).max()))
            series = self._in_unit(series)
            if self.order == 0 and series.present is None:
                self._stream = self._empty_stream()
                self._stream.add(series, codes, weights)
                self._solve_stream((series, codes, weights))
            else:
                self._fit_series(series, codes, weights)
        return self

    @available_if(_is_linear)
    @with_few_threads(rows_to_fit)
    @watched
    def partial_fit(
        self,
        X: SeriesLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ReservoirClassifier:
        """Add a batch of a stream and solve again (linear order).

        The classifier keeps the mean and covariance of each class, and a sample of at most
        a thousand series (twenty per class if there are many classes), so memory does not
        grow with the stream. You can also continue with a fitted or loaded classifier. With
        ``eta="cv"``, η is 10 until the sample holds two series of at least two classes.
        Then it is chosen on the sample, and again each time the stream has grown by half.
        With ``tau="auto"``, the time constant is chosen at the same times.

        Series must have equal length. ``classes`` lists all labels that can ever occur;
        pass it in the first call.
        """
        self._check_parameters()
        first, told = not hasattr(self, "classes_"), classes is not None
        why = "classes must be passed on the first call to partial_fit."
        check.require(told or not first, why)
        series, y, weights = read_labelled(self, X, y, sample_weight, fitting=first)
        check.require(
            series.present is None and (first or hasattr(self, "_stream")),
            "partial_fit needs series of equal length, and a classifier that was neither "
            "fitted on series of unequal length nor saved with resumable=False.",
        )
        known = np.unique(np.asarray(classes)) if told else self.classes_
        if first:
            why = f"classes must hold at least two labels; got {classes!r}."
            check.require(len(known) > 1, why)
            self.classes_ = known
            self._build()
            self._set_unit(float(np.abs(series.values).max()))
            self._stream = self._empty_stream()
        why = f"`classes={classes!r}` is not the same as on last call to partial_fit"
        check.require(
            np.array_equal(known, self.classes_), f"{why}, was: {self.classes_!r}"
        )
        codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
        strange = np.setdiff1d(y, known)[:3].tolist()
        check.require(not strange, f"y holds labels that are not in classes: {strange}.")
        self._stream.add(self._in_unit(series), codes, weights)
        self._solve_stream()
        return self

    def _fit_series(self, series: Series, codes: np.ndarray, weights: np.ndarray) -> None:
        """Fit from the series themselves, if their moments are not enough."""
        totals = np.bincount(codes, weights, minlength=len(self.classes_))
        per_class = class_weights(self, totals)
        scaling = self.input_scaling
        if self.order:
            weighted = weights * per_class[codes]
            frames = [
                frame_with_series(series, codes == c, weighted, scaling)
                for c in self.compared_
            ]
        else:
            frames = frames_of(series, codes, weights, per_class, self.compared_, scaling)
        size = len(series), self.n_channels_in_, len(self.compared_)
        foretell(self.unfolding_, *size, stacklevel=6)
        self._choose(_Labelled(series, codes, weights, per_class))
        heads = self._solve(frames)
        Z = read_out(heads, lambda: self.unfolding_, series)
        heads = self._in_own_unit(heads)
        self._settle(heads, Clouds.of(Z, codes, weights, per_class))

    def _solve_stream(self, whole: tuple[Any, Any, Any] | None = None) -> None:
        """Solve from the class moments of the stream.

        Choose η and an automatic τ on ``whole`` if it is given, which then holds all data,
        or else on the sample of the stream. Choose them again as the stream grows.
        """
        stream = self._stream
        per_class = class_weights(self, stream.counts)
        sample = _Labelled(*(stream.sampled() if whole is None else whole), per_class)
        if stream.n_seen >= _GROWTH * stream.chosen_at and self._choose(sample):
            stream.chosen_at = stream.n_seen
        frames = [stream.frame(c, per_class, self.input_scaling) for c in self.compared_]
        heads = self._solve(frames)
        rows, origin = (one.reshape(len(heads), -1) for one in _linear_rows(heads))
        clouds = stream.clouds(rows, origin.sum(1), per_class)
        self._settle(self._in_own_unit(heads), clouds)

    def _fit_chunks(self, X: Any, y: ArrayLike, sample_weight: object) -> None:
        """Fit series that are not in memory, from sums computed where they are stored."""
        other = "use class_weight, or partial_fit with a weight for each series of a batch"
        why = f"sample_weight cannot be used with series in chunks; {other}."
        check.require(sample_weight is None, why)
        chunks: Any = chunks_of(X)
        y, shape = read_labels(self, y, chunks.shape[0]), chunks.shape[1:]
        match_shape(self, *shape, fitting=True)
        codes = self._encode(y)
        n_classes = len(self.classes_)
        self._build()
        small = small_codes(codes, n_classes)
        each = chunks.series, chunks.firsts, chunks.split(small)
        given = self.input_scaling is None
        parts = chunks.each(_summarise, each, n_classes, shape, self._fold_seed, given)
        moments, sample, largest, counted = chunks.total(parts, _merge)
        self._set_unit(largest)
        # Exact, because the unit is a power of two.
        values = np.ldexp(sample.values.astype(np.float64), -self._exponent)
        unit = float(np.ldexp(1.0, counted - self._exponent))
        self._stream = stream = ClassStream(
            [one.scaled(unit) for one in moments], replace(sample, values=values)
        )
        if self.order == 0:
            self._solve_stream()
            return
        per_class = class_weights(self, stream.counts)
        self._choose(_Labelled(*stream.sampled(), per_class))
        scaling, exponent = self.input_scaling, self._exponent
        frames = [
            frame_in_chunks(chunks, stream.moments, codes, c, per_class, scaling, exponent)
            for c in self.compared_
        ]
        del self._stream  # beyond order 0 a stream cannot continue
        self.heads_ = heads = self._in_own_unit(self._solve(frames))
        Z = host_labels(self.read_out(X))
        self._settle(heads, Clouds.of(Z, codes, np.ones(len(codes)), per_class))

    def _build(self) -> None:
        """Draw the network, and the input projection unless it is solved."""
        # Drop attributes of an earlier fit that this one may not replace.
        for name in ("_stream", "heads_", "reservoir_", "_unfolding_"):
            vars(self).pop(name, None)
        self.eta_scores_: EtaChoice | None = None
        self.shared_bound_: float | None = None
        self.calibration_: float | None = None
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        tau = 0.25 if isinstance(self.tau, str) else float(self.tau)  # "auto" chooses later
        gain = Gain.quadratic(self.alpha) if self.order else Gain.linear()
        self.reservoir_ = self._make_network(rng, tau, gain, linear=self.order == 0)
        self._kept = self._fixed_input(rng, sizes_of(self.reservoir_)[0])
        self._fold_seed = int(rng.integers(2**31))

    def _count_fitted(self, X: SeriesLike) -> int:
        """Return how many series are among those of the fit that it kept a sample of."""
        if not hasattr(self, "_stream"):
            return 0
        kept = {one.tobytes() for one in self._stream.sample.values}
        series = self._in_unit(read_aligned(self, X, fitting=False))
        return sum(one.tobytes() in kept for one in series.values)

    @property
    def compared_(self) -> list[int]:
        """Index of the class that each head compares with the rest."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    @property
    def _solves(self) -> bool:
        """Whether the input projection is solved, not given or random."""
        return isinstance(self.input_projection, str) and self.input_projection != "random"

    @property
    def _shares(self) -> bool:
        """Whether all classes share one solved input projection."""
        return self._solves and self.input_projection == "shared"

    def _set_unit(self, largest: float) -> None:
        """Choose a power of two as unit, in which squares of the series do not overflow."""
        given = self.input_scaling is None
        self._exponent = 0 if given else int(exponent(np.array(largest)))

    def _in_unit(self, series: Series) -> Series:
        """Return the series in the internal unit, without rounding."""
        if self._exponent == 0:
            return series
        return replace(series, values=np.ldexp(series.values, -self._exponent))

    def _empty_stream(self) -> ClassStream:
        shape = self.n_channels_in_, self.n_features_in_
        return ClassStream.empty(len(self.classes_), shape, self._fold_seed)

    def _choose(self, sample: _Labelled) -> bool:
        """Choose τ and η unless they are given; return whether there was enough data.

        The held-out series also calibrate the probabilities, even if both are given.
        """
        self.eta_ = FALLBACK if self.eta == "cv" else float(self.eta)
        folds = Folds(
            self.unfolding_.maps,
            *sample,
            self._fold_seed,
            u=self._kept,
            shared=self._shares,
            scaling=self.input_scaling,
            noise=float(self.readout_noise),
            threshold=self.threshold,
            n_jobs=self.n_jobs,
        )
        if not folds.can_hold_out:
            return False
        etas = ETAS if self.eta == "cv" else np.array([self.eta_])
        if self.tau == "auto":
            network: Any = self.reservoir_  # never a measured response

            def score(reservoir: Reservoir) -> float:
                system = self._unfold(reservoir).maps
                found = cross_validate(replace(folds, system=system), etas)
                return round(float(found.score.max()), 6)  # ignore rounding

            tried = [network.with_tau(tau) for tau in self.duration * _TAUS]
            self.reservoir_ = max(tried, key=score)  # the first of equal scores
            vars(self).pop("_unfolding_", None)
            folds = replace(folds, system=self.unfolding_.maps)
        found = cross_validate(folds, etas)
        self.calibration_ = found.calibration
        if self.eta == "cv":
            self.eta_scores_, self.eta_ = found, found.best
        return True

    def _unfold(self, reservoir: Reservoir | MeasuredResponse) -> Solved:
        if isinstance(reservoir, MeasuredResponse):
            return reservoir
        n_steps = self.n_features_in_
        dt, readout = self.duration / n_steps, self._readout(n_steps)
        if isinstance(self.order, str):
            tol = _STATE_ERROR
            return Dynamics(reservoir, n_steps=n_steps, dt=dt, readout=readout, tol=tol)
        order = int(self.order)
        return unfold(reservoir, n_steps=n_steps, dt=dt, readout=readout, order=order)

    def _readout(self, n_steps: int) -> float | np.ndarray | None:
        """Return the readout in the form that `unfold` expects."""
        wish = self.readout
        if isinstance(wish, str):
            return None if wish == "end" else np.full(n_steps, 1 / n_steps)
        weights = np.asarray(wish, dtype=np.float64)
        if weights.ndim == 0:
            return float(weights)
        if weights.shape != (n_steps,) or not weights.any():
            self._refuse("readout", f"{n_steps} weights, one per step, not all zero")
        return weights

    @property
    def unfolding_(self) -> Solved:
        """The unfolded network, the integrated one for ``order="exact"``, or the response.

        Files and pickles do not hold it, so it is rebuilt after loading.
        """
        if not hasattr(self, "_unfolding_"):
            self._unfolding_ = self._unfold(self.reservoir_)
        return self._unfolding_

    def _solve(self, frames: list[Frame]) -> list[Head]:
        """Solve the projections of each comparison, in the internal unit."""
        system, certify = self.unfolding_, bool(self.certify)

        def solve(c: int, frame: Frame) -> Head:
            head = solve_head(system, frame, self.eta_, self._kept, certify=certify, seed=c)
            bound = "" if np.isnan(head.bound) else f", at most {head.bound:.4g}"
            bar.advance(1, f"solving u and v: κ {head.soft_margin:.4g}{bound}")
            return head

        jobs = map(delayed(AsPart(solve)), self.compared_, frames)
        with display() as shown, shown.bar("solving u and v", len(frames)) as bar:
            found: Any = Parallel(self.n_jobs, prefer="threads")(jobs)
        self.shared_bound_ = found[0].bound if self._shares else None
        if self._shares and len(found) > 1:
            linear: Any = system  # always linear at order 0
            found, self.shared_bound_ = share_input(
                linear, frames, self.eta_, found, certify=certify
            )
        return found

    def _in_own_unit(self, heads: list[Head]) -> list[Head]:
        """Return heads in the original units of the series."""
        size = self._exponent
        return [
            replace(
                head,
                centre=np.ldexp(head.centre, size),
                scale=float(np.ldexp(head.scale, -size)),
            )
            for head in heads
        ]

    def _settle(self, heads: list[Head], clouds: Clouds) -> None:
        """Keep the heads, and set the decision."""
        decision = decide(clouds, noise=float(self.readout_noise), threshold=self.threshold)
        self._publish(heads, replace(decision, sureness=self.calibration_))

    def _publish(self, heads: list[Head], decision: Decision) -> None:
        """Set the fitted attributes: plain for two classes, stacked for more."""
        self.heads_, self.decision_ = heads, decision
        one = len(self.classes_) == 2

        def stacked(name: str) -> Any:
            values = [getattr(head, name) for head in heads]
            return values[0] if one else np.stack(values)

        u = heads[0].u if self._shares else stacked("u")
        self.u_ = u[..., 0] if self.n_channels_in_ == 1 else u
        self.v_, self.n_iter_ = stacked("v"), stacked("n_iter")
        self.centre_, self.scale_ = stacked("centre"), stacked("scale")
        self.soft_margin_ = stacked("soft_margin")
        self.soft_margin_bound_ = stacked("bound")
        self.kernel_ = heads[0].kernel if one else [h.kernel for h in heads]
        self.validity_ = heads[0].validity if one else [h.validity for h in heads]
        self.coupling_ = decision.coupling
        self.threshold_ = float(decision.threshold[0]) if one else decision.threshold

    def __getstate__(self) -> dict[str, Any]:
        state: Any = dict(super().__getstate__())  # pyright: ignore[reportCallIssue, reportArgumentType]
        state.pop("_unfolding_", None)  # large, and quick to rebuild
        return state

    # Prediction

    @by_chunks
    @with_few_threads(rows_to_read)
    def read_out(self, X: SeriesLike) -> np.ndarray:
        """Return the readout values (n_cases, n_heads)."""
        check_is_fitted(self)
        series = read_aligned(self, X, fitting=False)
        return read_out(self.heads_, lambda: self.unfolding_, series)

    @by_chunks
    def decision_function(self, X: SeriesLike) -> np.ndarray:
        """Return decision values (n_cases,) or (n_cases, n_classes).

        For two classes, a decision value is the readout value minus the threshold, positive
        for ``classes_[1]``. For more classes, decision values are log-probabilities up to a
        constant, before calibration; the largest wins.
        """
        Z = self.read_out(X)
        scores = self.decision_.scores(Z)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    @by_chunks
    def predict_proba(self, X: SeriesLike) -> np.ndarray:
        """Return probabilities (n_cases, n_classes), calibrated on held-out series.

        Gaussian clouds of states along v give log-odds. If the log-odds of a class lie d
        below those of the most likely class, its probability is proportional to (1 + d) to
        the power of −``calibration_``. The clouds of the training series are too narrow, so
        this exponent comes from the folds of the cross-validation, solved at linear order
        with the chosen or given η.
        """
        Z = self.read_out(X)
        return self.decision_.probabilities(Z)

    @by_chunks
    @with_few_threads(rows_to_read)
    def transform(self, X: SeriesLike) -> np.ndarray:
        """Return the network states at the readout, (n_cases, n_outputs).

        With more than two classes, the states for each class's input projection are
        concatenated: (n_cases, n_classes · n_outputs).
        """
        check_is_fitted(self)
        series = read_aligned(self, X, fitting=False)
        states = [head.states(series, self.unfolding_) for head in self.heads_]
        return np.concatenate(states, axis=1)

    @property
    def _n_features_out(self) -> int:
        return len(self.heads_) * sizes_of(self.reservoir_)[1]

    # Files

    def save(self, path: str | Path, *, resumable: bool = True) -> None:
        """Save the fitted classifier to a file that holds no code; see `greenfold.load`.

        The file is replaced in one step at the end. With ``resumable``, it also holds the
        class covariances and the sample of training series that `partial_fit` needs to
        continue.
        """
        kept = copy(self)
        if not resumable:
            vars(kept).pop("_stream", None)
        super(ReservoirClassifier, kept).save(path)


def noisy_accuracy(
    classifier: ReservoirClassifier,
    X: SeriesLike,
    y: ArrayLike,
    sigma: float,
    *,
    input_noise: ArrayLike | None = None,
    state_noise: ArrayLike | None = None,
    n_draws: int = 100,
    rng: np.random.Generator | int | None = None,
) -> float:
    """Return the expected accuracy with noise on each neuron's state when it is read.

    Independent Gaussian noise of standard deviation σ on each state becomes noise of
    standard deviation σ‖v‖ = σ on the readout value. For two classes, the expectation has a
    closed form; for more, it is an average over draws.

    Parameters
    ----------
    classifier : ReservoirClassifier
        A fitted classifier. Create it with ``readout_noise=sigma`` so that η and the
        threshold account for the noise.
    X, y
        Series and labels, as in its ``fit``.
    sigma : float
        Standard deviation of the noise, in the unit of the network states with inputs
        scaled to ‖μ‖ = ``input_scaling``.
    input_noise : float or array_like, optional
        Noise on the series, in their own unit (linear order): one standard deviation, one
        per value, or a covariance.
    state_noise : float or array_like, optional
        Noise on the states at the readout, in the same forms. For noise inside a network,
        use `greenfold.devices.noise.state_covariance`.
    n_draws : int
        Number of draws of the noise, with more than two classes.
    rng : numpy Generator, int or None

    Examples
    --------
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.margin import ReservoirClassifier, noisy_accuracy
    >>> X, y = synthetic_heartbeats(200, rng=0)
    >>> solved = ReservoirClassifier(readout_noise=0.1, random_state=0).fit(X, y)
    >>> drawn = ReservoirClassifier(input_projection="random", readout_noise=0.1)
    >>> drawn = drawn.set_params(random_state=0).fit(X, y)
    >>> noisy_accuracy(solved, X, y, 0.1) > noisy_accuracy(drawn, X, y, 0.1)
    True
    """
    level = check.number(sigma, "sigma")
    check.must(0 <= level <= 1e100, "sigma", "lie between 0 and 1e100", sigma)
    for name, noise in (("input_noise", input_noise), ("state_noise", state_noise)):
        if noise is not None:
            largest = float(np.abs(check.host_array(noise, name)).max())
            wanted = "be at most 1e100, so that its square is finite"
            check.must(largest <= 1e100, name, wanted, f"{largest:g}")
    labels = column_or_1d(y)
    values = classifier.read_out(X)
    check_consistent_length(values, labels)
    classes = classifier.classes_
    square = np.full(len(classifier.heads_), level**2)
    if input_noise is not None and classifier.order:
        raise ValueError("`input_noise` needs a classifier of order 0; pass None.")
    for k, head in enumerate(classifier.heads_):
        if state_noise is not None:
            P = covariance(state_noise, "state_noise", len(head.v))
            square[k] += head.v @ P @ head.v
        if input_noise is not None and head.kernel is not None:
            # The kernel of the readout value, in the unit of the series.
            a = head.kernel.linear.ravel()
            N = covariance(input_noise, "input_noise", len(a))
            square[k] += (a @ N @ a) * head.scale**2
    levels = np.sqrt(square)
    if not levels.any():
        return float((classifier.predict(X) == labels).mean())
    if len(classes) == 2:
        score = classifier.decision_.scores(values)[:, 0]
        second = ndtr(score / levels[0])
        right = np.where(labels == classes[1], second, 1 - second)
        return float(np.where(np.isin(labels, classes), right, 0.0).mean())
    rng = check.generator(rng)
    hits = 0.0
    for _ in range(check.count(n_draws, "n_draws")):
        noisy = values + levels * rng.standard_normal(values.shape)
        hits += (classes[classifier.decision_.scores(noisy).argmax(1)] == labels).mean()
    return float(hits / n_draws)


def to_numpy(
    classifier: ReservoirClassifier, path: str | Path | None = None
) -> dict[str, np.ndarray]:
    """Export the collapsed kernels as plain arrays.

    The classifier must be fitted, with order 0 or with order 1 and a quadratic gain. If you
    pass a ``path``, the arrays are also written to it, an ``.npz`` file without pickles.

    Returns
    -------
    dict of ndarray
        ``linear`` (n_readouts, n_channels, n_steps), ``quadratic`` (n_readouts,
        n_channels, n_steps, n_channels, n_steps) for order 1, ``centre`` (n_readouts,
        n_channels, n_steps), ``scale`` (n_readouts,), ``coupling`` (n_scores, n_readouts),
        ``threshold`` (n_scores,), ``slope`` (), ``sureness`` (), ``classes``
        (n_classes,).

    Notes
    -----
    For a series x of shape (n_channels, n_steps) and readout i::

        w = (x − centre[i]) · scale[i]              (zero before a short series begins)
        z[i] = Σ linear[i] · w  +  Σ Σ w · quadratic[i] · w
        decision = coupling @ z − threshold

    With two classes, the prediction is ``classes[1]`` if ``decision[0] > 0``, else
    ``classes[0]``. With more, it is ``classes[argmax(decision)]``.

    For probabilities, let d be 0 for the predicted class. For any other class, d is slope
    times the distance between the two decision values (with two classes, slope ·
    abs(decision[0])). The probabilities are proportional to (1 + d)^(−sureness), or to
    exp(−d) if sureness is NaN because no series could be held out to calibrate it.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.estimators.margin import ReservoirClassifier, to_numpy
    >>> X, y = synthetic_heartbeats(60, rng=0)
    >>> classifier = ReservoirClassifier(eta=10.0, random_state=0).fit(X, y)
    >>> k = to_numpy(classifier)
    >>> z = (k["linear"][0] * (X[:, None] - k["centre"][0]) * k["scale"][0]).sum((1, 2))
    >>> bool(np.allclose(z - k["threshold"][0], classifier.decision_function(X)))
    True
    """
    check_is_fitted(classifier)
    heads, classes = classifier.heads_, classifier.classes_
    kernels: list[Any] = [head.kernel for head in heads]
    if kernels[0] is None:
        why = f"of order {classifier.order} has terms beyond the square of the series, "
        why += "which plain kernels cannot hold"
        if classifier.order == "exact":
            why = "of order 'exact' integrates its network and has no kernels"
        fix = "to export a classifier, fit it with order 0 or 1 and a quadratic gain"
        raise ValueError(f"The classifier {why}; {fix}.")
    decision = classifier.decision_
    made = {
        "linear": np.stack([kernel.linear for kernel in kernels]),
        "centre": np.stack([head.centre for head in heads]),
        "scale": np.array([head.scale for head in heads]),
        "coupling": decision.coupling.copy(),
        "threshold": decision.threshold.copy(),
        "slope": np.array(decision.slope),
        "sureness": np.array(decision.sureness, dtype=np.float64),  # NaN for None
        "classes": classes.astype(str) if classes.dtype.kind == "O" else classes.copy(),
    }
    if kernels[0].quadratic is not None:
        made["quadratic"] = np.stack([kernel.quadratic for kernel in kernels])
    if path is not None:
        with replacing(Path(path)) as stream:
            np.savez(stream, allow_pickle=False, **made)  # pyright: ignore[reportArgumentType]
    return made


def to_onnx(
    classifier: ReservoirClassifier,
    path: str | Path | None = None,
    *,
    dtype: str = "float64",
) -> Any:
    """Export the collapsed kernels as an ONNX graph (needs ``greenfold[onnx]``).

    The classifier must be fitted, with an order that `to_numpy` accepts. If you pass a
    ``path``, the graph is also written to it. ``dtype``, "float64" or "float32", is the
    type of the input and the arithmetic.

    Returns
    -------
    onnx.ModelProto
        Input ``X``: (n_cases, n_steps), or (n_cases, n_channels, n_steps) for several
        channels. If the classifier was fitted on series of unequal length, every series
        ends at the last step, and NaN fills the steps before a shorter series. Outputs:
        ``decision`` (n_cases,) or (n_cases, n_classes) as in
        `ReservoirClassifier.decision_function`, ``label`` (n_cases,) and ``probability``
        (n_cases, n_classes).

    Notes
    -----
    onnxruntime agrees with `decision_function` within 1e-9 (float64) or 1e-4 (float32) of
    the largest decision value.
    """
    return export(classifier, path, dtype, lambda graph, X: _compute(graph, X, classifier))


def _compute(graph: Graph, X: Any, classifier: ReservoirClassifier) -> None:
    k = to_numpy(classifier)
    n_heads, size = len(k["linear"]), k["linear"][0].size
    flat: Any = graph.reshape(X, (-1, size))
    begun = None
    if classifier._any_length:
        # NaN marks the time before a series begins.
        missing = graph.node("IsNaN", flat, result=flat.array.astype(bool))
        begun = graph.cast(~missing, flat.dtype)
        flat = graph.where(missing, graph.full_like(flat, 0), flat)

    def constant(value: Any) -> Any:
        return like(np.asarray(value), flat, flat.dtype)

    linear = (k["linear"] * k["scale"][:, None, None]).reshape(n_heads, size)
    centre = k["centre"].reshape(n_heads, size)
    if "quadratic" not in k:
        weights, origin = k["coupling"] @ linear, k["coupling"] @ (linear * centre)
        shift = constant(origin.sum(1))
        if begun is not None:
            shift = begun @ constant(origin.T)
        score = flat @ constant(weights.T) - (shift + constant(k["threshold"]))
    else:
        values = []
        for one, square, middle, scale in zip(
            linear, k["quadratic"], centre, k["scale"], strict=True
        ):
            moved = flat - constant(middle[None])
            moved = moved if begun is None else moved * begun
            # The constants include the scale, because onnxruntime would fuse a separate
            # product with it into the next product, in single precision.
            C = constant(scale**2 * square.reshape(size, size))
            squares = graph.sum((moved @ C) * moved, axis=1, keepdims=True)
            values.append(moved @ constant(one[:, None]) + squares)
        coupled = graph.concat(values, axis=1) @ constant(k["coupling"].T)
        score = coupled - constant(k["threshold"])
    odds = score * float(k["slope"])
    if len(k["classes"]) == 2:
        odds = graph.concat([odds * 0, odds], axis=1)
    if np.isfinite(k["sureness"]):
        below = graph.max(odds, axis=1, keepdims=True) - odds
        odds = graph.log(below + 1) * -float(k["sureness"])
    graph.decide(score, odds, k["classes"])


# Series in chunks

#: Moments of each class, a sample of the series, the largest value, and the power of two
#: that is the unit of the moments.
_Summary = tuple[list[ClassMoments], StreamSample, float, int]


def _summarise(
    X: np.ndarray,
    first: int,
    codes: np.ndarray,
    n_classes: int,
    shape: tuple[int, int],
    seed: int,
    given: bool,
) -> _Summary:
    host = np.asarray(checked_chunk(X, first, shape))
    largest = float(max(host.max(), -host.min()))
    # Rescale only if squares would overflow, because rescaling makes a copy.
    small = given or 1e-100 < largest < 1e100 or not 0 < largest < np.inf
    size = 0 if small else int(exponent(np.array(largest)))
    own = X if small else np.ldexp(host, -size)
    moments = moments_of_chunk(own, first, codes, n_classes, shape)
    empty = StreamSample.empty(n_classes, shape, seed)
    sample = empty.add(host, codes.astype(int), np.ones(len(codes)))
    return moments, sample, largest, size


def _merge(one: _Summary, other: _Summary) -> _Summary:
    both, size = [one[0], other[0]], one[3] if one[2] >= other[2] else other[3]
    for i, own in enumerate((one[3], other[3])):
        if own != size:
            both[i] = [part.scaled(float(np.ldexp(1.0, own - size))) for part in both[i]]
    sample, largest = one[1].merge(other[1]), max(one[2], other[2])
    return merge_classes(*both), sample, largest, size


def _finish(made: ReservoirClassifier) -> None:
    if made.order == "exact" and any(head.n_sub is None for head in made.heads_):
        refuse_file("it lacks the sub-steps of an integrated network.")
    sizes = sizes_of(made.reservoir_)
    if any((len(head.u), len(head.v)) != sizes for head in made.heads_):
        refuse_file(f"its projections do not fit {sizes[0]} inputs and {sizes[1]} outputs.")
    made.calibration_ = made.decision_.sureness
    made._publish(made.heads_, made.decision_)
    if hasattr(made, "_stream"):
        made._fold_seed = made._stream.sample.seed
        made._kept = None if made._solves else made.heads_[0].u


describe_fitted(
    ReservoirClassifier,
    _finish,
    classes_=ClassLabels(),
    _any_length=model_files.FLAG,
    reservoir_=FITTED_NETWORK,
    eta_=model_files.NUMBER,
    eta_scores_=model_files.Maybe(
        model_files.Object(
            EtaChoice,
            etas=model_files.Numbers("etas"),
            accuracy=model_files.Numbers("etas", None, finite=False),
            score=model_files.Numbers("etas", finite=False),
            overlap=model_files.Maybe(model_files.Numbers("etas", "etas")),
        )
    ),
    heads_=model_files.Several(HEAD, "scores"),
    decision_=model_files.Object(
        Decision,
        coupling=model_files.Numbers("scores", "scores"),
        threshold=model_files.Numbers("scores"),
        slope=model_files.NUMBER,
        sureness=model_files.Maybe(model_files.POSITIVE),
    ),
    shared_bound_=model_files.Maybe(model_files.NUMBER),
    _stream=Unset(STREAM),
    _exponent=model_files.INTEGER,
)
