"""The series of a page: thinned to what a page can carry, rounded as it carries them.

The page computes with the very numbers that travel in it. So series are thinned and
rounded here, before anything is solved, and what is solved belongs to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...stimuli.samples import SampleStimuli

#: Values of one series, over all channels, and series of each part that a page carries.
MAX_VALUES, MAX_SERIES = 160, 300
#: Numbers of all series of one data set: 16 bits each, 220 kB as text.
MAX_NUMBERS = 84_000
MAX_CLASSES, MAX_CHANNELS = 20, 8
_LEVELS = 32_000


@dataclass(frozen=True, eq=False)
class Material:
    """Labelled series as they stand on the page.

    Attributes
    ----------
    name, note : str
        Shown on the page.
    classes : list of str
    weights : ndarray (n_classes,)
        Factor on the weight of a whole class.
    X, X_test : ndarray (n_cases, n_channels, n_steps)
        Multiples of ``unit``. Without test series ``X_test`` is ``X``.
    codes, codes_test : ndarray (n_cases,)
        Index into ``classes``.
    unit : float
    scaling : float
        ‖μ‖ as the series enter the network.
    judged : {"test", "training"}
        What accuracies are measured on.
    thinned : list of str
        What was left out, a sentence each.
    """

    name: str
    note: str
    classes: list[str]
    weights: np.ndarray
    X: np.ndarray
    codes: np.ndarray
    X_test: np.ndarray
    codes_test: np.ndarray
    unit: float
    scaling: float = 1.0
    judged: str = "test"
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
        """All pairs of classes that can be compared, the most frequent ones first.

        The classes of the later code are ζ = +1.
        """
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
) -> Material:
    """Thin series to what a page can carry, and say what was left out.

    Parameters
    ----------
    name : str
    X, X_test : array (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list may hold series of different lengths; they end together, and a shorter one
        stays at its first value before it begins.
    y, y_test : array_like (n_cases,)
    note : str
    n_steps : int, optional
        Number of steps to average the series to; by default as many as fit.
    class_weights : dict, optional
        Factor on the weight of a class, one by default.
    scaling : float
    max_series : int
        Series of training and of test that are kept, each class in proportion.
    max_numbers : int
        Numbers of all series together.

    Raises
    ------
    ValueError
        Where there are fewer than two classes of at least two series, or more classes or
        channels than a page shows.
    """
    thinned: list[str] = []
    values = _cube(X, thinned)
    labels = [str(label) for label in np.asarray(y).tolist()]
    classes = list(dict.fromkeys(str(label) for label in np.unique(y).tolist()))
    counts = [labels.count(one) for one in classes]
    if sum(count >= 2 for count in counts) < 2:
        raise ValueError(
            f"`{name}` must hold two classes of at least two series each; got "
            + (
                ", ".join(
                    f"{n} of {c!r}" for c, n in zip(classes[:5], counts, strict=False)
                )
            )
            + "."
        )
    if len(classes) > MAX_CLASSES or values.shape[1] > MAX_CHANNELS:
        raise ValueError(
            f"`{name}` has {len(classes)} classes and {values.shape[1]} channels; the "
            f"explorer shows up to {MAX_CLASSES} and {MAX_CHANNELS}: choose classes with "
            "`--classes`, or leave channels out."
        )
    codes = np.array([classes.index(label) for label in labels])
    judged = "training" if X_test is None else "test"
    others, other_codes = values[:0], codes[:0]
    if X_test is not None:
        others = _cube(X_test, [], values.shape[2])
        found = [str(label) for label in np.asarray(y_test).tolist()]
        known = np.array([label in classes for label in found], dtype=bool)
        others, found = others[known], [one for one in found if one in classes]
        other_codes = np.array([classes.index(label) for label in found], dtype=int)
        if not len(others):
            judged = "training"
    length = n_steps or _length(values.shape[1], values.shape[2])
    if length != values.shape[2]:
        thinned.append(
            f"{values.shape[2]} steps of each series were averaged to {length}."
            if length < values.shape[2]
            else f"{values.shape[2]} steps of each series were repeated to fill {length}."
        )
        values, others = _resample(values, length), _resample(others, length)
    size = values.shape[1] * length
    both = 1 if judged == "training" else 2
    room = min(max_series, max(2 * len(classes), max_numbers // (both * size)))
    values, codes = _thin(values, codes, room, "training", thinned)
    if judged == "test":
        others, other_codes = _thin(others, other_codes, room, "test", thinned)
    unit = float(max(np.abs(values).max(), np.abs(others).max(initial=0.0))) / _LEVELS
    if not (np.isfinite(unit) and unit > 0):
        raise ValueError(
            f"`{name}` holds nothing but zeros; there is nothing to tell apart."
        )
    values, others = (np.rint(part / unit) * unit for part in (values, others))
    if judged == "training":
        others, other_codes = values, codes
    given = class_weights or {}
    weights = np.array([float(given.get(one, 1.0)) for one in classes])
    return Material(
        name,
        note,
        classes,
        weights,
        values,
        codes,
        others,
        other_codes,
        unit,
        scaling,
        judged,
        thinned,
    )


def _cube(X: Any, thinned: list[str], n_steps: int | None = None) -> np.ndarray:
    """Series as (n_cases, n_channels, n_steps), those of unequal lengths filled up."""
    series = [np.atleast_2d(np.asarray(one, dtype=float)) for one in X]
    if not series:
        raise ValueError("there are no series to explore.")
    lengths = {one.shape[1] for one in series}
    longest = max(lengths) if n_steps is None else n_steps
    if len(lengths) > 1:
        thinned.append(
            f"Series of {min(lengths)} to {max(lengths)} steps end together; shorter ones "
            "stay at their first value before they begin."
        )
    cut = [one[:, -longest:] for one in series]
    made = np.stack(
        [np.pad(one, ((0, 0), (longest - one.shape[1], 0)), mode="edge") for one in cut]
    )
    if not np.isfinite(made).all():
        raise ValueError("series must be finite; fill missing values, or use --trim.")
    return made


def _length(n_channels: int, n_steps: int) -> int:
    """Steps that fit on the page, each the mean of as many of the series as the others."""
    most = max(1, MAX_VALUES // n_channels)
    return n_steps if n_steps <= most else -(-n_steps // -(-n_steps // most))


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
