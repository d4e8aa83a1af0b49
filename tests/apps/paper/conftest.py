"""Numbers of a figure: computed at a reduced size, or as they are recorded in full.

A figure in full takes minutes to an hour. `greenfold reproduce` makes it once, and its
numbers lie in ``docs/_reproduction``. What is claimed of the whole is asserted on that
record, in the default suite. The slow tests hold the record: each computes some items of a
figure again, at full size, with the functions that made it. `some_of` says which items;
with ``GREENFOLD_EVERY_ITEM=1`` in the environment it gives every one, to choose from with
``-k``.
"""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenfold._base.files import plain
from greenfold.datasets import ecg5000_paper

# What draws is imported where it is needed: the tests are skipped without matplotlib.

RECORDS = Path(__file__).parents[3] / "docs" / "_reproduction"
#: Relative error that rounding may leave in a number that is the result of a fixed number
#: of steps, or the value of a maximum. On the machine of the records the differences are
#: below 1e-11; another BLAS sums in another order, and the largest seen is 2e-9.
ROUNDING = 1e-8
#: Relative gap at which `optimize` ends the search for a bound, its default `tol`. A record
#: and a computation both end within it, not at the same place.
GAP = 1e-4
#: Tolerances of a linear solve, by the name of the number; see `assert_as_recorded`.
OF_A_BOUND = {"gap": {"abs": GAP}, "bound": {"rel": GAP}, "linear_bound": {"rel": GAP}}


@pytest.fixture(scope="session")
def heartbeats(data_dir):
    return ecg5000_paper(data_dir)


def compute(module, parameters, folder, heartbeats=None, data_dir=None) -> Any:
    """Numbers of a figure, which must also be drawable and describable."""
    from greenfold.apps.paper.figures import FigureRun, style

    run = FigureRun(module.__name__, parameters, folder, 1, heartbeats, data_dir)
    numbers: Any = plain(module.compute(run))
    with style():
        module.draw(numbers, parameters)
    assert all(isinstance(line, str) for line in module.summary(numbers, parameters))
    return numbers


@cache
def record(name):
    """Numbers of a figure in full, as they were made and are shown in the documentation."""
    text = (RECORDS / f"{name}.json").read_text(encoding="utf-8")
    return json.loads(text)["numbers"]


def some_of(items, *chosen):
    """Items of a figure to compute again: those chosen, or all where that is asked for."""
    assert set(chosen) <= set(items)
    wanted = items if os.environ.get("GREENFOLD_EVERY_ITEM") else chosen
    return [pytest.param(item, id=_name(item)) for item in wanted]


def _name(item):
    parts = item if isinstance(item, tuple) else (item,)
    return "-".join(str(part).replace(" ", "_") for part in parts)


def assert_as_recorded(found, recorded, apart=None):
    """Hold what was computed against the record, number by number.

    Parameters
    ----------
    found, recorded : dict, list or number
        Of the same keys and lengths; words must be equal.
    apart : dict, optional
        Tolerances by the name of a number, as {"rel": …} or {"abs": …}; None leaves it
        out, which is for times and counts of iterations. The default is `ROUNDING`. In
        a list a relative tolerance is one of its largest entry.
    """
    _hold(plain(found), recorded, apart or {}, "", "numbers")


def _hold(found, recorded, apart, name, where):
    if name in apart and apart[name] is None:
        return
    if isinstance(recorded, dict):
        assert found.keys() == recorded.keys(), where
        for key, value in recorded.items():
            _hold(found[key], value, apart, key, f"{where}[{key!r}]")
    elif isinstance(recorded, list) and any(isinstance(x, dict | list) for x in recorded):
        assert len(found) == len(recorded), where
        for i, value in enumerate(recorded):
            _hold(found[i], value, apart, name, f"{where}[{i}]")
    elif _are_numbers(recorded):
        allowed = apart.get(name, {"rel": ROUNDING})
        largest = np.abs(recorded).max(initial=0.0)
        slack = allowed.get("rel", 0.0) * largest + allowed.get("abs", 0.0)
        assert _are_numbers(found), where
        assert np.shape(found) == np.shape(recorded), where
        np.testing.assert_allclose(found, recorded, rtol=0, atol=slack, err_msg=where)
    else:
        assert found == recorded, where


def _are_numbers(value):
    several = value if isinstance(value, list) else [value]
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in several)
