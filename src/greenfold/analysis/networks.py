"""Which network? The certified κ* ascended in the numbers that make a network.

κ*(θ) = max_{u,v} κ(u, v; θ) is solved and certified at every θ; by the envelope theorem its
gradient is ∂κ/∂θ at the solved pair. It is exact: through the kernels by a sweep forward
and one back, through the propagators by the derivative of the matrix exponential, and
through the covariance of noise inside by a Lyapunov equation.

What a network is judged by: its certified κ*, the gradient, and series held out.

The numbers of a network that can be ascended: how they make it, and the way back.

Each parameter is walked in a coordinate of its own, in which a change by one is a change by
a factor e, or of a frequency by one radian in a decay time. A family knows the network at
every place and the gradient of a function of it, from that with respect to the rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import minimize

from .._base import checks as check
from .._base.printing import Shown
from .._base.progress import Bar, display
from .._base.threads import rows_of, with_few_threads
from ..devices.device import Device
from ..devices.noise import covariance, state_covariance
from ..networks.echo_state import EchoStateNetwork
from ..networks.reservoir import Reservoir
from ..networks.resting_state import UnstableError
from ..optimizers.linear import LinearProblem
from ..optimizers.result import Projections
from ..optimizers.run import optimize
from ..stimuli.base import Stimuli
from ..stimuli.samples import SampleStimuli
from ..unfolding.linear import Rates
from ..unfolding.unfolding import unfold

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


#: Relative gap to the bound at which a network counts as solved; the pair itself is solved
#: to rounding before.
_GAP = 1e-3


def split_stimuli(
    stimuli: Stimuli, held_out: Any, rng: np.random.Generator
) -> tuple[Stimuli, Stimuli | None]:
    """Stimuli to choose by, and others to report on, in the unit of the first.

    Parameters
    ----------
    stimuli : Stimuli
    held_out : float, Stimuli or None
        See `optimize_reservoir`.
    rng : numpy Generator
    """
    if held_out is None:
        return stimuli, None
    if isinstance(held_out, Stimuli):
        if (held_out.n_channels, held_out.n_steps) != (stimuli.n_channels, stimuli.n_steps):
            raise ValueError(
                f"`held_out` has series of {held_out.n_channels} × {held_out.n_steps} "
                f"values, but `stimuli` of {stimuli.n_channels} × {stimuli.n_steps}."
            )
        return stimuli, held_out
    share = check.positive(held_out, "held_out")
    if share >= 1:
        raise ValueError(f"`held_out` is a share below 1; got {share:g}.")
    if not isinstance(stimuli, SampleStimuli):
        return stimuli, None
    if stimuli.signs is None or stimuli._chunks is None or not stimuli._chunks.in_memory:
        raise ValueError(
            "`held_out` = a share needs the series in memory, and those of these stimuli "
            "are elsewhere or gone; give other stimuli to report on, or None."
        )
    sides: list[list[np.ndarray]] = [[], []]
    for sign in (-1, 1):
        index = rng.permutation(np.flatnonzero(stimuli.signs == sign))
        n_out = min(max(1, round(share * len(index))), len(index) - 1)
        if n_out < 1:
            raise ValueError(
                "`held_out` needs at least two series of either class; pass "
                "held_out=None to report none."
            )
        sides[0].append(index[n_out:])
        sides[1].append(index[:n_out])
    kept, out = (np.sort(np.concatenate(side)) for side in sides)
    as_given, labels = (
        stimuli._chunks.series[0],
        stimuli.classes[(stimuli.signs > 0).astype(int)],
    )
    weights = dict(zip(stimuli.classes.tolist(), stimuli.class_share, strict=True))
    scaled = stimuli.scale != 1 or stimuli.centre.any()
    chosen = SampleStimuli(
        as_given[kept],
        labels[kept],
        class_weight=weights,
        normalize="paper" if scaled else None,
        length=float(np.linalg.norm(stimuli.mu)) if scaled else 1.0,
    )
    reported = SampleStimuli(
        chosen.transform(as_given[out]), labels[out], class_weight=weights, normalize=None
    )
    return chosen, reported


@dataclass(frozen=True, eq=False)
class Task:
    """What a network is judged by.

    Attributes
    ----------
    stimuli : Stimuli
    dt, eta : float
    readout, noise
        As in `optimize_reservoir`.
    """

    stimuli: Stimuli
    dt: float
    eta: float
    readout: Any = None
    noise: Any = None

    def solve(self, network: Any) -> Projections:
        """Certified u and v of a network."""
        noisy = self.noise is not None
        device = Device(
            state_noise=state_covariance(network, self.noise) if noisy else None
        )
        return optimize(
            self.system(network), self.stimuli, self.eta, device=device, tol=_GAP
        )

    def system(self, network: Any) -> Any:
        """The linear order of a network."""
        return unfold(
            network, n_steps=self.stimuli.n_steps, dt=self.dt, readout=self.readout
        )

    def margin(self, network: Any, found: Projections, stimuli: Stimuli) -> float:
        """κ of solved projections on other stimuli, the noise included."""
        problem = LinearProblem(self.system(network).maps, stimuli, self.eta)
        a = problem.kernel(found.u.reshape(network.n_neurons, -1), found.v)
        cost = 0.0 if found.noise_cost is None else sum(found.noise_cost.values())
        return problem.margin_of_kernel(a).value - cost

    def gradient(self, family: Family, network: Any, found: Projections) -> np.ndarray:
        """dκ*/dx at a solved network, by the envelope theorem."""
        u, v = found.u.reshape(network.n_neurons, -1), found.v
        maps = self.system(network).maps
        problem = LinearProblem(maps, self.stimuli, self.eta)
        d = problem.by_channel(problem.gradient_at(problem.kernel(u, v)))
        if isinstance(network, EchoStateNetwork):
            ((_, bar),) = maps.step_pullback(u, v, d)
            return family.gradient(network, bar, u, 0.0)
        rates = rates_of(network, u)
        bar = maps.rates_pullback(rates, u, v, d)
        spread = 0.0
        if self.noise is not None:
            own, spread = self._noise_pullback(network, rates.own, v)
            bar = Rates(bar.own + own, bar.drive)
        return family.gradient(network, bar, u, spread)

    def _noise_pullback(
        self, network: Reservoir, R: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Of −(η/2) vᵀPv with RP + PRᵀ = −Q: with respect to R and to log Q."""
        n = network.n_neurons
        tau = np.broadcast_to(np.asarray(network.tau, dtype=float), (n,))
        Q = covariance(self.noise, "noise", n) / np.outer(tau, tau)
        P = solve_continuous_lyapunov(R, -Q)
        adjoint = solve_continuous_lyapunov(R.T, -np.outer(v, v))
        return -self.eta * adjoint @ P, -0.5 * self.eta * float(np.vdot(adjoint, Q))


