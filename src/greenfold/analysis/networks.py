"""Improve a network by gradient ascent of the certified κ* in its parameters.

κ*(θ), the maximum of κ(u, v; θ) over u and v, is solved at each θ. By the envelope theorem,
its gradient is ∂κ/∂θ at the solved pair, computed by finite differences. For oscillators,
one difference serves all modes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import minimize

from .._base import checks as check
from .._base.printing import Shown
from .._base.progress import Bar, display, watched
from .._base.threads import with_few_threads
from ..devices.device import Device
from ..devices.noise import covariance, state_covariance
from ..networks import matrices, spectra
from ..networks.echo_state import AnyNetwork, EchoStateNetwork
from ..networks.reservoir import Reservoir
from ..networks.resting_state import UnstableError
from ..optimizers.convex import Convex
from ..optimizers.linear import LinearProblem
from ..optimizers.result import Projections
from ..optimizers.run import optimize
from ..stimuli.base import Stimuli
from ..stimuli.samples import SampleStimuli
from ..unfolding.linear import modal_step
from ..unfolding.unfolding import unfold

#: Parameters with one number per oscillator.
_MODES = ("decay_times", "frequencies")
#: Largest scale of the weights, relative to the scale at which the network is unstable.
_STABLE = 0.99
#: Limits on the scale of the weights, relative to the given weights, if stability sets
#: none.
_WEAKEST, _STRONGEST = 1e-3, 10.0
#: Limits on time constants and decay times, in units of the duration.
_FASTEST, _SLOWEST = 1e-3, 10.0
_SMALLEST_LEAK = 1e-3
#: Step of the finite differences in a logarithm, which balances truncation and rounding.
_STEP = 1e-5
#: Relative gap to the bound at which a network counts as solved. By then, the pair itself
#: is solved to rounding.
_GAP = 5e-4


@dataclass(frozen=True, eq=False)
class Family:
    """A network as a function of the parameters ``names``; the others are ``given``.

    The ascent uses one coordinate per parameter. A change of the coordinate by one
    multiplies the parameter by e; for a frequency, it adds one radian per decay time of the
    given network.
    """

    given: dict[str, np.ndarray]
    names: tuple[str, ...]
    make: Callable[[dict[str, np.ndarray]], Any]
    #: (low, high) by name, one pair per number.
    ends: dict[str, list[tuple[float, float]]]

    def _coordinates(self, values: Mapping[str, Any]) -> np.ndarray:
        found = []
        for name in self.names:
            if name == "frequencies":
                found.append(values[name] * self.given["decay_times"])
            else:
                found.append(np.log(values[name] / self.given[name]))
        return np.concatenate(found)

    @property
    def start(self) -> np.ndarray:
        """Return the coordinates of the given network."""
        return self._coordinates(self.given)

    @property
    def bounds(self) -> np.ndarray:
        """Return the lowest and highest coordinates, (n_coordinates, 2)."""
        lows, highs = ({k: np.array(v)[:, i] for k, v in self.ends.items()} for i in (0, 1))
        return np.stack([self._coordinates(lows), self._coordinates(highs)], axis=1)

    def _parameters(self, x: np.ndarray) -> dict[str, np.ndarray]:
        found, cuts = dict(self.given), np.cumsum([len(self.given[k]) for k in self.names])
        for name, part in zip(self.names, np.split(x, cuts[:-1]), strict=True):
            if name == "frequencies":
                found[name] = part / self.given["decay_times"]
            else:
                found[name] = self.given[name] * np.exp(part)
        return found

    def values(self, x: np.ndarray) -> dict[str, Any]:
        """Return the parameters by name, in their own units."""
        found = self._parameters(x)
        return {k: found[k] if k in _MODES else float(found[k][0]) for k in self.names}

    def network(self, x: np.ndarray) -> Any:
        """Return the network at x; raise `UnstableError` if it has growing modes."""
        return self.make(self._parameters(x))


def make_family(
    network: AnyNetwork,
    parameters: Iterable[str] | None,
    bounds: Mapping[str, Any] | None,
    duration: float,
    dt: float,
) -> Family:
    """Return the family of networks in the named parameters; see `optimize_reservoir`."""
    discrete = isinstance(network, EchoStateNetwork)
    allowed = ("leak", "g") if discrete else ("tau", "g", *_MODES)
    if isinstance(parameters, str):
        parameters = (parameters,)
    names = allowed[:2] if parameters is None else tuple(parameters)
    for name in names:
        what = f"be among {', '.join(allowed)} for this network"
        check.must(name in allowed, "parameters", what, repr(name))
    once = names and len(set(names)) == len(names)
    check.must(once, "parameters", "name each parameter once, and at least one", names)
    modes = set(_MODES) & set(names)
    leave = "leave out 'g', because decay times and frequencies determine the weights"
    check.must(not modes or "g" not in names, "parameters", leave, names)
    for name in bounds or {}:
        check.must(name in names, "bounds", "name only entries of `parameters`", repr(name))
    describe: Any = _leaky if discrete else _oscillators if modes else _scaled
    given, limits, make = describe(network)
    times = (_FASTEST * duration, _SLOWEST * duration)
    limits |= {"tau": times, "decay_times": times, "frequencies": (0.0, np.pi / dt)}
    numbers = {name: np.atleast_1d(value) for name, value in given.items()}
    ends = {
        name: [_interval(bounds or {}, name, limits[name], now) for now in numbers[name]]
        for name in names
    }
    return Family(numbers, names, make, ends)


def _interval(
    bounds: Mapping[str, Any], name: str, limits: tuple[float, float], now: float
) -> tuple[float, float]:
    """Return bounds of a parameter that include its value in the given network."""
    if name not in bounds:
        return min(limits[0], now), max(limits[1], now)
    try:
        low, high = (float(one) for one in bounds[name])
    except (TypeError, ValueError):
        low, high = 0.0, 0.0
    fits, got = 0 <= low < high < np.inf, repr(bounds[name])
    fits = fits and (low > 0 or name == "frequencies")
    check.must(fits, "bounds", f"have two finite numbers for {name!r}, 0 < low < high", got)
    wanted = f"include the {name!r} of the given network, {now:g}"
    check.must(low <= now <= high, "bounds", wanted, f"{low:g} to {high:g}")
    check.must(name != "leak" or high <= 1, "bounds", f"lie in (0, 1] for {name!r}", got)
    return low, high


def _scaled(network: Reservoir) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Return start, limits and constructor for τ (or its mean) and the weight scale g."""
    # With unequal time constants, the eigenvalues of W do not determine stability.
    unequal = isinstance(network.tau, np.ndarray)
    growth = 0.0 if unequal else network.spectral_abscissa

    def make(values: dict[str, np.ndarray]) -> Reservoir:
        tau = network.tau * float(values["tau"][0] / network.mean_tau)
        return replace(network, weights=values["g"] * network.weights, tau=tau)

    limits = {"g": (_WEAKEST, _strongest(growth))}
    return {"tau": network.mean_tau, "g": 1.0}, limits, make


