"""Reservoir computing, solved: optimal input and readout projections."""

import lazy_loader as lazy

__version__ = "0.1.0"

# The names below load what they need when they are first used (SPEC 1): scikit-learn and
# the rest of the estimator take a second that a script without it need not spend.
__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
