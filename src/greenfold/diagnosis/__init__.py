"""Questions around an optimum: over time, over angle, over η and over τ."""

from .eta import EtaChoice, choose_eta
from .interval import MarginInterval, margin_interval
from .memory import MemoryCapacity, memory_capacity
from .sweeps import MarginCurve, margin_over_angle, margin_over_time
from .tau import TauChoice, choose_tau

__all__ = [
    "EtaChoice",
    "MarginCurve",
    "MarginInterval",
    "MemoryCapacity",
    "TauChoice",
    "choose_eta",
    "choose_tau",
    "margin_interval",
    "margin_over_angle",
    "margin_over_time",
    "memory_capacity",
]
