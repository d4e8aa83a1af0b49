"""Reservoir computing, solved: optimal input and readout projections."""

import lazy_loader as lazy

__version__ = "0.1.0"

# The names are imported on first use (SPEC 1), because scikit-learn and the estimators take
# a second to import and many scripts do not need them.
__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
