"""Networks × stimuli: what is computed, that it is right, and that it survives a kill."""

from __future__ import annotations

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greenfold import (
    Device,
    Reservoir,
    SampleStimuli,
    memory_capacity,
    optimize,
    unfold,
)
from greenfold.apps import study as planning
from greenfold.apps.runner import SEAL, Workers
from greenfold.apps.study import (
    ARCHITECTURES,
    PRESETS,
    Grid,
    Setting,
    judge,
    plan,
    read_config,
    read_study,
    study,
    write_table,
)
from greenfold.datasets import load_dataset
from greenfold.devices.noise import state_covariance

from ...cli.conftest import invoke
from ...conftest import interrupt

ONE = Workers(n_jobs=1)
SMALL = {"neurons": 8, "tau": 1.0}


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_g_is_the_spectral_radius_of_every_architecture(name):
    setting = Setting(name, 20, g=0.7, tau=0.5, seed=3, gain="tanh")
    network = setting.network()
    assert network.n_neurons == 20
    assert network.tau == 0.5
    assert network.gain.name == "tanh"
    radius = np.abs(np.linalg.eigvals(network.weights)).max()
    if name == "delay_line":
        assert network.weights.max() == 0.7
    elif name != "legendre":
        assert radius == pytest.approx(0.7, rel=1e-6)
    again = setting.network()
    np.testing.assert_array_equal(network.weights, again.weights)
    other = replace(setting, seed=4).network()
    assert np.array_equal(network.weights, other.weights) != ARCHITECTURES[name]


def test_a_row_is_what_the_library_finds(archive):
    grid = Grid({**SMALL, "inside": [0.0, 0.05]}, settings={"draws": 3, "memory": True})
    done = study(["Beats"], grid, "out", data_dir=archive, workers=ONE)
    assert (done.total, done.made, done.failures) == (2, 2, [])
    rows = {row["inside"]: row for row in read_study("out")}
    X, y = load_dataset("Beats", "train", data_dir=archive)
    stimuli = SampleStimuli(X, np.asarray(y).astype(str))
    network = Reservoir.random(8, tau=1.0, rng=0, spectral_radius=0.9)
    system = unfold(network, n_steps=16, dt=10 / 16)
    for inside, row in rows.items():
        P = state_covariance(network, inside) if inside else None
        found = optimize(system, stimuli, device=Device(state_noise=P))
        assert row["kappa"] == pytest.approx(found.soft_margin, rel=1e-9)
        assert row["kappa"] <= row["bound"] * (1 + 1e-9)
        assert row["kappa_random"] < row["kappa"]
        # Draws of the noise are the judge of the accuracy in closed form.
        X_test, y_test = load_dataset("Beats", "test", data_dir=archive)
        z = system.states(stimuli.transform(X_test), found.u) @ found.v
        z_train = system.states(stimuli.series, found.u) @ found.v
        signs = np.where(np.asarray(y_test).astype(str) == stimuli.classes[1], 1, -1)
        rng = np.random.default_rng(0)
        noise = 0.1 * rng.standard_normal((4000, len(z)))
        if P is not None:
            noise += rng.multivariate_normal(np.zeros(8), P, (4000, len(z))) @ found.v
        groups = [z_train[stimuli.signs == s] for s in (-1, 1)]
        low, high = (group.mean() for group in groups)
        scatter = sum(((group - group.mean()) ** 2).sum() for group in groups)
        spread = scatter / len(z_train) + 0.01 + (0 if P is None else found.v @ P @ found.v)
        odds = np.log(len(groups[1]) / len(groups[0]))
        plane = (low + high) / 2 - odds * spread / (high - low)
        right = (((z + noise) > plane) == (signs > 0)).mean()
        # 80,000 draws, of twenty series: 4 standard errors.
        assert abs(right - row["accuracy_0.1"]) < 4 * 0.5 / np.sqrt(4000 * len(z))
    assert rows[0.0]["memory"] <= rows[0.0]["memory_bound"] * (1 + 1e-9)
    assert rows[0.0]["memory_random"] < rows[0.0]["memory"]
    # The stream of the network itself would give rows of its weights for u.
    system = unfold(network, n_steps=40, dt=10 / 40)
    same = memory_capacity(system, "random", n_draws=3, rng=0).random
    assert same is not None
    assert abs(rows[0.0]["memory_random"] - same.mean()) > 1e-9


