"""The ONNX graph computes what the estimators do."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from greenfold.estimators.pooled import (
    PooledReservoirClassifier,
    PooledReservoirRegressor,
    to_onnx,
)

pytestmark = pytest.mark.needs("onnx", "onnxruntime")

SMALL: dict[str, Any] = {
    "n_scales": 2,
    "n_readouts": 16,
    "engine": "array",
    "random_state": 0,
}


def run(model, X, n_outputs):
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(model.SerializeToString())
    found = session.run(None, {"X": X})
    assert len(found) == n_outputs
    return dict(zip([one.name for one in session.get_outputs()], found, strict=True))


@pytest.mark.parametrize(
    ("n_classes", "n_channels", "n_steps", "scaling", "dtype"),
    [
        (2, 1, 20, "set", "float64"),
        (3, 2, 20, "series", "float32"),
        (2, 1, 300, "set", "float64"),
    ],
)
def test_classifier(n_classes, n_channels, n_steps, scaling, dtype, rng, tmp_path):
    X = rng.standard_normal((24, n_channels, n_steps)).cumsum(axis=2).astype(dtype)
    X = X[:, 0] if n_channels == 1 else X
    y = np.array(["a", "b", "c"])[np.arange(24) % n_classes]
    fitted = PooledReservoirClassifier(scaling=scaling, **SMALL).fit(X, y)
    model = to_onnx(fitted, tmp_path / "model.onnx", dtype=dtype)
    assert (tmp_path / "model.onnx").read_bytes() == model.SerializeToString()
    for cases in (slice(None), slice(0, 1)):
        found = run(model, X[cases], 3)
        scores = fitted.decision_function(X[cases])
        # Differences of rounding, and readings that they carry over a threshold.
        np.testing.assert_allclose(found["decision"], scores, atol=3e-3)
        np.testing.assert_allclose(
            found["probability"], fitted.predict_proba(X[cases]), atol=3e-3
        )
        sure = np.abs(np.atleast_2d(scores)).max() > 0.01
        if sure:
            np.testing.assert_array_equal(found["label"], fitted.predict(X[cases]))


@pytest.mark.parametrize("n_targets", [1, 2])
def test_regressor(n_targets, rng):
    X = rng.standard_normal((24, 20)).cumsum(axis=1)
    y = np.stack([X.max(axis=1), X.min(axis=1)], axis=1)
    y = y[:, 0] if n_targets == 1 else y
    fitted = PooledReservoirRegressor(**SMALL).fit(X, y)
    found = run(to_onnx(fitted), X, 1)["prediction"]
    np.testing.assert_allclose(found, fitted.predict(X), atol=3e-3 * np.abs(y).max())


def test_what_can_not_be_exported(rng):
    X = [rng.standard_normal(20 + i % 2) for i in range(10)]
    fitted = PooledReservoirClassifier(**SMALL).fit(X, np.arange(10) % 2)
    with pytest.raises(ValueError, match="unequal length"):
        to_onnx(fitted)
    equal = PooledReservoirClassifier(**SMALL).fit(
        rng.normal(size=(10, 20)), np.arange(10) % 2
    )
    with pytest.raises(ValueError, match="`dtype`"):
        to_onnx(equal, dtype="float16")
