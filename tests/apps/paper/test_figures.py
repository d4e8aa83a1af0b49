"""`reproduce`: its files, and its messages when it cannot continue."""

import importlib
import io
import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import greenfold
from greenfold.apps import paper
from greenfold.apps import style as colours
from greenfold.apps.paper import fig1
from greenfold.apps.paper import figures as look
from greenfold.apps.paper.figures import recorded_parameters, told
from greenfold.datasets import DataError


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """Fig. 1 with its folder, which no test changes; drawn as one curve, see below."""
    folder = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig1, "draw", _one_curve)
        (outcome,) = paper.reproduce("fig1", folder, quick=True, n_jobs=1)
    return folder, outcome


def _one_curve(numbers, p):
    """Replaces the drawing of a figure, which takes a second per format."""
    from matplotlib.figure import Figure

    figure = Figure()
    figure.add_subplot().plot([0, numbers["soft_margin"]], [p.eta, 1])
    return figure


def test_writes_every_format_and_all_numbers(reproduced):
    folder, outcome = reproduced
    assert outcome.skipped is None
    assert sorted(path.name for path in folder.iterdir()) == [
        "fig1.json",
        "fig1.pdf",
        "fig1.png",
        "fig1.svg",
    ]
    record = json.loads((folder / "fig1.json").read_text(encoding="utf-8"))
    assert record["numbers"] == outcome.numbers
    assert record["parameters"]["n_neurons"] == fig1.QUICK.n_neurons
    assert {"greenfold", "numpy", "scipy", "python"} <= set(record["versions"])
    assert ElementTree.parse(folder / "fig1.svg").getroot().tag.endswith("svg")
    assert (folder / "fig1.pdf").read_bytes().startswith(b"%PDF")
    # The classes differ mainly in their fluctuations: nothing that a linear network sees.
    assert outcome.numbers["accuracy_judged"] > 0.8
    assert outcome.numbers["soft_margin"] > 1.5 * outcome.numbers["soft_margin_linear"]
    assert outcome.title in str(outcome)


def test_redraws_from_the_record_and_changes_no_number(reproduced, tmp_path, monkeypatch):
    shutil.copytree(reproduced[0], tmp_path, dirs_exist_ok=True)
    path = tmp_path / "fig1.json"
    before = json.loads(path.read_text(encoding="utf-8"))
    picture = (tmp_path / "fig1.svg").read_bytes()
    stale = before | {"title": "old", "summary": [], "caption": ""}
    path.write_text(json.dumps(stale), encoding="utf-8")
    (tmp_path / "fig1.svg").unlink()
    monkeypatch.setattr(fig1, "compute", None)
    monkeypatch.setattr(fig1, "draw", _one_curve)
    (outcome,) = paper.reproduce("fig1", tmp_path, redraw=True)
    assert json.loads(path.read_text(encoding="utf-8")) == before
    assert (tmp_path / "fig1.svg").read_bytes() == picture
    assert outcome.numbers == before["numbers"]
    assert "no record" in str(paper.reproduce("fig2", tmp_path, redraw=True)[0])
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read"):
        paper.reproduce("fig1", tmp_path, redraw=True)


@pytest.mark.parametrize("name", paper.figures.FIGURES)
def test_every_figure_has_a_caption_and_draws_what_is_recorded(name):
    module = importlib.import_module(f"greenfold.apps.paper.{name}")
    title, caption = told(module)
    assert len(caption.split()) > 20
    path = Path(__file__).parents[3] / "docs" / "_reproduction" / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    parameters = recorded_parameters(module.FULL, record["parameters"])
    with look.style():
        figure = module.draw(record["numbers"], parameters)
    # What the page shows is what today's code would say of these numbers.
    assert record["summary"] == module.summary(record["numbers"], parameters)
    assert (record["title"], record["caption"]) == (title, caption)
    assert figure.axes


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "fig1" else pytest.mark.contract)
        for name in paper.figures.FIGURES
    ],
)
def test_every_figure_can_be_written(name):
    """Text is laid out and axes are arranged only then."""
    module = importlib.import_module(f"greenfold.apps.paper.{name}")
    path = Path(__file__).parents[3] / "docs" / "_reproduction" / f"{name}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    stream = io.BytesIO()
    with look.style():
        figure = module.draw(
            record["numbers"], recorded_parameters(module.FULL, record["parameters"])
        )
        figure.savefig(stream, format="svg")
    assert ElementTree.fromstring(stream.getvalue()).tag.endswith("svg")


def test_every_colour_is_of_one_palette():
    """Figures, reports and the explorer have no colours of their own."""
    source = Path(greenfold.__file__).parent / "apps"
    figures = [path for path in (source / "paper").glob("*.py") if path.stem != "figures"]
    assert {path.stem for path in figures} >= set(paper.figures.FIGURES)
    pages = [*source.rglob("*.css"), *source.rglob("*.html"), *source.rglob("*.js")]
    assert {path.suffix for path in pages} == {".css", ".html", ".js"}
    for path in [*figures, *pages]:
        found = re.findall(r"#[0-9A-Fa-f]{6}", path.read_text(encoding="utf-8"))
        assert not found, f"{path.name} has colours of its own: {found}"
    assert set(colours.CYCLE) <= {light for light, _ in colours.PALETTE.values()} | {
        colours.SIMULATION
    }


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
