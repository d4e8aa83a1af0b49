"""What a fitted regressor is made of, for a file that holds numbers, not code.

How the file is made and checked is said in `greenfold._base.archive`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base import archive as _archive
from .._base.archive import Content, refuse
from ..networks.reservoir import Reservoir, pack_reservoir, unpack_reservoir
from ..optimizers.result import pack, unpack_regression
from .regressor import ReservoirRegressor

#: Kind of the file.
KIND = "regressor"


def save(regressor: ReservoirRegressor, path: str | Path) -> None:
    """Write a fitted regressor; `greenfold.load` reads it.

    Parameters
    ----------
    regressor : ReservoirRegressor
    path : str or Path
        Replaced if it exists, in one step at the end.
    """
    check_is_fitted(regressor)
    arrays: dict[str, np.ndarray] = {
        "kernel": regressor.kernel_,
        "intercept": regressor.intercept_,
    }
    names = getattr(regressor, "feature_names_in_", None)
    described = {
        "parameters": {
            name: _packed(name, value, arrays)
            for name, value in regressor.get_params(deep=False).items()
        },
        "reservoir": pack_reservoir(regressor.reservoir_, arrays, "network"),
        "projections": pack(regressor.projections_, arrays),
        "ridge": float(regressor.ridge_),
        "one_target": bool(regressor._flat),
        "n_channels": int(regressor.n_channels_in_),
        "n_steps": int(regressor.n_features_in_),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    _archive.write(path, KIND, described, arrays)


def _packed(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A parameter for JSON; arrays go elsewhere under its name."""
    if isinstance(value, Reservoir):
        return {"reservoir": pack_reservoir(value, arrays, f"parameter_{name}")}
    if name == "random_state" and not isinstance(value, int | np.integer):
        return None  # a generator is not kept
    if name in ("input_projection", "reservoir") and not isinstance(value, str | None):
        whole: Any = value
        dense = whole.toarray() if hasattr(whole, "toarray") else whole
        arrays[f"parameter_{name}"] = np.asarray(dense, dtype=np.float64)
        return {"array": f"parameter_{name}"}
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Any, content: Content) -> Any:
    if not isinstance(value, dict):
        return value
    if "reservoir" in value:
        return unpack_reservoir(value["reservoir"], content.arrays)
    array = content.arrays[value["array"]]
    return content.numbers(value["array"], array.shape)


def unpack_regressor(content: Content) -> ReservoirRegressor:
    """The regressor in a file, checked."""
    described = content.described
    parameters = {k: _unpacked(v, content) for k, v in described["parameters"].items()}
    made = ReservoirRegressor(**parameters)
    made._check_parameters()
    n_channels, n_steps = described["n_channels"], described["n_steps"]
    for size in (n_channels, n_steps):
        if type(size) is not int or size < 1:
            refuse(f"it is for series of {n_channels!r} channels and {n_steps!r} steps.")
    kernel = content.numbers("kernel", (None, n_channels * n_steps))
    n_targets = len(kernel)
    one_target, ridge = described["one_target"], described["ridge"]
    if one_target not in (True, False) or (one_target and n_targets != 1):
        refuse(f"it has {n_targets} targets, and says one: {one_target!r}.")
    if not (isinstance(ridge, float) and 0 < ridge < np.inf):
        refuse(f"its penalty is {ridge!r}.")
    made.reservoir_ = unpack_reservoir(described["reservoir"], content.arrays)
    found = unpack_regression(content, described["projections"])
    n_neurons = made.reservoir_.n_neurons
    if found.V.shape != (n_neurons, n_targets) or found.u.size != n_neurons * n_channels:
        refuse(f"its projections do not fit a network of {n_neurons} neurons.")
    made.projections_ = found
    made.ridge_ = ridge
    made.n_channels_in_, made.n_features_in_ = n_channels, n_steps
    made._flat = one_target
    names = described["feature_names"]
    if names is not None:
        if not isinstance(names, list) or len(names) != n_steps:
            refuse("its feature names do not fit its series.")
        made.feature_names_in_ = np.array([str(name) for name in names], dtype=object)
    made.kernel_ = kernel
    made.intercept_ = content.numbers("intercept", (n_targets,))
    return made
