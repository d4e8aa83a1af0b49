"""What `import greenfold` imports, and the public names."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from pathlib import Path

import pytest

import greenfold

from . import parts

PACKAGES = [
    "greenfold",
    *(
        f"greenfold.{path.parent.name}"
        for path in sorted(Path(greenfold.__file__).parent.glob("*/__init__.py"))
    ),
]


def test_importing_greenfold_imports_no_optional_package():
    """In a process of its own: every public name is there, and no optional package."""
    # Where they are installed, scikit-learn imports pandas, and pandas pyarrow.
    unwanted = (parts.optional() | {"numba"}) - {"pyarrow"}
    code = (
        "import sys, greenfold\n"
        # Loaded when they are used.
        "assert 'greenfold.estimators.pooled' not in sys.modules\n"
        "assert {'PooledReservoirRegressor', 'estimators'} <= set(dir(greenfold))\n"
        "for name in greenfold.__all__: getattr(greenfold, name)\n"
        f"brought = {unwanted!r} & set(sys.modules)\n"
        "assert not brought, brought\n"
        "from greenfold.cli.app import app\n"  # what --help loads
        "assert 'numba' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [(["--help"], {"numpy"}), (["data", "list"], {"sklearn", "scipy.optimize"})],
)
def test_quick_commands_import_little(arguments, unwanted):
    code = (
        "import sys\n"
        "from greenfold.cli.app import run\n"
        f"try: run({arguments!r})\n"
        "except SystemExit as done: assert done.code == 0\n"
        f"brought = {unwanted!r} & set(sys.modules)\n"
        "assert not brought, brought\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_shadows_a_module(package):
    """`import greenfold.math.margins as m` must yield the module, not a function."""
    public = importlib.import_module(package)
    for entry in Path(public.__path__[0]).iterdir():
        if entry.stem.startswith("__"):
            continue
        found = getattr(public, entry.stem, None)
        assert found is None or isinstance(found, types.ModuleType), entry.stem
