"""Load data sets by name from the data directory, the cache or the public archive.

A data set is a folder ``<Name>/`` with the files ``<Name>_TRAIN.<suffix>`` and
``<Name>_TEST.<suffix>``, as the archives ship it. It may be directly in the data
directory or one level down, in archive folders such as ``ucr/`` and ``uea/``.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
import tempfile
import zipfile
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PureWindowsPath
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._base.checks import must, require
from .._base.files import replacing
from .._base.messages import Argument
from . import files
from .files import SUFFIXES
from .parsed import DataError, Missing, SeriesArrays, naming, reason, refuse_data

ARCHIVE_URL = "https://timeseriesclassification.com/aeon-toolkit"
# The largest data set of the archive unpacks to a few GiB; more is an error or an attack.
MAX_UNPACKED_BYTES = 8 * 2**30
# A name becomes part of paths and URLs, so it has no separators and no leading dot.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
Folder: TypeAlias = str | Path | None
_SPLITS: tuple[Literal["train"], Literal["test"]] = ("train", "test")


def check_name(name: str) -> None:
    """Raise if `name` cannot be the name of a data set."""
    wanted = "be the name of a data set such as 'ECG5000' (letters, digits, '_' and '-')"
    ok = isinstance(name, str) and _NAME.fullmatch(name)
    refuse_data(not ok, Argument("name"), f" must {wanted}; got {name!r}.")


def data_directory(data_dir: Folder = None) -> Path | None:
    """Return the data directory: the argument, or ``GREENFOLD_DATA``, or None."""
    given = data_dir or os.environ.get("GREENFOLD_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    source = "`data_dir`" if data_dir else "The environment variable GREENFOLD_DATA"
    wrong = f"{source} names {str(given)!r}, which is not a directory"
    require(folder.is_dir(), f"{wrong}: create it or correct the name.", FileNotFoundError)
    return folder


def cache_directory() -> Path | None:
    """Return the cache folder, or None if pooch is not installed."""
    if given := os.environ.get("GREENFOLD_CACHE"):
        return Path(given).expanduser()
    with suppress(ImportError):
        return Path(import_module("pooch").os_cache("greenfold"))
    return None


def find_split(folder: Path, name: str, split: str) -> Path | None:
    """Return the file of one split in the preferred format, or None."""
    ends = (suffix + packed for suffix in SUFFIXES for packed in ("", ".gz"))
    paths = (folder / f"{name}_{split.upper()}{end}" for end in ends)
    return next((path for path in paths if path.is_file()), None)


def list_datasets(data_dir: Folder = None) -> dict[str, Path]:
    """List the data sets that load without a download.

    Parameters
    ----------
    data_dir : str or Path, optional
        As for :func:`load_dataset`.

    Returns
    -------
    dict of str to Path
        Folder of each data set in the data directory and in the download cache.
    """
    roots = (data_directory(data_dir), cache_directory())
    first, second = (datasets_below(root) if root else {} for root in roots)
    return dict(sorted((second | first).items()))


def datasets_below(root: Path) -> dict[str, Path]:
    """Return the folder of each data set in `root` or one level down, by name."""
    tops = _folders(root)
    below = [*tops, *(f for top in tops for f in _folders(top))]
    # If a name occurs several times, its first folder counts.
    valid = (f for f in reversed(below) if _NAME.fullmatch(f.name) and _is_dataset(f))
    return dict(sorted({f.name: f for f in valid}.items()))


def _folders(root: Path) -> list[Path]:
    """Return visible sub-folders in a fixed order; hidden folders are partial downloads."""
    if not root.is_dir():
        return []
    return sorted(f for f in root.iterdir() if f.is_dir() and not f.name.startswith("."))


def _is_dataset(folder: Path) -> bool:
    return any(find_split(folder, folder.name, split) for split in _SPLITS)


def dataset_path(name: str, data_dir: Folder = None) -> Path:
    """Return the folder of a local data set, or raise FileNotFoundError.

    ``name`` and ``data_dir`` are as for :func:`load_dataset`; nothing is downloaded.
    """
    check_name(name)
    for root in (data_directory(data_dir), cache_directory()):
        # Look for the folder directly: a listing would visit every folder.
        for folder in [root, *_folders(root)] if root else []:
            if _is_dataset(folder / name):
                return folder / name
    how = how_to_supply(name, data_dir)
    raise FileNotFoundError(f"The data set {name!r} is not on this machine: {how}.")


def how_to_supply(name: str, data_dir: Folder = None) -> str:
    """Return the part of a message that says where to put the files of a data set."""
    root = data_directory(data_dir)
    folder = f"a folder {name} of the directory that GREENFOLD_DATA names"
    known = {found.casefold(): found for found in list_datasets(data_dir) if found != name}
    close = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.7)
    hint = f" (or did you mean {known[close[0]]!r}?)" if close else ""
    files = f"{name}_TRAIN and {name}_TEST ({', '.join(SUFFIXES)})"
    return f"put {files} into {root / name if root else folder}{hint}"


def download_dataset(name: str, *, url: str | None = None, data_dir: Folder = None) -> Path:
    """Download a data set into the cache, replacing an older copy.

    Only the files of the two splits are kept, in one format. The folder appears in the
    cache only when it is complete.

    Parameters
    ----------
    name : str
        Name in the archive, such as ``"ECG5000"``.
    url : str, optional
        Address of a mirror that offers ``<name>.zip``. Default: the public archive.
    data_dir : str or Path, optional
        Data directory that error messages suggest, as for :func:`load_dataset`.

    Returns
    -------
    Path
        Folder of the data set in the cache, which is ``GREENFOLD_CACHE`` or else the cache
        of the platform.

    Raises
    ------
    ImportError, FileNotFoundError, DataError
        If pooch is not installed (``pip install greenfold[data]``); if the archive cannot
        be reached or has no such data set; if the download is damaged or lacks a split.

    Notes
    -----
    The archive publishes no checksums. The SHA-256 of the first download is recorded as
    ``<name>.zip.sha256`` in the cache, and a later download that differs raises a
    `DataError`. Delete the record to accept a new version.
    """
    check_name(name)
    otherwise = how_to_supply(name, data_dir)
    try:
        pooch = import_module("pooch")
    except ImportError as error:
        what = f"Downloading the data set {name!r} needs pooch"
        how = f"install it with `pip install greenfold[data]`, or {otherwise}."
        raise ImportError(f"{what}: {how}") from error
    cache = cache_directory() or Path(pooch.os_cache("greenfold"))
    cache.mkdir(parents=True, exist_ok=True)
    address = f"{url or ARCHIVE_URL}/{name}.zip"
    # Work inside the cache, so that the final step is a rename within one file system.
    with tempfile.TemporaryDirectory(dir=cache, prefix=".partial-") as work:
        archive, unpacked = Path(work, f"{name}.zip"), Path(work, name)
        _fetch(pooch, address, archive, name, data_dir)
        digest = pooch.file_hash(str(archive), alg="sha256")
        record = cache / f"{name}.zip.sha256"
        with naming(address):
            if record.is_file():
                known = [*record.read_text("utf-8", errors="replace").split(), "nothing"][0]
                before = f"but `{record}` has {known} from the first download"
                cure = "delete that file to accept the new version."
                other = f"has changed: its SHA-256 is {digest} {before}; {cure}"
                refuse_data(known != digest, other)
            _unpack(archive, unpacked, otherwise)
        with replacing(record) as stream:
            stream.write(f"{digest}  {name}.zip\n".encode())
        target = cache / name
        if target.exists():  # a directory cannot be renamed onto one that has files
            os.replace(target, Path(work, "replaced"))
        try:
            os.replace(unpacked, target)
        except OSError:
            # Another process finished the same download first; its copy is as good.
            if not all(find_split(target, name, split) for split in _SPLITS):
                raise
    return target


def _fetch(pooch: Any, address: str, target: Path, name: str, data_dir: Folder) -> None:
    """Download one file; show a progress bar on a terminal."""
    otherwise = how_to_supply(name, data_dir)
    watched = sys.stderr.isatty() and find_spec("tqdm") is not None
    fetch = pooch.HTTPDownloader(progressbar=watched, chunk_size=2**16, timeout=30)
    try:
        fetch(address, str(target), None)
    except OSError as error:  # requests' exceptions are OSErrors, some with a response
        why = f"could not be downloaded from {address} ({type(error).__name__})"
        if here := list_datasets(data_dir).get(name):
            again = f"connect and try again, or use the copy in {here}."
            raise FileNotFoundError(f"The data set {name!r} {why}: {again}") from error
        what = f"The data set {name!r} is not on this machine and {why}"
        what += ": connect and try again"
        response = getattr(error, "response", None)
        if response is not None:
            response.close()  # pooch leaves the connection open after a refusal
            if response.status_code == 404:
                gone = f"({address} does not exist): check the spelling"
                what = f"The archive has no data set {name!r} {gone}"
        raise FileNotFoundError(f"{what}, or {otherwise}.") from error


def _unpack(archive: Path, target: Path, otherwise: str) -> None:
    """Unpack only the files of both splits into a new folder."""
    try:
        with zipfile.ZipFile(archive) as content:
            chosen = _choose(content, target.name, otherwise)
            target.mkdir()
            for filename, member in chosen.items():
                # This is safe: the target's name is ours, not the archive's, and zipfile
                # never yields more than the declared size, which `_choose` has checked.
                with content.open(member) as source, open(target / filename, "wb") as sink:
                    shutil.copyfileobj(source, sink)
    except (DataError, OSError):
        raise
    # The server returns a web page for a wrong name, and damage can raise any error.
    except Exception as error:
        what = f"did not deliver an intact zip archive ({reason(error)})"
        cure = f"check that {target.name!r} is spelled as in the archive and try again."
        raise DataError(f"{what}: {cure}") from error


def _choose(content: zipfile.ZipFile, name: str, otherwise: str) -> dict[str, Any]:
    """Return the members to keep: one file per split, in the preferred format."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in content.infolist():
        # PureWindowsPath recognises both separators and drive letters.
        path = PureWindowsPath(member.filename)
        out = f"holds a file that points outside the archive ({member.filename[:80]!r})"
        outside = path.anchor or ".." in path.parts
        refuse_data(outside, f"{out}: it is not safe, so nothing was unpacked.")
        members[path.name] = member
    for suffix in SUFFIXES:
        names = [f"{name}_{split.upper()}{suffix}" for split in _SPLITS]
        if all(filename in members for filename in names):
            size = sum(members[filename].file_size for filename in names)
            large = f"would unpack to {size} bytes, above the limit of {MAX_UNPACKED_BYTES}"
            wrong = f"{large}: unpack it yourself and {otherwise}."
            refuse_data(size > MAX_UNPACKED_BYTES, wrong)
            return {filename: members[filename] for filename in names}
    both, formats = f"{name}_TRAIN and {name}_TEST", ", ".join(SUFFIXES)
    cure = f"check the name, or {otherwise}."
    raise DataError(f"does not hold both {both} in one of the formats {formats}: {cure}")


