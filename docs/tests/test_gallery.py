"""The shop window: examples of the gallery, the glossary, the README.

That the examples run is shown by the build of the documentation, which stops at an error.
"""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
README = (ROOT / "README.md").read_text("utf-8")

#: What people look for; the glossary makes the search find it.
WORDS = [
    "binary mask",
    "channel equalisation",
    "connectome",
    "Dale's law",
    "delay embedding",
    "echo state network",
    "extreme learning machine",
    "forecasting",
    "FPGA",
    "input mask",
    "liquid state machine",
    "memory capacity",
    "NARMA",
    "photonic reservoir",
    "physical reservoir",
    "reservoir computing",
    "ridge regression",
    "ROCKET",
    "saturation",
    "spectral radius",
]


def sections() -> list[str]:
    """Folders that the gallery shows, in its order."""
    text = (DOCS / "_ext" / "gallery.py").read_text("utf-8")
    found = re.search(r"^SECTIONS = .*?\n\)", text, re.M | re.S)
    assert found
    return re.findall(r'"(\w+)"', found[0])


def test_sections_are_the_folders():
    assert sorted(sections()) == sorted({path.parent.name for path in EXAMPLES})
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_stand_alone(path):
    """Built-in data and no optional package, so that everybody can run them."""
    assert path.name.startswith("plot_"), "sphinx-gallery runs only these"
    text = path.read_text("utf-8")
    title = re.match(r'"""\n(.+)\n(=+)\n\n\S', text)
    assert title, "no title with an introduction"
    assert len(title[1]) == len(title[2])
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.M))
    assert imported <= {
        *sys.stdlib_module_names,
        "greenfold",
        "matplotlib",
        "numpy",
        "scipy",
    }
    assert "load_dataset" not in text
    assert text.count("plt.show()") == 1, "one picture"
    for target in re.findall(r":doc:`(?:[^`<]*<)?/([^`>]+)>?`", text):
        assert (DOCS / target).with_suffix(".md").exists(), target


@pytest.mark.parametrize("word", WORDS)
def test_words_are_explained(word):
    text = (DOCS / "glossary.md").read_text("utf-8")
    assert re.search(rf"^{re.escape(word)}\n(?:\S.*\n)*  \S", text, re.M)


def test_readme_fits_and_leads_somewhere():
    text, _, links = README.partition("\n\n[benchmarks]: ")
    assert links
    assert len(text.splitlines()) < 165
    assert max(map(len, text.splitlines())) <= 92
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_commands_of_the_readme_exist():
    typer = pytest.importorskip("typer")
    from greenfold.cli.app import app

    known = typer.main.get_command(app).commands
    commands = re.findall(r"`greenfold (\w+)", README)
    assert commands
    assert set(commands) <= set(known)
    names = re.findall(r"python -m benchmarks[ .](\w+)", README)
    assert all((ROOT / "benchmarks" / f"{name}.py").exists() for name in names)
    rules = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(re.findall(r"make ([a-z-]+)", README)) <= set(rules)
