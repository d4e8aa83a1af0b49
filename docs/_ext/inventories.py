"""Links to the pages of other projects, from lists of the names that occur here.

Nothing is asked of another server: a build needs no network, and a name that is on no list
is an error of the build.
"""

from __future__ import annotations

import zlib
from pathlib import Path

#: Where a project's pages are, the page of one of its names, and the names.
_PROJECTS = {
    "numpy": (
        "https://numpy.org/doc/stable/",
        "reference/generated/{}.html#{}",
        ("class numpy.ndarray", "class numpy.memmap", "function numpy.diff"),
    ),
    "numpy.random": (
        "https://numpy.org/doc/stable/reference/random/",
        "generator.html#{}",
        ("class numpy.random.Generator",),
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy/",
        "reference/generated/{}.html#{}",
        ("class scipy.sparse.sparray", "function scipy.sparse.save_npz"),
    ),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        "modules/generated/{}.html#{}",
        (
            "class sklearn.base.BaseEstimator",
            "class sklearn.base.ClassifierMixin",
            "class sklearn.base.RegressorMixin",
            "class sklearn.base.TransformerMixin",
        ),
    ),
    "aeon": (
        "https://www.aeon-toolkit.org/en/stable/",
        "api_reference/auto_generated/{}.html#{}",
        (
            "class aeon.classification.base.BaseClassifier",
            "class aeon.forecasting.base.BaseForecaster",
            "class aeon.regression.base.BaseRegressor",
        ),
    ),
    "sktime": (
        "https://www.sktime.net/en/stable/",
        "api_reference/auto_generated/{}.html#{}",
        (
            "class sktime.classification.base.BaseClassifier",
            "class sktime.forecasting.base.BaseForecaster",
            "class sktime.regression.base.BaseRegressor",
        ),
    ),
    "torch": (
        "https://docs.pytorch.org/docs/stable/",
        "tensors.html#{}",
        ("class torch.Tensor",),
    ),
}
_HEAD = """# Sphinx inventory version 2
# Project: {}
# Version: stable
# The remainder of this file is compressed using zlib.
"""


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the lists as inventories of Sphinx; return `intersphinx_mapping`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for project, (home, page, names) in _PROJECTS.items():
        pairs = (one.split() for one in names)
        rows = [f"{name} py:{kind} 1 {page.format(name, name)} -" for kind, name in pairs]
        path = folder / f"{project}.inv"
        listed = zlib.compress("\n".join([*rows, ""]).encode())
        path.write_bytes(_HEAD.format(project).encode() + listed)
        found[project] = (home, str(path))
    return found
