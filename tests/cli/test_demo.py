"""`greenfold demo`, on less data than it shows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from greenfold.apps import demo

from .conftest import invoke, without_figures


def test_demo_writes_its_page_and_prefers_solved_projections(monkeypatch):
    for name, value in (("N_TRAIN", 40), ("N_TEST", 40), ("N_STEPS", 20)):
        monkeypatch.setattr(demo, name, value)
    monkeypatch.setitem(demo.PARAMETERS, "n_neurons", 12)
    monkeypatch.setitem(demo.PARAMETERS, "alpha", 0.02)
    # κ can be compared at the same η only.
    monkeypatch.setattr("greenfold.estimators.margin.ETAS", np.array([10.0]))
    without_figures(monkeypatch)
    made = json.loads(invoke("demo", "--report", "page.html", "--json").stdout)
    assert [(row["projection"], row["order"]) for row in made["rows"]] == [
        ("random", 0),
        ("solved", 0),
        ("random", 1),
        ("solved", 1),
    ]
    random, solved = (row["soft_margin"] for row in made["rows"][:2])
    assert random < solved <= made["rows"][1]["soft_margin_bound"] * (1 + 1e-12)
    # Neither a lucky random u nor an unlucky one.
    drawn = made["random_draws"]["accuracy_under_noise"]
    assert made["rows"][0]["accuracy_under_noise"] == np.median(drawn)
    # Each row has the η of its best accuracy under the noise, and is judged under it.
    assert all(row["eta"] == row["eta_under_noise"] for row in made["rows"])
    assert "random u" in Path("page.html").read_text("utf-8")


def test_orders_are_shown_as_they_are(monkeypatch):
    errors = np.array([np.power(demo.ALPHAS, k + 1.0) for k in demo.ORDERS])
    monkeypatch.setattr(demo, "order_errors", lambda: errors)
    told = json.loads(invoke("demo", "--orders", "--json").stdout)
    np.testing.assert_allclose(told["relative_errors"], errors)
    np.testing.assert_allclose(told["slopes"], [1, 2, 3, 4])
    shown = invoke("demo", "--orders").stdout
    for slope in ("1.00", "2.00", "3.00", "4.00"):
        assert slope in shown
    assert not list(Path().iterdir())  # and no page