#: What each status means, for people.
MESSAGES = {
    "converged": "no step improves the certified soft margin any further",
    "max_evaluations": "the limit of evaluations was reached before convergence",
    "interrupted": "interrupted; this is the best network found until then",
}


@dataclass(frozen=True, eq=False, repr=False)
class ReservoirPath(Shown):
    """The networks that an ascent of κ* has seen, one after the other.

    Attributes
    ----------
    parameters : dict of ndarray
        By name, (n_evaluations,), or (n_evaluations, n_oscillators) where each oscillator
        has its own. "g" is the factor on the weights given.
    soft_margin : ndarray (n_evaluations,)
        κ* on the series that were chosen by.
    upper_bound : ndarray (n_evaluations,)
        No u and v of that network reach a larger one.
    held_out : ndarray (n_evaluations,)
        κ of the same u and v on the series held out; NaN without such.
    gradient : ndarray (n_evaluations, n_coordinates)
        ∂κ*/∂θ in the coordinates of the ascent: logarithms, of frequencies radians in a
        decay time of the given network.
    best : int
        The evaluation of largest κ* on the series that were chosen by.
    reservoir : Reservoir or EchoStateNetwork
        The network there.
    projections : Projections
        u and v there.
    status, message : str
        "converged", "max_evaluations" or "interrupted".
    """

    parameters: dict[str, np.ndarray]
    soft_margin: np.ndarray
    upper_bound: np.ndarray
    held_out: np.ndarray
    gradient: np.ndarray
    best: int
    reservoir: Any
    projections: Projections
    status: str

    @property
    def message(self) -> str:
        """The status in words."""
        return MESSAGES[self.status]

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"reservoir": self.reservoir}
        facts |= {
            "soft_margin": f"{self.soft_margin[0]:.4g} → {self.soft_margin[self.best]:.4g}",
            "upper_bound": float(self.upper_bound[self.best]),
            "held_out": f"{self.held_out[0]:.4g} → {self.held_out[self.best]:.4g}",
            "evaluations": len(self.soft_margin),
        }
        return {**facts, "status": self.status}


