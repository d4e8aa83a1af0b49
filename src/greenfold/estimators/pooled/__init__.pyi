from .bank import FilterBank, ScaleReservoir, draw_bank
from .estimators import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
    to_onnx,
)
from .feature_map import SlowEngineWarning

__all__ = [
    "FilterBank",
    "PooledReservoirClassifier",
    "PooledReservoirRegressor",
    "ReservoirFeatures",
    "ScaleReservoir",
    "SlowEngineWarning",
    "draw_bank",
    "to_onnx",
]
