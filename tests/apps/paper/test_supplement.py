"""The supplement: η, α and g on ECG5000, reduced and as in the paper."""

from dataclasses import replace

import numpy as np
import pytest

from greenfold.apps.paper import supplement

from .conftest import compute, full


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


@pytest.mark.slow
def test_supplement_in_full(tmp_path, data_dir):
    _check_supplement(full(supplement, tmp_path, data_dir), supplement.FULL)
