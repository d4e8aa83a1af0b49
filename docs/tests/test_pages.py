"""Compare the documentation with the code: nothing missing, nothing unexplained."""

import importlib
import json
import re
import sys
import types
from pathlib import Path

import pytest

import greenfold
from greenfold.apps.style import PALETTE, SOLVED
from tests import parts

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: Folders that a build of the documentation fills.
MADE = {"_build", "examples", "gallery", "generated"}
PAGES = sorted(
    path
    for kind in ("*.md", "*.rst")
    for path in DOCS.rglob(kind)
    if not MADE & set(path.relative_to(DOCS).parts)
)
API = "\n".join(path.read_text("utf-8") for path in (DOCS / "api").glob("*.rst"))

#: Every \label{eq:…} of the paper's source.
EQUATIONS = [
    "eom_network",
    "Greensfunction",
    "solution_linear_Greens",
    "def_margin",
    "soft_margin",
    "soft_margin_approx_Gaussian",
    "Gaussian_distribution_input",
    "def_opt_with_Lagrange",
    "rate-series",
    "leading-deq",
    "first_order_correction",
    "G2-general",
    "class-generalized-states-nonlinear",
    "Hoelder",
    "soft-margin-gradient-u",
    "soft-margin-gradient-lambda-u",
    "bisection-problem-lambda-u",
    "soft-margin-gradient-v",
    "soft-margin-gradient-lambda-v",
]

#: Number of each, as printed.
NUMBERS = {label: number for number, label in enumerate(EQUATIONS, 1)}


def listed() -> set[str]:
    """Names in the autosummary tables, by their last part."""
    return {line.strip().rpartition(".")[2] for line in API.splitlines()}


