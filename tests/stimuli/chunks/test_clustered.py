"""A real cluster that loses a worker during an ascent, and is closed afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Ascent, Dynamics, Gain, SampleStimuli, optimize, unfold
from greenfold.stimuli.state_moments import StateMoments

from ...chunked import from_array
from ...clusters import Cluster
from ...conftest import small

pytestmark = [pytest.mark.needs("distributed"), pytest.mark.contract]


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.fixture
def series():
    rng = np.random.default_rng(5)
    y = np.arange(60) % 2
    wave = np.sin(np.arange(8) / 2)
    return rng.standard_normal((60, 8)) + np.where(y[:, None], wave, -wave), y


def test_a_worker_killed_during_the_ascent_changes_nothing(cluster, series, monkeypatch):
    from distributed import Client

    X, y = series
    order_1 = unfold(small(Gain.quadratic(0.05), n=6), n_steps=8, dt=0.2, order=1)
    dynamics = Dynamics(small(Gain.tanh(), n=6), n_steps=8, dt=0.2, tol=1e-4)
    original, calls = StateMoments.pull, []

    def pull(self, v, eta):
        calls.append(None)
        if len(calls) == 3:
            cluster.kill_worker()
        return original(self, v, eta)

    with Client(cluster.address, set_as_default=False) as client:
        stimuli = SampleStimuli.from_dask(from_array(X, chunks=(17, -1)), y, client=client)
        once = Ascent(n_starts=1)
        quiet = optimize(order_1, stimuli, method=once)
        monkeypatch.setattr(StateMoments, "pull", pull)
        found = optimize(order_1, stimuli, method=once)
        assert len(calls) > 3
        # Added up in the same order, whoever worked.
        assert np.array_equal(found.u, quiet.u)
        assert found.soft_margin == quiet.soft_margin
        whole = SampleStimuli(X, y)
        alone = optimize(order_1, whole, method=once)
        assert found.u == pytest.approx(alone.u, abs=1e-8)
        # With one worker fewer, or a new one.
        u = np.ones(6) / 6**0.5
        for a, b in zip(
            stimuli.moments(dynamics, u), whole.moments(dynamics, u), strict=True
        ):
            assert a == pytest.approx(b, abs=1e-12)
    with pytest.raises(ConnectionError, match="`client` is closed: connect a new"):
        stimuli.moments(dynamics, u)
    with pytest.raises(ConnectionError, match="`client` is closed"):
        SampleStimuli.from_dask(from_array(X, chunks=(17, -1)), y, client=client)
