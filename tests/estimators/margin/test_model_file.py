"""Model files: exact, atomic, and harmless whatever is in them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenfold import Gain, Reservoir, load
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.margin import ModelFileError, ReservoirClassifier

from ...sealed import seal


def beats(n_cases: int = 40):
    return synthetic_heartbeats(n_cases, n_steps=12, rng=0)


def fitted(**parameters) -> ReservoirClassifier:
    X, y = beats()
    drawn = {} if "reservoir" in parameters else {"n_neurons": 6}
    settled = {**drawn, "random_state": 0, "eta": 10.0, **parameters}
    return ReservoirClassifier(**settled).fit(X, y)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """A good model file."""
    path = tmp_path_factory.mktemp("model") / "model"
    fitted().save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def wanted() -> np.ndarray:
    """What the classifier of that file says."""
    return fitted().decision_function(beats()[0])


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("broken") / "model"


SAVED = {
    "defaults": {"eta": "cv"},
    "random projection": {"input_projection": "random"},
    "shared projection": {"input_projection": "shared"},
    "given projection": {"input_projection": np.arange(1.0, 7.0)},
    "order 1": {"order": 1, "alpha": 0.001, "input_projection": "random"},
    "order 2": {"order": 2, "alpha": 0.001, "input_projection": "random"},
    "own weights": {"reservoir": np.diag([0.1, 0.2, 0.3])},
    "own reservoir": {"reservoir": Reservoir.random(5, tau=0.7, rng=0)},
    "a circuit": {
        "reservoir": Reservoir.excitatory_inhibitory(
            6, tau=(0.7, 0.3), gain=Gain.sigmoid(degree=3), bias=0.2, rng=0
        ),
        "order": 1,
        "input_projection": "random",
    },
    "biased tanh": {
        "reservoir": Reservoir.random(5, gain=Gain.biased_tanh(0.5, degree=3), rng=0),
        "order": 1,
        "input_projection": "random",
    },
    "tanh": {
        "reservoir": Reservoir.random(5, gain=Gain.tanh(), rng=0),
        "order": 1,
        "input_projection": "random",
        "input_scaling": 0.1,
    },
    "exact": {
        "reservoir": Reservoir.random(5, gain=Gain.tanh(), rng=0),
        "order": "exact",
        "input_projection": "random",
    },
    "weights and noise": {"class_weight": {-1: 2.0, 1: 1.0}, "readout_noise": 0.1},
    "readout weights": {"readout": np.linspace(0, 1, 12)},
    "a generator": {"random_state": np.random.RandomState(0)},
}


# How far the expansion is to be trusted does not matter here.
@pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")
@pytest.mark.parametrize("name", SAVED)
def test_a_loaded_classifier_is_the_saved_one(tmp_path, name):
    X, _ = beats()
    before: Any = fitted(**SAVED[name])
    before.save(tmp_path / "model")
    after: Any = load(tmp_path / "model")
    for method in ("predict", "decision_function", "predict_proba", "transform"):
        np.testing.assert_array_equal(getattr(after, method)(X), getattr(before, method)(X))
    for attribute in ("u_", "v_", "soft_margin_", "soft_margin_bound_", "eta_", "n_iter_"):
        np.testing.assert_array_equal(getattr(after, attribute), getattr(before, attribute))
    assert after.validity_ == before.validity_
    assert after.reservoir_.gain.coefficients == before.reservoir_.gain.coefficients
    assert (after.eta_scores_ is None) == (before.eta_scores_ is None)
    assert after.threshold == before.threshold


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1.0, 2.0, 5.0]),
        np.array([True, False]),
        np.array(["a", "β", "c c"]),
        np.array(["x", "y"], dtype=object),
    ],
    ids=["numbers", "truth values", "text", "objects"],
)
def test_labels_of_every_kind(tmp_path, labels):
    X, _ = beats()
    y = labels[np.arange(len(X)) % len(labels)]
    before = ReservoirClassifier(n_neurons=5, eta=1.0, random_state=0).fit(X, y)
    before.save(tmp_path / "model")
    found = load(tmp_path / "model").predict(X)
    np.testing.assert_array_equal(found, before.predict(X))
    assert found.dtype == before.predict(X).dtype


def test_several_channels_of_any_length(tmp_path, rng):
    X = [rng.standard_normal((2, n)) for n in (5, 7, 7, 6, 4, 7)]
    before = ReservoirClassifier(n_neurons=5, eta=1.0).fit(X, [0, 1, 2, 0, 1, 2])
    before.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").decision_function(X), before.decision_function(X)
    )


def test_what_can_not_be_saved_leaves_no_file(tmp_path):
    from sklearn.exceptions import NotFittedError

    path = tmp_path / "model"
    with pytest.raises(NotFittedError):
        ReservoirClassifier().save(path)
    X, y = beats()
    odd = ReservoirClassifier(n_neurons=5, eta=1.0).fit(X, y)
    odd.classes_ = np.array([None, 1], dtype=object)
    with pytest.raises(TypeError, match="numbers or text"):
        odd.save(path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        load(path)


def test_the_file_is_plain_arrays(whole, scratch):
    scratch.write_bytes(whole)
    with np.load(scratch, allow_pickle=False) as archive:
        assert archive["heads_0_u"].shape == (6, 1)
    with zipfile.ZipFile(scratch) as archive:
        assert json.loads(archive.read("metadata.json"))["version"] == 3


# Damage


def must_fail(path, content: bytes, match: str = "cannot be read") -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=match):
        load(path)


@settings(max_examples=60, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_files_are_refused(whole, scratch, share):
    must_fail(scratch, whole[: int(share * len(whole))])


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_flipped_bytes_are_refused_or_harmless_where_the_seal_fits(
    whole, wanted, scratch, data
):
    """What the checks behind the checksum are for: a file that was sealed anew."""
    content = bytearray(whole[:-64])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(
            st.integers(1, 255)
        )
    digest = hashlib.sha256(content).hexdigest().encode()
    scratch.write_bytes(bytes(content) + digest)
    try:
        found = load(scratch)
    except ModelFileError:
        return
    # A bit that means nothing, such as a date: the classifier is the same.
    X, _ = beats()
    np.testing.assert_array_equal(found.decision_function(X), wanted)


@settings(max_examples=40, deadline=None)
@given(content=st.binary(max_size=300))
def test_garbage_is_refused(scratch, content):
    must_fail(scratch, content)


def repack(whole: bytes, compress: bool = False, **changes) -> bytes:
    """The same archive with some parts replaced (or removed, by None)."""
    names = {"metadata": "metadata.json"}
    replaced = {names.get(k, f"{k}.npy"): v for k, v in changes.items()}
    made = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(made, "w", kind) as new:
        for name in dict.fromkeys([*old.namelist(), *replaced]):
            content = replaced[name] if name in replaced else old.read(name)
            if content is not None:
                new.writestr(name, content)
    return seal(made.getvalue())


def npy(array, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), (1, 0), allow_pickle)
    return stream.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    raw = text.encode()
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + data


_F8 = "{{'descr': '<f8', 'fortran_order': False, 'shape': {}}}"


class Bomb:
    """Runs when it is unpickled."""

    def __reduce__(self):
        return (exec, ("import sys; sys.exploded = True",))


def test_hostile_parts_are_refused_and_nothing_runs(whole, scratch):
    metadata = json.loads(zipfile.ZipFile(io.BytesIO(whole)).read("metadata.json"))

    def described(**changes) -> bytes:
        return json.dumps({**metadata, **changes}).encode()

    code = "__import__('sys').__setattr__('exploded', True)"
    evil = np.array([Bomb()], dtype=object)
    parameters, network = metadata["parameters"], metadata["reservoir_"]
    code_gain = {"kind": "code", "parameters": {}}
    hostile = {
        "pickle inside": repack(whole, heads_0_u=npy(evil, allow_pickle=True)),
        "pickle alone": pickle.dumps(Bomb()),
        "code in a header": repack(whole, heads_0_u=header(code)),
        "huge shape": repack(whole, heads_0_u=header(_F8.format("(10**15,)"))),
        "huge shape, literal": repack(
            whole, heads_0_u=header(_F8.format("(999999999999, 8)"))
        ),
        "negative shape": repack(
            whole, heads_0_u=header(_F8.format("(-1, -8)"), bytes(64))
        ),
        "objects by name": repack(
            whole, heads_0_u=header(_F8.format("(1,)").replace("<f8", "|O"), bytes(8))
        ),
        "deep header": repack(whole, heads_0_u=header("(" * 3000)),
        "compressed": repack(whole, compress=True),
        "zip bomb": repack(whole, compress=True, heads_0_u=bytes(50_000_000)),
        "no metadata": repack(whole, metadata=None),
        "metadata not JSON": repack(whole, metadata=b"{"),
        "metadata a list": repack(whole, metadata=b"[]"),
        "deep metadata": repack(whole, metadata=b"[" * 100_000),
        "long metadata": repack(whole, metadata=b" " * 2_000_000),
        "other format": repack(whole, metadata=described(format="other")),
        "newer version": repack(whole, metadata=described(version=4)),
        "older version": repack(whole, metadata=described(version=2)),
        "unknown parameter": repack(
            whole, metadata=described(parameters={**parameters, "evil": 1})
        ),
        "wrong parameter": repack(
            whole, metadata=described(parameters={**parameters, "eta": -1})
        ),
        "unstable network": repack(whole, reservoir_weights=npy(9 * np.eye(6))),
        "missing array": repack(whole, heads_0_v=None),
        "wrong shape": repack(whole, heads_0_v=npy(np.ones(7))),
        "text for numbers": repack(whole, heads_0_v=npy(np.full(6, "x"))),
        "not finite": repack(whole, heads_0_v=npy(np.full(6, np.nan))),
        "one class": repack(whole, classes=npy([1, 1])),
        "more steps": repack(whole, metadata=described(n_features_in_=10**9)),
        "other kind": repack(whole, metadata=described(kind="reservoir")),
        "unknown kind": repack(whole, metadata=described(kind="spell")),
        "unknown gain": repack(
            whole, metadata=described(reservoir_={**network, "gain": code_gain})
        ),
        "sample of unknown classes": repack(whole, stream_sample_codes=npy(np.full(40, 7))),
        "sample longer than its weights": repack(
            whole, stream_sample_weights=npy(np.ones(39))
        ),
        "sample larger than the stream": repack(whole, stream_sample_seen=npy([1, 2])),
        "moments missing": repack(whole, stream_sample_seen=npy([100, 200])),
    }
    for name, content in hostile.items():
        must_fail(scratch, content)
        assert not hasattr(sys, "exploded"), name
        assert list(scratch.parent.iterdir()) == [scratch]
    must_fail(scratch, hostile["newer version"], match="format version 4")


def test_overlapping_parts_are_refused(whole, scratch):
    """A stored zip bomb: many entries of the directory share the same bytes."""
    stream = io.BytesIO(whole)
    with zipfile.ZipFile(stream, "a") as archive:
        member = archive.getinfo("reservoir_weights.npy")
        for i in range(2000):
            copy = zipfile.ZipInfo(f"copy{i}.npy")
            for name in ("header_offset", "CRC", "compress_size", "file_size"):
                setattr(copy, name, getattr(member, name))
            archive.filelist.append(copy)
            archive.NameToInfo[copy.filename] = copy
        archive._didModify = True  # pyright: ignore[reportAttributeAccessIssue]
    must_fail(scratch, seal(stream.getvalue()))


SAVER = """
import os, sys
import numpy as np
from greenfold import load
one, two = load(sys.argv[1]), load(sys.argv[2])
for _ in range(5):
    child = os.fork()
    if child == 0:
        while True:
            one.save(sys.argv[3])
            two.save(sys.argv[3])
    print(child, flush=True)
    os.waitpid(child, 0)
    sys.stdin.readline()
"""


@pytest.mark.contract
@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_killed_while_saving_the_file_is_old_or_new(tmp_path):
    X, _ = beats()
    models = [fitted(), fitted(eta=1.0)]
    sources = [tmp_path / f"source{i}" for i in range(2)]
    for model, path in zip(models, sources, strict=True):
        model.save(path)
    known = {model.decision_function(X).tobytes() for model in models}
    target = tmp_path / "target"
    models[0].save(target)
    command = [sys.executable, "-c", SAVER, *map(str, [*sources, target])]
    # One process, whose forks are killed after different times: it starts slowly.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        for wait in (0.0, 0.005, 0.01, 0.02, 0.04):
            saver = int(process.stdout.readline())
            time.sleep(wait)
            os.kill(saver, signal.SIGKILL)
            assert load(target).decision_function(X).tobytes() in known
            process.stdin.write("\n")
            process.stdin.flush()
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # whatever still saves
        process.communicate()
