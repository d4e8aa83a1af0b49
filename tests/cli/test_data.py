"""`greenfold data`, and data sets by their name."""

from __future__ import annotations

import json

from .conftest import SMALL, invoke, one_sentence


def test_named_data_sets(archive):
    where = ["--data-dir", archive]
    listed = json.loads(invoke("data", "list", *where, "--json").stdout)
    assert [one["name"] for one in listed["datasets"]] == ["Tiny"]
    columns = {
        line.index(line.split(maxsplit=1)[1])
        for line in invoke("data", "list", *where).stdout.splitlines()
    }
    assert len(columns) == 1  # all values begin in one
    assert invoke("data", "path", "Tiny", *where).stdout.strip().endswith("Tiny")
    built_in = invoke("data", "path", "synthetic-heartbeats", *where, code=2)
    assert "is built in" in built_in.stderr
    table = invoke("evaluate", "Tiny", *where, *SMALL, "--order", 0).stdout
    assert "solved" in table
    assert "40 training and 20 test series" in table
    invoke("fit", "Tiny", "--model", "m.gfm", *where, *SMALL)
    for part, count in (("test", 20), ("train", 40), ("all", 60)):
        made = invoke("predict", "m.gfm", "Tiny", "--part", part, *where)
        assert len(made.stdout.splitlines()) == count
    wrong = invoke("fit", "Tinny", *where, code=1)
    one_sentence(wrong.stderr)
    assert "Tiny" in wrong.stderr
    one_sentence(invoke("fit", "Tiny", "--test", "x.ts", *where, code=2).stderr)
