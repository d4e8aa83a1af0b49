"""Estimators × data sets × resamples, and the comparison of what comes out."""

from greenfold.sweep.comparison import Comparison, compare
from greenfold.sweep.estimators import EstimatorSpec, parse_estimator
from greenfold.sweep.plan import sweep
from greenfold.sweep.predictions import Predictions, read_predictions

__all__ = [
    "Comparison",
    "EstimatorSpec",
    "Predictions",
    "compare",
    "parse_estimator",
    "read_predictions",
    "sweep",
]
