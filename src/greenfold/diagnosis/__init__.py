"""Questions around an optimum: over time, over angle, over η and over τ."""

from .eta import EtaChoice, choose_eta
from .sweeps import MarginCurve, margin_over_angle, margin_over_time
from .tau import TauChoice, choose_tau

__all__ = [
    "EtaChoice",
    "MarginCurve",
    "TauChoice",
    "choose_eta",
    "choose_tau",
    "margin_over_angle",
    "margin_over_time",
]
