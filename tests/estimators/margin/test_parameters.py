"""Parameters of the estimator: what they do, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Reservoir

from .conftest import make


def test_class_weight_moves_the_decision(three, rng):
    """Classes that overlap: the weights decide to whom the overlap goes."""
    X, y = three
    X = X + rng.standard_normal(X.shape)
    shares = [
        (make(class_weight=weight, eta=10.0).fit(X, y).predict(X) == "a").mean()
        for weight in ({"a": 1e-6}, None, {"a": 10.0}, {"a": 1e6})
    ]
    assert shares[0] == 0
    assert shares[0] < shares[1] < shares[2] < shares[3]
    assert shares[3] == 1
    with pytest.raises(ValueError, match="'class_weight' parameter .* keyed by labels"):
        make(class_weight={"z": 1.0}).fit(X, y)


def test_no_seed_fails_by_chance(beats):
    """A third of these networks is unstable as drawn first; they are drawn again."""
    X, y, _, _ = beats
    first = [Reservoir.random(5, 1.2, rng=seed, allow_unstable=True) for seed in range(8)]
    assert not all(network.is_stable for network in first)
    for seed in range(8):
        fitted = make(n_neurons=5, g=1.2, eta=1.0, random_state=seed).fit(X, y)
        assert fitted.reservoir_.is_stable


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
