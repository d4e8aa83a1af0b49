"""Masks: judged by exhaustive search, by a general solver, and by the proven bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from greenfold.optimizers.masks import UnitQuadratic, climb, into_box, symmetric_levels
from scipy.optimize import minimize

from greenfold import (
    Device,
    Gain,
    GaussianStimuli,
    MeasuredResponse,
    Reservoir,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.analysis import mask_bound
from greenfold.datasets import ecg5000_paper, synthetic_heartbeats
from greenfold.math.sphere import maximize_on_sphere
from greenfold.optimizers import masks
from greenfold.optimizers import masks as exchange
from greenfold.optimizers.linear import LinearProblem

from ..conftest import small

ETA = 10.0


def setting(n, n_steps=8, n_channels=1, seed=3):
    network = unfold(small(n=n, seed=seed), n_steps=n_steps, dt=0.5)
    X, y = synthetic_heartbeats(150, n_steps=n_steps * n_channels, rng=seed)
    return network, SampleStimuli(X.reshape(150, n_channels, n_steps), y)


def margins(network, stimuli, U):
    """The judge: max_v κ of many masks (m, n), from the tensor of Green's functions."""
    U = U / np.linalg.norm(U, axis=1, keepdims=True)
    R = np.einsum("noi,mi->mno", network.greens1(), U)
    M = np.einsum("mno,n->mo", R, stimuli.mu)
    S = np.einsum("mno,nk,mkp->mop", R, stimuli.psi, R, optimize=True)
    return maximize_on_sphere(M, ETA * (S + S.transpose(0, 2, 1)) / 2).value


def every(levels, n):
    """All masks of given levels but the zero one."""
    found = np.array(list(itertools.product(levels, repeat=n)))
    return found[found.any(1)]


def test_an_ascent_that_runs_out_of_evaluations_does_not_call_itself_converged():
    network, stimuli = setting(8)
    problem = LinearProblem(network, stimuli, ETA)
    u = np.ones((8, 1))
    ends = [
        masks.ascend_in_box(problem, u, (-0.4, 0.4), max_evaluations=n) for n in (2, 500)
    ]
    assert [end.status for end in ends] == ["max_iterations", "converged"]
    assert ends[0].margin.value < ends[1].margin.value


CASES = {
    "sign": ({"mask": "sign"}, [-1, 1], 8),
    "two levels": ({"levels": [0, 1]}, [0, 1], 8),
    "three levels": ({"levels": [-1, 0, 1]}, [-1, 0, 1], 5),
    "four uneven levels": ({"levels": [-1, -0.2, 0.4, 3]}, [-1, -0.2, 0.4, 3], 4),
}


@pytest.mark.parametrize("enumerate_all", [True, False])
@pytest.mark.parametrize(("options", "levels", "n"), CASES.values(), ids=CASES)
def test_equal_to_exhaustive_search(monkeypatch, options, levels, n, enumerate_all):
    """Where all masks are compared, and where entries are exchanged from roundings."""
    if not enumerate_all:
        monkeypatch.setattr(masks, "_ENUMERATED", 0)
    network, stimuli = setting(n)
    best = optimize(network, stimuli, ETA, device=Device(**options), rng=0)
    assert best.status == ("exhaustive" if enumerate_all else "improved")
    truth = margins(network, stimuli, every(levels, n)).max()
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)
    assert np.linalg.norm(best.u) == pytest.approx(1)
    assert best.upper_bound is not None
    assert best.soft_margin <= best.upper_bound
    assert best.share == best.soft_margin / best.upper_bound
    scaled = best.u / np.abs(best.u).max()
    allowed = np.array(levels) / np.abs(levels).max()
    off = min(
        np.abs(t * scaled[:, None] - allowed).min(1).max()
        for t in np.abs(allowed[allowed != 0])
    )
    assert off < 1e-9


