"""Questions around an optimum: over time, over angle, over η, τ and the network."""

from .device_mask import MaskStudy, study_mask
from .eta import EtaChoice, choose_eta
from .interval import MarginInterval, margin_interval
from .memory import MemoryCapacity, memory_capacity
from .networks import ReservoirPath, optimize_reservoir
from .relaxed_masks import mask_bound
from .sweeps import MarginCurve, margin_over_angle, margin_over_time
from .tau import TauChoice, choose_tau

__all__ = [
    "EtaChoice",
    "MarginCurve",
    "MarginInterval",
    "MaskStudy",
    "MemoryCapacity",
    "ReservoirPath",
    "TauChoice",
    "choose_eta",
    "choose_tau",
    "margin_interval",
    "margin_over_angle",
    "margin_over_time",
    "mask_bound",
    "memory_capacity",
    "optimize_reservoir",
    "study_mask",
]
