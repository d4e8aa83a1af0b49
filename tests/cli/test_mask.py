"""From a recording to a mask, and the memory of a network, on the command line."""

from __future__ import annotations

import csv
import json
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score

from greenfold import (
    Device,
    MeasuredResponse,
    Reservoir,
    SampleStimuli,
    memory_capacity,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats, write_npz
from greenfold.math.margins import state_moments

from .conftest import invoke, one_sentence

N, STEPS = 6, 8
QUICK = ["--replicates", "10", "--draws", "5"]


def ring(drive: np.ndarray, noise: float = 0.0) -> np.ndarray:
    """A linear device: a leaky ring, read at five of its six nodes."""
    rng = np.random.default_rng(2)
    state, path = np.zeros(N), []
    for pulse in drive:
        state = 0.7 * np.roll(state, 1) - 0.2 * state + pulse
        path.append(state[: N - 1].copy())
    return np.array(path) + noise * rng.standard_normal((len(path), N - 1))


@pytest.fixture(scope="module")
def drive() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1500, N))


@pytest.fixture
def loop(tmp_path: Path, drive: np.ndarray) -> Path:
    """A recording as CSV."""
    names = [f"drive_{i}" for i in range(N)] + [f"state_{i}" for i in range(N - 1)]
    table = np.column_stack([drive, ring(drive, 0.05)])
    path = tmp_path / "loop.csv"
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="")
    return path


@pytest.fixture
def short_beats(tmp_path: Path) -> Path:
    X, y = synthetic_heartbeats(80, n_steps=STEPS, rng=3)
    write_npz(tmp_path / "short.npz", X, np.where(y > 0, "normal", "ectopic"))
    return tmp_path / "short.npz"


