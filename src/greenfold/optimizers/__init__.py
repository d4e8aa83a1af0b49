"""Optimal projections: one method a file, one entry point, `optimize`."""

from .result import Projections, RegressionProjections
from .run import optimize

__all__ = ["Projections", "RegressionProjections", "optimize"]
