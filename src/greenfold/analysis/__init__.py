"""Analyses around an optimum: parts of κ, time, angle, η and τ, masks and networks."""

from .curves import MarginCurve, TauChoice, choose_tau, margin_over_angle, margin_over_time
from .eta import EtaChoice, choose_eta
from .intervals import MarginInterval, margin_interval
from .masks import (
    MaskAccuracy,
    MaskStudy,
    TaskStudy,
    mask_bound,
    study_mask,
)
from .memory import MemoryCapacity, memory_capacity
from .networks import ReservoirPath, optimize_reservoir
from .parts import MarginParts, margin_parts, with_equal_covariances
from .stretches import StretchScores, scores_by_stretch

__all__ = [
    "EtaChoice",
    "MarginCurve",
    "MarginInterval",
    "MarginParts",
    "MaskAccuracy",
    "MaskStudy",
    "MemoryCapacity",
    "ReservoirPath",
    "StretchScores",
    "TaskStudy",
    "TauChoice",
    "choose_eta",
    "choose_tau",
    "margin_interval",
    "margin_over_angle",
    "margin_over_time",
    "margin_parts",
    "mask_bound",
    "memory_capacity",
    "optimize_reservoir",
    "scores_by_stretch",
    "study_mask",
    "with_equal_covariances",
]
