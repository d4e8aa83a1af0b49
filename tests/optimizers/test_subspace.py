"""Large systems, solved in a small space, against the search in the whole space.

`Products` hides the matrices of a system, so that only products are left. The judges are
the search on the whole matrices, and ascents with a gradient of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from greenfold import (
    Convex,
    Device,
    GaussianStimuli,
    RegressionTask,
    Reservoir,
    optimize,
    unfold,
)
from greenfold.devices.masks.levels import UnitQuadratic, climb
from greenfold.optimizers import subspace
from greenfold.optimizers.bounds import Relaxation
from greenfold.optimizers.linear import LinearProblem
from greenfold.systems import LinearSystem, System

from ..conftest import interrupt


def solved(*problem: Any, **options: Any) -> Any:
    return optimize(*problem, **options)


class Sum:
    def __init__(self, whole):
        self.drive, self.pull = whole.drive, whole.pull

    def matrix(self):
        return None


class Products(LinearSystem, System):
    """An unfolding that gives products alone."""

    is_linear: Any = True
    degree: Any = 1

    def __init__(self, unfolding):
        self.whole, self.n_steps = unfolding, unfolding.n_steps
        self.n_inputs = self.n_outputs = unfolding.n_neurons

    def input_response(self, u):
        return self.whole.maps.input_response(u)

    def readout_response(self, v):
        return self.whole.maps.readout_response(v)

    def states(self, X, u):
        return self.whole.states(X, u)

    def pullback(self, X, u, cotangent, v=None):
        return self.whole.pullback(X, u, cotangent, v)

    @property
    def maps(self):
        return self

    def response_sum(self, d):
        return Sum(self.whole.maps.response_sum(d))


def network(n, kind="gauss", seed=0, n_steps=8):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((n, n)) / np.sqrt(n)
    if kind != "gauss":
        W = np.where(rng.random((n, n)) < 6 / n, W * np.sqrt(n / 6), 0.0)
    if kind == "Dale":
        W = np.abs(W) * np.where(rng.random(n) < 0.8, 1, -1)
    W *= 0.8 / max(np.abs(np.linalg.eigvals(W)).max(), 1e-9)
    return unfold(Reservoir(W), n_steps=n_steps, dt=0.5)


def drawn(n_steps=8, n_channels=1, seed=0):
    return GaussianStimuli.random(n_steps, strength=1.0, n_channels=n_channels, rng=seed)


CASES = [
    ("gauss", 40, 1, 10.0, 0),
    ("sparse", 60, 1, 1.0, 1),
    ("Dale", 60, 1, 10.0, 2),
    ("sparse", 50, 2, 10.0, 3),
    ("gauss", 90, 1, 100.0, 4),
]


@pytest.mark.parametrize(("kind", "n", "n_channels", "eta", "seed"), CASES)
def test_it_is_the_optimum_of_the_whole_space(kind, n, n_channels, eta, seed):
    """Both searches are certified, or have the same bound; both end at a gap of 1e-9.

    Without the tree, which the search in the whole space adds, some gaps stay open. The
    bound of the relaxation is convex, so both have the same.
    """
    whole, stimuli = network(n, kind, seed), drawn(n_channels=n_channels, seed=seed)
    method = Convex(gap=1e-9, max_nodes=0)
    ours = solved(Products(whole), stimuli, eta, method)
    theirs = solved(whole, stimuli, eta, method)
    assert ours.status == theirs.status
    assert ours.upper_bound >= ours.soft_margin
    if theirs.status == "certified":
        assert ours.soft_margin == pytest.approx(theirs.soft_margin, rel=2e-9)
        assert ours.upper_bound == pytest.approx(theirs.upper_bound, rel=2e-9)
    else:  # both lower the same bound, the other to a relative 1e-7
        assert ours.upper_bound == pytest.approx(theirs.upper_bound, rel=1e-4)
    again = solved(whole, stimuli, eta, u=ours.u)
    assert again.soft_margin == pytest.approx(ours.soft_margin, rel=1e-6)
    assert again.soft_margin >= ours.soft_margin * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_no_ascent_passes_the_bound(seed):
    """Fifty ascents in (u, v), with the gradient of the tensor of Green's functions."""
    whole, stimuli = network(30, "sparse", seed), drawn(seed=seed)
    best = solved(Products(whole), stimuli, method=Convex(max_nodes=0))
    G, rng = whole.greens1(), np.random.default_rng(seed)

    def negative(w):
        sizes = np.linalg.norm(w.reshape(2, -1), axis=1)
        v, u = w.reshape(2, -1) / sizes[:, None]
        a = np.einsum("nip,i,p->n", G, v, u)
        d = stimuli.mu - 10 * stimuli.psi @ a
        total = np.tensordot(d, G, axes=1)
        slopes = np.stack([total @ u, total.T @ v])
        along = (slopes * [v, u]).sum(1)[:, None] * [v, u]
        kappa = a @ stimuli.mu - 5 * a @ stimuli.psi @ a
        return -kappa, -((slopes - along) / sizes[:, None]).ravel()

    start = rng.standard_normal(60)
    moved, value = rng.standard_normal(60) * 1e-6, negative(start)
    rise = negative(start + moved)[0] - value[0]
    assert rise == pytest.approx(value[1] @ moved, rel=1e-3)  # the judge's own gradient
    values = [
        -minimize(negative, rng.standard_normal(60), jac=True, method="L-BFGS-B").fun
        for _ in range(50)
    ]
    # Rounding of κ, whose terms are about one, is 1e-15.
    assert max(values) <= best.upper_bound + 1e-14
    assert max(values) <= best.soft_margin * (1 + 1e-9) or best.status == "bounded"


