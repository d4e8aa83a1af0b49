"""Series that are not aligned: reservoirs read at every step and pooled over time."""

from .bank import FilterBank, ScaleReservoir, draw_bank
from .classifier import PooledReservoirClassifier
from .features import ReservoirFeatures
from .oscillators import decay_and_frequency, oscillator_weights
from .regressor import PooledReservoirRegressor

__all__ = [
    "FilterBank",
    "PooledReservoirClassifier",
    "PooledReservoirRegressor",
    "ReservoirFeatures",
    "ScaleReservoir",
    "decay_and_frequency",
    "draw_bank",
    "oscillator_weights",
]
