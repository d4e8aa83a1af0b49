"""The demo: errors that fall with the order, and data of the announced size."""

import numpy as np
import pytest

from greenfold.apps import demo


def test_errors_fall_as_alpha_to_the_order_plus_one():
    errors = demo.order_errors(n_neurons=20, n_steps=20)
    assert errors.shape == (len(demo.ORDERS), len(demo.ALPHAS))
    # Without non-linearity every order is the linear network; the solver runs at 1e-11.
    assert errors[:, 0].max() < 1e-9
    assert (np.diff(errors[:, 1:], axis=0) < 0).all()
    slopes = demo.order_slopes(errors)
    assert slopes == pytest.approx(np.arange(1, 5), abs=0.3)


def test_slopes_of_exact_powers():
    exact = np.array([np.power(demo.ALPHAS, k + 1.0) for k in demo.ORDERS])
    assert demo.order_slopes(exact) == pytest.approx([1, 2, 3, 4])


def test_task_is_split_as_announced():
    task, other = demo.demo_task(0), demo.demo_task(1)
    assert task.X.shape == (demo.N_TRAIN, demo.N_STEPS)
    assert task.X_test is not None
    assert task.y_test is not None
    assert len(task.X_test) == len(task.y_test) == demo.N_TEST
    assert set(task.y) == {"normal", "premature"}
    assert not np.array_equal(task.X, other.X)