@pytest.mark.parametrize("order", [1, pytest.param("exact", marks=pytest.mark.slow)])
def test_non_linear_orders(archive, order):
    X, y = load_dataset("Beats", "train", data_dir=archive)
    stimuli = SampleStimuli(X, y)
    grid = Grid({"neurons": 5, "tau": 1.0, "order": order, "gain": "biased_tanh:0.5"})
    for setting in grid.networks():
        row = judge(setting, stimuli, stimuli.series, np.asarray(stimuli.signs))
        assert row["bound"] is None
        assert ("trustworthy" in row) == (setting.order == 1)
        assert row["kappa"] > row["kappa_random"]
        assert 0.5 < row["accuracy_0"] <= 1


def test_a_grid_is_all_combinations_each_once():
    networks = Grid(
        {"architecture": ["random", "cycle"], "neurons": [10, 20], "seed": range(3)}
    ).networks()
    # A ring has nothing to draw: three seeds are one network.
    assert len(networks) == 2 * 3 + 2 * 1
    drawn = Grid(
        {"g": {"low": 0.1, "high": 0.9}, "tau": {"low": 0.1, "high": 10, "log": True}},
        n_random=200,
        random_state=1,
    )
    found = drawn.networks()
    assert found == drawn.networks()
    assert len(found) == 200
    taus = np.log([one.tau for one in found])
    # Uniform in the logarithm: its mean scatters by the width over √12 · √200.
    assert abs(taus.mean()) < 4 * np.log(100) / np.sqrt(12 * 200)
    assert all(0.1 <= one.g <= 0.9 for one in found)


@pytest.mark.parametrize(
    ("axes", "settings", "more", "message"),
    [
        ({"neuron": 5}, {}, {}, "`axes` may hold architecture, neurons"),
        ({}, {"nois": 1}, {}, "`settings` may hold eta, duration"),
        ({"g": []}, {}, {}, "'g' has no values"),
        ({"architecture": "ring"}, {}, {}, "`architecture` must be one of random"),
        ({"neurons": 0}, {}, {}, "`neurons` must be at least 1"),
        ({"neurons": 2.5}, {}, {}, "`neurons` must be an integer"),
        ({"architecture": "oscillators", "neurons": 5}, {}, {}, "come in pairs"),
        ({"tau": -1}, {}, {}, "`tau` must be a positive"),
        ({"tau": float("nan")}, {}, {}, "`tau` must be a positive"),
        ({"order": "two"}, {}, {}, "`order` must be an integer"),
        ({"gain": "cubic"}, {}, {}, "`gain` must be one of linear"),
        ({"gain": "quadratic"}, {}, {}, "needs a number"),
        ({"gain": "linear:2"}, {}, {}, "takes no number"),
        ({"inside": -1}, {}, {}, "must not be negative"),
        ({"inside": 0.1, "order": 1, "gain": "tanh"}, {}, {}, "of order 0"),
        ({"g": {"low": 0.1, "high": 0.9}}, {}, {}, "is for a random search"),
        ({"g": {"low": 0.9, "high": 0.1}}, {}, {"n_random": 3}, "must have low < high"),
        ({"g": {"from": 0.9}}, {}, {"n_random": 3}, "is written {low, high}"),
        ({"gain": {"low": 1, "high": 2}}, {}, {"n_random": 3}, "has no range"),
        ({}, {}, {"n_random": 0}, "`n_random` must be at least 1"),
        ({}, {"eta": 0}, {}, "`eta` must be a positive"),
        ({}, {"noise": [-1]}, {}, "`noise` must not be negative"),
        ({}, {"noise": "much"}, {}, "`noise` must be a number"),
        ({}, {"memory": "yes"}, {}, "`memory` must be true or false"),
    ],
)
def test_wrong_grids_are_named(axes, settings, more, message):
    with pytest.raises(ValueError, match=message):
        Grid(axes, settings=settings, **more).networks()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["Three"], "name two of them, as in Three:1,3"),
        (["Three:1,4"], "name two of them"),
        (["Beats:1"], "name two of them"),
        ([], "at least one data set"),
    ],
)
def test_wrong_data_are_named(archive, names, message):
    with pytest.raises(ValueError, match=message):
        plan(names, Grid(), data_dir=archive, download=False)
    with pytest.raises(ValueError, match="`grids` are empty"):
        plan(["Beats"], [], data_dir=archive)


