"""Series on a GPU, simulated by PyTorch on the host, and the message without a GPU."""

import numpy as np
import pytest

from greenfold import ReservoirClassifier
from greenfold._base import arrays as _arrays
from greenfold._base.checks import device_name
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators import series as reading
from greenfold.estimators.margin import noisy_accuracy
from greenfold.stimuli import samples

pytestmark = pytest.mark.needs("torch")


@pytest.fixture
def played(monkeypatch):
    """PyTorch, whose arrays count as arrays of a GPU."""
    import torch

    for module in (reading, samples):
        monkeypatch.setattr(module, "on_gpu", torch.is_tensor)
    return torch


@pytest.mark.parametrize("order", [0, 1, "exact"])
def test_same_answers_as_on_the_host(order, played):
    X, y = synthetic_heartbeats(60, n_steps=12, rng=0)
    given = {"n_neurons": 8, "eta": 10.0, "random_state": 0, "order": order}
    given |= {"alpha": 0.02} if order else {}
    host = ReservoirClassifier(**given).fit(X[:40], y[:40])
    there = played.asarray(X)
    device = ReservoirClassifier(**given).fit(there[:40], y[:40])
    # The ascent of u ends at a relative change of κ of 1e-6; u is known to its root.
    tolerance = 1e-9 if order == 0 else 2e-3
    scale = np.abs(host.decision_function(X[40:])).max()
    for ask in ("decision_function", "predict_proba", "transform"):
        found = getattr(device, ask)(there[40:])
        assert isinstance(found, np.ndarray)
        unit = scale if ask == "decision_function" else 1.0
        wanted = getattr(host, ask)(X[40:])
        np.testing.assert_allclose(found, wanted, atol=tolerance * unit, rtol=tolerance)
    assert noisy_accuracy(device, there[40:], y[40:], 0.1) == pytest.approx(
        noisy_accuracy(host, X[40:], y[40:], 0.1), abs=2e-3
    )
    # A model made there works here.
    np.testing.assert_allclose(device.predict(X[40:]), device.predict(there[40:]))


def test_order_one_is_solved_there(played, monkeypatch):
    X, y = synthetic_heartbeats(40, n_steps=12, rng=0)
    seen = []
    given = {"alpha": 0.002, "n_neurons": 6, "eta": 10.0, "random_state": 0}
    original = samples.Design

    def design(series, *rest):
        seen.append(played.is_tensor(series))
        return original(series, *rest)

    monkeypatch.setattr(samples, "Design", design)
    ReservoirClassifier(order=1, **given).fit(played.asarray(X), y)
    assert any(seen)


def test_a_missing_device_is_named():
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(ValueError, match="'cuda' does not exist: PyTorch finds no CUDA"):
        _arrays.on_device(np.zeros(3), "cuda")


def test_an_unknown_device_is_refused():
    for name in ("tpu", "cuda:x", "mps"):
        with pytest.raises(ValueError, match="must be 'cpu', 'cuda' or 'cuda:1'"):
            device_name(name)


def test_the_host_leaves_all_as_it_is():
    X = np.zeros(3)
    assert _arrays.on_device(X, "cpu") is X
    ragged = [X, X[:2]]
    assert _arrays.on_device(ragged, "cuda") is ragged
