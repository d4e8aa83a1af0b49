"""Series in chunks against the same series in memory."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Dynamics,
    Gain,
    SampleStimuli,
    optimize,
    optimize_reservoir,
    unfold,
)
from greenfold.stimuli import chunks as sliced
from greenfold.stimuli.state_moments import Design, StateMoments

from ..chunked import from_array
from ..conftest import small, unit

#: Two sums of some hundred terms of order one, added up in another order.
ROUNDING = 1e-12
#: Chunks of any size, one of a single series, and a series cut in two.
UNEVEN = ((25, 1, 30, 4), (3, 5))

pytestmark = pytest.mark.needs("dask")


@pytest.fixture
def beats(rng):
    """Sixty series of two overlapping classes, 8 steps."""
    y = np.repeat([0, 1], [35, 25])[rng.permutation(60)]
    wave = np.sin(np.arange(8) / 2)
    X = rng.standard_normal((60, 8)) + np.where(y[:, None], wave, -wave) + 2.0
    return X, y


def mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.fixture(params=["dask", "mapped"])
def pair(request, beats, tmp_path, monkeypatch):
    """The same stimuli in memory and in chunks."""
    X, y = beats
    whole = SampleStimuli(X, y)
    if request.param == "dask":
        return whole, SampleStimuli.from_dask(from_array(X, chunks=UNEVEN), y)
    monkeypatch.setattr(sliced, "_CHUNK_BYTES", 11 * 8 * 8)  # eleven series per chunk
    found = SampleStimuli(mapped(X, tmp_path), y)
    assert found._chunks is not None
    assert found._chunks.sizes == (11, 11, 11, 11, 11, 5)
    return whole, found


def systems():
    """By kernels, by steps, and integrated."""
    quadratic, tanh = small(Gain.quadratic(0.05), n=6), small(Gain.tanh(), n=6)
    kernels = unfold(quadratic, n_steps=8, dt=0.2, order=1)
    assert kernels.prefers_kernels(60)
    steps = unfold(tanh, n_steps=8, dt=0.2, order=2)
    assert not steps.prefers_kernels(60)
    return {
        "kernels": kernels,
        "steps": steps,
        "dynamics": Dynamics(tanh, n_steps=8, dt=0.2, tol=1e-5),
    }


@pytest.mark.parametrize(
    "labels",
    [
        lambda y: y,
        lambda y: y == 1,
        lambda y: np.array(["no", "yes"])[y],
        lambda y: np.array(["no", "yes"], dtype=object)[y],
        lambda y: from_array(np.array([-3.5, 2.0])[y], chunks=7),
        lambda y: y.tolist(),
    ],
)
def test_the_linear_order_is_that_of_the_series_in_memory(beats, labels):
    X, y = beats
    given = labels(y)
    whole = SampleStimuli(X, given.compute() if hasattr(given, "compute") else given)
    found = SampleStimuli.from_dask(from_array(X, chunks=UNEVEN), given)
    assert found.classes.tolist() == whole.classes.tolist()
    assert found.mu == pytest.approx(whole.mu, abs=ROUNDING)
    assert found.psi == pytest.approx(whole.psi, abs=ROUNDING)
    assert found.scale == pytest.approx(whole.scale, rel=ROUNDING)


def test_channels_and_chunks_of_one_class(rng):
    X, y = rng.standard_normal((40, 2, 5)), np.repeat([0, 1], 20)
    whole = SampleStimuli(X, y)
    found = SampleStimuli.from_dask(from_array(X, chunks=(10, 1, 2)), y)
    assert found.psi == pytest.approx(whole.psi, abs=ROUNDING)
    assert found.centre == pytest.approx(whole.centre, abs=ROUNDING)


def test_few_long_series_keep_their_factor(rng):
    X, y = rng.standard_normal((12, 1500)), np.arange(12) % 2
    whole = SampleStimuli(X, y)
    found = SampleStimuli.from_dask(from_array(X, chunks=(5, -1)), y)
    probe = rng.standard_normal(1500)
    assert not isinstance(found.psi, np.ndarray)
    assert found.psi @ probe == pytest.approx(whole.psi @ probe, abs=1e-10)


@pytest.mark.parametrize("name", ["kernels", "steps", "dynamics"])
def test_moments_and_gradient_are_those_of_the_series_in_memory(pair, rng, name):
    whole, found = pair
    system = systems()[name]
    u, v = unit(rng, 6, 1), unit(rng, 6)
    a, b = whole.moment_map(system)(u), found.moment_map(system)(u)
    gradients = a.pull(v, 10.0), b.pull(v, 10.0)
    for one, other in ((a.M, b.M), (a.Sigma, b.Sigma), gradients):
        assert np.abs(one - other).max() <= ROUNDING * np.abs(one).max()


def test_single_precision_is_that_of_the_series_in_memory(beats, rng):
    X, y = beats
    whole = SampleStimuli(X, y)
    # No chunk of one series: its products with matrices are formed in another order.
    found = SampleStimuli.from_dask(from_array(X, chunks=((25, 31, 4), (3, 5))), y)
    system, u, v = systems()["dynamics"], unit(rng, 6, 1), unit(rng, 6)
    a, b = (one.rough_map(system, 1000, single=True)(u) for one in (whole, found))
    double = whole.moment_map(system)(u)
    # What a series gives in float32 is the same number in any batch; sums over series are
    # formed in float64. So an ascent goes the same way, however the series are cut.
    gradients = a.pull(v, 10.0), b.pull(v, 10.0)
    for one, other in ((a.M, b.M), (a.Sigma, b.Sigma), gradients):
        assert np.abs(one - other).max() <= ROUNDING * np.abs(one).max()
    assert 0 < np.abs(b.Sigma - double.Sigma).max() < 1e-5
    assert found.n_series == 60


@pytest.mark.parametrize("name", ["kernels", "dynamics"])
def test_the_solved_projections_are_the_same(pair, name):
    system = systems()[name]
    a, b = (optimize(system, one, 5.0, Ascent(n_starts=2)) for one in pair)
    assert a.n_iter == b.n_iter
    # The ascent multiplies rounding by some powers of ten.
    assert b.u == pytest.approx(a.u, abs=1e-8)
    assert b.soft_margin == pytest.approx(a.soft_margin, rel=1e-10)


def test_the_papers_alternation_reads_the_same_kernels(pair, rng):
    whole, found = pair
    a, C = rng.standard_normal(8), rng.standard_normal((8, 8))
    for one, other in zip(
        whole.kernel_margin(a, C + C.T, 3.0),
        found.kernel_margin(a, C + C.T, 3.0),
        strict=True,
    ):
        assert np.asarray(other) == pytest.approx(np.asarray(one), rel=1e-10)


def test_some_series_are_the_same_ones(pair):
    a, b = (one.points(None, 20) for one in pair)
    assert a.X.shape[0] < 60
    assert pytest.approx(a.X, abs=ROUNDING) == b.X
    assert b.first == pytest.approx(a.first, abs=1e-15)


def test_a_diverging_series_is_named_by_its_place(beats):
    X, y = beats
    X = X.copy()
    X[43] *= 50
    chunks = from_array(X, chunks=(20, -1))
    system = Dynamics(small(Gain.quadratic(0.5), n=6), n_steps=8, dt=0.5)
    for stimuli in (
        SampleStimuli(X, y, normalize=None),
        SampleStimuli.from_dask(chunks, y, normalize=None),
    ):
        with pytest.raises(FloatingPointError, match="of series 43;"):
            stimuli.moments(system, np.ones(6))


def test_stimuli_accumulated_apart_are_merged_by_their_moments(rng):
    X, y = rng.standard_normal((50, 6)) + 1, np.arange(50) % 2
    whole = SampleStimuli(X, y, class_weight=None, length=2.0)
    parts = [
        SampleStimuli(X[:7], y[:7]),
        SampleStimuli.from_batches([(X[7:20], y[7:20])], normalize=None),
        SampleStimuli.from_dask(from_array(X[20:], chunks=(11, -1)), y[20:]),
    ]
    found = SampleStimuli.merge(parts, class_weight=None, length=2.0)
    assert found.mu == pytest.approx(whole.mu, abs=ROUNDING)
    assert found.psi == pytest.approx(whole.psi, abs=ROUNDING)
    assert found.class_share == pytest.approx(whole.class_share)
    with pytest.raises(ValueError, match="accumulated from batches and keep no series"):
        found.series
    with pytest.raises(ValueError, match=r"`parts` must have the same labels; .*\[2, 3\]"):
        SampleStimuli.merge([parts[0], SampleStimuli(X, y + 2)])
    with pytest.raises(ValueError, match=r"`parts` must agree in shape; .*\(1, 5\)"):
        SampleStimuli.merge([parts[0], SampleStimuli(X[:, :5], y)])
    with pytest.raises(TypeError, match="`parts` must be one or more SampleStimuli"):
        SampleStimuli.merge([])


def test_a_site_with_one_class_is_part_of_a_merge(rng):
    X, y = rng.standard_normal((50, 6)) + 1, np.sort(np.arange(50) % 2)
    told: Any = {"classes": [0, 1]}
    parts = [
        SampleStimuli(X[:7], y[:7], **told),
        SampleStimuli.from_batches([(X[7:20], y[7:20])], **told),
        SampleStimuli.from_dask(from_array(X[20:40], chunks=(11, -1)), y[20:40]),
        SampleStimuli.from_dask(from_array(X[40:], chunks=(11, -1)), y[40:], **told),
    ]
    whole, found = SampleStimuli(X, y), SampleStimuli.merge(parts)
    assert found.mu == pytest.approx(whole.mu, abs=ROUNDING)
    assert found.psi == pytest.approx(whole.psi, abs=ROUNDING)
    system = unfold(small(), n_steps=6, dt=0.1)
    best, same = optimize(system, whole), optimize(system, found)
    # κ is quadratic in what rounding moves, and found to a relative gap of 1e-4.
    assert same.soft_margin == pytest.approx(best.soft_margin, rel=1e-6)
    alone = SampleStimuli.merge(parts[:2])
    assert alone.class_share.tolist() == [1, 0]
    with pytest.raises(ValueError, match="`stimuli` hold only class 0; merge them"):
        optimize(system, alone)
    with pytest.raises(ValueError, match=r"be among `classes` \[0, 1\]; got \[2\]"):
        SampleStimuli(X, y + 1, **told)
    with pytest.raises(ValueError, match="`labels` must hold exactly two classes"):
        SampleStimuli(X[:7], y[:7])


def attacked(X, y):
    import dask.array as da

    chunks = from_array(X, chunks=(20, -1))
    nan = X.copy()
    nan[45, 3] = np.nan
    unknown = chunks[chunks[:, 0] > -100]
    return {
        "nan": (from_array(nan, chunks=(20, -1)), y, "got nan in case 45, channel 0"),
        "one class": (chunks, 0 * y, "`labels` must hold exactly two classes; got 1: 0"),
        "three classes": (chunks, np.arange(60) % 3, "exactly two classes; got 3"),
        "lengths": (chunks, y[:-1], r"one entry per series, shape \(60,\); got .*\(59,\)"),
        "unknown": (unknown, y, "chunks of unknown size"),
        "empty": (chunks[:0], y[:0], "`X` is empty: it has shape"),
        "axes": (chunks[:, 0], y, "`X` must have shape"),
        "object": (chunks.astype(object), y, "fixed width; got dtype object"),
        "text": (from_array(X.astype(str), chunks=9), y, "fixed width; got dtype <U"),
        "complex": (chunks * 1j, y, "fixed width; got dtype complex128"),
        "labels": (chunks, [None] * 60, "`labels` must be of one type; got NoneType"),
        "array": (X, y, "`X` must be a dask array; got ndarray"),
        "hidden": (
            da.map_blocks(lambda b: b.astype(object), chunks, dtype=float, meta=X[:0]),
            y,
            "fixed width; got dtype object",
        ),
        "short": (
            da.map_blocks(lambda b: b[:-1], chunks, chunks=chunks.chunks, meta=X[:0]),
            y,
            r"declares 20 series for the chunk from series \d+ on, which holds 19",
        ),
    }


def test_what_cannot_be_done_is_said_in_one_sentence(beats):
    for how, (X, y, sentence) in attacked(*beats).items():
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            SampleStimuli.from_dask(X, y)
        said = str(caught.value)
        assert "\n" not in said, how
        assert said.endswith("."), how


def test_series_in_chunks_are_not_brought_into_memory(pair):
    with pytest.raises(ValueError, match="are not loaded into memory"):
        pair[1].series


def test_what_travels_is_small(beats, monkeypatch):
    """Of an evaluation nothing as large as the series comes back."""
    from dask import base as made

    X, y = beats
    stimuli = SampleStimuli.from_dask(from_array(X, chunks=(20, -1)), y)
    system, u = systems()["steps"], np.ones((6, 1)) / 6**0.5
    at = stimuli.moment_map(system)
    sizes, original = [], made.compute

    def compute(*parts):
        found = original(*parts)
        sizes.extend(len(pickle.dumps(one)) for one in found)
        return found

    monkeypatch.setattr(made, "compute", compute)
    moments = at(u)
    assert isinstance(moments, StateMoments)
    moments.pull(np.ones(6), 1.0)
    assert len(sizes) == 2
    assert max(sizes) < 8 * 36 + 500 < X.nbytes


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["kernels", "dynamics"])
def test_chunks_may_be_arrays_of_another_library(beats, rng, name):
    """Where a worker holds its chunks on a GPU, states and sums are formed there."""
    import torch

    X, y = beats
    chunks = from_array(X, chunks=(UNEVEN[0], 8))
    moved = chunks.map_blocks(torch.as_tensor, dtype=float, meta=np.empty((0, 0)))
    found, whole = SampleStimuli.from_dask(moved, y), SampleStimuli(X, y)
    u, v = unit(rng, 6, 1), unit(rng, 6)
    system = systems()[name]
    a: Any = whole.moment_map(system)(u)
    b: Any = found.moment_map(system)(u)
    assert isinstance(b._states[0].compute(), torch.Tensor)
    gradients = a.pull(v, 10.0), b.pull(v, 10.0)
    for one, other in ((a.M, b.M), (a.Sigma, b.Sigma), gradients):
        assert isinstance(other, np.ndarray)
        assert np.abs(one - other).max() <= ROUNDING * np.abs(one).max()


@pytest.mark.needs("torch")
def test_a_chunk_on_a_device_travels_through_the_host(beats, monkeypatch):
    """dask moves no CUDA tensors; a processor plays the GPU."""
    import torch

    X, _ = beats
    arrived = []

    def on_device(host, device):
        assert isinstance(host, np.ndarray)
        arrived.append(device)
        return torch.asarray(host)

    monkeypatch.setattr("greenfold._base.arrays.on_gpu", lambda X: True)
    monkeypatch.setattr("greenfold._base.arrays.on_device", on_device)
    design = Design(torch.asarray(X[:, None]), np.ones(60), np.ones(60))
    found = pickle.loads(pickle.dumps(design))
    assert arrived == ["cuda"]
    assert torch.equal(found.X, design.X)
    # A scheduler that takes it for small would send it around.
    assert design.__sizeof__() >= X.nbytes


@pytest.mark.needs("torch")
def test_a_device_that_is_not_there_is_named(beats):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    X, y = beats
    with pytest.raises(ValueError, match="`device` = 'cuda' does not exist"):
        SampleStimuli.from_dask(from_array(X, chunks=(20, 8)), y, device="cuda")
    with pytest.raises(ValueError, match="`device` must be 'cpu', 'cuda'"):
        SampleStimuli.from_dask(from_array(X, chunks=(20, 8)), y, device="gpu")


def test_states_of_a_lazy_array_are_refused(beats):
    """Work in place would be lost on it."""
    X = from_array(beats[0], chunks=(20, 8))
    for system in systems().values():
        with pytest.raises(TypeError, match="`X` is a dask array"):
            system.states(X, np.ones(6))


def test_what_is_no_client_is_named(beats):
    X, y = beats
    client: Any = "tcp://a:1"
    with pytest.raises(TypeError, match=r"`client` must be a distributed.Client; got str"):
        SampleStimuli.from_dask(from_array(X, chunks=(20, 8)), y, client=client)


def test_halves_of_series_elsewhere_are_refused(pair):
    _, found = pair
    with pytest.raises(ValueError, match="`held_out` as a share needs the series"):
        optimize_reservoir(small(Gain.linear(), n=6), found, 0.2)
