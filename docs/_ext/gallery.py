"""How the gallery draws and sorts: figures as SVG, in the look of the pages."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from sphinx_gallery.scrapers import matplotlib_scraper
from sphinx_gallery.sorting import ExplicitOrder

SECTIONS = ExplicitOrder(
    [f"../examples/{name}" for name in ("series", "networks", "hardware", "tasks")]
)
#: Examples that come first in their section; the others follow by name.
FIRST = ("plot_heartbeats", "plot_unaligned", "plot_connectome", "plot_delay_loop")


class Order:
    """Key by which sphinx-gallery sorts the files of a section."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: Any) -> tuple[int, str]:
        """Where a file comes."""
        name = Path(filename).stem
        return (FIRST.index(name) if name in FIRST else len(FIRST), name)

    def __repr__(self) -> str:
        return "Order"  # Sphinx compares configurations by it


def svg(block: Any, block_vars: Any, gallery_conf: Any, **given: Any) -> str:
    """Keep the figures of a block as SVG, with the title of the example as their text."""
    given |= {"format": "svg", "metadata": {"Date": None}}
    made = matplotlib_scraper(block, block_vars, gallery_conf, **given)
    title = Path(block_vars["src_file"]).read_text("utf-8").splitlines()[1]
    # A plain figure, which `dark` doubles and which scrolls on a phone.
    made = re.sub(r"\n *:srcset: .*", "", made.replace("image-sg::", "figure::"))
    return re.sub(r":alt: .*", f":alt: {title}", made)


def reset(gallery_conf: Any, fname: str) -> None:
    """Start every example with the look of the pages."""
    mpl.use("agg")
    mpl.rcdefaults()
    mpl.rc_file(os.environ["MATPLOTLIBRC"])
    mpl.rcParams["svg.hashsalt"] = Path(fname).stem


def in_few_words(app: Any, docname: str, source: list[str]) -> None:
    """Say what a download is in fewer words than sphinx-gallery does."""
    if docname.startswith("gallery/"):
        source[0] = re.sub(
            r":download:`Download (Jupyter notebook|Python source code|zipped): [^<`]*<",
            lambda found: f":download:`{_WORDS[found[1]]} <",
            source[0],
        )


_WORDS = {
    "Jupyter notebook": "Download as notebook",
    "Python source code": "Download as script",
    "zipped": "Download both, zipped",
}


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("source-read", in_few_words)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
