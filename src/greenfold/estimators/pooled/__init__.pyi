from .bank import FilterBank, ScaleReservoir, draw_bank
from .classifier import PooledReservoirClassifier
from .feature_map import SlowEngineWarning
from .features import ReservoirFeatures
from .onnx import to_onnx
from .regressor import PooledReservoirRegressor

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
