"""`order="exact"`: predictions by `simulate`, scikit-learn's contract, files, commands."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import pytest

from greenfold import Dynamics, Gain, Reservoir, load, simulate
from greenfold._base.model_files import ModelFileError
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier, to_numpy

from ...contracts import pass_every_check
from ...sealed import seal
from .conftest import make


def exact(n: int = 8, gain: Gain | None = None, **parameters: Any) -> Any:
    network = Reservoir.random(n, gain=gain or Gain.biased_tanh(0.5), rng=0)
    return make(reservoir=network, order="exact", **{"eta": 10.0, **parameters})


@pytest.fixture(scope="module")
def beats():
    X, y = synthetic_heartbeats(100, n_steps=40, rng=0)
    return X[:40], y[:40], X[40:], y[40:]


@pytest.fixture(scope="module")
def fitted(beats) -> Any:
    """One fit to look at from several sides."""
    return exact().fit(*beats[:2])


@pytest.mark.slow
def test_passes_every_check_of_scikit_learn():
    network = "Reservoir.random(30, gain=Gain.biased_tanh(0.5), rng=0)"
    pass_every_check(f"ReservoirClassifier(order='exact', reservoir={network}, eta=10.0)")


def test_predictions_are_those_of_the_simulated_network(beats, fitted):
    X_test = beats[2]
    assert isinstance(fitted.unfolding_, Dynamics)
    moved = (X_test[:10] - fitted.centre_) * fitted.scale_
    states = simulate(fitted.reservoir_, moved, fitted.u_, fitted.unfolding_.dt)
    # The fit integrates to 1e-5 of the largest state.
    assert fitted.transform(X_test[:10]) == pytest.approx(
        states, abs=1e-4 * np.abs(states).max()
    )
    assert fitted.decision_function(X_test[:10]) == pytest.approx(
        states @ fitted.v_ - fitted.threshold_, abs=1e-4 * np.abs(states).max()
    )
    assert fitted.validity_ is None
    assert fitted.kernel_ is None
    assert "order='exact'" in repr(fitted)


def test_ascended_from_the_linear_optimum(beats):
    X, y, X_test, y_test = beats
    strong: dict[str, Any] = {"input_scaling": 3.0}
    fitted = exact(n=5, **strong).fit(X, y)
    with pytest.warns(UserWarning, match="linearised"):
        linear = make(reservoir=fitted.reservoir_, eta=10.0, **strong).fit(X, y)
    kept = exact(n=5, input_projection=linear.u_, **strong).fit(X, y)
    assert fitted.soft_margin_ > kept.soft_margin_
    # Guessing scores 0.5 on 60 series, with a standard error of 0.065: three of them.
    assert exact(n=12).fit(X, y).score(X_test, y_test) > 0.69


def test_one_series_is_read_as_in_a_batch(beats, fitted):
    X_test = beats[2]
    one = [fitted.decision_function(x[None])[0] for x in X_test[:5]]
    assert one == pytest.approx(fitted.decision_function(X_test)[:5], rel=1e-10)


def test_more_classes_and_unequal_lengths(beats, tmp_path):
    X, y = beats[0][:24, ::4], beats[1][:24]
    third = np.where(np.arange(len(y)) % 3 == 0, 7, y)
    series = [x[i % 3 :] for i, x in enumerate(X)]
    fitted = exact(n=5, n_jobs=2).fit(series, third)
    assert fitted.decision_function(series).shape == (len(y), 3)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(series), fitted.predict_proba(series))


def test_what_can_not_be_done_is_said(beats, fitted, tmp_path):
    X, y, _, _ = beats
    with pytest.raises(ValueError, match="'exact' integrates its network"):
        to_numpy(fitted)
    with pytest.raises(AttributeError, match="partial_fit"):
        fitted.partial_fit(X, y)
    with pytest.raises(ValueError, match=r"'order' parameter.*\[0, inf\) or 'exact'"):
        ReservoirClassifier(order="true").fit(X, y)
    wild = make(n_neurons=8, order="exact", alpha=5.0, input_scaling=100.0)
    with pytest.raises(FloatingPointError, match=r"diverges in step \d+ of series \d+"):
        wild.fit(X, y)
    fitted.save(tmp_path / "model")
    whole = (tmp_path / "model").read_bytes()
    for n_sub in (None, 0, 10**6):
        (tmp_path / "model").write_bytes(with_sub_steps(whole, n_sub))
        with pytest.raises(ModelFileError, match="sub-steps"):
            load(tmp_path / "model")


def with_sub_steps(whole: bytes, n_sub: int | None) -> bytes:
    """The same file with other sub-steps, or without them, sealed again."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "metadata.json":
                metadata = json.loads(content)
                metadata["heads_"][0]["n_sub"] = n_sub
                content = json.dumps(metadata).encode()
            new.writestr(name, content)
    return seal(made.getvalue())


def test_command_and_report(beats, tmp_path):
    from ...cli.conftest import invoke

    X, y, X_test, _ = beats
    data, model, page = (tmp_path / name for name in ("beats.csv", "m.gfm", "page.html"))
    np.savetxt(data, np.column_stack([y, X]), delimiter=",")
    shape = ["--neurons", 8, "--eta", 10, "--alpha", 0.01]
    done = invoke(
        "fit", data, "--order", "exact", "--model", model, "--report", page, *shape
    )
    assert "non-linear (integrated), 8 neurons" in done.stdout
    assert "the network itself is integrated" in done.stdout
    assert "non-linear (integrated)" in page.read_text(encoding="utf-8")
    again = load(model)
    assert again.order == "exact"
    assert again.predict(X_test).shape == (len(X_test),)
    refused = invoke("fit", data, "--order", "true", code=2)
    assert "--order must be 0 to 5 or 'exact'" in " ".join(refused.stderr.split())
