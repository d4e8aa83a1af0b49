"""Printed objects are short, and notebooks show a table."""

from __future__ import annotations

import html.parser

import numpy as np
import pytest

from greenfold import (
    Gain,
    GaussianStimuli,
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    choose_eta,
    choose_tau,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats
from greenfold.stimuli import Series
from greenfold.stimuli.frame import frames_of
from greenfold.validity import check_by_simulation


@pytest.fixture(scope="module")
def objects() -> dict:
    X, y = synthetic_heartbeats(40, n_steps=12, rng=0)
    names = np.array(["<ill>", "well"])[(y > 0).astype(int)]
    reservoir = Reservoir.random(6, gain=Gain.quadratic(0.01), rng=0)
    unfolding = unfold(reservoir, n_steps=12, dt=0.5, order=1)
    linear = unfold(reservoir, n_steps=12, dt=0.5)
    stimuli = SampleStimuli(X, names)
    solved = optimize(linear, stimuli)
    (frame,) = frames_of(
        Series(X[:, None]), (y > 0).astype(int), np.ones(40), np.ones(2), [1], 1.0
    )
    return {
        "reservoir": reservoir,
        "unfolding": unfolding,
        "unfolding read inside": linear.with_readout(1.3),
        "unfolding read over time": linear.with_readout(np.ones(12)),
        "samples": stimuli,
        "stream": SampleStimuli.from_batches([(X, y)]),
        "gaussian": GaussianStimuli.random(12, rng=0),
        "projections": solved,
        "kernel": linear.kernels(solved.u, solved.v),
        "eta": choose_eta(linear, X, y, n_folds=3, rng=0),
        "tau": choose_tau(reservoir, stimuli, 0.5, n_times=3, n_projections=2, rng=0),
        "frame": frame,
        "head": ReservoirClassifier(n_neurons=5, eta=1.0).fit(X, y).heads_[0],
    }


NAMES = (
    "reservoir",
    "unfolding",
    "unfolding read inside",
    "unfolding read over time",
    "samples",
    "stream",
    "gaussian",
    "projections",
    "kernel",
    "eta",
    "tau",
    "frame",
    "head",
)


@pytest.mark.parametrize("name", NAMES)
def test_objects_are_printed_in_a_line(objects, name):
    text = repr(objects[name])
    assert text.startswith(f"{type(objects[name]).__name__}(")
    assert "array(" not in text
    assert "np." not in text
    assert "\n" not in text
    assert len(text) < 250


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_get_a_table(objects, name):
    class Reader(html.parser.HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.cells = [], []

        def handle_starttag(self, tag, attrs):
            self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def handle_data(self, data):
            self.cells.append(data)

    reader = Reader()
    reader.feed(objects[name]._repr_html_())
    assert not reader.open
    assert reader.cells[0] == type(objects[name]).__name__
    assert len(reader.cells) >= 5


def test_what_is_printed_tells_the_object(objects):
    assert repr(objects["unfolding"]) == (
        "Unfolding(reservoir=Reservoir(6 neurons, tau=0.25, gain=quadratic(alpha=0.01)), "
        "steps=12, dt=0.5, order=1, read=at 6)"
    )
    assert "read=at 1.3" in repr(objects["unfolding read inside"])
    assert "weighted over 12 steps" in repr(objects["unfolding read over time"])
    assert "classes=['<ill>', 'well'], series=40" in repr(objects["samples"])
    assert "series=from a stream" in repr(objects["stream"])
    assert "&lt;ill&gt;" in objects["samples"]._repr_html_()


def test_simulation_takes_any_two_labels(objects, rng):
    unfolding = objects["unfolding"]
    X = 0.1 * rng.standard_normal((6, 12))
    signs = np.array([-1, 1, 1, -1, 1, -1])
    u, v = rng.standard_normal(6), rng.standard_normal(6)
    wanted = check_by_simulation(unfolding, X, signs, u, v)
    for labels in ((signs > 0).astype(int), np.where(signs > 0, "b", "a"), signs > 0):
        assert check_by_simulation(unfolding, X, labels, u, v) == wanted
    with pytest.raises(ValueError, match="`labels` must hold exactly two classes; got 3"):
        check_by_simulation(unfolding, X, [0, 1, 2, 0, 1, 2], u, v)