def leaves_of(monkeypatch):
    """Keep the leaves that are proven in the whole space, with their bounds."""
    kept, original = list[Any](), Relaxation.prove_within

    def prove(self, node, outputs, inputs, **options):
        found = original(self, node, outputs, inputs, **options)
        kept.append((node.sectors, outputs, inputs, found[0]))
        return found

    monkeypatch.setattr(Relaxation, "prove_within", prove)
    return kept


@pytest.mark.parametrize(
    ("n_channels", "noise", "seed"), [(1, 0.0, 25), (2, 0.0, 24), (1, 0.1, 28)]
)
def test_a_tree_of_the_small_space_proves_the_whole(n_channels, noise, seed, monkeypatch):
    """Pairs of the whole space lie in leaves whose bounds they do not pass.

    The pairs are random, near the optimum, and the ends of ascents in the whole space. The
    relaxation alone leaves a gap here.
    """
    kept, n = leaves_of(monkeypatch), 20 * (3 - n_channels)
    whole, stimuli = network(n, "sparse", seed), drawn(n_channels=n_channels, seed=seed)
    spread = np.linspace(0.2, 1.0, n) * noise
    device = Device(state_noise=spread) if noise else None
    best = solved(Products(whole), stimuli, device=device)
    theirs = solved(whole, stimuli, device=device, method=Convex(max_nodes=500))
    plain = solved(Products(whole), stimuli, device=device, method=Convex(max_nodes=0))
    assert plain.status == "bounded"
    assert best.status == theirs.status == "certified"
    assert best.soft_margin <= theirs.upper_bound
    assert theirs.soft_margin <= best.upper_bound < plain.upper_bound
    covariance = np.diag(spread**2) if noise else None
    problem = LinearProblem(whole.maps, stimuli, 10.0, covariance)
    rng, pairs = np.random.default_rng(seed), list[Any]()
    found = (best.u.reshape(n, -1), best.v), (theirs.u.reshape(n, -1), theirs.v)
    for u, v in found * 100:
        near = rng.uniform(0, 0.5)
        pairs.append((u + near * unit(rng, u.shape), v + near * unit(rng, v.shape)))
        pairs.append((unit(rng, u.shape), unit(rng, v.shape)))
    size = kept[-1][1].shape[1], kept[-1][2].shape[1]
    final = [one for one in kept if (one[1].shape[1], one[2].shape[1]) == size]
    met = 0
    for u, v in (*pairs, *found):
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        kappa = problem.margin(u, v).value
        for sectors, outputs, inputs, bound in final:
            w = np.concatenate([outputs.T @ v, (inputs.T @ u).T.ravel()])
            if ((sectors.x @ w) * (sectors.y @ w) >= 0).all():
                assert kappa <= bound + 1e-14
                met += 1
    assert met >= len(pairs)  # the leaves cover all pairs


