"""Networks of a study: each architecture made from the same few numbers.

To all of them g is the largest |λ| of W and τ the time constant of the neurons, as far as
they have such: a delay line has the weight g and no loop, and the window of a Legendre
delay system is N τ, whatever g is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..gains import Gain
from ..reservoir import Reservoir

Maker = Callable[[int, float, float, Gain, int], Reservoir]


def _random(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    return Reservoir.random(n, 1.0, tau, gain, seed, spectral_radius=g)


def _sparse(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    # Ten connections a neuron, the usual of echo state networks with 100.
    share = min(1.0, 10 / n)
    return Reservoir.random(n, 1.0, tau, gain, seed, spectral_radius=g, connectivity=share)


def _dale(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    return Reservoir.excitatory_inhibitory(n, 1.0, tau, gain, seed, spectral_radius=g)


def _spatial(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    share = min(1.0, 10 / n)
    return Reservoir.spatial(n, 1.0, tau, gain, seed, spectral_radius=g, connectivity=share)


def _cycle(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    del seed
    return Reservoir.cycle(n, g, tau, gain)


def _delay_line(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    del seed
    return Reservoir.delay_line(n, g, tau, gain)


def _legendre(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    del g, seed
    return Reservoir.legendre(n, n * tau, tau, gain)


def _oscillators(n: int, g: float, tau: float, gain: Gain, seed: int) -> Reservoir:
    """Eigenvalues spread over the disc as a random network's, but modes at right angles."""
    if n % 2:
        raise ValueError(f"`neurons` of oscillators come in pairs; got {n}.")
    rng = np.random.default_rng(seed)
    size, angle = np.sqrt(rng.random(n // 2)), np.pi * rng.random(n // 2)
    size *= g / size.max()
    a, b = size * np.cos(angle), size * np.sin(angle)
    return Reservoir.oscillators(tau / (1 - a), b / tau, tau, gain)


#: By name, with whether the seed makes a difference.
ARCHITECTURES: dict[str, tuple[Maker, bool]] = {
    "random": (_random, True),
    "sparse": (_sparse, True),
    "dale": (_dale, True),
    "spatial": (_spatial, True),
    "oscillators": (_oscillators, True),
    "cycle": (_cycle, False),
    "delay_line": (_delay_line, False),
    "legendre": (_legendre, False),
}
#: Gains by name; a number after a colon is their parameter.
GAINS: dict[str, Callable[..., Gain]] = {
    "linear": Gain.linear,
    "quadratic": Gain.quadratic,
    "tanh": Gain.tanh,
    "biased_tanh": Gain.biased_tanh,
}


def make_network(setting: dict[str, Any]) -> Reservoir:
    """The network of a setting, with the keys of `greenfold.study.plan.AXES`."""
    make, _ = ARCHITECTURES[setting["architecture"]]
    return make(
        setting["neurons"],
        setting["g"],
        setting["tau"],
        make_gain(setting["gain"]),
        setting["seed"],
    )


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