def test_levels_that_are_found_beat_every_ratio_of_a_grid():
    network, stimuli = setting(5)
    best = optimize(network, stimuli, ETA, device=Device(levels=4), rng=0)
    assert len(np.unique(np.abs(best.u).round(9))) <= 2
    truth = max(
        margins(network, stimuli, every([-1, -r, r, 1], 5)).max()
        for r in np.linspace(0.05, 0.95, 19)
    )
    assert best.soft_margin >= truth * (1 - 1e-9)


@pytest.mark.parametrize(("n_levels", "n"), [(3, 6), (4, 5)])
def test_levels_with_their_sizes_equal_exhaustive_search(n_levels, n):
    """Every mask of 0, ±1; every one of ±1, ±r for r on a grid."""
    network, stimuli = setting(n)
    best = optimize(network, stimuli, ETA, device=Device(levels=n_levels), rng=0)
    grid = (
        [[-1, 0, 1]] if n_levels == 3 else [[-1, -r, r, 1] for r in np.arange(1, 25) / 25]
    )
    truth = max(margins(network, stimuli, every(one, n)).max() for one in grid)
    assert best.soft_margin >= truth * (1 - 1e-9)
    # Half a step of 0.04 in r, squared, and some curvature.
    assert best.soft_margin <= truth * (1 + (1e-9 if n_levels == 3 else 4e-3))


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        ({"mask": "nonnegative"}, 0.0, 1.0),
        ({"box": (-0.2, 0.7)}, -0.2, 0.7),
        ({"box": (0.3, 1.0)}, 0.3, 1.0),
    ],
)
@pytest.mark.parametrize("seed", [3, 4])
def test_ranges_equal_a_search_of_the_whole_sphere(options, low, high, seed):
    """Three inputs: every direction, 1.2 degrees apart."""
    network, stimuli = setting(3, seed=seed)
    best = optimize(network, stimuli, ETA, device=Device(**options), rng=0)
    height, turn = np.linspace(0, np.pi, 150), np.linspace(0, 2 * np.pi, 300)
    height, turn = (one.ravel() for one in np.meshgrid(height, turn))
    sphere = np.stack(
        [np.sin(height) * np.cos(turn), np.sin(height) * np.sin(turn), np.cos(height)], 1
    )
    inside = sphere[((sphere >= low) & (sphere <= high)).all(1)]
    truth = margins(network, stimuli, inside).max()
    # An ascent ends where it comes as near as this to the bound on all masks.
    assert best.soft_margin >= truth * (1 - masks._REACHED)
    # At an edge of the range the grid is a step of 0.02 away, and κ is not flat there.
    assert best.soft_margin <= truth * (1 + 0.04)


def test_two_channels():
    """The mask is one for all channels: (n_inputs, n_channels) entries."""
    network, stimuli = setting(5, 4, 2)
    best = optimize(network, stimuli, ETA, device=Device(mask="sign"), rng=0)
    assert best.u.shape == (5, 2)
    G, best_of_all = network.greens1(), -np.inf
    for signs in every([-1, 1], 10) / np.sqrt(10):
        R = np.einsum("noi,ic->cno", G, signs.reshape(5, 2)).reshape(8, 5)
        S = R.T @ stimuli.psi @ R
        value = maximize_on_sphere(R.T @ stimuli.mu, ETA * (S + S.T) / 2).value
        best_of_all = max(best_of_all, float(value))
    assert best.soft_margin == pytest.approx(best_of_all, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [({"mask": "nonnegative"}, 0.0, 1.0), ({"box": (-0.3, 0.6)}, -0.3, 0.6)],
)
def test_ranges_are_solved_as_by_a_general_solver(options, low, high, rng):
    n = 6
    network, stimuli = setting(n)
    best = optimize(network, stimuli, ETA, device=Device(**options), rng=0)
    assert np.linalg.norm(best.u) == pytest.approx(1)
    assert best.u.min() >= low - 1e-12
    assert best.u.max() <= high + 1e-12

    def negative(u):
        return -float(margins(network, stimuli, u[None])[0])

    truth = -np.inf
    for _ in range(2):
        start = into_box(rng.standard_normal(n), low, high)
        found = minimize(
            negative,
            start,
            method="SLSQP",
            bounds=[(low, high)] * n,
            constraints={"type": "eq", "fun": lambda u: u @ u - 1},
            options={"ftol": 1e-12, "maxiter": 60},
        )
        if abs(found.x @ found.x - 1) < 1e-6:
            truth = max(truth, -found.fun)
    # SLSQP ends at 1e-6 of the norm.
    assert best.soft_margin >= truth * (1 - 1e-5)


