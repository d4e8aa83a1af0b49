"""Optimal projections: one method a file, one entry point, `optimize`."""

from .regression import RegressionProjections
from .result import Projections
from .run import optimize

__all__ = ["Projections", "RegressionProjections", "optimize"]
