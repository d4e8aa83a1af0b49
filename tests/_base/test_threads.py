import os
import subprocess
import sys
import threading
from typing import NoReturn

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from greenfold import (
    Dynamics,
    Gain,
    MeasuredResponse,
    PooledReservoirClassifier,
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    choose_eta,
    optimize,
    simulate,
    unfold,
)
from greenfold._base import threads as _threads
from greenfold.datasets import synthetic_heartbeats
from greenfold.unfolding.kernels import KnownByMaps


def blas() -> list[int]:
    """Threads of every BLAS that is loaded: those of NumPy and of SciPy."""
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads(monkeypatch: pytest.MonkeyPatch):
    """A user who has said nothing, on a machine with two cores."""
    monkeypatch.setattr(_threads, "_told", False)
    with threadpool_limits(2, user_api="blas"):
        if set(blas()) != {2}:
            pytest.skip("this BLAS cannot be told how many threads to use")
        yield
        # Every test of this file: what was found is what is left.
        assert set(blas()) == {2}


class Spy(KnownByMaps):
    """A system that notes the threads while it is asked."""

    def __init__(self, n: int) -> None:
        self.n_steps, self.n_inputs, self.n_outputs = 3, n, n
        self.seen: set[int] = set()

    def _note(self, *_: object, **__: object) -> NoReturn:
        self.seen.update(blas())
        raise KeyError("seen enough")

    input_response = readout_response = response_sum = states = _carry_back = _note


@pytest.fixture
def stimuli() -> SampleStimuli:
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], 10)
    return SampleStimuli(rng.standard_normal((20, 3)) + y[:, None], y)


@pytest.mark.parametrize(
    ("n", "threads"), [(10, 1), (_threads.LARGE - 1, 1), (_threads.LARGE, 2)]
)
def test_a_small_system_is_solved_on_one_thread_and_a_large_one_on_all(n, threads, stimuli):
    system = Spy(n)
    with pytest.raises(KeyError, match="seen enough"):
        optimize(system, stimuli)
    assert system.seen == {threads}


def test_the_system_may_be_named(stimuli):
    system = Spy(_threads.LARGE)
    with pytest.raises(KeyError, match="seen enough"):
        optimize(system=system, stimuli=stimuli)
    assert system.seen == {2}


def test_what_the_user_has_said_is_the_last_word(monkeypatch, stimuli):
    monkeypatch.setattr(_threads, "_told", True)
    system = Spy(10)
    with pytest.raises(KeyError, match="seen enough"):
        optimize(system, stimuli)
    assert system.seen == {2}