def test_a_network_of_two_grids_is_solved_once(archive):
    grids = [Grid(SMALL), Grid(SMALL, settings={"memory": True}), Grid(SMALL)]
    (job,) = plan(["Beats"], grids, data_dir=archive)
    assert job.configuration["setting"]["memory"]


def test_two_classes_of_three(archive):
    study(["Three:1,2"], Grid(SMALL), "out", data_dir=archive, workers=ONE)
    _, y = load_dataset("Three", "train", data_dir=archive)
    (row,) = read_study("out")
    assert row["n_train"] == (np.asarray(y).astype(str) != "3").sum()
    # Another pair is another task, and never averaged with this one.
    study(["Three:1,3"], Grid(SMALL), "out", data_dir=archive, workers=ONE)
    assert {row["dataset"] for row in read_study("out")} == {"Three:1,2", "Three:1,3"}


def test_a_network_that_fails_is_recorded_and_the_rest_goes_on(archive):
    # Its radius is 1.5: the eigenvalues of a ring reach 1 and more.
    grid = Grid({**SMALL, "architecture": "cycle", "g": [0.5, 1.5]})
    done = study(["Beats"], grid, "out", data_dir=archive, workers=ONE)
    assert (done.made, len(done.failures)) == (1, 1)
    assert "unstable" in done.failures[0].error
    assert len(read_study("out")) == 1


def test_tables(archive, tmp_path):
    study(["Beats"], Grid({**SMALL, "g": [0.5, 0.9]}), "out", data_dir=archive, workers=ONE)
    rows = read_study("out")
    made = write_table(rows, tmp_path / "a" / "t.csv")
    with open(made, newline="") as stream:
        back = list(csv.DictReader(stream))
    assert [float(row["kappa"]) for row in back] == [row["kappa"] for row in rows]
    with pytest.raises(ValueError, match=r"must end in .csv or .parquet"):
        write_table(rows, "t.xls")
    with pytest.raises(FileNotFoundError, match="no results of a study"):
        read_study(tmp_path / "none")


@pytest.mark.needs("pyarrow")
def test_a_table_in_parquet(tmp_path):
    from pyarrow import parquet

    rows = [{"dataset": "Beats", "kappa": 0.25}, {"dataset": "Three", "kappa": 0.5}]
    table = parquet.read_table(write_table(rows, tmp_path / "t.parquet"))
    assert table.column("kappa").to_pylist() == [0.25, 0.5]


def test_damaged_and_foreign_files_are_left_out(archive):
    study(["Beats"], Grid({**SMALL, "g": [0.5, 0.9]}), "out", data_dir=archive, workers=ONE)
    first, _second = sorted(Path("out/results/Beats").glob("*.json"))
    first.write_text(first.read_text().replace('"kappa": 0', '"kappa": 1'))
    (first.parent / "notes.json").write_text('{"mine": 1}\n')
    assert len(read_study("out")) == 1
    grid = Grid({**SMALL, "g": [0.5, 0.9]})
    done = study(["Beats"], grid, "out", data_dir=archive, workers=ONE)
    assert (done.made, done.redone, done.found) == (1, 1, 1)
    assert len(read_study("out")) == 2
    assert SEAL not in first.read_text()


