"""The numbers of a network that can be ascended: how they make it, and the way back.

Each parameter is walked in a coordinate of its own, in which a change by one is a change by
a factor e, or of a frequency by one radian in a decay time. A family knows the network at
every place and the gradient of a function of it, from that with respect to the rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .. import _validation as check
from ..echo_state import EchoStateNetwork
from ..reservoir import Reservoir
from ..unfolding.generator import Rates

Bounds = list[tuple[float, float]]

#: How close to instability the weights may be scaled.
_STABLE = 0.99
#: Scale of the weights, relative to those given, where stability sets no limit.
_WEAKEST, _STRONGEST = 1e-3, 10.0
#: Time constants and decay times, in units of the duration.
_FASTEST, _SLOWEST = 1e-3, 10.0
_SMALLEST_LEAK = 1e-3


class Family(Protocol):
    """A network as a function of a few numbers."""

    #: Where the given network is.
    start: np.ndarray
    bounds: Bounds

    def network(self, x: np.ndarray) -> Any:
        """The network at x; an `UnstableError` where it has growing modes."""
        ...

    def values(self, x: np.ndarray) -> dict[str, Any]:
        """The parameters by name, in their own units."""
        ...

    def gradient(
        self, network: Any, bar: Rates, u: np.ndarray, spread: float
    ) -> np.ndarray:
        """With respect to x, from that with respect to the rates.

        ``spread`` is the derivative with respect to the logarithm of the intensity of noise
        inside, as it reaches the neurons: 2 log τ less is that much more.
        """
        ...


def rates_of(reservoir: Reservoir, u: np.ndarray) -> Rates:
    """R = (W φ' − 1)/τ and u/τ of the linear network."""
    n = reservoir.n_neurons
    tau = np.broadcast_to(np.asarray(reservoir.tau, dtype=float), (n,))[:, None]
    return Rates((reservoir.linear_weights - np.eye(n)) / tau, u / tau)


def make_family(
    network: Any,
    parameters: tuple[str, ...] | None,
    bounds: Mapping[str, Any] | None,
    duration: float,
    dt: float,
) -> Family:
    """The family of a network that the named parameters span.

    Parameters
    ----------
    network : Reservoir or EchoStateNetwork
    parameters : tuple of str, optional
        By default "tau" and "g", in discrete time "leak" and "g".
    bounds : mapping, optional
        (low, high) by name, in the units of the parameters.
    duration, dt : float
        Of the stimuli and of a step, for the bounds.
    """
    if isinstance(network, EchoStateNetwork):
        allowed: tuple[str, ...] = ("leak", "g")
    else:
        allowed = ("tau", "g", "decay_times", "frequencies")
    names = allowed[:2] if parameters is None else tuple(parameters)
    for name in names:
        if name not in allowed:
            raise ValueError(
                f"`parameters` of this network can be {', '.join(allowed)}; got {name!r}."
            )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"`parameters` must name each once; got {names}.")
    given = dict(bounds or {})
    for name in given:
        if name not in names:
            raise ValueError(f"`bounds` name {name!r}, which is not among `parameters`.")
    if isinstance(network, EchoStateNetwork):
        return _Leaky(network, names, given)
    if {"decay_times", "frequencies"} & set(names):
        if "g" in names:
            raise ValueError(
                "`parameters` = 'g' scales weights that the decay times and frequencies "
                "already are; leave it out."
            )
        return _Oscillators(network, names, given, duration, dt)
    return _Scaled(network, names, given, duration)


def _interval(given: Mapping[str, Any], name: str, low: float, high: float, now: float):
    """Bounds of a parameter, with the given network between them."""
    if name not in given:
        return min(low, now), max(high, now)
    try:
        low, high = (float(one) for one in given[name])
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    if not (0 <= low < high < np.inf) or (low == 0 and name != "frequencies"):
        raise ValueError(
            f"`bounds` of {name!r} must be two finite numbers, 0 < low < high; got "
            f"{given[name]!r}."
        )
    if not low <= now <= high:
        raise ValueError(
            f"`bounds` of {name!r} are {low:g} to {high:g}, but the given network has "
            f"{now:g}."
        )
    return low, high


def _inner(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.sum(a * b))


def _slope_change(gain: Any, at: np.ndarray) -> np.ndarray:
    """φ'' at given states."""
    if gain.is_linear or gain.kind == "relu":
        return np.zeros(len(at))
    found = gain.around(at)
    if len(found) < 3:
        raise ValueError(
            f"`parameters` = 'g' moves the rest state of this network, and the gain "
            f"{gain.name} does not know its second derivative; ascend the others."
        )
    return 2 * found[2]