@pytest.mark.parametrize("name", [None, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"])
def test_users_say_it_by_a_variable(name):
    env = {k: v for k, v in os.environ.items() if k not in _threads._VARIABLES}
    env |= {} if name is None else {name: "2"}
    code = "from greenfold._base import threads; print(threads._told)"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
    assert done.stdout.split() == [b"False" if name is None else b"True"]


def noted(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """Number of threads whenever a call, or a nested one, has entered."""
    found: list[set[int]] = []
    enter = _threads._OneBlasThread.__enter__

    def and_note(self) -> None:
        enter(self)
        found.append(set(blas()))

    monkeypatch.setattr(_threads._OneBlasThread, "__enter__", and_note)
    return found


NETWORK = Reservoir.random(10, rng=0)
X, Y = synthetic_heartbeats(20, rng=0)
MANY = np.tile(X, (5, 1))
FITTED = ReservoirClassifier(n_neurons=10, eta=10.0, random_state=0)
POOLED = PooledReservoirClassifier(
    n_scales=2, n_readouts=16, engine="array", random_state=0
)


@pytest.fixture(autouse=True, scope="module")
def fitted() -> None:
    FITTED.fit(X, Y)
    POOLED.fit(X, Y)


def recording():
    rng = np.random.default_rng(0)
    drive = rng.standard_normal((600, 2))
    return MeasuredResponse.fit(drive, drive @ rng.standard_normal((2, 3)), n_steps=3)


DOORS = {
    "unfold": lambda: unfold(NETWORK, n_steps=140, dt=0.1),
    "states": lambda: unfold(NETWORK, n_steps=140, dt=0.1).states(X, np.ones(10)),
    "simulate": lambda: simulate(NETWORK, X[:2, :5], np.ones(10), 0.1),
    "dynamics": lambda: Dynamics(
        Reservoir.random(10, gain=Gain.tanh(), rng=0), n_steps=5, dt=0.1
    ).states(X[:2, :5], np.ones(10)),
    "choose_eta": lambda: choose_eta(unfold(NETWORK, n_steps=140, dt=0.1), X, Y, etas=[1]),
    "measured": recording,
    "fit": lambda: ReservoirClassifier(n_neurons=10, eta=10.0, random_state=0).fit(X, Y),
    "predict": lambda: FITTED.predict(MANY),
    "predict_proba": lambda: FITTED.predict_proba(MANY),
    "transform": lambda: FITTED.transform(MANY),
    "partial_fit": lambda: ReservoirClassifier(n_neurons=10, random_state=0).partial_fit(
        X, Y, classes=np.unique(Y)
    ),
    "pooled fit": lambda: POOLED.fit(X, Y),
    "pooled predict": lambda: POOLED.predict(X),
}


@pytest.mark.parametrize("door", DOORS)
def test_what_users_call_goes_through_the_limit(door, monkeypatch):
    found = noted(monkeypatch)
    DOORS[door]()
    assert found
    assert all(seen == {1} for seen in found)


def test_a_few_series_are_read_without_delay(monkeypatch):
    """Changing the number of threads takes a tenth of the time of this."""
    found = noted(monkeypatch)
    FITTED.predict(X)
    assert not found


def test_of_many_series_only_the_gram_matrix_has_all_threads(monkeypatch):
    monkeypatch.setattr(_threads, "LARGE", 20)
    products, features = [], []
    from greenfold.estimators.pooled import estimators as head
    from greenfold.estimators.pooled import feature_map

    gram_of, pool = head.gram_of, feature_map.pool
    monkeypatch.setattr(
        head, "gram_of", lambda block: (products.append(set(blas())), gram_of(block))[1]
    )
    monkeypatch.setattr(
        feature_map, "pool", lambda *a: (features.append(set(blas())), pool(*a))[1]
    )
    POOLED.fit(X, Y)
    assert products == [{2}, {2}]
    assert all(seen == {1} for seen in features)
    assert features


def test_calls_inside_calls_change_nothing():
    with _threads.few_threads():
        for _ in range(2):
            with _threads.few_threads(), _threads.few_threads(_threads.LARGE):
                assert set(blas()) == {1}
            assert set(blas()) == {1}
    assert set(blas()) == {2}


def test_an_exception_gives_the_threads_back():
    with pytest.raises(ValueError, match="`eta`"):
        optimize(unfold(NETWORK, n_steps=140, dt=0.1), SampleStimuli(X, Y), eta=-1.0)
    assert set(blas()) == {2}


@pytest.mark.parametrize("leaves_first", [0, 1])
def test_threads_of_python_may_leave_in_any_order(leaves_first):
    """Two calls overlap, and the last to leave restores what the first found."""
    entered = [threading.Event(), threading.Event()]
    leave = [threading.Event(), threading.Event()]
    left = [threading.Event(), threading.Event()]

    def call(i: int) -> None:
        with _threads.few_threads():
            entered[i].set()
            assert leave[i].wait(30)
        left[i].set()

    calls = [threading.Thread(target=call, args=(i,)) for i in range(2)]
    for i, one in enumerate(calls):
        one.start()
        assert entered[i].wait(30)
        assert set(blas()) == {1}
    for i in (leaves_first, 1 - leaves_first):
        leave[i].set()
        assert left[i].wait(30)
        calls[i].join(30)
        assert set(blas()) == ({1} if i == leaves_first else {2})


def test_many_threads_of_python_leave_what_they_found():
    """Ten thousand overlapping calls: a lost count would leave one thread, or two."""
    wrong: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(1000):
                with _threads.few_threads(), _threads.few_threads():
                    pass
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(10)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert not wrong
    assert set(blas()) == {2}


class Library:
    """What threadpoolctl knows of a BLAS, whose threads are those of one thread or all."""

    user_api = "blas"

    def __init__(self, layer: str) -> None:
        self.threading_layer = layer
        self._of: dict[int, int] = {}

    def _key(self) -> int:
        return threading.get_ident() if self.threading_layer == "openmp" else 0

    def get_num_threads(self) -> int:
        return self._of.get(self._key(), 2)

    def set_num_threads(self, n: int) -> None:
        self._of[self._key()] = n


@pytest.fixture
def loaded():
    """Libraries that threadpoolctl finds instead of the true ones."""
    found: list[Library] = []

    class Controller:
        lib_controllers = found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("threadpoolctl.ThreadpoolController", Controller)
        yield found


def test_a_library_that_is_loaded_inside_a_call_is_limited_by_the_next(loaded, monkeypatch):
    """Like SciPy's BLAS when a command started before SciPy was imported."""
    one, late = Library("pthreads"), Library("pthreads")
    loaded.append(one)
    limit = _threads._OneBlasThread()
    with limit:
        loaded.append(late)
        monkeypatch.setitem(sys.modules, "a_new_module", threading)
        assert late.get_num_threads() == 2
        with limit:
            assert late.get_num_threads() == 1
        assert late.get_num_threads() == 1
    assert [one.get_num_threads(), late.get_num_threads()] == [2, 2]


def test_each_thread_of_python_has_its_own_limit_where_blas_has(loaded):
    library = Library("openmp")
    loaded.append(library)
    limit = _threads._OneBlasThread()
    seen = []

    def call() -> None:
        seen.append(library.get_num_threads())
        with limit:
            seen.append(library.get_num_threads())
        seen.append(library.get_num_threads())

    with limit:
        other = threading.Thread(target=call)
        other.start()
        other.join(30)
        assert library.get_num_threads() == 1
    assert seen == [2, 1, 2]
    assert library.get_num_threads() == 2


def test_jobs_have_one_thread_whatever_the_user_has_said(monkeypatch):
    from greenfold.apps.runner import perform

    monkeypatch.setattr(_threads, "_told", True)
    found = perform(lambda *_: str(set(blas())), {}, {})
    assert found == {"text": "{1}"}
