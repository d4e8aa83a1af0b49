"""Devices: what hardware can do, and its response, fitted to recordings, as a system."""

from .device import Device
from .response import FitReport, MeasuredResponse

__all__ = ["Device", "FitReport", "MeasuredResponse"]
