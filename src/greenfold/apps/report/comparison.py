"""Compare random with solved projections, and linear with non-linear networks."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ... import (
    AtMost,
    Device,
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    Unfolding,
    noisy_accuracy,
    optimize,
)
from ...analysis.parts import MarginParts, margin_parts
from ...estimators.base import class_weights
from ...estimators.series import read_aligned
from ...optimizers.result import relative_gap
from ...stimuli.frame import Frame, frame_with_series

PROVEN = 1e-3  # an optimum counts as proven up to this relative distance from the bound

#: A soft margin below this is rounding: the classes do not differ.
NOTHING = 1e-12

#: Noise with which to test a fit without noise, and the accuracy that the fit may lose.
PROBE, FRAGILE = 0.1, 0.1


@dataclass(frozen=True, eq=False)
class Split:
    """Training series and, if there are any, test series."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: np.ndarray | None = None
    note: str = ""  # where the data come from, in one sentence
    #: All series and labels, if the test series are a part of them.
    whole: tuple[Any, np.ndarray] | None = None

    @property
    def judged(self) -> tuple[Any, np.ndarray, str]:
        """Return the series and labels used for accuracies, and their name."""
        if self.X_test is None or self.y_test is None:
            return self.X, self.y, "training"
        return self.X_test, self.y_test, "test"

    @property
    def majority(self) -> float:
        """Return the accuracy of always answering the most frequent class in training."""
        labels, counts = np.unique(np.asarray(self.y), return_counts=True)
        return float((np.asarray(self.judged[1]) == labels[counts.argmax()]).mean())


@dataclass(frozen=True, eq=False)
class Row:
    """One fitted classifier with its scores."""

    classifier: ReservoirClassifier
    accuracy: float
    noisy_accuracy: float
    noise: float
    noisy_eta: float  # of the classifier used with noise
    #: Upper bound on κ of this network; NaN if none is known.
    bound: float
    seconds: float
    order: int | str  # of the expansion in the non-linearity; "exact" for none
    projection: str  # of the input: random, solved or shared
    soft_margin: float  # κ, or its mean over the classes if there are more than two

    @property
    def reservoir(self) -> Reservoir:
        """Return the network that was fitted; a recorded device has another page."""
        found = self.classifier.reservoir_
        if isinstance(found, Reservoir):
            return found
        other = "use `greenfold mask --report` for a recorded device"
        raise TypeError(f"the page describes a network, not a measured response; {other}.")

    @property
    def network(self) -> str:
        """Return "linear" or "non-linear"."""
        return "non-linear" if self.order else "linear"

    @property
    def network_and_order(self) -> str:
        """Return a description of the network with the order of its expansion."""
        how = "integrated" if self.order == "exact" else f"order {self.order}"
        return f"{self.network} ({how})" if self.order else self.network

    @property
    def is_solved(self) -> bool:
        """Return whether the input projection was solved for."""
        return self.projection in ("solved", "shared")

    @property
    def for_noise(self) -> bool:
        """Return whether only its accuracy under noise says something.

        Its η was chosen for that noise, or was given, which is too small without noise.
        """
        given = self.classifier.eta_scores_ is None
        return self.noise > 0 and (given or self.classifier.readout_noise > 0)

    @property
    def main_accuracy(self) -> float:
        """Return the accuracy under noise if only that says something."""
        return self.noisy_accuracy if self.for_noise else self.accuracy

    @property
    def gap(self) -> float:
        """Return the distance of κ from the bound, relative to the larger of the two."""
        return relative_gap(self.bound, self.soft_margin)

    @property
    def proven(self) -> bool:
        """Return whether the soft margin is proven to be the largest possible."""
        proven = bool(np.isfinite(self.bound)) and self.gap <= PROVEN
        return self.is_solved and proven and self.soft_margin > NOTHING

    @property
    def validities(self) -> list[Any]:
        """Return the validity of the expansion per comparison; empty if linear."""
        found = self.classifier.validity_
        listed = found if isinstance(found, list) else [found]
        return [one for one in listed if one is not None]


def first_frame(classifier: ReservoirClassifier, task: Split) -> Frame:
    """Return coordinates, moments and series of the first comparison, as in the fit."""
    series, labels = read_aligned(classifier, task.X, fitting=False), classifier.classes_
    codes = np.searchsorted(labels, np.asarray(task.y))
    weights = class_weights(classifier, np.bincount(codes, minlength=len(labels)))[codes]
    first = codes == classifier.compared_[0]
    return frame_with_series(series, first, weights, classifier.input_scaling)


