"""Configuration of the documentation; `make docs` builds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpydoc.xref

import greenfold
from greenfold.apps.style import CYCLE

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
import inventories  # noqa: E402 (in the folder just named)

project = "greenfold"
HOME = "https://greenfold.github.io/greenfold/"
REPOSITORY = "https://github.com/greenfold/greenfold"
author = "The greenfold developers"
copyright = "the greenfold developers, BSD-3-Clause"
version = release = greenfold.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxext.opengraph",
    "mathml",
    "wrapping",
    "docstrings",
    "recorded",
    "explorer",
    "links",
    "gallery",
    "results",
    "dark",
]
exclude_patterns = [
    "_build",
    "_ext",
    "_ipython",
    "_reproduction",
    "_benchmarks",
    "_pictures",
    "_study",
    "_sweep",
    "_vote",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
]
templates_path = ["_templates"]

# Code in the pages is run at build time; an error in it is an error of the build.
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
# Cells with the tag hide-input, whose code draws a figure.
nb_code_prompt_show = "Show the code of the figure"
nb_code_prompt_hide = "Hide the code of the figure"
nb_render_markdown_format = "myst"
nb_mime_priority_overrides = [("html", "image/svg+xml", 0)]
# The kernels inherit this: one thread each, one look for all figures, drawn as SVG.
LOOK = HERE / "_build" / "matplotlibrc"
LOOK.parent.mkdir(exist_ok=True)
_cycle = [colour[1:] for colour in CYCLE]
LOOK.write_text(
    (HERE / "look.rc").read_text("utf-8") + f"axes.prop_cycle: cycler('color', {_cycle})\n",
    "utf-8",
)
os.environ["MATPLOTLIBRC"] = str(LOOK)
os.environ["IPYTHONDIR"] = str(HERE / "_ipython")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_update_mathjax = False
html_math_renderer = "mathml"
# Quotes and options such as --out are as they are typed.
smartquotes = False

# A name in single backticks in a docstring is a link where it is one of ours (docstrings).
default_role = "name"
autosummary_generate = True
toc_object_entries_show_parents = "hide"  # the class is in the title
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# Optional packages that some modules import; the reference is built without them.
autodoc_mock_imports = [
    "aeon",
    "distributed",
    "nest",
    "onnx",
    "reservoirpy",
    "sktime",
    "torch",
]
numpydoc_show_class_members = False
# Types of parameters lead to other projects' pages where they are named here, and int or
# None to no page at all.
numpydoc.xref.DEFAULT_LINKS.clear()
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "numpy.random.Generator": "numpy.random.Generator",
}
intersphinx_mapping = inventories.write(HERE / "_build" / "inventories")

# Every reference must resolve, but for a method that several systems have.
nitpicky = True
nitpick_ignore = [("py:obj", "pullback")]

# Examples become pages, notebooks and scripts; they are run here, in this process.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": "gallery.SECTIONS",
    "within_subsection_order": "gallery.Order",
    "filename_pattern": "plot_",
    "image_scrapers": ("gallery.svg",),
    "reset_modules": ("gallery.reset",),
    "backreferences_dir": "api/examples",
    "doc_module": ("greenfold",),
    "capture_repr": (),
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "download_all_examples": True,
    "log_level": {"backreference_missing": "info"},
}

# Prompts and outputs are not copied.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.output):not(.highlight-none) > div.highlight pre"

# What a link to a page looks like where it is shared.
ogp_site_url = HOME
ogp_site_name = "greenfold"
ogp_image = HOME + "_static/social.png"
ogp_image_alt = "State clouds of a reservoir: random against solved input projection"
ogp_social_cards = {"enable": False}
ogp_custom_meta_tags = ['<meta name="twitter:card" content="summary_large_image">']

html_theme = "pydata_sphinx_theme"
html_title = "greenfold"
html_baseurl = HOME
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["greenfold.css"]
html_js_files = ["zoom.js", "sidebar.js"]
html_show_sourcelink = False
html_context = {
    "default_mode": "auto"
}  # as the system; the switch remembers another choice
html_theme_options = {
    "logo": {
        "text": "greenfold",
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
        "alt_text": "greenfold, first page",
    },
    "github_url": REPOSITORY,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    # The list lies with the newest pages; every version's pages read it there.
    "switcher": {"json_url": "_static/switcher.json", "version_match": version},
    "check_switcher": False,
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
        "install",
        "tutorial",
        "explorer",
        "gallery/index",
        "reproduction",
        "benchmarks",
        "records",
        "glossary",
        "citing",
        "changelog",
    )
}
