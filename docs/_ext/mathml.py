"""Formulas as MathML, which browsers draw themselves: no script, no network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _bar(sign: str, form: str) -> str:
    return f'<mo form="{form}" stretchy="false" lspace="0" rspace="0">{sign}</mo>'


#: Bars of a norm, as they are made and as they are meant: next to what they enclose, and no
#: taller. Without that the first one stretches and the second sinks.
_BARS = {
    '<mo class="mathopen">‖</mo>': _bar("‖", "prefix"),
    "<mo>‖</mo>": _bar("‖", "postfix"),
}


#: An accent over a letter with an index, as it is made: the index sinks below the letter.
_ACCENT = re.compile(
    r"<munderover>\s*(<mi>[^<]*</mi>)((?:(?!</?munderover>).)*?)"
    r'(<mo stretchy="false">[ˉ~˙^]</mo>)\s*</munderover>',
    re.DOTALL,
)
#: A fraction without braces, of which the renderer makes twelve over what follows.
_BARE = re.compile(r"frac *\d\d")


def _render(node: nodes.Element, *, block: bool) -> str:
    source = node.astext()
    try:
        made = tex2mathml(source, as_block=block)
    except MathError as error:
        logger.warning("formula %r: %s", source, error, location=node)
        return f"<code>{escape(source)}</code>"
    if _BARE.search(source):
        logger.warning("formula %r: write \\frac{1}{2}", source, location=node)
    made = _ACCENT.sub(r'<msub><mover accent="true">\1\3</mover>\2</msub>', made)
    for plain, meant in _BARS.items():
        made = made.replace(plain, meant)
    # Bars of a size come in pairs.
    first, *rest = made.split('<mo stretchy="false">|</mo>')
    for number, part in enumerate(rest):
        first += _bar("|", "postfix" if number % 2 else "prefix") + part
    return first


#: What follows a formula without a space and must not begin a line.
_TAIL = re.compile(r"[^\s\w]+")


def join(app: Any, doctree: nodes.document, docname: str) -> None:
    """Give the punctuation after a formula in running text to the formula."""
    for math in list(doctree.findall(nodes.math)):
        siblings = math.parent.children
        after = siblings[math.parent.index(math) + 1 :][:1]
        if after and isinstance(after[0], nodes.Text):
            text = after[0].astext()
            if tail := _TAIL.match(text):
                math["tail"] = tail[0]
                math.parent.replace(after[0], nodes.Text(text[tail.end() :]))


def _inline(writer: Any, node: nodes.Element) -> None:
    made = _render(node, block=False)
    if tail := node.get("tail"):
        made = f'<span class="together">{made}{escape(tail)}</span>'
    writer.body.append(made)
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate"))
    if node.get("number"):
        writer.body.append(f'<span class="eqno">({node["number"]})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(_render(node, block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer that `html_math_renderer` names."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("doctree-resolved", join)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