def parts_of(task: Split, row: Row) -> MarginParts | None:
    """Return what κ of the first comparison is made of; None without a quadratic kernel."""
    fitted = row.classifier
    system = fitted.unfolding_
    if not isinstance(system, Unfolding) or system.degree != 2:
        return None
    head, frame = fitted.heads_[0], first_frame(fitted, task)
    return margin_parts(system, frame.stimuli, head.u, head.v, fitted.eta_)


def compare(
    task: Split,
    variants: Iterable[tuple[Any, int | str]],
    *,
    noise: float = 0.1,
    seed: int = 0,
    parameters: dict[str, Any] | None = None,
    refit: bool = True,
    on_fit: Callable[[str], None] | None = None,
) -> list[Row]:
    """Fit one classifier per variant, and return the classifiers with their scores.

    Parameters
    ----------
    task : Split
        Training and test series.
    variants : iterable of (str or ndarray, int or "exact")
        Input projection and order of each variant; an array counts as a random projection.
    noise : float
        Standard deviation of the readout noise.
    seed : int
        Seed for the network, which all variants share.
    parameters : dict, optional
        Further parameters of `ReservoirClassifier`. With ``eta="cv"`` each variant chooses
        its own η twice, without and with the noise; with a number, one fit serves both.
    refit : bool
        If False, the first fit is also used for the accuracy under noise; so is a fit with
        ``readout_noise`` among the parameters.
    on_fit : callable, optional
        Called with a description before each fit.

    Returns
    -------
    list of Row
        One row per variant, for `write_report`.
    """
    rows, variants, (X, y, _) = [], list(variants), task.judged
    # Which variants use a parameter; the others leave it out, if there are both.
    used = {
        "alpha": [order != 0 for _, order in variants],
        "certify": [order == 0 and str(u) in ("solved", "shared") for u, order in variants],
    }
    for at, (projection, order) in enumerate(variants):
        if on_fit:
            kind = projection if isinstance(projection, str) else "random"
            on_fit(f"{kind} u, order {order}")
        idle = {name for name, use in used.items() if any(use) and not use[at]}
        settings = {k: v for k, v in (parameters or {}).items() if k not in idle}
        settings["order"] = order
        settings |= {"input_projection": projection, "random_state": seed}
        begun = time.perf_counter()
        fitted = ReservoirClassifier(**settings).fit(task.X, task.y)
        seconds, hardened = time.perf_counter() - begun, fitted
        chosen = settings.get("eta", "cv") == "cv" and not settings.get("readout_noise")
        if refit and noise and chosen:
            hardened = ReservoirClassifier(**{**settings, "readout_noise": noise})
            hardened.fit(task.X, task.y)
        # Bound on the mean soft margin of the comparisons.
        bound = float(np.mean(fitted.soft_margin_bound_))
        if fitted.shared_bound_ is not None:
            bound = fitted.shared_bound_ / len(fitted.heads_)
        row = Row(
            fitted,
            accuracy=float(np.mean(fitted.predict(X) == y)),
            noisy_accuracy=noisy_accuracy(hardened, X, y, noise, rng=seed),
            noise=noise,
            noisy_eta=float(hardened.eta_),
            bound=bound,
            seconds=seconds,
            order=order,
            projection=projection if isinstance(projection, str) else "random",
            soft_margin=float(np.mean(fitted.soft_margin_)),
        )
        rows.append(row)
    return share_bounds(rows)


def drive_few(row: Row, task: Split, k: int, **options: Any) -> Row:
    """Return the linear network of a row with u solved to drive at most k neurons.

    There must be two classes. The options are those of `compare`.
    """
    fitted = row.classifier
    stimuli, device = SampleStimuli(task.X, task.y), Device(mask=AtMost(k))
    found = optimize(fitted.unfolding_, stimuli, fitted.eta_, device=device)
    (made,) = compare(task, [(found.u, 0)], noise=row.noise, **options)
    return replace(made, projection=f"at most {k}", bound=found.upper_bound)