@pytest.mark.parametrize("low", [0.0, -0.2, 0.05])
def test_the_nearest_vector_in_a_box(rng, low):
    """No unit vector of a box is nearer than the projection."""
    for _ in range(20):
        w = rng.standard_normal(5)
        made = into_box(w, low, 0.6)
        assert np.linalg.norm(made) == pytest.approx(1, abs=1e-9)
        assert made.min() >= low - 1e-12
        assert made.max() <= 0.6 + 1e-12
        others = np.clip(made + 0.1 * rng.standard_normal((2000, 5)), low, 0.6)
        length = np.linalg.norm(others, axis=1)
        others = others[length > 0.9] / length[length > 0.9, None]
        inside = (others >= low).all(1) & (others <= 0.6).all(1)
        if (w > 0).any():
            assert (others[inside] @ w <= made @ w + 1e-9).all()


def test_a_support_has_its_own_certificate(rng):
    network, stimuli = setting(10)
    inputs, outputs = np.arange(2, 7), np.arange(10) % 2 == 0
    device = Device(inputs=inputs, outputs=outputs)
    best = optimize(network, stimuli, ETA, device=device, tol=1e-11)
    assert best.u.shape == best.v.shape == (10,)
    assert not np.delete(best.u, inputs).any()
    assert not best.v[~outputs].any()
    # The judge: a network of which only those inputs and outputs exist.
    part = MeasuredResponse(network.greens1()[:, outputs][:, :, inputs], 0.5)
    alone = optimize(part, stimuli, ETA, tol=1e-11)
    assert best.soft_margin == pytest.approx(alone.soft_margin, rel=1e-10)
    assert best.upper_bound == pytest.approx(alone.upper_bound, rel=1e-8)
    cut = optimize(network, stimuli, ETA).u
    cut = np.where(np.isin(np.arange(10), inputs), cut, 0)
    kept = optimize(network, stimuli, ETA, device=device, u=cut)
    assert kept.soft_margin < best.soft_margin
    signs = Device(inputs=inputs, mask="sign")
    masked = optimize(network, stimuli, ETA, device=signs, rng=0)
    assert np.abs(masked.u[inputs]) == pytest.approx(np.full(5, 5**-0.5))


def test_a_support_of_a_non_linear_network():
    reservoir = Reservoir(small(n=8).weights, gain=Gain.quadratic(0.05))
    network = unfold(reservoir, n_steps=5, dt=0.5, order=1)
    stimuli = GaussianStimuli.random(5, strength=1.0, n_draws=200, rng=1)
    X, y = stimuli.sample(40, rng=0)
    samples = SampleStimuli(X, y, normalize=None)
    best = optimize(
        network, samples, ETA, device=Device(inputs=[0, 1, 2]), n_starts=2, rng=0
    )
    assert best.u[:3].any()
    assert not best.u[3:].any()
    again = optimize(network, samples, ETA, u=best.u)
    assert again.soft_margin == pytest.approx(best.soft_margin, rel=1e-6)


