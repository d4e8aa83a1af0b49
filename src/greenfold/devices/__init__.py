"""Devices: constraints of hardware, and systems fitted to recordings of it."""

from .device import Device
from .response import FitReport, MeasuredResponse

__all__ = ["Device", "FitReport", "MeasuredResponse"]
