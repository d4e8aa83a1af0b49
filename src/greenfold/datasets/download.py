"""Download of data sets from the public archive, https://timeseriesclassification.com.

The archive publishes no checksums, and none are shipped with greenfold. The first
download of a data set is therefore taken on trust (over HTTPS); its SHA-256 is recorded
next to it in the cache, and every later download of the same set must match the record.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path, PureWindowsPath
from types import ModuleType

from greenfold._files import replacing
from greenfold.datasets.errors import DataError
from greenfold.datasets.locate import cache_directory, check_name, find_split, how_to_supply
from greenfold.datasets.readers import SUFFIXES

__all__ = ["ARCHIVE_URL", "download_dataset"]

ARCHIVE_URL = "https://timeseriesclassification.com/aeon-toolkit"

# The largest set of the archive unpacks to a few GiB; more is a mistake or an attack.
MAX_UNPACKED_BYTES = 8 * 2**30


def download_dataset(
    name: str, *, url: str | None = None, data_dir: str | Path | None = None
) -> Path:
    """Download a data set into the cache, replacing what the cache has of it.

    Only the files of the two splits are kept, in one format. The folder appears in the
    cache in one step, once it is complete.

    Parameters
    ----------
    name : str
        Name in the archive, such as ``"ECG5000"``.
    url : str, optional
        Address of a mirror that offers ``<name>.zip``. Default: the public archive.
    data_dir : str or Path, optional
        Data directory that the error messages advise to use. Default: the environment
        variable ``GREENFOLD_DATA``. The download itself goes to the cache.

    Returns
    -------
    Path
        The data set's folder in the cache: ``GREENFOLD_CACHE`` if that is set, else in
        the platform's cache directory.

    Raises
    ------
    ImportError
        If pooch is not installed; ``pip install greenfold[data]`` brings it.
    FileNotFoundError
        If the archive cannot be reached or has no such data set.
    DataError
        If what arrives is damaged, lacks a split, or differs from the first download.

    Notes
    -----
    The archive publishes no checksums. The first download of a set is taken on trust;
    its SHA-256 is recorded as ``<name>.zip.sha256`` in the cache, and a later download
    that differs from the record is refused. Delete the record to accept a new version.
    """
    check_name(name)
    otherwise = how_to_supply(name, data_dir)
    pooch = _import_pooch(name, otherwise)
    cache = cache_directory() or Path(pooch.os_cache("greenfold"))
    cache.mkdir(parents=True, exist_ok=True)
    address = f"{url or ARCHIVE_URL}/{name}.zip"
    # Inside the cache, so that the final step is a rename within one file system.
    with tempfile.TemporaryDirectory(dir=cache, prefix=".partial-") as work:
        archive = Path(work, f"{name}.zip")
        _fetch(pooch, address, archive, name, otherwise)
        digest = pooch.file_hash(str(archive), alg="sha256")
        record = cache / f"{name}.zip.sha256"
        _compare(digest, record, address)
        unpacked = Path(work, name)
        _unpack(archive, unpacked, name, address, otherwise)
        with replacing(record) as stream:
            stream.write(f"{digest}  {name}.zip\n".encode())
        return _move_into_place(unpacked, cache / name, Path(work, "replaced"))


def _import_pooch(name: str, otherwise: str) -> ModuleType:
    try:
        return import_module("pooch")
    except ImportError as error:
        raise ImportError(
            f"Downloading the data set {name!r} needs pooch: install it with `pip install "
            f"greenfold[data]`, or {otherwise}."
        ) from error


def _fetch(
    pooch: ModuleType, address: str, target: Path, name: str, otherwise: str
) -> None:
    """Download one file, with a progress bar if someone is watching."""
    watched = sys.stderr.isatty() and find_spec("tqdm") is not None
    fetch = pooch.HTTPDownloader(progressbar=watched, chunk_size=2**16, timeout=30)
    try:
        fetch(address, str(target), None)
    except OSError as error:  # requests' exceptions are OSErrors, with a response if any
        response = getattr(error, "response", None)
        if response is not None:
            response.close()  # pooch leaves the connection open when the server says no
        if response is not None and response.status_code == 404:
            raise FileNotFoundError(
                f"The archive has no data set {name!r} ({address} does not exist): check "
                f"the spelling, or {otherwise}."
            ) from error
        raise FileNotFoundError(
            f"The data set {name!r} is not on this machine and could not be downloaded "
            f"from {address} ({type(error).__name__}): connect and try again, or "
            f"{otherwise}."
        ) from error


def _compare(digest: str, record: Path, address: str) -> None:
    """Refuse an archive that is not the one first downloaded."""
    if not record.is_file():
        return
    recorded = record.read_text(encoding="utf-8", errors="replace").split()
    if recorded[:1] != [digest]:
        raise DataError(
            f"{address} has changed: its SHA-256 is {digest} but `{record}` has "
            f"{(recorded or ['nothing'])[0]} from the first download; delete that file to "
            "accept the new version."
        )


def _unpack(archive: Path, target: Path, name: str, address: str, otherwise: str) -> None:
    """Unpack the files of both splits, and nothing else, into a new folder."""
    try:
        with zipfile.ZipFile(archive) as content:
            chosen = _choose(content, name, address, otherwise)
            target.mkdir()
            for filename, member in chosen.items():
                # The target's name is ours, not the archive's; and zipfile never yields
                # more than the size the member declares, which `_choose` has checked.
                with content.open(member) as source, open(target / filename, "wb") as sink:
                    shutil.copyfileobj(source, sink)
    except (DataError, OSError):
        raise
    # Damage surfaces as almost any exception of zipfile and the decompressors; and the
    # archive's server answers a wrong name with a web page, not with an error.
    except Exception as error:
        raise DataError(
            f"{address} did not deliver an intact zip archive ({error}): check that "
            f"{name!r} is spelled as in the archive and try again."
        ) from error


def _choose(
    content: zipfile.ZipFile, name: str, address: str, otherwise: str
) -> dict[str, zipfile.ZipInfo]:
    """Members to keep: one file a split, both in the format preferred."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in content.infolist():
        # The Windows flavour sees both separators and drive letters.
        path = PureWindowsPath(member.filename)
        if path.anchor or ".." in path.parts:
            raise DataError(
                f"{address} holds a file that points outside the archive "
                f"({member.filename[:80]!r}): it is not safe, so nothing was unpacked."
            )
        members[path.name] = member
    for suffix in SUFFIXES:
        names = [f"{name}_{split}{suffix}" for split in ("TRAIN", "TEST")]
        if all(filename in members for filename in names):
            chosen = {filename: members[filename] for filename in names}
            size = sum(member.file_size for member in chosen.values())
            if size > MAX_UNPACKED_BYTES:
                raise DataError(
                    f"{address} would unpack to {size} bytes, above the limit of "
                    f"{MAX_UNPACKED_BYTES}: unpack it yourself and {otherwise}."
                )
            return chosen
    raise DataError(
        f"{address} does not hold both {name}_TRAIN and {name}_TEST in one of the formats "
        f"{', '.join(SUFFIXES)}: check the name, or {otherwise}."
    )


def _move_into_place(unpacked: Path, target: Path, aside: Path) -> Path:
    """Rename a complete folder to its final name."""
    if target.exists():  # a directory cannot be renamed onto one that has files
        os.replace(target, aside)
    try:
        os.replace(unpacked, target)
    except OSError:
        # Another process was faster with the same archive; its copy is as good.
        name = target.name
        if not (find_split(target, name, "train") and find_split(target, name, "test")):
            raise
    return target
