"""Bounds on cells of directions, judged by points inside them and by grids of angles."""

import numpy as np
import pytest

from greenfold import Convex, Device, GaussianStimuli, Reservoir, optimize, unfold
from greenfold.optimizers.branch_and_bound import Directions
from greenfold.optimizers.linear import LinearProblem, problem_under_noise

ANGLES = np.linspace(0, 2 * np.pi, 721)
CIRCLE = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])


def tiny(n, n_steps, eta, seed, n_channels=1, strength=1.0) -> LinearProblem:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((n, n))
    network = Reservoir(weights, 1.0, allow_unstable=True)
    stimuli = GaussianStimuli.random(
        n_steps, n_channels=n_channels, strength=strength, rng=seed
    )
    noise = {"state": np.diag(rng.uniform(0, 1, n))}
    maps = unfold(network, n_steps=n_steps, dt=0.5).maps
    return problem_under_noise(maps, stimuli, eta, noise)


@pytest.mark.parametrize(
    ("n", "n_channels", "eta"), [(2, 1, 3.0), (2, 3, 50.0), (3, 1, 0.2), (3, 2, 1e3)]
)
def test_the_bound_of_a_cell_holds_inside_and_closes_with_its_square(n, n_channels, eta):
    problem = tiny(n, 4, eta, 1, n_channels)
    directions = Directions.of(problem)
    assert directions is not None
    rng = np.random.default_rng(2)
    distances = []
    for width in (0.3, 0.03):
        centre = rng.standard_normal((20, 1, n))
        centre /= np.linalg.norm(centre, axis=2, keepdims=True)
        corners = centre + width * rng.standard_normal((20, n, n))
        corners /= np.linalg.norm(corners, axis=2, keepdims=True)
        middle = corners.sum(1)
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        bounds = directions.bounds(middle, corners)
        inside = np.einsum("ps,ksi->pki", rng.dirichlet(np.ones(n), 200), corners)
        inside /= np.linalg.norm(inside, axis=2, keepdims=True)
        values, _ = directions.values(inside.reshape(-1, n))
        best = values.reshape(200, 20).max(0)
        assert (bounds >= best - 1e-12 * np.abs(best)).all()
        size = eta * np.abs(directions.Q).max() + np.abs(directions.B).max()
        distances.append(np.median((bounds - best) / size))
    # The widths differ by ten; sampled points come only so close to the corners.
    assert distances[1] < distances[0] / 8


def test_values_are_those_of_the_best_partner():
    problem = tiny(3, 4, 7.0, 3, n_channels=2)
    directions = Directions.of(problem)
    assert directions is not None
    rng = np.random.default_rng(0)
    v = rng.standard_normal((5, 3))
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    values, u = directions.values(v)
    for one, flat, value in zip(v, u, values, strict=True):
        assert problem.best_input(one)[1].value == pytest.approx(value, rel=1e-9)
        assert problem.margin(flat.reshape(3, 2), one).value == pytest.approx(value)


def test_few_driven_inputs_are_cut_instead_of_many_outputs():
    network = unfold(Reservoir.random(12, rng=0), n_steps=5, dt=0.5)
    stimuli = GaussianStimuli.random(5, strength=0.1, rng=1)
    device = Device(inputs=[2, 7], state_noise=0.4)
    best = optimize(network, stimuli, 300.0, device=device)
    assert best.status == "certified"
    bound = best.upper_bound
    assert bound is not None
    rng = np.random.default_rng(1)
    for angle in rng.uniform(0, np.pi, 50):
        u = np.zeros(12)
        u[[2, 7]] = np.cos(angle), np.sin(angle)
        noise = Device(state_noise=0.4)
        found = optimize(network, stimuli, 300.0, device=noise, u=u)
        assert found.soft_margin <= bound + 1e-9 * abs(bound)


@pytest.mark.parametrize("one", ["inputs", "outputs"])
def test_one_value_leaves_no_gap_however_strong_the_amplification(one):
    """Squares of kernels of 1e8 hide the readout that cancels them."""
    weights = 40 * np.random.default_rng(5).standard_normal((3, 3))
    network = unfold(Reservoir(weights, 1.0, allow_unstable=True), n_steps=6, dt=0.05)
    stimuli = GaussianStimuli(np.zeros(6), np.eye(6))
    device = Device(inputs=[0]) if one == "inputs" else Device(outputs=[0])
    best = optimize(network, stimuli, 1e5, device=device)
    assert best.status == "certified"
    G = network.greens1()
    K = G[:, :, 0] if one == "inputs" else G[:, 0]
    sizes = np.linalg.svd(K, compute_uv=False)
    # Singular values are precise to the rounding of the largest one.
    truth, known = -1e5 / 2 * sizes[-1] ** 2, 1e-14 * sizes[0] / sizes[-1]
    assert known < 0.01
    assert best.soft_margin == pytest.approx(truth, rel=2 * known)


@pytest.mark.parametrize("n_inputs", [1, 2])
@pytest.mark.parametrize("strength", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("eta", [1e-6, 4.5, 1e3, 1e6])
def test_two_neurons_are_always_certified(eta, strength, n_inputs):
    """With noise and few inputs, gaps of 0.7 to 1 were left: u cannot be short."""
    weights = np.array([[0.7, 1.0], [0.0, 0.7]])  # defective
    network = unfold(Reservoir(weights, 1.0), n_steps=5, dt=0.5)
    stimuli = GaussianStimuli.random(5, strength=strength, rng=3)
    device = Device(inputs=range(n_inputs), input_noise=0.3, state_noise=[0.1, 0.5])
    best = optimize(network, stimuli, eta, device=device)
    assert best.status == "certified"
    bound = best.upper_bound
    assert bound is not None
    psi = stimuli.psi + 0.3**2 * np.eye(5)
    U = CIRCLE if n_inputs == 2 else np.array([[1.0, 0.0]])
    a = np.einsum("noi,ui,vo->uvn", network.greens1(), U, CIRCLE)
    noise = (CIRCLE**2) @ [0.1**2, 0.5**2]
    grid = a @ stimuli.mu - eta / 2 * (np.einsum("uvn,nm,uvm->uv", a, psi, a) + noise)
    size = max(abs(best.soft_margin), abs(bound))
    assert bound - best.soft_margin <= 1e-4 * size
    assert grid.max() <= bound + 1e-9 * size
    assert best.soft_margin >= grid.max() - 1e-9 * size


def test_no_cells_are_cut_without_nodes():
    network = unfold(Reservoir.random(2, rng=0), n_steps=3, dt=0.5)
    stimuli = GaussianStimuli.random(3, strength=0.1, rng=3)
    noise = Device(state_noise=[0.1, 0.9], input_noise=0.5)
    given = network, stimuli, 1e4
    left = optimize(*given, Convex(max_nodes=0), device=noise)
    assert left.status == "bounded"
    assert optimize(*given, device=noise).status == "certified"
