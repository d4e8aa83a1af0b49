"""Running a figure's work: checkpoints, Ctrl-C, processes."""

import signal
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from greenfold.apps.paper import fig2
from greenfold.apps.paper import setting as _setting
from greenfold.apps.paper.run import Run


@dataclass(frozen=True)
class Toy:
    factor: int = 2


def double(p, item):
    return {"value": np.array([p.factor * item, np.nan])}


def test_goes_on_where_it_was_interrupted(tmp_path):
    calls = []

    def work(item):
        calls.append(item)
        if item == 2 and len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return double(Toy(), item)

    run = partial(Run, "toy", Toy(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run().map("units", work, range(4))
    found = run().map("units", work, range(4))
    assert calls == [0, 1, 2, 2, 3]
    assert found == [{"value": [2.0 * i, None]} for i in range(4)]
    run().forget()
    assert not list(tmp_path.iterdir())


def test_an_interrupt_that_the_work_swallows_is_felt(tmp_path):
    def work(item):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return "the best so far"

    run = Run("toy", Toy(), tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run.map("units", work, range(2))
    assert not list(run.folder.iterdir())


def test_a_damaged_checkpoint_is_computed_again(tmp_path):
    run = Run("toy", Toy(), tmp_path)
    wanted = run.map("units", partial(double, Toy()), range(2))
    (run.folder / "units-0001.json").write_text('{"resu', encoding="utf-8")
    assert run.map("units", partial(double, Toy()), range(2)) == wanted


def test_another_parameter_is_another_run(tmp_path):
    assert Run("toy", Toy(2), tmp_path).folder != Run("toy", Toy(3), tmp_path).folder


@pytest.mark.parametrize(
    "backend", ["threading", pytest.param("loky", marks=pytest.mark.contract)]
)
def test_processes_change_nothing(tmp_path, monkeypatch, backend):
    """Nor do threads, which stand in for processes where a second counts."""
    if backend == "threading":
        import joblib

        configured = partial(joblib.parallel_config, backend)
        monkeypatch.setattr(joblib, "parallel_config", lambda *_, **__: configured())
        monkeypatch.setattr(signal, "signal", lambda *_: None)  # which threads may not set
    p = replace(fig2.QUICK, n_random=4, n_stimuli=3)
    work = partial(fig2.random_part, p)
    items = _setting.chunks(4, 2)
    one, two = (Run(f"jobs{n}", p, tmp_path, n).map("units", work, items) for n in (1, 2))
    np.testing.assert_allclose(one[1]["total"], two[1]["total"], rtol=1e-12)