@dataclass(frozen=True)
class Spread:
    """Random input projections of one network, each fitted and scored."""

    rows: list[Row]

    @property
    def accuracy(self) -> np.ndarray:
        """Accuracy of each draw."""
        return np.array([row.accuracy for row in self.rows])

    @property
    def noisy_accuracy(self) -> np.ndarray:
        """Accuracy of each draw under noise."""
        return np.array([row.noisy_accuracy for row in self.rows])

    @property
    def soft_margin(self) -> np.ndarray:
        """Soft margin of each draw, at its own η."""
        return np.array([row.soft_margin for row in self.rows])

    @property
    def median(self) -> Row:
        """Return the draw with the median accuracy, under the noise if there is any."""
        noisy = bool(self.rows[0].noise)
        found = self.noisy_accuracy if noisy else self.accuracy
        return self.rows[np.lexsort((self.soft_margin, found))[len(found) // 2]]

    def __str__(self) -> str:
        plain, noisy = map(mean_and_range, (self.accuracy, self.noisy_accuracy))
        told = [] if self.rows[0].for_noise else [f"accuracy {plain}"]
        told += [f"under noise {noisy}"] if self.rows[0].noise else []
        which = "median accuracy" + (" under noise" if self.rows[0].noise else "")
        shown = f"{len(self.rows)} random u (the table shows the one of {which})"
        return f"{shown}, linear: {'; '.join(told)}."


def mean_and_range(shares: np.ndarray) -> str:
    """Return the mean and the range of accuracies of several random u."""
    if len(shares) == 1:
        return f"{shares[0]:.2%}"
    return f"{shares.mean():.2%} on average ({shares.min():.2%} to {shares.max():.2%})"


def random_spread(
    row: Row, task: Split, *, n_draws: int = 11, seed: int = 0, **options: Any
) -> Spread:
    """Return several random u for the network and the order of a row.

    The options are those of `compare`, with the parameters of the row.
    """
    rng, fitted = np.random.default_rng([seed, n_draws]), row.classifier
    shape = n_draws, row.reservoir.n_neurons, fitted.n_channels_in_
    draws = [(u, row.order) for u in rng.standard_normal(shape)]
    return Spread(compare(task, draws, noise=row.noise, seed=seed, **options))


def fragility(row: Row, task: Split, *, seed: int = 0) -> str:
    """Return a warning if a fit without noise fails under a little noise, else ""."""
    X, y, _ = task.judged
    noisy = 1.0 if row.noise else noisy_accuracy(row.classifier, X, y, PROBE, rng=seed)
    if noisy > row.accuracy - FRAGILE:
        return ""
    left = f"noise of {PROBE:g} on every neuron's state leaves {noisy:.1%} accuracy"
    instead = f"instead of {row.accuracy:.1%}; fit with --noise {PROBE:g} to tolerate it"
    return f"Fragile: {left} {instead}."


def explained(row: Row) -> str:
    """Return a sentence on κ if it is zero, or if there are more than two classes."""
    n = len(row.classifier.heads_)
    if row.soft_margin < NOTHING:
        return "κ is 0: the classes do not differ in the training series."
    if n == 1:
        return ""
    means = f"κ and its bound are means over {n} comparisons, each class against the rest"
    return f"{means}. A larger η makes every κ smaller, so compare κ at the same η."


def share_bounds(rows: Sequence[Row]) -> list[Row]:
    """Return the rows; linear rows of the same η get the tightest of their bounds.

    A bound for one u that all classes share holds only for rows with a single u.
    """

    def best(row: Row) -> float:
        linear = [other for other in rows if other.order == 0]
        alike = [one for one in linear if one.classifier.eta_ == row.classifier.eta_]
        # A row may hold a bound for a shared u; its classifier has the bound for any u.
        found = [float(np.mean(other.classifier.soft_margin_bound_)) for other in alike]
        one_u = row.projection != "solved" or len(row.classifier.classes_) == 2
        return min(found + [other.bound for other in alike if one_u])

    return [replace(row, bound=best(row)) if row.order == 0 else row for row in rows]


def headline(rows: Sequence[Row], n_judged: int) -> Row:
    """Return the row that a report describes: the best row, a proven one among equals.

    Accuracies that differ by less than a standard error of the best count as equal.
    """
    top = max(row.main_accuracy for row in rows)
    error = np.sqrt(top * (1 - top) / max(n_judged, 1))
    equals = [row for row in rows if row.main_accuracy >= top - error]
    return max(equals, key=lambda row: (row.proven, row.is_solved, row.noisy_accuracy))


def to_record(row: Row) -> dict[str, Any]:
    """Return a row as plain values for JSON; None if there is no value."""
    trusted, bounded = [one.trustworthy for one in row.validities], np.isfinite(row.bound)
    return {
        "projection": row.projection,
        "order": row.order,
        "eta": float(row.classifier.eta_),
        "soft_margin": row.soft_margin,
        "soft_margin_bound": row.bound if bounded else None,
        "gap": row.gap if bounded else None,
        "proven_optimal": row.proven,
        "accuracy": row.accuracy,
        "accuracy_under_noise": row.noisy_accuracy if row.noise else None,
        "readout_noise": row.noise,
        "eta_under_noise": row.noisy_eta if row.noise else None,
        "expansion_trustworthy": all(trusted) if trusted else None,
        "seconds": round(row.seconds, 3),
    }
