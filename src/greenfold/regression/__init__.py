"""Numbers from series: the scikit-learn regressor."""

from .estimator import ReservoirRegressor

__all__ = ["ReservoirRegressor"]
