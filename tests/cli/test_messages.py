"""Messages show values as a user types them."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Reservoir, ReservoirClassifier


def test_numbers_are_plain():
    X = np.eye(4)
    with pytest.raises(ValueError, match=r"y holds 1 only"):
        ReservoirClassifier().fit(X, np.ones(4, dtype=int))
    with pytest.raises(ValueError, match=r"Got -1\.0 instead"):
        ReservoirClassifier(eta=np.float64(-1)).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"got -2\.0\."):
        Reservoir(np.zeros((2, 2)), tau=np.float64(-2))