def test_an_interrupted_study_goes_on_and_loses_nothing(archive, monkeypatch):
    """Ctrl-C in the third network; in a process of its own: below."""
    options = ["Beats", "-n", "5,6", "--g", "0.5,0.9", "--data-dir", archive]
    options += ["--jobs", 1, "--figures", "none", "--out", "out", "--json"]
    with monkeypatch.context() as patch:
        interrupt(patch, planning, "judge", after=2)
        said = invoke("study", *options, code=130).stderr
    assert "2 of 4 results are written; run the same command again" in said
    kept = {path: path.stat().st_mtime_ns for path in Path("out/results").rglob("*.json")}
    assert len(kept) == 2
    record = json.loads(invoke("study", *options).stdout)
    assert (record["total"], record["found"], record["made"]) == (4, 2, 2)
    for path, written in kept.items():
        assert path.stat().st_mtime_ns == written  # not made twice
    # A study that was never stopped has the same numbers.
    grid = Grid({"neurons": [5, 6], "g": [0.5, 0.9]})
    study(["Beats"], grid, "whole", data_dir=archive, workers=ONE)
    for row, other in zip(record["rows"], read_study("whole"), strict=True):
        assert row | {"seconds": 0} == other | {"seconds": 0}


@pytest.mark.contract
def test_a_killed_study_goes_on_and_loses_nothing(archive):
    """A real process, killed without warning after some results, and one by Ctrl-C."""
    options = ["Beats", "-n", "6,10", "--g", "0.5,0.7,0.9", "--seeds", "2"]
    options += ["--data-dir", str(archive), "--jobs", "1", "--figures", "none"]
    line = [sys.executable, "-m", "greenfold", "study", *options, "--out", "out"]

    def finished() -> dict[str, int]:
        files = Path("out/results").rglob("*.json")
        return {path.name: path.stat().st_mtime_ns for path in files}

    kept: dict[str, int] = {}
    for number, how in ((1, signal.SIGKILL), (4, signal.SIGINT)):
        process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 120
        while len(finished()) < number and time.monotonic() < limit:
            time.sleep(0.02)
        os.kill(process.pid, how)
        _, said = process.communicate(timeout=60)
        assert number <= len(finished()) < 12
        for name, written in kept.items():
            assert finished()[name] == written  # not made twice
        kept = finished()
    assert "of 12 results are written; run the same command again" in said
    record = json.loads(invoke("study", *options, "--out", "out", "--json").stdout)
    assert (record["total"], record["found"]) == (12, len(kept))
    assert record["made"] == 12 - len(kept)
    rows = record["rows"]
    keys = {(row["neurons"], row["g"], row["seed"]) for row in rows}
    assert len(rows) == len(keys) == 12
    for name, written in kept.items():
        assert finished()[name] == written
    # A study that was never stopped has the same numbers.
    grid = Grid({"neurons": [6, 10], "g": [0.5, 0.7, 0.9], "seed": range(2)})
    study(["Beats"], grid, "whole", data_dir=archive, workers=ONE)
    for row, other in zip(rows, read_study("whole"), strict=True):
        assert row | {"seconds": 0} == other | {"seconds": 0}


CONFIG = """
datasets = ["Beats"]

[[grid]]
architecture = ["random", "legendre"]
neurons = 8
g = [0.5, 0.9]
tau = [0.5, 1.0]
draws = 2

[[grid]]
random = 3
neurons = 6
tau = { low = 0.1, high = 2.0, log = true }
"""


