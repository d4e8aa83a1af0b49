"""The supplement: η, α and g on ECG5000, reduced and as in the paper."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold.apps.paper import supplement

from .conftest import OF_A_BOUND, assert_as_recorded, compute, record, some_of


def _check_supplement(numbers, p):
    def over(name, values, *path):
        """One row per network, one column per value."""
        rows = numbers[name]
        if name == "eta":
            rows = [one for network in rows for one in network]
        for key in path:
            rows = [row[key] for row in rows]
        return np.array(rows, dtype=float).reshape(p.n_networks, len(values))

    assert over("eta", p.etas, "gap").max() <= 1e-3
    for kind in ("random", "optimised"):
        # η buys a small spread with separation; κ, a maximum, falls with it.
        assert (np.diff(over("eta", p.etas, kind, "kappa")) < 0).all()
        assert (np.diff(over("eta", p.etas, kind, "spread")) < 0).all()
        accuracy = over("eta", p.etas, kind, "accuracy")
        assert (accuracy[:, -1] > accuracy[:, 0]).all()
    solved, drawn = (over("eta", p.etas, k, "kappa") for k in ("optimised", "random"))
    assert (solved > drawn).all()
    # The gain of the non-linearity grows with it, and is trusted at the paper's α.
    gain = over("alpha", p.alphas, "optimised")
    assert (gain > 0).all()
    assert (np.diff(gain) > 0).all()
    assert over("alpha", p.alphas, "trustworthy")[:, np.array(p.alphas) <= p.alpha].all()
    # Slower networks remember more; read at the end, more than on average over time.
    end = over("g", p.gs, "end", "optimised")
    assert (np.diff(end) > 0).all()
    assert (end > over("g", p.gs, "integrated", "optimised")).all()
    assert (end > over("g", p.gs, "end", "random")).all()


def test_supplement(tmp_path, heartbeats):
    p = replace(
        supplement.QUICK, n_networks=1, n_random=2, etas=(1.0, 100.0), alphas=(0.05,)
    )
    _check_supplement(compute(supplement, p, tmp_path, heartbeats), p)


def test_supplement_as_recorded():
    _check_supplement(record("supplement"), supplement.FULL)


SEEDS = range(supplement.FULL.n_networks)
BY_ALPHA, BY_G = (
    [(seed, value) for seed in SEEDS for value in values]
    for values in (supplement.FULL.alphas, supplement.FULL.gs)
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(SEEDS, 0, 2, 4))
def test_eta_of_one_network_at_full_size(seed, heartbeats):
    found = supplement.over_eta(supplement.FULL, heartbeats, seed)
    # κ is a maximum over u and v, its two terms are not: what rounding leaves of u is the
    # root of what it leaves of κ, √1e-12.
    terms = {"separation": {"rel": 1e-6}, "spread": {"rel": 1e-6}}
    assert_as_recorded(found, record("supplement")["eta"][seed], OF_A_BOUND | terms)


@pytest.mark.slow
@pytest.mark.parametrize("item", some_of(BY_ALPHA, (0, 0.01), (2, 0.1), (4, 0.3)))
def test_one_alpha_at_full_size(item, heartbeats):
    found = supplement.over_alpha(supplement.FULL, heartbeats, item)
    assert_as_recorded(found, record("supplement")["alpha"][BY_ALPHA.index(item)])


@pytest.mark.slow
@pytest.mark.parametrize("item", some_of(BY_G, (0, 0.1), (2, 0.8), (4, 0.95)))
def test_one_g_at_full_size(item, heartbeats):
    found = supplement.over_g(supplement.FULL, heartbeats, item)
    assert_as_recorded(found, record("supplement")["g"][BY_G.index(item)])