def load_dataset(
    name: str,
    split: Literal["train", "test"] | None = None,
    *,
    data_dir: Folder = None,
    missing: Missing = "error",
    download: bool = True,
) -> tuple[SeriesArrays, NDArray[Any]]:
    """Load a data set of the UCR or UEA archive by its name.

    The function looks for the files in the data directory and then in the download cache.
    If they are in neither, :func:`download_dataset` fetches them from
    https://timeseriesclassification.com into the cache.

    Parameters
    ----------
    name : str
        Name in the archive, such as ``"ECG5000"``.
    split : {"train", "test"} or None, default None
        The split to load; None joins both, with the training series first.
    data_dir : str or Path, optional
        Data directory with a folder for each data set, directly or in archive folders such
        as ``ucr/``. Default: the environment variable ``GREENFOLD_DATA``.
    missing : {"error", "keep", "trim"}, default "error"
        How to treat missing values; see :func:`read_series`.
    download : bool, default True
        Whether to download a data set that is not on this machine.

    Returns
    -------
    X, y
        As returned by :func:`read_series`. The errors are those of :func:`read_series` and
        :func:`download_dataset`.
    """
    must(split in (*_SPLITS, None), "split", "be 'train', 'test' or None", repr(split))
    data_directory(data_dir)  # a wrong directory is an error, not a reason to download
    try:
        folder = dataset_path(name, data_dir)
    except FileNotFoundError:
        if not download:
            raise
        folder = download_dataset(name, data_dir=data_dir)
    parts = []
    for part in (split,) if split else _SPLITS:
        path: Any = find_split(folder, name, part)
        none = f"The data set {name!r} in {folder} has no {part} split"
        if path is None:
            raise FileNotFoundError(f"{none}: {how_to_supply(name, data_dir)}.")
        parts.append(files.read_series(path, missing=missing))
    if split:
        return parts[0]
    (X, y), (X_test, y_test) = parts
    series = [np.atleast_2d(one) for one in (*X, *X_test)]
    both = f"{len(series[0])} channels in the training and {len(series[-1])} in the test"
    cure = "load and repair them one by one."
    differ = len({len(one) for one in series}) > 1
    refuse_data(differ, f"The data set {name!r} has {both} split: {cure}")
    y = np.concatenate([y, y_test])
    if isinstance(X, list) or isinstance(X_test, list) or X.shape[1:] != X_test.shape[1:]:
        return series, y
    return np.concatenate([X, X_test]), y


