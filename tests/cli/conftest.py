"""Commands run in an empty folder, in this process or in a separate one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from greenfold.datasets import synthetic_heartbeats, write_npz

#: η is given, as its choice takes most of the time of a fit.
SMALL = ["--neurons", "15", "--eta", "10"]
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands see an empty folder, no data and no cache of this machine."""
    monkeypatch.delenv("GREENFOLD_DATA", raising=False)
    monkeypatch.setenv("GREENFOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def beats(tmp_path: Path) -> Path:
    """A small file of synthetic beats, two classes."""
    X, y = synthetic_heartbeats(60, n_steps=24, rng=3)
    write_npz(tmp_path / "beats.npz", X, np.where(y > 0, "normal", "ectopic"))
    return tmp_path / "beats.npz"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A data directory with one small set."""
    folder = tmp_path / "data" / "ucr" / "Tiny"
    folder.mkdir(parents=True)
    X, y = synthetic_heartbeats(60, n_steps=16, rng=4)
    for name, part in (("TRAIN", slice(40)), ("TEST", slice(40, 60))):
        lines = [
            "\t".join([str(label), *map(repr, map(float, one))])
            for one, label in zip(X[part], y[part], strict=True)
        ]
        (folder / f"Tiny_{name}.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


@pytest.fixture(scope="session")
def fitted_beats(tmp_path_factory) -> Path:
    """A model fitted to the file of beats with the options SMALL and the seed 0."""
    X, y = synthetic_heartbeats(60, n_steps=24, rng=3)
    folder = tmp_path_factory.mktemp("fitted")
    write_npz(folder / "beats.npz", X, np.where(y > 0, "normal", "ectopic"))
    invoke("fit", folder / "beats.npz", "--model", folder / "m.gfm", *SMALL)
    return folder / "m.gfm"


@pytest.fixture
def model(fitted_beats: Path, tmp_path: Path) -> str:
    """Its copy in the folder of the test, `m.gfm`."""
    shutil.copy(fitted_beats, tmp_path / "m.gfm")
    return "m.gfm"


@cache
def _command():
    """The commands, built once: that takes as long as many a test."""
    from typer.main import get_command

    from greenfold.cli.app import app

    return get_command(app)


def invoke(*arguments: object, code: int = 0, stdin: bytes | None = None):
    """Run a command in this process; it must end with that code."""
    import typer.testing

    from greenfold.cli.app import app

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", lambda _: _command())
        runner = typer.testing.CliRunner()
        result = runner.invoke(app, [str(one) for one in arguments], input=stdin)
    assert result.exit_code == code, (result.stdout, result.stderr)
    assert "Traceback" not in result.stderr
    return result


def spawn(*arguments: object, **options) -> subprocess.Popen:
    """Run a command in a process of its own."""
    command = [sys.executable, "-m", "greenfold", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=ENVIRONMENT, **(pipes | options))


def without_figures(monkeypatch: pytest.MonkeyPatch) -> list:
    """Reports hold their remark alone; return the rows of each.

    Their figures are drawn in the tests of the page.
    """
    from greenfold.apps.report import page

    made = []

    def write(path, _, rows, *, remark, **__):
        made.append(rows)
        return page.write_page(path, remark)

    monkeypatch.setattr(page, "write_report", write)
    return made


def one_sentence(text: str) -> None:
    """What a command says when it refuses."""
    assert text.startswith("greenfold: ")
    assert text.count("\n") == 1
    assert text.endswith((".\n", "?\n", "!\n"))
