"""Writing: complete or not at all, and nothing but regular files is replaced."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenfold._base.files import plain, replacing, write_json
from greenfold.datasets import read_series, write_npz

unix = pytest.mark.skipif(os.name != "posix", reason="links and pipes of Unix")


def put(path: Path, content: bytes = b"new") -> None:
    with replacing(path) as stream:
        stream.write(content)


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".partial-")]


@unix
def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "model"
    target.write_bytes(b"old")
    (tmp_path / "middle").symlink_to("deep/model")
    (tmp_path / "link").symlink_to("middle")
    put(tmp_path / "link")
    assert target.read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert leftovers(tmp_path) == leftovers(tmp_path / "deep") == []


@unix
def test_a_link_to_nothing_yet(tmp_path):
    (tmp_path / "link").symlink_to("later")
    put(tmp_path / "link")
    assert (tmp_path / "later").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@unix
def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as caught:
        put(tmp_path / "a")
    assert caught.value.errno == errno.ELOOP
    assert caught.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").is_symlink()


@unix
def test_a_fifo_is_sent_the_content(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    X, y = np.eye(3), np.array([1, 2, 3])
    (tmp_path / "fifo.npz").symlink_to("fifo")
    write_npz(tmp_path / "fifo.npz", X, y)
    reader.join(10)
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)
    # A zip archive as on the disk: its writer could go back.
    (tmp_path / "copy.npz").write_bytes(got[0])
    np.testing.assert_array_equal(read_series(tmp_path / "copy.npz")[0], X)


@unix
def test_a_fifo_gets_nothing_of_a_failed_body(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    wrong: Any = [b"half", None]
    with pytest.raises(TypeError), replacing(fifo) as stream:  # nobody reads
        stream.writelines(wrong)
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)


@unix
def test_a_device_is_not_replaced(tmp_path):
    # A node of our own: were this to fail as root, the machine's would be gone.
    node, link = tmp_path / "null", tmp_path / "link"
    try:
        os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        node.write_bytes(b"x")
    except OSError:
        pytest.skip("this user or file system has no device nodes")
    link.symlink_to("null")
    for path in (node, link):
        put(path)
        assert stat.S_ISCHR(os.stat(path).st_mode)
    assert link.is_symlink()


@unix
@pytest.mark.parametrize(
    "redirected", [pytest.param(False, marks=pytest.mark.contract), True]
)
def test_standard_output(tmp_path, redirected):
    """In a pipe and redirected to a file: after what was printed, before what follows."""
    code = (
        "import sys; from pathlib import Path\n"
        "from greenfold._base.files import replacing\n"
        "print('before')\n"
        "with replacing(Path(sys.argv[1])) as stream: stream.write(b'content\\n')\n"
        "print('after')\n"
    )
    # What /dev/stdout is, in a place where nothing can be destroyed.
    link = tmp_path / "stdout"
    link.symlink_to("/proc/self/fd/1")
    if not link.exists():
        pytest.skip("no /proc")
    command = [sys.executable, "-c", code, str(link)]
    if redirected:
        with open(tmp_path / "out", "wb") as out:
            subprocess.run(command, stdout=out, check=True, timeout=60)
        said = (tmp_path / "out").read_bytes()
    else:
        said = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
    assert said == b"before\ncontent\nafter\n"
    assert link.is_symlink()


@unix
def test_a_process_killed_while_it_writes_leaves_the_old_file(tmp_path):
    """At the last moment: all is written, but not yet moved to its place."""
    code = (
        "import os, sys, time; from pathlib import Path\n"
        "from greenfold._base.files import replacing\n"
        "os.replace = lambda *_: (print('begun', flush=True), time.sleep(60))\n"
        "with replacing(Path(sys.argv[1])) as stream: stream.write(b'new')\n"
    )
    target = tmp_path / "model"
    target.write_bytes(b"old")
    command = [sys.executable, "-c", code, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        process.kill()
    assert target.read_bytes() == b"old"
    assert len(leftovers(tmp_path)) == 1
    put(target)
    assert target.read_bytes() == b"new"


@unix
def test_sockets_and_folders_are_refused(tmp_path, monkeypatch):
    import socket

    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as ours:
        ours.bind("socket")
        with pytest.raises(OSError, match="neither a regular file"):
            put(Path("socket"))
        assert stat.S_ISSOCK(os.stat("socket").st_mode)
    with pytest.raises(IsADirectoryError) as caught:
        put(tmp_path)
    assert caught.value.filename == str(tmp_path)
    assert leftovers(tmp_path.parent) == []


@unix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_permissions_stay(tmp_path, mode):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    path.chmod(mode)
    with replacing(path) as stream:
        stream.write(b"new")
        (half,) = leftovers(tmp_path)
        # Never readable by more than the target, not even for a moment.
        assert stat.S_IMODE(os.stat(tmp_path / half).st_mode) & ~mode == 0
    assert stat.S_IMODE(path.stat().st_mode) == mode


@unix
def test_a_new_file_has_the_usual_permissions(tmp_path):
    put(tmp_path / "model")
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "model").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_errors_name_the_target(tmp_path):
    for path in (tmp_path / "absent" / "model", tmp_path / ("long" * 100)):
        with pytest.raises(OSError, match="No such file|too long") as caught:
            put(path)
        assert str(caught.value.filename) == str(path)
        assert ".partial-" not in str(caught.value)


@unix
def test_a_dangling_folder_is_named_as_it_was_given(tmp_path):
    (tmp_path / "link").symlink_to("absent/model")
    with pytest.raises(FileNotFoundError) as caught:
        put(tmp_path / "link")
    assert caught.value.filename == str(tmp_path / "link")
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_full_disk_names_the_target(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="No space") as caught, replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == []


def test_other_errors_pass_as_they_are(tmp_path):
    for error in (OSError("of another kind"), FileNotFoundError(2, "no", "elsewhere")):
        with (
            pytest.raises(OSError, match="kind|no") as caught,
            replacing(tmp_path / "model"),
        ):
            raise error
        assert caught.value is error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def fail():
        with replacing(target) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_plain_values():
    made = plain(
        {
            1: np.arange(3),
            "κ": np.float64(0.5),
            "none": [np.nan, np.inf, None, True],
            "path": Path("a"),
            "nested": ({"x": np.array([[1.0, np.nan]])},),
        }
    )
    assert made == {
        "1": [0, 1, 2],
        "κ": 0.5,
        "none": [None, None, None, True],
        "path": "a",
        "nested": [{"x": [[1.0, None]]}],
    }
    assert isinstance(made, dict)
    assert type(made["κ"]) is float
    with pytest.raises(TypeError, match="a set, which JSON cannot hold"):
        plain({"x": {1}})


def test_json_that_cannot_be_written_leaves_no_file(tmp_path):
    write_json(tmp_path / "a.json", plain({"x": np.eye(2)}))
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == {"x": [[1, 0], [0, 1]]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b.json", {"x": np.nan})
    assert os.listdir(tmp_path) == ["a.json"]
