"""Optimal projections: one module per method, and `optimize`, the common entry point."""

from .result import Projections, RegressionProjections
from .run import optimize

__all__ = ["Projections", "RegressionProjections", "optimize"]
