"""The choices that the paper leaves open, reduced and as recorded."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold.apps.paper import choices
from greenfold.math.margins import soft_margin, state_moments, svm_readout
from greenfold.math.sphere import maximize_on_sphere

from .conftest import assert_as_recorded, compute, record, some_of


@pytest.mark.parametrize("eta", [1.0, 10.0, 300.0])
def test_readout_of_the_full_soft_margin_is_a_maximum_on_the_sphere(eta, rng):
    signs = np.repeat([1, -1], 40)
    states = rng.standard_normal((80, 5)) + 0.8 * signs[:, None] * np.eye(5)[0]
    M, Sigma = state_moments(states, signs)
    starts = (maximize_on_sphere(M, eta * Sigma).v, svm_readout(states, signs))
    v = choices.full_readout(states, signs, starts, eta)
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-12)
    found = soft_margin(states, signs, v, eta)
    # Central differences along the sphere: their error is of second order in the step.
    basis = np.linalg.svd(v[None])[2][1:]
    for one in basis:
        both = [soft_margin(states, signs, v + h * one, eta) for h in (1e-5, -1e-5)]
        assert abs(both[0] - both[1]) / 2e-5 < 1e-5
    others = rng.standard_normal((2000, 5))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    assert found >= max(soft_margin(states, signs, w, eta) for w in others)
    # At a large η it is the machine's readout, in the limit.
    if eta == 300:
        assert v @ starts[1] > 0.9


def _check_choices(numbers, p):
    for one in numbers["linear_scan"]:
        assert one["optimised"] >= one["random"]
        assert all(0 < share < 1 for share in one["fast"])
    for one in numbers["readouts"]:
        assert [row["eta"] for row in one["over"]] == list(p.etas)
        margins = [row["equation 5"]["margin"] for row in one["over"]]
        # The full soft margin approaches the margin, whose maximum is the machine's.
        assert margins[-1] == max(margins)
        if one["machine"]["margin"] > 0:
            assert margins[-1] <= one["machine"]["margin"] * (1 + 1e-6)
    for one in numbers["taus"]:
        assert one["best"] in p.taus


def test_choices(tmp_path, heartbeats):
    p = replace(choices.QUICK, n_neurons=25, etas=(1, 10), n_draws=50, n_stimuli=4)
    p = replace(p, dts=(1.0,), taus=(0.1667, 0.25), n_tau_networks=1, n_scanned=1)
    _check_choices(compute(choices, p, tmp_path, heartbeats), p)


def test_choices_as_recorded():
    numbers, p = record("choices"), choices.FULL
    _check_choices(numbers, p)
    # The paper's own τ, or the next on the grid.
    # With heartbeats, only the full soft margin approaches the machine's readout.
    hearts = [one["over"] for one in numbers["readouts"] if one["kind"] == "ECG5000"]
    assert min(over[-1]["cosine of 5 and the machine"] for over in hearts) > 0.99
    assert max(row["cosine of 6 and the machine"] for over in hearts for row in over) < 0.8
    # What the page says of Δt: ratios above one at each.
    found = choices.scanned(numbers, p)
    assert (found["solved / random"].mean(0) > 1.2).all()
    assert (found["non-linear / linear"].mean(0) > 2).all()
    near = [abs(np.log(one["best"] / 0.25)) < np.log(1.6) for one in numbers["taus"]]
    assert len(near) == 20
    assert sum(near) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(range(choices.FULL.n_tau_networks), 0, 12))
def test_one_tau_at_full_size(seed):
    assert_as_recorded(choices.taus_of(choices.FULL, seed), record("choices")["taus"][seed])


ITEMS = [(k, n) for k in ("ECG5000", "artificial") for n in range(choices.FULL.n_networks)]


@pytest.mark.slow
@pytest.mark.parametrize("item", some_of(ITEMS, ("ECG5000", 0), ("artificial", 2)))
def test_readouts_of_one_network_at_full_size(item, heartbeats):
    found = choices.readouts(choices.FULL, heartbeats, item)
    # L-BFGS and the machine end where their function hardly changes, which fixes v to the
    # root of that.
    pairs = ("5 and 6", "5 and the machine", "6 and the machine")
    names = ("margin", *(f"cosine of {pair}" for pair in pairs))
    apart = {name: {"abs": 1e-3} for name in names} | {"accuracy": {"abs": 0.3}}
    assert_as_recorded(found, record("choices")["readouts"][ITEMS.index(item)], apart)


@pytest.mark.parametrize("passed", [0.6, 2 / 3])
@pytest.mark.parametrize("reached", [0.93, 0.95, 0.97])
def test_tau_depends_little_on_the_two_numbers_of_the_rule(reached, passed):
    near = 0
    for one in record("choices")["taus"]:
        curves, times = np.array(one["curves"]), np.array(one["times"])
        before = [np.interp(passed * times[-1], times, row) for row in curves]
        ready = np.flatnonzero(before / curves[:, -1] >= reached)
        near += abs(np.log(choices.FULL.taus[ready[-1]] / 0.25)) < np.log(1.6)
    assert near >= 18
