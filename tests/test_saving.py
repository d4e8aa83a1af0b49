"""Saved objects: what is read is what was written, and no changed file is read."""

from __future__ import annotations

import copy
import hashlib
import importlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

import greenfold
from greenfold import (
    EchoStateNetwork,
    Gain,
    GaussianStimuli,
    Kernel,
    MeasuredResponse,
    PooledReservoirClassifier,
    Projections,
    Reservoir,
    ReservoirClassifier,
    ReservoirRegressor,
    load,
    optimize,
    save,
    unfold,
)
from greenfold._base import model_files
from greenfold.datasets import synthetic_heartbeats
from greenfold.saving import _MODULES, ModelFileError

from .conftest import small


@pytest.fixture(scope="module")
def network() -> Reservoir:
    return Reservoir.random(8, tau=0.7, gain=Gain.quadratic(0.01), rng=0)


@pytest.fixture(scope="module")
def solved(network) -> Projections:
    stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    return optimize(unfold(network, n_steps=6, dt=0.5, order=1), stimuli, rng=0)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> bytes:
    """A small model file, with all that a classifier can have in it."""
    path = tmp_path_factory.mktemp("model") / "model.gfm"
    X, y = synthetic_heartbeats(12, n_steps=6, rng=0)
    ReservoirClassifier(n_neurons=4, random_state=0).fit(X, y).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    "gain",
    [Gain.linear(), Gain.quadratic(0.1), Gain.polynomial([0, 1, 0, 0.2]), Gain.tanh(5)],
)
def test_a_network_comes_back(tmp_path, gain):
    before = Reservoir.random(5, tau=0.3, gain=gain, rng=1)
    before.save(tmp_path / "it")
    after = load(tmp_path / "it")
    assert isinstance(after, Reservoir)
    np.testing.assert_array_equal(after.weights, before.weights)
    assert (after.tau, after.gain, after.allow_unstable) == (0.3, gain, False)
    y = np.linspace(-1, 1, 5)
    np.testing.assert_array_equal(after.gain(y), gain(y))


def test_an_unstable_network_comes_back_as_one(tmp_path):
    save(Reservoir(2 * np.eye(3), allow_unstable=True), tmp_path / "it")
    assert load(tmp_path / "it").allow_unstable


@pytest.mark.parametrize("order", [0, 1])
def test_a_kernel_comes_back(tmp_path, network, order, rng):
    unfolding = unfold(network, n_steps=6, dt=0.5, order=order)
    u, v = rng.standard_normal((8, 2)), rng.standard_normal(8)
    before = unfolding.kernels(u, v)
    save(before, tmp_path / "it")
    after = load(tmp_path / "it")
    assert isinstance(after, Kernel)
    X = rng.standard_normal((4, 2, 6))
    np.testing.assert_array_equal(after.decision_values(X), before.decision_values(X))
    assert (after.quadratic is None) == (order == 0)


def test_a_result_comes_back(tmp_path, solved, network):
    linear = optimize(
        unfold(network, n_steps=6, dt=0.5), GaussianStimuli.random(6, strength=1.0, rng=1)
    )
    for before in (solved, linear):
        before.save(tmp_path / "it")
        after = load(tmp_path / "it")
        assert isinstance(after, Projections)
        assert str(after) == str(before)
        assert after.validity == before.validity
        for name in ("u", "v", "history", "starts"):
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        for name in ("soft_margin", "upper_bound", "gap", "status", "n_iter", "wall_time"):
            assert getattr(after, name) == getattr(before, name), name


def test_what_can_not_be_saved_says_so_and_leaves_no_file(tmp_path, network):
    path = tmp_path / "it"
    own = replace(Gain.linear(), kind=None, name="mine", _function=lambda y: y + 0 * y)
    with pytest.raises(TypeError, match=r"^the gain mine is made of functions .*[^.]+\.$"):
        Reservoir(network.weights, gain=own).save(path)
    strange = replace(Gain.linear(), kind="cubic", name="cubic")
    with pytest.raises(TypeError, match="the gain cubic"):
        save(Reservoir(network.weights, gain=strange), path)
    with pytest.raises(TypeError, match="`obj` must be .* got dict"):
        save(cast("Any", {}), path)
    assert not list(tmp_path.iterdir())