# Class 1 (normal) and class 2 (R-on-T premature ventricular contraction) as the archive
# ships them; they give the paper's 354 = 2 · 177 and 4332 = 2627 + 1590 + (292 - 177).
_COUNTS = {"train": (292, 177), "test": (2627, 1590)}


class BinarySplit(NamedTuple):
    """A two-class problem, ready to unpack: series (n, n_steps) and labels ±1 (n,)."""

    X_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def ecg5000_paper(data_dir: Folder = None) -> BinarySplit:
    """Load the heartbeat task of the paper: ECG5000, classes 1 and 2.

    The archive has 292 + 177 training series of these classes. Balancing the training set
    to 177 + 177 series, the first of each class, and appending the remaining 115 series of
    class 1 to the test set gives exactly the paper's sizes. Do not compare results with
    published accuracies, which are for all five classes and the archive's own split.

    Parameters
    ----------
    data_dir : str or Path, optional
        Data directory; see :func:`load_dataset`.

    Returns
    -------
    BinarySplit
        ``X_train`` (354, 140), ``y_train`` (354,), ``X_test`` (4332, 140) and ``y_test``
        (4332,). Class 1, the normal beats, is +1; class 2, the premature ventricular
        contractions, is -1.
    """
    (X_train, y_train), (X_test, y_test) = (_two_classes(one, data_dir) for one in _SPLITS)
    kept = y_train == -1
    kept[np.flatnonzero(~kept)[: _COUNTS["train"][1]]] = True
    X_test = np.concatenate([X_test, X_train[~kept]])
    y_test = np.concatenate([y_test, y_train[~kept]])
    return BinarySplit(X_train[kept], y_train[kept], X_test, y_test)


def _two_classes(
    split: Literal["train", "test"], data_dir: Folder
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return series of classes 1 and 2 of one split, with labels +1 and -1."""
    X, y = load_dataset("ECG5000", split, data_dir=data_dir)
    found, expected = (int(np.sum(y == 1)), int(np.sum(y == 2))), _COUNTS[split]
    if found != expected or isinstance(X, list) or X.ndim != 2:
        has, archive = ("{} + {}".format(*counts) for counts in (found, expected))
        wrong = f"The {split} split of 'ECG5000' found here has {has} series of classes 1"
        cure = "replace the files with the archive's own."
        raise DataError(f"{wrong} and 2, but the archive has {archive}: {cure}")
    both = (y == 1) | (y == 2)
    return X[both], np.where(y[both] == 1, 1, -1).astype(np.int64)
