from .estimators import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    ReservoirFeatures,
    to_onnx,
)
from .feature_map import FilterBank, ScaleReservoir, SlowEngineWarning, draw_bank

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
