"""Sequence regression and closed-loop forecasts with solved input weights."""

from .backtest import Backtest, valid_steps
from .forecaster import DivergenceWarning, ReservoirForecaster
from .regressor import SequenceRegressor

__all__ = [
    "Backtest",
    "DivergenceWarning",
    "ReservoirForecaster",
    "SequenceRegressor",
    "valid_steps",
]
