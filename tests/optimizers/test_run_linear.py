"""`optimize` for linear systems: what is returned, what is refused, and Ctrl-C."""

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest

from greenfold import (
    Alternating,
    Ascent,
    Convex,
    Device,
    Exact,
    GaussianStimuli,
    RandomDraws,
    RegressionTask,
    Reservoir,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.devices.masks import Mask
from greenfold.math.margins import gaussian_soft_margin
from greenfold.optimizers import Method
from greenfold.optimizers.linear import LinearProblem
from greenfold.optimizers.method import METHODS
from greenfold.optimizers.result import MESSAGES

from ..conftest import interrupt, unit
from .linear_cases import ETA, certify, kappa, setting

#: Methods by name: few starts and rounds, and a seed for those that draw.
SHORT = {
    "convex": {"method": Convex()},
    "alternating": {"method": Alternating(3, rounds=20), "rng": 0},
    "random": {"method": RandomDraws(3), "rng": 0},
}


@pytest.mark.parametrize(("n", "n_steps"), [(10, 4), (4, 10)])
@pytest.mark.parametrize("method", ["convex", "alternating", "random"])
def test_case_a_without_class_means(n, n_steps, method, rng):
    """μ = 0: the best pair does not respond to the stimuli at all, κ = 0.

    Fewer steps than neurons leave a readout orthogonal to all responses; with more, u can
    be taken from an invariant subspace of W and v orthogonal to it.
    """
    unfolding, stimuli = setting(n=n, n_steps=n_steps, strength=0.0)
    found = certify(unfolding, stimuli, ETA, **SHORT[method])
    typical = kappa(unfolding, stimuli, unit(rng, n), unit(rng, n))
    assert typical < -1e-3
    assert found.soft_margin == pytest.approx(0, abs=1e-4 * abs(typical))
    assert found.soft_margin <= 0
    assert np.linalg.norm(found.u) == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(found.v) == pytest.approx(1, rel=1e-14)
    if method == "convex":
        assert found.status == "certified"
        assert found.gap == 0
        # An ascent to a relative 1e-14 of a quadratic that vanishes.
        assert found.upper_bound == pytest.approx(0, abs=1e-13 * abs(typical))
    elif n > n_steps:
        assert found.soft_margin == pytest.approx(0, abs=1e-25)


@pytest.mark.parametrize(
    ("method", "status"),
    [
        ("convex", "certified"),
        ("alternating", "max_iterations"),
        ("random", "solved"),
        ("given", "solved"),
    ],
)
def test_fields_are_consistent(method, status, rng):
    unfolding, stimuli = setting(n=6)
    options = {"given": {"u": 5 * unit(rng, 6)}, **SHORT}[method]
    found = certify(unfolding, stimuli, ETA, **options)
    assert found.method == method
    assert np.linalg.norm(found.u) == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(found.v) == pytest.approx(1, rel=1e-14)
    judged = gaussian_soft_margin(*stimuli.moments(unfolding, found.u), found.v, ETA)
    assert found.soft_margin == pytest.approx(judged.value, rel=1e-12)
    assert found.separation == pytest.approx(judged.separation, rel=1e-12)
    assert found.variance == pytest.approx(judged.variance, rel=1e-12)
    assert found.soft_margin == found.separation - found.variance
    assert found.eta == ETA
    assert found.history.shape[1] == 2
    assert found.history[-1].tolist() == [found.separation, found.variance]
    values = found.history[:, 0] - found.history[:, 1]
    assert (np.diff(values) >= 0).all()
    assert found.starts.max() == found.soft_margin
    assert len(found.starts) == (3 if method in ("alternating", "random") else 1)
    assert found.status == status
    assert found.wall_time > 0
    assert (found.upper_bound is None) == (found.gap is None) == (method != "convex")
    if method == "alternating":
        assert len(found.history) == found.n_iter + 1
    with pytest.raises(FrozenInstanceError):
        found.eta = 1.0  # pyright: ignore[reportAttributeAccessIssue]
    text = str(found)
    assert MESSAGES[status] in text
    assert f"{found.soft_margin:.6g}" in text
    assert ("upper bound" in text) == (method == "convex")


@dataclass(frozen=True)
class Equal(Method):
    """A method of one's own: equal weights."""

    size: float = 1.0

    def solve(self, run):
        u = np.ones((run.system.n_inputs, run.stimuli.n_channels))
        u *= self.size / np.linalg.norm(u)
        return run.finish([run.solve_readout(u)] if self.size else [], "equal")


def test_a_method_of_your_own():
    unfolding, stimuli = setting(n=6)
    found = optimize(unfolding, stimuli, ETA, Equal(), rng=0)
    assert found.method == "equal"
    expected = optimize(unfolding, stimuli, ETA, u=np.ones(6))
    assert found.soft_margin == pytest.approx(expected.soft_margin, rel=1e-12)
    for size, got in ((3.0, "a norm of 3"), (0.0, "none")):
        with pytest.raises(ValueError, match=f"`candidates` must hold .*; got {got}"):
            optimize(unfolding, stimuli, ETA, Equal(size), rng=0)


def test_the_name_of_another_method_or_mask_is_refused():
    """A notebook may run the cell of a class again; a second class may not take a name."""
    for base, name, owner in ((Method, "convex", "Convex"), (Mask, "sign", "Signs")):
        message = f"`name` = '{name}' of Own is the name of {owner}"
        with pytest.raises(ValueError, match=message):
            type("Own", (base,), {}, name=name)
    kept = dict(METHODS)
    try:
        first = type("Cell", (Method,), {}, name="cell")
        assert type("Cell", (Method,), {}, name="cell") is not first
    finally:
        METHODS.clear()
        METHODS.update(kept)
    assert Method.of("convex", linear=True) == Convex()


def test_a_refusal_names_the_methods_that_would_do():
    unfolding, stimuli = setting(n=6)
    message = "`method` must be convex or exact with a mask"
    with pytest.raises(ValueError, match=message):
        optimize(unfolding, stimuli, ETA, Equal(), device=Device(mask="sign"))
    X = np.random.default_rng(0).normal(size=(8, unfolding.n_steps))
    task = RegressionTask.from_cases(X, X[:, -1], ridge=0.1)
    with pytest.raises(ValueError, match="convex or exact for a RegressionTask"):
        optimize(unfolding, task, method="alternating")


@pytest.mark.parametrize("method", [Convex, Exact, Alternating, RandomDraws])
def test_a_name_stands_for_the_default_object(method):
    unfolding, stimuli = setting()
    options = {} if issubclass(method, Convex) else {"rng": 0}
    named, made = (
        certify(unfolding, stimuli, ETA, one, **options) for one in (method.name, method())
    )
    assert named.method == made.method == method.name
    assert np.array_equal(named.u, made.u)
    assert named.soft_margin == made.soft_margin


@pytest.mark.parametrize("method", SHORT)
def test_same_seed_same_result(method):
    unfolding, stimuli = setting(n=6)
    one, other = (optimize(unfolding, stimuli, ETA, **SHORT[method]) for _ in range(2))
    assert np.array_equal(one.u, other.u)
    assert np.array_equal(one.v, other.v)
    assert np.array_equal(one.history, other.history)
    if method == "random":
        third = optimize(unfolding, stimuli, ETA, RandomDraws(3), rng=4)
        assert not np.array_equal(one.starts, third.starts)
        # Beside a network of the same seed an integer gives another stream.
        generator = np.random.default_rng([0, 1])
        again = optimize(unfolding, stimuli, ETA, RandomDraws(3), rng=generator)
        assert np.array_equal(again.u, one.u)


def test_both_signs_of_a_pair_are_equal(rng):
    unfolding, stimuli = setting(n=6)
    found = certify(unfolding, stimuli, ETA)
    turned = kappa(unfolding, stimuli, -found.u, -found.v)
    assert turned == pytest.approx(found.soft_margin, rel=1e-12)
    again = optimize(unfolding, stimuli, ETA, u=-found.u)
    assert again.v == pytest.approx(-found.v, abs=1e-7)  # v is flat to √rounding
    assert again.soft_margin == pytest.approx(found.soft_margin, rel=1e-12)


def test_given_u_is_solved_for_its_best_readout(rng):
    unfolding, stimuli = setting(n=6)
    u = unit(rng, 6)
    found = optimize(unfolding, stimuli, ETA, u=7 * u)
    assert found.u == pytest.approx(u, rel=1e-14)
    assert found.status == "solved"
    best = max(kappa(unfolding, stimuli, u, unit(rng, 6)) for _ in range(500))
    assert found.soft_margin > best


def test_a_given_u_of_any_length(rng):
    unfolding, stimuli = setting()
    u = unit(rng, 4)
    expected = optimize(unfolding, stimuli, u=u).soft_margin
    for length in (1e-200, 1e154, 1e300):
        found = optimize(unfolding, stimuli, u=length * u)
        assert found.soft_margin == pytest.approx(expected, rel=1e-10)
    with pytest.raises(ValueError, match="`u` is zero"):
        optimize(unfolding, stimuli, u=np.zeros(4))


def test_sample_stimuli_and_their_stream_have_the_same_optimum(rng):
    unfolding, _ = setting(n=6)
    X = rng.standard_normal((30, 5)) + np.repeat([[1.0], [-1.0]], 15, axis=0)
    labels = np.repeat(["b", "a"], 15)
    memory = optimize(unfolding, SampleStimuli(X, labels), ETA)
    stream = SampleStimuli.from_batches(
        (X[i : i + 7], labels[i : i + 7]) for i in range(0, 30, 7)
    )
    found = optimize(unfolding, stream, ETA)
    assert found.soft_margin == pytest.approx(memory.soft_margin, rel=1e-10)


# --- Ctrl-C


@pytest.mark.parametrize(
    ("method", "name", "after"),
    [
        ("convex", "evaluate", 1),
        ("convex", "evaluate", 3),
        ("alternating", "best_readout", 1),
        ("alternating", "best_readout", 4),
        ("alternating", "best_input", 0),
        ("alternating", "best_input", 7),
        ("random", "best_readout", 1),
        ("random", "best_readout", 3),
    ],
)
def test_interrupt_returns_the_best_so_far(method, name, after, monkeypatch):
    unfolding, stimuli = setting(n=6)
    interrupt(monkeypatch, LinearProblem, name, after)
    long = {
        "convex": {"method": Convex(1e-14)},
        "alternating": {"method": Alternating(9, tol=1e-14), "rng": 0},
        "random": {"method": RandomDraws(9), "rng": 0},
    }
    found = certify(unfolding, stimuli, ETA, **long[method])
    assert found.status == "interrupted"
    assert "interrupted" in found.message
    assert found.soft_margin == pytest.approx(
        kappa(unfolding, stimuli, found.u, found.v), abs=1e-14
    )
    assert len(found.starts) <= 9
    if method == "random":
        assert len(found.starts) == after
    if method == "convex":  # the first decomposition has proven something already
        assert found.soft_margin <= found.upper_bound < np.inf


def test_interrupt_between_two_starts_keeps_the_first(monkeypatch):
    """The second start is interrupted in its very first readout."""
    unfolding, stimuli = setting(n=6)
    one, five = (Alternating(n, rounds=3, tol=1e-15) for n in (1, 5))
    alone = optimize(unfolding, stimuli, ETA, one, rng=0)
    interrupt(monkeypatch, LinearProblem, "best_readout", 4)
    found = optimize(unfolding, stimuli, ETA, five, rng=0)
    assert found.status == "interrupted"
    assert len(found.starts) == 1
    assert np.array_equal(found.u, alone.u)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("convex", "best_atom"),
        ("convex", "evaluate"),
        ("alternating", "best_readout"),
        ("random", "best_readout"),
    ],
)
def test_interrupt_before_anything_was_found_is_passed_on(method, name, monkeypatch):
    unfolding, stimuli = setting(n=6)
    interrupt(monkeypatch, LinearProblem, name, 0)
    with pytest.raises(KeyboardInterrupt):
        optimize(unfolding, stimuli, ETA, **SHORT[method])


