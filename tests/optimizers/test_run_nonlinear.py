"""`optimize` for non-linear systems: what is returned, warned of and refused; Ctrl-C."""

from functools import cache

import numpy as np
import pytest

from greenfold import (
    Alternating,
    Ascent,
    ExpansionWarning,
    Gain,
    GaussianStimuli,
    RandomDraws,
    SampleStimuli,
    optimize,
)
from greenfold.optimizers import method as runs
from greenfold.optimizers.alternating import FixedReadout
from greenfold.optimizers.linear import LinearProblem
from greenfold.optimizers.nonlinear import NonlinearProblem

from ..conftest import interrupt
from .nonlinear_cases import ETA, judged, kappa_of, setting


@pytest.mark.parametrize(
    ("method", "status"),
    [(Ascent(n_starts=3), "converged"), (RandomDraws(3), "solved")],
)
def test_fields(method, status):
    unfolding, stimuli = setting()
    found = optimize(unfolding, stimuli, ETA, method, rng=0)
    assert found.method == method.name
    assert found.status == status
    assert found.upper_bound is None
    assert found.gap is None
    assert found.starts.shape == (3,)
    assert found.soft_margin == found.starts.max()
    assert found.soft_margin == pytest.approx(found.separation - found.variance)
    assert np.linalg.norm(found.u) == pytest.approx(1)
    assert np.linalg.norm(found.v) == pytest.approx(1)
    assert kappa_of(unfolding, stimuli, found) == pytest.approx(found.soft_margin)
    values = found.history[:, 0] - found.history[:, 1]
    assert values[-1] == pytest.approx(found.soft_margin)
    assert (np.diff(values) >= 0).all()
    assert found.wall_time > 0
    assert judged(found).order == 1
    assert judged(found).trustworthy
    assert "trustworthy" in str(found)


def test_number_of_starts_by_separability():
    """Two for separable stimuli, four random ones more for weakly separable ones."""
    unfolding, weak = setting(strength=0.3, n=5)
    assert weak.separability < 1.5
    assert len(optimize(unfolding, weak, ETA, rng=0).starts) == 6
    strong = GaussianStimuli(weak.mu * 10, weak.psi, weak.chi)
    assert strong.separability > 1.5
    assert len(optimize(unfolding, strong, ETA).starts) == 2
    assert optimize(unfolding, strong, ETA).method == "ascent"
    assert len(optimize(unfolding, strong, ETA, Ascent(n_starts=1)).starts) == 1


@pytest.mark.parametrize("method", [Ascent(3, 3), Alternating(3, 3), RandomDraws(3)])
def test_same_seed_same_result(method):
    unfolding, stimuli = setting(n=6, strength=0.3)
    one, two, other = (
        optimize(unfolding, stimuli, ETA, method, rng=seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(one.u, two.u)
    assert np.array_equal(one.starts, two.starts)
    assert not np.array_equal(one.starts, other.starts)


def test_given_u_is_kept(rng):
    unfolding, stimuli = setting()
    u = 3 * rng.standard_normal(10)
    found = optimize(unfolding, stimuli, ETA, u=u)
    assert found.u == pytest.approx(u / np.linalg.norm(u))
    assert (found.method, found.status) == ("given", "solved")
    assert found.validity is not None
    problem = NonlinearProblem(unfolding, stimuli, ETA)
    assert found.soft_margin == pytest.approx(
        problem.best_readout(found.u[:, None])[1].value
    )


# --- expansions that are not to be trusted ------------------------------------------


def test_diverging_expansion_is_warned_of_with_both_numbers_and_a_way_out():
    unfolding, stimuli = setting(alpha=2.0, strength=1.0, g=0.9)
    with pytest.warns(ExpansionWarning, match="NOT trustworthy") as caught:
        found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert caught[0].filename == __file__
    validity = judged(found)
    assert not validity.trustworthy
    assert f"Re λ along the trajectories is {validity.largest_eigenvalue:.3f}" in message
    assert f"next order is {validity.next_order:.1%}" in message
    assert f"lower alpha from 2 to {2 * validity.scale:.2g}" in message
    assert 0 < validity.scale < 1
    assert "NOT trustworthy" in str(found)


def test_cubic_gain_is_told_the_scale_of_its_nonlinear_part():
    unfolding, stimuli = setting(gain=Gain.polynomial([0, 1, 0, 2.0]), g=0.9)
    with pytest.warns(ExpansionWarning, match="scale the non-linear part of the gain by 0"):
        optimize(unfolding, stimuli, ETA, RandomDraws(1), rng=0)


@pytest.mark.parametrize(
    ("gain", "advice"),
    [
        (Gain.quadratic(2.0), "lower alpha from 2 to"),
        (Gain.polynomial([0, 1, 2, -3]), "scale the non-linear part of the gain by"),
        (Gain.polynomial([0, 0.5, 2]), "scale the non-linear part of the gain by"),
    ],
)
def test_the_advice_names_what_the_gain_has(gain, advice):
    unfolding, _ = setting(gain=gain)
    X, labels = GaussianStimuli.random(5, rng=0).sample(20, rng=1)
    with pytest.warns(ExpansionWarning, match=advice):
        optimize(unfolding, SampleStimuli(X, labels), ETA, Ascent(n_starts=1))


# --- bad input ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["ascent", "alternating", "random"])
def test_streamed_stimuli_say_that_they_have_no_series(method):
    unfolding, stimuli = setting()
    X, labels = stimuli.sample(20, rng=0)
    stream = SampleStimuli.from_batches([(X, labels)])
    with pytest.raises(ValueError, match="keep no series; make SampleStimuli"):
        optimize(unfolding, stream, ETA, method)
    assert optimize(unfolding.linear, stream, ETA).status == "certified"


@pytest.mark.parametrize(
    ("order", "readout", "method", "message"),
    [
        (
            1,
            None,
            "convex",
            "`method`.*alternating, ascent, .*random, or .* for a non-linear.*'convex'",
        ),
        (
            0,
            None,
            "ascent",
            "`method`.*convex, exact, .*random, .* for a linear.*'ascent'",
        ),
        (2, None, "alternating", "'alternating'.*order 1.*use 'ascent'"),
        (1, 1.7, "alternating", "'alternating'.*end of a step.*use 'ascent'"),
        (1, None, "newton", "`method`.*for a non-linear system; got 'newton'"),
    ],
)
def test_methods_that_do_not_fit_are_named(order, readout, method, message):
    unfolding, stimuli = setting(order)
    if readout is not None:
        unfolding = unfolding.with_readout(readout)
    with pytest.raises(ValueError, match=message):
        optimize(unfolding, stimuli, ETA, method)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"u": np.zeros(10)}, ValueError, "`u` is zero"),
        ({"u": np.ones(9)}, ValueError, r"`u`.*10 rows.*\(9,\)"),
        ({"eta": 0}, ValueError, "`eta`.*positive"),
    ],
)
def test_bad_input_is_named(options, error, message):
    unfolding, stimuli = setting()
    with pytest.raises(error, match=message):
        optimize(unfolding, stimuli, **options)


