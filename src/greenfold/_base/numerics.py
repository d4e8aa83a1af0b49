"""Functions of SciPy with plain types, where its stubs leave the result unknown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg, special

eig: Callable[..., tuple[np.ndarray, np.ndarray]] = linalg.eig
eigh: Callable[..., tuple[np.ndarray, np.ndarray]] = linalg.eigh
ndtr: Callable[..., np.ndarray] = special.ndtr
softmax: Callable[..., np.ndarray] = special.softmax
