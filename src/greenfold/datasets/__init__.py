"""Data sets: readers of the common formats, the public archives, synthetic series."""

from greenfold.datasets.archive import load_dataset
from greenfold.datasets.download import download_dataset
from greenfold.datasets.ecg5000 import BinarySplit, ecg5000_paper
from greenfold.datasets.errors import DataError, MissingValueError
from greenfold.datasets.locate import dataset_path, list_datasets
from greenfold.datasets.readers import (
    OpenedSeries,
    open_series,
    read_arff,
    read_npy,
    read_npz,
    read_series,
    read_table,
    read_ts,
    write_npz,
)
from greenfold.datasets.recordings import Recording, read_recording
from greenfold.datasets.synthetic import synthetic_heartbeats
from greenfold.datasets.tasks import (
    channel_equalisation,
    mackey_glass,
    memory_task,
    narma,
)

__all__ = [
    "BinarySplit",
    "DataError",
    "MissingValueError",
    "OpenedSeries",
    "Recording",
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
    "read_npy",
    "read_npz",
    "read_recording",
    "read_series",
    "read_table",
    "read_ts",
    "synthetic_heartbeats",
    "write_npz",
]
