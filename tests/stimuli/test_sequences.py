"""Weights of steps, and unknown targets, judged by repetition and least squares."""

import numpy as np
import pytest

from greenfold import Dynamics, EchoStateNetwork, RegressionTask, SequenceTask, optimize
from greenfold.datasets import narma
from greenfold.networks.gains import Gain
from greenfold.optimizers.sequence_loss import SequenceProblem

NETWORK = EchoStateNetwork.random(10, leak=0.6, connectivity=0.5, rng=0)
RIDGE = 1e-4


@pytest.fixture(scope="module")
def data():
    x, y = narma(300, rng=0)
    weights = np.random.default_rng(1).uniform(0, 2, 300)
    weights[100:140] = 0
    return x, y, weights


def problem_of(x, y, *, washout=40, **options):
    given = {"washout": washout, "ridge": RIDGE, "bias": 1.0, **options}
    task = SequenceTask.from_sequences(x, y, **given)
    return SequenceProblem(Dynamics(NETWORK, n_steps=task.n_steps), task)


def unit(seed):
    u = np.random.default_rng(seed).standard_normal((10, 2))
    return u / np.linalg.norm(u)


def test_weighted_loss_is_least_squares_with_rows_for_the_penalty(data):
    x, y, w = data
    # One segment that begins before the sequence, so that no start is forgotten.
    whole = {"washout": 300, "n_skipped": 40, "n_read": 260}
    V, margin, _ = problem_of(x, y, sample_weight=w, **whole).evaluate(unit(0))
    state, rows = np.zeros(10), []
    for value in x:
        pushed = NETWORK.weights @ state + unit(0) @ [value, 1.0]
        state = 0.4 * state + 0.6 * np.tanh(pushed)
        rows.append(state)
    S, t, w = np.array(rows)[40:], y[40:], w[40:]
    S = S - w @ S / w.sum()
    t = t - w @ t / w.sum()
    root = np.sqrt(w / w.sum())
    A = np.vstack([root[:, None] * S, np.sqrt(RIDGE) * np.eye(10)])
    b = np.append(root * t, np.zeros(10))
    wanted = np.linalg.lstsq(A, b)[0]
    # Rounding times the condition number of the Gram matrix with its penalty, 1e4.
    assert V[:, 0] == pytest.approx(wanted, rel=1e-10)
    assert margin.value == pytest.approx(-np.log(((A @ wanted - b) ** 2).sum()), abs=1e-10)


@pytest.mark.parametrize("see_input", [False, True])
def test_weighted_gradient_by_the_slope_of_its_taylor_remainder(data, see_input):
    x, y, w = data
    problem = problem_of(x, y, sample_weight=w, see_input=see_input)
    u, along = unit(0), unit(1)
    _, margin, gradient = problem.evaluate(u)
    steps = 10.0 ** np.array([-2, -2.5, -3])
    left = [
        problem.evaluate(u + h * along)[1].value
        - margin.value
        - h * (gradient * along).sum()
        for h in steps
    ]
    assert np.polyfit(np.log(steps), np.log(np.abs(left)), 1)[0] > 1.9


def test_a_weight_of_two_is_the_sequence_twice(data):
    x, y, _ = data
    first, second = slice(160), slice(160, 300)
    twice = problem_of([x[first], x[first], x[second]], [y[first], y[first], y[second]])
    weights = [np.full(160, 2.0), np.ones(140)]
    once = problem_of([x[first], x[second]], [y[first], y[second]], sample_weight=weights)
    for wanted, found in zip(twice.evaluate(unit(0)), once.evaluate(unit(0)), strict=True):
        assert np.asarray(found) == pytest.approx(np.asarray(wanted), rel=1e-9, abs=1e-12)
    assert once.task.n_used == twice.task.n_used == 120 + 120 + 100


def test_nan_is_a_weight_of_zero_and_leaves_empty_segments_out(data):
    x, y, w = data
    y = np.column_stack([y, y**2])
    y[w == 0, 1] = np.nan
    unknown = SequenceTask.from_sequences(x, y, washout=10, n_read=20)
    weightless = SequenceTask.from_sequences(
        x, np.nan_to_num(y), washout=10, n_read=20, sample_weight=np.where(w == 0, 0, 1)
    )
    for name in ("X", "y", "used", "offset", "variance"):
        assert np.array_equal(getattr(unknown, name), getattr(weightless, name))
    assert unknown.n_used == 300 - 10 - 40
    # Of 15 segments of 20 steps, one lies within the 40 steps without a target.
    assert unknown.X.shape[0] == 14