def test_quantised_readouts_equal_exhaustive_search():
    network, stimuli = setting(6)
    u = np.random.default_rng(0).standard_normal(6)
    best = optimize(network, stimuli, ETA, device=Device(bits=3), u=u)
    G = network.greens1()
    a = np.einsum("noi,i,mo->mn", G, u / np.linalg.norm(u), _units(every(range(-3, 4), 6)))
    truth = (a @ stimuli.mu - ETA / 2 * ((a @ stimuli.psi) * a).sum(1)).max()
    assert best.soft_margin == pytest.approx(truth, rel=1e-9)
    free = optimize(network, stimuli, ETA, device=Device(bits=3))
    assert free.soft_margin > best.soft_margin
    shares = [
        optimize(network, stimuli, ETA, device=Device(bits=b)).share or 0
        for b in (1, 2, 4, 8)
    ]
    assert sorted(shares) == shares
    assert shares[-1] > 0.9999


def _units(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_exchange_keeps_exact_sums(rng):
    """κ from cheap updates is κ from scratch: no move improves what `climb` returns."""
    A = rng.standard_normal((9, 9))
    quadratic = UnitQuadratic(rng.standard_normal(9), A @ A.T, 2.0)
    levels = np.array([-1.0, 0.3, 2.0])
    end = climb(quadratic, rng.integers(0, 3, 9), levels)
    value = quadratic.value(levels[end])
    for i, j in itertools.combinations(range(9), 2):
        for k, l in itertools.product(range(3), repeat=2):
            other = end.copy()
            other[i], other[j] = k, l
            assert quadratic.value(levels[other]) <= value + 1e-10


def test_single_exchanges_keep_exact_sums_too(rng, monkeypatch):
    """Without the search of pairs, which would make up for a wrong sum."""
    monkeypatch.setattr(exchange, "_PAIRED", 0)
    A, levels = rng.standard_normal((9, 9)), np.array([-1.0, 0.3, 2.0])
    for _ in range(20):
        quadratic = UnitQuadratic(rng.standard_normal(9), A @ A.T, 2.0)
        end = climb(quadratic, rng.integers(0, 3, 9), levels)
        value = quadratic.value(levels[end])
        for i, k in itertools.product(range(9), range(3)):
            other = end.copy()
            other[i] = k
            assert quadratic.value(levels[other]) <= value + 1e-10


def test_symmetric_levels_are_the_means_of_their_entries(rng):
    values = rng.standard_normal(200)
    levels = symmetric_levels(values, 5)
    np.testing.assert_allclose(levels, -levels[::-1])
    size = np.abs(values)
    near = np.abs(size[:, None] - levels[2:]).argmin(1)
    np.testing.assert_allclose(levels[3:], [size[near == k].mean() for k in (1, 2)])


def test_same_seed_same_mask():
    network, stimuli = setting(10)
    three = Device(levels=3)
    first, second = (optimize(network, stimuli, device=three, rng=4) for _ in range(2))
    np.testing.assert_array_equal(first.u, second.u)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": "binary"}, "`mask` must be 'sign' or 'nonnegative'; got 'binary'"),
        ({"mask": "sign", "levels": 3}, "`mask` and `levels` both restrict"),
        ({"levels": 1}, "`levels` must be at least 2"),
        ({"levels": [1.0, 1.0]}, "`levels` must hold at least two different values"),
        ({"box": (0.1, 0.2)}, r"leaves no vector of unit norm .* at least 0.378"),
        ({"box": (0.5, 1.0)}, "makes every vector of 7 entries longer"),
        ({"box": 3}, r"`box` must be \(low, high\) .*; got 3"),
        ({"box": (1, 0)}, "with low < high"),
        ({"inputs": [0, 7]}, "`inputs` must lie between 0 and 6; got 7"),
        ({"outputs": [1, 1]}, "`outputs` names an index twice"),
        ({"inputs": []}, "`inputs` must be indices"),
        ({"inputs": np.ones(6, bool)}, "`inputs` must have 7 truth values"),
        ({"bits": 0}, "`bits` must be at least 1"),
        ({"bits": 9}, "`bits` must be 1 to 8 .* got 9"),
        ({"mask": "sign", "u": np.ones(7)}, "`u` cannot be combined with a mask"),
        ({"mask": "sign", "method": "random"}, "`method` cannot be combined with a mask"),
        ({"inputs": [0], "u": np.ones(7)}, "drives inputs that `inputs` leaves out"),
    ],
)
def test_bad_arguments(options, message):
    network, stimuli = setting(7)
    given = {name: options[name] for name in ("u", "method") if name in options}
    own = {name: one for name, one in options.items() if name not in given}
    with pytest.raises(ValueError, match=message):
        optimize(network, stimuli, device=Device(**own), **given)


