"""The records: made in full with today's parameters, and checked by tests that can fail."""

import copy
import importlib
import json
from dataclasses import asdict
from typing import Any

import pytest

from greenfold._base.files import plain
from greenfold.apps import paper

from .conftest import RECORDS, assert_as_recorded


@pytest.mark.parametrize("name", paper.figures.FIGURES)
def test_recorded_in_full_with_todays_parameters(name):
    module = importlib.import_module(f"greenfold.apps.paper.{name}")
    record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    assert not record["quick"]
    today: Any = plain(asdict(module.FULL))
    # A parameter that is new since has the value that was fixed before.
    given = record["parameters"]
    assert given == {key: today[key] for key in given}


RECORDED = {
    "kappa": 0.25,
    "curve": [0.0, 1e-6, 2.0],
    "rows": [{"gap": 1e-5, "status": "certified"}, {"gap": None, "status": "bounded"}],
    "trustworthy": True,
    "seconds": 3.0,
}
APART = {"gap": {"abs": 1e-4}, "seconds": None}


def _changed(path, value):
    found = copy.deepcopy(RECORDED)
    *inner, last = path
    place = found
    for key in inner:
        place = place[key]
    place[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["kappa"], 0.25 + 1e-12),
        (["curve", 0], 1e-9),  # of the largest, 2.0
        (["rows", 0, "gap"], 9e-5),
        (["seconds"], 400.0),
    ],
)
def test_within_the_tolerance(path, value):
    assert_as_recorded(_changed(path, value), RECORDED, APART)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["kappa"], 0.25 + 1e-8),
        (["kappa"], None),
        (["kappa"], float("nan")),
        (["curve"], [0.0, 1e-6]),
        (["curve", 1], 5e-8 + 1e-6),
        (["rows"], []),
        (["rows", 0, "gap"], 2e-4),
        (["rows", 0, "status"], "bounded"),
        (["rows", 1, "gap"], 0.0),
        (["trustworthy"], False),
        (["new"], 1.0),
    ],
)
def test_beyond_the_tolerance(path, value):
    with pytest.raises(AssertionError):
        assert_as_recorded(_changed(path, value), RECORDED, APART)
