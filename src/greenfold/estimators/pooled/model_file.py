"""What a file keeps of fitted pooled estimators; see `greenfold._base.codec`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..._base import codec
from ..._base.archive import refuse
from ..saved import Labels, describe_fitted
from .bank import N_ROWS, N_SIGNALS, N_THRESHOLDS, FilterBank, ScaleReservoir
from .classifier import PooledReservoirClassifier
from .feature_map import FeatureMap, auto_engine, has_numba
from .features import PooledBase, ReservoirFeatures
from .regressor import PooledReservoirRegressor
from .ridge import LinearHead

#: Largest stride: that of a series of eight million steps.
_LONGEST_STRIDE = 2**16
#: Of the layout of features (`kinds`); raised when it changes.
_LAYOUT = 1

_NEURONS = (2, "n_oscillators")
_FEATURES = (N_ROWS, N_SIGNALS, "n_readouts")

_SCALE = codec.Object(
    ScaleReservoir,
    decay_times=codec.Numbers("n_oscillators", positive=True, dtype=np.float64),
    frequencies=codec.Numbers("n_oscillators", dtype=np.float64),
    u=codec.Numbers(_NEURONS, "channels", dtype=np.float64),
    readouts=codec.Numbers(_NEURONS, "n_readouts", dtype=np.float64),
    stride=codec.COUNT,
)


def _taken_map(made: FeatureMap) -> dict[str, Any]:
    return {**vars(made), "layout": _LAYOUT, "scales": made.bank.scales}


def _made_map(layout: int, scales: list[ScaleReservoir], **parts: Any) -> FeatureMap:
    bank = FilterBank(tuple(scales), scales[0].u.shape[1])
    return FeatureMap(bank=bank, engine="array", **parts)


_THRESHOLDS = codec.Numbers(N_THRESHOLDS, (N_SIGNALS, "n_readouts"), dtype=np.float32)
_MAP = codec.Object(
    _made_map,
    _taken_map,
    layout=codec.one_of([_LAYOUT]),
    scales=codec.Several(_SCALE, "n_scales"),
    thresholds=codec.Several(_THRESHOLDS, "n_scales"),
    mean=codec.Maybe(codec.Numbers("channels", dtype=np.float64)),
    deviation=codec.Maybe(codec.Numbers("channels", positive=True, dtype=np.float64)),
)


def _head(n_targets: codec.Length) -> codec.Object:
    width = codec.Numbers(_FEATURES, dtype=np.float32)
    height = codec.Numbers(_FEATURES, n_targets, dtype=np.float32)
    return codec.Object(
        LinearHead,
        intercept=codec.Numbers(n_targets, dtype=np.float64),
        means=codec.Several(width, "n_scales"),
        coefficients=codec.Several(height, "n_scales"),
    )


def _finish(made: Any) -> None:
    """Check the whole, and choose the engine: this machine need not have numba."""
    longest = min(made.n_features_in_, _LONGEST_STRIDE)
    if any(one.stride > longest for one in made.map_.bank.scales):
        refuse("its reservoirs have a stride that can not be.")
    standardised = [made.map_.mean is not None, made.map_.deviation is not None]
    if standardised != [made.scaling == "set"] * 2:
        refuse("its means and deviations do not fit its scaling.")
    if getattr(made, "_flat", False) and len(made.head_.intercept) != 1:
        refuse(f"it has {len(made.head_.intercept)} targets, and says one.")
    engine = auto_engine() if made.engine == "auto" else made.engine
    made.map_ = replace(made.map_, engine=engine if has_numba() else "array")
    for name in type(made).__annotations__:
        if name.startswith("held_out_"):  # not kept
            setattr(made, name, None)


_CHECK = PooledBase._check_parameters
_MAPPED: dict[str, codec.Field] = {"_any_length": codec.FLAG, "map_": _MAP}

describe_fitted("pooled_features", ReservoirFeatures, _CHECK, _finish, **_MAPPED)
describe_fitted(
    "pooled_classifier",
    PooledReservoirClassifier,
    _CHECK,
    _finish,
    **_MAPPED,
    classes_=Labels(),
    head_=_head("scores"),
    penalty_=codec.POSITIVE,
    slope_=codec.POSITIVE,
)
describe_fitted(
    "pooled_regressor",
    PooledReservoirRegressor,
    _CHECK,
    _finish,
    **_MAPPED,
    head_=_head("targets"),
    penalty_=codec.POSITIVE,
    _flat=codec.FLAG,
)
