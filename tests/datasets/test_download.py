"""The way from the archive's server to the cache, with a server on this machine."""

from __future__ import annotations

import hashlib
import io
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from greenfold.datasets import (
    DataError,
    download_dataset,
    load_dataset,
)
from greenfold.datasets import (
    archive as download,
)

TRAIN = "@classLabel true 1 2\n@data\n1.0,2.0:1\n3.0,4.0:2\n"
TEST = "@classLabel true 1 2\n@data\n5.0,6.0:2\n"
GOOD = {"Small_TRAIN.ts": TRAIN, "Small_TEST.ts": TEST}


def zipped(files: dict[str, str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return stream.getvalue()


@pytest.fixture
def archive(monkeypatch):
    """Files on a local server that stands in for the public archive; counts requests."""
    files: dict[str, bytes] = {}
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.removeprefix("/")
            requests.append(name)
            body = files.get(name)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setattr(
        download, "ARCHIVE_URL", f"http://127.0.0.1:{server.server_address[1]}"
    )
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        yield files, requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def left_in(cache) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_first_load_downloads_and_the_second_does_not(archive, cache):
    files, requests = archive
    files["Small.zip"] = zipped(GOOD | {"Small.txt": "about", "Small_TRAIN.arff": "…"})
    X, y = load_dataset("Small")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4], [5, 6]])
    assert y.tolist() == [1, 2, 2]
    load_dataset("Small", "test")
    assert requests == ["Small.zip"]
    assert left_in(cache) == ["Small", "Small.zip.sha256"]
    assert left_in(cache / "Small") == ["Small_TEST.ts", "Small_TRAIN.ts"]
    digest = hashlib.sha256(files["Small.zip"]).hexdigest()
    assert (cache / "Small.zip.sha256").read_text() == f"{digest}  Small.zip\n"


def test_files_in_a_folder_of_the_archive(archive, cache):
    files, _ = archive
    files["Small.zip"] = zipped({f"Small/{name}": text for name, text in GOOD.items()})
    assert download_dataset("Small") == cache / "Small"
    assert load_dataset("Small", "train")[1].tolist() == [1, 2]


def test_changed_archive_is_refused_until_the_record_is_deleted(archive, cache):
    files, _ = archive
    files["Small.zip"] = zipped(GOOD)
    download_dataset("Small")
    files["Small.zip"] = zipped(GOOD | {"Small_TEST.ts": TEST.replace("5.0", "7.0")})
    with pytest.raises(DataError, match=r"has changed.*Small\.zip\.sha256.*delete"):
        download_dataset("Small")
    # What was there stays, also if someone tampered with the record.
    np.testing.assert_array_equal(load_dataset("Small", "test")[0], [[5, 6]])
    (cache / "Small.zip.sha256").write_text("")
    with pytest.raises(DataError, match="has changed"):
        download_dataset("Small")
    (cache / "Small.zip.sha256").unlink()
    download_dataset("Small")
    np.testing.assert_array_equal(load_dataset("Small", "test")[0], [[7, 6]])
    assert left_in(cache) == ["Small", "Small.zip.sha256"]


def test_same_archive_again_is_accepted(archive, cache):
    files, requests = archive
    files["Small.zip"] = zipped(GOOD)
    download_dataset("Small")
    (cache / "Small" / "Small_TEST.ts").unlink()
    download_dataset("Small")
    assert (cache / "Small" / "Small_TEST.ts").is_file()
    assert len(requests) == 2


