"""Which of the two classifiers suits the series: a quick look by cross-validation.

`ReservoirClassifier` reads the network once, at the end: for aligned series, where the
margin and its certificate matter, or where the predictor must be one vector.
`PooledReservoirClassifier` reads at every step and pools: for series in which the same
things happen at other times. Accuracy on series held out says which of them one has.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.printing import Shown

__all__ = ["ClassifierChoice", "choose_classifier"]

#: Series that a quick look takes at most, of every class alike.
MOST_CASES = 500
N_FOLDS = 5


@dataclass(frozen=True, eq=False, repr=False)
class ClassifierChoice(Shown):
    """Outcome of a comparison of classifiers on the same folds.

    Attributes
    ----------
    names : tuple of str
        "margin" (`ReservoirClassifier`) and "pooled" (`PooledReservoirClassifier`).
    correct : ndarray (2, n_cases) of bool
        Whether each classifier told each series right when it was held out.
    seconds : tuple of float
        Time of the fits of each.
    """

    names: tuple[str, ...]
    correct: np.ndarray
    seconds: tuple[float, ...]

    @property
    def accuracy(self) -> np.ndarray:
        """Held-out accuracy of each, (2,)."""
        return self.correct.mean(axis=1)

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of each accuracy, (2,)."""
        # (k + 1)/(n + 2): none wrong of a few does not mean none ever.
        n = self.correct.shape[1]
        share = (self.correct.sum(axis=1) + 1) / (n + 2)
        return np.sqrt(share * (1 - share) / n)

    @property
    def difference(self) -> float:
        """Accuracy of the pooled classifier minus that of the other."""
        return float(self.accuracy[1] - self.accuracy[0])

    @property
    def difference_error(self) -> float:
        """Standard error of `difference`, from the series that one of them got wrong."""
        apart = self.correct[1].astype(float) - self.correct[0]
        return float(apart.std() / np.sqrt(len(apart)))

    @property
    def best(self) -> str:
        """The pooled one where it is better by more than a standard error.

        Between equals it is "margin", the simpler predictor, which brings a certificate.
        """
        better = self.difference > self.difference_error
        return self.names[1] if better else self.names[0]

    def __str__(self) -> str:
        parts = [
            f"{name} {a:.1%} ± {e:.1%}"
            for name, a, e in zip(
                self.names, self.accuracy, self.standard_error, strict=True
            )
        ]
        return (
            f"{', '.join(parts)} on {self.correct.shape[1]} series held out; difference "
            f"{self.difference:+.1%} ± {self.difference_error:.1%}: {self.best}"
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "best": self.best,
            **{
                name: f"{a:.1%} ± {e:.1%}"
                for name, a, e in zip(
                    self.names, self.accuracy, self.standard_error, strict=True
                )
            },
            "difference": f"{self.difference:+.1%} ± {self.difference_error:.1%}",
            "held_out": self.correct.shape[1],
        }


def choose_classifier(
    X: Any,
    y: Any,
    *,
    n_folds: int = N_FOLDS,
    max_cases: int = MOST_CASES,
    margin: dict[str, Any] | None = None,
    pooled: dict[str, Any] | None = None,
    random_state: int = 0,
    on_fit: Callable[[str], None] | None = None,
) -> ClassifierChoice:
    """Compare both classifiers by cross-validation, on the same folds.

    Parameters
    ----------
    X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        Training series, without missing values.
    y : array_like (n_cases,)
    n_folds : int
    max_cases : int
        Of more series a sample is taken, so that the look is quick.
    margin, pooled : dict, optional
        Parameters of `ReservoirClassifier` and of `PooledReservoirClassifier`.
    random_state : int
        Draws the sample, the folds, the network and the bank.
    on_fit : callable, optional
        Called with a description before each fit.

    Returns
    -------
    ClassifierChoice

    Notes
    -----
    Classes with fewer than two series in the sample are left out. Errors are those of the
    sample of series; what the draw of a network adds is not in them.

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import choose_classifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2  # a slow or a fast oscillation, beginning anywhere
    >>> phase = rng.uniform(0, 6, (60, 1))
    >>> X = np.sin(np.arange(50) * (0.3 + 0.2 * y[:, None]) + phase)
    >>> choose_classifier(X, y).best
    'pooled'
    """
    from .margin.classifier import ReservoirClassifier
    from .pooled.classifier import PooledReservoirClassifier

    labels = np.asarray(y)
    n_folds = check.count(n_folds, "n_folds", minimum=2)
    max_cases = check.count(max_cases, "max_cases", minimum=2 * n_folds)
    if labels.ndim != 1 or len(labels) != len(X):
        raise ValueError(
            f"`y` must have one label a series; got shape {labels.shape} for {len(X)}."
        )
    rng = np.random.default_rng(random_state)
    cases, fold = _folds(labels, n_folds, max_cases, rng)
    makers: dict[str, Callable[[], Any]] = {
        "margin": lambda: ReservoirClassifier(
            **{"random_state": random_state, **(margin or {})}
        ),
        "pooled": lambda: PooledReservoirClassifier(
            **{"random_state": random_state, **(pooled or {})}
        ),
    }
    correct = np.zeros((len(makers), len(cases)), dtype=bool)
    seconds = []
    for row, (name, make) in enumerate(makers.items()):
        begun = time.perf_counter()
        for k in range(fold.max() + 1):
            if on_fit:
                on_fit(f"{name}, fold {k + 1} of {fold.max() + 1}")
            inside, outside = cases[fold != k], cases[fold == k]
            with warnings.catch_warnings():
                # How far an expansion is to be trusted is said when it is fitted for good.
                warnings.simplefilter("ignore")
                fitted = make().fit(_take(X, inside), labels[inside])
                told = fitted.predict(_take(X, outside))
            correct[row, fold == k] = told == labels[outside]
        seconds.append(time.perf_counter() - begun)
    return ClassifierChoice(tuple(makers), correct, tuple(seconds))


def _folds(
    labels: np.ndarray, n_folds: int, max_cases: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of a sample of all classes, and the fold of each; classes dealt in turn."""
    classes, codes = np.unique(labels, return_inverse=True)
    share = min(1.0, max_cases / len(labels))
    chosen = []
    for c in range(len(classes)):
        members = rng.permutation(np.flatnonzero(codes == c))
        kept = max(round(share * len(members)), min(len(members), n_folds))
        if kept >= 2:
            chosen.append(members[:kept])
    if len(chosen) < 2:
        raise ValueError(
            "`y` must hold two series of two classes at least, to learn from and to hold "
            f"out; got {len(labels)} series of {len(classes)} classes."
        )
    cases = np.concatenate(chosen)
    return cases, np.arange(len(cases)) % min(n_folds, len(cases))


def _take(X: Any, index: np.ndarray) -> Any:
    return [X[i] for i in index] if isinstance(X, list | tuple) else X[index]