def test_a_study_in_a_file_with_its_figures(archive):
    Path("study.toml").write_text(CONFIG)
    datasets, _ = read_config("study.toml")
    assert datasets == ["Beats"]
    where = ["--data-dir", str(archive), "--jobs", "1"]
    told = invoke("study", "--config", "study.toml", *where).stdout
    assert "random κ" in told
    table = told.partition("Table and figures")[0]
    assert max(map(len, table.splitlines())) <= 80
    for name in ("study.csv", "Beats_architectures_8.svg", "Beats_map.svg"):
        assert Path("study", name).stat().st_size > 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("datasets = [", "is not a TOML file"),
        ("dataset = []", "may hold the keys datasets, grid; got dataset"),
        ("datasets = 'A'\n[[grid]]", "`datasets` must be a list of names"),
        ("datasets = []", r"no table \[\[grid\]\]"),
        ("[[grid]]\nsize = 3", "a grid may hold architecture, neurons"),
    ],
)
def test_wrong_files_are_named(text, message):
    Path("study.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_config("study.toml")


@pytest.mark.contract
def test_every_size_is_drawn_under_a_legal_name_with_its_memory(archive):
    """Windows has no colon in the name of a file."""
    kinds = ["-a", "random", "-a", "cycle", "-n", "5,6", "--memory", "--classes", "1,2"]
    where = ["--data-dir", str(archive), "--jobs", "1"]
    told = json.loads(invoke("study", "Beats", *kinds, *where, "--json").stdout)
    names = sorted(Path(one).name for one in told["files"])
    assert [one for one in names if "architectures" in one] == [
        "Beats-1-2_architectures_5.svg",
        "Beats-1-2_architectures_6.svg",
    ]
    assert {row["dataset"] for row in told["rows"]} == {"Beats:1,2"}
    shown = invoke("study", "Beats", *kinds, *where).stdout
    assert "memory" in shown


def test_presets_can_be_planned():
    for datasets, grids in PRESETS.values():
        assert datasets
        assert all(grid.networks() for grid in grids)


def refused(*arguments: str, code: int) -> str:
    """The one line on stderr."""
    (line,) = invoke("study", *arguments, code=code).stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--preset", "others"], 2, "--preset must be one of architectures"),
        (["--preset", "architectures", "--g", "0.5"], 2, "no other network options"),
        (["Beats", "-n", "some"], 2, "--neurons must be numbers like 1,2"),
        (["Beats", "--g", "strong"], 2, "--g must be numbers like 1,2"),
        (["Beats", "--order", "many"], 2, "--order must be like 0,1"),
        (
            ["Beats", "--table", "xls"],
            2,
            "--table must be one of 'csv', 'parquet', not 'xls'",
        ),
        (["Beats", "--figures", "gif"], 2, "--figures must be one of 'svg'"),
        (["--neurons", "5"], 2, "name a data set"),
        (["Beats", "-a", "ring"], 1, "--architecture must be one of"),
        (["Beats", "--g", "0.1..0.9"], 1, "is for a random search"),
        (["--config", "none.toml"], 1, "none.toml"),
    ],
)
def test_wrong_commands_are_one_sentence(archive, arguments, code, message):
    assert message in refused(*arguments, "--data-dir", str(archive), code=code)
    assert not Path("study/results").exists()


def test_a_folder_that_cannot_be_written(archive):
    Path("out").write_text("a file")
    where = ["--out", "out", "--data-dir", str(archive), "--jobs", "1"]
    assert "out" in refused("Beats", "-n", "5", *where, code=1)


def test_a_full_disk_is_said_and_what_was_written_stays(archive, monkeypatch):
    from greenfold.apps import runner

    whole, written = runner.replacing, []

    @contextmanager
    def filling(path):
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        with whole(path) as stream:
            yield stream
        written.append(path)

    where = ["--out", "out", "--data-dir", str(archive), "--jobs", "1"]
    with monkeypatch.context() as full:
        full.setattr(runner, "replacing", filling)
        line = refused("Beats", "-n", "5,6,7,8", *where, code=1)
    assert "No space left on device" in line
    assert len(read_study("out")) == 2
    done = study(
        ["Beats"], Grid({"neurons": [5, 6, 7, 8]}), "out", data_dir=archive, workers=ONE
    )
    assert (done.found, done.made) == (2, 2)
