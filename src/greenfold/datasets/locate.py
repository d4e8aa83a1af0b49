"""Where data sets lie on this machine.

A data set is a folder ``<Name>/`` with the files ``<Name>_TRAIN.<suffix>`` and
``<Name>_TEST.<suffix>``, as the archives ship it. It may lie directly in the data
directory or one level down, in archive folders such as ``ucr/`` and ``uea/``.
"""

from __future__ import annotations

import difflib
import os
import re
from importlib import import_module
from pathlib import Path

from greenfold.datasets.errors import DataError
from greenfold.datasets.readers import SUFFIXES

__all__ = [
    "cache_directory",
    "check_name",
    "data_directory",
    "dataset_path",
    "datasets_below",
    "find_split",
    "how_to_supply",
    "list_datasets",
]

# A name becomes part of paths and addresses: no separators, no leading dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)


def check_name(name: str) -> None:
    """Reject a `name` that cannot be that of a data set."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DataError(
            "`name` must be the name of a data set such as 'ECG5000' (letters, digits, "
            f"'_' and '-'); got {name!r} instead."
        )


def data_directory(data_dir: str | Path | None = None) -> Path | None:
    """Return the data directory: the argument, else ``GREENFOLD_DATA``, else None."""
    given = data_dir or os.environ.get("GREENFOLD_DATA")
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        source = "`data_dir`" if data_dir else "The environment variable GREENFOLD_DATA"
        raise FileNotFoundError(
            f"{source} names {str(given)!r}, which is not a directory: create it or "
            "correct the name."
        )
    return path


def cache_directory() -> Path | None:
    """Return where downloads are kept; the folder need not exist yet.

    ``GREENFOLD_CACHE`` if it is set, else the platform's cache directory. None if
    neither is known because pooch is not installed; there are no downloads then.
    """
    given = os.environ.get("GREENFOLD_CACHE")
    if given:
        return Path(given).expanduser()
    try:
        pooch = import_module("pooch")
    except ImportError:
        return None
    return Path(pooch.os_cache("greenfold"))


def find_split(folder: Path, name: str, split: str) -> Path | None:
    """File of one split in a data set's folder, in the format preferred; None if none."""
    for suffix in SUFFIXES:
        for packed in ("", ".gz"):
            path = folder / f"{name}_{split.upper()}{suffix}{packed}"
            if path.is_file():
                return path
    return None


def list_datasets(data_dir: str | Path | None = None) -> dict[str, Path]:
    """Data sets that can be loaded without a download.

    Parameters
    ----------
    data_dir : str or Path, optional
        Data directory. Default: the environment variable ``GREENFOLD_DATA``.

    Returns
    -------
    dict of str to Path
        Folder of each data set found in the data directory and in the download cache, in
        alphabetical order. A set that lies in several places appears with the one that
        :func:`load_dataset` uses.
    """
    found: dict[str, Path] = {}
    for root in (data_directory(data_dir), cache_directory()):
        if root is not None:
            found = datasets_below(root) | found
    return dict(sorted(found.items()))


def datasets_below(root: Path) -> dict[str, Path]:
    """Folder of each data set in `root` or one level down, in a fixed order."""
    found: dict[str, Path] = {}
    tops = _folders(root)
    for folder in [*tops, *(f for top in tops for f in _folders(top))]:
        name = folder.name
        if name not in found and _NAME.fullmatch(name) and _is_dataset(folder):
            found[name] = folder
    return dict(sorted(found.items()))


def _folders(root: Path) -> list[Path]:
    """Visible sub-folders in a fixed order; hidden ones are unfinished downloads."""
    if not root.is_dir():
        return []
    return sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))


def _is_dataset(folder: Path) -> bool:
    return any(find_split(folder, folder.name, split) for split in ("train", "test"))


def dataset_path(name: str, data_dir: str | Path | None = None) -> Path:
    """Folder of a data set on this machine; never downloads.

    Parameters
    ----------
    name : str
        Name in the archive, such as ``"ECG5000"``.
    data_dir : str or Path, optional
        Data directory. Default: the environment variable ``GREENFOLD_DATA``.

    Returns
    -------
    Path
        The folder with the files of both splits.

    Raises
    ------
    FileNotFoundError
        If the data set is neither in the data directory nor in the download cache.
    """
    check_name(name)
    for root in (data_directory(data_dir), cache_directory()):
        if root is None:
            continue
        # Asked for directly rather than through a listing, which looks at every folder.
        for folder in [root / name, *(top / name for top in _folders(root))]:
            if _is_dataset(folder):
                return folder
    raise FileNotFoundError(
        f"The data set {name!r} is not on this machine: {how_to_supply(name, data_dir)}."
    )


def how_to_supply(name: str, data_dir: str | Path | None = None) -> str:
    """Half a sentence that says where to put the files of a data set."""
    root = data_directory(data_dir)
    target = (
        f"a folder {name} of the directory that GREENFOLD_DATA names"
        if root is None
        else root / name
    )
    known = {found.casefold(): found for found in list_datasets(data_dir) if found != name}
    close = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.7)
    hint = f" (or did you mean {known[close[0]]!r}?)" if close else ""
    return f"put {name}_TRAIN and {name}_TEST ({', '.join(SUFFIXES)}) into {target}{hint}"
