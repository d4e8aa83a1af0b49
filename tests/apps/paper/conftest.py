"""Numbers of a figure, reduced or as in the paper."""

import pytest

from greenfold._base.files import plain
from greenfold.datasets import ecg5000_paper

# What draws is imported where it is needed: the tests are skipped without matplotlib.


@pytest.fixture(scope="session")
def heartbeats(data_dir):
    return ecg5000_paper(data_dir)


def compute(module, parameters, folder, heartbeats=None, data_dir=None):
    """Numbers of a figure, which must also be drawable and describable."""
    from greenfold.apps.paper.figures import Run
    from greenfold.apps.paper.setting import style

    run = Run(module.__name__, parameters, folder, 1, heartbeats, data_dir)
    numbers = plain(module.compute(run))
    with style():
        module.draw(numbers, parameters)
    assert all(isinstance(line, str) for line in module.summary(numbers, parameters))
    return numbers


def full(module, folder, data_dir=None):
    """Numbers of a figure as in the paper."""
    from greenfold.apps import paper

    name = module.__name__.rsplit(".", 1)[1]
    (outcome,) = paper.reproduce(name, folder, data_dir=data_dir)
    return outcome.numbers