class _Logarithms:
    """Parameters as logarithms of their ratio to those of the given network."""

    bounds: Bounds
    start: np.ndarray

    def _measure(
        self,
        names: tuple[str, ...],
        limits: Mapping[str, tuple[float, float]],
        unit: Mapping[str, float],
    ) -> None:
        self._names, self._unit = names, unit
        self.bounds = [
            (np.log(limits[k][0] / unit[k]), np.log(limits[k][1] / unit[k])) for k in names
        ]
        self.start = np.zeros(len(names))

    def values(self, x: np.ndarray) -> dict[str, Any]:
        return {
            k: float(self._unit[k] * np.exp(one))
            for k, one in zip(self._names, x, strict=True)
        }


class _Scaled(_Logarithms):
    """τ, or the mean of unequal ones, and the scale g of the weights."""

    def __init__(
        self, network: Reservoir, names: tuple[str, ...], given: Any, duration: float
    ) -> None:
        self._given = network
        limits = {}
        if "tau" in names:
            wide = (_FASTEST * duration, _SLOWEST * duration)
            limits["tau"] = _interval(given, "tau", *wide, network.mean_tau)
        if "g" in names:
            # Of unequal time constants it is not the eigenvalues of W that decide.
            unequal = isinstance(network.tau, np.ndarray)
            growth = 0.0 if unequal else network.spectral_abscissa
            limits["g"] = _interval(given, "g", _WEAKEST, _strongest(growth), 1.0)
        self._measure(names, limits, {"tau": network.mean_tau, "g": 1.0})

    def network(self, x: np.ndarray) -> Reservoir:
        values, given = self.values(x), self._given
        return Reservoir(
            values.get("g", 1.0) * given.weights,
            given.tau * (values["tau"] / given.mean_tau) if "tau" in values else given.tau,
            given.gain,
            given.allow_unstable,
            bias=given.bias,
        )

    def gradient(
        self, network: Reservoir, bar: Rates, u: np.ndarray, spread: float
    ) -> np.ndarray:
        rates = rates_of(network, u)
        of_tau = -_inner(bar.own, rates.own) - _inner(bar.drive, rates.drive)
        found = {"tau": of_tau - 2 * spread}
        if "g" in self._names:
            n = network.n_neurons
            change = network.linear_weights
            if network.rest.any():
                # y* = W φ(y*) + b moves along with W.
                pushed = network.weights @ network.gain(network.rest)
                moved = np.linalg.solve(np.eye(n) - network.linear_weights, pushed)
                bent = _slope_change(network.gain, network.rest)
                change = change + network.weights * (bent * moved)
            tau = np.broadcast_to(np.asarray(network.tau, dtype=float), (n,))
            found["g"] = _inner(bar.own, change / tau[:, None])
        return np.array([found[name] for name in self._names])


def _strongest(growth: float) -> float:
    """Largest factor on weights whose largest Re λ is ``growth``."""
    return min(_STRONGEST, _STABLE / growth) if growth > 0 else _STRONGEST


class _Leaky(_Logarithms):
    """The leak and the scale g of the weights of an echo state network."""

    def __init__(
        self, network: EchoStateNetwork, names: tuple[str, ...], given: Any
    ) -> None:
        self._given = network
        most = float(np.max(network.leak))
        radius = float(np.abs(np.linalg.eigvals(_sloped(network))).max())
        limits = {}
        # Networks with |λ| < 1 are stable at every leak; others at a smaller one than now.
        contracts = radius < 1
        if "leak" in names:
            highest = 1.0 if contracts else most
            limits["leak"] = _interval(given, "leak", _SMALLEST_LEAK, highest, most)
            if limits["leak"][1] > 1:
                raise ValueError("`bounds` of 'leak' must lie in (0, 1].")
        if "g" in names:
            highest = _strongest(radius) if contracts else 1.0
            limits["g"] = _interval(given, "g", _WEAKEST, highest, 1.0)
        self._measure(names, limits, {"leak": most, "g": 1.0})

    def network(self, x: np.ndarray) -> EchoStateNetwork:
        values, given = self.values(x), self._given
        leak = given.leak * (values.get("leak", self._unit["leak"]) / self._unit["leak"])
        return EchoStateNetwork(
            values.get("g", 1.0) * given.weights,
            np.minimum(leak, 1.0),
            given.gain,
            given.bias,
            given.allow_unstable,
        )

    def gradient(
        self, network: EchoStateNetwork, bar: Rates, u: np.ndarray, spread: float
    ) -> np.ndarray:
        del spread
        n = network.n_neurons
        E, F = network.linear_step
        leak = np.broadcast_to(np.asarray(network.leak, dtype=float), (n,))
        pushed = F @ u
        of_leak = _inner(bar.own, E - np.eye(n)) + _inner(bar.drive, pushed)
        found = {"leak": of_leak}
        if "g" in self._names:
            own, drive = E - np.diag(1 - leak), np.zeros_like(pushed)
            if network.rest.any():
                # The argument z* = W φ(z*) + b of the gain moves along with W.
                bias = 0.0 if network.bias is None else network.bias
                active = network.weights @ network.rest + bias
                moved = np.linalg.solve(
                    np.eye(n) - network.weights * network.gain.derivative(active),
                    network.weights @ network.rest,
                )
                bent = (leak * _slope_change(network.gain, active) * moved)[:, None]
                own, drive = own + bent * network.weights, bent * u
            found["g"] = _inner(bar.own, own) + _inner(bar.drive, drive)
        return np.array([found[name] for name in self._names])


