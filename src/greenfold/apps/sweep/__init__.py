"""Estimators × data sets × resamples, and the comparison of what comes out."""

from .comparison import Comparison, compare
from .estimators import EstimatorSpec, parse_estimator
from .plan import Predictions, read_predictions, sweep

__all__ = [
    "Comparison",
    "EstimatorSpec",
    "Predictions",
    "compare",
    "parse_estimator",
    "read_predictions",
    "sweep",
]
