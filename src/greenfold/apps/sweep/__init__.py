"""Estimators × data sets × resamples, and the comparison of what comes out."""

from .comparison import compare
from .plan import sweep

__all__ = ["compare", "sweep"]