def test_a_network_is_read_without_the_estimators(tmp_path, network):
    network.save(tmp_path / "it")
    code = (
        "import sys, greenfold\n"
        "greenfold.load(sys.argv[1])\n"
        "assert not {'sklearn', 'greenfold.optimizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "it"], check=True)


def test_every_kind_can_be_loaded():
    for module in set(_MODULES.values()):
        importlib.import_module(f"greenfold.{module}")
    assert set(model_files._KINDS) == set(_MODULES)


@pytest.mark.contract
@pytest.mark.parametrize("module", sorted(set(_MODULES.values())))
def test_a_kind_is_described_in_its_module(module):
    """A process that has imported nothing else can load its file."""
    kinds = {kind for kind, home in _MODULES.items() if home == module}
    code = (
        f"import greenfold.{module}\n"
        "from greenfold._base import model_files\n"
        f"assert {kinds} <= set(model_files._KINDS)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_equal_objects_give_equal_files(tmp_path, network):
    for name in "ab":
        network.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_numpy_and_zip_open_a_file(tmp_path, model):
    path = tmp_path / "model"
    path.write_bytes(model)
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["heads_0_u"].shape == (4, 1)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.comment.startswith(b"greenfold sha256 ")
    digest = hashlib.sha256(model[:-64]).hexdigest().encode()
    assert model[-64:] == digest


def test_memory_is_that_of_the_file(tmp_path):
    import tracemalloc

    Kernel(np.ones((1, 400_000))).save(tmp_path / "it")
    length = (tmp_path / "it").stat().st_size
    tracemalloc.start()
    load(tmp_path / "it")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The array, the copy that Kernel makes when it checks it, and buffers of a chunk.
    assert peak < 2.3 * length + 4 * 2**20


# Damage


def corrupted(whole: bytes, rng: np.random.Generator) -> bytes:
    """The file with one kind of damage, chosen at random."""
    content = bytearray(whole)
    n = len(content)
    kind = rng.integers(7)
    if kind == 0:  # some bits
        for at in rng.integers(n, size=rng.integers(1, 4)):
            content[at] ^= 1 << int(rng.integers(8))
    elif kind == 1:  # some bytes
        for at in rng.integers(n, size=rng.integers(1, 9)):
            content[at] = int(rng.integers(256))
    elif kind == 2:  # cut off
        del content[int(rng.integers(n)) :]
    elif kind == 3:  # two parts of equal length in each other's place
        length = int(rng.integers(1, n // 4))
        a = int(rng.integers(n // 2 - length))
        b = int(rng.integers(n // 2, n - length))
        first, second = content[a : a + length], content[b : b + length]
        content[a : a + length], content[b : b + length] = second, first
    elif kind == 4:  # something inserted, at the ends too
        at = int(rng.choice([0, n, int(rng.integers(n))]))
        content[at:at] = rng.bytes(int(rng.integers(1, 50)))
    elif kind == 5:  # something missing
        at = int(rng.integers(n))
        del content[at : at + int(rng.integers(1, 50))]
    else:  # whole members of the archive exchanged, with their names left in place
        with zipfile.ZipFile(io.BytesIO(whole)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
            comment = archive.comment
        names = list(parts)
        i, j = rng.choice(len(names), 2, replace=False)
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for k, name in enumerate(names):
                other = names[j] if k == i else names[i] if k == j else name
                archive.writestr(zipfile.ZipInfo(name), parts[other])
            archive.comment = comment
        content = bytearray(made.getvalue())
    return bytes(content)


def count_loaded(whole: bytes, path, n_files: int) -> int:
    rng = np.random.default_rng(n_files)
    loaded = done = 0
    while done < n_files:
        content = corrupted(whole, rng)
        if content == whole:  # the damage happened to change nothing
            continue
        path.write_bytes(content)
        try:
            load(path)
            loaded += 1
        except ModelFileError:
            pass
        done += 1
    print(f"{loaded} of {n_files} corrupted model files load")
    return loaded


def test_no_corrupted_file_loads(model, tmp_path):
    assert isinstance(load_bytes(model, tmp_path), ReservoirClassifier)
    assert count_loaded(model, tmp_path / "it", 1000) == 0


@pytest.mark.slow
def test_no_corrupted_file_of_many_loads(model, tmp_path):
    assert count_loaded(model, tmp_path / "it", 20_000) == 0


def places(told: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a description lie that hold no others."""
    if not isinstance(told, dict | list):
        yield at
        return
    for key, part in told.items() if isinstance(told, dict) else enumerate(told):
        yield from places(part, (*at, key))


OF_EVERY_KIND = {
    "network": lambda: Reservoir.random(
        3, tau=[0.1, 0.2, 0.3], gain=Gain.tanh(5), bias=0.1, rng=0
    ),
    "echo state network": lambda: EchoStateNetwork.random(3, leak=0.4, rng=0),
    "kernel": lambda: Kernel(np.ones((1, 2)), np.ones((1, 2, 1, 2))),
    "response": lambda: MeasuredResponse.fit(
        drive := np.random.default_rng(0).standard_normal((120, 1)),
        drive * [1, 2] + 0.1 * np.random.default_rng(1).standard_normal((120, 2)),
        n_steps=3,
    ),
    "result": lambda: optimize(
        unfold(small(n=3, gain=Gain.quadratic(0.01)), n_steps=4, dt=0.5, order=1),
        GaussianStimuli.random(4, strength=1.0, rng=1),
        rng=0,
    ),
    "classifier": lambda: ReservoirClassifier(n_neurons=3, random_state=0).fit(*beats()),
    "pooled": lambda: PooledReservoirClassifier(n_scales=1, n_readouts=16).fit(*beats()),
    "regressor": lambda: ReservoirRegressor(n_neurons=3).fit(*beats()),
}


def beats():
    return synthetic_heartbeats(12, n_steps=6, rng=0)


@pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")
@pytest.mark.parametrize("make", OF_EVERY_KIND.values(), ids=OF_EVERY_KIND)
def test_no_value_of_a_wrong_kind_is_read(make, tmp_path):
    """A value in the place of every other, in files whose checksum fits."""
    path, again = tmp_path / "it", tmp_path / "again"
    told, arrays = model_files.pack(make())
    model_files.write(path, told, arrays)
    load(path).save(again)
    assert again.read_bytes() == path.read_bytes()
    for *above, last in places(told):
        changed = holder = copy.deepcopy(told)
        for key in above:
            holder = holder[key]
        holder[last] = {"strange": None}
        model_files.write(path, changed, arrays)
        with pytest.raises(ModelFileError):
            load(path)


def test_a_gain_that_would_take_days_is_refused(tmp_path):
    told, arrays = model_files.pack(Reservoir.random(3, gain=Gain.sigmoid(), rng=0))
    told["gain"]["parameters"]["degree"] = 10**6
    model_files.write(tmp_path / "it", told, arrays)
    with pytest.raises(ModelFileError, match="a degree up to 2,000"):
        load(tmp_path / "it")


def load_bytes(content: bytes, folder):
    (folder / "whole").write_bytes(content)
    return greenfold.load(folder / "whole")


def test_a_description_that_would_lose_an_attribute_is_refused():
    @dataclass
    class Kept:
        numbers: np.ndarray
        forgotten: np.ndarray | None = None

    with pytest.raises(TypeError, match="'forgotten' that .* does not save"):
        model_files.Object(Kept, numbers=model_files.Numbers(None))
    model_files.Object(
        Kept, numbers=model_files.Numbers(None), forgotten=model_files.Numbers(None)
    )
