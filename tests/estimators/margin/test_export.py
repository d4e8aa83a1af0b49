"""Exported kernels give the decisions of the classifier they came from."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np
import pytest

from greenfold.datasets import load_dataset, synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier, to_numpy, to_onnx


@cache
def problem(n_classes: int, n_channels: int, any_length: bool, order: int):
    """A fitted classifier, the series, and the series as an exported graph takes them."""
    rng = np.random.default_rng(0)
    X, _ = synthetic_heartbeats(60, n_steps=12, rng=0)
    cube = np.stack([X, *(rng.standard_normal((n_channels - 1, *X.shape)))], axis=1)
    y = np.array(["a", "b", "c"])[np.arange(60) % n_classes]
    cube += 0.5 * (np.arange(60) % n_classes)[:, None, None]
    series, table = cube, cube.copy()
    if any_length:
        starts = np.append(0, rng.integers(0, 5, 59))
        series = [one[:, start:] for one, start in zip(cube, starts, strict=True)]
        for row, start in zip(table, starts, strict=True):
            row[:, :start] = np.nan
    # How u was found does not matter here, and drawing it is quick.
    given: dict[str, Any] = {"order": 1, "alpha": 0.001} if order else {}
    fitted = ReservoirClassifier(
        input_projection="random", n_neurons=6, eta=10.0, random_state=0, **given
    ).fit(series, y)
    return fitted, series, table if n_channels > 1 else table[:, 0]


CASES = [
    pytest.param(n, c, ragged, order, id=f"{n} classes, {c} channels, {ragged}, {order}")
    for n in (2, 3)
    for c in (1, 2)
    for ragged in (False, True)
    for order in (0, 1)
]


@pytest.mark.parametrize(("n_classes", "n_channels", "any_length", "order"), CASES)
def test_numpy_export_by_its_formula(n_classes, n_channels, any_length, order, tmp_path):
    fitted, series, table = problem(n_classes, n_channels, any_length, order)
    to_numpy(fitted, tmp_path / "kernels.npz")
    with np.load(tmp_path / "kernels.npz", allow_pickle=False) as archive:
        k = dict(archive)
    x = table.reshape(60, n_channels, 12)
    z = []
    for i in range(len(k["linear"])):
        w = np.nan_to_num((x - k["centre"][i]) * k["scale"][i])
        z.append((k["linear"][i] * w).sum((1, 2)))
        if order:
            z[i] += np.einsum("nct,ctds,nds->n", w, k["quadratic"][i], w)
    decision = np.stack(z, axis=1) @ k["coupling"].T - k["threshold"]
    wanted = fitted.decision_function(series)
    np.testing.assert_allclose(decision.reshape(wanted.shape), wanted, atol=1e-8, rtol=1e-8)
    index = decision.argmax(1) if n_classes > 2 else (decision[:, 0] > 0).astype(int)
    assert (k["classes"][index] == fitted.predict(series)).all()
    odds = k["slope"] * decision
    if n_classes == 2:
        odds = np.concatenate([0 * odds, odds], axis=1)
    chances = (1 + odds.max(axis=1, keepdims=True) - odds) ** -k["sureness"]
    chances /= chances.sum(axis=1, keepdims=True)
    # An error of 1e-8 in decisions of slope up to a few hundred.
    np.testing.assert_allclose(chances, fitted.predict_proba(series), atol=1e-5)


@pytest.mark.needs("onnx", "onnxruntime")
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
@pytest.mark.parametrize(("n_classes", "n_channels", "any_length", "order"), CASES)
def test_onnx_export(n_classes, n_channels, any_length, order, dtype, tolerance, tmp_path):
    runtime: Any = importlib.import_module("onnxruntime")
    fitted, series, table = problem(n_classes, n_channels, any_length, order)
    path = tmp_path / "model.onnx"
    to_onnx(fitted, path, dtype=dtype)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    decision, label, chances = session.run(None, {"X": table.astype(dtype)})
    wanted = fitted.decision_function(series)
    assert decision.shape == wanted.shape
    assert np.abs(decision - wanted).max() <= tolerance * np.abs(wanted).max()
    if dtype == "float64":
        assert (label == fitted.predict(series)).all()
    else:
        assert (label == fitted.predict(series)).mean() > 0.95
    assert chances.shape == (60, n_classes)
    # An error δ of a decision moves a probability by slope · sureness · δ / 4 at most.
    assert fitted.calibration_ is not None
    steep = fitted.decision_.slope * fitted.calibration_
    allowed = steep * tolerance * np.abs(wanted).max() / 2 + tolerance
    assert np.abs(chances - fitted.predict_proba(series)).max() <= allowed


@pytest.mark.needs("onnx", "onnxruntime")
@pytest.mark.parametrize("labels", [[0, 1], [1.0, 2.0], [False, True], [3, 4, 9]])
def test_onnx_gives_the_labels_themselves(labels):
    runtime: Any = importlib.import_module("onnxruntime")
    X, _ = synthetic_heartbeats(30, n_steps=10, rng=0)
    y = np.array(labels)[np.arange(30) % len(labels)]
    fitted = ReservoirClassifier(n_neurons=5, eta=1.0, random_state=0).fit(X, y)
    session = runtime.InferenceSession(to_onnx(fitted).SerializeToString())
    label = session.run(["label"], {"X": X})[0]
    assert label.dtype.kind == y.dtype.kind
    assert (label == fitted.predict(X)).all()


def test_what_has_no_kernel_is_refused():
    X, y = synthetic_heartbeats(30, n_steps=8, rng=0)
    fitted = ReservoirClassifier(
        n_neurons=4, order=2, alpha=1e-4, input_projection="random", eta=1.0, random_state=0
    ).fit(X, y)
    with pytest.raises(ValueError, match="beyond the square"):
        to_numpy(fitted)


@pytest.mark.needs("onnx")
def test_numbers_of_half_precision_are_refused():
    X, y = synthetic_heartbeats(30, n_steps=8, rng=0)
    linear = ReservoirClassifier(n_neurons=4, eta=1.0).fit(X, y)
    with pytest.raises(ValueError, match="dtype"):
        to_onnx(linear, dtype="float16")


@pytest.mark.needs("onnx", "onnxruntime")
def test_heartbeats_through_onnx(data_dir):
    runtime: Any = importlib.import_module("onnxruntime")
    X, y = load_dataset("ECG5000", "train", data_dir=data_dir)
    X_test, _ = load_dataset("ECG5000", "test", data_dir=data_dir)
    fitted = ReservoirClassifier(random_state=0).fit(X, y)  # five classes
    session = runtime.InferenceSession(to_onnx(fitted).SerializeToString())
    decision, label, chances = session.run(None, {"X": np.asarray(X_test)})
    wanted = fitted.decision_function(X_test)
    assert np.abs(decision - wanted).max() <= 1e-9 * np.abs(wanted).max()
    assert (label == fitted.predict(X_test)).all()
    np.testing.assert_allclose(chances, fitted.predict_proba(X_test), atol=1e-9)
