"""The seam: systems that are no unfolding, a few lines each, go through `optimize`.

Three stand-ins for what users have: a measured response, a network in discrete time, and a
network that is integrated. They share no code with the unfolding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from greenfold import (
    Ascent,
    Gain,
    GaussianStimuli,
    MeasuredResponse,
    RandomDraws,
    Reservoir,
    SampleStimuli,
    optimize,
    simulate,
    unfold,
)
from greenfold.analysis import choose_eta, margin_over_angle
from greenfold.devices.device import Restricted
from greenfold.systems import LinearSystem, MatrixSum, System

from .conftest import slope, small, unit


class Measured(LinearSystem, System):
    """A response G (n_steps, n_outputs, n_inputs), recorded."""

    def __init__(self, G):
        self.G = G
        self.n_steps, self.n_outputs, self.n_inputs = G.shape

    @property
    def is_linear(self):
        return True

    @property
    def degree(self):
        return 1

    @property
    def maps(self):
        return self

    def input_response(self, u):
        return np.einsum("noi,ic->cno", self.G, u).reshape(-1, self.n_outputs)

    def readout_response(self, v):
        return np.einsum("noi,o...->ni...", self.G, v)

    def response_sum(self, d):
        return MatrixSum(np.einsum("cn,noi->oci", d, self.G))

    def states(self, X: Any, u: Any):
        return X.reshape(len(X), -1) @ self.input_response(u)

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None):
        raise AssertionError("a linear system is never pulled back")


class Discrete(Measured):
    """y' = (1 − a) y + a (W y + u x), read at the end."""

    def __init__(self, W, leak, n_steps):
        E = (1 - leak) * np.eye(len(W)) + leak * W
        powers = [leak * np.linalg.matrix_power(E, n) for n in range(n_steps)]
        super().__init__(np.array(powers[::-1]))


class Integrated(System):
    """τ ẏ = −y + W tanh(y) + u x by small steps of Euler, with its own adjoint."""

    def __init__(self, reservoir, n_steps, dt, n_sub=40):
        self.W, self.h = reservoir.weights, dt / n_sub / reservoir.tau
        self.n_steps, self.n_sub = n_steps, n_sub
        self.n_inputs = self.n_outputs = len(self.W)
        self._weak = Measured(unfold(reservoir, n_steps=n_steps, dt=dt).greens1())

    @property
    def is_linear(self):
        return False

    @property
    def degree(self):
        return None

    @property
    def maps(self):
        return self._weak

    def _path(self, X, u):
        path = [np.zeros((len(X), len(self.W)))]
        for step in np.repeat(np.arange(self.n_steps), self.n_sub):
            y, drive = path[-1], X[:, :, step] @ u.T
            path.append(y + self.h * (np.tanh(y) @ self.W.T - y + drive))
        return path

    def states(self, X: Any, u: Any):
        return self._path(X, u)[-1]

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None):
        path = self._path(X, u)
        bar = cotangent if v is None else np.outer(cotangent, v)
        u_bar = np.zeros_like(u)
        steps = np.repeat(np.arange(self.n_steps), self.n_sub)
        for y, step in zip(path[-2::-1], steps[::-1], strict=True):
            u_bar += self.h * bar.T @ X[:, :, step]
            bar = bar + self.h * ((bar @ self.W) * (1 - np.tanh(y) ** 2) - bar)
        return u_bar if v is None else (u_bar, cotangent @ path[-1])


def stimuli(n_channels=1):
    return GaussianStimuli.random(5, n_channels=n_channels, rng=1)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_a_measured_response_has_the_optimum_of_its_network(n_channels):
    unfolding = unfold(small(n=8), n_steps=5, dt=0.5)
    measured = Measured(unfolding.greens1())
    assert measured.modes() is None
    assert not measured.has_kernels_of_all()
    ours, theirs = (
        optimize(system, stimuli(n_channels)) for system in (unfolding, measured)
    )
    # Both reach the same global optimum; the ascent ends at 1e-14 of κ.
    assert theirs.soft_margin == pytest.approx(ours.soft_margin, rel=1e-10)
    assert theirs.upper_bound == pytest.approx(ours.upper_bound, rel=1e-10)
    assert theirs.status == "certified"


def whole_network(n_channels):
    readout = np.array([0.0, 0.3, -0.2, 0.0, 1.0]) if n_channels > 1 else 2.3
    return unfold(small(n=8), n_steps=5, dt=0.5).with_readout(readout)


@pytest.mark.parametrize(
    "system",
    [
        lambda c: whole_network(c).maps,
        lambda c: MeasuredResponse(whole_network(c).greens1()),
        lambda c: Restricted(whole_network(c), np.array([5, 1, 2]), np.arange(4)).maps,
    ],
    ids=["network", "response", "part"],
)
@pytest.mark.parametrize("n_channels", [1, 2])
def test_many_projections_at_once(system, n_channels, rng):
    """A block of projections gives what each gives alone; tolerance: rounding."""
    maps = system(n_channels)
    u, v = rng.standard_normal((maps.n_inputs, 3)), rng.standard_normal((maps.n_outputs, 2))
    each = np.stack([maps.input_response(u[:, [k]]) for k in range(3)], axis=-1)
    expected = np.einsum("nok,or->nrk", each, v)
    np.testing.assert_allclose(maps.reduced(v, u), expected, atol=1e-13)
    np.testing.assert_allclose(maps.reduced(v, u[:, :1]), expected[:, :, :1], atol=1e-13)
    total = maps.response_sum(rng.standard_normal((n_channels, 5)))
    alone = np.stack([total.pull(one) for one in v.T], axis=-1)
    assert alone.shape == (maps.n_inputs, n_channels, 2)
    np.testing.assert_allclose(total.pull(v), alone, atol=1e-13)
    driven = rng.standard_normal((maps.n_inputs, n_channels, 2))
    both = np.einsum("or,or->r", v, total.drive(driven))
    np.testing.assert_allclose(both, np.einsum("icr,icr->r", alone, driven), atol=1e-12)


