"""Moments of labelled series beyond the linear order."""

import numpy as np
import pytest

from greenfold import SampleStimuli
from greenfold.math.margins import state_moments

from ..conftest import unit
from .nonlinear_cases import CHANNELS, setting


@pytest.mark.parametrize("n_cases", [40, 400])  # stepping, and kernels of all neurons
@pytest.mark.parametrize("class_weight", ["balanced", None, {-1: 1.0, 1: 5.0}])
@pytest.mark.parametrize("order", [1, 2])
@CHANNELS
def test_samples_have_the_moments_of_their_states(
    order, n_channels, class_weight, n_cases, rng
):
    unfolding, _ = setting(order, n_channels)
    labels = np.where(rng.random(n_cases) < 0.3, -1, 1)
    X = rng.standard_normal((n_cases, n_channels, 5)) + 0.5 * labels[:, None, None]
    stimuli = SampleStimuli(X, labels, class_weight=class_weight)
    u = unit(rng, 8, n_channels)
    weights = {
        "balanced": np.where(
            labels < 0, 0.5 / (labels < 0).sum(), 0.5 / (labels > 0).sum()
        ),
        "none": np.full(n_cases, 1 / n_cases),
        "dict": np.where(
            labels < 0, 1 / 6 / (labels < 0).sum(), 5 / 6 / (labels > 0).sum()
        ),
    }["dict" if isinstance(class_weight, dict) else str(class_weight).lower()]
    expected = state_moments(unfolding.states(stimuli.transform(X), u), labels, weights)
    found = stimuli.moments(unfolding, u)
    # Rounding: the two routes to the states agree to about 1e-13.
    assert found[0] == pytest.approx(expected[0], abs=1e-12)
    assert found[1] == pytest.approx(expected[1], abs=1e-12)


def test_products_beyond_the_memory_bound_are_not_kept(rng, monkeypatch):
    from greenfold.stimuli import state_moments

    unfolding, stimuli = setting()
    samples = SampleStimuli(*stimuli.sample(200, rng=0))
    u, v = unit(rng, 8, 1), unit(rng, 8)
    kept = samples.moment_map(unfolding)(u)
    monkeypatch.setattr(state_moments, "_PRODUCT_BYTES", 1)
    fresh = samples.moment_map(unfolding)(u)
    assert isinstance(kept, state_moments.StateMoments)
    assert isinstance(fresh, state_moments.StateMoments)
    assert kept._series.designs[0]._kept
    assert not fresh._series.designs[0]._kept
    assert fresh.Sigma == pytest.approx(kept.Sigma, abs=1e-12)
    assert fresh.pull(v, 3.0) == pytest.approx(kept.pull(v, 3.0), abs=1e-11)
