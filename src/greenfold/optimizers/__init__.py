"""Optimal projections: one method a file, one entry point, `optimize`."""

from .result import Projections
from .run import optimize

__all__ = ["Projections", "optimize"]
