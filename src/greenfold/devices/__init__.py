"""Devices known by recordings: their response, fitted, as a system."""

from .response import FitReport, MeasuredResponse

__all__ = ["FitReport", "MeasuredResponse"]
