"""Which network? The certified κ* ascended in the numbers that make a network.

κ*(θ) = max_{u,v} κ(u, v; θ) is solved and certified at every θ; by the envelope theorem its
gradient is ∂κ/∂θ at the solved pair. It is exact: through the kernels by a sweep forward
and one back, through the propagators by the derivative of the matrix exponential, and
through the covariance of noise inside by a Lyapunov equation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from .. import _validation as check
from .._progress import Bar, display
from .._repr import Shown
from .._threads import rows_of, with_few_threads
from ..echo_state import EchoStateNetwork
from ..optimizers import Projections
from ..reservoir import Reservoir
from ..rest import UnstableError
from ..stimuli import Stimuli
from .network_parameters import Family, make_family
from .network_task import Task, split_stimuli

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
        White noise inside the network, as `greenfold.noise.state_covariance` takes it;
        κ* is then that under the noise (continuous time).
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
    >>> from greenfold.diagnosis import optimize_reservoir
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
