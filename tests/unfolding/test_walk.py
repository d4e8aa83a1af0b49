"""Bounded memory: the plan, and the memory actually allocated."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenfold._base import arrays as _arrays
from greenfold.unfolding.walk import Room, Walk

from ..dynamics.problems import problem

MIB = 2**20


@given(
    n_cases=st.integers(1, 10**5),
    n_places=st.integers(1, 2000),
    n_slopes=st.sampled_from([0, 1, 4, 7.5]),
    n_neurons=st.integers(1, 3000),
    budget=st.floats(1e3, 1e11),
)
@settings(max_examples=200, deadline=None)
def test_plans_keep_to_the_budget(n_cases, n_places, n_slopes, n_neurons, budget):
    size, working = 8.0 * n_neurons, 10
    room = Room(n_cases, n_places, n_slopes, working, size, budget, min(256, n_cases))
    rows, length = room.tape_for_batches()
    assert 1 <= rows <= n_cases
    assert 1 <= length <= n_places
    held = np.ceil(n_places / length) + n_slopes * length + working
    # A single case is carried whatever it needs.
    assert rows == 1 or rows * held * size <= budget
    length = room.tape_for_all()
    if length:
        kept = np.ceil(n_places / length) + n_slopes * length
        assert (n_cases * kept + room.rows * working) * size <= budget


@given(n_cases=st.integers(1, 1000), rows=st.integers(1, 300))
@settings(max_examples=50, deadline=None)
def test_batches_cover_every_case_once_and_evenly(n_cases, rows):
    parts = list(_arrays.batches(n_cases, 1, rows))
    covered = np.concatenate([np.arange(n_cases)[part] for part in parts])
    assert np.array_equal(covered, np.arange(n_cases))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) == sizes[0] <= rows
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("budget", [2 * MIB, 8 * MIB])
@pytest.mark.parametrize("call", ["states", "trajectories", "pullback", "kept"])
def test_what_is_allocated(call, budget, rng, monkeypatch):
    """300 series of 60 steps, whose whole tape takes 22 MiB."""
    monkeypatch.setattr(_arrays, "BATCH_BYTES", budget)
    case = problem(n=40, n_cases=300, n_steps=60)
    arguments, cotangent = (case.make(1), case.X, case.u), rng.standard_normal((300, 40))

    def kept():
        walk = Walk(*arguments, keep=True)
        return walk.states, walk.pullback(cotangent)

    work = {
        "states": lambda: Walk(*arguments).states,
        "trajectories": lambda: Walk(*arguments).trajectories(),
        "pullback": lambda: Walk(*arguments).pullback(cotangent),
        "kept": kept,
    }[call]
    work()  # caches are filled
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Twice the result (parts and their concatenation), and the stimuli as they are used.
    result = 300 * 40 * 8 * (60 if call == "trajectories" else 1)
    assert peak <= budget + 2 * result + 3 * case.X.nbytes
