"""Labelled series: normalisation, weights, labels of any kind, streams."""

import importlib.util

import numpy as np
import pytest

from greenfold import Dynamics, Gain, Reservoir, SampleStimuli, unfold
from greenfold._base.arrays import to_host
from greenfold.stimuli import samples

from ..conftest import LIBRARIES, small, unit
from .conftest import split, weighted_moments


@pytest.mark.parametrize("length", [1.0, 0.19, 7.0])
def test_paper_normalisation_puts_the_class_means_opposite(data, length):
    X, labels = data
    stimuli = SampleStimuli(X, labels, length=length)
    assert stimuli.classes.tolist() == ["sick", "well"]
    assert np.asarray(stimuli.signs).tolist() == np.where(labels == "well", 1, -1).tolist()
    plus = stimuli.series[labels == "well"].mean(0).ravel()
    minus = stimuli.series[labels == "sick"].mean(0).ravel()
    # Means of numbers of order ten in float64.
    assert plus == pytest.approx(-minus, abs=1e-13)
    assert plus == pytest.approx(stimuli.mu, abs=1e-13)
    assert np.linalg.norm(stimuli.mu) == pytest.approx(length, rel=1e-14)


def test_new_series_are_treated_as_the_training_series(data):
    X, labels = data
    stimuli = SampleStimuli(X, labels)
    new = np.arange(8.0).reshape(1, 2, 4)
    means = [X[labels == c].mean(0) for c in ("sick", "well")]
    half = np.linalg.norm(means[1] - means[0]) / 2
    expected = (new - (means[0] + means[1]) / 2) / half
    assert stimuli.transform(new) == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(stimuli.transform(X), stimuli.series)
    flat = SampleStimuli(X[:, 0], labels)
    assert flat.transform(X[:3, 0]).shape == (3, 4)
    assert flat.transform(X[:3, :1]).shape == (3, 1, 4)
    assert flat.transform(X[:1, 0].tolist()).shape == (1, 4)


@pytest.mark.parametrize("normalize", ["paper", None])
@pytest.mark.parametrize(
    ("class_weight", "sick", "well"),
    [("balanced", 1 / 9, 1 / 21), (None, 1, 1), ({"sick": 3, "well": 1}, 3 / 9, 1 / 21)],
)
def test_class_weights_are_the_weighted_moments(data, class_weight, sick, well, normalize):
    X, labels = data
    stimuli = SampleStimuli(X, labels, class_weight=class_weight, normalize=normalize)
    weights = np.where(labels == "well", well, sick)
    mu, psi = weighted_moments(stimuli.series, stimuli.signs, weights)
    assert stimuli.mu == pytest.approx(mu, rel=1e-12, abs=1e-13)
    assert stimuli.psi == pytest.approx(psi, rel=1e-12, abs=1e-13)
    assert stimuli.case_weights == pytest.approx(weights / weights.sum(), rel=1e-14)
    assert stimuli.class_share.sum() == pytest.approx(1, rel=1e-15)


def test_without_normalisation_the_series_are_left_alone(data):
    X, labels = data
    stimuli = SampleStimuli(X, labels, normalize=None)
    assert np.array_equal(stimuli.series, X)
    assert stimuli.scale == 1


def test_numbers_of_any_kind_are_labels(data):
    X, labels = data
    text = SampleStimuli(X, labels)
    for made in (
        labels == "well",
        np.where(labels == "well", 2, -7),
        labels.astype(object),
    ):
        stimuli = SampleStimuli(X, made)
        assert np.array_equal(stimuli.mu, text.mu)
        assert np.array_equal(np.asarray(stimuli.signs), np.asarray(text.signs))


def test_identical_class_means_are_case_a():
    X, labels = np.array([[1.0, 2], [3, 4], [1, 2], [3, 4]]), [0, 0, 1, 1]
    stimuli = SampleStimuli(X, labels, normalize=None)
    assert np.array_equal(stimuli.mu, np.zeros(2))
    assert stimuli.separability == 0


def test_constant_series_within_each_class():
    X = np.repeat([[1.0, 1.0], [3.0, 3.0]], 4, axis=0)
    stimuli = SampleStimuli(X, np.repeat([0, 1], 4))
    assert np.array_equal(stimuli.psi, np.zeros((2, 2)))
    assert stimuli.separability == np.inf


def test_a_single_series_per_class_is_enough():
    stimuli = SampleStimuli([[0.0, 0.0], [0.0, 4.0]], [0, 1])
    assert stimuli.mu == pytest.approx([0.0, 1.0])
    assert np.array_equal(stimuli.psi, np.zeros((2, 2)))


def test_integers_do_not_overflow():
    X = np.array([[100, 120], [-100, 90]] * 3, dtype=np.int8)
    labels = [0, 1] * 3
    made = SampleStimuli(X, labels)
    assert made.mu == pytest.approx(SampleStimuli(X.astype(float), labels).mu, rel=1e-14)


