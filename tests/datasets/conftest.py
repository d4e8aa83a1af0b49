"""Small data files of every format, and the real ones if they are available."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

Series = list[np.ndarray]  # (n_channels, n_steps_i) each, NaN for missing
Writer = Callable[[Series, list[str]], bytes]

SUFFIXES = [".tsv", ".csv", ".txt", ".ts", ".arff", ".npz"]
MULTICHANNEL = [".ts", ".arff", ".npz"]


def one_sentence(message: str) -> bool:
    """True if a full stop comes at the end and nowhere else before a blank."""
    return message.endswith((".", "?")) and ". " not in message


@pytest.fixture(autouse=True)
def no_data_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests see neither the user's data nor his cache unless they ask for it."""
    monkeypatch.delenv("GREENFOLD_DATA", raising=False)
    monkeypatch.setenv("GREENFOLD_CACHE", str(tmp_path / "cache"))


# Read at import: the fixture above hides the variable from the tests themselves.
_REAL_DATA = os.environ.get("GREENFOLD_DATA")


@pytest.fixture(scope="session")
def real_data() -> Path:
    assert _REAL_DATA, "a test that asks for this fixture needs the data, and is marked so"
    return Path(_REAL_DATA)


@pytest.fixture(scope="session")
def aeon() -> ModuleType:
    """aeon's readers, the independent judge of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside aeon's own dependencies
        import aeon.datasets

    return aeon.datasets


def _number(value: float, missing: str) -> str:
    return missing if np.isnan(value) else repr(float(value))


def _table(separator: str) -> Writer:
    def write(series: Series, labels: list[str]) -> bytes:
        lines = [
            separator.join([label, *(_number(v, "NaN") for v in one[0])])
            for one, label in zip(series, labels, strict=True)
        ]
        return ("\n".join(lines) + "\n").encode()

    return write


def _ts(series: Series, labels: list[str]) -> bytes:
    equal = len({one.shape[1] for one in series}) == 1
    lines = [
        "# a comment",
        "@problemName Small",
        "@timeStamps false",
        f"@univariate {'true' if len(series[0]) == 1 else 'false'}",
        f"@equalLength {'true' if equal else 'false'}",
        f"@classLabel true {' '.join(sorted(set(labels)))}",
        "@data",
    ]
    for one, label in zip(series, labels, strict=True):
        channels = (",".join(_number(v, "?") for v in channel) for channel in one)
        lines.append(":".join([*channels, label]))
    return ("\n".join(lines) + "\n").encode()


def _arff(series: Series, labels: list[str]) -> bytes:
    n_steps = max(one.shape[1] for one in series)
    many = len(series[0]) > 1
    lines = ["% a comment", "@relation 'Small'"]
    lines += ["@attribute channels relational"] if many else []
    lines += [f"@attribute att{i} numeric" for i in range(n_steps)]
    lines += ["@end channels"] if many else []
    lines += [f"@attribute target {{{','.join(sorted(set(labels)))}}}", "@data"]
    for one, label in zip(series, labels, strict=True):
        padding = np.full((len(one), n_steps - one.shape[1]), np.nan)
        channels = [
            ",".join(_number(v, "?") for v in channel)
            for channel in np.hstack([one, padding])
        ]
        body = "\\n".join(channels)
        lines.append(f"'{body}',{label}" if many else f"{body},{label}")
    return ("\n".join(lines) + "\n").encode()


def _npz(series: Series, labels: list[str]) -> bytes:
    stream = io.BytesIO()
    if len({one.shape[1] for one in series}) == 1:
        np.savez(stream, X=np.stack(series), y=np.array(labels))
    else:
        lengths = np.array([one.shape[1] for one in series])
        X = np.full((len(series), len(series[0]), lengths.max()), np.nan)
        for row, one in zip(X, series, strict=True):
            row[:, : one.shape[1]] = one
        np.savez(stream, X=X, y=np.array(labels), lengths=lengths)
    return stream.getvalue()


WRITERS: dict[str, Writer] = {
    ".tsv": _table("\t"),
    ".csv": _table(","),
    ".txt": _table("  "),
    ".ts": _ts,
    ".arff": _arff,
    ".npz": _npz,
}


@pytest.fixture(scope="session")
def writers() -> dict[str, Writer]:
    """For each suffix a function of (series, labels) that gives a file's bytes."""
    return WRITERS


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240607)


@pytest.fixture
def store(writers, rng):
    """Put a data set into a folder and return its two splits."""

    def put(folder, name, suffix=".tsv", lengths=(4, 4), n_channels=(1, 1)):
        (folder / name).mkdir(parents=True, exist_ok=True)
        splits = []
        for part, n_steps, channels in zip(
            ("TRAIN", "TEST"), lengths, n_channels, strict=True
        ):
            series = list(rng.normal(size=(3, channels, n_steps)))
            path = folder / name / f"{name}_{part}{suffix}"
            path.write_bytes(writers[suffix](series, ["1", "2", "1"]))
            splits.append(np.stack(series))
        return splits

    return put
