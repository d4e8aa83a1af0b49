"""How the gallery draws and sorts: figures as SVG, in the look of the pages.

Every example also gets a card: one panel of its figure, drawn at the size of a thumbnail,
because a whole figure is illegible there. For phones, its panels stand one below the other
(``-narrow.svg``, which `dark` shows there).
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from sphinx_gallery.scrapers import matplotlib_scraper
from sphinx_gallery.sorting import ExplicitOrder

SECTIONS = ExplicitOrder(
    [f"../examples/{name}" for name in ("series", "networks", "hardware", "tasks")]
)
#: Examples that come first in their section; the others follow by name.
FIRST = ("plot_heartbeats", "plot_unaligned", "plot_connectome", "plot_delay_loop")
#: The panel that the card of an example shows, if it is not the first.
PANELS = {
    "plot_delay_loop": 2,
    "plot_equalisation": 1,
    "plot_excitatory_inhibitory": 1,
    "plot_forecast": 1,
    "plot_heartbeats": 1,
    "plot_kernel": 1,
    "plot_motion": 1,
    "plot_unaligned": 1,
    "plot_working_point": 1,
}
#: Width and height of a card in inches: small, so that its text stays readable on a page.
CARD = (2.4, 1.6)
#: Width of a figure on a phone in inches.
PHONE = 3.8


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
    source = Path(block_vars["src_file"])
    folder = Path(block_vars["image_path_iterator"].image_path).parent
    for number in plt.get_fignums()[:1]:
        draw_card(plt.figure(number), source.stem, folder)
        draw_narrow(plt.figure(number), source.stem, folder)
    given |= {"format": "svg", "metadata": {"Date": None}}
    made = matplotlib_scraper(block, block_vars, gallery_conf, **given)
    title = source.read_text("utf-8").splitlines()[1]
    # A plain figure, which `dark` doubles and which scrolls on a phone.
    made = re.sub(r"\n *:srcset: .*", "", made.replace("image-sg::", "figure::"))
    return re.sub(r":alt: .*", f":alt: {title}", made)


def draw_card(figure: Figure, name: str, folder: Path) -> None:
    """Draw one panel of a figure at the size of a thumbnail, without its legend."""
    card = pickle.loads(pickle.dumps(figure))
    shown = card.axes[PANELS.get(name, 0)]
    for axes in card.axes:
        if axes is not shown:
            axes.remove()
    shown.set_title("")
    shown.set_subplotspec(GridSpec(1, 1, figure=card)[0])
    legend = shown.get_legend()
    for one in [*shown.texts, *([legend] if legend else [])]:
        one.remove()
    for axis, most in (shown.xaxis, 24), (shown.yaxis, 18):  # letters that fit
        if len(axis.label.get_text()) > most:
            axis.label.set_text("")
    shown.tick_params(labelleft=True, labelbottom=True)  # of panels that share an axis
    card.set_layout_engine("constrained")
    card.set_size_inches(*CARD)
    card.savefig(folder / f"sphx_glr_{name}_card.svg", metadata={"Date": None})
    plt.close(card)


def draw_narrow(figure: Figure, name: str, folder: Path) -> None:
    """Draw a figure as wide as a phone, its panels one below the other."""
    narrow = pickle.loads(pickle.dumps(figure))
    panels = [axes for axes in narrow.axes if axes.get_subplotspec()]
    rows, _ = panels[0].get_subplotspec().get_gridspec().get_geometry()
    height = narrow.get_figheight() / rows
    for axes, place in zip(panels, GridSpec(len(panels), 1, figure=narrow), strict=True):
        axes.set_subplotspec(place)
        if axes.get_shared_y_axes().joined(axes, panels[0]):  # the first had its labels
            axes.set_ylabel(axes.get_ylabel() or panels[0].get_ylabel())
            axes.tick_params(labelleft=True)
    narrow.set_layout_engine("constrained", h_pad=0.1)
    narrow.set_size_inches(PHONE, height * len(panels))
    narrow.savefig(folder / f"sphx_glr_{name}_001-narrow.svg", metadata={"Date": None})
    plt.close(narrow)


def thumbnails(app: Any) -> None:
    """Show the cards in place of the thumbnails that sphinx-gallery makes."""
    for card in (Path(app.srcdir) / "gallery").rglob("*_card.svg"):
        shown = card.name.replace("_card", "_thumb")
        shutil.copyfile(card, card.parent / "thumb" / shown)


def reset(gallery_conf: Any, fname: str) -> None:
    """Start every example with the look of the pages."""
    mpl.use("agg")
    mpl.rcdefaults()
    mpl.rc_file(os.environ["MATPLOTLIBRC"])
    mpl.rcParams["svg.hashsalt"] = Path(fname).stem


def message_first(app: Any, docname: str, source: list[str]) -> None:
    """Fold the code that draws the figure; name downloads in few words."""
    if docname.startswith("gallery/"):
        folded = _DRAWING.sub(_fold, source[0])
        source[0] = re.sub(
            r":download:`Download (Jupyter notebook|Python source code|zipped): [^<`]*<",
            lambda found: f":download:`{_WORDS[found[1]]} <",
            folded,
        )


#: A block of code from its head to the figure, and from there to its end.
_HEAD = ".. code-block:: Python\n\n"
_DRAWING = re.compile(
    re.escape(_HEAD) + r"((?:    .*\n|\n)*?)(    figure, (?:.*\n)*?    plt\.show\(\)\n)"
)


def _fold(found: re.Match[str]) -> str:
    before, drawing = found.groups()
    shown = _HEAD + before + "\n" if before.strip() else ""
    hidden = textwrap.indent(_HEAD + drawing, "    ")
    return f"{shown}.. dropdown:: Show the code of the figure\n\n{hidden}"


_WORDS = {
    "Jupyter notebook": "Download as notebook",
    "Python source code": "Download as script",
    "zipped": "Download both, zipped",
}


def setup(app: Any) -> dict[str, Any]:
    """Connect to Sphinx."""
    app.connect("source-read", message_first)
    app.connect("builder-inited", thumbnails, priority=900)  # after sphinx-gallery
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
