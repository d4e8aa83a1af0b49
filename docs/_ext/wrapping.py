"""Where lines may break: between the parts of a name in code, not in a short formula."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

#: After punctuation between parts, before an opening bracket, before a capital letter.
_JOINT = re.compile(r"(?<=\w[._=/,(])(?=[^\s)])|(?<=\w)(?=\[)|(?<=[a-z])(?=[A-Z][a-z])")
#: Longest word that stays whole in running text.
_SHORT = 24
#: Longest code that stays on one line in the first column of a table.
_LABEL = 18
#: Capital letters within a name, where it may break in the list of pages.
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_SHOWN = re.compile(r"(?<=>)[^<>]+(?=<)")
#: A formula in running text: terms with signs between them.
_FORMULA = re.compile(r"\S+(?:\s[=≈≠≤≥<>+−·×±]\s\S+)+")
_RELATION = re.compile(r"\s([=≈≠≤≥<>])\s")
#: A number and its per cent sign, or the sign before it.
_NUMBER = re.compile(r"(?<=\d)\s(?=%)|(?<=[<>≤≥≈±])\s(?=\d)")
#: Longest formula that stays whole; a longer one stays whole on each side of its sign.
_LINE = 26
#: Where text is as it was typed.
_TYPED = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


def hold(app: Any, doctree: nodes.document, docname: str) -> None:
    """Keep formulas such as N = 100, and numbers with their per cent sign, on one line."""

    def joined(found: re.Match[str]) -> str:
        formula = found[0]
        if len(formula) <= _LINE:
            return "\u00a0".join(formula.split())
        return _RELATION.sub("\u00a0\\1 ", formula)

    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, _TYPED):
            continue
        old = text.astext()
        new = _NUMBER.sub("\u00a0", _FORMULA.sub(joined, old))
        if new != old:
            text.parent.replace(text, nodes.Text(new))


def mark(app: Any, doctree: nodes.document, docname: str) -> None:
    """Add the places where inline code may break; keep options such as ``--x`` whole."""
    for code in doctree.findall(nodes.literal):
        if len(code.children) != 1 or not isinstance(code[0], nodes.Text):
            continue
        text, parent = code.astext(), code.parent
        while parent is not None and not isinstance(parent, nodes.entry):
            parent = parent.parent
        if parent is not None and parent.parent.index(parent) == 0 and len(text) <= _LABEL:
            code["classes"].append("unbroken")
            continue
        longest = max(map(len, text.split()), default=0)
        if parent is None and longest <= _SHORT:
            code["classes"] += ["whole"] * ("-" in text)
            continue
        first, *rest = _JOINT.split(text)
        code.children.clear()
        code += nodes.Text(first)
        for part in rest:
            code += [nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]


def mark_list(
    app: Any, pagename: str, templatename: str, context: dict, doctree: Any
) -> None:
    """Let long names in the list of pages break before a capital letter."""
    make = context.get("generate_toctree_html")
    if make is None:
        return

    def marked(*given: Any, **named: Any) -> str:
        made = str(make(*given, **named))
        return _SHOWN.sub(lambda found: _CAPITAL.sub("<wbr>", found[0]), made)

    context["generate_toctree_html"] = marked


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", hold, priority=890)
    app.connect("doctree-resolved", mark, priority=900)
    app.connect("html-page-context", mark_list, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