@pytest.mark.parametrize("gain", [Gain.linear(), Gain.tanh()])
def test_weighted_windows_are_windows_repeated(gain):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 8)), rng.standard_normal((60, 2))
    counts = rng.integers(0, 4, 60)
    network = EchoStateNetwork.random(6, gain=gain, rng=0, connectivity=1.0)
    system = Dynamics(network, n_steps=8)
    u = np.ones(6) / np.sqrt(6)
    tasks = (
        RegressionTask.from_cases(X, y, sample_weight=counts),
        RegressionTask.from_cases(np.repeat(X, counts, 0), np.repeat(y, counts, 0)),
    )
    found, wanted = (optimize(system, task, u=u) for task in tasks)
    # Rounding of sums in another order.
    assert found.loss == pytest.approx(wanted.loss, rel=1e-12)
    assert found.r2 == pytest.approx(wanted.r2, rel=1e-10)
    assert pytest.approx(wanted.V, rel=1e-9) == found.V
    made, again = (task.predict(system, found, X) for task in tasks)
    assert made == pytest.approx(again, rel=1e-9, abs=1e-12)
    if not network.gain.is_linear:
        problem = [_gradient(system, task, u) for task in tasks]
        assert problem[0] == pytest.approx(problem[1], rel=1e-9, abs=1e-12)


def _gradient(system, task, u):
    from greenfold.optimizers.regression import NonlinearRegression

    return NonlinearRegression(system, task).evaluate(u[:, None])[2]


def test_a_linear_network_takes_weights_into_its_certificate(data):
    x, y, w = data
    network = EchoStateNetwork.random(
        8, gain=Gain.linear(), spectral_radius=0.7, connectivity=1.0, rng=0
    )
    task = SequenceTask.from_sequences(x, y, washout=20, ridge=1e-3, sample_weight=w)
    found = optimize(Dynamics(network, n_steps=task.n_steps), task, rng=0)
    assert found.status == "certified"
    problem = SequenceProblem(Dynamics(network, n_steps=task.n_steps), task)
    value = problem.evaluate(found.u[:, None])[1].value
    # The network forgets by 0.7 per step, so 20 steps leave 1e-3 of a state.
    assert found.loss == pytest.approx(np.exp(-value), rel=1e-2)


LABELS = np.array(["rest", "walk"] * 50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((4, 25, 2))}, r"pass list\(x\) for 4 sequences of 25 samples and 2"),
        ({"y": np.ones((4, 25, 2))}, r"pass list\(y\) for 4 sequences"),
        ({"y": LABELS}, r"class labels such as 'rest'. Pass one .*np.eye\(len\(classes"),
        ({"y": LABELS.tolist()}, "class labels such as 'rest'"),
        ({"y": LABELS.astype(object)}, "class labels such as 'rest'"),
        ({"y": np.full(100, np.nan)}, "`y` must hold targets with a weight above 0"),
        ({"y": np.full(100, np.inf)}, "`y` must be finite; got inf at index"),
        ({"sample_weight": np.zeros(100)}, "`y` must hold targets with a weight above 0"),
        ({"sample_weight": np.ones(99)}, "`sample_weight` must have one row for each of"),
        ({"sample_weight": -np.ones(100)}, "`sample_weight` must hold no negative weights"),
        ({"sample_weight": np.ones((100, 2))}, "`sample_weight` must have one weight per"),
        ({"sample_weight": np.full(100, np.nan)}, "`sample_weight` must be finite"),
    ],
)
def test_bad_arguments(change, message):
    given = {"x": np.ones(100), "y": np.arange(100.0), "washout": 5} | change
    with pytest.raises((ValueError, TypeError), match=message):
        SequenceTask.from_sequences(given.pop("x"), given.pop("y"), **given)


def test_labels_of_several_sequences_are_refused_with_the_recipe():
    with pytest.raises(TypeError, match="class labels such as 'rest'"):
        SequenceTask.from_sequences([np.ones(100)] * 2, [LABELS] * 2, washout=5)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"`sample_weight` must have shape \(60,\); got shape \(3,\)"),
        (np.zeros(60), "weights of at least 0, and some above 0; got 0 to 0"),
    ],
)
def test_bad_weights_of_windows(weights, message):
    with pytest.raises(ValueError, match=message):
        RegressionTask.from_cases(np.ones((60, 8)), np.ones(60), sample_weight=weights)
