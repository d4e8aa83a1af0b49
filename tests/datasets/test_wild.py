"""Tables of the kinds that people bring: each is read right, or refused in one sentence."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenfold.datasets import DataError, open_series, read_series

from .conftest import one_sentence

STEPS = 6
X = np.round(np.random.default_rng(5).normal(size=(8, STEPS)), 3)
Y = [0.25 + 2 * one for one in X]
LABELS = ["warm, dry", "cold"] * 4
HEADER = ["label", *(f"t{i}" for i in range(STEPS))]


def table(rows: list[list[Any]], **style: Any) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n", **style).writerows(rows)
    return stream.getvalue()


def wide(**style: Any) -> str:
    return table([[label, *x] for label, x in zip(LABELS, X, strict=True)], **style)


def samples(*columns: str, order: Any = None) -> str:
    """One sample per line, of the channels x and y."""
    rows = [
        {
            "label": label,
            "id": f"s{k}",
            "time": 0.5 * t,
            "x": x[t],
            "y": y[t],
            "day": days(t),
        }
        for k, (label, x, y) in enumerate(zip(LABELS, X, Y, strict=True))
        for t in range(STEPS)
    ]
    rows = rows if order is None else [rows[i] for i in order.permutation(len(rows))]
    return table(
        [[*columns], *([row[one.split("=")[0]] for one in columns] for row in rows)]
    )


def days(t: int) -> str:
    return f"2024-02-{26 + t}" if t < 4 else f"2024-03-0{t - 3}"


def german(text: str) -> str:
    return text.replace(";", "\0").replace(".", ",").replace("\0", ";")


TWO = np.stack([X, np.array(Y)], axis=1)
SHUFFLED = np.random.default_rng(1)
#: Name: content, options, series.
READ: dict[str, tuple[str | bytes, dict[str, Any], np.ndarray]] = {
    "quoted labels with commas": (wide(), {}, X),
    "everything quoted": (wide(quoting=csv.QUOTE_ALL), {}, X),
    "everything quoted, with names": (
        table([HEADER], quoting=csv.QUOTE_ALL) + wide(quoting=csv.QUOTE_ALL),
        {},
        X,
    ),
    "single quotes": (wide(quotechar="'"), {}, X),
    "semicolons of a spreadsheet": (wide(delimiter=";"), {}, X),
    "a spreadsheet that says its separator": ("sep=;\n" + wide(delimiter=";"), {}, X),
    "vertical bars": (wide(delimiter="|"), {}, X),
    "tabs": (wide(delimiter="\t"), {}, X),
    "blanks and quotes": (wide(delimiter=" "), {}, X),
    "comments above": ("# heart rate\n# made by hand, 2021\n" + wide(), {}, X),
    "a byte order mark and Windows lines": (
        b"\xef\xbb\xbf" + wide().replace("\n", "\r\n").encode(),
        {},
        X,
    ),
    "UTF-16 of a spreadsheet": (wide(delimiter="\t").encode("utf-16"), {}, X),
    "UTF-16 without a mark": (wide().encode("utf-16-le"), {"encoding": "utf-16-le"}, X),
    "Latin-1": (
        wide().replace("cold", "k\u00fchl").encode("latin-1"),
        {"encoding": "latin-1"},
        X,
    ),
    "decimal commas": (german(wide(delimiter=";")), {"decimal": ","}, X),
    "quoted decimal commas": (
        "".join(
            f"{k},{','.join(chr(34) + str(v).replace('.', ',') + chr(34) for v in x)}\n"
            for k, x in zip("abababab", X, strict=True)
        ),
        {"decimal": ","},
        X,
    ),
    "labels at the end": (
        table([[*x, label] for label, x in zip(LABELS, X, strict=True)]),
        {},
        X,
    ),
    "an index of pandas": (
        table(
            [
                ["", *HEADER],
                *([k, a, *x] for k, (a, x) in enumerate(zip(LABELS, X, strict=True))),
            ]
        ),
        {},
        X,
    ),
    "an id behind the label": (
        table(
            [
                ["label", "id", *HEADER[1:]],
                *([a, 50 - k, *x] for k, (a, x) in enumerate(zip(LABELS, X, strict=True))),
            ]
        ),
        {},
        X,
    ),
    "row names of R": (
        table([HEADER])
        + table([[k, a, *x] for k, (a, x) in enumerate(zip(LABELS, X, strict=True))]),
        {"drop": [0]},
        X,
    ),
    "a column of dates to leave out": (
        table([["day", *HEADER]])
        + table([["2024-01-01", a, *x] for a, x in zip(LABELS, X, strict=True)]),
        {"drop": "day"},
        X,
    ),
    "a column of dates without a name": (
        table([["2024-01-01", a, *x] for a, x in zip(LABELS, X, strict=True)]),
        {"drop": 0},
        X,
    ),
    "two channels, numbered steps": (
        table(
            [
                ["class", *(f"{c}{i}" for i in range(STEPS) for c in ("x_", "y_"))],
                *([a, *both.T.ravel()] for a, both in zip(LABELS, TWO, strict=True)),
            ]
        ),
        {},
        TWO,
    ),
    "one sample per line": (samples("label", "id", "time", "x"), {}, X),
    "one sample per line, shuffled": (
        samples("label", "id", "time", "x", order=SHUFFLED),
        {},
        X,
    ),
    "one sample per line, two channels": (
        samples("id", "time", "x", "y", "label"),
        {},
        TWO,
    ),
    "one sample per line, other names": (
        samples("label", "id", "time", "x").replace("id,time", "patient,seconds", 1),
        {"series_column": "patient"},
        X,
    ),
    "one sample per line, no names": (
        samples("label", "id", "time", "x").split("\n", 1)[1],
        {"series_column": 1, "label_column": 0},
        X,
    ),
    "one sample per line, dates": (
        samples("id", "label", "day", "x", order=SHUFFLED).replace("day", "date", 1),
        {},
        X,
    ),
}


@pytest.mark.parametrize("name", READ)
def test_read_right(name, tmp_path):
    content, options, expected = READ[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found, y = read_series(path, **options)
    shuffled = "shuffled" in name or ("dates" in name and "sample" in name)
    if shuffled:  # the series come in the order of their first samples
        order = [int(np.flatnonzero(np.all(expected == one, axis=-1))[0]) for one in found]
        assert sorted(order) == list(range(len(X)))
        expected, labels = expected[order], [LABELS[i] for i in order]
    else:
        labels = LABELS
    np.testing.assert_array_equal(found, expected)
    kinds = {"Latin-1": {"cold": "k\u00fchl"}}.get(name, {})
    labels = [kinds.get(one, one) for one in labels]
    letters = {"quoted decimal commas": {"warm, dry": "a", "cold": "b"}}.get(name, {})
    assert y.tolist() == [german_label(name, letters.get(one, one)) for one in labels]


def german_label(name: str, label: str) -> str:
    return label.replace(".", ",") if name == "decimal commas" else label


LONG = samples("label", "id", "time", "x")
#: Name: content, what the sentence says.
REFUSED: dict[str, tuple[str | bytes, str]] = {
    "decimal commas": (german(wide(delimiter=";")), r"decimal=','"),
    "thousands": ('a,"1,234.5",2\nb,3,4\n', "instead of a number"),
    "Latin-1": (
        wide().replace("cold", "k\u00fchl").encode("latin-1"),
        "`encoding`|encoding=",
    ),
    "UTF-16 without a mark": (wide().encode("utf-16-le"), "encoding='utf-16'"),
    "one sample per line, unknown names": (
        LONG.replace("id,time", "patient,seconds", 1),
        "`series_column`.*`label_column`",
    ),
    "one sample per line, no names": (LONG.split("\n", 1)[1], "`series_column`"),
    "one recording": ("time,x,y\n0,1,2\n1,2,3\n2,4,5\n", "`series_column`.*drop='time'"),
    "a sample is missing": (LONG.replace("cold,s1,1.0,", "cold,s1,9.0,"), "lacks samples"),
    "two samples at one time": (LONG.replace("s1,1.0,", "s1,0.5,"), "two samples"),
    "two labels of one series": (LONG.replace("cold,s1,1.0", "mild,s1,1.0"), "cold, mild"),
    "samples that share an id, without times": (
        samples("label", "id", "x", "y"),
        "series_column='id'.*drop='id'",
    ),
    "dates in front": (
        table([["2024-01-01", *x, a] for a, x in zip(LABELS, X, strict=True)]),
        "drop=|`drop`",
    ),
    "names in front of the label": (
        table([[f"p{k}", a, *x] for k, (a, x) in enumerate(zip(LABELS, X, strict=True))]),
        "8 series with 8 different labels.*`label_column`.*`drop`",
    ),
    "numbered lines": (
        table([[k, *x, a] for k, (a, x) in enumerate(zip(LABELS, X, strict=True))]),
        "drop=0",
    ),
    "a column of ages": (
        table([["label", "age", *HEADER[1:]]])
        + table([[a, 40, *x] for a, x in zip(LABELS, X, strict=True)]),
        r"'age'.*drop=\['age'\]",
    ),
    "channels and steps numbered": (
        table(
            [
                ["class", *(f"t{i}_dim{c}" for i in range(STEPS) for c in (0, 1))],
                *([a, *both.T.ravel()] for a, both in zip(LABELS, TWO, strict=True)),
            ]
        ),
        "one sample per line",
    ),
    "a quote that does not end": (wide().replace('dry"', "dry", 1), "quoted field"),
    "a truncated file": (HEADER[0] + "," + ",".join(HEADER[1:]), "complete"),
    "a web page": (
        "<!DOCTYPE html>\n<html><body>Not found</body></html>\n",
        "without values|instead",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name, tmp_path):
    content, said = REFUSED[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=said) as caught:
        read_series(path)
    assert one_sentence(str(caught.value).replace(str(path), "it"))


def test_the_advice_of_a_sentence_helps(tmp_path):
    """What a refused table asks for is enough to read it."""
    advised: dict[str, dict[str, Any]] = {
        "one sample per line, unknown names": {"series_column": "patient"},
        "samples that share an id, without times": {"series_column": "id"},
        "numbered lines": {"drop": 0},
        "dates in front": {"drop": 0},
        "names in front of the label": {"drop": "first"},
        "a column of ages": {"drop": ["age"]},
        "a sample is missing": {"drop": ["time"], "series_column": "id"},
    }
    for name, how in advised.items():
        path = tmp_path / "table.csv"
        path.write_text(str(REFUSED[name][0]))
        found, y = read_series(path, **how)
        two = name == "samples that share an id, without times"
        np.testing.assert_array_equal(found, TWO if two else X)
        assert y.tolist() == LABELS


def test_advice_repeats_what_is_left_out_already(tmp_path):
    """Somebody who follows the advice literally does not lose the first column again."""
    path = tmp_path / "table.csv"
    header = ["label", "site", "age", *HEADER[1:]]
    rows = [[a, f"s{k}", 40, *x] for k, (a, x) in enumerate(zip(LABELS, X, strict=True))]
    path.write_text(table([header, *rows]))
    with pytest.raises(DataError, match=r"drop=\['site', 'age'\]"):
        read_series(path, drop="site")
    found, _ = read_series(path, drop=["site", "age"])
    np.testing.assert_array_equal(found, X)
    path.write_text(
        table([[a, "s", "x", *x] for (_, a), x in zip(enumerate(LABELS), X, strict=True)])
    )
    with pytest.raises(DataError, match=r"drop=\[1, 2\]"):
        read_series(path, drop=1)


def test_options_of_tables_are_refused_elsewhere(tmp_path):
    ways: list[dict[str, Any]] = [{"drop": 0}, {"decimal": ","}, {"encoding": "latin-1"}]
    for how in [*ways, {"series_column": 0}]:
        with pytest.raises(DataError, match="is for tables"):
            read_series(tmp_path / "a.ts", **how)
    with pytest.raises(ValueError, match="`decimal` must be"):
        read_series(tmp_path / "a.csv", decimal=";")
    (tmp_path / "a.csv").write_text(wide())
    with pytest.raises(DataError, match="no known encoding"):
        read_series(tmp_path / "a.csv", encoding="klingon")
    with pytest.raises(DataError, match="to leave out"):
        read_series(tmp_path / "a.csv", drop="age")
    with pytest.raises(DataError, match="among those of `drop`"):
        read_series(tmp_path / "a.csv", drop=0, label_column=0)


def parquet(path: Path, **columns: Any) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("label", ["y", "label", "Class", "target"])
def test_parquet_takes_the_same_names(label, tmp_path):
    steps = {f"t{i}": column for i, column in enumerate(X.T)}
    index = {"__index_level_0__": np.arange(len(X))}
    path = parquet(tmp_path / "a.parquet", **{label: LABELS}, **steps, **index)
    found, y = open_series(path)
    np.testing.assert_array_equal(found[:], X)
    assert y is not None
    assert y.tolist() == LABELS
    lists = parquet(tmp_path / "b.parquet", **{label: LABELS}, values=X.tolist())
    np.testing.assert_array_equal(open_series(lists)[0][:], X)


@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize(
    ("columns", "said", "cure"),
    [
        (
            {"day": [days(0)] * len(X), "y": LABELS},
            r"'day'.*drop=\['day'\]",
            {"drop": "day"},
        ),
        ({"kind": LABELS}, "'kind'.*y='kind'", {"y": "kind"}),
        (
            {"time": np.arange(len(X)), "y": LABELS},
            "if each line is one sample",
            {"drop": "time"},
        ),
        (
            {"y": LABELS, "class": LABELS},
            "2 columns as labels",
            {"y": "y", "drop": "class"},
        ),
    ],
)
def test_parquet_refused_in_one_sentence(columns, said, cure, tmp_path):
    steps = {f"t{i}": column for i, column in enumerate(X.T)}
    path = parquet(tmp_path / "a.parquet", **columns, **steps)
    with pytest.raises(DataError, match=said) as caught:
        open_series(path)
    assert one_sentence(str(caught.value).replace(str(path), "it"))
    found, y = open_series(path, **cure)
    np.testing.assert_array_equal(found[:], X)
    assert y is not None
    assert y.tolist() == LABELS
