"""Messages show values as a user types them."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Reservoir, ReservoirClassifier

from .conftest import invoke


def test_numbers_are_plain():
    X = np.eye(4)
    with pytest.raises(ValueError, match=r"y holds only one class: 1"):
        ReservoirClassifier().fit(X, np.ones(4, dtype=int))
    with pytest.raises(ValueError, match=r"Got -1\.0 instead"):
        ReservoirClassifier(eta=np.float64(-1)).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"got -2\.0\."):
        Reservoir(np.zeros((2, 2)), tau=np.float64(-2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["-n", "0"], "--neurons must be at least 1"),
        (["-n", "many"], "--neurons must be a whole number"),
        (["--g", "much"], "--g must be a number"),
        (["--holdout", "2"], "--holdout must be at most 0.9"),
        (["--seed", "-1"], "--seed must be a whole number from 0 to 4294967295, not '-1'"),
        (["--classifier", "x"], "--classifier must be one of 'margin', 'pooled', not 'x'"),
        (["--test", "x.csv"], "--test needs a file; a data set has its own labels"),
    ],
)
def test_a_wrong_value_names_its_option_first(given, said):
    found = invoke("fit", "synthetic-heartbeats", *given, code=2).stderr
    assert found.startswith(f"greenfold: {said}")
    assert found.endswith("; see `greenfold fit --help`.\n")
