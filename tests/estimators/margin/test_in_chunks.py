"""Classifiers fitted on series in chunks, against those from a stream or in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from greenfold import ReservoirClassifier
from greenfold.datasets import open_series, synthetic_heartbeats
from greenfold.stimuli import frame as sample

from ...chunked import from_array

pytestmark = pytest.mark.needs("dask")

#: The quick ascent ends where a step gains less than 1e-6 of κ; κ is flat there, so that u
#: is known to some times the root of it, at a large η to more. The same series in another
#: order differ as much.
MARGIN, PROJECTION = 1e-6, 6e-3


@pytest.fixture(scope="module")
def beats():
    X, y = synthetic_heartbeats(90, n_steps=12, rng=0)
    return 300 * X, y  # in a unit of their own


def classifier(**options):
    return ReservoirClassifier(n_neurons=8, random_state=0, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"class_weight": "balanced", "readout_noise": 0.1},
        {"input_scaling": None, "eta": 3.0},
        {"order": 1, "eta": 5.0, "class_weight": "balanced"},
        {"order": "exact", "eta": 5.0, "alpha": 0.01},
    ],
)
def test_a_fit_in_chunks_is_that_in_memory(beats, options):
    """The sample holds all of so few series, so that η is chosen on the same."""
    X, y = beats
    whole = classifier(**options).fit(X, y)
    found = classifier(**options).fit(from_array(X, chunks=((50, 1, 39), 7)), y)
    assert found.eta_ == whole.eta_
    assert found.soft_margin_ == pytest.approx(whole.soft_margin_, rel=MARGIN)
    assert found.u_ == pytest.approx(whole.u_, abs=PROJECTION)
    assert found.predict_proba(X) == pytest.approx(whole.predict_proba(X), abs=PROJECTION)
    if not options.get("order"):
        for one, other in zip(whole._stream.moments, found._stream.moments, strict=True):
            for a, b in ((one.mean, other.mean), (one.scatter, other.scatter)):
                a, b = np.asarray(a), np.asarray(b)
                assert np.abs(a - b).max() < 1e-13 * np.abs(a).max()


@pytest.mark.parametrize("order", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_more_than_two_classes_of_text(beats, order):
    X, _ = beats
    y = np.array(["a", "b", "c"])[np.arange(90) % 3]
    X = X + 200 * (np.arange(90) % 3)[:, None]
    options: dict[str, Any] = {"eta": 2.0, "order": order}
    options |= {"alpha": 0.002} if order else {}
    whole = classifier(**options).fit(X, y)
    chunks = from_array(X, chunks=(40, -1))
    found = classifier(**options).fit(chunks, from_array(y, chunks=13))
    assert found.soft_margin_ == pytest.approx(whole.soft_margin_, rel=MARGIN)
    assert found.u_ == pytest.approx(whole.u_, abs=PROJECTION)
    predicted: Any = found.predict(chunks)
    assert (predicted.compute() == whole.predict(X)).all()


def test_beyond_the_sample_it_is_the_fit_of_a_stream(beats, monkeypatch):
    """The same chunks one after the other: the same series are sampled."""
    X, y = beats
    monkeypatch.setattr(sample, "SIZE", 40)
    monkeypatch.setattr("greenfold.estimators.margin._GROWTH", 1.0)
    stream = classifier()
    for a, b in ((0, 50), (50, 51), (51, 90)):
        stream.partial_fit(X[a:b], y[a:b], classes=[-1, 1])
    found = classifier().fit(from_array(X, chunks=((50, 1, 39), -1)), y)
    assert len(found._stream.sample.codes) == 40
    assert np.array_equal(found._stream.sample.keys, stream._stream.sample.keys)
    assert found.eta_ == stream.eta_
    assert found.u_ == pytest.approx(stream.u_, abs=PROJECTION)
    # And it goes on as a stream.
    found.partial_fit(X[:5], y[:5])


def test_predictions_of_a_dask_array_are_lazy(beats):
    X, y = beats
    fitted = classifier(eta=2.0).fit(X, y)
    touched = []

    def load(block):
        touched.append(len(block))
        return block

    chunks = from_array(X, chunks=((50, 1, 39), 7)).map_blocks(load, meta=X[:0])
    names = "predict", "decision_function", "predict_proba", "transform", "read_out"
    found = {name: getattr(fitted, name)(chunks) for name in names}
    assert not touched
    for name, lazy in found.items():
        expected = getattr(fitted, name)(X)
        assert lazy.shape == expected.shape
        assert lazy.chunks[0] == (50, 1, 39)
        assert lazy.dtype == expected.dtype
        made = lazy.compute()
        # A product of one series is formed otherwise than that of many.
        assert made == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert touched
    lazy: Any = fitted.predict(chunks[chunks[:, 0] > -1e9])  # in chunks of unknown size
    assert (lazy.compute() == fitted.predict(X)).all()
    lazy = fitted.predict_proba(chunks[chunks[:, 0] > 1e9])
    assert lazy.compute().shape == (0, 2)
    assert fitted.score(X, fitted.predict(chunks)) == 1.0


def test_several_channels(beats, rng):
    X = rng.standard_normal((40, 2, 6))
    y = np.arange(40) % 2
    chunks = from_array(X, chunks=(15, 1, 4))
    whole, found = classifier(eta=1.0).fit(X, y), classifier(eta=1.0).fit(chunks, y)
    assert found.u_ == pytest.approx(whole.u_, abs=PROJECTION)
    lazy: Any = found.predict_proba(chunks)
    assert lazy.compute() == pytest.approx(whole.predict_proba(X), abs=PROJECTION)


def test_a_file_is_read_chunk_by_chunk(beats, tmp_path, monkeypatch):
    from greenfold.stimuli import chunks as sliced

    X, y = beats
    monkeypatch.setattr(sliced, "_CHUNK_BYTES", 11 * 12 * 8)
    np.save(tmp_path / "X.npy", X)
    series, labels = open_series(tmp_path / "X.npy", labels=y)
    assert labels is not None
    found, whole = classifier().fit(series, labels), classifier().fit(X, y)
    assert found.eta_ == whole.eta_
    assert found.u_ == pytest.approx(whole.u_, abs=PROJECTION)
    assert found.predict(series) == pytest.approx(whole.predict(X))


def test_what_cannot_be_done_is_said_in_one_sentence(beats):
    X, y = beats
    chunks = from_array(X, chunks=(40, -1))
    model = classifier(eta=1.0)
    with pytest.raises(ValueError, match="y holds only one class: 1"):
        model.fit(chunks, np.ones(90, int))
    with pytest.raises(ValueError, match=r"numbers of samples: \[90, 89\]"):
        model.fit(chunks, y[:-1])
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(chunks, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(
        ValueError, match="sample_weight cannot be used with series in chunks"
    ):
        model.fit(chunks, y, sample_weight=np.ones(90))
    with pytest.raises(ValueError, match="chunks of unknown size"):
        model.fit(chunks[chunks[:, 0] > 0], y)
    with pytest.raises(TypeError, match="got dtype object"):
        model.fit(chunks.astype(object), y)
    nan = X.copy()
    nan[70, 3] = np.nan
    with pytest.raises(ValueError, match="got nan in case 70, channel 0, step 3"):
        model.fit(from_array(nan, chunks=(40, -1)), y)
    with pytest.raises(NotFittedError):
        classifier().predict(chunks)
    model.fit(X, y)
    with pytest.raises(ValueError, match="X has 11 features, but ReservoirClassifier"):
        model.predict(chunks[:, :11])
