"""The staged ascent of `Dynamics` against a plain one, Ctrl-C, and its starts."""

import io

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Dynamics,
    Gain,
    GaussianStimuli,
    SampleStimuli,
    load,
    optimize,
)
from greenfold._base import progress as _progress
from greenfold.optimizers.linear import ascend
from greenfold.optimizers.nonlinear import NonlinearProblem

from ..conftest import small


@pytest.fixture
def labelled():
    X, labels = GaussianStimuli.random(4, strength=1.0, rng=1).sample(30, rng=0)
    return SampleStimuli(X, labels, normalize=None)


def dynamics(gain, tol=1e-6, n=8):
    return Dynamics(small(gain, n=n), n_steps=4, dt=0.25, tol=tol)


@pytest.mark.parametrize(
    "gain", [Gain.tanh(), Gain.biased_tanh(0.5)], ids=["tanh", "biased"]
)
def test_a_plain_ascent_finds_nothing_above(gain, labelled):
    system = dynamics(gain)
    found = optimize(system, labelled, method=Ascent(n_starts=2))
    u = found.u[:, None]
    problem = NonlinearProblem(system, labelled, 10.0)
    # κ is that of the full tolerance, whatever the ascent was integrated with.
    here = problem.best_readout(u)[1].value
    assert found.soft_margin == pytest.approx(here, rel=1e-5)
    plain = ascend(problem, u, max_iter=300, tol=1e-10, reach=0.01)
    # The last steps gained 1e-7 each, and the error of 1e-3 in the states costs its square.
    assert plain.margin.value <= found.soft_margin * (1 + 1e-5)
    linear = optimize(system, labelled, u=optimize(system.linear, labelled).u)
    assert found.soft_margin > linear.soft_margin
    assert found.status == "converged"
    assert found.step_error is not None
    assert found.step_error <= 1e-6


def test_fewer_series_first(labelled):
    """Each series forty times is the same problem, which begins with 2000 of them."""
    system = dynamics(Gain.biased_tanh(0.5))
    X, labels = np.tile(labelled.series, (40, 1, 1)), np.tile(labelled.signs, 40)
    many, two = SampleStimuli(X, labels, normalize=None), Ascent(n_starts=2, tol=1e-7)
    whole, found = (optimize(system, one, method=two) for one in (labelled, many))
    assert found.soft_margin == pytest.approx(whole.soft_margin, rel=1e-4)


def test_starts(labelled):
    odd, even = dynamics(Gain.tanh()), dynamics(Gain.biased_tanh(0.5))
    assert odd.quadratic is None
    assert even.quadratic is not None
    assert even.quadratic.order == 1
    assert even.quadratic.degree == 2
    assert even.quadratic.reservoir.gain.coefficients == pytest.approx(
        (0.0, 1.0, -np.tanh(0.5))
    )
    assert len(optimize(odd, labelled, rng=0).starts) == 6
    found = optimize(even, labelled, rng=0)
    assert len(found.starts) == 7
    assert found.starts.max() == pytest.approx(found.soft_margin, rel=1e-3)


@pytest.mark.parametrize("at", [1, 5, 40])
def test_interrupt_gives_the_best_so_far(labelled, monkeypatch, at):
    system, evaluate, count = dynamics(Gain.tanh()), NonlinearProblem.evaluate, [0]

    def stopping(self, u):
        count[0] += 1
        if count[0] == at:
            raise KeyboardInterrupt
        return evaluate(self, u)

    monkeypatch.setattr(NonlinearProblem, "evaluate", stopping)
    if at == 1:
        with pytest.raises(KeyboardInterrupt):
            optimize(system, labelled, rng=0)
        return
    found = optimize(system, labelled, rng=0)
    assert found.status == "interrupted"
    again = optimize(system, labelled, u=found.u)
    assert found.soft_margin == pytest.approx(again.soft_margin, rel=1e-6)


def test_what_was_measured_is_saved(tmp_path):
    stimuli = GaussianStimuli.random(4, strength=0.5, n_draws=50, rng=1)
    short = Ascent(n_starts=1, max_evaluations=3)
    best = optimize(dynamics(Gain.tanh(), tol=1e-3), stimuli, method=short)
    best.save(tmp_path / "best.greenfold")
    again = load(tmp_path / "best.greenfold")
    for name in ("fresh_margin", "fresh_error", "step_error"):
        assert getattr(again, name) == getattr(best, name) is not None


def test_bars_join_the_display_that_is_open(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with (
        _progress.display() as outer,
        outer.bar("outer", 2),
        _progress.display() as inner,
        inner.bar("inner part", 3) as bar,
    ):
        assert inner is outer
        bar.advance(1, "inner part, one done")
    assert "one done" in terminal.getvalue()
    with _progress.display() as later:
        assert later is not outer