def unit(rng, shape):
    drawn = rng.standard_normal(shape)
    return drawn / np.linalg.norm(drawn)


def test_few_directions_are_enough(monkeypatch):
    """A hundred neurons take a fraction of their directions, and few rounds."""
    sizes = []
    original = subspace.Space.extend

    def extend(self, inputs, outputs):
        original(self, inputs, outputs)
        sizes.append(self.inputs.shape[1])

    monkeypatch.setattr(subspace.Space, "extend", extend)
    whole, stimuli = network(150, "sparse", 5), drawn(seed=5)
    best = solved(Products(whole), stimuli)
    assert best.gap <= 1e-9
    assert sizes[-1] <= 75
    assert len(sizes) <= 10


def test_ctrl_c_returns_the_best_pair_and_its_bound(monkeypatch):
    whole, stimuli = network(60, "sparse", 6), drawn(seed=6)
    full = solved(Products(whole), stimuli)
    interrupt(monkeypatch, subspace.Space, "extend", after=2)
    best = solved(Products(whole), stimuli)
    assert best.status == "interrupted"
    assert best.soft_margin <= full.soft_margin <= best.upper_bound
    assert best.soft_margin > 0.5 * full.soft_margin
    monkeypatch.undo()
    interrupt(monkeypatch, subspace.Space, "extend", after=0)
    with pytest.raises(KeyboardInterrupt):
        solved(Products(whole), stimuli)


def test_equal_means_have_no_margin():
    """Without a difference of means, the best κ is zero: the readout is silent."""
    stimuli = drawn(seed=7)
    silent = GaussianStimuli(0 * stimuli.mu, stimuli.psi)
    best = solved(Products(network(30, seed=7)), silent)
    assert best.soft_margin == pytest.approx(0, abs=1e-15)
    assert best.status == "certified"


@pytest.mark.parametrize("mask", ["sign", "nonnegative"])
def test_masks_are_rounded_in_the_whole_space(mask):
    whole, stimuli = network(60, "sparse", 8), drawn(seed=8)
    free = solved(Products(whole), stimuli)
    best = solved(Products(whole), stimuli, device=Device(mask=mask), rng=0)
    theirs = solved(whole, stimuli, device=Device(mask=mask), rng=0)
    assert best.upper_bound == pytest.approx(free.upper_bound, rel=1e-12)
    assert best.share == pytest.approx(theirs.share, rel=0.02)
    if mask == "sign":
        np.testing.assert_allclose(np.abs(best.u), 60**-0.5, rtol=1e-12)
    else:
        assert best.u.min() >= 0


def test_inputs_and_outputs_of_a_device():
    """A part of the system has its own optimum, as in the whole space."""
    whole, stimuli = network(60, "sparse", 9), drawn(seed=9)
    part = Device(inputs=np.arange(20), outputs=np.arange(10, 60))
    ours = solved(Products(whole), stimuli, device=part)
    theirs = solved(whole, stimuli, device=part)
    assert theirs.status == ours.status == "certified"
    assert ours.soft_margin == pytest.approx(theirs.soft_margin, rel=1e-8)
    assert not ours.u[20:].any()
    assert not ours.v[:10].any()


@pytest.mark.contract
@pytest.mark.parametrize(
    "device",
    [
        Device(state_noise=0.1),
        Device(readout_noise=np.linspace(0.05, 0.3, 60), state_noise=0.05),
        Device(readout_noise=0.1, outputs=np.arange(10, 50)),
        Device(readout_noise=0.1, input_noise=0.2),
    ],
)
def test_independent_noise_on_many_outputs_is_no_matrix(device, monkeypatch):
    """A sparse covariance gives what the full one gives: solved, at one u, at random u."""
    whole, stimuli = network(60, "sparse", 10), drawn(seed=10)
    u = np.random.default_rng(0).standard_normal(60)

    def every():
        best = solved(Products(whole), stimuli, device=device, method=Convex(gap=1e-9))
        given = solved(Products(whole), stimuli, device=device, u=u)
        return best, given, solved(whole, stimuli, device=device, method="random", rng=0)

    full = every()
    monkeypatch.setattr("greenfold.devices.noise.SPARSE_NEURONS", 10)
    assert sparse.issparse(next(reversed(device.noise(8, 60).values())))
    for ours, theirs in zip(every(), full, strict=True):
        assert ours.soft_margin == pytest.approx(theirs.soft_margin, rel=1e-9)
        assert ours.noise_cost == pytest.approx(theirs.noise_cost, rel=1e-4)
        np.testing.assert_allclose(np.abs(ours.v @ theirs.v), 1, rtol=1e-6)
    assert every()[0].upper_bound == pytest.approx(full[0].upper_bound, rel=1e-8)


