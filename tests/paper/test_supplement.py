"""The supplement: η, α and g on ECG5000, reduced and as in the paper."""

from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from greenfold.paper import supplement

from .conftest import compute, full


def test_supplement(tmp_path, heartbeats):
    p = replace(
        supplement.QUICK, n_networks=1, n_random=2, etas=(1.0, 100.0), alphas=(0.05,)
    )
    numbers = compute(supplement, p, tmp_path, heartbeats)
    low, high = numbers["eta"][0]
    for kind in ("random", "optimised"):
        assert high[kind]["spread"] < low[kind]["spread"]
        assert high[kind]["accuracy"] > low[kind]["accuracy"]
    assert numbers["alpha"][0]["optimised"] > 0
    assert numbers["alpha"][0]["trustworthy"]
    first, last = numbers["g"]
    assert last["end"]["optimised"] > first["end"]["optimised"]


@pytest.mark.slow
def test_supplement_in_full(tmp_path, data_dir):
    assert full(supplement, tmp_path, data_dir)
