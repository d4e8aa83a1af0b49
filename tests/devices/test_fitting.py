"""A response fitted to recordings: judged by the network that was recorded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from greenfold import MeasuredResponse, Reservoir, SampleStimuli, optimize, unfold
from greenfold.analysis import margin_interval
from greenfold.datasets import DataError, synthetic_heartbeats
from greenfold.devices import response as fitting
from greenfold.optimizers.linear import LinearProblem

from ..conftest import small


def record(reservoir, n_samples, dt, rng, noise=0.1):
    """White drive into every neuron, states at the ends of steps, noise of 20 dB."""
    n = reservoir.n_neurons
    A = np.eye(n) - reservoir.weights
    E = expm(-A * dt / reservoir.tau)
    F = np.linalg.solve(A, np.eye(n) - E)
    drive = rng.standard_normal((n_samples, n))
    states, y = np.empty((n_samples, n)), np.zeros(n)
    for t, pulse in enumerate(drive):
        states[t] = y = E @ y + F @ pulse
    return drive, states + noise * states.std(0) * rng.standard_normal(states.shape)


def true_margin(unfolding, stimuli, best):
    problem = LinearProblem(unfolding.maps, stimuli, best.eta)
    return problem.margin(best.u[:, None], best.v).value


def test_normal_equations_are_those_of_the_regressors(rng):
    d, y, L = rng.standard_normal((37, 3)), rng.standard_normal((33, 2)), 5
    X = np.array([[d[t - l] for l in range(L)] for t in range(L - 1, 37)]).reshape(33, -1)
    np.testing.assert_allclose(fitting._gram(d, L), X.T @ X, atol=1e-12)
    np.testing.assert_allclose(fitting._cross(d, y, L), X.T @ y, atol=1e-12)
    W = rng.standard_normal((6, 2))
    np.testing.assert_allclose(fitting._filtered(d, W, L), X[:, :6] @ W, atol=1e-12)


def test_without_noise_the_response_is_found(rng):
    reservoir = small(n=6)
    unfolding = unfold(reservoir, n_steps=4, dt=0.5)
    drive, states = record(reservoir, 3000, 0.5, rng, noise=0.0)
    found = MeasuredResponse.fit(drive, states, n_steps=4, dt=0.5, n_lags=60, ridge=0.0)
    # The mean is taken of whole recordings, not of the samples that are fitted: √60/3000 of
    # a deviation, and its square in G.
    np.testing.assert_allclose(found.G, unfolding.greens1(), atol=1e-5)
    assert found.fitted is not None
    assert found.fitted.linearity == pytest.approx(1, abs=1e-5)


def test_lags_beyond_the_memory_of_the_device_are_not_fitted(rng):
    """A device that forgets after three steps, to be used with twelve."""
    drive = rng.standard_normal((6000, 3))
    H = rng.standard_normal((3, 2, 3))
    padded = np.concatenate([np.zeros((2, 3)), drive])
    states = np.sum([padded[2 - l : len(padded) - l] @ H[l].T for l in range(3)], axis=0)
    states = states + 0.3 * rng.standard_normal(states.shape)
    found = MeasuredResponse.fit(drive, states, n_steps=12)
    assert found.fitted is not None
    assert found.fitted.n_lags == 3
    assert not found.G[:9].any()
    error = (found.G[9:] - H[::-1]) / found.fitted.standard_error[9:]
    # 18 standardised errors: their mean square scatters by √(2/18) around one.
    assert (error**2).mean() == pytest.approx(1, abs=4 * np.sqrt(2 / 18))


def test_several_recordings_are_one_longer_one(rng):
    """Windows never reach over the end of a recording."""
    reservoir = small(n=4)
    parts = [record(reservoir, n, 0.5, rng) for n in (900, 1300, 800)]
    drives, states = zip(*parts, strict=True)
    found = MeasuredResponse.fit(list(drives), list(states), n_steps=5, n_lags=5, ridge=0)
    rows, targets = [], []
    for d, y in parts:
        d, y = d - d.mean(0), y - y.mean(0)
        rows += [d[t - 4 : t + 1][::-1].ravel() for t in range(4, len(d))]
        targets.append(y[4:])
    W = np.linalg.lstsq(np.array(rows), np.concatenate(targets))[0]
    expected = W.reshape(5, 4, 4)[::-1].transpose(0, 2, 1)
    np.testing.assert_allclose(found.G, expected, atol=1e-10)


@pytest.mark.contract
def test_errors_allow_for_noise_with_memory(rng):
    """Errors of a filter under autocorrelated noise, against those of many recordings."""
    errors, told = [], []
    for _ in range(40):
        drive = np.cumsum(rng.standard_normal((2000, 1)), axis=0)
        drive = drive - np.concatenate([np.zeros((20, 1)), drive[:-20]])  # moving sum
        noise = np.zeros(2000)
        for t in range(1, 2000):
            noise[t] = 0.9 * noise[t - 1] + rng.standard_normal()
        found = MeasuredResponse.fit(drive, drive + noise[:, None], n_steps=1, n_lags=1)
        assert found.fitted is not None
        errors.append(found.G.item() - 1)
        told.append(found.fitted.standard_error.item())
    # The spread of 40 errors is known to 1/√78 = 11 %; white noise would claim half of it.
    assert np.mean(told) == pytest.approx(np.std(errors), rel=0.4)


def test_a_non_linear_device_has_a_low_linearity(rng):
    drive, states = record(small(n=4), 4000, 0.5, rng, noise=0.0)
    index = [
        MeasuredResponse.fit(drive, np.tanh(scale * states), n_steps=6).fitted
        for scale in (0.1, 3.0)
    ]
    assert index[0] is not None
    assert index[1] is not None
    assert index[0].linearity > 0.99 > 0.9 > index[1].linearity


def test_the_mask_of_a_fitted_device_and_its_interval(rng):
    reservoir = small(n=12)
    stimuli = SampleStimuli(*synthetic_heartbeats(200, n_steps=8, rng=0))
    unfolding = unfold(reservoir, n_steps=8, dt=1.0)
    truth = optimize(unfolding, stimuli)
    fitted = MeasuredResponse.fit(*record(reservoir, 8000, 1.0, rng), n_steps=8, dt=1.0)
    best = optimize(fitted, stimuli)
    delivered = true_margin(unfolding, stimuli, best)
    assert delivered > 0.95 * truth.soft_margin
    interval = margin_interval(fitted, stimuli, best, n_replicates=40, rng=0)
    again = margin_interval(fitted, stimuli, best, n_replicates=40, rng=0)
    assert (interval.low, interval.high) == (again.low, again.high)
    assert interval.low <= interval.estimate <= interval.high
    # One run: twice as wide as the interval, which misses in one of twenty.
    half = (interval.high - interval.low) / 2
    assert abs(delivered - interval.estimate) < 2 * half
    assert interval.high < 1.25 * truth.soft_margin
    # Solved on the estimate, it looks better there than it is.
    assert interval.optimism > 0
    given = optimize(fitted, stimuli, u=np.ones(12))
    assert margin_interval(
        fitted, stimuli, given, n_replicates=10, solved=False, rng=0
    ).low < true_margin(unfolding, stimuli, given)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 100, 20))
def test_hundred_recordings(first):
    """20 dB, 20,000 steps, 50 neurons: within 5 %, and intervals that cover."""
    reservoir = Reservoir.random(50, rng=0)
    stimuli = SampleStimuli(*synthetic_heartbeats(400, n_steps=10, rng=0))
    unfolding = unfold(reservoir, n_steps=10, dt=1.0)
    truth = optimize(unfolding, stimuli).soft_margin
    covered, shares = 0, []
    for seed in range(first, first + 20):
        recording = record(reservoir, 20_000, 1.0, np.random.default_rng(seed))
        fitted = MeasuredResponse.fit(*recording, n_steps=10, dt=1.0)
        best = optimize(fitted, stimuli)
        delivered = true_margin(unfolding, stimuli, best)
        shares.append(delivered / truth)
        interval = margin_interval(fitted, stimuli, best, n_replicates=100, rng=seed)
        covered += interval.low <= delivered <= interval.high
    print(f"covered {covered} of 20, share of the optimum {min(shares):.4f} and more")
    assert min(shares) > 0.95
    # The interval is meant to cover 19 of 20; below 17 has a probability of 1.6 %.
    assert covered >= 17


def bad(rng):
    """Recordings that cannot be used, with a part of the sentence that says so."""
    d, y = rng.standard_normal((400, 2)), rng.standard_normal((400, 2))
    nan, still, dead = y.copy(), d.copy(), y.copy()
    nan[17, 1], still[:, 1], dead[:, 0] = np.nan, 3.0, -0.2
    same = d.copy()
    same[:, 1] = 2 * same[:, 0] + 1
    clipped = np.clip(y, -10, 0.5)
    volts = y * [1.0, 1e6]
    slow = np.sin(np.arange(400) / 50)[:, None] * np.ones(1)
    return {
        "gap": (d, nan, "1 missing or infinite values, the first at sample 17, channel 1"),
        "constant input": (still, y, "never changes at input 1; drive every input"),
        "constant output": (d, dead, "never changes at output 0; check its sensor"),
        "same signal": (same, y, "same signal at inputs 0 and 1"),
        "clipped": (d, clipped, "is clipped at output 0: .* weaker drive"),
        "too regular": (slow, y, "too regular .* white noise"),
        "too short": (d[:3], y[:3], "too short: .* record at least 100 samples"),
        "no common clock": (d, y[:-1], "400 samples and `states` 399; .* one clock"),
        "units": ([d, 1e4 * d], [y, y], "not in one unit; convert"),
        "unit of a channel": (d, volts, "channel 1, is .* as large as the others"),
        "other channels": ([d, d[:, :1]], [y, y], "1 channels in recording 1 and 2"),
        "one states missing": ([d, d], [y], "2 recordings and `states` 1"),
        "overflow": (d, 1e160 * y, "convert it to a unit in which it is about one"),
    }


@pytest.mark.parametrize("case", bad(np.random.default_rng(0)))
def test_bad_recordings_say_what_to_record(case):
    drive, states, message = bad(np.random.default_rng(0))[case]
    with pytest.raises(DataError, match=message) as caught:
        MeasuredResponse.fit(drive, states, n_steps=9)
    assert str(caught.value).count("\n") == 0


def test_other_arguments(rng):
    d, y = rng.standard_normal((400, 2)), rng.standard_normal((400, 2))
    with pytest.raises(ValueError, match="`ridge` must not be negative"):
        MeasuredResponse.fit(d, y, n_steps=3, ridge=-1.0)
    with pytest.raises(ValueError, match="`n_lags` must be at least 1"):
        MeasuredResponse.fit(d, y, n_steps=3, n_lags=0)
    with pytest.raises(TypeError, match="`system` must be a fitted MeasuredResponse"):
        margin_interval(None, None, None)  # pyright: ignore[reportArgumentType]
    wide = rng.standard_normal((40_000, 40))
    with pytest.raises(MemoryError, match="`n_lags` = 400 .* use fewer lags"):
        MeasuredResponse.fit(wide, wide[:, :1], n_steps=3, n_lags=400)


def ring_of(n_inputs: int, n_samples: int, rng, linearity=0.99, shift=0):
    """Drive and six outputs of a leaky network, shifted in time, with noise."""
    W = 0.75 * np.linalg.qr(rng.standard_normal((6, 6)))[0]
    drive, state, path = rng.standard_normal((n_samples, n_inputs)), np.zeros(6), []
    for pulse in drive:
        state = W @ state
        state[:n_inputs] += pulse
        path.append(state)
    states = np.array(path)
    noise = np.sqrt(1 / linearity - 1) * states.std() * rng.standard_normal(states.shape)
    return drive, np.roll(states + noise, shift, axis=0)


def test_outputs_that_do_not_follow_the_drive_are_refused(rng):
    drive, _ = ring_of(4, 2000, rng)
    with pytest.raises(DataError, match="no more than chance; check that these columns"):
        MeasuredResponse.fit(drive, rng.standard_normal((2000, 6)), n_steps=8)


@pytest.mark.parametrize("shift", [-1, -3])
@pytest.mark.parametrize("n_inputs", [1, 4])
def test_outputs_before_the_drive_are_told_by_how_much(rng, n_inputs, shift):
    drive, states = ring_of(n_inputs, 2000, rng, shift=shift)
    with pytest.raises(DataError, match=f"before .drive. .*shift the outputs by {-shift} "):
        MeasuredResponse.fit(drive, states, n_steps=8)


@pytest.mark.parametrize("seed", range(6))
def test_a_coloured_drive_is_not_taken_for_outputs_before_it(seed):
    """Chance correlations of slow signals are large; early outputs are refused still."""
    rng = np.random.default_rng(seed)
    white, drive = rng.standard_normal((3000, 2)), np.zeros((3000, 2))
    for t in range(1, 3000):
        drive[t] = 0.9 * drive[t - 1] + 0.4 * white[t]
    states, into = np.zeros((3000, 6)), np.eye(6)[:, :2]
    for t in range(1, 3000):
        turned = 0.5 * np.roll(states[t - 1], 1) + 0.4 * into @ drive[t] + 0.4
        states[t] = 0.6 * states[t - 1] + 0.8 * (np.sin(turned) ** 2 - np.sin(0.4) ** 2)
    states += 0.1 * states.std() * rng.standard_normal(states.shape)
    assert MeasuredResponse.fit(drive, states, n_steps=8).G.any()
    with pytest.raises(DataError, match=r"before .drive. comes"):
        MeasuredResponse.fit(drive, np.roll(states, -3, axis=0), n_steps=8)


def test_a_long_delay_is_named(rng):
    drive, states = ring_of(4, 2000, rng, shift=60)
    with pytest.raises(DataError, match="they follow most at lag 6[01]: remove that delay"):
        MeasuredResponse.fit(drive, states, n_steps=8)


def test_fewer_lags_than_the_device_remembers_are_refused(rng):
    drive, states = ring_of(4, 2000, rng)
    with pytest.raises(DataError, match="2 is shorter than the memory.* lags explain 9.%"):
        MeasuredResponse.fit(drive, states, n_steps=8, n_lags=2)


def test_few_clipped_samples_are_noticed_and_few_bits_are_not(rng):
    drive, states = ring_of(2, 4000, rng)
    edge = np.quantile(states[:, 1], 0.99)
    clipped = states.copy()
    clipped[:, 1] = np.minimum(clipped[:, 1], edge)
    with pytest.raises(DataError, match="clipped at output 1: 1 % of its samples"):
        MeasuredResponse.fit(drive, clipped, n_steps=4)
    MeasuredResponse.fit(drive, np.round(states, 1), n_steps=4)


@pytest.mark.contract
def test_poor_recordings_promise_nothing_that_they_do_not_carry():
    """A part of `benchmarks.recordings`, which has a hundred."""
    from benchmarks import recordings as poor

    stimuli = SampleStimuli(*synthetic_heartbeats(200, n_steps=poor.N_STEPS, rng=0))
    rows = [
        poor.judge(poor.make(n, linearity, defect, seed), stimuli, quick=True)
        for seed, n in enumerate((1, 2, 8))
        for linearity in (0.0, 0.02, 0.9)
        for defect in ("none", "short")
    ]
    kept = [row for row in rows if row["refused"] is None]
    assert all(row["refused"] for row in rows if row["linearity"] == 0)
    assert len(kept) >= 6
    # The true bound may lie above that of the fitted response, so nothing is cut there.
    assert all(row["low"] <= row["expected"] <= row["high"] for row in kept)
    assert all(row["gain"] is None or row["low"] > row["random"] for row in kept)
    # 95 % intervals: more than two misses of six have a probability of 0.2 %.
    ended = [row for row in kept if np.isfinite([row["low"], row["high"]]).all()]
    assert len(ended) >= 6
    assert sum(not row["low"] <= row["delivered"] <= row["high"] for row in ended) <= 2


def test_default_lags_follow_the_recording(rng):
    """Stimuli of 140 steps, and a recording that determines far fewer lags."""
    drive, states = record(small(n=8), 600, 1.0, rng)
    found = MeasuredResponse.fit(drive, states, n_steps=140)
    assert found.fitted is not None
    assert found.G.shape == (140, 8, 8)
    assert found.fitted.n_lags <= 36  # 2 · 36 · 8 unknowns for 565 samples
    assert found.fitted.linearity > 0.8
    with pytest.raises(DataError, match="`drive` is too short"):
        MeasuredResponse.fit(drive, states, n_steps=140, n_lags=140)