def _strongest(growth: float) -> float:
    """Return the largest factor on weights whose largest Re λ is ``growth``."""
    return min(_STRONGEST, _STABLE / growth) if growth > 0 else _STRONGEST


def _leaky(network: EchoStateNetwork) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Return start, limits and constructor for the (largest) leak and weight scale g."""
    most = float(np.max(network.leak))
    leak = np.broadcast_to(np.asarray(network.leak, dtype=float), (network.n_neurons,))
    sloped = matrices.scaled_rows(network.linear_step[1] / leak, network.weights)
    radius = spectra.largest(sloped, "absolute value")
    # Networks with |λ| < 1 are stable at every leak; other networks at smaller leaks only.
    limits = {
        "leak": (_SMALLEST_LEAK, 1.0 if radius < 1 else most),
        "g": (_WEAKEST, _strongest(radius) if radius < 1 else 1.0),
    }

    def make(values: dict[str, np.ndarray]) -> EchoStateNetwork:
        leak = np.minimum(network.leak * float(values["leak"][0] / most), 1.0)
        return replace(network, weights=values["g"] * network.weights, leak=leak)

    return {"leak": most, "g": 1.0}, limits, make


def _dense(network: Reservoir) -> np.ndarray:
    """Return the linear weights as a dense array, unless they are too large."""
    what, instead = "the choice of decay times and frequencies", "choose `tau` and `g`"
    return matrices.dense(network.linear_weights, what, instead)


def _oscillators(network: Reservoir) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Return start, limits and constructor for oscillators and the input scale τ."""
    weights, tau = _dense(network), network.tau

    def make(values: dict[str, np.ndarray]) -> Reservoir:
        frequencies, tau = np.maximum(values["frequencies"], 0.0), float(values["tau"][0])
        return Reservoir.oscillators(values["decay_times"], frequencies, tau, network.gain)

    if len(weights) % 2 == 0 and np.ndim(tau) == 0 and not network.rest.any():
        even = 2 * np.arange(len(weights) // 2)
        a, b = weights[even, even], weights[even + 1, even]
        same = np.kron(np.diag(a), np.eye(2)) + np.kron(np.diag(b), [[0, -1], [1, 0]])
        close = np.abs(weights - same).max() <= 1e-12 * max(1.0, np.abs(weights).max())
        if close and (a < 1).all() and (b >= 0).all():
            given = {"decay_times": tau / (1 - a), "frequencies": b / tau, "tau": tau}
            return given, {}, make
    raise ValueError(
        "`parameters` = 'decay_times' and 'frequencies' need a network of "
        "oscillators; make one with Reservoir.oscillators."
    )


def split_stimuli(
    stimuli: Stimuli, held_out: float | Stimuli | None, rng: np.random.Generator
) -> tuple[Stimuli, Stimuli | None]:
    """Return the stimuli for the choice and the stimuli for the report."""
    if held_out is None:
        return stimuli, None
    if isinstance(held_out, Stimuli):
        both = (held_out, stimuli)
        mine, wanted = (f"{one.n_channels} × {one.n_steps} values" for one in both)
        text = f"have series of {wanted}, as `stimuli` have"
        check.must(mine == wanted, "held_out", text, mine)
        return stimuli, held_out
    share = check.positive(held_out, "held_out")
    check.must(share < 1, "held_out", "be a share below 1", f"{share:g}")
    if not isinstance(stimuli, SampleStimuli):
        return stimuli, None
    return stimuli.split(share, rng)


@dataclass(frozen=True, eq=False)
class Task:
    """The task that scores a network; see `optimize_reservoir` for its attributes."""

    stimuli: Stimuli
    dt: float
    eta: float
    readout: Any = None
    noise: Any = None

    def solve(self, network: AnyNetwork) -> Projections:
        """Return the certified u and v of a network."""
        device, system = Device(state_noise=self._noise(network)), self.system(network)
        return optimize(system, self.stimuli, self.eta, Convex(gap=_GAP), device=device)

    def _noise(self, network: Any) -> np.ndarray | None:
        return None if self.noise is None else state_covariance(network, self.noise)

    def system(self, network: AnyNetwork) -> Any:
        """Return the linear order of a network."""
        n_steps = self.stimuli.n_steps
        return unfold(network, n_steps=n_steps, dt=self.dt, readout=self.readout)

    def margin(
        self, network: AnyNetwork, found: Projections, stimuli: Stimuli | None = None
    ) -> float:
        """Return κ of given projections on these or other stimuli, including noise."""
        given = stimuli or self.stimuli, self.eta, self._noise(network)
        problem = LinearProblem(self.system(network).maps, *given)
        return problem.margin(found.u.reshape(network.n_neurons, -1), found.v).value

    def gradient(self, family: Family, x: np.ndarray, found: Projections) -> np.ndarray:
        """Return dκ*/dx at a solved network, by the envelope theorem."""
        if set(_MODES) & set(family.names):
            return self._oscillator_gradient(family, x, found)
        gradient = np.zeros(len(x))
        for i, high in enumerate(family.bounds[:, 1]):
            # A step forward may exceed the largest leak, or the limit of stability.
            inside = x[i] + _STEP <= high
            rule = {1: 0.5, -1: -0.5} if inside else {0: 1.5, -1: -2.0, -2: 0.5}
            for steps, weight in rule.items():
                moved = x.copy()
                moved[i] += steps * _STEP
                gradient[i] += weight * self.margin(family.network(moved), found) / _STEP
        return gradient

    def _oscillator_gradient(
        self, family: Family, x: np.ndarray, found: Projections
    ) -> np.ndarray:
        """Return the gradient through the rates −1/T + iω, of which γ is a function."""
        network, values = family.network(x), family._parameters(x)
        T, tau, n = values["decay_times"], float(values["tau"][0]), network.n_neurons
        u, v = found.u.reshape(n, -1), found.v
        maps = self.system(network).maps
        problem = LinearProblem(maps, self.stimuli, self.eta)
        kernel = problem.kernel(u, v)
        d = problem.gradient_at(kernel)
        # Each γ depends on the rate of its own mode, so one step serves all modes.
        rates, step = 1j * values["frequencies"] - 1 / T, _STEP / self.dt / maps.n_steps
        up, down = (
            maps.modal(partial(modal_step, rates + one, 1 / tau)) for one in (step, -step)
        )
        moved = (problem.by_channel(d) @ (up - down) / (2 * step)).T
        by_rate = (v[::2] - 1j * v[1::2]) * ((u[::2] + 1j * u[1::2]) * moved).sum(1)
        slowed, turned = np.real(by_rate), -np.imag(by_rate)
        of_tau = -float(d @ kernel)
        if self.noise is not None:
            # Gradient of −(η/2) vᵀPv, with RP + PRᵀ = −Q, in R and in the scale of Q.
            R = (_dense(network) - np.eye(n)) / tau
            Q = covariance(self.noise, "noise", n) / tau**2
            P = solve_continuous_lyapunov(R, -Q)
            adjoint = solve_continuous_lyapunov(R.T, -np.outer(v, v))
            own = -self.eta * adjoint @ P
            of_tau += self.eta * float(np.vdot(adjoint, Q))
            even = 2 * np.arange(n // 2)
            slowed += own[even, even] + own[even + 1, even + 1]
            turned += own[even + 1, even] - own[even, even + 1]
        by_name = {
            "decay_times": slowed / T,
            "frequencies": turned / family.given["decay_times"],
            "tau": np.array([of_tau]),
        }
        return np.concatenate([by_name[name] for name in family.names])


#: The meaning of each status, in words.
MESSAGES = {
    "converged": "converged: no step improves the certified soft margin",
    "max_evaluations": "stopped at the limit of evaluations, before convergence",
    "interrupted": "interrupted; this is the best network found so far",
}


@dataclass(frozen=True, eq=False, repr=False)
class ReservoirPath(Shown):
    """The networks that an ascent of κ* visited, in order.

    Attributes
    ----------
    parameters : dict of ndarray
        Values by name, (n_evaluations,), or (n_evaluations, n_oscillators) if each
        oscillator has its own value. "g" is a factor on the given weights.
    soft_margin, upper_bound : ndarray (n_evaluations,)
        κ* on the series used for the choice, and a bound that no u and v of that network
        exceed.
    held_out : ndarray (n_evaluations,)
        κ of the same u and v on the held-out series; NaN if there are none.
    gradient : ndarray (n_evaluations, n_coordinates)
        ∂κ*/∂θ in the coordinates of the ascent: logarithms, and for frequencies radians per
        decay time of the given network.
    best : int
        Index of the evaluation with the largest κ*, which gave ``reservoir`` and
        ``projections``.
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
        """Return the status in words."""
        return MESSAGES[self.status]

    def _facts(self) -> dict[str, Any]:
        margin, outside = (
            f"{values[0]:.4g} → {values[self.best]:.4g}"
            for values in (self.soft_margin, self.held_out)
        )
        bound = float(self.upper_bound[self.best])
        facts = {"reservoir": self.reservoir, "soft_margin": margin, "upper_bound": bound}
        count = len(self.soft_margin)
        return {**facts, "held_out": outside, "evaluations": count, "status": self.status}


@with_few_threads(lambda reservoir: reservoir.n_neurons)
@watched
def optimize_reservoir(
    reservoir: Reservoir | EchoStateNetwork,
    stimuli: Stimuli,
    dt: float | None = None,
    parameters: Iterable[str] | None = None,
    *,
    eta: float = 10.0,
    held_out: float | Stimuli | None = 0.5,
    noise: ArrayLike | None = None,
    readout: ArrayLike | None = None,
    bounds: Mapping[str, Any] | None = None,
    n_starts: int = 1,
    max_evaluations: int = 20,
    tol: float = 1e-4,
    rng: np.random.Generator | int | None = None,
) -> ReservoirPath:
    """Improve a network by ascending the certified soft margin κ* in its parameters.

    At each step, it solves for u and v again and finds an upper bound for all other pairs.

    Parameters
    ----------
    reservoir : Reservoir or EchoStateNetwork
        The initial network; only its linear order matters.
    stimuli : SampleStimuli or GaussianStimuli
    dt : float
        Length of a step; 1 by default in discrete time.
    parameters : iterable of str, optional
        Parameters to change. By default "tau" (a common factor if time constants differ)
        and "g" (the scale of the weights, 1 as given); for an echo state network, "leak"
        and "g". A network of `Reservoir.oscillators` also has "decay_times" and
        "frequencies"; "tau" then only scales the input.
    eta : float
    held_out : float, Stimuli or None
        Share of the series of each class that is held out for the report; or stimuli for
        the report. Gaussian classes have no series to hold out and need none.
    noise : float or array_like, optional
        White noise inside the network, as in `greenfold.devices.noise.state_covariance`; κ*
        then includes the noise (continuous time).
    readout : float or array_like (n_steps,), optional
        As in `unfold`.
    bounds : mapping, optional
        (low, high) by name. By default, the weights are scaled up to 0.99 of instability.
    n_starts : int
        Number of networks to solve first: the given network and others drawn within the
        bounds. The ascent starts from the best of them. They count as evaluations.
    max_evaluations, tol
        Largest number of networks to solve, and the smallest relative gain of κ* per step
        that continues the ascent.
    rng : numpy Generator, int or None
        Source of randomness for the split and for further starts.

    Notes
    -----
    κ* is the maximum of smooth functions of θ and may have kinks where another pair takes
    over. κ* is V-shaped at a kink, so an ascent moves away from it. The maximum found is
    local. Ctrl-C returns the best network so far; before the first one it raises
    KeyboardInterrupt.
    `greenfold.progress` shows how many networks have been solved.

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
    kinds, wanted = Reservoir | EchoStateNetwork, "be a Reservoir or an EchoStateNetwork"
    check.instance(reservoir, kinds, "reservoir", wanted)
    check.instance(stimuli, Stimuli, "stimuli", "be SampleStimuli or GaussianStimuli")
    discrete = isinstance(reservoir, EchoStateNetwork)
    dt = check.positive(1.0 if dt is None and discrete else dt, "dt")
    if noise is not None and discrete:
        raise ValueError("`noise` inside the network needs a network in continuous time.")
    eta, tol = check.positive(eta, "eta"), check.positive(tol, "tol")
    n_starts = check.count(n_starts, "n_starts")
    most = check.count(max_evaluations, "max_evaluations")
    family = make_family(reservoir, parameters, bounds, stimuli.n_steps * dt, dt)
    source = check.generator(rng)
    chosen, reported = split_stimuli(stimuli, held_out, source)
    task = Task(chosen, dt, eta, readout, noise)
    with display() as shown, shown.bar("networks", most) as bar:
        return _Ascent(family, task, reported, most, bar).run(n_starts, tol, source)


class _BudgetSpent(Exception):
    pass


class _Solved(NamedTuple):
    #: Coordinates of the network.
    x: np.ndarray
    network: Any
    found: Projections
    gradient: np.ndarray
    held_out: float


@dataclass(eq=False)
class _Ascent:
    """One call of `optimize_reservoir`: its history and its stopping rule."""

    family: Family
    task: Task
    reported: Stimuli | None
    left: int
    bar: Bar
    solved: list[_Solved] = field(default_factory=list)

    def run(self, n_starts: int, tol: float, rng: np.random.Generator) -> ReservoirPath:
        """Ascend until κ* stops rising, the budget is spent, or Ctrl-C."""
        status = "converged"
        try:
            self._ascend(n_starts, tol, rng)
        except _BudgetSpent:
            status = "max_evaluations"
        except KeyboardInterrupt:
            if not self.solved:
                raise
            status = "interrupted"
        solved, best = self.solved, self.solved[self._best]
        if best.held_out < min(solved[0].held_out, 0.0):
            fell = f"from {solved[0].held_out:.3g} to {best.held_out:.3g}"
            what = f"the soft margin of the held-out series fell {fell}: the network was"
            cure = "fitted to few series; use more series, or fewer parameters"
            warnings.warn(f"{what} {cure}.", UserWarning, stacklevel=5)
        values = [self.family.values(one.x) for one in solved]
        return ReservoirPath(
            {k: np.array([one[k] for one in values]) for k in values[0]},
            np.array([one.found.soft_margin for one in solved]),
            np.array([one.found.upper_bound for one in solved], dtype=float),
            np.array([one.held_out for one in solved]),
            np.array([one.gradient for one in solved]),
            *(self._best, best.network, best.found, status),
        )

    def _ascend(self, n_starts: int, tol: float, rng: np.random.Generator) -> None:
        bounds = self.family.bounds
        self._solve(self.family.start)  # raises if the given network has a problem
        for _ in range(n_starts - 1):
            self._try(rng.uniform(*bounds.T))
        best = self.solved[self._best]
        size = max(abs(best.found.soft_margin), np.finfo(float).tiny)

        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            # −κ* in units of the start; an unstable network is worse than all others.
            here = self._try(x)
            if here is None:
                worst = min(one.found.soft_margin for one in self.solved)
                return 1.0 + max(1.0, -worst / size), np.zeros_like(x)
            return -here.found.soft_margin / size, -here.gradient / size

        # It stops if the budget is spent or the gain is below the tolerance.
        options = {"ftol": tol, "gtol": 1e-8, "maxiter": 10**6, "maxfun": 10**6}
        how = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": options}
        minimize(objective, best.x, **how)

    @property
    def _best(self) -> int:
        return int(np.argmax([one.found.soft_margin for one in self.solved]))

    def _try(self, x: np.ndarray) -> _Solved | None:
        """Return the solved network at x, or None if it is not stable."""
        for one in self.solved:
            if np.array_equal(one.x, x):
                return one
        try:
            return self._solve(x)
        except (UnstableError, OverflowError):
            return None

    def _solve(self, x: np.ndarray) -> _Solved:
        if not self.left:
            raise _BudgetSpent
        self.left -= 1
        task, network = self.task, self.family.network(x)
        found = task.solve(network)
        found.raise_if_interrupted()
        gradient, held_out = task.gradient(self.family, x, found), np.nan
        if self.reported is not None:
            held_out = task.margin(network, found, self.reported)
        self.solved.append(_Solved(x.copy(), network, found, gradient, held_out))
        self.bar.advance(1, f"κ* = {self.solved[self._best].found.soft_margin:.4g}")
        return self.solved[-1]
