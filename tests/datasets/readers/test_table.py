"""Tables of one series a line."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.datasets import DataError, read_table


@pytest.mark.parametrize("token", ["", "?", "NaN", "nan", "NA"])
def test_spellings_of_missing(token, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"1,0.5,{token},0.25\n")
    X, _ = read_table(path, missing="keep")
    np.testing.assert_array_equal(X, [[0.5, np.nan, 0.25]])


def test_byte_order_mark_and_windows_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbf1,2.5,3.5\r\n2,4.5,5.5\r\n\r\n")
    X, y = read_table(path)
    np.testing.assert_array_equal(X, [[2.5, 3.5], [4.5, 5.5]])
    assert y.tolist() == [1, 2]


def test_text_in_another_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("grün,1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8"):
        read_table(path)
