"""Labels of two classes, of any kind, and how much each class counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import to_host


def label_array(labels: Any, n_cases: int) -> np.ndarray:
    """Labels on the host, one of one kind for each series."""
    array = to_host(labels)
    if array.ndim != 1 or len(array) != n_cases:
        raise ValueError(
            f"`labels` must have one entry per series, shape ({n_cases},); got shape "
            f"{array.shape}."
        )
    if array.dtype.kind == "O":
        kinds = sorted({type(label).__name__ for label in array})
        if len(kinds) > 1 or kinds == ["NoneType"]:
            raise TypeError(f"`labels` must be of one kind; got {', '.join(kinds)}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("`labels` must not be NaN or infinite.")
    return array


def signs_of(labels: Any, n_cases: int) -> np.ndarray:
    """ζ = ±1 of labels of any kind: the larger of two (by sorting) is +1.

    Labels that are ±1 already are left alone, of one class too.
    """
    array = label_array(labels, n_cases)
    classes = np.unique(array)
    if array.dtype.kind in "if" and np.isin(classes, (-1, 1)).all():
        return array
    return np.where(array == two_classes(classes)[1], 1, -1)


def two_classes(classes: np.ndarray) -> np.ndarray:
    """Refuse any other number of classes."""
    if len(classes) != 2:
        shown = ", ".join(repr(c) for c in classes[:5].tolist())
        raise ValueError(
            f"`labels` must hold exactly two classes; got {len(classes)}: {shown}"
            f"{', …' if len(classes) > 5 else ''}."
        )
    return classes


def class_share(
    class_weight: Any, classes: np.ndarray, n_minus: float, n_plus: float
) -> np.ndarray:
    """Weight of each of two classes, adding to one; see `SampleStimuli`."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.array([0.5, 0.5])
    if class_weight is None:
        return np.array([n_minus, n_plus]) / (n_minus + n_plus)
    if isinstance(class_weight, dict):
        try:
            given = np.array([float(class_weight[c]) for c in classes.tolist()])
        except (KeyError, TypeError, ValueError):
            given = np.zeros(2)
        if (given > 0).all() and np.isfinite(given).all():
            return given / given.sum()
    raise ValueError(
        "`class_weight` must be 'balanced', None, or a dict with a positive weight for "
        f"each of the labels {classes.tolist()}; got {class_weight!r}."
    )
