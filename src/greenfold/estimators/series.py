"""Series as an estimator receives them: arrays of equal length, or lists of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets

from .._base.arrays import on_gpu, to_host
from ..stimuli.base import Series
from ..stimuli.chunks import Chunks, host_labels

# scikit-learn's own types know neither NumPy's dtypes nor arrays of three axes.
_check_array: Any = validation.check_array
_validate_data: Any = validation.validate_data
_check_sample_weight: Any = validation._check_sample_weight


def read_series(estimator: Any, X: Any, *, fitting: bool) -> Series:
    """Check ``X`` the way scikit-learn does and align it.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``n_features_in_`` and ``n_channels_in_`` are set when fitting, and compared
        with afterwards.
    X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list holds series of shape (n_steps,) or (n_channels, n_steps) of any length.
        Of an array on a GPU the networks are run there.
    fitting : bool
    """
    if on_gpu(X):
        return replace(read_series(estimator, to_host(X), fitting=fitting), place=X[:0])
    shapes = _shapes(X)
    if shapes is not None and (len(set(shapes)) > 1 or (fitting and len(shapes[0]) == 2)):
        found = _read_list(estimator, X, fitting)
    elif shapes is not None and len(shapes[0]) == 2:
        found = _read_list(estimator, X, False)
    elif getattr(X, "ndim", 0) == 3:
        found = _read_cube(estimator, X, fitting)
    else:
        found = _read_table(estimator, X, fitting)
    return found


def read_labelled(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, fitting: bool
) -> tuple[Series, np.ndarray, np.ndarray]:
    """`read_series` with a class label and a weight per series.

    Series of weight zero are left out, as if they had not been given.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    found = read_series(estimator, X, fitting=fitting)
    labels = _read_labels(y)
    if len(labels) != len(found):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{len(found)}, {len(labels)}]"
        )
    if sample_weight is None:
        return found, labels, np.ones(len(labels))
    weights = _check_sample_weight(
        sample_weight, found.values, dtype=np.float64, ensure_non_negative=True
    )
    used = weights > 0
    if not used.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return (
        (found, labels, weights)
        if used.all()
        else (found[used], labels[used], weights[used])
    )


def read_labels_of_chunks(
    estimator: Any, chunks: Chunks, y: Any, sample_weight: Any
) -> np.ndarray:
    """Labels of series in chunks, whose shape the estimator is told."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if sample_weight is not None:
        raise ValueError(
            "sample_weight does not go with series in chunks; use class_weight, or "
            "partial_fit with a weight for each series of a batch."
        )
    n_cases, n_channels, n_steps = chunks.shape
    labels = _read_labels(host_labels(y))
    if len(labels) != n_cases:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{n_cases}, {len(labels)}]"
        )
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    estimator.n_channels_in_, estimator.n_features_in_ = n_channels, n_steps
    estimator._any_length = False
    return labels


def _read_labels(y: Any) -> np.ndarray:
    labels = validation.column_or_1d(y, warn=True)
    _check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(labels)
    return labels


def _shapes(X: Any) -> list[tuple[int, ...]] | None:
    """Shapes of the entries of a list that must be read one by one; None for the rest."""
    if not isinstance(X, list | tuple) or not X:
        return None
    try:
        shapes = [np.shape(one) for one in X]
    except ValueError:  # an entry is itself ragged; scikit-learn says so better
        return None
    ndims = {len(shape) for shape in shapes}
    if ndims == {2} or (ndims == {1} and len(set(shapes)) > 1):
        return shapes
    return None


def _read_table(estimator: Any, X: Any, fitting: bool) -> Series:
    """Univariate series of equal length: an ordinary scikit-learn table."""
    if not fitting and estimator.n_channels_in_ != 1:
        raise ValueError(
            f"X must have shape (n_cases, {estimator.n_channels_in_}, n_steps), as "
            f"{type(estimator).__name__} was fitted with {estimator.n_channels_in_} "
            f"channels; got shape {np.shape(X)}."
        )
    if not fitting and estimator._any_length:
        table = _check_array(X, dtype=np.float64, estimator=estimator, input_name="X")
        return _align(list(table[:, None, :]), estimator.n_features_in_)
    table = _validate_data(estimator, X, reset=fitting, dtype=np.float64)
    if fitting:
        estimator.n_channels_in_ = 1
        estimator._any_length = False
    return Series(table[:, None, :])


def _read_cube(estimator: Any, X: Any, fitting: bool) -> Series:
    """Series of several channels and equal length."""
    cube = _check_array(
        X, dtype=np.float64, allow_nd=True, estimator=estimator, input_name="X"
    )
    if fitting:
        # `reset` leaves the names of an earlier table behind otherwise.
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        estimator.n_channels_in_, estimator.n_features_in_ = cube.shape[1:]
        estimator._any_length = False
        return Series(cube)
    if cube.shape[1] != estimator.n_channels_in_:
        raise ValueError(_wrong_channels(estimator, cube.shape[1]))
    if estimator._any_length:
        return _align(list(cube), estimator.n_features_in_)
    if cube.shape[2] != estimator.n_features_in_:
        raise ValueError(
            f"X has {cube.shape[2]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return Series(cube)


def _read_list(estimator: Any, X: Any, fitting: bool) -> Series:
    """Series of any length, one array each."""
    found = []
    for index, entry in enumerate(X):
        one = _check_array(
            np.atleast_2d(np.asarray(entry)),
            dtype=np.float64,
            ensure_min_features=0,
            ensure_all_finite=False,
            estimator=estimator,
        )
        if one.shape[1] == 0:
            raise ValueError(f"X holds an empty series at index {index}.")
        if not np.isfinite(one).all():
            raise ValueError(
                f"Input X contains NaN or infinity in the series at index {index}; impute "
                "such values or drop that series."
            )
        found.append(one)
    channels = {len(one) for one in found}
    if len(channels) > 1:
        raise ValueError(
            "X must hold series of the same number of channels; got "
            f"{min(channels)} to {max(channels)}."
        )
    if fitting:
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        estimator.n_channels_in_ = channels.pop()
        lengths = {one.shape[1] for one in found}
        estimator.n_features_in_ = max(lengths)
        estimator._any_length = len(lengths) > 1
    elif channels != {estimator.n_channels_in_}:
        raise ValueError(_wrong_channels(estimator, channels.pop()))
    return _align(found, estimator.n_features_in_)


def _wrong_channels(estimator: Any, got: int) -> str:
    return (
        f"X has {got} channels, but {type(estimator).__name__} is expecting "
        f"{estimator.n_channels_in_} channels as input."
    )


def _align(found: list[np.ndarray], n_steps: int) -> Series:
    """Put the ends together; drop what lies more than ``n_steps`` before the end."""
    values = np.zeros((len(found), len(found[0]), n_steps))
    present = np.zeros((len(found), n_steps), dtype=bool)
    for row, begun, one in zip(values, present, found, strict=True):
        length = min(one.shape[1], n_steps)
        row[:, n_steps - length :] = one[:, one.shape[1] - length :]
        begun[n_steps - length :] = True
    return Series(values, None if present.all() else present)