def weights(path: Path) -> tuple[list[str], np.ndarray]:
    """Names and numbers of a written table."""
    with open(path, newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    return [row[0] for row in rows], np.array([[float(x) for x in row[1:]] for row in rows])


def test_few_series_and_one_of_each_are_told_as_such(tmp_path, drive):
    states = drive[:299, 0] + 0.1 * drive[:299, 1]
    rows = [
        f"{a:.4f};{b:.4f}".replace(".", ",")
        for a, b in zip(drive[:299, 0], states, strict=True)
    ]
    (tmp_path / "one.csv").write_text("\n".join(["drive_0;state_0", *rows]))
    X, y = synthetic_heartbeats(8, n_steps=STEPS, rng=3)
    write_npz(tmp_path / "few.npz", X, y)
    given = "mask", tmp_path / "one.csv", tmp_path / "few.npz", "--lags", 1, *QUICK
    shown = invoke(*given).stdout
    assert "1 input, 1 output; 292 samples, 1 lag\n" in shown
    assert f"{STEPS} steps, 1 channel\n" in shown
    # 50 / √8 points
    told = "uncertain by about 18 points: there are 8 series, 4 of them in the smallest"
    assert told in shown
    assert re.search(r"scaled series +\(series − centre\) × [\d.]+;", shown)


def test_a_mask_delivers_on_the_device_what_was_promised(tmp_path, loop, short_beats):
    """κ of the written files, by running the device itself on every series."""
    out, readout = tmp_path / "mask.csv", tmp_path / "v.csv"
    files = ["--out", out, "--readout", readout]
    result = invoke("mask", loop, short_beats, "--mask", "sign", *files, *QUICK, "--json")
    told = json.loads(result.stdout)
    names, mask = weights(out)
    assert names == [f"drive_{i}" for i in range(N)]
    assert set(np.abs(mask).ravel()) == {1.0}
    outputs, v = weights(readout)
    assert outputs == [f"state_{i}" for i in range(N - 1)]
    with np.load(short_beats) as archive:
        data = dict(archive)
    series = (data["X"].reshape(-1, STEPS) - np.ravel(told["centre"])) * told["scale"]
    # The series times the amplitude times the written mask drive as the recording did.
    drive = told["accuracy"]["amplitude"] * series[:, :, None] * mask[:, 0]
    assert (drive**2).mean() ** 0.5 == pytest.approx(1.0, rel=0.05)  # of 1500 normal rows
    u = mask[:, 0] / np.linalg.norm(mask)
    ends = np.array([ring(np.outer(one, u))[-1] for one in series])
    signs = np.where(data["y"] == told["classes"][1], 1, -1)
    share = np.where(signs > 0, 0.5 / (signs > 0).sum(), 0.5 / (signs < 0).sum())
    M, Sigma = state_moments(ends, signs, share)
    v = v[:, 0]
    margin = float(M @ v - told["eta"] / 2 * v @ Sigma @ v)
    # The interval holds with 95 %; this seed is one of those, with room of half its width.
    half = (told["expected"]["high"] - told["expected"]["low"]) / 2
    assert abs(margin - told["expected"]["soft_margin"]) < 1.5 * half
    assert half < 0.25 * margin
    # What is proven: no sign mask is above the bound, here of all 2⁵ that differ.
    device = MeasuredResponse.fit(
        np.loadtxt(loop, delimiter=",", skiprows=1)[:, :N],
        np.loadtxt(loop, delimiter=",", skiprows=1)[:, N:],
        n_steps=STEPS,
    )
    from greenfold import optimize

    stimuli = SampleStimuli(data["X"], data["y"])
    every = [
        optimize(device, stimuli, u=np.array([1.0, *(2 * ((k >> np.arange(5)) & 1) - 1)]))
        for k in range(32)
    ]
    best = max(one.soft_margin for one in every)
    assert told["soft_margin"] == pytest.approx(best, rel=1e-9)
    assert best <= told["upper_bound"]
    assert told["share"] == pytest.approx(best / told["upper_bound"])
    assert told["gain"] == pytest.approx(
        told["expected"]["soft_margin"] / np.mean(told["random"]["soft_margins"])
    )


@pytest.mark.contract
@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--mask", "levels=0,2"], lambda u: set(u) <= {0.0, 2.0}),
        (["--mask", "levels=3"], lambda u: len(set(np.abs(u).round(12))) <= 2),
        (["--mask", "at-most=2"], lambda u: 0 < np.count_nonzero(u) <= 2),
        # Ascents in a range take longer.
        pytest.param(
            ["--mask", "nonnegative"], lambda u: (u >= 0).all(), marks=pytest.mark.slow
        ),
        pytest.param(
            ["--mask", "box=-0.5,0.6"],
            lambda u: (u >= -0.5 - 1e-9).all() and (u < 0.6 + 1e-9).all(),
            marks=pytest.mark.slow,
        ),
        (["--mask", "free"], lambda u: abs(u @ u - 1) < 1e-12),
    ],
)
def test_kinds_of_mask(tmp_path, loop, short_beats, arguments, allowed):
    out = tmp_path / "mask.csv"
    told = invoke("mask", loop, short_beats, *arguments, "--out", out, *QUICK).stdout
    assert allowed(weights(out)[1].ravel())
    for part in ("linearity", "proven bound", "interval", "random mask", "expected gain"):
        assert part in told


def test_noise_eta_and_lags_reach_the_solution(loop, short_beats):
    def told(*arguments):
        out = invoke("mask", loop, short_beats, *arguments, *QUICK, "--json").stdout
        return json.loads(out)

    plain = told("--eta", "5", "--lags", "8")
    assert plain["n_lags"] == 8
    # Of a unit readout, noise σ takes ησ²/2 from every κ.
    noisy = told("--eta", "5", "--noise", "0.1", "--lags", "8")
    for path in (("soft_margin",), ("upper_bound",), ("expected", "low")):
        a, b = plain, noisy
        for key in path:
            a, b = a[key], b[key]
        assert b == pytest.approx(a - 5 / 2 * 0.01, abs=1e-6)
    assert noisy["noise_cost"]["readout"] == pytest.approx(0.025)
    assert (
        told("--eta", "5", "--lags", "8", "--input-noise", "0.5")["soft_margin"]
        < (plain["soft_margin"])
    )


@pytest.mark.contract
def test_the_same_twice_and_from_npz(tmp_path, drive, loop, short_beats):
    table = np.loadtxt(loop, delimiter=",", skiprows=1)
    np.savez(tmp_path / "loop.npz", drive=table[:, :N], states=table[:, N:])
    quick = ["--mask", "sign", "--replicates", "10", "--draws", "2"]
    results = [
        json.loads(invoke("mask", one, short_beats, *quick, "--json").stdout)
        for one in (loop, tmp_path / "loop.npz")
    ]
    assert results[0] | {"recording": None} == results[1] | {"recording": None}
    both = invoke("mask", loop, short_beats, "--more", loop, *quick, "--json").stdout
    assert json.loads(both)["n_samples"] > 1.9 * results[0]["n_samples"]


