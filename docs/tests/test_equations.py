"""The page of equations and the docstrings, in both directions.

Every label of the paper is in the docstring of each function that the page names for it,
and the page names each function whose docstring cites an equation.
"""

import ast
import importlib
import re
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pytest

import greenfold

from .test_pages import EQUATIONS, NUMBERS, ROOT

PAGE = (ROOT / "docs" / "theory" / "equations.md").read_text("utf-8")
SOURCE = Path(greenfold.__file__).parent
_LABEL = "|".join(map(re.escape, sorted(EQUATIONS, key=len, reverse=True)))
_CITED = re.compile(rf"equations? [\d ,and]+,\s+((?:`+(?:{_LABEL})`+(?:,\s+)?)+)")
#: Classes stand for their methods in a row, and base classes for those that inherit.
_REFERENCE = re.compile(r"\{(?:class|func|meth)\}`(?:[^`<]*<)?~?(greenfold[\w.]*)>?`")


def resolved(name: str) -> Any:
    """The object that a full name means."""
    parts = name.split(".")
    for i in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:i]))
        except ImportError:
            continue
        return reduce(getattr, parts[i:], module)
    raise LookupError(name)


def named_on_the_page(label: str) -> list[Any]:
    """What the row of a label names."""
    number = NUMBERS[label]
    rows = re.findall(rf"^\| \({number}\) `{re.escape(label)}` \|.*$", PAGE, re.MULTILINE)
    assert len(rows) == 1, f"no single row ({number}) `{label}`"
    return [resolved(name) for name in _REFERENCE.findall(rows[0])]


def labels_in(text: str | None) -> set[str]:
    """Labels that a docstring cites."""
    found = _CITED.findall(text or "")
    return {label for names in found for label in re.findall(r"`+([^`]+)`+", names)}


@cache
def citing() -> dict[str, list[Any]]:
    """Objects whose docstrings cite each label."""
    found: dict[str, list[Any]] = {label: [] for label in EQUATIONS}
    kinds = (ast.ClassDef, ast.FunctionDef)

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, kinds):
                for label in labels_in(ast.get_docstring(child)):
                    found[label].append(resolved(f"{name}.{child.name}"))
                visit(child, f"{name}.{child.name}")

    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        text = path.read_text("utf-8")
        if "equation" in text:
            visit(ast.parse(text), ".".join(parts).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("label", EQUATIONS)
def test_what_the_page_names_cites_the_equation(label):
    named = named_on_the_page(label)
    assert named
    for one in named:
        assert label in labels_in(one.__doc__), one


@pytest.mark.parametrize("label", EQUATIONS)
def test_what_cites_an_equation_is_on_the_page(label):
    named, found = named_on_the_page(label), citing()[label]
    assert found
    for one in found:
        assert one in named, one


def test_readers_find_the_page():
    """From the README and from the first page, in one click."""
    assert "/theory/equations.html" in (ROOT / "README.md").read_text("utf-8")
    assert "<theory/equations>`" in (ROOT / "docs" / "index.md").read_text("utf-8")