def test_stream_is_consumed_lazily_and_once(data):
    X, labels = data
    taken = []

    def generate():
        for i in range(0, 30, 5):
            taken.append(i)
            yield X[i : i + 5], labels[i : i + 5]

    stimuli = SampleStimuli.from_batches(generate())
    assert taken == [0, 5, 10, 15, 20, 25]
    assert stimuli.mu == pytest.approx(SampleStimuli(X, labels).mu, abs=1e-13)


def test_streamed_stimuli_have_state_moments(data, rng):
    X, labels = data
    unfolding, u = unfold(small(), n_steps=4, dt=0.5), unit(rng, 12, 2)
    stream = SampleStimuli.from_batches(split(X, labels, [7, 7]))
    for one, other in zip(
        stream.moments(unfolding, u),
        SampleStimuli(X, labels).moments(unfolding, u),
        strict=True,
    ):
        assert one == pytest.approx(other, abs=1e-12)
    with pytest.raises(ValueError, match="batches.*no series"):
        stream.series
    with pytest.raises(ValueError, match="batches.*no series"):
        stream.case_weights


@pytest.mark.parametrize("name", LIBRARIES)
def test_array_libraries(data, name):
    library = importlib.import_module(name)
    X, labels = data
    ours, theirs = SampleStimuli(X, labels), SampleStimuli(library.asarray(X), labels)
    assert theirs.mu == pytest.approx(ours.mu, abs=1e-13)
    assert theirs.psi == pytest.approx(ours.psi, abs=1e-13)
    assert type(theirs.series) is type(library.asarray(X))
    assert to_host(theirs.series) == pytest.approx(ours.series, abs=1e-13)
    numbers = np.where(labels == "well", 1, 0)
    mixed = SampleStimuli.from_batches(
        [(library.asarray(X[:11]), library.asarray(numbers[:11])), (X[11:], numbers[11:])]
    )
    assert mixed.psi == pytest.approx(ours.psi, abs=1e-13)
    single = SampleStimuli(library.asarray(X, dtype=library.float32), labels)
    assert single.series.dtype == library.float64
    assert single.psi == pytest.approx(ours.psi, rel=1e-5, abs=1e-5)  # float32 input


def test_labelled_second_moment_of_samples(rng):
    """⟨ζxxᵀ⟩ from the class moments is that of the series."""
    X, labels = rng.standard_normal((30, 2, 5)), np.repeat([1, 1, -1], 10)
    stimuli = SampleStimuli(X, labels, class_weight=None)
    flat = stimuli.transform(X).reshape(30, -1)
    expected = (flat * labels[:, None]).T @ flat / 30
    assert stimuli.labelled_second_moment == pytest.approx(expected, abs=1e-13)


# --- bad input ----------------------------------------------------------------------


X4, Y4 = np.arange(12.0).reshape(4, 3) ** 2, [0, 0, 1, 1]
WITH_INF = np.where(np.arange(12).reshape(4, 3) == 10, np.inf, X4)


@pytest.mark.parametrize(
    ("X", "labels", "options", "error", "message"),
    [
        (X4, [1] * 4, {}, ValueError, "`labels`.*exactly two classes; got 1: 1"),
        (X4, [0, 1, 2, 0], {}, ValueError, "`labels`.*exactly two classes; got 3: 0, 1, 2"),
        (np.ones((9, 2)), list("abcdefghi"), {}, ValueError, "got 9: .*'e', …"),
        (X4, [0, 1], {}, ValueError, r"`labels`.*\(4,\).*\(2,\)"),
        (X4, [[0, 0, 1, 1]], {}, ValueError, r"`labels`.*\(4,\).*\(1, 4\)"),
        (X4, [0, np.nan, 1, 1], {}, ValueError, "`labels`.*NaN"),
        (X4, [None, 1, 1, 0], {}, TypeError, "`labels`.*one type.*NoneType"),
        (X4 * np.nan, Y4, {}, ValueError, "`X`.*nan in case 0, channel 0, step 0"),
        (WITH_INF, Y4, {}, ValueError, "`X`.*inf in case 3, channel 0, step 1"),
        (X4[0], Y4, {}, ValueError, r"`X`.*\(n_cases, n_steps\).*\(3,\)"),
        (X4[None, None], Y4, {}, ValueError, r"`X`.*\(1, 1, 4, 3\)"),
        (np.empty((0, 3)), [], {}, ValueError, "`X` is empty"),
        (X4 * 1j, Y4, {}, TypeError, "`X`.*complex"),
        ([["a"]] * 4, Y4, {}, TypeError, "`X`.*numbers"),
        ([[1, 2], [1], [1], [2]], Y4, {}, ValueError, "`X`.*equal length.*1 to 2"),
        (np.ones((4, 3)), Y4, {}, ValueError, "coincide; pass `normalize`=None"),
        (X4[[0, 1, 0, 1]], Y4, {}, ValueError, "coincide; pass `normalize`=None"),
        (X4, Y4, {"normalize": "z"}, ValueError, "`normalize`.*'paper' or None.*'z'"),
        (X4, Y4, {"length": 0}, ValueError, "`length`.*positive"),
        (X4, Y4, {"length": np.inf}, ValueError, "`length`.*positive"),
        (X4, Y4, {"class_weight": "equal"}, ValueError, "`class_weight`.*'equal'"),
        (X4, Y4, {"class_weight": {0: 1}}, ValueError, r"`class_weight`.*\[0, 1\]"),
        (X4, Y4, {"class_weight": {0: 0, 1: 1}}, ValueError, "`class_weight`.*positive"),
        (X4, Y4, {"class_weight": [1, 2]}, ValueError, "`class_weight`.*dict"),
    ],
)
def test_samples_name_bad_input(X, labels, options, error, message):
    with pytest.raises(error, match=message):
        SampleStimuli(X, labels, **options)