# --- bad input ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"system": np.eye(3)}, TypeError, "`system`.*unfold.*ndarray"),
        ({"stimuli": np.eye(3)}, TypeError, "`stimuli`.*SampleStimuli.*ndarray"),
        ({"stimuli": GaussianStimuli.random(6, rng=0)}, ValueError, "6 steps.*made for 5"),
        ({"eta": 0}, ValueError, "`eta`.*positive.*0"),
        ({"eta": -3.0}, ValueError, "`eta`.*positive.*-3"),
        ({"eta": np.nan}, ValueError, "`eta`.*positive"),
        ({"eta": "10"}, TypeError, "`eta`.*positive number"),
        (
            {"method": "magic"},
            ValueError,
            "`method`.*alter.*convex, exact, .*random.*'magic'",
        ),
        ({"method": "ascent"}, ValueError, "`method`.* for a linear system; got 'ascent'"),
        ({"method": Ascent()}, ValueError, r"`method`.* for a linear system; got Ascent\("),
        ({"method": Convex}, TypeError, "`method` must be one of .*, or such an object"),
        ({"u": np.zeros(4)}, ValueError, "`u` is zero"),
        ({"u": np.ones(5)}, ValueError, r"`u`.*4 rows.*\(5,\)"),
        ({"u": np.ones((4, 2))}, ValueError, r"`u`.*\(4, 1\).*2 column"),
        ({"u": [1, np.nan, 0, 0]}, ValueError, "`u`.*finite"),
    ],
)
def test_bad_input_is_named(options, error, message):
    unfolding, stimuli = setting()
    with pytest.raises(error, match=message):
        optimize(**{"system": unfolding, "stimuli": stimuli, **options})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Convex(gap=0), ValueError, "`gap`.*positive"),
        (lambda: Convex(gap="1"), TypeError, "`gap`.*positive number"),  # pyright: ignore
        (lambda: Convex(max_nodes=-1), ValueError, "`max_nodes`.*at least 0"),
        (lambda: Convex(np.inf, 10), ValueError, "`max_nodes` must be left out for an inf"),
        (lambda: Exact(gap=np.inf), ValueError, "`max_nodes` must be left out for an inf"),
        (lambda: Alternating(0), ValueError, "`n_starts`.*at least 1"),
        (lambda: Alternating(rounds=2.0), TypeError, "`rounds`.*integer"),  # pyright: ignore
        (lambda: Alternating(tol=-1), ValueError, "`tol`.*positive"),
        (lambda: Ascent(n_starts=0), ValueError, "`n_starts`.*at least 1"),
        (lambda: Ascent(max_evaluations=0), ValueError, "`max_evaluations`.*at least 1"),
        (lambda: Ascent(tol=0), ValueError, "`tol`.*positive"),
        (lambda: RandomDraws(0), ValueError, "`n`.*at least 1"),
    ],
)
def test_a_bad_setting_of_a_method_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(("seed", "error"), [("a", TypeError), (-1, ValueError)])
def test_bad_seed_is_named(seed, error):
    unfolding, stimuli = setting()
    with pytest.raises(error, match="`rng` must be a numpy Generator"):
        optimize(unfolding, stimuli, method="random", rng=seed)


class FirstStart(Method):
    """A method of one's own: a random projection."""

    def solve(self, run):
        return run.finish([run.solve_readout(u) for u in run.starts(1)], "first")


def test_a_random_u_of_the_networks_own_seed_is_no_row_of_its_weights():
    reservoir = Reservoir.random(20, rng=3)
    system = unfold(reservoir, n_steps=10, dt=0.2)
    stimuli = GaussianStimuli.random(10, strength=1.0, rng=4)
    rows = reservoir.weights / np.linalg.norm(reservoir.weights, axis=1, keepdims=True)
    for method in (RandomDraws(1), RandomDraws(3), FirstStart()):
        drawn = optimize(system, stimuli, method=method, rng=3)
        assert np.abs(rows @ drawn.u).max() < 0.99
        again = optimize(system, stimuli, method=method, rng=3)
        assert np.array_equal(drawn.u, again.u)
