"""Links within the built pages: every page and every place on it exists.

Sphinx checks the references that it makes; what themes, source pages and plain HTML link to
is looked up here, in the pages as they were written. A page must not load anything from
another server either.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

_TAG = re.compile(r"<([a-zA-Z][\w-]*)\s([^>]*)>")
_ATTRIBUTE = re.compile(r"""(?<![\w-])(id|name|href|src)=(?:"([^"]*)"|'([^']*)')""")
_BACK = re.compile(
    r'(<div class="viewcode-block" id="([^"]+)">\s*<a class="viewcode-back" href=")'
    r'([^"#]+)#[^"]*'
)


def read(text: str) -> tuple[set[str], list[str], list[str]]:
    """Places on a page, where its links lead, and what it loads."""
    places: set[str] = set()
    links: list[str] = []
    loaded: list[str] = []
    for tag, rest in _TAG.findall(text):
        for name, double, single in _ATTRIBUTE.findall(rest):
            value = unescape(double or single)
            if name == "id" or (name == "name" and tag == "a"):
                places.add(value)
            elif name == "src" or (name == "href" and tag == "link" and "style" in rest):
                loaded.append(value)
            elif name == "href" and tag == "a":
                links.append(value)
    return places, links, loaded


def broken(root: Path) -> Iterator[str]:
    """A sentence for each link of the pages below a folder that leads nowhere."""
    pages = {
        page.relative_to(root).as_posix(): read(page.read_text("utf-8"))
        for page in sorted(root.rglob("*.html"))
        if page.relative_to(root).parts[0] != "_static"
    }
    exists: dict[str, bool] = {}
    for name, (_, links, loaded) in pages.items():
        for link in loaded:
            if urlsplit(link).scheme in ("http", "https") or link.startswith("//"):
                yield f"{name} loads {link} from another server"
        for link in dict.fromkeys(links + loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = posixpath.normpath(urljoin(name, unquote(parts.path)) or name)
            if target not in exists:
                exists[target] = (root / target).is_file()
            if not exists[target]:
                yield f"{name} links to {link}, and there is no such file"
                continue
            place = unquote(parts.fragment)
            if place and target in pages and place not in pages[target][0]:
                yield f"{name} links to {link}, and there is no such place on that page"


def link_back(
    app: Any, pagename: str, templatename: str, context: dict, doctree: Any
) -> None:
    """Lead "[docs]" on a page of source code to the name under which it is documented.

    Sphinx keeps one module for each file of source code, that of the first object it meets;
    of a file whose objects are exported by several modules all others had no target.
    """
    if not pagename.startswith("_modules/") or "body" not in context:
        return
    objects = app.env.get_domain("py").objects

    def repair(found: re.Match[str]) -> str:
        start, name, page = found.groups()
        doc = posixpath.normpath(urljoin(pagename, page)).removesuffix(".html")
        for full, entry in objects.items():
            if entry.docname == doc and full.endswith(f".{name}") and not entry.aliased:
                return f"{start}{page}#{entry.node_id}"
        return start + page

    context["body"] = _BACK.sub(repair, context["body"])


def check(app: Any, exception: Exception | None) -> None:
    """Warn of every broken link; `make docs` takes warnings for errors."""
    from sphinx.util import logging

    if exception is None and app.builder.name == "html":
        for sentence in broken(Path(app.outdir)):
            logging.getLogger(__name__).warning(sentence, type="links")


def setup(app: Any) -> dict[str, Any]:
    """Look when everything is written, the explorer too."""
    app.connect("html-page-context", link_back)
    app.connect("build-finished", check, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
