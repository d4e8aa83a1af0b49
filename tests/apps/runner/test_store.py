"""Files that say what made them, and whether they are whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenfold.apps.runner import SEAL, Job, State, Store

TEXT = f"a,b,{SEAL},µ\n" + "\n".join(f"{i},{i / 7!r}" for i in range(9)) + "\n"


def nothing(configuration, context):
    raise AssertionError("not called")


def job(path="a/b.csv", **configuration) -> Job:
    return Job(path, nothing, configuration)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    store.prepare()
    store.write(job(x=1), TEXT)
    return store, store.target(job()).read_bytes()


def test_a_result_is_finished_for_its_configuration_alone(written):
    store, content = written
    assert store.state(job(x=1)) is State.FINISHED
    assert store.state(job(x=2)) is State.STALE
    assert store.state(job("a/c.csv", x=1)) is State.ABSENT
    assert content.decode().splitlines()[1:] == TEXT.splitlines()[1:]


@given(data=st.data())
def test_no_damaged_file_passes(written, tmp_path_factory, data):
    _, content = written
    place = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["cut", "flip", "grow"]))
    if kind == "cut":
        damaged = content[:place]
    elif kind == "flip":
        bit = data.draw(st.integers(0, 7))
        damaged = (
            content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
        )
    else:
        damaged = content + content[: place + 1]
    other = Store(tmp_path_factory.getbasetemp() / "damaged")
    other.target(job()).parent.mkdir(parents=True, exist_ok=True)
    other.target(job()).write_bytes(damaged)
    assert other.state(job(x=1)) is not State.FINISHED


def test_every_cut_is_redone(written, tmp_path):
    """Wherever a file is cut off, it is recognised as ours and not as a stranger's."""
    _, content = written
    other = Store(tmp_path)
    other.target(job()).parent.mkdir(parents=True)
    for length in range(len(content)):
        other.target(job()).write_bytes(content[:length])
        assert other.state(job(x=1)) is State.DAMAGED, length


def test_a_file_of_somebody_else_is_foreign(tmp_path):
    store = Store(tmp_path)
    (tmp_path / "b.csv").write_text("Coffee,ROCKET,TEST,0\n1,2\n")
    assert store.state(job("b.csv")) is State.FOREIGN


@pytest.mark.parametrize("text", ["no seal\n", f"{SEAL}{SEAL}\n", f"late\n{SEAL}\n"])
def test_a_text_needs_one_seal_in_its_first_line(tmp_path, text):
    with pytest.raises(ValueError, match="`SEAL` once, in its first line"):
        Store(tmp_path).write(job(), text)


def test_json_has_room_for_a_seal(tmp_path):
    store = Store(tmp_path)
    store.write(job("x.json", n=3), json.dumps({"seal": SEAL, "values": [1, 2]}))
    assert store.state(job("x.json", n=3)) is State.FINISHED
    assert json.loads((tmp_path / "x.json").read_text())["values"] == [1, 2]


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", "a\\b"])
def test_results_stay_in_their_folder(path):
    with pytest.raises(ValueError, match="`path`"):
        job(path)


def test_a_failure_is_recorded_until_there_is_a_result(tmp_path):
    store = Store(tmp_path)
    store.write_failure(job(x=1), "It broke.", "line 3")
    (found,) = store.failures()
    assert (found.path, found.error) == ("a/b.csv", "It broke.")
    store.write(job(x=1), TEXT)
    assert store.failures() == []
