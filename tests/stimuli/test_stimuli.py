"""Moments of stimuli against sampling and plain NumPy; normalisation; streams."""

import importlib.util

import numpy as np
import pytest

from greenfold import GaussianStimuli, Reservoir, SampleStimuli, unfold
from greenfold._arrays import to_host
from greenfold.margins import state_moments
from greenfold.stimuli import class_moments as _class_moments

from ..conftest import small, unit

LIBRARIES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            importlib.util.find_spec(name) is None, reason=f"{name} is not installed"
        ),
    )
    for name in ("array_api_strict", "torch")
]


@pytest.fixture
def data(rng):
    """Unbalanced classes of different means and spreads, two channels of four steps."""
    labels = np.array(["sick"] * 9 + ["well"] * 21)[rng.permutation(30)]
    well = (labels == "well")[:, None, None]
    X = rng.standard_normal((30, 2, 4)) * np.where(well, 1.0, 2.0) + np.where(well, 3, 1)
    return X, labels


def weighted_moments(X, signs, weights):
    """μ and ψ of ζx by NumPy's own weighted mean and covariance."""
    signed = X.reshape(len(X), -1) * signs[:, None]
    mu = np.average(signed, axis=0, weights=weights)
    return mu, np.cov(signed.T, aweights=weights, ddof=0)


# --- Gaussian classes ---------------------------------------------------------------


@pytest.mark.parametrize("n_channels", [1, 2])
def test_gaussian_moments_against_sampling(n_channels):
    stimuli = GaussianStimuli.random(3, strength=1.5, n_channels=n_channels, rng=0)
    n = 100_000
    X, labels = stimuli.sample(n, rng=1)
    assert X.shape == ((2 * n, 3) if n_channels == 1 else (2 * n, 2, 3))
    assert labels.sum() == 0
    flat = X.reshape(2 * n, -1)
    psi, chi = stimuli.psi, stimuli.chi
    for sign in (1, -1):
        part, covariance = flat[labels == sign], psi + sign * chi
        spread = np.sqrt(np.diag(covariance))
        # Five standard errors: √(C_ii/n) of a mean, and √((C_ii C_jj + C_ij²)/n) of a
        # covariance.
        assert (np.abs(part.mean(0) - sign * stimuli.mu) < 5 * spread / np.sqrt(n)).all()
        allowed = 5 * np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / n)
        assert (np.abs(np.cov(part.T) - covariance) < allowed).all()
    assert np.abs(chi).max() > 10 * allowed.max()  # the classes do differ


def test_gaussian_moments_are_those_of_the_mixture():
    """μ and ψ of ζx: the class means are opposite, so that nothing is between them."""
    stimuli = GaussianStimuli.random(4, rng=0)
    n = 200_000
    X, labels = stimuli.sample(n, rng=2)
    mu, psi = weighted_moments(X, labels, None)
    error = 5 * 2.2 / np.sqrt(2 * n)  # eigenvalues are at most 2.2
    assert np.abs(mu - stimuli.mu).max() < error
    assert np.abs(psi - stimuli.psi).max() < np.sqrt(2) * error


@pytest.mark.parametrize("strength", [0.0, 0.19, 1.0, 30.0])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_random_stimuli_have_the_asked_length_and_eigenvalues(strength, n_channels):
    stimuli = GaussianStimuli.random(10, strength=strength, n_channels=n_channels, rng=4)
    assert np.linalg.norm(stimuli.mu) == pytest.approx(strength, rel=1e-14, abs=0)
    assert (stimuli.n_steps, stimuli.n_channels) == (10, n_channels)
    for sign in (1, -1):
        values = np.linalg.eigvalsh(stimuli.psi + sign * stimuli.chi)
        assert 0.3 - 1e-13 < values[0] < values[-1] < 2.2 + 1e-13


def test_random_stimuli_fill_the_range_and_the_sphere():
    drawn = [GaussianStimuli.random(3, rng=seed) for seed in range(300)]
    values = np.ravel([np.linalg.eigvalsh(s.psi + s.chi) for s in drawn])
    # 900 uniform numbers: mean 1.25 with standard error 0.55/30, five of them.
    assert values.mean() == pytest.approx(1.25, abs=0.1)
    assert values.min() < 0.33
    assert values.max() > 2.17
    # Isotropy: ⟨μμᵀ⟩ = 1/3, entries of standard deviation ≤ 0.3 over √300.
    second = np.mean([np.outer(s.mu, s.mu) for s in drawn], axis=0)
    assert second == pytest.approx(np.eye(3) / 3, abs=0.09)
    same = GaussianStimuli.random(3, rng=7)
    assert np.array_equal(same.psi, drawn[7].psi)
    assert not np.array_equal(same.psi, drawn[8].psi)


def test_singular_covariance_can_be_sampled():
    X, labels = GaussianStimuli([1.0, 0.0], np.diag([0.0, 1.0])).sample(5, rng=0)
    assert np.array_equal(X[:, 0], labels.astype(float))