@with_few_threads(rows_of)
def optimize_reservoir(
    reservoir: Reservoir | EchoStateNetwork,
    stimuli: Stimuli,
    dt: float | None = None,
    parameters: Iterable[str] | None = None,
    *,
    eta: float = 10.0,
    held_out: float | Stimuli | None = 0.5,
    noise: Any = None,
    readout: Any = None,
    bounds: Mapping[str, Any] | None = None,
    n_starts: int = 1,
    max_evaluations: int = 20,
    tol: float = 1e-4,
    rng: np.random.Generator | int | None = None,
) -> ReservoirPath:
    """Ascend the certified soft margin κ* in the numbers that make a network.

    At every step u and v are solved anew, with the bound on what any pair could reach.

    Parameters
    ----------
    reservoir : Reservoir or EchoStateNetwork
        Where to start. What counts is its linear order.
    stimuli : SampleStimuli or GaussianStimuli
    dt : float
        Length of a step; 1 by default in discrete time.
    parameters : iterable of str, optional
        What to ascend in: "tau" (of unequal time constants a common factor) and "g" (the
        scale of the weights, 1 as they are given), the default; of an echo state network
        "leak" and "g"; of a network of `Reservoir.oscillators` also "decay_times" and
        "frequencies" of each, with which "tau" only scales the input.
    eta : float
    held_out : float, Stimuli or None
        Share of the series, of either class, on which the network is not chosen but
        reported; or stimuli to report on. Gaussian classes have no series and need none.
    noise : float or array_like, optional
        White noise inside the network, as `greenfold.devices.noise.state_covariance`
        takes it; κ* is then that under the noise (continuous time).
    readout : float or array_like (n_steps,), optional
        As in `unfold`.
    bounds : mapping, optional
        (low, high) by name. By default weights are scaled up to 0.99 of instability.
    n_starts : int
        So many networks are solved first, the given one and others drawn between the
        bounds, and the best is ascended from. They count as evaluations.
    max_evaluations : int
        Networks that are solved, at most.
    tol : float
        Relative gain of κ* in a step that counts as none.
    rng : numpy Generator, int or None
        Of the split and of further starts.

    Returns
    -------
    ReservoirPath

    Notes
    -----
    κ* is the maximum of smooth functions of θ and may have kinks where another pair takes
    over; they point upwards, so that an ascent leaves them. Its maximum here is local.
    Ctrl-C returns the best network so far; before the first there is none, and
    KeyboardInterrupt is raised.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, Reservoir
    >>> from greenfold.analysis import optimize_reservoir
    >>> stimuli = GaussianStimuli.random(10, strength=1.0, rng=4)
    >>> start = Reservoir.random(12, rng=3)
    >>> path = optimize_reservoir(start, stimuli, 1.0, max_evaluations=6)
    >>> bool(path.soft_margin[path.best] > path.soft_margin[0])
    True
    >>> bool((path.soft_margin <= path.upper_bound).all())
    True
    """
    if not isinstance(reservoir, Reservoir | EchoStateNetwork):
        raise TypeError(
            "`reservoir` must be a Reservoir or an EchoStateNetwork; got "
            f"{type(reservoir).__name__}."
        )
    if not isinstance(stimuli, Stimuli):
        raise TypeError(
            "`stimuli` must be SampleStimuli or GaussianStimuli; got "
            f"{type(stimuli).__name__}."
        )
    discrete = isinstance(reservoir, EchoStateNetwork)
    dt = check.positive(1.0 if dt is None and discrete else dt, "dt")
    if noise is not None and discrete:
        raise ValueError("`noise` inside is known of networks in continuous time only.")
    eta, tol = check.positive(eta, "eta"), check.positive(tol, "tol")
    n_starts = check.count(n_starts, "n_starts")
    max_evaluations = check.count(max_evaluations, "max_evaluations")
    if isinstance(parameters, str):
        parameters = (parameters,)
    names = None if parameters is None else tuple(parameters)
    family = make_family(reservoir, names, bounds, stimuli.n_steps * dt, dt)
    source = check.generator(rng)
    chosen, reported = split_stimuli(stimuli, held_out, source)
    task = Task(chosen, dt, eta, readout, noise)
    with (
        display() as shown,
        shown.bar("networks", max_evaluations) as bar,
    ):
        ascent = _Ascent(family, task, reported, max_evaluations, bar)
        return ascent.run(n_starts, tol, source)


