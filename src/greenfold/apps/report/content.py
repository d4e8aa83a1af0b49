"""What the figures show, as arrays: computed from a fitted classifier and its series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...estimators.margin.classifier import ReservoirClassifier, class_weights
from ...estimators.series import read_series
from ...math.margins import state_moments
from ...math.sphere import maximize_on_sphere
from ...optimizers.linear import LinearProblem
from ...optimizers.run import optimize
from ...stimuli.base import Series
from ...stimuli.frame import Frame, frames_of

#: Readout times of a curve; more would not be seen on a page.
_N_TIMES = 40
#: Numbers held at once for trajectories of a non-linear network (256 MiB).
_NUMBERS = 2**25


@dataclass(frozen=True, eq=False)
class ClassShape:
    """Mean and standard deviation of one class over time.

    Attributes
    ----------
    label : object
    count : int
    mean, spread : ndarray (n_channels, n_steps)
        NaN where no series of the class has begun.
    """

    label: Any
    count: int
    mean: np.ndarray
    spread: np.ndarray


def aligned(classifier: ReservoirClassifier, X: Any) -> Series:
    """Series as the classifier sees them, aligned at the readout."""
    return read_series(classifier, X, fitting=False)


def class_shapes(classifier: ReservoirClassifier, X: Any, y: Any) -> list[ClassShape]:
    """Mean and spread of every class, over the series that have begun."""
    series = aligned(classifier, X)
    values = series.values
    if series.present is not None:
        values = np.where(series.present[:, None, :], values, np.nan)
    found = []
    for label in classifier.classes_:
        chosen = values[np.asarray(y) == label]
        begun = np.isfinite(chosen).sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.nansum(chosen, axis=0) / begun
            spread = np.sqrt(np.nansum((chosen - mean) ** 2, axis=0) / begun)
        found.append(ClassShape(label, len(chosen), mean, spread))
    return found


def clouds(classifier: ReservoirClassifier, X: Any) -> np.ndarray:
    """Read-out values v·y along each readout, (n_cases, n_comparisons)."""
    return classifier.read_out(X)


def _frame(classifier: ReservoirClassifier, X: Any, y: Any, head: int) -> Frame:
    """Coordinates and moments of one comparison, as the fit had them."""
    series = aligned(classifier, X)
    codes = np.searchsorted(classifier.classes_, np.asarray(y))
    counts = np.bincount(codes, minlength=len(classifier.classes_))
    weights = class_weights(classifier, classifier.classes_, counts)
    (frame,) = frames_of(
        series,
        codes,
        np.ones(len(codes)),
        weights,
        [classifier.compared_[head]],
        classifier.input_scaling,
    )
    return frame


def input_projection(classifier: ReservoirClassifier, head: int) -> np.ndarray:
    """The u of one comparison, (n_neurons, n_channels)."""
    return classifier.heads_[head].u


def margin_over_readout_time(
    classifier: ReservoirClassifier, X: Any, y: Any, head: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """κ at the fitted u if the network were read at t, with the readout solved anew.

    Returns
    -------
    times : ndarray (n_times,)
    soft_margin : ndarray (n_times,)
    """
    unfolding, eta = classifier.unfolding_, float(classifier.eta_)
    steps = np.unique(
        np.linspace(1, unfolding.n_steps, min(_N_TIMES, unfolding.n_steps)).round()
    ).astype(int)
    frame = _frame(classifier, X, y, head)
    u = input_projection(classifier, head)
    if unfolding.is_linear:
        values = []
        for step in steps:
            there = unfolding.with_readout(step * unfolding.dt)
            values.append(
                LinearProblem(there.maps, frame.stimuli, eta).best_readout(u)[1].value
            )
        return steps * unfolding.dt, np.array(values)
    series = aligned(classifier, X)
    signs = np.where(
        np.asarray(y) == classifier.classes_[classifier.compared_[head]], 1, -1
    )
    room = max(50, _NUMBERS // (unfolding.n_steps * unfolding.n_neurons))
    chosen = slice(None, None, -(-len(series) // room))
    paths = unfolding.states(
        series[chosen].moved(frame.centre, frame.scale), u, trajectories=True
    )
    share = {1: frame.share[1], -1: frame.share[0]}
    weights = np.array(
        [share[s] / (signs[chosen] == s).sum() for s in signs[chosen].tolist()]
    )
    values = []
    for step in steps:
        M, Sigma = state_moments(paths[:, step - 1], signs[chosen], weights)
        values.append(maximize_on_sphere(M, eta * Sigma).value)
    return steps * unfolding.dt, np.array(values)


def margin_over_optimisation(
    classifier: ReservoirClassifier, X: Any, y: Any, head: int = 0
) -> np.ndarray | None:
    """κ of the best pair so far after each evaluation; None where it is not recorded.

    A fit keeps no record, so a linear one is solved once more for it; that takes less
    than a second, where a non-linear one would take as long as the fit.
    """
    if classifier.order:
        return None
    frame = _frame(classifier, X, y, head)
    again = optimize(classifier.unfolding_, frame.stimuli, classifier.eta_)
    again.raise_if_interrupted()
    return again.history[:, 0] - again.history[:, 1]


def mode_loadings(
    classifier: ReservoirClassifier, head: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Time constant of every mode, and |w_α·u| (norm over channels)."""
    modes = classifier.reservoir_.modes()
    loading = modes.loading(input_projection(classifier, head))
    return modes.time_constants, np.linalg.norm(np.abs(loading), axis=1)


def confusion(classifier: ReservoirClassifier, X: Any, y: Any) -> np.ndarray:
    """Counts (n_classes, n_classes): true class along rows, predicted along columns.

    Series of classes that were not trained are left out.
    """
    known = np.isin(np.asarray(y), classifier.classes_)
    true = np.searchsorted(classifier.classes_, np.asarray(y)[known])
    predicted = np.searchsorted(classifier.classes_, classifier.predict(X)[known])
    size = len(classifier.classes_)
    counts = np.zeros((size, size), dtype=int)
    np.add.at(counts, (true, predicted), 1)
    return counts
