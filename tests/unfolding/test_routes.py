"""The routes through the batch work agree, however the cases are cut."""

import pytest

from greenfold import Gain, unfold
from greenfold.unfolding import batches as routes

from ..conftest import small, unit


@pytest.mark.parametrize("n_channels", [1, 3])
@pytest.mark.parametrize("readout", [None, "weights"])
def test_kernels_of_all_neurons_equal_stepping(n_channels, readout, rng):
    """Two independent routes to the same states and gradients at order 1."""
    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=7, dt=1.3, order=1)
    if readout:
        unfolding = unfolding.with_readout(rng.standard_normal(7))
    X, u = rng.standard_normal((9, n_channels, 7)), unit(rng, 12, n_channels)
    cotangent = rng.standard_normal((9, 12))
    schedule = unfolding._schedule
    by_kernels = routes.states(schedule, X, u, kernels=True)
    by_steps = routes.states(schedule, X, u, kernels=False)
    assert schedule.n_panels > 1
    assert by_kernels == pytest.approx(by_steps, rel=1e-12, abs=1e-13)
    one, _ = routes.pullback(schedule, X, u, cotangent, kernels=True)
    other, _ = routes.pullback(schedule, X, u, cotangent, kernels=False)
    assert one == pytest.approx(other, rel=1e-11, abs=1e-12)


def test_batches_do_not_change_the_result(rng, monkeypatch):
    from greenfold._base.arrays import batches

    unfolding = unfold(small(Gain.quadratic(0.2)), n_steps=5, dt=0.4, order=1)
    X, u = rng.standard_normal((50, 5)), unit(rng, 12)
    cotangent = rng.standard_normal((50, 12))
    whole = unfolding.states(X, u), unfolding.pullback(X, u, cotangent)
    monkeypatch.setattr(routes, "batches", lambda n, *_: batches(n, 1, 7))
    assert unfolding.states(X, u) == pytest.approx(whole[0])
    assert unfolding.states(X, u, orders=True).sum(0) == pytest.approx(whole[0])
    assert unfolding.pullback(X, u, cotangent) == pytest.approx(whole[1])
