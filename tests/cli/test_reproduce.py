"""`greenfold reproduce`: the arguments it passes on, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import invoke, one_sentence


def test_a_figure_without_its_data_is_skipped_with_a_code():
    result = invoke("reproduce", "table1", "--quick", "--out", "here", "--json", code=1)
    (outcome,) = json.loads(result.stdout)["outcomes"]
    assert outcome["name"] == "table1"
    assert "ECG5000" in outcome["skipped"]
    assert not list(Path("here").glob("table1*"))


def test_an_unknown_figure_is_one_sentence():
    result = invoke("reproduce", "fig9", "--out", "here", code=2)
    one_sentence(result.stderr)
    assert "fig9" in result.stderr
