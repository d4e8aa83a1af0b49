"""Optimal projections: `optimize`, the common door, and one file per method."""

from .alternating import Alternating
from .ascent import Ascent
from .convex import Convex, Exact
from .method import Method, RandomDraws, Run
from .result import Projections, RegressionProjections
from .run import optimize

__all__ = [
    "Alternating",
    "Ascent",
    "Convex",
    "Exact",
    "Method",
    "Projections",
    "RandomDraws",
    "RegressionProjections",
    "Run",
    "optimize",
]
