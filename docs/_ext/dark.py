"""Every figure twice: as it was drawn, and in the dark colours of the same palette.

The theme shows one or the other (``only-light``, ``only-dark``). A figure of the class
``plate`` stays as it is, on a light plate.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from docutils import nodes

from greenfold.apps.style import PALETTE

#: Where the dark ones lie, relative to the sources.
FOLDER = "_build/dark"
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")


def darkened(svg: str) -> str:
    """Return a figure in the colours of dark pages: ours by name, greys by lightness.

    Other colours stay, and so do images inside the figure, such as heat maps.
    """
    ours = dict(PALETTE.values())
    (_, black), (_, white) = PALETTE["ink"], PALETTE["paper"]
    ends = [[int(end[i : i + 2], 16) for i in (1, 3, 5)] for end in (black, white)]

    def turn(found: re.Match[str]) -> str:
        colour = found[0]
        if colour != f"#{3 * colour[1:3]}":
            return ours.get(colour, colour)
        share = int(colour[1:3], 16) / 255
        parts = (round((1 - share) * a + share * b) for a, b in zip(*ends, strict=True))
        return "#" + "".join(f"{part:02x}" for part in parts)

    # What names no colour is black by default.
    return _COLOUR.sub(turn, svg).replace("<svg ", f'<svg fill="{black}" ', 1)


def double(app: Any, doctree: nodes.document) -> None:
    """Put a dark figure next to every SVG of a page."""
    for light in list(doctree.findall(nodes.image)):
        if not light["uri"].endswith(".svg") or "plate" in light["classes"]:
            continue
        source = Path(app.env.relfn2path(light["uri"])[1])
        text = source.read_text("utf-8")
        name = f"{source.stem}-dark-{hashlib.sha256(text.encode()).hexdigest()[:8]}.svg"
        target = Path(app.srcdir) / FOLDER / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(darkened(text), "utf-8")
        dark = light.deepcopy()
        dark["ids"], dark["names"] = [], []
        dark["uri"] = f"/{FOLDER}/{name}"
        light["classes"] = [*light["classes"], "only-light"]
        dark["classes"] = [*dark["classes"], "only-dark"]
        light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx, before it collects the images of a page."""
    app.connect("doctree-read", double, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
