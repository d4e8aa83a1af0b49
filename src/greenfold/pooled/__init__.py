"""Series that are not aligned: reservoirs read at every step and pooled over time."""

from .bank import FilterBank, ScaleReservoir, draw_bank
from .classifier import PooledReservoirClassifier
from .features import ReservoirFeatures
from .regressor import PooledReservoirRegressor

__all__ = [
    "FilterBank",
    "PooledReservoirClassifier",
    "PooledReservoirRegressor",
    "ReservoirFeatures",
    "ScaleReservoir",
    "draw_bank",
]
