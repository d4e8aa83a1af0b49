"""Reservoir computing, solved: optimal input and readout projections."""

from .kernels import Kernel
from .reservoir import Gain, Modes, Reservoir
from .simulation import simulate
from .unfolding import Unfolding, unfold

__version__ = "0.1.0"

__all__ = [
    "Gain",
    "Kernel",
    "Modes",
    "Reservoir",
    "Unfolding",
    "simulate",
    "unfold",
]
