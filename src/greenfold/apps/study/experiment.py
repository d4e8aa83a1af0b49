"""One network on one data set: the job of a study.

Each architecture is made from the same few numbers. To all of them g is the largest |λ| of
W and τ the time constant of the neurons, as far as they have such: a delay line has the
weight g and no loop, and the window of a Legendre delay system is N τ, whatever g is.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ... import __version__
from ..._base.files import plain
from ...analysis.memory import memory_capacity
from ...devices.device import Device
from ...devices.noise import state_covariance
from ...dynamics.dynamics import Dynamics
from ...math.decisions import Clouds, decide, held_out_score
from ...networks.gains import Gain
from ...networks.reservoir import Reservoir
from ...optimizers.run import optimize
from ...stimuli.regression import RegressionTask
from ...stimuli.samples import SampleStimuli
from ...unfolding.unfolding import unfold
from ...validity import ExpansionWarning
from ..runner import SEAL
from ..sweep.plan import read_source

#: Names of the architectures, with whether the seed makes a difference.
ARCHITECTURES = {
    "random": True,
    "sparse": True,
    "dale": True,
    "spatial": True,
    "oscillators": True,
    "cycle": False,
    "delay_line": False,
    "legendre": False,
}
#: Gains by name; a number after a colon is their parameter.
GAINS: dict[str, Callable[..., Gain]] = {
    "linear": Gain.linear,
    "quadratic": Gain.quadratic,
    "tanh": Gain.tanh,
    "biased_tanh": Gain.biased_tanh,
}
#: Raised when this module would make other results of the same configuration.
FORMAT = 1
#: Relative gap to the bound at which a margin counts as certified, and a memory as solved.
_GAP, _MEMORY_GAP = 1e-3, 1e-2
#: Steps of the white input that memory is measured with, over the duration of the stimuli,
#: and the noise on every state as it is read.
_MEMORY_STEPS, _MEMORY_NOISE = 40, 0.1


def make_network(setting: Mapping[str, Any]) -> Reservoir:
    """The network of a setting, with the keys of `greenfold.apps.study.plan.AXES`."""
    kind, n, g = setting["architecture"], setting["neurons"], setting["g"]
    tau, gain, seed = setting["tau"], make_gain(setting["gain"]), setting["seed"]
    if kind == "cycle":
        return Reservoir.cycle(n, g, tau, gain)
    if kind == "delay_line":
        return Reservoir.delay_line(n, g, tau, gain)
    if kind == "legendre":
        return Reservoir.legendre(n, n * tau, tau, gain)
    if kind == "oscillators":
        # Eigenvalues spread over the disc as a random network's, but modes at right angles.
        rng = np.random.default_rng(seed)
        size, angle = np.sqrt(rng.random(n // 2)), np.pi * rng.random(n // 2)
        size *= g / size.max()
        a, b = size * np.cos(angle), size * np.sin(angle)
        return Reservoir.oscillators(tau / (1 - a), b / tau, tau, gain)
    drawn: dict[str, Any] = {"rng": seed, "spectral_radius": g}
    if kind == "dale":
        return Reservoir.excitatory_inhibitory(n, 1.0, tau, gain, **drawn)
    if kind == "random":
        return Reservoir.random(n, 1.0, tau, gain, **drawn)
    # Ten connections a neuron, the usual of echo state networks with 100.
    drawn["connectivity"] = min(1.0, 10 / n)
    make = Reservoir.spatial if kind == "spatial" else Reservoir.random
    return make(n, 1.0, tau, gain, **drawn)


def make_gain(text: str) -> Gain:
    """The gain that a text such as ``"quadratic:0.05"`` means."""
    name, colon, number = str(text).partition(":")
    if name not in GAINS:
        raise ValueError(
            f"`gain` must be one of {', '.join(GAINS)}, as in 'quadratic:0.05'; got "
            f"{text!r}."
        )
    try:
        return GAINS[name](float(number)) if colon else GAINS[name]()
    except TypeError:
        wanted = "takes no number" if colon else "needs a number, as in 'quadratic:0.05'"
        raise ValueError(f"`gain` = {text!r}: {name} {wanted}.") from None
    except ValueError as error:
        raise ValueError(f"`gain` = {text!r}: {error}") from None


def experiment(configuration: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    """Solve a network, compare with random u, and return the text of the result file.

    ``configuration`` is that of a job of `greenfold.apps.study.plan.plan`; ``context`` says
    in which ``folder`` the data lie.
    """
    if configuration["code"] != __version__:
        raise RuntimeError(
            f"The worker has greenfold {__version__}, but the study was planned with "
            f"{configuration['code']}: install the same version on all machines."
        )
    data, setting = configuration["data"], dict(configuration["setting"])
    task = _task(data["name"], context["folder"], data["digest"], tuple(data["classes"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = judge(setting, *task)
    asked = {k: v for k, v in setting.items() if k != "memory"}  # there where it is found
    record = {"seal": SEAL, "dataset": data["label"], **asked, **found}
    # The seal stands in the first line, and the rest can be read by people.
    return json.dumps(plain(record), indent=1).replace("\n", "", 1) + "\n"


@lru_cache(maxsize=4)
def _task(
    name: str, folder: str, digest: str, classes: tuple[str, str]
) -> tuple[SampleStimuli, np.ndarray, np.ndarray]:
    """Training stimuli, and test series with their signs."""
    (X, y), (X_test, y_test) = read_source(name, folder, digest)
    kept, there = np.isin(y, classes), np.isin(y_test, classes)
    stimuli = SampleStimuli(X[kept], y[kept])
    signs = np.where(y_test[there] == stimuli.classes[1], 1, -1)
    return stimuli, np.asarray(stimuli.transform(X_test[there])), signs


def judge(
    setting: Mapping[str, Any], stimuli: SampleStimuli, X: np.ndarray, signs: np.ndarray
) -> dict[str, Any]:
    """What a network of a setting reaches, solved and with random u.

    The stimuli are the training series; X are test series as they enter the network.
    """
    started = time.perf_counter()
    network = make_network(setting)
    dt = setting["duration"] / stimuli.n_steps
    if setting["order"] == "exact":
        system: Any = Dynamics(network, n_steps=stimuli.n_steps, dt=dt)
    else:
        system = unfold(network, n_steps=stimuli.n_steps, dt=dt, order=setting["order"])
    P = state_covariance(network, setting["inside"]) if setting["inside"] else None
    options = {"eta": setting["eta"], "device": Device(state_noise=P)}
    tol = _GAP if setting["order"] == 0 else None
    rng = np.random.default_rng([setting["seed"], 1])
    us = rng.standard_normal((setting["draws"], network.n_neurons, stimuli.n_channels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)  # the row says it
        solved = optimize(system, stimuli, tol=tol, rng=setting["seed"], **options)
        solved.raise_if_interrupted()
        drawn = [optimize(system, stimuli, u=u, **options) for u in us]
    margins = np.array([one.soft_margin for one in drawn])
    found: dict[str, Any] = {
        "n_steps": stimuli.n_steps,
        "n_train": stimuli.n_series,
        "n_test": len(signs),
        "kappa": solved.soft_margin,
        "bound": solved.upper_bound,
        "status": solved.status,
        "kappa_random": float(margins.mean()),
        "kappa_random_sd": float(margins.std(ddof=1)) if len(margins) > 1 else 0.0,
        "kappa_random_best": float(margins.max()),
        "largest_real_part": network.spectral_abscissa,
    }
    if solved.validity is not None:
        found["trustworthy"] = solved.validity.trustworthy

    def accuracies(one: Any) -> list[float]:
        """Under every noise, on test series; the plane put between the training clouds."""
        inside = 0.0 if P is None else float(one.v @ P @ one.v)
        codes, test_codes = (
            (np.asarray(s) > 0).astype(int) for s in (stimuli.signs, signs)
        )
        Z, Z_test = (
            np.asarray(system.states(series, one.u) @ one.v)[:, None]
            for series in (stimuli.series, X)
        )
        clouds = Clouds.of(Z, codes, np.ones(len(codes)), np.array([1.0, 1.0]))
        noises = [float(np.sqrt(noise**2 + inside)) for noise in setting["noise"]]
        planes = [decide(clouds, noise=one, threshold="trained") for one in noises]
        return [
            float(held_out_score(plane, Z_test, test_codes, noise)[0].mean())
            for plane, noise in zip(planes, noises, strict=True)
        ]

    random = np.mean([accuracies(one) for one in drawn], axis=0)
    for noise, own, others in zip(
        setting["noise"], accuracies(solved), random, strict=True
    ):
        found[f"accuracy_{noise:g}"] = own
        found[f"accuracy_random_{noise:g}"] = float(others)
    if setting["memory"]:
        found |= _memory(network, setting)
    return {**found, "seconds": time.perf_counter() - started}


def _memory(network: Reservoir, setting: Mapping[str, Any]) -> dict[str, float]:
    system = unfold(network, n_steps=_MEMORY_STEPS, dt=setting["duration"] / _MEMORY_STEPS)
    task = RegressionTask.memory(
        np.arange(_MEMORY_STEPS), _MEMORY_STEPS, ridge=_MEMORY_NOISE**2
    )
    solved = optimize(system, task, tol=_MEMORY_GAP, rng=setting["seed"])
    if solved.status == "interrupted":
        raise KeyboardInterrupt
    drawn = memory_capacity(
        system,
        "random",
        device=Device(readout_noise=_MEMORY_NOISE),
        n_draws=setting["draws"],
        # Not the stream of the network, of whose weights the first u would be a row.
        rng=np.random.default_rng([setting["seed"], 2]),
    )
    assert drawn.drawn is not None
    bound = np.nan if solved.upper_bound is None else solved.upper_bound
    return {
        "memory": solved.gain,
        "memory_bound": float(bound),
        "memory_random": float(drawn.drawn.mean()),
    }
