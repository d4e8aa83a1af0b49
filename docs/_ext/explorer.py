"""The explorer's page, made anew with every build of the documentation.

It is what ``greenfold explore --out`` writes without further arguments, so that what the
documentation shows is what the installed version makes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.util import logging

logger = logging.getLogger(__name__)

#: Where `explorer.md` looks for it, relative to the root of the built pages.
PAGE = "_static/explorer.html"
#: What the pages around it need to tell it their light or dark, in `_static`.
SCRIPT = "explorer.js"


def make(path: Path) -> None:
    """Write the page of the built-in series."""
    from greenfold import Reservoir
    from greenfold.apps.demo import demo_task
    from greenfold.apps.explorer import Source, built_in_source, make_explorer

    task = demo_task(0)
    beats = Source(task.name, task.X, task.y, task.X_test, task.y_test, task.note)
    reservoir = Reservoir.random(12, rng=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    make_explorer(path, [beats, built_in_source()], reservoir, command="greenfold explore")


def _finish(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        logger.info("making the explorer")
        make(Path(app.outdir) / PAGE)


def _introduce(app: Any, pagename: str, template: str, context: dict, tree: Any) -> None:
    if '<iframe class="explorer"' in context.get("body", ""):
        app.add_js_file(SCRIPT)


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("html-page-context", _introduce)
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