@pytest.mark.parametrize(
    ("mu", "psi", "expected"),
    [
        ([3.0, 0.0], np.diag([4.0, 9.0]), 1.5),
        ([0.0, 2.0], np.diag([4.0, 9.0]), 4 / 6),
        ([1.0, 0.0], np.diag([0.0, 1.0]), np.inf),
        ([0.0, 0.0], np.eye(2), 0.0),
    ],
)
def test_separability(mu, psi, expected):
    assert GaussianStimuli(mu, psi).separability == pytest.approx(expected, rel=1e-15)


# --- samples ------------------------------------------------------------------------


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


def split(X, labels, sizes):
    """Cut into batches of the given sizes, the rest last."""
    edges = np.cumsum(sizes)
    return zip(np.split(X, edges), np.split(labels, edges), strict=True)


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("sizes", [[], [1, 2, 10], [1] * 29])
def test_stream_equals_memory(data, sizes, class_weight, offset):
    """One batch, several, and single series, of which each holds one class only."""
    X, labels = data
    X = X + offset
    whole = SampleStimuli(X, labels, class_weight=class_weight)
    stream = SampleStimuli.from_batches(split(X, labels, sizes), class_weight=class_weight)
    # Adding the offset has rounded X to 1e8 · eps ≈ 1e-8 already. Both sides see the same
    # X, and the merge must not lose more than the sum over thirty cases of that.
    allowed = 1e-12 if offset == 0 else 1e-6
    assert stream.mu == pytest.approx(whole.mu, abs=allowed)
    assert stream.psi == pytest.approx(whole.psi, abs=allowed)
    assert stream.centre == pytest.approx(whole.centre, rel=1e-15, abs=1e-14)
    assert stream.scale == pytest.approx(whole.scale, rel=allowed)
    plain = SampleStimuli(data[0], labels, class_weight=class_weight)
    assert stream.psi == pytest.approx(plain.psi, abs=allowed)
    assert np.linalg.eigvalsh(stream.psi)[0] > 0


def test_stream_does_not_depend_on_the_order(data):
    X, labels = data
    by_class = np.argsort(labels, kind="stable")
    one = SampleStimuli.from_batches(split(X[by_class], labels[by_class], [9, 5]))
    backwards = by_class[::-1]
    other = SampleStimuli.from_batches(split(X[backwards], labels[backwards], [4, 20]))
    assert one.psi == pytest.approx(other.psi, rel=1e-12, abs=1e-13)
    assert one.classes.tolist() == other.classes.tolist() == ["sick", "well"]


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


def test_memory_is_bounded_inside_one_large_array(data, monkeypatch):
    """The in-memory route works in pieces too; here of seven cases."""
    from greenfold._arrays import batches

    X, labels = data
    whole = SampleStimuli(X, labels)
    monkeypatch.setattr(_class_moments, "batches", lambda n, _: batches(n, 1, 7))
    assert SampleStimuli(X, labels).psi == pytest.approx(whole.psi, abs=1e-13)


def test_far_classes_do_not_drown_the_spread_within_them(rng):
    """Class means at ±1e8: ψ is the covariance within the classes, of order one."""
    labels = np.repeat([1, -1], 20)
    noise = rng.standard_normal((40, 3))
    noise[:20] -= noise[:20].mean(0)
    noise[20:] -= noise[20:].mean(0)
    X = noise + 1e8 * labels[:, None]
    found = SampleStimuli(X, labels, normalize=None).psi
    # X itself is rounded to 1e-8.
    assert found == pytest.approx(noise.T @ noise / 40, abs=1e-6)
    assert np.linalg.eigvalsh(found)[0] > 0


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


# --- moments of the states ----------------------------------------------------------


@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("readout", [None, 0.7, "weights"])
def test_state_moments_are_those_of_the_states(data, readout, class_weight, rng):
    X, labels = data
    unfolding = unfold(small(), n_steps=4, dt=0.5)
    if readout is not None:
        value = np.array([1.0, -0.5, 0, 2.0]) if readout == "weights" else readout
        unfolding = unfolding.with_readout(value)
    u = unit(rng, 12, 2)
    stimuli = SampleStimuli(X, labels, class_weight=class_weight)
    M, Sigma = stimuli.moments(unfolding, u)
    states = unfolding.states(stimuli.series, u)
    expected = state_moments(states, stimuli.signs, stimuli.case_weights)
    assert pytest.approx(expected[0], rel=1e-11, abs=1e-13) == M
    assert pytest.approx(expected[1], rel=1e-11, abs=1e-13) == Sigma


