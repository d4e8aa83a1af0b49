"""Links to the pages of other projects, from lists of the names that occur here.

Nothing is asked of another server: a build needs no network, and a name that is on no list
is an error of the build.
"""

from __future__ import annotations

import zlib
from pathlib import Path

#: Project, where its pages are, and how the address of a name is made; names with a role.
_PROJECTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "numpy": (
        "https://numpy.org/doc/stable/",
        "reference/generated/{}.html",
        ("numpy.ndarray", "numpy.memmap", "numpy.diff"),
    ),
    "numpy.random": (
        "https://numpy.org/doc/stable/",
        "reference/random/generator.html",
        ("numpy.random.Generator",),
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy/",
        "reference/generated/{}.html",
        ("scipy.sparse.sparray", "scipy.sparse.save_npz"),
    ),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        "modules/generated/{}.html",
        (
            "sklearn.base.BaseEstimator",
            "sklearn.base.ClassifierMixin",
            "sklearn.base.RegressorMixin",
            "sklearn.base.TransformerMixin",
        ),
    ),
    "aeon": (
        "https://www.aeon-toolkit.org/en/stable/",
        "api_reference/auto_generated/{}.html",
        (
            "aeon.classification.base.BaseClassifier",
            "aeon.forecasting.base.BaseForecaster",
            "aeon.regression.base.BaseRegressor",
        ),
    ),
    "torch": (
        "https://docs.pytorch.org/docs/stable/",
        "tensors.html",
        ("torch.Tensor",),
    ),
}


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the lists as inventories of Sphinx; return `intersphinx_mapping`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for project, (home, page, names) in _PROJECTS.items():
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: stable\n"
        head += "# The remainder of this file is compressed using zlib.\n"
        rows = "".join(
            f"{name} py:{_kind(name)} 1 {page.format(name)}#{name} -\n" for name in names
        )
        path = folder / f"{project}.inv"
        path.write_bytes(head.encode() + zlib.compress(rows.encode()))
        found[project] = (home, str(path))
    return found


def _kind(name: str) -> str:
    last = name.rpartition(".")[2]
    return "class" if last[0].isupper() or last in _CLASSES else "function"


_CLASSES = ("ndarray", "memmap", "sparray")
