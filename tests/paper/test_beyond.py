"""Beyond the paper: certificates and readout noise."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from greenfold.paper import beyond

from .conftest import compute, full


def test_beyond(tmp_path, heartbeats):
    p = replace(
        beyond.QUICK,
        n_certified=1,
        strengths=(1.0,),
        sizes=(100,),
        noises=(0.0, 0.1),
        etas=(10.0, 100.0),
        n_networks=1,
    )
    numbers = compute(beyond, p, tmp_path, heartbeats)
    assert numbers["certificates"][0]["gap"] <= 1e-3
    assert all(row["alternation_below_bound"] >= -1e-9 for row in numbers["certificates"])
    (row,) = numbers["noise"]
    gain = np.array(row["optimised"]) - np.mean(row["random"], axis=0)
    # Without noise η makes up for a random u; with noise nothing does.
    assert abs(gain[0]) < 1
    assert gain[1] > 2


@pytest.mark.slow
def test_beyond_in_full(tmp_path, data_dir):
    p, numbers = beyond.FULL, full(beyond, tmp_path, data_dir)
    heart = [row for row in numbers["certificates"] if row["strength"] == 0]
    assert max(row["gap"] for row in heart) <= 1e-3
    *_, gain = beyond._gain(numbers["noise"], 100)
    by_noise = dict(zip(p.noises, gain.mean(0), strict=True))
    assert abs(by_noise[0.0]) < 0.5
    assert by_noise[0.1] > 3
