"""Reservoir computing, solved: optimal input and readout projections."""

import lazy_loader as lazy

__version__ = "0.1.0"

# The names below are imported on first use (SPEC 1): scikit-learn and the estimators take a
# second that other scripts need not spend.
__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
