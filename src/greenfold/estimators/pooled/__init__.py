"""Estimators for series that are not aligned, which pool reservoir states over time."""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