def test_gaussian_state_moments_against_sampling(rng):
    unfolding = unfold(small(n=4), n_steps=3, dt=0.5)
    stimuli, u = GaussianStimuli.random(3, rng=0), unit(rng, 4)
    n = 50_000
    X, labels = stimuli.sample(n, rng=1)
    M, Sigma = stimuli.moments(unfolding, u)
    found = state_moments(unfolding.states(X, u), labels)
    spread = np.sqrt(np.diag(Sigma))
    # Five standard errors, as for the stimuli; the fourth moment of a mixture of two
    # Gaussians is at most three times (2.2/0.3)² … a factor 3 covers it.
    assert (np.abs(found[0] - M) < 5 * spread / np.sqrt(2 * n)).all()
    assert (np.abs(found[1] - Sigma) < 15 * np.outer(spread, spread) / np.sqrt(2 * n)).all()


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
        (X4, [None, 1, 1, 0], {}, TypeError, "`labels`.*one kind.*NoneType"),
        (X4 * np.nan, Y4, {}, ValueError, "`X`.*nan in case 0, channel 0, step 0"),
        (WITH_INF, Y4, {}, ValueError, "`X`.*inf in case 3, channel 0, step 1"),
        (X4[0], Y4, {}, ValueError, r"`X`.*\(n_cases, n_steps\).*\(3,\)"),
        (X4[None, None], Y4, {}, ValueError, r"`X`.*\(1, 1, 4, 3\)"),
        (np.empty((0, 3)), [], {}, ValueError, "`X` is empty"),
        (X4 * 1j, Y4, {}, TypeError, "`X`.*complex"),
        ([["a"]] * 4, Y4, {}, TypeError, "`X`.*numbers"),
        ([[1, 2], [1], [1], [2]], Y4, {}, ValueError, "`X`.*equal length.*1 to 2"),
        (np.ones((4, 3)), Y4, {}, ValueError, "`normalize`.*coincide.*normalize=None"),
        (X4[[0, 1, 0, 1]], Y4, {}, ValueError, "`normalize`.*coincide.*normalize=None"),
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
        (3, TypeError, r"`batches`.*iterable of \(X, labels\); got int"),
        ([X4], TypeError, r"`batches`.*pairs \(X, labels\).*ndarray"),
        ([(X4, [1] * 4)], ValueError, "`labels`.*exactly two classes; got 1"),
        ([(X4, Y4), (X4, [2] * 4)], ValueError, "`labels`.*exactly two.*got 3"),
        ([(X4, Y4), (X4, ["a"] * 4)], TypeError, "`labels`.*one kind.*text and numbers"),
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


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2], -np.eye(2)), ValueError, "`psi.*semi-definite.*-1"),
        (([1, 2], np.eye(2), 2 * np.eye(2)), ValueError, "`psi − chi`.*semi-definite"),
        (([1, 2], np.eye(2), -2 * np.eye(2)), ValueError, r"`psi \+ chi`.*semi-definite"),
        (([1, 2], [[1, 1], [0, 1]]), ValueError, "`psi`.*symmetric"),
        (([1, 2], np.eye(2), [[0, 0.1], [0, 0]]), ValueError, "`chi`.*symmetric"),
        (([1, 2], np.eye(3)), ValueError, r"`psi`.*\(2, 2\).*\(3, 3\)"),
        (([1, np.nan], np.eye(2)), ValueError, "`mu`.*finite"),
        (([1, 2], np.diag([1.0, np.inf])), ValueError, "`psi`.*finite"),
        ((np.ones((1, 1, 2)), np.eye(2)), ValueError, r"`mu`.*dimensions.*\(1, 1, 2\)"),
        (([1j, 2], np.eye(2)), TypeError, "`mu`.*real"),
    ],
)
def test_gaussian_stimuli_name_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianStimuli(*arguments)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_steps": 0}, ValueError, "`n_steps`.*at least 1"),
        ({"n_channels": 0}, ValueError, "`n_channels`.*at least 1"),
        ({"strength": -1}, ValueError, "`strength`.*negative"),
        ({"strength": np.nan}, ValueError, "`strength`.*finite"),
        ({"eigenvalues": (2, 1)}, ValueError, r"`eigenvalues`.*low ≤ high.*\(2, 1\)"),
        ({"eigenvalues": (-1, 1)}, ValueError, "`eigenvalues`.*0 ≤ low"),
        ({"eigenvalues": (1,)}, ValueError, r"`eigenvalues`.*low ≤ high.*\(1,\)"),
        ({"eigenvalues": 3.0}, ValueError, "`eigenvalues`.*1 dimensions"),
        ({"eigenvalues": "ab"}, TypeError, "`eigenvalues`.*numbers"),
    ],
)
def test_random_stimuli_name_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        GaussianStimuli.random(**{"n_steps": 3, **options})


def test_moments_name_bad_input():
    stimuli = SampleStimuli(X4, Y4)
    unfolding = unfold(Reservoir.random(5, g=0.5, rng=0), n_steps=3, dt=0.5)
    with pytest.raises(ValueError, match="4 steps.*made for 3.*n_steps=4"):
        GaussianStimuli.random(4, rng=0).moments(unfolding, np.ones(5))
    with pytest.raises(ValueError, match=r"`u`.*5 rows.*\(4,\)"):
        stimuli.moments(unfolding, np.ones(4))
    with pytest.raises(ValueError, match=r"`u`.*\(5, 1\).*2 column"):
        stimuli.moments(unfolding, np.ones((5, 2)))
    with pytest.raises(ValueError, match="`n_per_class`.*at least 1"):
        GaussianStimuli.random(4, rng=0).sample(0)
