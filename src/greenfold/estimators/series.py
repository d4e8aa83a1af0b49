"""Series as every estimator reads them: arrays of equal length, or lists of any length."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets

from .._base.arrays import is_array, namespace, on_gpu, to_host
from ..stimuli.base import Series
from ..stimuli.chunks import host_labels

# scikit-learn's own types know neither NumPy's dtypes nor arrays of three axes.
_check_array: Any = validation.check_array
_validate_data: Any = validation.validate_data
_check_sample_weight: Any = validation._check_sample_weight


def read_values(estimator: Any, X: Any, *, fitting: bool, gaps: bool = False) -> Any:
    """Check ``X`` the way scikit-learn does.

    Parameters
    ----------
    estimator : SeriesEstimator
        Its ``n_features_in_``, ``n_channels_in_`` and ``_any_length`` are set when fitting,
        and compared with afterwards.
    X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list holds series of shape (n_steps,) or (n_channels, n_steps) of any length.
    fitting : bool
    gaps : bool
        Allow NaN, keep single precision, and leave arrays of other libraries where they
        are. Otherwise the values are finite, in double precision and on the host.

    Returns
    -------
    array (n_cases, n_channels, n_steps), or list of ndarray (n_channels, n_steps)
    """
    options = {
        "dtype": [np.float64, np.float32] if gaps else np.float64,
        "ensure_all_finite": "allow-nan" if gaps else True,
    }
    if _holds_series(X):
        return _read_list(estimator, X, fitting, options)
    if is_array(X) and not isinstance(X, np.ndarray):
        if gaps:
            return _read_foreign(estimator, X, fitting)
        X = to_host(X)
    named = {"estimator": estimator, "input_name": "X", **options}
    if getattr(X, "ndim", 0) == 3:
        cube = _check_array(X, allow_nd=True, **named)
        if 0 in cube.shape:
            raise ValueError(f"Found array with 0 channel(s) or step(s): {cube.shape}.")
        match_shape(estimator, *cube.shape[1:], fitting=fitting)
        return cube
    # Series of one channel and equal length: an ordinary scikit-learn table.
    if not fitting and estimator.n_channels_in_ != 1:
        raise ValueError(
            f"X must have shape (n_cases, {estimator.n_channels_in_}, n_steps), as "
            f"{type(estimator).__name__} was fitted with {estimator.n_channels_in_} "
            f"channels; got shape {np.shape(X)}."
        )
    if not fitting and estimator._any_length:
        return _check_array(X, **named)[:, None, :]
    table = _validate_data(estimator, X, reset=fitting, **options)
    if fitting:
        estimator.n_channels_in_, estimator._any_length = 1, False
    return table[:, None, :]


def _holds_series(X: Any) -> bool:
    """Whether ``X`` is a list of which each entry must be read for itself."""
    if not isinstance(X, list | tuple) or not X:
        return False
    try:
        shapes = {np.shape(one) for one in X}
    except ValueError:  # an entry is itself ragged; scikit-learn says so better
        return False
    ndims = {len(shape) for shape in shapes}
    return ndims == {2} or (ndims == {1} and len(shapes) > 1)


def _read_list(
    estimator: Any, X: Any, fitting: bool, options: dict[str, Any]
) -> list[np.ndarray]:
    gaps = options["ensure_all_finite"] == "allow-nan"
    found = []
    for index, entry in enumerate(X):
        one = _check_array(
            np.atleast_2d(to_host(entry) if is_array(entry) else np.asarray(entry)),
            dtype=options["dtype"],
            ensure_min_features=0,
            ensure_all_finite=False,
            estimator=estimator,
        )
        if one.shape[1] == 0:
            raise ValueError(f"X holds an empty series at index {index}.")
        if (np.isinf(one) if gaps else ~np.isfinite(one)).any():
            what = "infinity" if gaps else "NaN or infinity"
            raise ValueError(
                f"Input X contains {what} in the series at index {index}; impute such "
                "values or drop that series."
            )
        found.append(one)
    channels, lengths = ({one.shape[axis] for one in found} for axis in (0, 1))
    if len(channels) > 1:
        raise ValueError(
            "X must hold series of the same number of channels; got "
            f"{min(channels)} to {max(channels)}."
        )
    # A list says that lengths may differ.
    longest = max(lengths) if fitting else estimator.n_features_in_
    match_shape(estimator, channels.pop(), longest, fitting)
    if fitting:
        estimator._any_length = len(lengths) > 1
    return found


def _read_foreign(estimator: Any, X: Any, fitting: bool) -> Any:
    """An array of PyTorch, CuPy, …, left on its device."""
    xp = namespace(X)
    if X.ndim not in (2, 3) or 0 in X.shape:
        raise ValueError(
            "X must have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), none "
            f"of them zero; got shape {tuple(X.shape)}."
        )
    if not xp.isdtype(X.dtype, "real floating"):
        if xp.isdtype(X.dtype, "complex floating"):
            raise ValueError("Complex data not supported.")
        X = xp.astype(X, xp.float32)
    if bool(xp.any(xp.isinf(X))):
        raise ValueError("Input X contains infinity.")
    cube = X[:, None, :] if X.ndim == 2 else X
    match_shape(estimator, cube.shape[1], cube.shape[2], fitting)
    return cube


def match_shape(estimator: Any, n_channels: int, n_steps: int, fitting: bool) -> None:
    """Set the numbers of channels and steps, or compare with those of the fit."""
    if fitting:
        # `reset` leaves the names of an earlier table behind otherwise.
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        estimator.n_channels_in_, estimator.n_features_in_ = n_channels, n_steps
        estimator._any_length = False
        return
    name = type(estimator).__name__
    if n_channels != estimator.n_channels_in_:
        raise ValueError(
            f"X has {n_channels} channels, but {name} is expecting "
            f"{estimator.n_channels_in_} channels as input."
        )
    if n_steps != estimator.n_features_in_ and not estimator._any_length:
        raise ValueError(
            f"X has {n_steps} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def read_series(estimator: Any, X: Any, *, fitting: bool) -> Series:
    """Read finite series and put their ends together; parameters as in `read_values`.

    What lies more than ``n_features_in_`` steps before the end is dropped. On a GPU is
    where the networks of an array that is there are run.
    """
    if on_gpu(X):
        return replace(read_series(estimator, to_host(X), fitting=fitting), place=X[:0])
    found = read_values(estimator, X, fitting=fitting)
    n_steps = estimator.n_features_in_
    if not isinstance(found, list) and found.shape[2] == n_steps:
        return Series(found)
    values = np.zeros((len(found), len(found[0]), n_steps))
    present = np.zeros((len(found), n_steps), dtype=bool)
    for row, begun, one in zip(values, present, found, strict=True):
        length = min(one.shape[1], n_steps)
        row[:, n_steps - length :] = one[:, one.shape[1] - length :]
        begun[n_steps - length :] = True
    return Series(values, None if present.all() else present)


def read_labelled(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, fitting: bool
) -> tuple[Series, np.ndarray, np.ndarray]:
    """`read_series` with a class label and a weight per series.

    Series of weight zero are left out, as if they had not been given.
    """
    found = read_series(estimator, X, fitting=fitting)
    labels = read_labels(estimator, y, len(found))
    if sample_weight is None:
        return found, labels, np.ones(len(labels))
    weights = _check_sample_weight(
        sample_weight, found.values, dtype=np.float64, ensure_non_negative=True
    )
    used = weights > 0
    if not used.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if used.all():
        return found, labels, weights
    return found[used], labels[used], weights[used]


def read_labels(estimator: Any, y: Any, n_cases: int) -> np.ndarray:
    """Class labels (n_cases,), however they are given."""
    labels = validation.column_or_1d(_brought(estimator, y), warn=True)
    _check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(labels)
    return _match_cases(labels, n_cases)


def read_targets(estimator: Any, y: Any, n_cases: int) -> np.ndarray:
    """Numbers (n_cases,) or (n_cases, n_targets) of at least two series."""
    targets = _check_array(
        _brought(estimator, y),
        ensure_2d=False,
        dtype=np.float64,
        input_name="y",
        estimator=estimator,
    )
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = validation.column_or_1d(targets, warn=True)
    if targets.ndim not in (1, 2):
        raise ValueError(
            "y must have shape (n_cases,) or (n_cases, n_targets); got shape "
            f"{targets.shape}."
        )
    if n_cases < 2:
        raise ValueError(
            "Found array with n_samples=1 while a minimum of 2 is required by "
            f"{type(estimator).__name__}, which holds one out."
        )
    return _match_cases(targets, n_cases)


def _brought(estimator: Any, y: Any) -> Any:
    """``y`` on the host."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    y = host_labels(y)
    return to_host(y) if is_array(y) else y


def _match_cases(y: np.ndarray, n_cases: int) -> np.ndarray:
    if len(y) != n_cases:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"[{n_cases}, {len(y)}]"
        )
    return y
