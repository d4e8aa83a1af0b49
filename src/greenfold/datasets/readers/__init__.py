"""Readers of the file formats in which time-series data sets are published."""

from greenfold.datasets.readers.arff import read_arff
from greenfold.datasets.readers.collection import Collection, Missing
from greenfold.datasets.readers.content import Source, read_bytes, read_lines
from greenfold.datasets.readers.files import (
    FORMATS,
    SUFFIXES,
    TABLES,
    read_series,
    suffix_of,
)
from greenfold.datasets.readers.labels import Labels
from greenfold.datasets.readers.npz import read_npy, read_npz, write_npz
from greenfold.datasets.readers.opened import OPENED, OpenedSeries, open_series
from greenfold.datasets.readers.table import read_table
from greenfold.datasets.readers.ts import read_ts

__all__ = [
    "FORMATS",
    "OPENED",
    "SUFFIXES",
    "TABLES",
    "Collection",
    "Labels",
    "Missing",
    "OpenedSeries",
    "Source",
    "open_series",
    "read_arff",
    "read_bytes",
    "read_lines",
    "read_npy",
    "read_npz",
    "read_series",
    "read_table",
    "read_ts",
    "suffix_of",
    "write_npz",
]