def test_means_that_coincide_up_to_rounding_are_not_scaled_up(rng):
    X = rng.standard_normal((6, 3)) + 1e8
    with pytest.raises(ValueError, match="coincide"):
        SampleStimuli(np.concatenate([X, X[::-1]]), np.repeat([0, 1], 6))


@pytest.mark.parametrize(
    ("batches", "error", "message"),
    [
        ([], ValueError, "`batches` is empty"),
        (3, TypeError, r"`batches`.*iterable of pairs \(X, labels\); got int"),
        ([X4], TypeError, r"`batches`.*pairs \(X, labels\).*ndarray"),
        ([(X4, [1] * 4)], ValueError, "`labels`.*exactly two classes; got 1"),
        ([(X4, Y4), (X4, [2] * 4)], ValueError, "`labels`.*exactly two.*got 3"),
        ([(X4, Y4), (X4, ["a"] * 4)], TypeError, "`labels`.*one type.*text and numbers"),
        ([(X4, Y4), (X4[:, :2], Y4)], ValueError, r"`X`.*n_steps = 3.*\(4, 2\)"),
        (
            [(X4, Y4), (np.ones((4, 2, 3)), Y4)],
            ValueError,
            r"`batches`.*\(2, 3\).*\(1, 3\)",
        ),
        ([(X4, Y4), (WITH_INF, Y4)], ValueError, "`X`.*inf in case 3"),
        ([(np.empty((0, 3)), [])], ValueError, "`X` is empty"),
    ],
)
def test_streams_name_bad_input(batches, error, message):
    with pytest.raises(error, match=message):
        SampleStimuli.from_batches(batches)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 4)), r"`X`.*n_steps = 3.*\(2, 4\)"),
        (np.ones((2, 2, 3)), r"`X`.*1 channel.*\(2, 2, 3\)"),
    ],
)
def test_transform_names_bad_input(X, message):
    with pytest.raises(ValueError, match=message):
        SampleStimuli(X4, Y4).transform(X)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("system", ["order 1", "tanh, order 1", "integrated"])
def test_series_of_a_device_are_summed_there(system, rng, monkeypatch):
    """Judge: the same in NumPy. A device is played by PyTorch on the host."""
    import torch

    gain = Gain.quadratic(0.1) if system == "order 1" else Gain.tanh()
    network = Reservoir.random(12, 0.7, 0.5, gain, rng=0)
    X = rng.standard_normal((40, 6)) + np.repeat([[0.3], [-0.3]], 20, axis=0)
    labels = np.repeat([1, 0], 20)
    given = {"n_steps": 6, "dt": 0.4}
    if system == "integrated":
        solved = Dynamics(network, **given)
    else:
        solved = unfold(network, order=1, **given)
    u = rng.standard_normal((12, 1))
    here = SampleStimuli(X, labels).moment_map(solved)(u)
    monkeypatch.setattr(samples, "on_gpu", lambda array: torch.is_tensor(array))
    stimuli = SampleStimuli(torch.asarray(X), labels)
    assert torch.is_tensor(stimuli._weighted.designs[0].X)
    there = stimuli.moment_map(solved)(u)
    for name in ("M", "Sigma"):
        found = getattr(there, name)
        assert isinstance(found, np.ndarray)
        # The same sums in another order.
        np.testing.assert_allclose(found, getattr(here, name), rtol=1e-10, atol=1e-12)
    v = rng.standard_normal(12)
    np.testing.assert_allclose(there.pull(v, 3.0), here.pull(v, 3.0), rtol=1e-9, atol=1e-11)
    a, C = rng.standard_normal(6), rng.standard_normal((6, 6))
    ours, theirs = (s.kernel_margin(a, C, 2.0) for s in (SampleStimuli(X, labels), stimuli))
    assert ours[0].value == pytest.approx(theirs[0].value, rel=1e-12)
    for one, other in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
