"""What a fitted pooled estimator is made of, for a file that holds numbers, not code.

`to_arrays` takes an estimator apart into metadata that JSON can hold and plain arrays;
`from_arrays` checks both and puts the estimator together again. How the file is made and
checked is said in `greenfold._base.archive`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..._base import archive as _archive
from ..._base.archive import Content, refuse
from .bank import N_ROWS, N_SIGNALS, N_THRESHOLDS, FilterBank, ScaleReservoir
from .classifier import PooledReservoirClassifier
from .feature_map import FeatureMap, auto_engine, has_numba
from .features import ReservoirFeatures
from .regressor import PooledReservoirRegressor
from .ridge import LinearHead

__all__ = ["ESTIMATORS", "from_arrays", "save", "to_arrays", "unpack_pooled"]

Estimator = ReservoirFeatures | PooledReservoirClassifier | PooledReservoirRegressor
#: Those that can be described, by name.
ESTIMATORS: dict[str, type[Estimator]] = {
    kind.__name__: kind
    for kind in (ReservoirFeatures, PooledReservoirClassifier, PooledReservoirRegressor)
}
#: Kind of the file.
KIND = "pooled"
#: Largest stride: that of a series of eight million steps.
_LONGEST_STRIDE = 2**16
#: Of the layout of features (`kinds`) and of this description; raised when it changes.
_LAYOUT = 1


def save(estimator: Estimator, path: str | Path) -> None:
    """Write a fitted estimator; `greenfold.load` reads it.

    Parameters
    ----------
    estimator : ReservoirFeatures, PooledReservoirClassifier or PooledReservoirRegressor
    path : str or Path
        Replaced if it exists, in one step at the end.
    """
    _archive.write(path, KIND, *to_arrays(estimator))


def unpack_pooled(content: Content) -> Estimator:
    """The estimator in a file."""
    if content.kind != KIND:
        refuse(f"it holds a {content.kind}, not a pooled estimator.")
    return from_arrays(content.described, content.arrays)


def to_arrays(estimator: Estimator) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Take a fitted estimator apart.

    Parameters
    ----------
    estimator : ReservoirFeatures, PooledReservoirClassifier or PooledReservoirRegressor

    Returns
    -------
    metadata : dict
        Text, numbers and lists of them.
    arrays : dict of ndarray
        Of numbers or of text of fixed width.

    Notes
    -----
    A ``random_state`` that is a generator is not kept, nor are held-out predictions.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    made = estimator.map_
    arrays: dict[str, np.ndarray] = {}
    for i, one in enumerate(made.bank.scales):
        for name in ("decay_times", "frequencies", "u", "readouts"):
            arrays[f"scale{i}_{name}"] = getattr(one, name)
        arrays[f"scale{i}_thresholds"] = made.thresholds[i]
    if made.mean is not None and made.deviation is not None:
        arrays["mean"], arrays["deviation"] = made.mean, made.deviation
    names = getattr(estimator, "feature_names_in_", None)
    metadata: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "layout": _LAYOUT,
        "parameters": {
            name: _plain(name, value)
            for name, value in estimator.get_params(deep=False).items()
        },
        "scales": [float(one.scale) for one in made.bank.scales],
        "strides": [int(one.stride) for one in made.bank.scales],
        "n_channels": int(estimator.n_channels_in_),
        "n_steps": int(estimator.n_features_in_),
        "any_length": bool(estimator._any_length),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    if isinstance(estimator, ReservoirFeatures):
        return metadata, arrays
    for i, (mean, W) in enumerate(
        zip(estimator.head_.means, estimator.head_.coefficients, strict=True)
    ):
        arrays[f"scale{i}_feature_mean"], arrays[f"scale{i}_coefficients"] = mean, W
    arrays["intercept"] = estimator.head_.intercept
    metadata["penalty"] = estimator.penalty_
    if isinstance(estimator, PooledReservoirRegressor):
        metadata["one_target"] = estimator._flat
        return metadata, arrays
    classes = estimator.classes_
    metadata["slope"] = estimator.slope_
    metadata["classes_are_objects"] = classes.dtype.kind == "O"
    if classes.dtype.kind == "O" and not all(isinstance(one, str) for one in classes):
        raise TypeError(
            "labels must be numbers or text to be saved; got "
            f"{sorted({type(one).__name__ for one in classes})}."
        )
    arrays["classes"] = classes.astype(str) if classes.dtype.kind == "O" else classes
    return metadata, arrays


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {"pairs": [[_plain(name, k), _plain(name, v)] for k, v in value.items()]}
    if name == "random_state" and not isinstance(value, int):
        return None
    return value


def from_arrays(metadata: dict[str, Any], arrays: dict[str, np.ndarray]) -> Estimator:
    """Put an estimator together again.

    Parameters
    ----------
    metadata, arrays
        As `to_arrays` gives them, perhaps after a journey through a file.

    Returns
    -------
    ReservoirFeatures, PooledReservoirClassifier or PooledReservoirRegressor
        Fitted: predicts what the original did, in the last digits where numba is installed
        on one of two machines only.

    Raises
    ------
    ModelFileError
        If they do not fit together.
    """
    if metadata.get("layout") != _LAYOUT:
        refuse(f"its layout {metadata.get('layout')!r} is not {_LAYOUT}.")
    kind = ESTIMATORS.get(metadata["estimator"])
    if kind is None:
        refuse(f"it holds an unknown estimator {metadata['estimator']!r}.")
    given = {}
    for name, value in metadata["parameters"].items():
        pairs = isinstance(value, dict)
        given[name] = dict(value["pairs"]) if pairs else value
    estimator = kind(**given)
    estimator._check_parameters()
    n_channels, n_steps = int(metadata["n_channels"]), int(metadata["n_steps"])
    if n_channels < 1 or n_steps < 1:
        refuse("its numbers of channels and steps are not positive.")
    estimator.n_channels_in_, estimator.n_features_in_ = n_channels, n_steps
    estimator._any_length = bool(metadata["any_length"])
    if metadata["feature_names"] is not None:
        names = np.array([str(name) for name in metadata["feature_names"]], dtype=object)
        estimator.feature_names_in_ = names  # pyright: ignore[reportAttributeAccessIssue]
    estimator.map_ = _read_map(metadata, arrays, estimator)
    if isinstance(estimator, ReservoirFeatures):
        return estimator
    n_targets = None
    if isinstance(estimator, PooledReservoirClassifier):
        classes = arrays["classes"]
        if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) < len(classes):
            refuse("its classes are not distinct labels.")
        objects = metadata["classes_are_objects"]
        estimator.classes_ = classes.astype(object) if objects else classes
        estimator.slope_ = _positive(metadata, "slope")
        estimator.held_out_scores_ = estimator.held_out_cases_ = None
        n_targets = 1 if len(classes) == 2 else len(classes)
    else:
        estimator._flat = bool(metadata["one_target"])
        estimator.held_out_predictions_ = estimator.held_out_cases_ = None
        if estimator._flat:
            n_targets = 1
    estimator.penalty_ = _positive(metadata, "penalty")
    estimator.head_ = _read_head(arrays, estimator.map_, n_targets)
    return estimator


def _positive(metadata: dict[str, Any], name: str) -> float:
    value = float(metadata[name])
    if not (np.isfinite(value) and value > 0):
        refuse(f"its {name} is {value}, not a positive number.")
    return value


def _array(
    arrays: dict[str, np.ndarray], name: str, shape: tuple[int, ...], dtype: Any
) -> np.ndarray:
    """An array of finite numbers of the shape it must have."""
    found = arrays.get(name)
    if found is None:
        refuse(f"its array {name!r} is missing.")
    if found.shape != shape or found.dtype.kind not in "iuf":
        refuse(f"its array {name!r} has shape {found.shape} instead of {shape}.")
    if not np.isfinite(found).all():
        refuse(f"its array {name!r} is not finite.")
    return np.ascontiguousarray(found, dtype=dtype)


def _read_map(
    metadata: dict[str, Any], arrays: dict[str, np.ndarray], estimator: Estimator
) -> FeatureMap:
    scales, strides = metadata["scales"], metadata["strides"]
    if not len(scales) == len(strides) == estimator.n_scales:
        refuse("its reservoirs are not as many as its parameters say.")
    J, D = estimator.n_oscillators, estimator.n_readouts
    drawn, thresholds = [], []
    for i, (scale, stride) in enumerate(zip(scales, strides, strict=True)):
        decay = _array(arrays, f"scale{i}_decay_times", (J,), np.float64)
        stride = int(stride)
        longest = min(max(1, estimator.n_features_in_), _LONGEST_STRIDE)
        if decay.min() <= 0 or not 1 <= stride <= longest:
            refuse(f"its reservoir {i} has decay times or a stride that can not be.")
        frequency = _array(arrays, f"scale{i}_frequencies", (J,), np.float64)
        u = _array(arrays, f"scale{i}_u", (2 * J, estimator.n_channels_in_), np.float64)
        readouts = _array(arrays, f"scale{i}_readouts", (2 * J, D), np.float64)
        drawn.append(ScaleReservoir(float(scale), decay, frequency, u, readouts, stride))
        shape = N_THRESHOLDS, N_SIGNALS * D
        thresholds.append(_array(arrays, f"scale{i}_thresholds", shape, np.float32))
    mean = deviation = None
    if estimator.scaling == "set":
        mean = _array(arrays, "mean", (estimator.n_channels_in_,), np.float64)
        deviation = _array(arrays, "deviation", (estimator.n_channels_in_,), np.float64)
        if deviation.min() <= 0:
            refuse("its deviations are not positive.")
    # The machine that reads need not have numba.
    engine = auto_engine() if estimator.engine == "auto" else estimator.engine
    engine = engine if has_numba() else "array"
    bank = FilterBank(tuple(drawn), estimator.n_channels_in_)
    return FeatureMap(bank, thresholds, mean, deviation, engine)


def _read_head(
    arrays: dict[str, np.ndarray], made: FeatureMap, n_targets: int | None
) -> LinearHead:
    intercept = arrays.get("intercept")
    if intercept is None or intercept.ndim != 1 or len(intercept) == 0:
        refuse("its intercept is missing.")
    n_targets = len(intercept) if n_targets is None else n_targets
    means, coefficients = [], []
    for i, width in enumerate(made.widths):
        assert width == N_ROWS * N_SIGNALS * made.bank.scales[i].n_readouts
        means.append(_array(arrays, f"scale{i}_feature_mean", (width,), np.float32))
        coefficients.append(
            _array(arrays, f"scale{i}_coefficients", (width, n_targets), np.float32)
        )
    return LinearHead(
        means, coefficients, _array(arrays, "intercept", (n_targets,), np.float64)
    )
