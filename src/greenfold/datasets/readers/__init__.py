"""Readers of the file formats in which time-series data sets are published."""

from greenfold.datasets.readers.arff import read_arff
from greenfold.datasets.readers.collection import Collection, Missing
from greenfold.datasets.readers.files import SUFFIXES, read_series
from greenfold.datasets.readers.npz import read_npz, write_npz
from greenfold.datasets.readers.table import read_table
from greenfold.datasets.readers.ts import read_ts

__all__ = [
    "SUFFIXES",
    "Collection",
    "Missing",
    "read_arff",
    "read_npz",
    "read_series",
    "read_table",
    "read_ts",
    "write_npz",
]