def corrupt(content: bytes) -> bytes:
    """Flip one byte inside the first member's compressed data."""
    position = content.index(b"Small_TRAIN.ts") + len("Small_TRAIN.ts") + 5
    return content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"<html>No such data set</html>", "intact zip"),
        (b"", "intact zip"),
        (zipped(GOOD)[:-30], "intact zip"),
        (corrupt(zipped(GOOD)), "intact zip"),
        (zipped({"Small_TRAIN.ts": TRAIN}), "both Small_TRAIN and Small_TEST"),
        (zipped({"Small_TRAIN.ts": TRAIN, "Small_TEST.arff": ""}), "both Small_TRAIN and"),
        (zipped({}), "both Small_TRAIN and"),
        (zipped(GOOD | {"../evil.txt": "x"}), "outside"),
        (zipped(GOOD | {"a/../../evil.txt": "x"}), "outside"),
        (zipped(GOOD | {"/evil.txt": "x"}), "outside"),
        (zipped(GOOD | {"..\\evil.txt": "x"}), "outside"),
        (zipped(GOOD | {"C:evil.txt": "x"}), "outside"),
    ],
)
def test_bad_archives_leave_nothing_behind(archive, cache, content, complaint):
    files, _ = archive
    files["Small.zip"] = content
    with pytest.raises(DataError, match=complaint) as caught:
        load_dataset("Small")
    assert "Small.zip" in str(caught.value)
    assert ". " not in str(caught.value)
    # Nor is a checksum recorded: the next, good download must not be refused.
    assert left_in(cache) == []
    assert not list(cache.parent.glob("**/evil*"))
    files["Small.zip"] = zipped(GOOD)
    assert len(load_dataset("Small")[1]) == 3


def test_too_large_an_archive(archive, cache, monkeypatch):
    files, _ = archive
    files["Small.zip"] = zipped(GOOD)
    monkeypatch.setattr(download, "MAX_UNPACKED_BYTES", 60)
    with pytest.raises(DataError, match="above the limit of 60"):
        load_dataset("Small")
    assert left_in(cache) == []


def test_unknown_name(archive, tmp_path):
    with pytest.raises(FileNotFoundError, match="has no data set 'Smal'") as caught:
        load_dataset("Smal", data_dir=tmp_path)
    assert str(tmp_path / "Smal") in str(caught.value)


def test_offline_says_in_one_sentence_where_to_put_the_files(
    archive, tmp_path, monkeypatch
):
    # Port 1 on this machine: nothing listens there, the connection is refused at once.
    monkeypatch.setattr(download, "ARCHIVE_URL", "http://127.0.0.1:1")
    with pytest.raises(FileNotFoundError) as caught:
        load_dataset("Small", data_dir=tmp_path)
    message = str(caught.value)
    assert "put Small_TRAIN and Small_TEST" in message
    assert str(tmp_path / "Small") in message
    assert message.count(". ") == 0
    assert message.endswith(".")


def test_download_can_be_forbidden(archive):
    files, requests = archive
    files["Small.zip"] = zipped(GOOD)
    with pytest.raises(FileNotFoundError, match="not on this machine"):
        load_dataset("Small", download=False)
    assert requests == []


def test_mirror(archive, monkeypatch):
    files, requests = archive
    files["mirror/Small.zip"] = zipped(GOOD)
    download_dataset("Small", url=f"{download.ARCHIVE_URL}/mirror")
    assert requests == ["mirror/Small.zip"]


def test_without_pooch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"greenfold\[data\]`, or put Small_TRAIN"):
        load_dataset("Small")
    monkeypatch.delenv("GREENFOLD_CACHE")
    with pytest.raises(ImportError, match="needs pooch"):
        load_dataset("Small")


def test_default_cache_is_the_platforms(archive, monkeypatch, tmp_path):
    files, _ = archive
    files["Small.zip"] = zipped(GOOD)
    monkeypatch.delenv("GREENFOLD_CACHE")
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "os" / project)
    assert download_dataset("Small") == tmp_path / "os" / "greenfold" / "Small"


def test_faster_process_wins(archive, cache, monkeypatch):
    # Another process puts its copy in place between our check and our rename.
    files, _ = archive
    files["Small.zip"] = zipped(GOOD)
    replace = download.os.replace

    def overtaken(source, target):
        if str(target) == str(cache / "Small"):
            (cache / "Small").mkdir()
            for name, text in GOOD.items():
                (cache / "Small" / name).write_text(text)
        return replace(source, target)

    monkeypatch.setattr(download.os, "replace", overtaken)
    assert download_dataset("Small") == cache / "Small"
    assert len(load_dataset("Small")[1]) == 3
