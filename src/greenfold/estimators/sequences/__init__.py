"""Sequence regression and closed-loop forecasts with solved input weights."""

from .forecaster import DivergenceWarning, ReservoirForecaster, valid_steps
from .regressor import SequenceRegressor

__all__ = ["DivergenceWarning", "ReservoirForecaster", "SequenceRegressor", "valid_steps"]
