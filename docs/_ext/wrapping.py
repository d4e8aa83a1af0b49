"""Where names in code may break on a narrow screen: between their parts, not in a word."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

#: After punctuation between parts, before an opening bracket, before a capital letter.
_JOINT = re.compile(r"(?<=\w[._=/,(])(?=[^\s)])|(?<=\w)(?=\[)|(?<=[a-z])(?=[A-Z][a-z])")
#: Longest word that stays whole in running text.
_SHORT = 24


def mark(app: Any, doctree: nodes.document, docname: str) -> None:
    """Add the places where inline code may break; keep options such as ``--x`` whole."""
    for code in doctree.findall(nodes.literal):
        if len(code.children) != 1 or not isinstance(code[0], nodes.Text):
            continue
        text, parent = code.astext(), code.parent
        while parent is not None and not isinstance(parent, nodes.entry):
            parent = parent.parent
        longest = max(map(len, text.split()), default=0)
        if parent is None and longest <= _SHORT:
            code["classes"] += ["whole"] * ("-" in text)
            continue
        first, *rest = _JOINT.split(text)
        code.children.clear()
        code += nodes.Text(first)
        for part in rest:
            code += [nodes.raw("", "<wbr>", format="html"), nodes.Text(part)]


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", mark, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