def _sloped(network: EchoStateNetwork) -> np.ndarray:
    """φ' W at rest."""
    bias = 0.0 if network.bias is None else network.bias
    active = network.weights @ network.rest + bias
    return np.asarray(network.gain.derivative(active))[:, None] * network.weights


class _Oscillators:
    """Decay times and frequencies of independent oscillators, and the scale τ of input."""

    def __init__(
        self,
        network: Reservoir,
        names: tuple[str, ...],
        given: Any,
        duration: float,
        dt: float,
    ) -> None:
        decay, omega, tau = _read_oscillators(network)
        self._gain, self._names = network.gain, names
        self._now = {"decay_times": decay, "frequencies": omega, "tau": np.array([tau])}
        # A frequency is counted in radians per decay time, a time by its logarithm.
        self._turn = decay
        limits = {
            "decay_times": (_FASTEST * duration, _SLOWEST * duration),
            "frequencies": (0.0, np.pi / dt),
            "tau": (_FASTEST * duration, _SLOWEST * duration),
        }
        self.bounds = []
        start = []
        for name in names:
            for i, now in enumerate(self._now[name]):
                low, high = _interval(given, name, *limits[name], float(now))
                if name == "frequencies":
                    self.bounds.append((low * decay[i], high * decay[i]))
                    start.append(now * decay[i])
                else:
                    self.bounds.append((np.log(low / now), np.log(high / now)))
                    start.append(0.0)
        self.start = np.array(start)

    def _split(self, x: np.ndarray) -> dict[str, np.ndarray]:
        sizes = [len(self._now[name]) for name in self._names]
        parts = np.split(x, np.cumsum(sizes)[:-1])
        found = dict(self._now)
        for name, part in zip(self._names, parts, strict=True):
            turned = name == "frequencies"
            found[name] = part / self._turn if turned else self._now[name] * np.exp(part)
        return found

    def values(self, x: np.ndarray) -> dict[str, Any]:
        found = self._split(x)
        return {
            name: float(found[name][0]) if name == "tau" else found[name]
            for name in self._names
        }

    def network(self, x: np.ndarray) -> Reservoir:
        found = self._split(x)
        return Reservoir.oscillators(
            found["decay_times"],
            np.maximum(found["frequencies"], 0.0),
            float(found["tau"][0]),
            self._gain,
        )

    def gradient(
        self, network: Reservoir, bar: Rates, u: np.ndarray, spread: float
    ) -> np.ndarray:
        even = 2 * np.arange(len(self._turn))
        rates = rates_of(network, u)
        diagonal = np.diag(bar.own)
        slowed = -np.diag(rates.own)[even]  # 1/T
        found = {
            "decay_times": slowed * (diagonal[even] + diagonal[even + 1]),
            "frequencies": (bar.own[even + 1, even] - bar.own[even, even + 1]) / self._turn,
            "tau": np.array([-_inner(bar.drive, rates.drive) - 2 * spread]),
        }
        return np.concatenate([found[name] for name in self._names])


def _read_oscillators(network: Reservoir) -> tuple[np.ndarray, np.ndarray, float]:
    """Decay times, frequencies and τ of a network that `Reservoir.oscillators` made."""
    weights = network.linear_weights
    n, even = len(weights), 2 * np.arange(len(weights) // 2)
    tau = network.tau
    if n % 2 == 0 and not isinstance(tau, np.ndarray) and not network.rest.any():
        a, b = weights[even, even], weights[even + 1, even]
        same = np.zeros_like(weights)
        same[even, even] = same[even + 1, even + 1] = a
        same[even + 1, even], same[even, even + 1] = b, -b
        close = np.abs(weights - same).max() <= 1e-12 * max(1.0, np.abs(weights).max())
        if close and (a < 1).all() and (b >= 0).all():
            return tau / (1 - a), b / tau, check.positive(tau, "tau")
    raise ValueError(
        "`parameters` = 'decay_times' and 'frequencies' are those of a network of "
        "oscillators; make one with Reservoir.oscillators."
    )
