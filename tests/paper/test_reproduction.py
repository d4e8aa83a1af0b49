"""The figures' numbers, held to tolerances that come from their stated spread.

Reduced versions run in `make test`; the full ones, as in the paper, are marked slow.
"""

import json
import signal
from dataclasses import dataclass, replace
from functools import partial
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from greenfold import optimize, paper
from greenfold._files import plain
from greenfold.datasets import ecg5000_paper
from greenfold.paper import _setting, beyond, fig2, fig3, fig4, supplement, table1
from greenfold.paper._run import Run
from greenfold.paper._style import style


@dataclass(frozen=True)
class Toy:
    factor: int = 2


def double(p, item):
    return {"value": np.array([p.factor * item, np.nan])}


def compute(module, parameters, folder, heartbeats=None):
    """Numbers of a figure, which must also be drawable and describable."""
    run = Run(module.__name__, parameters, folder, 1, heartbeats)
    numbers = plain(module.compute(run))
    with style():
        module.draw(numbers, parameters)
    assert all(isinstance(line, str) for line in module.summary(numbers, parameters))
    return numbers


@pytest.fixture(scope="session")
def heartbeats(data_dir):
    return ecg5000_paper(data_dir)


# --- running ----------------------------------------------------------------------------


def test_writes_every_format_and_all_numbers(tmp_path):
    (outcome,) = paper.reproduce("fig1", tmp_path, quick=True, n_jobs=1)
    assert outcome.skipped is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "fig1.json",
        "fig1.pdf",
        "fig1.png",
        "fig1.svg",
    ]
    record = json.loads((tmp_path / "fig1.json").read_text(encoding="utf-8"))
    assert record["numbers"] == outcome.numbers
    assert record["parameters"]["n_neurons"] == 100
    assert {"greenfold", "numpy", "scipy", "python"} <= set(record["versions"])
    assert ElementTree.parse(tmp_path / "fig1.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "fig1.pdf").read_bytes().startswith(b"%PDF")
    assert outcome.numbers["margin"] > 0
    assert outcome.title in str(outcome)


def test_goes_on_where_it_was_interrupted(tmp_path):
    calls = []

    def work(item):
        calls.append(item)
        if item == 2 and len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return double(Toy(), item)

    run = partial(Run, "toy", Toy(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run().map("units", work, range(4))
    found = run().map("units", work, range(4))
    assert calls == [0, 1, 2, 2, 3]
    assert found == [{"value": [2.0 * i, None]} for i in range(4)]
    run().forget()
    assert not list(tmp_path.iterdir())


def test_an_interrupt_that_the_work_swallows_is_felt(tmp_path):
    def work(item):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return "the best so far"

    run = Run("toy", Toy(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run.map("units", work, range(2))
    assert not list(run.folder.iterdir())


def test_a_damaged_checkpoint_is_computed_again(tmp_path):
    run = Run("toy", Toy(), tmp_path)
    wanted = run.map("units", partial(double, Toy()), range(2))
    (run.folder / "units-0001.json").write_text('{"resu', encoding="utf-8")
    assert run.map("units", partial(double, Toy()), range(2)) == wanted


def test_another_parameter_is_another_run(tmp_path):
    assert Run("toy", Toy(2), tmp_path).folder != Run("toy", Toy(3), tmp_path).folder


def test_processes_change_nothing(tmp_path):
    p = replace(fig2.QUICK, n_random=4, n_stimuli=3)
    work = partial(fig2.random_part, p)
    items = _setting.chunks(4, 2)
    one, two = (Run(f"jobs{n}", p, tmp_path, n).map("units", work, items) for n in (1, 2))
    np.testing.assert_allclose(one[1]["total"], two[1]["total"], rtol=1e-12)


def test_one_sentence_where_the_data_are_missing(tmp_path, monkeypatch):
    def absent(_):
        raise FileNotFoundError("The data set 'ECG5000' is not on this machine: put …")

    monkeypatch.setattr(paper.figures, "ecg5000_paper", absent)
    (outcome,) = paper.reproduce("table1", tmp_path, quick=True)
    assert "ECG5000" in str(outcome)
    assert outcome.skipped is not None
    assert not list(tmp_path.iterdir())


def test_refuses_what_it_does_not_know(tmp_path):
    with pytest.raises(ValueError, match="`names` must be among fig1, .* 'fig9'"):
        paper.reproduce("fig9", tmp_path)
    with pytest.raises(ValueError, match="`n_jobs` must be a positive integer; got 0"):
        paper.reproduce("fig1", tmp_path, n_jobs=0)


def test_best_margins_are_those_of_the_optimiser():
    p = fig2.QUICK
    unfolding, u = fig2._unfolding(p), fig2._projections(p)[0]
    stimuli = [fig2._stimuli(p, i) for i in range(3)]
    for time in (0.5, 3.0, 9.25):
        there = unfolding.with_readout(time)
        R = there.input_response(u)
        mu = np.array([s.mu for s in stimuli])
        psi = np.array([s.psi for s in stimuli])
        wanted = [optimize(there, s, p.eta, u=u).soft_margin for s in stimuli]
        np.testing.assert_allclose(
            _setting.best_margins(R, mu, psi, p.eta), wanted, rtol=1e-9
        )


# --- the linear network -----------------------------------------------------------------


@pytest.mark.parametrize("engine", ["scipy", "nest"])
def test_fig2a_simulated_within_one_per_cent(engine):
    if engine == "nest":
        pytest.importorskip("nest")
    p = replace(fig2.QUICK, fine=5)
    unfolding = fig2._unfolding(p)
    best = optimize(unfolding, fig2._stimuli(p, 0), p.eta).u
    for u in (fig2._projections(p)[0], best):
        exact = fig2.analytical_curve(p, unfolding, u)
        simulated = np.array(fig2.simulated_curve(p, engine, u.tolist()))
        assert np.abs(exact - simulated).max() <= 0.01 * np.ptp(exact)


def _check_fig2(numbers):
    for kind in ("random", "optimised"):
        assert numbers["single"][kind]["deviation_of_range"] <= 0.01
    average = numbers["average"]
    # No random projection beats the optimum beyond what is left of its certificate.
    assert min(average["share_at_or_above_every_random"]) == 1
    assert max(average["gap_largest"]) < 0.12
    # The readout remembers: margins grow from the first to the last step.
    assert average["random"][-1] > 2 * average["random"][0]
    assert average["ratio"][-1] > 1.1
    middle = len(numbers["angle"]["radians"]) // 2
    curves = np.array(numbers["angle"]["readout_optimal"])
    assert (curves.argmax(1) == middle).all()


def test_fig2(tmp_path, monkeypatch):
    monkeypatch.setattr(fig2, "engine", lambda: "scipy")
    p = replace(
        fig2.QUICK, fine=3, n_stimuli=2, n_random=6, n_angles=7, n_planes=3, chunk=3
    )
    _check_fig2(compute(fig2, p, tmp_path))


# --- the non-linear network -------------------------------------------------------------


def _check_fig3(numbers):
    found = numbers["responses"]
    assert found["error_first_order"] < found["error_linear"] / 4
    assert max(found["eigenvalue_simulated"]) < 1
    for one in numbers["soft_margins"]:
        # The ordering at every ‖μ‖: non-linear above linear, optimised above random.
        assert one["nonlinear"] > one["linear_bound"]
        assert one["linear_bound"] >= max(one["random_linear"])
        assert one["nonlinear"] > max(one["random_nonlinear"])
        assert one["nonlinear"] >= one["nonlinear_at_linear_u"]
    by_network = {}
    for one in numbers["soft_margins"]:
        by_network.setdefault(one["network"], []).append(one["ratio"])
    for ratios in by_network.values():
        # The relative gain shrinks with the linear separability.
        assert ratios[0] > 2
        assert ratios[0] > ratios[-1]
        assert ratios[-1] < 1.5


def test_fig3(tmp_path):
    p = replace(fig3.QUICK, n_random=4, n_simulated=20, fine=4)
    _check_fig3(compute(fig3, p, tmp_path))


# --- ECG5000 ----------------------------------------------------------------------------


def test_table1(tmp_path, heartbeats):
    p = replace(table1.QUICK, n_networks=2, n_random=3)
    numbers = compute(table1, p, tmp_path, heartbeats)
    for cell, entry in numbers["cells"].items():
        mean, spread = table1.PAPER[cell]["kappa"]
        found = entry["kappa"]["mean"]
        assert found == pytest.approx(mean, abs=3 * spread / np.sqrt(p.n_networks)), cell
        # Where the plane is put moves the accuracies by more than their spread.
        assert entry["accuracy, half-way"]["mean"] > entry["accuracy, test mean"]["mean"]
    accuracy = {
        cell: entry["accuracy, half-way"]["mean"]
        for cell, entry in numbers["cells"].items()
    }
    assert accuracy["random, linear"] == pytest.approx(95.4, abs=3 * 0.6)
    assert accuracy["optimised, linear"] == pytest.approx(98.0, abs=3 * 0.15)
    assert numbers["largest_gap"] <= 1e-3
    assert numbers["optimised_above_every_random"]
    assert 0 < numbers["gain_of_nonlinearity"]["mean"] < 0.002
    assert numbers["separability"] == pytest.approx(2.64, abs=0.01)


def test_fig4(tmp_path, heartbeats):
    p = replace(fig4.QUICK, n_random=3, n_test=120)
    numbers = compute(fig4, p, tmp_path, heartbeats)
    best, optimised = numbers["optimum"], numbers["optimised"]
    assert best["kappa"] == pytest.approx(0.384, abs=3 * 0.026)
    assert optimised["state_error"] < 2e-3
    assert optimised["accuracy"] >= max(numbers["random_accuracy"]) - 1e-9
    history = np.array(best["history"])
    kappa = history[:, 0] - history[:, 1]
    assert len(kappa) == 11
    assert (np.diff(kappa) >= -1e-12).all()
    assert 0.9 * best["bound"] < kappa[-1] <= best["bound"] * (1 + 1e-9)
    # Distinguishable only shortly before the readout.
    over_time = np.array(best["separation"]) - np.array(best["variance"])
    assert over_time[-1] == over_time.max() == pytest.approx(best["kappa"], rel=1e-6)


def test_supplement(tmp_path, heartbeats):
    p = replace(
        supplement.QUICK, n_networks=1, n_random=2, etas=(1.0, 100.0), alphas=(0.05,)
    )
    numbers = compute(supplement, p, tmp_path, heartbeats)
    low, high = numbers["eta"][0]
    for kind in ("random", "optimised"):
        assert high[kind]["spread"] < low[kind]["spread"]
        assert high[kind]["accuracy"] > low[kind]["accuracy"]
    assert numbers["alpha"][0]["optimised"] > 0
    assert numbers["alpha"][0]["trustworthy"]
    first, last = numbers["g"]
    assert last["end"]["optimised"] > first["end"]["optimised"]


def test_beyond(tmp_path, heartbeats):
    p = replace(
        beyond.QUICK,
        n_certified=1,
        strengths=(1.0,),
        sizes=(100,),
        noises=(0.0, 0.1),
        etas=(10.0, 100.0),
        n_networks=1,
    )
    numbers = compute(beyond, p, tmp_path, heartbeats)
    assert numbers["certificates"][0]["gap"] <= 1e-3
    assert all(row["alternation_below_bound"] >= -1e-9 for row in numbers["certificates"])
    (row,) = numbers["noise"]
    gain = np.array(row["optimised"]) - np.mean(row["random"], axis=0)
    # Without noise η makes up for a random u; with noise nothing does.
    assert abs(gain[0]) < 1
    assert gain[1] > 2


# --- as in the paper --------------------------------------------------------------------


def full(module, folder, data_dir=None):
    name = module.__name__.rsplit(".", 1)[1]
    (outcome,) = paper.reproduce(name, folder, data_dir=data_dir)
    return outcome.numbers


@pytest.mark.slow
def test_table1_in_full(tmp_path, data_dir):
    numbers = full(table1, tmp_path, data_dir)
    for cell, entry in numbers["cells"].items():
        wanted = table1.PAPER[cell]["kappa"][0]
        assert entry["kappa"]["mean"] == pytest.approx(wanted, abs=0.01), cell
    assert numbers["largest_gap"] <= 1e-3
    assert numbers["optimised_above_every_random"]


@pytest.mark.slow
def test_fig3_in_full(tmp_path):
    numbers = full(fig3, tmp_path)
    assert len(numbers["soft_margins"]) == 25
    _check_fig3(numbers)


@pytest.mark.slow
def test_fig2_in_full(tmp_path):
    _check_fig2(full(fig2, tmp_path))


@pytest.mark.slow
def test_beyond_in_full(tmp_path, data_dir):
    p, numbers = beyond.FULL, full(beyond, tmp_path, data_dir)
    heart = [row for row in numbers["certificates"] if row["strength"] == 0]
    assert max(row["gap"] for row in heart) <= 1e-3
    *_, gain = beyond._gain(numbers["noise"], 100)
    by_noise = dict(zip(p.noises, gain.mean(0), strict=True))
    assert abs(by_noise[0.0]) < 0.5
    assert by_noise[0.1] > 3


@pytest.mark.slow
@pytest.mark.parametrize("module", [fig4, supplement], ids=["fig4", "supplement"])
def test_the_rest_in_full(tmp_path, data_dir, module):
    assert full(module, tmp_path, data_dir)
