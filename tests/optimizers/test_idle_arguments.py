"""Every argument of `optimize` changes something on the given problem, or is refused."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from greenfold import (
    Alternating,
    Ascent,
    AtMost,
    Box,
    Convex,
    Device,
    Dynamics,
    Exact,
    Gain,
    Levels,
    MeasuredResponse,
    NonNegative,
    RandomDraws,
    RegressionTask,
    Reservoir,
    SampleStimuli,
    SequenceTask,
    Signs,
    optimize,
    unfold,
)

N, STEPS = 4, 5
GRID = {"n_steps": STEPS, "dt": 0.5}


def network(gain: Gain | None = None) -> Reservoir:
    return Reservoir.random(N, 0.7, gain=gain, rng=1)


SYSTEMS = {
    "order 0": unfold(network(), **GRID),
    "order 1": unfold(network(Gain.quadratic(0.05)), **GRID, order=1),
    "dynamics": Dynamics(network(Gain.biased_tanh(0.4)), **GRID),
    "measured": MeasuredResponse(unfold(network(), **GRID).greens1()),
    "modes": unfold(Reservoir.cycle(N), **GRID),
    "sparse dynamics": Dynamics(
        Reservoir(csr_array(0.4 * np.eye(N, k=1)), gain=Gain.tanh()), **GRID
    ),
}
METHODS = {
    "none": None,
    "convex": Convex(),
    "quick": Convex(gap=np.inf),
    "exact": Exact(),
    "ascent": Ascent(),
    "one start": Ascent(n_starts=1),
    "alternating": Alternating(n_starts=1, rounds=2),
    "random": RandomDraws(2),
}
rng = np.random.default_rng(0)
X = rng.standard_normal((20, 1, STEPS))
CLASSES = SampleStimuli(X, X[:, 0, -1] > 0)
TASK = RegressionTask.from_cases(X, X[:, 0, -2:], ridge=0.1)
LINEAR = {"order 0", "measured", "modes"}
CERTIFIED, ASCENDED = {"convex", "quick", "exact"}, {"ascent", "one start"}


def classifies(system: str, method: str) -> bool:
    """Whether a method solves for two classes on a system."""
    if method in CERTIFIED:
        return system in LINEAR
    if method in ASCENDED:
        return system not in LINEAR
    return method != "alternating" or "dynamics" not in system


def draws(system: str, method: str) -> bool:
    """Whether a method draws random numbers for two classes and no mask."""
    if method == "none":
        return system not in LINEAR
    return method not in {*CERTIFIED, "one start"}


def regresses(system: str, method: str) -> bool:
    """Whether a method solves a regression on a system."""
    if system in LINEAR:
        return method in ("none", "convex", "quick")
    return method in ("none", *ASCENDED)


def refused(system: str, stimuli: object, **given: object) -> str | None:
    """Return the sentence with which a call is refused, or None if it ran."""
    try:
        optimize(SYSTEMS[system], stimuli, **given)  # pyright: ignore
    except (TypeError, ValueError) as error:
        sentence = str(error)
        assert sentence.startswith("`")
        assert sentence.endswith(".")
        assert "\n" not in sentence
        return sentence
    return None


PAIRS = list(product(SYSTEMS, METHODS))


@pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")
@pytest.mark.parametrize(("system", "method"), PAIRS, ids=str)
def test_methods_and_random_numbers(system, method):
    chosen = METHODS[method]
    found = refused(system, CLASSES, method=chosen)
    assert (found is None) == classifies(system, method), found
    if found is not None:
        assert found.startswith("`method` ")
        return
    # With u given, no method searches.
    again = refused(system, CLASSES, method=chosen, u=np.ones(N))
    assert (again is None) == (chosen is None)
    given = refused(system, CLASSES, method=chosen, rng=1)
    assert (given is None) == draws(system, method), given
    assert given is None or given.startswith("`rng` ")


@pytest.mark.parametrize(("system", "method"), PAIRS, ids=str)
def test_tasks(system, method):
    chosen = METHODS[method]
    found = refused(system, TASK, method=chosen)
    assert (found is None) == regresses(system, method), found
    assert found is None or found.split()[0] in ("`method`", "`max_nodes`")
    if found is None:
        # One start is the linear optimum, so nothing is drawn.
        given = refused(system, TASK, method=chosen, rng=1)
        assert (given is None) == (method != "one start"), given
        assert given is None or given.startswith("`rng` ")
    for eta in (10.0, -5.0, "abc"):
        found = refused(system, TASK, method=chosen, eta=eta)
        assert found is not None
        assert found.startswith("`eta` must be left out for a task")
    assert refused(system, TASK, method="nonsense") is not None


@pytest.mark.parametrize("see_input", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_sequences(method, see_input):
    """A sequence task is ascended; if it is linear, it is a regression with a bound."""
    x = np.random.default_rng(1).standard_normal((60, 1))
    task = SequenceTask.from_sequences(
        x, np.roll(x, 1), washout=STEPS, n_read=10, ridge=0.1, see_input=see_input
    )
    for gain, certified in ((Gain.linear(), not see_input), (Gain.tanh(), False)):
        system = Dynamics(network(gain), n_steps=task.n_steps, dt=0.5)
        allowed = ("none", "convex", "quick") if certified else ("none", *ASCENDED)
        if method in allowed:
            optimize(system, task, method=METHODS[method])
            continue
        with pytest.raises((TypeError, ValueError), match="^`(method|max_nodes)` must"):
            optimize(system, task, method=METHODS[method])


def test_a_sequence_task_reads_every_step():
    x = np.random.default_rng(1).standard_normal((60, 1))
    task = SequenceTask.from_sequences(x, x, washout=STEPS, n_read=10)
    for readout in (1.0, np.ones(task.n_steps)):
        system = Dynamics(network(), n_steps=task.n_steps, dt=0.5, readout=readout)
        with pytest.raises(ValueError, match="`readout` has no effect for a SequenceTask"):
            optimize(system, task)


MASKS = [Signs(), Levels(3), Levels(4), Box(-0.9, 0.6), NonNegative(), AtMost(2)]


@pytest.mark.filterwarnings("ignore::greenfold.ExpansionWarning")
@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_masks(mask):
    """A mask is found from the certified optimum, on linear systems."""
    device = Device(mask=mask)
    for system, method in PAIRS:
        if not classifies(system, method):
            continue
        found = refused(system, CLASSES, method=METHODS[method], device=device, rng=1)
        fits = system in LINEAR and method in {"none", *CERTIFIED}
        assert (found is None) == fits, found
    assert refused("order 0", CLASSES, u=np.ones(N), device=device) is not None
    assert refused("order 1", TASK, device=device) is not None


@pytest.mark.parametrize(
    "device",
    [
        {"bits": 2},
        {"input_noise": 0.1},
        {"state_noise": 0.1},
        {"readout_noise": 0.1},
    ],
    ids=str,
)
def test_noise_and_bits(device):
    """They change κ of two classes on linear systems, and are refused elsewhere."""
    free = optimize(SYSTEMS["order 0"], CLASSES)
    found = optimize(SYSTEMS["order 0"], CLASSES, device=Device(**device))
    assert found.soft_margin < free.soft_margin
    assert refused("dynamics", CLASSES, device=Device(**device)) is not None
    assert refused("order 0", TASK, device=Device(**device)) is not None


def test_a_mask_that_restricts_nothing_is_refused():
    with pytest.raises(ValueError, match="`box` must leave out some unit vector"):
        Box(-1, 1)
    with pytest.raises(ValueError, match="`max_nodes` must be left out"):
        Convex(gap=np.inf, max_nodes=3)
