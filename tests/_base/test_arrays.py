"""Every function that takes arrays gives the same numbers for every array library."""

import importlib.util

import numpy as np
import pytest

from greenfold import Gain, simulate, unfold
from greenfold._base.arrays import to_host

from ..conftest import LIBRARIES, small, unit


@pytest.fixture(params=LIBRARIES)
def library(request):
    return importlib.import_module(request.param)


#: Stepped, and by kernels of all neurons.
@pytest.mark.parametrize(("n_cases", "n_channels"), [(3, 2), (60, 1), (60, 2)])
@pytest.mark.parametrize("readout", [None, 0.7, "weights"])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_unfolding(library, order, n_cases, readout, n_channels, rng):
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=4, dt=0.5, order=order)
    if readout == "weights":
        readout = np.array([1.0, 0.0, -1.0, 0.5])
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    X = rng.standard_normal((n_cases, n_channels, 4))
    u, v = unit(rng, 12, n_channels), unit(rng, 12)
    cotangent = rng.standard_normal((n_cases, 12))
    foreign = library.asarray(X)
    results = [
        (unfolding.states(X, u), unfolding.states(foreign, library.asarray(u))),
        (unfolding.states(X, u, orders=True), unfolding.states(foreign, u, orders=True)),
        (
            unfolding.states(X, u, trajectories=True),
            unfolding.states(foreign, u, trajectories=True),
        ),
        (
            unfolding.pullback(X, u, cotangent),
            unfolding.pullback(foreign, u, library.asarray(cotangent)),
        ),
        *zip(
            unfolding.pullback(X, u, cotangent[:, 0], v),
            unfolding.pullback(foreign, u, cotangent[:, 0], library.asarray(v)),
            strict=True,
        ),
    ]
    if order < 2:
        kernel = unfolding.kernels(library.asarray(u), library.asarray(v))
        results += [
            (kernel.decision_values(X), kernel.decision_values(foreign)),
            (kernel.predict(X), kernel.predict(foreign)),
        ]
    for ours, theirs in results:
        assert type(theirs) is type(foreign)
        assert to_host(theirs) == pytest.approx(ours, rel=1e-10, abs=1e-12)


def test_simulate(library, rng):
    X, u = rng.standard_normal((2, 3)), unit(rng, 12)
    ours = simulate(small(Gain.tanh()), X, u, 0.3)
    theirs = simulate(small(Gain.tanh()), library.asarray(X), library.asarray(u), 0.3)
    assert type(theirs) is type(library.asarray(X))
    assert np.array_equal(to_host(theirs), ours)


def test_single_precision_and_integers_are_computed_in_double(library):
    unfolding = unfold(small(), n_steps=3, dt=0.5)
    X = library.asarray([[1, 2, 3]], dtype=library.int32)
    states = unfolding.states(X, np.ones(12))
    assert states.dtype == library.float64
    assert to_host(states) == pytest.approx(
        unfolding.states([[1.0, 2.0, 3.0]], np.ones(12))
    )


def test_non_finite_values_are_named(library):
    unfolding = unfold(small(), n_steps=3, dt=0.5)
    X = library.asarray([[1.0, float("nan"), 3.0]])
    with pytest.raises(ValueError, match="nan in case 0, channel 0, step 1"):
        unfolding.states(X, np.ones(12))