def test_a_mask_of_a_non_linear_network_is_refused():
    reservoir = Reservoir(small(n=4).weights, gain=Gain.quadratic(0.05))
    network = unfold(reservoir, n_steps=8, dt=0.5, order=1)
    with pytest.raises(ValueError, match="`mask` is solved on linear systems only"):
        optimize(network, setting(4)[1], device=Device(mask="sign"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_shares_of_the_bound_on_heartbeats(data_dir, seed):
    """ECG5000, classes 1 and 2, the paper's network."""
    split = ecg5000_paper(data_dir)
    stimuli = SampleStimuli(split.X_train, split.y_train)
    network = unfold(Reservoir.random(100, rng=seed), n_steps=140, dt=10 / 140)
    # Of network 3 no mask without negative entries passes 86.1 %, as is proven below, and
    # none was found above 85.6 %: the bound is that of all masks.
    nonnegative = 0.855 if seed == 3 else 0.86
    least = {"sign": 0.88, "nonnegative": nonnegative, "four": 0.965}
    found = {
        "sign": optimize(network, stimuli, device=Device(mask="sign"), rng=0),
        "nonnegative": optimize(network, stimuli, device=Device(mask="nonnegative"), rng=0),
        "four": optimize(network, stimuli, device=Device(levels=4), rng=0),
    }
    for name, best in found.items():
        assert best.share is not None
        assert best.share >= least[name], name
    if seed == 3:
        best = found["nonnegative"]
        assert best.upper_bound is not None
        bound = mask_bound(network, stimuli, best, Device(mask="nonnegative"))
        assert best.soft_margin <= bound < 0.861 * best.upper_bound


@pytest.mark.parametrize("seed", range(3))
def test_three_levels_are_compared_exhaustively(seed):
    """Their size is the norm of u, so that −1, 0 and 1 are all there is."""
    stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    network = unfold(Reservoir.random(5, g=0.7, rng=seed), n_steps=6, dt=0.5)
    counted, given = (
        optimize(network, stimuli, device=Device(levels=levels), rng=0)
        for levels in (3, [-1, 0, 1])
    )
    assert counted.status == given.status == "exhaustive"
    assert counted.soft_margin == given.soft_margin


@pytest.mark.parametrize("levels", [[-1, 1], [-1, 0, 1], [0, 1, 3]])
def test_levels_of_any_size_are_the_same_mask(levels):
    stimuli = GaussianStimuli.random(6, strength=1.0, rng=1)
    network = unfold(Reservoir.random(5, g=0.7, rng=0), n_steps=6, dt=0.5)
    found = [
        optimize(network, stimuli, device=Device(levels=scale * np.array(levels)), rng=0)
        for scale in (1.0, 2.0**600, 2.0**-600, 1e200, 1e-200)
    ]
    # A power of two rounds nothing; other factors round each level once.
    for one, tol in zip(found[1:], (0, 0, 1e-12, 1e-12), strict=True):
        np.testing.assert_allclose(one.u, found[0].u, rtol=tol)
    with pytest.raises(ValueError, match="`levels` must be within a factor of 1e\\+12"):
        Device(levels=[1e-9, 1e9])
