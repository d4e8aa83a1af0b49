"""Configuration of the documentation; `make docs` builds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import greenfold

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "greenfold"
author = "The greenfold developers"
copyright = "the greenfold developers, BSD-3-Clause"
version = release = greenfold.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "mathml",
    "docstrings",
    "recorded",
    "explorer",
]
exclude_patterns = ["_build", "_ext", "_reproduction", "_benchmarks", "_sweep"]
templates_path = ["_templates"]

# Code in the pages is run at build time; an error in it is an error of the build.
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]
# The kernels inherit this: one thread each, one look for all figures.
os.environ["MATPLOTLIBRC"] = str(HERE / "matplotlibrc")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"

# A name in single backticks in a docstring is a link where it is one of ours.
default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Optional packages that some modules import; the reference is built without them.
autodoc_mock_imports = ["aeon", "distributed", "nest", "onnx", "reservoirpy", "torch"]
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Every reference must resolve; no other project's pages are needed to build these.
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(numpy|scipy|sklearn|aeon|array_api_compat)\..*")]

html_theme = "pydata_sphinx_theme"
html_title = "greenfold"
html_static_path = ["_static"]
html_css_files = ["greenfold.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "greenfold"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {
    page: []
    for page in (
        "index",
        "tutorial",
        "explorer",
        "reproduction",
        "benchmarks",
        "citing",
        "changelog",
    )
}
