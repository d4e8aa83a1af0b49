"""From a recording of a network in NEST to its mask, which NEST then runs.

A tanh rate network in the NEST simulator serves as a device: white noise drives every
neuron, its states are recorded with some noise, the response is fitted, and a mask of signs
is solved on it. Only NEST uses the network's weights. NEST also judges the mask.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np

from greenfold import (
    Device,
    Gain,
    MeasuredResponse,
    Projections,
    Reservoir,
    SampleStimuli,
    optimize,
    simulate,
)
from greenfold.analysis import margin_interval
from greenfold.datasets import synthetic_heartbeats

from ._measure import Report, Row

N_NEURONS, N_STEPS, DT = 16, 12, 0.5
N_SAMPLES, DRIVE, NOISE = 6000, 0.2, 0.01
N_RANDOM = 3
#: The device; only `in_nest` looks inside.
DEVICE = Reservoir.random(N_NEURONS, tau=1.0, gain=Gain.tanh(), rng=4)


def in_nest(X: np.ndarray, u: np.ndarray) -> np.ndarray:
    """States (n_series, n_steps, n_neurons) of the network in NEST."""
    return simulate(DEVICE, X, u, DT, "nest", trajectories=True, resolution=DT / 20)


def record() -> tuple[np.ndarray, np.ndarray]:
    """White drive into every neuron and recorded states, (n_samples, n_neurons) each."""
    rng = np.random.default_rng(0)
    drive = DRIVE * rng.standard_normal((N_SAMPLES, N_NEURONS))
    states = in_nest(drive.T[None], np.eye(N_NEURONS))[0]
    return drive, states + NOISE * rng.standard_normal(states.shape)


def delivered(
    stimuli: SampleStimuli, X: np.ndarray, y: np.ndarray, found: Projections
) -> float:
    """κ of a mask and its readout in NEST, in the unit of the response."""
    series = DRIVE * np.asarray(stimuli.transform(X)).reshape(len(X), 1, -1)
    z = in_nest(series, found.u[:, None])[:, -1] @ found.v / DRIVE
    second = y == stimuli.classes[1]
    z *= np.where(second, 1, -1)
    weight = np.where(second, 0.5 / second.sum(), 0.5 / (~second).sum())  # as in κ
    mean = weight @ z
    return float(mean - found.eta / 2 * (weight @ (z - mean) ** 2))


def run(rounds: int) -> Report:
    """One recording, one mask; nothing is timed."""
    del rounds
    if find_spec("nest") is None:
        sys.exit("NEST is not installed; run `pip install greenfold[nest]`.")
    device = MeasuredResponse.fit(*record(), n_steps=N_STEPS, dt=DT)
    assert device.fitted is not None
    X, y = synthetic_heartbeats(60, n_steps=N_STEPS, rng=3)
    stimuli = SampleStimuli(X, y)
    hardware = Device(mask="sign")
    best = optimize(device, stimuli, device=hardware, rng=0)
    interval = margin_interval(device, stimuli, best, device=hardware, rng=0)
    ours = delivered(stimuli, X, y, best)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (N_RANDOM, N_NEURONS))
    drawn = [delivered(stimuli, X, y, optimize(device, stimuli, u=one)) for one in signs]
    rows = [
        Row(
            "κ of the solved mask of signs in NEST, as a share of the expected κ",
            100 * ours / interval.estimate,
            "%",
            "inside the 95 % interval",
            interval.low <= ours <= interval.high,
            {
                "delivered": ours,
                "expected": interval.estimate,
                "low": interval.low,
                "high": interval.high,
                "linearity": device.fitted.linearity,
            },
        ),
        Row(
            "κ of the solved mask over that of random masks, both in NEST",
            ours / float(np.mean(drawn)),
            "×",
            "> 1",
            ours > float(np.mean(drawn)),
            {"solved": ours, "random": drawn, "share_of_bound": best.share},
        ),
    ]
    notes = [
        f"a tanh rate network of {N_NEURONS} neurons in the NEST simulator as the device: "
        f"{N_SAMPLES} samples of white drive, noise of {NOISE:g} on the recorded states; "
        f"synthetic series of {N_STEPS} steps",
    ]
    return Report("recording: a network in NEST", notes, rows)
