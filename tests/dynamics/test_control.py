import importlib
from dataclasses import replace

import numpy as np
import pytest

from greenfold._base import arrays as _arrays
from greenfold.dynamics.integration import _Probe, plan_substeps, probe_series
from greenfold.systems import Divergence
from greenfold.unfolding.walk import Walk

from ..conftest import LIBRARIES
from .problems import problem, relative_error


def test_tighter_tolerances_take_more_sub_steps_and_find_smaller_errors():
    case = problem(dt_over_tau=2.0).scaled(1.0)
    found = [plan_substeps(case.make, case.X, case.u, tol) for tol in (1e-3, 1e-5, 1e-7)]
    assert [f.n_sub for f in found] == sorted({f.n_sub for f in found})
    assert [f.error for f in found] == sorted((f.error for f in found), reverse=True)
    again = _Probe(case.make, case.X, case.u).error(found[1].n_sub)
    assert again == found[1].error


def test_no_fewer_sub_steps_would_do():
    """One fewer misses the tolerance, margin included, or the plan wastes work."""
    for dt_over_tau in (0.7, 2.0, 4.0):
        case = problem(dt_over_tau=dt_over_tau).scaled(1.0)
        planned = plan_substeps(case.make, case.X, case.u, 1e-6)
        fewer = _Probe(case.make, case.X, case.u).error(max(1, planned.n_sub * 4 // 5))
        # A fifth fewer sub-steps err (5/4)⁴ ≈ 2.4 times more.
        assert fewer > 0.5e-6 / 1.2


def test_one_step_where_the_network_is_driven_weakly():
    case = problem(dt_over_tau=0.1).scaled(1e-3)
    planned = plan_substeps(case.make, case.X, case.u, 1e-6)
    assert planned.n_sub == 1
    assert planned.error < 1e-9
    silent = plan_substeps(case.make, np.zeros_like(case.X), case.u, 1e-6)
    assert (silent.n_sub, silent.error) == (1, 0.0)


@pytest.mark.parametrize("library", ["numpy", *LIBRARIES])
def test_the_largest_series_are_looked_at(library, rng):
    X = rng.standard_normal((200, 2, 5))
    X[137] *= 10
    X[20] *= 5
    X[3] *= 0.01
    if library != "numpy":
        X = importlib.import_module(library).asarray(X)
    chosen = probe_series(X)
    assert len(set(chosen.tolist())) == 16
    assert {3, 20, 137} <= set(chosen.tolist())
    assert (np.diff(chosen) > 0).all()


def test_too_many_sub_steps_are_refused_in_one_sentence():
    case = problem("biased tanh", dt_over_tau=4.0, n_steps=3).scaled(2.0)
    message = r"^`tol` = 1e-12 needs more than 256 sub-steps .*; shorten `dt`.*\.$"
    with pytest.raises(ValueError, match=message):
        plan_substeps(case.make, case.X, case.u, 1e-12)


def test_a_step_in_which_the_network_settles_is_right_too():
    case = problem("biased tanh", dt_over_tau=100.0, n_steps=2).scaled(1.0)
    planned = plan_substeps(case.make, case.X, case.u, 1e-6)
    found = Walk(case.make(planned.n_sub), case.X, case.u).trajectories()
    assert relative_error(found, case.truth(rtol=1e-10)) < 1e-6


def test_a_tolerance_below_rounding_is_refused():
    case = problem()
    with pytest.raises(ValueError, match="`tol` must be at least 2e-13.*got 1e-15"):
        plan_substeps(case.make, case.X, case.u, 1e-15)


def blow_up(case, series):
    """The step whose end an ODE solver cannot reach."""
    y = np.zeros((1, 12))
    for step in range(case.X.shape[2]):
        drive = case.X[series : series + 1, :, step] @ case.u.T
        try:
            y = case._integrate(y, drive, case.dt, 1e-4)
        except AssertionError:
            return step
    raise AssertionError("nothing diverges")


def test_divergence_names_the_series_and_the_step(monkeypatch):
    monkeypatch.setattr(_arrays, "BATCH_BYTES", 5000)  # several batches
    case = problem("quadratic", n_cases=20, n_steps=6, dt_over_tau=1.0)
    X = case.X
    X[13, 0, 3:] = 1e3  # far beyond where α y² stays bounded
    where = f"diverges in step {blow_up(case, 13)} of series 13;"
    plan = case.make(4)
    calls = [
        lambda: Walk(plan, X, case.u).states,
        lambda: Walk(plan, X, case.u).trajectories(),
        lambda: Walk(plan, X, case.u).pullback(np.ones((20, 12))),
        lambda: Walk(plan, X, case.u, keep=True).states,
        lambda: plan_substeps(case.make, X, case.u, 1e-6),
    ]
    for call in calls:
        with pytest.raises(Divergence, match=where) as said:
            call()
        assert isinstance(said.value, FloatingPointError)


@pytest.mark.needs("torch")
def test_divergence_of_series_in_another_library(monkeypatch):
    import torch

    monkeypatch.setattr(_arrays, "BATCH_BYTES", 5000)
    case = problem("quadratic", n_cases=20, n_steps=6, dt_over_tau=1.0)
    case.X[13, 0, 3:] = 1e3
    with pytest.raises(Divergence, match="of series 13;"):
        _ = Walk(case.make(4), torch.asarray(case.X), case.u).states


def test_a_scheme_that_diverges_is_refined_where_the_network_does_not():
    """A cubic with a negative slope far out is bounded, but not for long steps."""
    case = replace(
        problem("quadratic", dt_over_tau=4.0, n_steps=3),
        function=lambda y: y - 0.3 * y**3,
        derivative=lambda y: 1 - 0.9 * y**2,
        weights=0.5 * np.eye(12),
    )
    case = replace(case, X=30 * case.X)
    with pytest.raises(Divergence):
        Walk(case.make(1), case.X, case.u).states
    planned = plan_substeps(case.make, case.X, case.u, 1e-6)
    found = Walk(case.make(planned.n_sub), case.X, case.u).trajectories()
    truth = case.truth(rtol=1e-10)
    assert np.abs(found - truth).max() <= 1e-6 * np.abs(truth).max()


def test_stimuli_that_are_not_finite_are_named():
    case = problem(n_cases=40)
    X = case.X.copy()
    X[17, 0, 2] = np.nan
    for call in (
        lambda: Walk(case.make(1), X, case.u).states,
        lambda: plan_substeps(case.make, X, case.u, 1e-6),
    ):
        with pytest.raises(ValueError, match="nan in case 17, channel 0, step 2"):
            call()
