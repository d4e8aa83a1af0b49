"""The report page as text: complete, self-contained, and safe against hostile names."""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from greenfold.apps.report import Split, compare
from greenfold.apps.report.comparison import parts_of

if TYPE_CHECKING:
    from greenfold.apps.report.figures import Picture

from .conftest import FOUR

#: A small network beyond order 0.
NONLINEAR = {"n_neurons": 6, "eta": 2.0, "alpha": 0.02}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "$\\frac{$ {{ 7 * 7 }} {% raw %}",
    "心電図 ♥\n\x00\u202e" + "x" * 300,
]
VOID = {"meta", "link", "img", "br", "hr", "input", "use", "path"}


def make_task(n_classes: int = 2, n_channels: int = 1, unequal: bool = False) -> Split:
    rng = np.random.default_rng(n_classes + 10 * n_channels)
    y = np.arange(30 * n_classes) % n_classes
    X = rng.standard_normal((len(y), n_channels, 12))
    X += np.sin(np.arange(12) * (1 + y[:, None, None]) / 3)
    series = [one[:, rng.integers(0, 4) :] for one in X] if unequal else X
    half = len(y) // 2
    return Split("a task", series[:half], y[:half], series[half:], y[half:], "A note.")


def render(*arguments: Any, **options: Any) -> str:
    """The page; what draws it is imported when the first one is asked for."""
    from greenfold.apps.report.page import write_report

    with tempfile.TemporaryDirectory() as folder:
        made = write_report(Path(folder, "page.html"), *arguments, **options)
        return made.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(task, rows) -> str:
    return render(task, rows, remark="A remark.", command="greenfold demo")


