"""The scikit-learn estimator: a reservoir with both projections solved for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._threads import rows_of_estimator, rows_to_read, with_few_threads
from ..pieces import pieces_of
from ..pieces.methods import by_pieces
from . import parameters
from .fitting import ReservoirFitting
from .heads import read_out
from .in_pieces import fit_pieces
from .series import read_labelled, read_labels_of_pieces, read_series

__all__ = ["ReservoirClassifier"]


def _is_linear(classifier: ReservoirClassifier) -> bool:
    if classifier.order:
        raise AttributeError(
            "partial_fit needs order=0: beyond it, the series themselves must be kept."
        )
    return True


class ReservoirClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, ReservoirFitting
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
    >>> from greenfold.classifier import ReservoirClassifier
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
        parameters.check_parameters(self)
        pieces = pieces_of(X)
        if pieces is not None:
            y = read_labels_of_pieces(self, pieces, y, sample_weight)
            self._forget()
            fit_pieces(self, pieces, self._code(y))
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
        parameters.check_parameters(self)
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

    @by_pieces
    @with_few_threads(rows_to_read)
    def read_out(self, X: Any) -> np.ndarray:
        """Readout values (n_cases, n_heads)."""
        check_is_fitted(self)
        series = read_series(self, X, fitting=False)
        return read_out(self.heads_, lambda: self.unfolding_, series)

    @by_pieces
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

    @by_pieces
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

    @by_pieces
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

    @by_pieces
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
        from .model_file import save

        save(self, path, resumable=resumable)
