"""Every figure twice: as it was drawn, and in the dark colours of the same palette.

The theme shows one or the other (``only-light``, ``only-dark``). A file ``NAME-narrow.svg``
beside a figure takes its place on phones (``only-wide``, ``only-narrow``).
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
#: Width in points above which a figure without a narrow version scrolls on phones, where
#: it would be illegible if it fitted.
BROAD = 600
_WIDTH = re.compile(r'<svg [^>]*width="([\d.]+)pt"', re.S)
_COLOUR = re.compile(r"#[0-9a-f]{6}\b")
#: The box of an image that axes clip, such as a heat map.
_CLIPPED = re.compile(r'<g clip-path="url\(#(\w+)\)">\s*<image')
_BOX = re.compile(
    r'<clipPath id="(\w+)">\s*'
    r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"'
)
#: A text as matplotlib writes it: its name, and the group that says where it begins.
_TEXT = re.compile(
    r'(<g id="text_\d+">\s*(?:<!--.*?-->\s*)?)<g([^>]*?translate\(([-\d.]+) ([-\d.]+)\))'
)
#: The paper of a figure and of its axes: the first patch of each.
_PAPER = re.compile(
    r'(<g id="(?:figure|axes)_\d+">\s*<g id="patch_\d+">\s*<path d="[^"]*" style="fill: )'
    r"#[0-9a-f]{6}"
)


def darkened(svg: str) -> str:
    """Return a figure in the colours of dark pages: ours by name, greys by lightness.

    Other colours stay, and so do images inside the figure, such as heat maps, and the
    numbers that are written on them.
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

    maps = set(_CLIPPED.findall(svg))
    boxes = [[*map(float, box)] for name, *box in _BOX.findall(svg) if name in maps]

    def keep(found: re.Match[str]) -> str:
        start, group, x, y = found[1], found[2], float(found[3]), float(found[4])
        if not any(a < x < a + w and b < y < b + h for a, b, w, h in boxes):
            return found[0]
        named = _COLOUR.search(group)
        colour = named[0] if named else "#000000"
        # Written so that it is not turned.
        fixed = f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"
        group = group.replace(colour, fixed) if named else f' style="fill: {fixed}"{group}'
        return f"{start}<g{group}"

    # What names no colour is black by default.
    kept = _TEXT.sub(keep, svg)
    return _COLOUR.sub(turn, kept).replace("<svg ", f'<svg fill="{black}" ', 1)


def without_paper(svg: str) -> str:
    """Return a figure without its background: that of the page shows."""
    return _PAPER.sub(r"\1none", svg)


def double(app: Any, doctree: nodes.document) -> None:
    """Put a dark figure next to every SVG of a page, and both of its narrow version."""
    for wide in list(doctree.findall(nodes.image)):
        if not wide["uri"].endswith(".svg"):
            continue
        source = Path(app.env.relfn2path(wide["uri"])[1])
        drawn = [(wide, source)]
        if (other := source.with_name(f"{source.stem}-narrow.svg")).exists():
            narrow = _after(wide, wide["uri"].replace(source.name, other.name))
            wide["classes"] = [*wide["classes"], "only-wide"]
            narrow["classes"] = [*narrow["classes"], "only-narrow"]
            drawn.append((narrow, other))
        elif float(_WIDTH.search(source.read_text("utf-8"))[1]) > BROAD:
            wide["classes"] = [*wide["classes"], "broad"]
        for light, path in drawn:
            text = path.read_text("utf-8")
            name = f"{path.stem}-dark-{hashlib.sha256(text.encode()).hexdigest()[:8]}.svg"
            target = Path(app.srcdir) / FOLDER / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(darkened(without_paper(text)), "utf-8")
            dark = _after(light, f"/{FOLDER}/{name}")
            light["classes"] = [*light["classes"], "only-light"]
            dark["classes"] = [*dark["classes"], "only-dark"]


def _after(image: nodes.image, uri: str) -> nodes.image:
    """Put an image like another one behind it."""
    made = image.deepcopy()
    made["ids"], made["names"], made["uri"] = [], [], uri
    image.parent.insert(image.parent.index(image) + 1, made)
    return made


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx, before it collects the images of a page."""
    app.connect("doctree-read", double, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