def test_what_is_no_system_is_refused():
    """The three maps alone are a `LinearSystem`, and `optimize` asks for a `System`."""

    class Maps(LinearSystem):
        n_steps, n_inputs, n_outputs = 5, 2, 3
        input_response = Measured.input_response
        readout_response = Measured.readout_response
        response_sum = Measured.response_sum

    wanted = "`system` must be a subclass of greenfold.systems.System.*; got Maps"
    with pytest.raises(TypeError, match=wanted):
        optimize(Maps(), stimuli())  # pyright: ignore[reportCallIssue, reportArgumentType]

    class Unfinished(Maps, System):
        states = Measured.states

    with pytest.raises(TypeError, match="abstract method.* degree, is_linear, maps, pull"):
        Unfinished()  # pyright: ignore[reportAbstractUsage]


def test_a_system_without_kernels_says_so():
    with pytest.raises(TypeError, match="a Measured has no kernels; use `states`"):
        Measured(np.ones((2, 3, 3))).kernels_of_all(np.ones((3, 1)))


def test_inputs_and_outputs_may_differ_in_number(rng):
    """Drive two neurons and read three: the certificate holds for the rest."""
    G = unfold(small(n=8), n_steps=5, dt=0.5).greens1()[:, :3, 6:]
    measured = Measured(G)
    best = optimize(measured, stimuli())
    assert best.u.shape == (2,)
    assert best.v.shape == (3,)
    drawn = optimize(measured, stimuli(), method=RandomDraws(200), rng=0)
    assert best.upper_bound is not None
    assert drawn.soft_margin <= best.soft_margin <= best.upper_bound
    angles = margin_over_angle(measured, stimuli(), best.u, [0.0, 0.5], n_planes=3, rng=0)
    assert angles[:, 0] == pytest.approx(best.soft_margin, rel=1e-9)
    assert (angles[:, 1] < best.soft_margin).all()


def test_discrete_time(rng):
    network = Discrete(small(n=10).weights, 0.3, 5)
    best = optimize(network, stimuli())
    assert best.status == "certified"
    # The judge runs the recursion itself.
    X, labels = stimuli().sample(50_000, rng=2)
    y = np.zeros((len(X), 10))
    for x in X.T:
        y = 0.7 * y + 0.3 * (y @ small(n=10).weights.T + x[:, None] * best.u)
    z = labels * (y @ best.v)
    kappa = z.mean() - 5.0 * z.var()  # η = 10
    # κ of 10⁵ draws scatters by about √(var/n) + 5 var √(2/n).
    error = np.sqrt(z.var() / len(z)) + 5 * z.var() * np.sqrt(2 / len(z))
    assert kappa == pytest.approx(best.soft_margin, abs=5 * error)
    chosen = choose_eta(network, *stimuli().sample(30, rng=3), rng=0)
    assert chosen.accuracy.max() > 0.6  # two classes that overlap


def test_an_integrated_network_is_ascended(rng):
    reservoir = Reservoir(small(n=8).weights, gain=Gain.tanh())
    system = Integrated(reservoir, 5, 0.5)
    X, labels = GaussianStimuli.random(5, strength=2.0, rng=1).sample(60, rng=0)
    samples = SampleStimuli(X, labels, normalize=None)
    u = unit(rng, 8)
    truth = simulate(reservoir, X[:5], u, 0.5)
    # Euler's error at step h is about h/2 of the state.
    assert system.states(X[:5, None], u[:, None]) == pytest.approx(truth, abs=0.05)
    best = optimize(system, samples, method=Ascent(n_starts=2))
    assert best.validity is None  # nothing was expanded
    drawn = optimize(system, samples, method=RandomDraws(20), rng=0)
    assert best.soft_margin > drawn.soft_margin

    moments_at = samples.moment_map(system)
    v = unit(rng, 8)

    def kappa(point):
        found = moments_at(point)
        return v @ found.M - 5.0 * v @ found.Sigma @ v

    direction = unit(rng, 8, 1)
    gradient = moments_at(u[:, None]).pull(v, 10.0)
    steps = np.array([1e-1, 3e-2, 1e-2, 3e-3])
    rest = [
        abs(
            kappa(u[:, None] + h * direction)
            - kappa(u[:, None])
            - h * (gradient * direction).sum()
        )
        for h in steps
    ]
    assert slope(steps, rest) > 1.9


def test_gaussian_classes_are_drawn_for_an_integrated_network():
    system = Integrated(Reservoir(small(n=4).weights, gain=Gain.tanh()), 5, 0.5, n_sub=10)
    drawn = GaussianStimuli.random(5, strength=1.0, n_draws=200, rng=1)
    best = optimize(system, drawn, method=Ascent(1, max_evaluations=10))
    assert best.validity is None
    assert best.step_error is None  # this one does not measure it
    assert best.fresh_error is not None
    # The fit flatters itself a little; four standard errors leave room for that.
    assert best.fresh_margin == pytest.approx(best.soft_margin, abs=4 * best.fresh_error)
