"""`greenfold evaluate`: four networks, a page, clean pipes and a progress bar."""

from __future__ import annotations

import json
import os
import pty
from pathlib import Path

import numpy as np
import pytest

from greenfold import Device, Reservoir, SampleStimuli, optimize, unfold
from greenfold.cli.inputs import _hold_out
from greenfold.datasets import read_connectome

from .conftest import SMALL, invoke, spawn, without_figures


def test_evaluate_compares_four(beats):
    found = json.loads(invoke("evaluate", beats, *SMALL, "--alpha", 0.02, "--json").stdout)
    rows = found["rows"]
    assert [(row["projection"], row["order"]) for row in rows] == [
        ("random", 0),
        ("solved", 0),
        ("random", 1),
        ("solved", 1),
    ]
    assert rows[0]["soft_margin_bound"] is not None
    assert rows[3]["soft_margin_bound"] is None
    assert rows[1]["proven_optimal"]
    assert rows[0]["soft_margin"] < rows[1]["soft_margin"]
    assert rows[0]["soft_margin_bound"] == rows[1]["soft_margin_bound"]
    assert rows[0]["accuracy_under_noise"] < rows[1]["accuracy_under_noise"]
    assert len(found["random_draws"]["accuracy"]) == 11


def test_eta_is_cross_validated_unless_it_is_given(beats):
    """For each of the rows: η need not be the same, and is one that was tried."""
    small = ("evaluate", beats, "--neurons", 5, "--order", 0, "--json")
    found, given = (json.loads(invoke(*small, *eta).stdout) for eta in ((), ("--eta", 7)))
    assert [row["eta"] for row in given["rows"]] == [7, 7]
    assert 7 not in [row["eta"] for row in found["rows"]]
    draws = found["random_draws"]
    assert len(draws["accuracy"]) == 11
    # The random row of the table is one of the draws, with and without noise.
    rows = [(row["accuracy"], row["accuracy_under_noise"]) for row in found["rows"]]
    pairs = zip(draws["accuracy"], draws["accuracy_under_noise"], strict=True)
    assert rows[0] in list(pairs)
    assert rows[0][1] == np.median(draws["accuracy_under_noise"])


def test_one_eta_for_all_rows_is_said(beats):
    """Without noise, η = 10 is too small for random u, so no such accuracy is shown."""
    shown = invoke("evaluate", beats, *SMALL, "--order", 0).stdout
    assert "--eta cv gives" in shown
    assert "accuracy  " not in shown
    assert "linear: under noise" in " ".join(shown.split())
    cv = ("evaluate", beats, "--neurons", 5, "--order", 0, "--eta", "cv")
    assert "accuracy  " in invoke(*cv).stdout


def test_cells_of_a_connectome_are_named(beats):
    """The cells with the largest |u| and |v| of the solved network, in text and JSON."""
    edges = "pre,post,count\nAVAL,RIB,5\nRIB,PVC,3\nPVC,AVAL,2\nRIB,AVAL,1\n"
    Path("edges.csv").write_text(edges)
    given = "evaluate", beats, "--weights", "edges.csv", "--order", 0
    assert "Read 3 cells from edges.csv, 0 of them inhibitory." in invoke(*given).stdout
    found = json.loads(invoke(*given, "--json").stdout)["cells"][""]
    for part in ("driven", "read"):
        names, weights = zip(*found[part], strict=True)
        assert set(names) == {"AVAL", "RIB", "PVC"}
        assert sorted(np.abs(weights), reverse=True) == np.abs(weights).tolist()
        assert np.linalg.norm(weights) == pytest.approx(1)
    told = " ".join(invoke(*given).stdout.split())
    name, weight = found["driven"][0]
    assert f"Cells driven most (input u: solved): {name} ({weight:+.2g})" in told
    assert "Cells read most (input u: solved): " in told


def test_a_large_connectome_is_compared_in_its_linear_network(beats):
    """A solve to first order would take minutes; who names the order gets it."""
    rng, names = np.random.default_rng(0), [f"c{i}" for i in range(301)]
    ring = [f"{a},{b},1" for a, b in zip(names, names[1:] + names[:1], strict=True)]
    more = [f"c{a},c{b},2" for a, b in rng.integers(0, 301, (200, 2))]
    Path("edges.csv").write_text("\n".join(["pre,post,count", *ring, *more]))
    found = invoke("evaluate", beats, "--weights", "edges.csv", "--json")
    assert [row["order"] for row in json.loads(found.stdout)["rows"]] == [0, 0]
    told = " ".join(invoke("evaluate", beats, "--weights", "edges.csv").stdout.split())
    assert "The non-linear network is left out" in told
    assert "3 random u " in told


def test_few_cells_are_driven_as_well_as_possible(beats):
    """The best two of three cells, by solving for each pair and for each cell alone."""
    Path("edges.csv").write_text("pre,post,count\nA,B,5\nB,C,3\nC,A,2\nB,A,1\n")
    given = "evaluate", beats, "--weights", "edges.csv", "--order", 0, "--at-most"
    found = json.loads(invoke(*given, 2, "--json").stdout)
    row = found["rows"][-1]
    assert (row["projection"], len(found["rows"])) == ("at most 2", 3)
    driven = [name for name, weight in found["cells"][""]["driven"] if weight]
    assert len(driven) == 2
    with np.load(beats) as data:
        X, y = data["X"], data["y"]
    train, _ = _hold_out(y, 0.25, seed=0)
    W = read_connectome("edges.csv")
    network = unfold(Reservoir.from_graph(W), n_steps=24, dt=10 / 24)
    stimuli = SampleStimuli(X[train], y[train])
    pairs = [[0, 1], [0, 2], [1, 2]]
    best = [
        optimize(network, stimuli, device=Device(inputs=pair)).soft_margin for pair in pairs
    ]
    assert row["soft_margin"] == pytest.approx(max(best), rel=1e-6)
    assert sorted(driven) == ["ABC"[i] for i in pairs[int(np.argmax(best))]]
    told = " ".join(invoke(*given, 1).stdout.split())
    assert "Cells driven most (input u: at most 1)" in told
    several = invoke("evaluate", beats, "--at-most", 0, code=2).stderr
    assert "--at-most must be at least 1" in several


def test_a_report_is_written_where_it_was_asked_for(beats, monkeypatch):
    without_figures(monkeypatch)
    made = invoke("evaluate", beats, *SMALL, "--order", 0, "--report", "page.html")
    assert str(Path("page.html").absolute()) in made.stdout
    assert "random u" in Path("page.html").read_text("utf-8")


def test_streams_that_are_no_terminals_stay_clean(beats):
    made = invoke("evaluate", beats, *SMALL, "--order", 0, "--json")
    assert made.stderr == ""
    assert json.loads(made.stdout)["rows"]
    assert "\x1b" not in made.stdout


@pytest.mark.contract
def test_pipes_stay_clean(beats):
    with spawn("evaluate", beats, *SMALL, "--order", 0, "--json") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == ""
    assert json.loads(out)["rows"]
    assert "\x1b" not in out


def test_progress_on_a_terminal(beats):
    ours, theirs = pty.openpty()
    with spawn("fit", beats, *SMALL, "--json", stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the other side is gone
            pass
        assert process.stdout
        out = process.stdout.read()
    os.close(ours)
    assert b"ETA" in shown
    assert b"solving for the projections" in shown
    assert json.loads(out)["soft_margin"]
