"""Parameters of the estimator: what they do, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import make


def test_class_weight_moves_the_decision(three):
    X, y = three
    towards = make(class_weight={"a": 1e6}).fit(X, y)
    assert (towards.predict(X) == "a").mean() > (y == "a").mean() - 0.01
    with pytest.raises(ValueError, match="'class_weight' parameter .* keyed by labels"):
        make(class_weight={"z": 1.0}).fit(X, y)


def test_no_seed_fails_by_chance(beats):
    X, y, _, _ = beats
    for seed in range(20):
        assert make(n_neurons=5, g=0.95, eta=1.0, random_state=seed).fit(X, y).eta_ == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eta", -1),
        ("eta", "best"),
        ("eta", np.nan),
        ("eta", True),
        ("tau", 0),
        ("order", 0.5),
        ("order", -1),
        ("alpha", np.inf),
        ("n_neurons", 0),
        ("g", "large"),
        ("duration", None),
        ("reservoir", np.ones((2, 3))),
        ("reservoir", "mine"),
        ("input_projection", "zero"),
        ("input_projection", np.zeros(20)),
        ("input_projection", np.ones(7)),
        ("input_scaling", 0),
        ("threshold", 0.3),
        ("readout", 11.0),
        ("readout", [1.0, 2.0]),
        ("readout", "start"),
        ("readout_noise", -0.1),
        ("class_weight", "fair"),
        ("class_weight", {1: 0.0}),
        ("certify", "yes"),
        ("n_jobs", 0),
    ],
)
def test_wrong_parameters_are_named(beats, name, value):
    X, y, _, _ = beats
    message = f"The '{name}' parameter of ReservoirClassifier must be .* Got .* instead."
    with pytest.raises(ValueError, match=f"(?s){message}"):
        make(**{name: value}).fit(X, y)