# --- Ctrl-C


THREE = {
    "ascent": Ascent(n_starts=3),
    "alternating": Alternating(n_starts=3),
    "random": RandomDraws(3),
}


@cache
def whole_margin(method):
    """κ of the same search when nothing interrupts it."""
    unfolding, stimuli = setting(strength=0.3)
    return optimize(unfolding, stimuli, ETA, THREE[method], rng=0).soft_margin


@pytest.mark.parametrize(
    ("method", "name", "after"),
    [
        ("ascent", "evaluate", 1),
        ("ascent", "evaluate", 4),
        ("ascent", "evaluate", 30),
        ("alternating", "best_readout", 1),
        ("alternating", "best_readout", 4),
        ("alternating", "__call__", 5),
        ("random", "best_readout", 2),
    ],
)
def test_interrupt_returns_the_best_so_far(method, name, after, monkeypatch):
    unfolding, stimuli = setting(strength=0.3)
    with monkeypatch.context() as patch:
        owner = FixedReadout if name == "__call__" else NonlinearProblem
        interrupt(patch, owner, name, after)
        found = optimize(unfolding, stimuli, ETA, THREE[method], rng=0)
    assert found.status == "interrupted"
    assert found.validity is None
    assert "interrupted" in str(found)
    assert kappa_of(unfolding, stimuli, found) == pytest.approx(found.soft_margin)
    assert len(found.history) <= after
    if method != "alternating":  # which takes seconds
        assert found.soft_margin <= whole_margin(method) * (1 + 1e-12)


def test_interrupt_of_the_linear_start_does_not_go_on(monkeypatch):
    unfolding, stimuli = setting(strength=0.3)
    interrupt(monkeypatch, LinearProblem, "evaluate", 2)
    monkeypatch.setattr(NonlinearProblem, "evaluate", None)  # an ascent would fail
    found = optimize(unfolding, stimuli, ETA)
    assert found.status == "interrupted"
    assert found.starts.shape == (1,)
    assert kappa_of(unfolding, stimuli, found) == pytest.approx(found.soft_margin)


def test_interrupt_of_the_judgement_keeps_the_result(monkeypatch):
    unfolding, stimuli = setting()
    whole = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1))
    interrupt(monkeypatch, runs, "assess", 0)
    found = optimize(unfolding, stimuli, ETA, Ascent(n_starts=1))
    assert found.status == "interrupted"
    assert np.array_equal(found.u, whole.u)


@pytest.mark.parametrize(
    ("method", "name"),
    [("ascent", "evaluate"), ("alternating", "best_readout"), ("random", "best_readout")],
)
def test_interrupt_before_anything_was_found_is_passed_on(method, name, monkeypatch):
    unfolding, stimuli = setting()
    interrupt(monkeypatch, NonlinearProblem, name, 0)
    with pytest.raises(KeyboardInterrupt):
        optimize(unfolding, stimuli, ETA, method, rng=0)