class Reader(HTMLParser):
    """Tags opened and closed, their attributes, and the text outside of style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def test_everything_is_there(page):
    read = Reader(page)
    for part in (
        "Beats",
        "A remark.",
        "soft margin κ",
        "proven optimal",
        "no bound known",
        "Class means and spread",
        "States along the readout",
        "Random u, linear",
        "Solved u, non-linear",
        "Soft margin over the optimisation",
        "Soft margin over the readout time",
        "Parts of the margin",
        "Linear kernel, solved u, linear",
        "Quadratic kernel, solved u, non-linear",
        "Mode loadings",
        "Confusion matrix",
        "Validity of the expansion",
        "trustworthy",
        "n_neurons",
        "numpy",
        "greenfold demo",
    ):
        assert part in read.text, part
    # 1 of the data, 4 clouds, 2 of κ, 4 + 2 kernels, 1 of modes, 2 confusion matrices
    assert read.tags["figure"] == 16


def test_the_parts_of_the_margin_are_those_of_the_fit(task, rows):
    """Linear rows have none; the others add up to κ of the first comparison."""
    for row in rows:
        parts = parts_of(task, row)
        if not row.order:
            assert parts is None
            continue
        assert parts is not None
        kappa = float(np.ravel(row.classifier.soft_margin_)[0])
        # Both sum moments of 40 series, in another order.
        assert parts.soft_margin == pytest.approx(kappa, rel=1e-9)
        assert parts.mean_of_covariances != 0


def test_no_address_is_ever_visited(page):
    assert "default-src 'none'" in page
    read = Reader(page)
    assert read.tags["script"] == 0
    for tag, name, value in read.attributes:
        if name in ("src", "href", "xlink:href", "data", "action", "poster", "srcset"):
            assert value.startswith(("#", "data:")), (tag, name, value)
        assert "://" not in value, (tag, name, value)
    assert "@import" not in page
    assert all(found.startswith("#") for found in re.findall(r"url\(([^)]*)\)", page))


def test_ids_are_unique_and_references_resolve(page):
    read = Reader(page)
    ids = Counter(value for _, name, value in read.attributes if name == "id")
    assert [one for one, count in ids.items() if count > 1] == []
    used = {v[1:] for _, name, v in read.attributes if name == "href" and v[0] == "#"}
    used |= set(re.findall(r"url\(#([^)]*)\)", page))
    assert used <= set(ids)


def test_figures_take_their_colours_from_the_page(page):
    figures = re.findall(r"<figure.*?</figure>", page, flags=re.DOTALL)
    drawn = [one for one in figures if "<path" in one]
    assert len(drawn) == 14
    for figure in drawn:
        assert "var(--ink)" in figure
        # What is left in colour of its own are images and the colour bar's frame.
        assert not re.findall(r"#0a0[bc]", figure)


def test_hostile_names_are_shown_not_obeyed(task):
    y = np.array([HOSTILE[i % 4] for i in range(40)], dtype=object).astype(str)
    X = np.stack([task.X, task.X[:, ::-1]], axis=1)
    evil = Split(HOSTILE[0], X, y, note=HOSTILE[1])
    rows = compare(evil, FOUR[2:3], parameters=NONLINEAR)
    page = render(evil, rows, remark=HOSTILE[2], command=HOSTILE[1])
    read = Reader(page)
    assert read.tags["script"] == 0
    assert read.tags["img"] == 0
    assert not [one for one in read.attributes if one[1].startswith("on")]
    for name in HOSTILE[:3]:
        assert name in read.text
    assert "7 * 7" in page
    assert "accuracy under readout noise (training)" in read.text
    assert "心電図 ♥" in page
    assert "nan" not in read.text


def test_channels_and_unequal_lengths():
    task = make_task(2, 3, unequal=True)
    rows = compare(task, FOUR[3:], parameters=NONLINEAR)
    read = Reader(render(task, rows))
    assert read.tags["figure"] >= 5
    assert "nan" not in read.text


def _drawn(monkeypatch) -> list[Picture]:
    """The pictures that are drawn, as they are when they are done."""
    from greenfold.apps.report.figures import drawing

    made: list[Picture] = []

    @contextmanager
    def keep(*arguments, **options):
        with drawing(*arguments, **options) as one:
            yield one
        made.append(one)

    monkeypatch.setattr("greenfold.apps.report.figures.drawing", keep)
    return made


def test_what_is_compared_is_drawn_to_one_scale(task, rows, monkeypatch):
    from greenfold.apps.report import figures

    for draw in (
        lambda: figures.state_clouds(task, rows),
        lambda: figures.linear_kernels(rows),
    ):
        with pytest.MonkeyPatch.context() as patch:
            made = _drawn(patch)
            draw()
        assert len(made) == 4
        for limits in ("get_xlim", "get_ylim"):
            found = {getattr(one.axes, limits)() for one in made}
            assert len(found) == 1, (limits, found)
    made = _drawn(monkeypatch)
    figures.quadratic_kernels(rows)
    assert len({one.axes.images[0].get_clim() for one in made}) == 1
    assert len(made) == 2


def test_time_is_in_the_unit_of_the_duration(task, rows):
    """A series lasts 10 there, not 10/τ = 40; the first step's middle is at half a step."""
    from greenfold.apps.report import figures

    duration, half = rows[0].classifier.duration, rows[0].classifier.duration / 48
    for made in (*figures.class_means(task, rows[0]), *figures.linear_kernels(rows)):
        assert made.axes.get_xlim() == pytest.approx((half, duration - half))
    assert figures.margin_over_time(task, rows).axes.get_xlim()[1] == pytest.approx(
        duration
    )


def test_rare_classes_are_seen_and_many_take_little_room(monkeypatch):
    from greenfold.apps.report import figures

    task = make_task(5)
    rare = np.flatnonzero(task.judged[1] == 4)[1:]
    kept = np.setdiff1d(np.arange(len(task.judged[1])), rare)
    few = replace(task, X_test=task.X_test[kept], y_test=task.judged[1][kept])
    rows = compare(few, FOUR[:2], parameters={"n_neurons": 10, "eta": 2.0})
    made = _drawn(monkeypatch)
    pictures = figures.state_clouds(few, rows, rows)
    assert len(pictures) == 2
    for one in made:
        assert len(one.all_axes) == 5
        for axes in one.all_axes:
            stairs: Any = axes.patches[0]
            own = stairs.get_data().values
            # All series of a class together are 100 %, however few they are.
            assert own.sum() == pytest.approx(100)
            assert own.max() > 0.1 * axes.get_ylim()[1]
            assert any(np.all(np.equal(line.get_xdata(), 0)) for line in axes.lines)