class _Spent(Exception):
    """Enough networks were solved."""


class _Seen(NamedTuple):
    """A network that was solved."""

    place: np.ndarray
    network: Any
    found: Projections
    gradient: np.ndarray
    held_out: float


class _Ascent:
    """One call of `optimize_reservoir`: what was seen, and when to stop."""

    def __init__(
        self,
        family: Family,
        task: Task,
        reported: Stimuli | None,
        max_evaluations: int,
        bar: Bar,
    ) -> None:
        self._family, self._task, self._reported = family, task, reported
        self._left, self._bar = max_evaluations, bar
        self._seen: list[_Seen] = []

    def run(self, n_starts: int, tol: float, rng: np.random.Generator) -> ReservoirPath:
        """Ascend until nothing is gained, the budget is spent, or Ctrl-C."""
        status = "converged"
        try:
            self._ascend(n_starts, tol, rng)
        except _Spent:
            status = "max_evaluations"
        except KeyboardInterrupt:
            if not self._seen:
                raise
            status = "interrupted"
        return self._path(status)

    def _ascend(self, n_starts: int, tol: float, rng: np.random.Generator) -> None:
        low, high = np.array(self._family.bounds).T
        self._solve(self._family.start)  # what is wrong with the network given is an error
        for _ in range(n_starts - 1):
            self._try(rng.uniform(low, high))
        best = self._seen[self._best]
        size = max(abs(best.found.soft_margin), np.finfo(float).tiny)

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            # −κ* in units of the start, and worse than all where it does not exist.
            seen = self._try(x)
            if seen is None:
                worst = min(one.found.soft_margin for one in self._seen)
                return 1.0 + max(1.0, -worst / size), np.zeros_like(x)
            return -seen.found.soft_margin / size, -seen.gradient / size

        minimize(
            objective,
            best.place,
            jac=True,
            method="L-BFGS-B",
            bounds=self._family.bounds,
            # The budget ends it, or a gain of less than the tolerance.
            options={"ftol": tol, "gtol": 1e-8, "maxiter": 10**6, "maxfun": 10**6},
        )

    @property
    def _best(self) -> int:
        return int(np.argmax([one.found.soft_margin for one in self._seen]))

    def _try(self, x: np.ndarray) -> _Seen | None:
        """The network at x, solved; None where it is not stable."""
        for seen in self._seen:
            if np.array_equal(seen.place, x):
                return seen
        try:
            return self._solve(x)
        except (UnstableError, OverflowError):
            return None

    def _solve(self, x: np.ndarray) -> _Seen:
        if not self._left:
            raise _Spent
        self._left -= 1
        task, network = self._task, self._family.network(x)
        found = task.solve(network)
        found.raise_if_interrupted()
        gradient = task.gradient(self._family, network, found)
        reported = (
            np.nan
            if self._reported is None
            else task.margin(network, found, self._reported)
        )
        seen = _Seen(x.copy(), network, found, gradient, reported)
        self._seen.append(seen)
        self._bar.advance(1, f"κ* = {self._seen[self._best].found.soft_margin:.4g}")
        return seen

    def _path(self, status: str) -> ReservoirPath:
        seen, best = self._seen, self._seen[self._best]
        values = [self._family.values(one.place) for one in seen]
        bounds = [one.found.upper_bound for one in seen]
        return ReservoirPath(
            parameters={k: np.array([one[k] for one in values]) for k in values[0]},
            soft_margin=np.array([one.found.soft_margin for one in seen]),
            upper_bound=np.array([np.nan if b is None else b for b in bounds]),
            held_out=np.array([one.held_out for one in seen]),
            gradient=np.array([one.gradient for one in seen]),
            best=self._best,
            reservoir=best.network,
            projections=best.found,
            status=status,
        )
