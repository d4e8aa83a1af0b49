"""`reproduce`: its files, and what it says where it cannot go on."""

import json
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")

from greenfold import paper


def test_writes_every_format_and_all_numbers(tmp_path):
    (outcome,) = paper.reproduce("fig1", tmp_path, quick=True, n_jobs=1)
    assert outcome.skipped is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fig1.json",
        "fig1.pdf",
        "fig1.png",
        "fig1.svg",
    ]
    record = json.loads((tmp_path / "fig1.json").read_text(encoding="utf-8"))
    assert record["numbers"] == outcome.numbers
    assert record["parameters"]["n_neurons"] == 100
    assert {"greenfold", "numpy", "scipy", "python"} <= set(record["versions"])
    assert ElementTree.parse(tmp_path / "fig1.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "fig1.pdf").read_bytes().startswith(b"%PDF")
    assert outcome.numbers["margin"] > 0
    assert outcome.title in str(outcome)


def test_one_sentence_where_the_data_are_missing(tmp_path, monkeypatch):
    def absent(_):
        raise FileNotFoundError("The data set 'ECG5000' is not on this machine: put …")

    monkeypatch.setattr(paper.figures, "ecg5000_paper", absent)
    (outcome,) = paper.reproduce("table1", tmp_path, quick=True)
    assert "ECG5000" in str(outcome)
    assert outcome.skipped is not None
    assert not list(tmp_path.iterdir())


def test_refuses_what_it_does_not_know(tmp_path):
    with pytest.raises(ValueError, match="`names` must be among fig1, .* 'fig9'"):
        paper.reproduce("fig9", tmp_path)
    with pytest.raises(ValueError, match="`n_jobs` must be a positive integer; got 0"):
        paper.reproduce("fig1", tmp_path, n_jobs=0)