def test_a_normal_network_with_equal_noise_on_many_outputs(monkeypatch):
    ring, stimuli = unfold(Reservoir.cycle(80), n_steps=8, dt=0.5), drawn(seed=11)
    device = Device(readout_noise=0.1)
    theirs = solved(ring, stimuli, device=device)
    monkeypatch.setattr("greenfold.devices.noise.SPARSE_NEURONS", 10)
    ours = solved(ring, stimuli, device=device)
    assert ours.status == theirs.status == "certified"
    assert ours.soft_margin == pytest.approx(theirs.soft_margin, rel=1e-12)


def test_regression_with_many_outputs(monkeypatch, rng):
    """Readouts by the Gram matrix of the steps are those by that of the outputs."""
    X = rng.standard_normal((200, 8))
    task = RegressionTask.from_cases(X, X[:, [3, 6]] + 0.1 * X[:, [1, 1]], ridge=0.01)
    whole = network(60, "sparse", 12)
    theirs = solved(Products(whole), task)
    u = rng.standard_normal(60)
    given = solved(whole, task, u=u)
    monkeypatch.setattr("greenfold.optimizers.regression.SPARSE_NEURONS", 10)
    ours = solved(Products(whole), task)
    assert ours.status == theirs.status == "certified"
    assert ours.gain == pytest.approx(theirs.gain, rel=1e-6)
    assert ours.upper_bound == pytest.approx(theirs.upper_bound, rel=1e-4)
    # The ridge penalty divides rounding errors of 1e-16 by a thousandth of the largest
    # eigenvalue, or less.
    np.testing.assert_allclose(solved(whole, task, u=u).V, given.V, atol=1e-9)


@pytest.mark.parametrize("n_channels", [1, 2])
def test_masks_of_many_inputs_use_a_factor(n_channels, monkeypatch):
    """Single changes of a mask cost products with the factor of Q, and find the same."""
    whole, stimuli = network(50, "sparse", 13), drawn(n_channels=n_channels, seed=13)
    problem: Any = LinearProblem(whole.maps, stimuli, 10.0)
    v = np.ones(50) / np.sqrt(50)
    b, Q = problem.input_terms(v)
    monkeypatch.setattr("greenfold.optimizers.linear.SPARSE_NEURONS", 10)
    other, factored = problem.input_terms(v)
    np.testing.assert_allclose(other, b, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(factored), Q, atol=1e-12 * np.abs(Q).max())
    np.testing.assert_allclose(factored.diagonal(), np.diag(Q), rtol=1e-9)
    np.testing.assert_allclose(factored.column(7), Q[:, 7], atol=1e-12 * np.abs(Q).max())
    start = np.random.default_rng(0).integers(0, 2, 50 * n_channels)
    levels = np.array([-1.0, 1.0])
    monkeypatch.setattr("greenfold.devices.masks.levels._PAIRED", 0)
    ends = [climb(UnitQuadratic(b, one, 10.0), start, levels) for one in (Q, factored)]
    np.testing.assert_array_equal(ends[0], ends[1])


@pytest.mark.contract
def test_a_chain_of_equal_cells_is_proven_to_the_tolerance_and_no_further():
    """Every round adds few of a thousand equal directions: more digits take hundreds."""
    chain = Reservoir(sparse.csr_array(0.4 * np.eye(1000, k=1)))
    system = unfold(chain, n_steps=5, dt=0.5)
    best = solved(system, GaussianStimuli.random(5, rng=0))
    assert best.status == "certified"
    assert best.gap <= 1e-4
    # 1e-9, at which others end, is not reached within 60 rounds.
    assert best.gap > 1e-9
