"""Unguarded imports of optional parts are found, and guarded ones are not reported."""

from __future__ import annotations

import pytest

from . import conftest, parts

GUARDED = """
import pytest
from .helpers import made

NEEDS_TORCH = pytest.mark.needs("torch")
KINDS = ["array", pytest.param("numba", marks=pytest.mark.needs("numba"))]

@pytest.fixture
def frame():
    import aeon

class Test:
    pytestmark = pytest.mark.needs("dask")
    def test_method(self):
        import dask.array

@pytest.mark.needs("aeon")
def test_fixture(frame): ...

@NEEDS_TORCH
def test_named():
    from torch import nn

@pytest.mark.parametrize("kind", KINDS)
def test_parameter(kind):
    import numba

@pytest.mark.needs("distributed")
def test_what_comes_along():
    from dask import delayed

@pytest.mark.needs("h5py")
def test_helper():
    made()

def test_question():
    import importlib.util
    if importlib.util.find_spec("torch"):
        import torch
"""
HELPERS = """
def made():
    import h5py
"""


def found(**modules: str) -> list[str]:
    """Complaints about test modules of this text, each by the part after its place."""
    files = {parts.TESTS / f"{name}.py": text for name, text in modules.items()}
    return [one.partition(" ")[2] for one in parts.unguarded(files)]


def test_what_is_guarded_passes():
    assert found(test_it=GUARDED, helpers=HELPERS) == []


@pytest.mark.parametrize("mark", ['needs("aeon")', 'needs("distributed")', "NEEDS_TORCH"])
def test_a_guard_that_is_taken_away_is_missed(mark):
    text = GUARDED.replace(f"@pytest.mark.{mark}\n", "").replace(f"@{mark}\n", "")
    assert len(found(test_it=text, helpers=HELPERS)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import aeon",
        "from aeon.classification import base",
        "from greenfold.{}aeon import *",
        'pytest.importorskip("aeon")',
    ],
)
def test_an_unguarded_import_of_aeon_is_found(line):
    adapter = next(parts.SOURCE.rglob("aeon.py")).relative_to(parts.SOURCE / "greenfold")
    line = line.format("".join(f"{folder}." for folder in adapter.parts[:-1]))
    (said,) = found(test_it=line)
    assert said.startswith("imports aeon with the module")
    inside = f"def test_one():\n    {line}".replace("import *", "import x")
    assert found(test_it=inside) == [
        'imports aeon; mark test_one with `@pytest.mark.needs("aeon")`.'
    ]
    assert found(test_it=inside.replace("aeon", "numpy").replace("greenfold.", "")) == []


def test_a_test_that_reaches_an_unguarded_helper_is_named():
    user = "from .helpers import made\ndef test_one():\n    made()"
    (said,) = found(helpers=HELPERS, test_it=user)
    assert said == 'imports h5py; mark test_one with `@pytest.mark.needs("h5py")`.'


def test_examples_know_what_they_need():
    needed = {one: parts.needed_by_examples(*one) for one in parts.examples()}
    of_aeon = [one for one in needed if one[0].endswith(".aeon")]
    assert of_aeon
    assert all(needed[one] == {"aeon"} for one in of_aeon)
    assert {"dask"} in needed.values()  # imported by the example, not by its module
    assert sum(not one for one in needed.values()) > len(needed) / 2


def test_a_skipped_test_says_what_would_run_it():
    assert parts.reason("torch") == "needs torch: pip install 'greenfold[torch]'"
    assert parts.reason("distributed") == "needs distributed: pip install 'greenfold[dask]'"
    assert parts.reason("onnxruntime") == "needs onnxruntime: make heavy"
    every = [parts.reason(one) for one in ("torch", "torch", "dask", "onnxruntime", "data")]
    assert parts.summary([*every, "no /proc"]) == (
        "5 tests need parts that are not here: greenfold[dask,torch], onnxruntime "
        "(make heavy), data (set GREENFOLD_DATA to a folder of real data)"
    )
    assert parts.summary(["no /proc"]) == ""


def test_every_optional_part_can_be_installed():
    """`make heavy` or the name of an extra: nothing that a test needs is left to guess."""
    heavy = parts._packages([{"include-group": "heavy"}])
    used = {
        name
        for path in parts.TESTS.rglob("test_*.py")
        for name in parts._guards(parts.ast.parse(path.read_text("utf-8")))
    }
    known = heavy | parts.OTHERS.keys() | parts.BROUGHT_BY.keys()
    assert used & parts.optional() <= known


# -- The second run of CI ------------------------------------------------------------------

OF_ALL_ENDS = """
import pytest

@pytest.fixture
def broken():
    yield
    assert False

def test_passes(): ...
def test_skipped(): pytest.skip("needs a part")
def test_fails(): assert False
def test_breaks(broken): ...
@pytest.mark.xfail
def test_expected_to_fail(): assert False
@pytest.mark.contract
def test_left_out(): ...
"""


def test_what_remains_is_all_that_did_not_pass(tmp_path):
    class Seen:
        """Names of the tests that were begun."""

        def __init__(self) -> None:
            self.names: list[str] = []

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            self.names.append(nodeid.partition("::test_")[2])

    def run(*options: str) -> list[str]:
        seen = Seen()
        given = ["-q", f"--rootdir={tmp_path}", *options]
        pytest.main([*given, str(tmp_path / "test_it.py")], plugins=[conftest, seen])
        return seen.names

    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = contract", "utf-8")
    (tmp_path / "test_it.py").write_text(OF_ALL_ENDS, "utf-8")
    every = ["passes", "skipped", "fails", "breaks", "expected_to_fail", "left_out"]
    assert run("--remaining") == every  # there is no record
    assert run("-m", "not contract") == every[:-1]
    for _ in range(2):  # a run of what remains changes no record
        assert run("--remaining") == every[1:]
