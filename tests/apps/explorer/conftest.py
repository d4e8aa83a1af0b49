"""A small page with two data sets: one of two classes, one of three and two channels."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold import Reservoir, unfold
from greenfold.apps import explorer as page
from greenfold.apps.explorer import SliderGrid, Source, solve_grid
from greenfold.datasets import synthetic_heartbeats

N_STEPS, N_NEURONS = 24, 20


def prepare(*series, n_steps=None, **more):
    return page.prepare(Source(*series, **more), n_steps)


def write_explorer(path, unfolding, sets, **shown):
    return page.write_page(path, page.render(unfolding, sets, **shown))


@pytest.fixture(scope="session")
def unfolding():
    return unfold(Reservoir.random(N_NEURONS, rng=0), n_steps=N_STEPS, dt=10 / N_STEPS)


@pytest.fixture(scope="session")
def beats():
    # Unequal classes, so that the plane depends on their shares.
    X, y = synthetic_heartbeats(160, n_steps=N_STEPS, ectopic_fraction=0.3, rng=0)
    names = np.where(y > 0, "normal", "</script><b>ectopic</b>")
    weights = {"normal": 1.0, "</script><b>ectopic</b>": 1.5}
    return prepare(
        "<b>Beats</b>", X[:90], names[:90], X[90:], names[90:], class_weights=weights
    )


@pytest.fixture(scope="session")
def three():
    rng = np.random.default_rng(5)
    y = np.arange(90) % 3
    X = rng.standard_normal((90, 2, N_STEPS))
    X += np.sin(np.arange(N_STEPS) * (1 + y[:, None, None]) / 4)
    return prepare("Three", X, y)


@pytest.fixture(scope="session")
def sets(unfolding, beats, three):
    grid = SliderGrid((1.0, 3.0, 10.0), (9, N_STEPS))
    return [
        (beats, [solve_grid(unfolding, beats, (0, 1), grid)]),
        (three, [solve_grid(unfolding, three, (0, 2), grid)]),
    ]
