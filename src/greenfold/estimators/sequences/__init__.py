"""Sequence regression and closed-loop forecasts with solved input weights."""

from .backtest import Backtest, valid_steps
from .choice import Choice
from .forecaster import DivergenceWarning, ReservoirForecaster
from .regressor import SequenceRegressor

__all__ = [
    "Backtest",
    "Choice",
    "DivergenceWarning",
    "ReservoirForecaster",
    "SequenceRegressor",
    "valid_steps",
]
