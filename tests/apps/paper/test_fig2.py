"""Fig. 2: the linear network, reduced and as in the paper."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold import optimize
from greenfold.apps.paper import fig2
from greenfold.apps.paper.figures import FigureRun

from .conftest import GAP, ROUNDING, assert_as_recorded, compute, record, some_of


@pytest.mark.parametrize(
    "engine", ["scipy", pytest.param("nest", marks=pytest.mark.needs("nest"))]
)
def test_fig2a_simulated_within_one_per_cent(engine):
    p = replace(fig2.QUICK, n_neurons=30, fine=5)
    unfolding = fig2._unfolding(p)
    best = optimize(unfolding, fig2._stimuli(p, 0), p.eta).u
    # What NEST integrates does not depend on the projection; one is slow enough.
    for u in (best,) if engine == "nest" else (fig2._projections(p)[0], best):
        exact = fig2.analytical_curve(p, unfolding, u)
        simulated = np.array(fig2.simulated_curve(p, engine, u))
        assert np.abs(exact - simulated).max() <= 0.01 * np.ptp(exact)


def _check_fig2(numbers):
    for kind in ("random", "optimised"):
        assert numbers["single"][kind]["deviation_of_range"] <= 0.01
    single, average = numbers["single"], numbers["average"]
    # What is held at the optimum has its κ at T, and hardly any other time.
    assert single["held"][-1] == pytest.approx(single["reoptimised"][-1], rel=GAP)
    assert single["alternation"] <= single["bound_at_end"] * (1 + 1e-9)
    # After one step, κ does not depend on u: R has rank one.
    assert single["one_step_spread"] < 1e-9
    # Within the steps too, where κ is highest: not at whole times only.
    times = np.array(average["solved_times"])
    assert (times % 1 > 0).sum() == (times % 1 == 0).sum() == 10
    assert len(average["optimised"]) == len(times) == len(numbers["single"]["reoptimised"])
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
    small = {"n_neurons": 30, "fine": 3, "n_stimuli": 1, "n_random": 6}
    p = replace(fig2.QUICK, **small, n_angles=7, n_planes=3, chunk=3)
    _check_fig2(compute(fig2, p, tmp_path))


def test_fig2_as_recorded():
    _check_fig2(record("fig2"))


@pytest.mark.slow
@pytest.mark.needs("nest")
def test_curves_and_angles_of_fig2_at_full_size(tmp_path, monkeypatch):
    """Panels (a) and (d) whole, simulated by NEST."""
    numbers = record("fig2")
    average = numbers["average"] | {"first": numbers["single"]["reoptimised"]}
    monkeypatch.setattr(fig2, "_average", lambda *_: (dict(average), numbers["modes"]))
    found = compute(fig2, fig2.FULL, tmp_path)
    # A linear network does not tell (u, v) from (−u, −v), and which is found is rounding.
    # From −u the planes are turned the other way round.
    angle, recorded = found["angle"], numbers["angle"]
    if not np.allclose(angle["readout_kept"], recorded["readout_kept"], rtol=0, atol=1e-3):
        for key in ("readout_optimal", "readout_kept"):
            angle[key] = [curve[::-1] for curve in angle[key]]
    # Away from the optimum κ is of first order in u, which is known to the root of what
    # rounding leaves of κ itself, √1e-12.
    names = ("analytical", "simulated", "held", "readout_optimal", "readout_kept")
    apart = {"bound_at_end": {"rel": GAP}, "deviation_of_range": {"abs": 1e-6}}
    apart["one_step_spread"] = {"abs": ROUNDING}
    apart |= {name: {"rel": 1e-6} for name in names}
    assert_as_recorded(found, numbers, apart)


@pytest.mark.slow
def test_first_stimuli_of_fig2_at_full_size():
    """Panel (a), u solved for each readout time."""
    margins = fig2.optimal_part(fig2.FULL, range(1))["margins"]
    assert_as_recorded(margins[0], record("fig2")["single"]["reoptimised"])


TIMES = fig2._times(fig2.FULL, fig2.FULL.per_step)[fig2._solved_at(fig2.FULL)].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("time", some_of(TIMES, 1.0, 5.0, 9.0))
def test_one_time_of_fig2_at_full_size(time, tmp_path, monkeypatch):
    """Panels (b) and (c): 250 pairs of classes, solved, and 250 random u for each."""
    numbers, all_times = record("fig2"), fig2._times(fig2.FULL, fig2.FULL.per_step)
    modes = tuple(t for t in fig2.FULL.mode_times if t == time)
    p = replace(fig2.FULL, mode_times=modes)
    monkeypatch.setattr(fig2, "_times", lambda *_: np.array([time]))
    monkeypatch.setattr(fig2, "_solved_at", lambda _: np.array([0]))
    found, found_modes = fig2._average(p, FigureRun("fig2", p, tmp_path))
    places = {len(TIMES): TIMES.index(time), len(all_times): all_times.tolist().index(time)}
    recorded = {
        key: [values[places[len(values)]]] for key, values in numbers["average"].items()
    }
    recorded["first"] = [numbers["single"]["reoptimised"][TIMES.index(time)]]
    # A solve ends within the gap that `tol` allows, not at one place; a gap is a difference
    # of two numbers that are known to it. A spread is one of numbers known to rounding.
    solved = ("optimised", "optimised_standard_error", "ratio", "first")
    of_solves = {name: {"rel": GAP} for name in solved}
    gaps = {name: {"abs": GAP} for name in recorded if name.startswith("gap")}
    apart = of_solves | gaps | {"random_spread": {"abs": ROUNDING}}
    assert_as_recorded(found, recorded, apart)
    loadings = {str(t): numbers["modes"]["loadings"][str(t)] for t in modes}
    assert_as_recorded(found_modes, numbers["modes"] | {"loadings": loadings})
