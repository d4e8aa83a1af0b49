"""Data sets: readers of common formats, the public archives and synthetic series."""

from .arrays import OpenedSeries, write_npz
from .connectome import Connectome, read_connectome
from .downloads import (
    BinarySplit,
    dataset_path,
    download_dataset,
    ecg5000_paper,
    list_datasets,
    load_dataset,
)
from .files import open_series, read_series
from .parsed import DataError, MissingValueError
from .recordings import Recording, SampledSeries, read_recording, read_sampled
from .synthetic import (
    channel_equalisation,
    lorenz,
    mackey_glass,
    memory_task,
    narma,
    synthetic_heartbeats,
)

__all__ = [
    "BinarySplit",
    "Connectome",
    "DataError",
    "MissingValueError",
    "OpenedSeries",
    "Recording",
    "SampledSeries",
    "channel_equalisation",
    "dataset_path",
    "download_dataset",
    "ecg5000_paper",
    "list_datasets",
    "load_dataset",
    "lorenz",
    "mackey_glass",
    "memory_task",
    "narma",
    "open_series",
    "read_connectome",
    "read_recording",
    "read_sampled",
    "read_series",
    "synthetic_heartbeats",
    "write_npz",
]