#: Packages whose names serve the library itself.
INTERNAL = {"dynamics"}
#: Everything that has public names of its own.
PACKAGES = [
    "greenfold",
    *(
        f"greenfold.{path.parent.name}"
        for path in sorted(Path(greenfold.__file__).parent.glob("*/__init__.py"))
        if "__all__" in path.read_text("utf-8") and path.parent.name not in INTERNAL
    ),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_in_the_reference(package):
    public = importlib.import_module(package)
    names = {n for n in public.__all__ if not hasattr(getattr(public, n), "__path__")}
    modules = {n for n in names if f"{package}.{n}" in sys.modules}
    assert names - modules - {"__version__"} <= listed()


def test_theory_has_every_equation_of_the_paper():
    table = (DOCS / "theory" / "equations.md").read_text("utf-8")
    rows = re.findall(r"^\| \((\d+)\) `([\w-]+)` \|.*\| (.+) \|$", table, re.M)
    assert sorted(label for _, label, _ in rows) == sorted(EQUATIONS)
    assert all(implemented.strip() for *_, implemented in rows)
    # The list above is in the order of the paper, whose equations are numbered through.
    assert {label: int(n) for n, label, _ in rows} == NUMBERS


def test_docstrings_cite_equations_by_number():
    """The label is in no PDF: each has its number before it, and the right one."""
    label = "|".join(map(re.escape, sorted(EQUATIONS, key=len, reverse=True)))
    cited = re.compile(rf"equations? ([\d ,and]+),\s+((?:`(?:{label})`(?:,\s+)?)+)")
    source = Path(greenfold.__file__).parent
    for path in source.rglob("*.py"):
        text = path.read_text("utf-8")
        for numbers, names in cited.findall(text):
            labels = re.findall(r"`([^`]+)`", names)
            assert [int(n) for n in re.findall(r"\d+", numbers)] == [
                NUMBERS[one] for one in labels
            ], (path.name, labels)
        # Parameters and functions have some of these names: only citations of the paper.
        plain = re.findall(rf"\(paper,\s+`(?:{label})`", text)
        assert not plain, (path.name, plain)


def test_summaries_are_not_cut_at_an_abbreviation():
    """The tables of the reference end a summary at the first full stop."""
    for path in Path(greenfold.__file__).parent.rglob("*.py"):
        if path.parent.name == "paper":  # named after its figures, and in no table
            continue
        for first in re.findall(r'"""([^\n"]+)', path.read_text("utf-8")):
            assert not re.search(r"\b(Figs?|Eqs?|Secs?|cf)\. \S", first), (path.name, first)


def linked_names() -> list[str]:
    """Objects that the pages link to by their full name."""
    roles = re.compile(r"\{(?:func|class|meth|mod)\}`(?:[^`<]*<)?~?(greenfold[\w.]*)>?`")
    return sorted(
        {name for page in PAGES for name in roles.findall(page.read_text("utf-8"))}
    )


@pytest.mark.parametrize("name", linked_names())
def test_linked_names_exist(name):
    module, names = name, []
    while parts.file_of(module) is None:
        module, _, last = module.rpartition(".")
        names.insert(0, last)
    for part in filter(parts.is_missing, parts.needed_by(module)):
        pytest.skip(parts.reason(part))
    found = importlib.import_module(module)
    for one in names:
        assert hasattr(found, one), f"{name}: {found!r} has no {one}"
        found = getattr(found, one)


def fences(text: str) -> list[tuple[str, str]]:
    """Head and body of every fenced block, outermost only."""
    return re.findall(r"^```([^\n`]*)\n(.*?)^```$", text, re.M | re.S)


#: Blocks that hold no code.
NOT_CODE = ("{toctree}", "{include}", "{code-block} bibtex", "{code-block} text")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_code_is_executed_or_says_why_not(page):
    """The caption of a block that the build does not run says where to run it."""
    text = page.read_text("utf-8")
    for head, body in fences(text):
        if head.startswith(NOT_CODE):
            continue
        if head == "{code-cell} ipython3":
            assert text.startswith("---\nfile_format: mystnb\n"), "the page is not executed"
            continue
        marked = ("{code-block}", "{literalinclude}")
        assert head.startswith(marked), f"unmarked block {head!r}"
        said = re.match(r":caption: .*(not run|\brun th[ei]s|\brequires\b)", body, re.I)
        assert said, f"no reason given: {body[:80]}"


def test_the_method_of_the_recipe_runs(monkeypatch):
    """The whole method on the architecture page is one, below the bound of the problem."""
    method = "greenfold.optimizers.method"
    monkeypatch.setattr(f"{method}.METHODS", dict(importlib.import_module(method).METHODS))
    page = (DOCS / "architecture.md").read_text("utf-8")
    (body,) = [body for _, body in fences(page) if "whole method" in body.split("\n")[0]]
    exec(body.partition("\n\n")[2], {"__name__": "recipe"})
    network = greenfold.Reservoir.random(12, rng=0)
    system = greenfold.unfold(network, n_steps=6, dt=0.5)
    stimuli = greenfold.GaussianStimuli.random(6, strength=1.0, rng=1)
    found = greenfold.optimize(system, stimuli, method="walk", rng=0)
    bound = greenfold.optimize(system, stimuli).upper_bound
    assert bound is not None
    assert found.method == "walk"
    assert found.starts.shape == (3,)
    assert (found.history @ [1, -1])[0] < found.soft_margin <= bound


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_links_to_pages_exist(page):
    for target in re.findall(
        r"(?:\{doc\}|:doc:)`(?:[^`<]*<)?([^`>]+)>?`", page.read_text("utf-8")
    ):
        found = (page.parent / target.strip()).resolve()
        if found.is_relative_to(DOCS / "gallery"):
            assert is_in_gallery(found.relative_to(DOCS / "gallery")), target
            continue
        assert any(found.with_suffix(kind).exists() for kind in (".md", ".rst")), target


def is_in_gallery(page: Path) -> bool:
    """Whether the build makes a page, without its suffix, of the examples."""
    if page.name == "index":
        return (ROOT / "examples" / page.parent / "GALLERY_HEADER.rst").exists()
    return (ROOT / "examples" / page).with_suffix(".py").exists()


@pytest.mark.parametrize(
    "kind", ["reproduction fig1", "benchmarks optima", "sweep", "study"]
)
def test_what_is_recorded_is_shown(kind, monkeypatch):
    """The marker on a page becomes the record, not the word that there is none."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import recorded  # pyright: ignore[reportMissingImports]

    class App:
        srcdir = DOCS

        class env:
            @staticmethod
            def note_dependency(*_, **__):
                pass

    page = [f"<!-- recorded: {kind} -->"]
    recorded._fill(App, "page", page)
    assert "No recorded results" not in page[0]
    assert len(page[0]) > 500


def test_every_record_of_a_benchmark_has_a_page(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import recorded  # pyright: ignore[reportMissingImports]

    names = [name for topic in recorded._BENCHMARKS.values() for name in topic]
    recorded_names = {path.stem for path in (DOCS / "_benchmarks").glob("*.json")}
    assert len(names) == len(set(names))
    assert recorded_names <= set(names)
    pages = {path.stem for path in (DOCS / "records").glob("*.md")}
    assert pages == set(recorded._BENCHMARKS)


def test_links_that_lead_nowhere_are_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import links  # pyright: ignore[reportMissingImports]

    good = """<link rel="canonical" href="https://x.org/a.html"><h1 id="top">
        <a href="#top"> <a href="sub/b.html#%C3%A9"> <a href="https://x.org/#no"> <img
        src="data:,">"""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(good, "utf-8")
    (tmp_path / "sub" / "b.html").write_text("<p id='é'><a href='../a.html'>", "utf-8")
    assert list(links.broken(tmp_path)) == []
    bad = ["#no", "c.html", "sub/b.html#no", "sub/../a.html?x=1#no"]
    text = good + "".join(f'<a href="{one}">' for one in bad)
    text += '<script src="//x.org/a.js"></script><img alt="" src="http://x.org/b.png">'
    (tmp_path / "a.html").write_text(text, "utf-8")
    said = list(links.broken(tmp_path))
    assert len(said) == len(bad) + 2
    assert all(any(one in sentence for sentence in said) for one in bad)


def test_source_pages_link_back_to_the_documented_name(monkeypatch):
    """One file whose objects are exported by two modules."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import links  # pyright: ignore[reportMissingImports]

    def entry(docname: str, node_id: str):
        return types.SimpleNamespace(docname=docname, node_id=node_id, aliased=False)

    objects = {"p.A": entry("api/p.A", "p.A"), "p.q.B.c": entry("api/p.q.B", "p.q.B.c")}
    domain = types.SimpleNamespace(objects=objects)
    app = types.SimpleNamespace(env=types.SimpleNamespace(get_domain=lambda _: domain))
    block = (
        '<div class="viewcode-block" id="{}">\n'
        '<a class="viewcode-back" href="../../api/{}">[docs]</a>'
    )
    context = {
        "body": block.format("A", "p.A.html#p.A") + block.format("B.c", "p.q.B.html#p.B.c")
    }
    links.link_back(app, "_modules/p/q", "page.html", context, None)
    assert re.findall(r'href="([^"]+)"', context["body"]) == [
        "../../api/p.A.html#p.A",
        "../../api/p.q.B.html#p.q.B.c",
    ]


def test_stars_in_docstrings(monkeypatch):
    """Emphasis stays emphasis; the star of a name is no beginning of one."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import docstrings  # pyright: ignore[reportMissingImports]

    lines = [
        "Accept a *linear* network, and *any of them*.",
        "* an entry of a list",
        "At rest y* = φ(y*), with ‖X‖_* ≤ 1 and ``work(*entries, *shared)``.",
        "a * b, |x| and x_ are plain; so is *shared",
    ]
    docstrings.escape_prose(None, "function", "f", None, None, lines)
    assert lines == [
        "Accept a *linear* network, and *any of them*.",
        "* an entry of a list",
        r"At rest y\* = φ(y\*), with ‖X‖\_\* ≤ 1 and ``work(*entries, *shared)``.",
        r"a \* b, \|x\| and x\_ are plain; so is \*shared",
    ]


def test_the_version_switch_knows_this_version():
    listed = json.loads((DOCS / "_static" / "switcher.json").read_text("utf-8"))
    assert greenfold.__version__ in [one["version"] for one in listed]


def test_a_dark_figure_keeps_its_meaning(monkeypatch):
    """Our colours by name, greys by lightness, all else (heat maps) as it was."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import dark  # pyright: ignore[reportMissingImports]

    drawn = (
        f'<svg width="9"><path style="stroke: {SOLVED}"/><image href="data:,"/>'
        '<path style="fill: #ffffff; stroke: #000000"/><path style="fill: #fde725"/></svg>'
    )
    ink, paper, solved = (PALETTE[n][1] for n in ("ink", "paper", "solved"))
    assert dark.darkened(drawn) == (
        f'<svg fill="{ink}" width="9"><path style="stroke: {solved}"/>'
        f'<image href="data:,"/><path style="fill: {paper}; stroke: {ink}"/>'
        '<path style="fill: #fde725"/></svg>'
    )


def test_numbers_on_a_dark_heat_map_keep_their_colour(monkeypatch):
    """They stand on its colours; other text and the paper follow the page."""
    monkeypatch.syspath_prepend(DOCS / "_ext")
    import dark  # pyright: ignore[reportMissingImports]

    def text(name: str, x: int, style: str = "") -> str:
        return f'<g id="text_{name}"><!-- 1 --><g{style} transform="translate({x} 5)"/></g>'

    paper = '<g id="patch_1"><path d="M 0 0" style="fill: {}"/></g>'
    drawn = (
        '<svg width="9"><g id="figure_1">' + paper.format("#ffffff") + "</g>"
        '<g clip-path="url(#a)"><image/></g>'
        '<clipPath id="a"><rect x="0" y="0" width="9" height="9"/></clipPath>'
        + text("1", 5)
        + text("2", 5, ' style="fill: #ffffff"')
        + text("3", 20)
    )
    made = dark.darkened(dark.without_paper(drawn))
    assert paper.format("none") in made
    assert text("1", 5, ' style="fill: rgb(0, 0, 0)"') in made
    assert text("2", 5, ' style="fill: rgb(255, 255, 255)"') in made
    assert text("3", 20) in made
