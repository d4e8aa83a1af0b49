"""Data sets: readers of the common formats, the public archives, synthetic series."""

from .archive import (
    BinarySplit,
    dataset_path,
    download_dataset,
    ecg5000_paper,
    list_datasets,
    load_dataset,
)
from .arrays import OpenedSeries, read_npy, read_npz, write_npz
from .errors import DataError, MissingValueError
from .files import FORMATS, OPENED, SUFFIXES, TABLES, open_series, read_series
from .parsing import Collection, Labels, Missing, Source, read_bytes, read_lines, suffix_of
from .recordings import Recording, read_recording
from .synthetic import (
    channel_equalisation,
    mackey_glass,
    memory_task,
    narma,
    synthetic_heartbeats,
)
from .text import read_arff, read_table, read_ts

__all__ = [
    "FORMATS",
    "OPENED",
    "SUFFIXES",
    "TABLES",
    "BinarySplit",
    "Collection",
    "DataError",
    "Labels",
    "Missing",
    "MissingValueError",
    "OpenedSeries",
    "Recording",
    "Source",
    "channel_equalisation",
    "dataset_path",
    "download_dataset",
    "ecg5000_paper",
    "list_datasets",
    "load_dataset",
    "mackey_glass",
    "memory_task",
    "narma",
    "open_series",
    "read_arff",
    "read_bytes",
    "read_lines",
    "read_npy",
    "read_npz",
    "read_recording",
    "read_series",
    "read_table",
    "read_ts",
    "suffix_of",
    "synthetic_heartbeats",
    "write_npz",
]