def test_the_page_stands_alone(tmp_path, loop):
    X, y = synthetic_heartbeats(80, n_steps=STEPS, rng=3)
    X = np.stack([X, X[:, ::-1]], axis=1)  # two channels
    names = np.array(["<b>a</b>", "b", "c"])[np.where(y > 0, 1, np.arange(80) % 2 * 2)]
    write_npz(tmp_path / "three.npz", X, names)
    page, out = tmp_path / "page.html", tmp_path / "mask.csv"
    kind = ["--mask", "sign", "--drive", "drive_0,drive_1,drive_2"]
    choice = [*kind, "--classes", "<b>a</b>,b", "--report", page, "--out", out]
    told = invoke("mask", loop, tmp_path / "three.npz", *choice, *QUICK).stdout
    assert "2 channels" in told
    text = page.read_text()
    assert weights(out)[1].shape == (3, 2)
    assert text.count("<figure") == 2
    assert not re.search(r"https?://|<script|<b>a</b>", text)


@pytest.mark.parametrize(
    ("arguments", "part", "code"),
    [
        (["--mask", "binary"], "--mask must be sign, nonnegative, levels=…, box=", 2),
        (["--mask", "sign=3"], "--mask must be", 2),
        (["--mask", "levels=few"], "--mask must be", 2),
        (["--mask", "box=1"], "not 'box=1'", 2),
        (["--lags", "0"], "--lags", 2),
        (["--eta", "0"], "--eta", 2),
        (["--out", "no/such/folder.csv"], "--out", 2),
        (["--drive", "laser"], "laser", 1),
        (["--classes", "odd,even"], "odd", 1),
        (["--mask", "box=-0.1,0.1"], "(-0.1, 0.1) leaves no vector", 1),
        (["--lags", "2"], "--lags = 2 is shorter than the memory", 1),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(
    loop, short_beats, arguments, part, code
):
    result = invoke("mask", loop, short_beats, *arguments, code=code)
    one_sentence(result.stderr)
    assert part in result.stderr
    assert result.stdout == ""


def test_bad_recordings_leave_no_mask(tmp_path, loop, short_beats):
    lines = loop.read_text().splitlines()
    bad = {
        "short.csv": (lines[:20], "record"),
        "gap.csv": (
            [f"t,{lines[0]}"]
            + [f"{k + (k > 50)},{one}" for k, one in enumerate(lines[1:200])],
            "several recordings",
        ),
        "nameless.csv": ([re.sub("drive", "laser", lines[0]), *lines[1:]], "--drive"),
        "other.bin": (["?"], "suffix"),
    }
    for name, (content, part) in bad.items():
        (tmp_path / name).write_text("\n".join(content) + "\n")
        out = tmp_path / "mask.csv"
        result = invoke("mask", tmp_path / name, short_beats, "--out", out, code=1)
        one_sentence(result.stderr)
        assert part in result.stderr
        assert not out.exists()


def test_several_classes_get_one_mask_and_a_readout_each(tmp_path, loop):
    """The written readouts tell the classes apart on the device itself."""
    three, out, readout = (tmp_path / name for name in ("three.npz", "m.csv", "v.csv"))
    labels, rng = np.arange(240) % 3, np.random.default_rng(0)
    X = np.exp(-((np.arange(STEPS) - 2 - 1.5 * labels[:, None]) ** 2) / 2)
    X += 0.3 * rng.standard_normal(X.shape)
    write_npz(three, X, np.array(["a", "b", "c"])[labels])
    given = ["mask", loop, three, "--out", out, "--readout", readout]
    told = json.loads(invoke(*given, "--json").stdout)
    assert told["classes"] == ["a", "b", "c"]
    assert told["share"] <= 1
    (_, mask), (_, V) = weights(out), weights(readout)
    u = mask[:, 0] / np.linalg.norm(mask)
    series = (X - np.ravel(told["centre"])) * told["scale"]
    made = np.array([ring(np.outer(one, u))[-1] for one in series]) @ V
    # The noise of the recording, 0.05, is left out here: it lowers the expected accuracy.
    assert (made.argmax(1) == labels).mean() > told["accuracy"]["solved"] - 0.08
    assert told["accuracy"]["solved"] > 0.6
    text = invoke(*given).stdout
    assert "3, with one mask and a readout each" in text
    assert "33.3% by naming the largest class" in text
    # Noise of the readout that the recording does not contain, on the device itself.
    noisy = json.loads(invoke(*given, "--noise", "2", "--json").stdout)
    assert noisy["r2"] < told["r2"]
    mask = weights(out)[1][:, 0]
    series = (X - np.ravel(noisy["centre"])) * noisy["scale"]
    driven = noisy["accuracy"]["amplitude"] * series[..., None] * mask
    ends = np.array([ring(one)[-1] for one in driven])
    ends = ends + 2 * rng.standard_normal(ends.shape)
    found = cross_val_score(RidgeClassifier(), ends, labels, cv=20).mean()
    # 240 series: 3 points each.
    assert noisy["accuracy"]["solved"] == pytest.approx(found, abs=0.1)
    assert noisy["accuracy"]["solved"] < told["accuracy"]["solved"] - 0.05
    result = invoke(*given, "--eta", "5", code=2)
    one_sentence(result.stderr)
    assert "--eta is for two classes" in result.stderr
    write_npz(three, X[labels == 0], labels[labels == 0])
    result = invoke(*given, code=1)
    one_sentence(result.stderr)
    assert "has one class (0)" in result.stderr


def test_what_no_mask_can_do_and_what_is_not_known_is_said(tmp_path, drive, short_beats):
    rng = np.random.default_rng(0)
    states = ring(drive, 0.05)
    names = [f"drive_{i}" for i in range(N)] + [f"state_{i}" for i in range(N - 1)]
    bent = tmp_path / "bent.csv"
    table = np.column_stack([drive, states + 0.2 * states**2])
    np.savetxt(bent, table, delimiter=",", header=",".join(names), comments="")
    few = tmp_path / "few.npz"
    labels = (np.arange(1500) % 3 > 0).astype(int)
    write_npz(few, rng.standard_normal((1500, STEPS)), labels)
    told = invoke("mask", bent, few, *QUICK).stdout
    assert "66.7% by naming the largest class" in told
    assert "naming the largest class is as accurate" in told
    assert "more than 2 % of the variance of the outputs is non-linear" in told
    same = np.tile([[0.0, 1.0], [1.0, 0.0]], (2, STEPS // 2))
    write_npz(few, same, np.array([0, 0, 1, 1]))
    result = invoke("mask", bent, few, *QUICK, code=1)
    one_sentence(result.stderr)
    assert "coincide" in result.stderr
    assert "normalize" not in result.stderr
    np.savetxt(bent, table[:60], delimiter=",", header=",".join(names), comments="")
    result = invoke("mask", bent, short_beats, "--lags", "1", *QUICK, code=1)
    one_sentence(result.stderr)
    assert "too short: 60 samples" in result.stderr
    assert "record at least 100 samples" in result.stderr


@pytest.mark.contract
def test_the_range_of_the_drive_gives_an_offset_for_each_input(tmp_path, loop, short_beats):
    out = tmp_path / "mask.csv"
    given = ["mask", loop, short_beats, "--range", "0,2", "--out", out, *QUICK]
    told = json.loads(invoke(*given, "--json").stdout)
    _, table = weights(out)
    mask, offset = table.T
    with np.load(short_beats) as archive:
        X = archive["X"].reshape(-1, STEPS)
    series = (X - np.ravel(told["centre"])) * told["scale"]
    drive = offset + told["encoding"]["gain"] * series[..., None] * mask
    assert drive.min() == pytest.approx(0, abs=1e-12)
    assert drive.max() == pytest.approx(2)
    assert "drive in the range" in invoke(*given).stdout
    result = invoke(*given[:4], "0,9", *given[5:], code=2)
    one_sentence(result.stderr)
    assert "--range reaches beyond the recorded drive" in result.stderr
    result = invoke(*given[:4], "2,0", *given[5:], code=2)
    one_sentence(result.stderr)
    assert "--range must be two rising numbers" in result.stderr


@pytest.mark.contract
def test_one_input_is_told_of_virtual_nodes_and_no_gain_is_promised(
    tmp_path, loop, short_beats
):
    """Two masks, both the same up to their sign."""
    out = tmp_path / "mask.csv"
    told = invoke(
        "mask", loop, short_beats, "--drive", "drive_0", *QUICK, "--out", out
    ).stdout
    assert "virtual nodes" in told
    assert "none within the interval" in told
    record = json.loads(
        invoke("mask", loop, short_beats, "--drive", "drive_0", *QUICK, "--json").stdout
    )
    assert record["expected"]["soft_margin"] <= record["upper_bound"]
    assert record["gain"] is None


def test_outputs_unrelated_to_the_drive_leave_no_mask(tmp_path, loop, short_beats):
    table = np.loadtxt(loop, delimiter=",", skiprows=1)
    table[:, N:] = np.random.default_rng(9).standard_normal((len(table), N - 1))
    header = loop.read_text().partition("\n")[0]
    other = tmp_path / "other.csv"
    np.savetxt(other, table, delimiter=",", header=header, comments="")
    out = tmp_path / "mask.csv"
    result = invoke("mask", other, short_beats, "--out", out, code=1)
    one_sentence(result.stderr)
    assert "no more than chance" in result.stderr
    assert not out.exists()


SMALL = ["--neurons", "12", "--steps", "20", "--delays", "1-4"]


def test_memory_is_that_of_the_library():
    told = json.loads(invoke("memory", *SMALL, "--noise", "0.2", "--json").stdout)
    network = unfold(Reservoir.random(12, tau=2.0, rng=0), n_steps=20, dt=0.5)
    solved = memory_capacity(
        network, delays=range(1, 5), device=Device(readout_noise=0.2), rng=0
    )
    assert told["solved"]["total"] == pytest.approx(solved.total, rel=1e-9)
    assert told["delays"] == [1, 2, 3, 4]
    # Ridge regression on a long run of white noise is the judge: its R² is the capacity,
    # up to about 1/√n of the samples.
    u = np.array(told["solved"]["u"])
    x = np.random.default_rng(5).standard_normal(20_000)
    windows = np.lib.stride_tricks.sliding_window_view(x, 20)
    states = windows @ network.input_response(u)
    states = states + 0.2 * np.random.default_rng(6).standard_normal(states.shape)
    total = 0.0
    for delay in range(1, 5):
        target = windows[:, 19 - delay]
        fitted = states @ np.linalg.lstsq(states, target, rcond=None)[0]
        total += 1 - ((target - fitted) ** 2).mean() / target.var()
    assert told["solved"]["total"] == pytest.approx(total, abs=4 * 4 / np.sqrt(20_000))
    assert told["random"]["best"] < told["solved"]["total"] <= told["bound"] * (1 + 1e-9)


def test_memory_draws_projections_that_know_nothing_of_the_network():
    """From the seed of the network itself the first u would be a row of its weights."""
    told = json.loads(invoke("memory", *SMALL, "--draws", "1", "--json").stdout)
    network = Reservoir.random(12, tau=2.0, rng=0)
    system = unfold(network, n_steps=20, dt=0.5)
    for row in network.weights:
        known = memory_capacity(system, row, delays=range(1, 5))
        assert abs(told["random"]["best"] - known.total) > 1e-9


def test_memory_prints_a_table(tmp_path):
    told = invoke("memory", *SMALL, "--noise", "0.2").stdout
    for part in ("noise 0.2", "random", "solved", "upper bound"):
        assert part in told
    np.save(tmp_path / "W.npy", 0.3 * np.eye(5))
    told = invoke("memory", "--weights", "W.npy", "--delays", "0,2", "--json").stdout
    assert json.loads(told)["neurons"] == 5


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--delays", "some"], "--delays"),
        (["--delays", "5-2"], "--delays"),
        (["--noise", "0"], "--noise"),
        (["--delays", "0-30", "--steps", "20"], "--steps"),
    ],
)
def test_memory_refuses_in_one_sentence(arguments, part):
    result = invoke("memory", *arguments, code=2)
    one_sentence(result.stderr)
    assert part in result.stderr


def test_ctrl_c_leaves_no_mask(tmp_path, loop, short_beats, monkeypatch):
    """Stopped where the third replicate is solved: one word, the usual status, no file."""
    from greenfold.analysis import intervals

    solved, calls = intervals.solved_again, []

    def pressed(*arguments):
        calls.append(None)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return solved(*arguments)

    monkeypatch.setattr(intervals, "solved_again", pressed)
    out = tmp_path / "mask.csv"
    done = invoke("mask", loop, short_beats, "--mask", "sign", "--out", out, code=130)
    assert len(calls) == 3
    assert done.stderr == "greenfold: interrupted.\n"
    assert not out.exists()
