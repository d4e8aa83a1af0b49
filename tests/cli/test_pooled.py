"""The pooled classifier on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greenfold import PooledReservoirClassifier, load

from .conftest import SMALL, invoke

pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture
def unaligned():
    """A file of series that oscillate slowly or quickly and begin anywhere."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.sin(np.arange(40) * (0.4 + 0.3 * y[:, None]) + rng.uniform(0, 6, (60, 1)))
    rows = np.column_stack([y, X + 0.3 * rng.standard_normal(X.shape)])
    np.savetxt("series.csv", rows, delimiter=",", fmt="%.6g")
    return "series.csv"


@pytest.fixture
def small_bank(monkeypatch):
    """Fewer oscillators and readouts than by default, where they do not matter."""
    defaults = PooledReservoirClassifier.__init__.__kwdefaults__
    for name, value in (("n_scales", 3), ("n_oscillators", 4), ("n_readouts", 16)):
        monkeypatch.setitem(defaults, name, value)


def test_fit_and_predict_with_the_pooled_classifier(unaligned):
    shown = invoke(
        "fit", unaligned, "--classifier", "pooled", "--holdout", 0.4, "-m", "m.gfm"
    ).stdout
    assert "test accuracy" in shown
    assert "8 reservoirs of 32 oscillators" in shown
    model = load("m.gfm")
    assert isinstance(model, PooledReservoirClassifier)
    found = json.loads(invoke("predict", "m.gfm", unaligned, "--json", "--proba").stdout)
    assert found["accuracy"] > 0.9
    np.testing.assert_allclose(np.sum(found["probabilities"], axis=1), 1)


def test_missing_values_are_kept_for_the_pooled_classifier(unaligned, small_bank):
    text = Path(unaligned).read_text().splitlines()
    cells = text[3].split(",")
    cells[5] = "NaN"
    text[3] = ",".join(cells)
    Path(unaligned).write_text("\n".join(text))
    assert "missing" in invoke("fit", unaligned, *SMALL, code=1).stderr
    invoke("fit", unaligned, "--classifier", "pooled", "-m", "m.gfm")
    found = json.loads(invoke("predict", "m.gfm", unaligned, "--json").stdout)
    assert len(found["predictions"]) == 60


@pytest.mark.parametrize(
    "option", [("--eta", 3), ("--order", 1), ("--projection", "random")]
)
def test_options_of_the_other_classifier_are_refused(unaligned, option):
    found = invoke("fit", unaligned, "--classifier", "pooled", *option, code=2)
    assert f"{option[0]} is for the classifier with solved projections" in " ".join(
        found.stderr.split()
    )


def test_evaluate_shows_the_pooled_classifier_beside_the_networks(unaligned, small_bank):
    arguments = ("evaluate", unaligned, "--order", 0, "--pooled", "-n", 40, "--eta", 10)
    assert "Pooled classifier: accuracy" in invoke(*arguments).stdout
    assert json.loads(invoke(*arguments, "--json").stdout)["pooled"]["accuracy"] > 0.8


def test_predict_wants_a_classifier(unaligned):
    from greenfold import Reservoir

    Reservoir.oscillators([2.0], [1.0]).save("network.gfm")
    found = invoke("predict", "network.gfm", unaligned, code=1)
    assert "holds a Reservoir, not a classifier" in " ".join(found.stderr.split())
