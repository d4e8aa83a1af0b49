"""Running a figure's work: checkpoints, Ctrl-C, processes."""

import signal
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from greenfold.apps.paper import fig2
from greenfold.apps.paper.figures import FigureRun, chunks


@dataclass(frozen=True)
class Toy:
    factor: int = 2


def test_goes_on_where_it_was_interrupted_and_leaves_nothing_behind(tmp_path):
    calls = []

    def work(item):
        calls.append(item)
        if item == 2 and len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return [2.0 * item]

    run = partial(FigureRun, "toy", Toy(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run().map("units", work, range(4))
    assert run().map("units", work, range(4)) == [[0.0], [2.0], [4.0], [6.0]]
    assert calls == [0, 1, 2, 2, 3]
    run().forget()
    assert not list(tmp_path.iterdir())


def test_another_parameter_is_another_run(tmp_path):
    assert (
        FigureRun("toy", Toy(2), tmp_path).folder
        != FigureRun("toy", Toy(3), tmp_path).folder
    )


@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.contract)]
)
def test_processes_change_nothing(tmp_path, monkeypatch, backend):
    """Neither do threads, which replace processes here to save time."""
    if backend == "threading":
        import joblib

        configured = partial(joblib.parallel_config, backend)
        monkeypatch.setattr(joblib, "parallel_config", lambda *_, **__: configured())
        monkeypatch.setattr(signal, "signal", lambda *_: None)  # which threads may not set
    p = replace(fig2.QUICK, n_neurons=20, n_random=4, n_stimuli=2, per_step=1)
    work, items = partial(fig2.random_part, p), chunks(4, 2)
    one, two = (
        FigureRun(f"jobs{n}", p, tmp_path, n).map("units", work, items) for n in (1, 2)
    )
    np.testing.assert_allclose(one[1]["total"], two[1]["total"], rtol=1e-12)