def test_ticks_do_not_touch(task):
    """With readout values of any size: numbers on an axis keep apart."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from greenfold.apps.report import figures

    quiet = compare(task, FOUR[:2], parameters={"n_neurons": 20, "eta": 1e4})
    for draw in (
        lambda: figures.state_clouds(task, quiet),
        lambda: figures.linear_kernels(quiet),
    ):
        with pytest.MonkeyPatch.context() as patch:
            made = _drawn(patch)
            draw()
        for one in made:
            renderer = FigureCanvasAgg(one.figure).get_renderer()
            boxes = [
                label.get_window_extent(renderer)
                for label in one.axes.get_xticklabels()
                if label.get_text()
            ]
            boxes.sort(key=lambda box: box.x0)
            for left, right in pairwise(boxes):
                assert left.x1 < right.x0


def test_one_row_without_test_series(task):
    # Beyond order 1 there are no kernels to show; order 0 is above, with hostile names.
    alone = Split("train only", task.X[:, ::3], task.y)
    settings = {**NONLINEAR, "n_neurons": 5}
    rows = compare(alone, [("random", 2)], noise=0.0, parameters=settings)
    text = Reader(render(alone, rows)).text
    assert "accuracy (training)" in text
    assert "under noise" not in text


def test_written_whole_or_not_at_all(tmp_path, task, rows, monkeypatch):
    from greenfold.apps.report.page import write_report

    target = tmp_path / "page.html"
    page = "greenfold.apps.report.page.fill_template"
    monkeypatch.setattr(page, lambda *_, **__: "κ \udc80")
    assert write_report(target, task, rows) == target
    before = target.read_bytes()
    assert before == "κ ?".encode()
    monkeypatch.undo()
    monkeypatch.setattr("greenfold.apps.report.figures.class_means", lambda *_: [])
    monkeypatch.setattr("greenfold.apps.report.figures.state_clouds", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(target, task, rows)
    assert target.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_a_missing_template_engine_is_named(task, rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    # It is asked for last, and drawing takes a second.
    for name in ("class_means", "linear_kernels", "quadratic_kernels"):
        monkeypatch.setattr(f"greenfold.apps.report.figures.{name}", lambda *_: [])
    for name in ("margin_over_optimisation", "margin_over_time", "mode_loadings"):
        monkeypatch.setattr(f"greenfold.apps.report.figures.{name}", lambda *_: None)
    monkeypatch.setattr("greenfold.apps.report.figures.state_clouds", lambda *_: [])
    with pytest.raises(ImportError, match=r"greenfold\[report\]"):
        render(task, rows)


def test_missing_figures_are_named(task, rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "greenfold.apps.report.figures", raising=False)
    monkeypatch.delattr("greenfold.apps.report.figures", raising=False)
    with pytest.raises(ImportError, match=r"greenfold\[report\]"):
        render(task, rows)


def test_a_readout_that_comes_too_late_is_pointed_out():
    from greenfold.apps.report import figures

    # The classes differ early, and the end is noise; then the other way round.
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = 0.1 * rng.standard_normal((80, 24))
    X[:, :8] += (2 * y - 1)[:, None]
    X[:, 16:] += 3 * rng.standard_normal((80, 8))
    said = []
    for series in (X, X[:, ::-1]):
        task = Split("ends differ", series, y)
        settings = {"n_neurons": 15, "eta": 10.0}
        rows = compare(task, [("solved", 0)], parameters=settings, noise=0.0)
        said.append(figures.margin_over_time(task, rows).caption)
    assert "linear network is better read earlier" in said[0]
    assert "read earlier" not in said[1]


def test_a_planted_pattern_stands_out_on_the_page_of_a_pooled_classifier(tmp_path):
    """And its kernel is drawn over the class means of the other classifier."""
    from greenfold import PooledReservoirClassifier
    from greenfold.apps.report import write_pooled_page

    rng = np.random.default_rng(0)
    X, y = 0.3 * rng.standard_normal((60, 40)), np.arange(60) % 2
    X[:, 16:24] += 2 * y[:, None] * np.sin(np.arange(8) * np.pi / 8)
    small: Any = {"n_scales": 2, "n_oscillators": 4, "n_readouts": 16, "engine": "array"}
    fitted = PooledReservoirClassifier(**small, random_state=0).fit(X[:40], y[:40])
    uneven = [one[None, i:] for i, one in enumerate(X[40:])]
    equal = Split(HOSTILE[0], X[:40], y[:40], X[40:], y[40:])
    for task in equal, Split("unequal", [*X[:40]], y[:40], uneven, y[40:]):
        path = write_pooled_page(tmp_path / "p.html", task, fitted, facts=[("a", "b")])
        text = path.read_text("utf-8")
        assert "<script>" not in text
        assert ("What moves the score" in text) == (task.name != "unequal")
        assert "of the largest class" in text
    rows = compare(equal, [("solved", 0)], parameters={"n_neurons": 6, "eta": 2.0})
    assert "kernel of 1, right axis" in render(equal, rows)
