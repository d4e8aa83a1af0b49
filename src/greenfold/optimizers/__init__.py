"""Optimal projections: one file per method, and one entry point, `optimize`."""

from .result import Projections, RegressionProjections
from .run import optimize

__all__ = ["Projections", "RegressionProjections", "optimize"]
