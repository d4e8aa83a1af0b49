"""Docstrings are plain text with formulas in Unicode and short names; read them as such."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.ext.autosummary import AutoLink

#: Roles, inline code, names in backticks, strong and emphasised text and the sign of an
#: entry in a list stay as they are. A star behind a letter is none of these but part of a
#: name, as in y* = φ(y*).
_KEPT = re.compile(
    r"(:[a-z:]+:`[^`]+`|``.+?``|`[^`]+`|\*\*[^*]+\*\*"
    r"|(?<![\w*])\*(?![\s*])[^*]*(?<!\s)\*(?![\w*])|^\s*\*(?= ))"
)
#: A private field in a signature, with its default.
_PRIVATE = re.compile(r", _\w+(?:=[^,()]*)?")
_SPECIAL = re.compile(r"\||\*|(?<=\w)_(?!\w)|(?<=\W)_(?=\W)")


def _escape(line: str) -> str:
    parts = _KEPT.split(line)
    parts[::2] = [_SPECIAL.sub(lambda found: "\\" + found[0], part) for part in parts[::2]]
    return "".join(parts)


def escape_prose(app, what, name, obj, options, lines) -> None:
    """Escape what reStructuredText would take for markup.

    There |x| is a substitution, x_ a link and a lone * the beginning of emphasis; the
    docstrings mean none of these. Code and the names of parameters are left alone, and so
    is a *word* between two stars.
    """
    literal: int | None = None
    example = False
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if literal is None and not example and " : " not in line:
            lines[index] = _escape(line)
        if line.rstrip().endswith("::"):
            literal = indent


def skip_fields(app, what, name, obj, skip, options) -> bool | None:
    """Leave out fields of a named tuple that only say which number they have."""
    return True if (obj.__doc__ or "").startswith("Alias for field number") else None


def plain_signature(app, what, name, obj, options, signature, returns) -> Any:
    """Show only what a user passes: no private fields, and no arguments of a protocol."""
    if getattr(obj, "_is_protocol", False):
        return "", returns
    return _PRIVATE.sub("", signature or "") or signature, returns


class Name(AutoLink):
    """A name in single backticks: a link where it is one of ours, and code elsewhere.

    Sphinx would set names that the module at hand cannot import in italics.
    """

    def run(self) -> tuple[list[Any], list[Any]]:
        """Leave what cannot be imported to `resolve_short_name`."""
        made, errors = super().run()
        if len(made) == 1 and isinstance(made[0], nodes.emphasis):
            role = self.env.domains.python_domain.role("obj")
            where = (self.lineno, self.inliner, self.options, self.content)
            made, errors = role("obj", self.rawtext, self.text, *where)
            for one in made:
                one["short"] = True
        return made, errors


def resolve_short_name(app, env, node, contnode) -> nodes.Element | None:
    """Link `ReservoirClassifier` from any module, and `Projections.validity` to its class.

    A name counts as found where exactly one documented object ends with it; an attribute
    that has no entry of its own leads to its class, which describes it. What else stands in
    backticks, as a parameter or a label of the paper, is code.
    """
    if node.get("refdomain") != "py":
        return None
    is_short = node.get("short", False)
    entries = env.get_domain("py").objects
    objects = {name: entry for name, entry in entries.items() if not entry.aliased}
    target = node["reftarget"]
    for wanted in (target, target.rpartition(".")[0]):
        found = [n for n in objects if wanted and (n == wanted or n.endswith(f".{wanted}"))]
        if is_short and wanted.islower() and "." not in wanted:
            # A parameter may be called as an attribute of something else.
            found = [n for n in found if objects[n].objtype == "function"]
        if len(found) == 1:
            entry = objects[found[0]]
            uri = app.builder.get_relative_uri(node["refdoc"], entry.docname)
            return nodes.reference(
                "", "", contnode, internal=True, refuri=f"{uri}#{entry.node_id}"
            )
    return nodes.literal("", contnode.astext()) if is_short else None


def setup(app: Any) -> dict[str, Any]:
    """Escape before numpydoc reads the sections; `default_role` names the role."""
    app.add_role("name", Name())
    app.connect("autodoc-process-docstring", escape_prose, priority=100)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("missing-reference", resolve_short_name)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
