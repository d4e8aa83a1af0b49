"""Messages show values as a user types them."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Reservoir, ReservoirClassifier

from .conftest import invoke


def test_numbers_are_plain():
    X = np.eye(4)
    with pytest.raises(ValueError, match=r"y holds only one class: 1"):
        ReservoirClassifier().fit(X, np.ones(4, dtype=int))
    with pytest.raises(ValueError, match=r"Got -1\.0 instead"):
        ReservoirClassifier(eta=np.float64(-1)).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"got -2\.0\."):
        Reservoir(np.zeros((2, 2)), tau=np.float64(-2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["-n", "0"], "--neurons must be at least 1"),
        (["-n", "many"], "--neurons must be a whole number"),
        (["--g", "much"], "--g must be a number"),
        (["--holdout", "2"], "--holdout must be at most 0.9"),
        (["--seed", "-1"], "--seed must be a whole number from 0 to 4294967295, not '-1'"),
        (["--classifier", "x"], "--classifier must be one of 'margin', 'pooled', not 'x'"),
        (["--test", "x.csv"], "--test needs a file; a data set has its own labels"),
    ],
)
def test_a_wrong_value_names_its_option_first(given, said):
    found = invoke("fit", "synthetic-heartbeats", *given, code=2).stderr
    assert found.startswith(f"greenfold: {said}")
    assert found.endswith("; see `greenfold fit --help`.\n")


EDGES = "source,target,weight\nA,B,3\nB,C,1\nC,A,2\n"


@pytest.mark.parametrize(
    ("given", "edges", "said"),
    [
        (("memory", "--g", 3), EDGES, "must be below 1; lower --g."),
        (("fit", "synthetic-heartbeats", "--g", 3, "--eta", 10), EDGES, "--g makes the n"),
        (("memory", "--weights", "e.csv", "--g", 3), EDGES, "0.3 to reach 0.9.\n"),
        (
            ("memory", "--weights", "e.csv"),
            "source,target\nA,B\n",
            "--g of 0.9 cannot be reac",
        ),
        (("memory", "--weights", "e.csv"), "A,B,3\nB,A,1\n", "name its columns in a first"),
        (
            ("memory", "--weights", "e.csv"),
            "1,2,3\n2,1,1\n",
            "columns in a first line, suc",
        ),
    ],
)
def test_advice_about_weights_names_options(given, edges, said, tmp_path):
    (tmp_path / "e.csv").write_text(edges)
    told = invoke(*given, code=1).stderr
    assert said in told
    assert "=" not in told
    assert told.count("\n") == 1


def test_cells_that_inhibit_come_from_names_patterns_or_a_file(tmp_path):
    (tmp_path / "e.csv").write_text(EDGES)
    (tmp_path / "cells.txt").write_text("A\n")
    given = "memory", "--weights", "e.csv", "--delays", "1,2", "--draws", 1, "--inhibitory"
    found = {invoke(*given, one).stdout for one in ("A", "cells.txt", "[A]*")}
    assert len(found) == 1
    assert invoke(*given, "B", "--inhibitory", "A").stdout not in found
