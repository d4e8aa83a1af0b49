"""Damaged files raise DataError or are read; no other exception ever comes out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenfold.datasets import DataError, read_series

from .conftest import SUFFIXES

fuzz = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def series() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(3, 2, 4)).round(3)


@pytest.fixture
def small(writers, series):
    """Bytes of a valid file; two channels where the format has them."""

    def make(suffix: str) -> tuple[bytes, np.ndarray]:
        X = series if suffix in (".ts", ".arff", ".npz") else series[:, :1]
        return writers[suffix](list(X), ["1", "2", "1"]), np.squeeze(X)

    return make


def attempt(path, content: bytes):
    """Read damaged bytes; None if they are refused as they should be."""
    path.write_bytes(content)
    results = []
    for missing in ("error", "keep", "trim"):
        complaint = None
        try:
            results.append(read_series(path, missing=missing))
        except DataError as error:
            results.append(None)
            complaint = str(error)
        if complaint is not None:
            assert str(path) in complaint
            assert "\n" not in complaint
    for result in results:
        if result is not None:
            X, y = result
            assert len(X) == len(y) > 0
    # What is read without complaint has no gaps.
    if results[0] is not None:
        assert all(np.isfinite(one).all() for one in results[0][0])
    return results[0]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncation_at_every_position(suffix, small, tmp_path):
    content, X = small(suffix)
    path = tmp_path / f"cut{suffix}"
    outcomes = []
    for end in range(len(content)):
        result = attempt(path, content[:end])
        outcomes.append(result is not None)
        if result is None:
            continue
        # Complete series must be unharmed; the last may have lost digits of a value.
        got, _ = result
        assert isinstance(got, np.ndarray)
        if len(got) > 1:
            np.testing.assert_array_equal(got[:-1], X[: len(got) - 1])
        if suffix == ".npz":
            pytest.fail(f"an .npz file cut at byte {end} of {len(content)} was read")
    if suffix in (".ts", ".arff"):
        # The label comes last, so that a series is read only if it is complete.
        assert sum(outcomes) <= 2 * len(X)
    assert attempt(path, content) is not None


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data())
@fuzz
def test_changed_bytes(suffix, small, tmp_path, data):
    content = bytearray(small(suffix)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
    attempt(tmp_path / f"changed{suffix}", bytes(content))


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(content=st.binary(max_size=200))
@fuzz
def test_random_bytes(suffix, tmp_path, content):
    attempt(tmp_path / f"random{suffix}", content)


# fmt: off
PIECES = [
    "1", "2", "-3.5", "1e400", "?", "NaN", "inf", "_", ",", ":", ";", "'", '"', "(", ")",
    "{", "}", "@", "%", "#", "\\n", "a", "é", "\t", "\n", "\r", "\x00", "\x0c", "\u2028",
    " ", "@data", "@classLabel", "@equalLength", "@timeStamps", "@univariate", "true",
    "false", "@relation", "@end", "@attribute", "real", "relational", "{1,2}", "\n@data\n",
    "@classLabel true 1 2\n", "@attribute a real\n",
]
# fmt: on


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40))
@fuzz
def test_words_of_the_formats_in_any_order(suffix, tmp_path, pieces):
    attempt(tmp_path / f"words{suffix}", "".join(pieces).encode())


@pytest.mark.parametrize("suffix", [".ts", ".arff"])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=20))
@fuzz
def test_any_data_after_a_valid_header(suffix, small, tmp_path, pieces):
    header = small(suffix)[0].split(b"@data\n")[0] + b"@data\n"
    attempt(tmp_path / f"body{suffix}", header + "".join(pieces).encode())
