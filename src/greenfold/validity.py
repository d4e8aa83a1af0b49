"""Check a perturbation expansion by the size of its orders and by simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._base import checks as check
from ._base.arrays import Array, to_host
from ._base.threads import with_few_threads
from .math.margins import gaussian_soft_margin, state_moments
from .math.sphere import maximize_on_sphere
from .networks import matrices, spectra
from .networks.echo_state import EchoStateNetwork
from .networks.reservoir import Reservoir
from .simulation import simulate
from .stimuli.base import Stimuli, signs_of
from .unfolding.unfolding import Unfolding

#: An expansion is trusted if its next order is below the first share of the last order and
#: changes the soft margin by less than the second. On the simulated network, the soft
#: margin and the accuracy may drop by at most the third and the fourth, and the soft margin
#: rise by at most the fifth. The drops are stricter than the promised 10 % and one point,
#: because only some series are simulated.
_SMALL, _MARGIN_CHANGE = 0.5, 0.1
_SIMULATED_LOSS, _SIMULATED_POINTS, _SIMULATED_GAIN = 0.05, 0.005, 0.15
#: Multiple of these losses from which on a smaller non-linearity is no longer advised.
_HOPELESS = 20.0
#: Relative tolerance of the simulation; the diagnosis needs only one per cent.
_RTOL = 1e-5
#: Factor per step of the search for a trustworthy non-linearity.
_DESCENT = 0.8
#: Largest number of series on which the change of κ is measured, if it is not exact, and
#: the approximate number of products allowed. The check then costs less than the
#: optimisation.
_MARGIN_SERIES, _PRODUCTS = 1000, 1.5e8
#: Fewest and most trajectories to look at, their size in bytes, and how many of their
#: states to look at.
_MIN_SERIES, _MAX_SERIES, _PATH_BYTES = 20, 50, 2**25
_N_STATES = 40


class ExpansionWarning(UserWarning):
    """A warning that the perturbation expansion is not valid at this non-linearity."""


@dataclass(frozen=True)
class Validity:
    """An assessment of how far you can trust an unfolding at one input projection.

    Attributes
    ----------
    order : int
        Order k of the expansion.
    largest_eigenvalue : float
        Largest Re λ̃ of the linearised connectivity W_ij φ'(y_j) over some
        trajectories (paper, supplement "Linearized connectivity"); it must stay below 1.
    next_order, state_error : float
        Size of order k + 1 at the readout relative to order k, and to the whole state (root
        mean square).
    soft_margin_error : float
        Relative change of κ, at the same u and v, when order k + 1 is added. Higher orders
        add to it: with ``next_order`` near a third, κ changed two to six times as much on
        the simulated network.
    trustworthy : bool
        Whether Re λ̃ < 1, the orders fall (next_order < 0.5), the next order changes κ by
        less than 10 %, and the simulated network keeps κ and the accuracy: κ may be at
        most 5 % lower, or 15 % higher.
    scale : float
        Factor on the non-linearity (on α, for a quadratic gain) at which the criteria would
        hold; 1 if they hold already, or if κ is too small a difference for any factor to
        help.
    simulated_loss : float or None
        Share of κ lost on the simulated network at the same u and v (negative if it gains,
        infinite if the simulation diverges). None if the network is too large to simulate.
    simulated_points : float or None
        Accuracy lost on ``n_simulated`` series, with the decision plane midway between the
        classes.
    """

    order: int
    largest_eigenvalue: float
    next_order: float
    state_error: float
    soft_margin_error: float
    trustworthy: bool
    scale: float
    simulated_loss: float | None = None
    simulated_points: float | None = None
    n_simulated: int = 0

    def __str__(self) -> str:
        verdict = "trustworthy" if self.trustworthy else "NOT trustworthy"
        # The lines fit a page. λ has no tilde, because few fonts render it well.
        return (
            f"order {self.order} is {verdict}: the largest Re λ along the trajectories is "
            f"{self.largest_eigenvalue:.3f};\n"
            f"  the next order is {self.next_order:.1%} of order {self.order}; it changes "
            f"the state by {self.state_error:.1%}\n"
            f"  and the soft margin by {self.soft_margin_error:.1%};\n  {self._simulated()}"
        )

    def _simulated(self) -> str:
        if self.simulated_loss is None or self.simulated_points is None:
            return "not simulated, because the network is large"
        if not np.isfinite(self.simulated_loss):
            return f"in a simulation of {self.n_simulated} series, the network diverges"
        margin, points = (
            f"{abs(lost):.1%} {'lower' if lost >= 0 else 'higher'}"
            for lost in (self.simulated_loss, self.simulated_points)
        )
        changes = f"the soft margin is {margin} and the accuracy {points}"
        return f"in a simulation of {self.n_simulated} series, {changes}"


@with_few_threads(lambda expansion: expansion.n_outputs)
def assess(
    expansion: Unfolding,
    stimuli: Stimuli,
    u: ArrayLike,
    v: ArrayLike,
    *,
    eta: float = 10.0,
    soft_margin: float | None = None,
) -> Validity:
    """Return how far you can trust the expansion at given projections.

    Parameters
    ----------
    expansion : Unfolding
        An unfolding of order ≥ 1.
    stimuli : GaussianStimuli or SampleStimuli
        For Gaussian classes, an exact integration rule is used if it has fewer than 6000
        points. Otherwise, at most 1000 series are used, either drawn or evenly chosen.
    u, v : array_like
    eta : float
    soft_margin : float, optional
        κ at these projections, if known.
    """
    wanted = "be GaussianStimuli, SampleStimuli or another subclass of Stimuli"
    check.instance(stimuli, Stimuli, "stimuli", wanted)
    stimuli.match(expansion)
    eta = check.positive(eta, "eta")
    k = expansion.order
    check.must(k, "expansion", "have order 1 or more to be judged", "order 0, linear")
    if soft_margin is not None:
        soft_margin = float(check.host_array(soft_margin, "soft_margin", ndim=(0,)))
    else:
        soft_margin = gaussian_soft_margin(*stimuli.moments(expansion, u), v, eta).value
    n_outputs = expansion.n_outputs
    within = _PRODUCTS / (expansion.n_steps * n_outputs**2)
    n_series = int(np.clip(within, _MIN_SERIES, _MARGIN_SERIES))
    # The diagnosis needs only one per cent, so a loose and cheap quadrature suffices.
    here, higher = (expansion.at_order(order, tol=1e-3) for order in (k, k + 1))
    points = stimuli.points(higher.degree, n_series)
    orders = higher.states(points.X, u, orders=True)
    relative = orders / max(float(np.abs(orders).max()), 1e-300)  # keeps the squares finite
    size = np.sqrt((relative**2).mean(axis=(1, 2)))
    last, following = size[k], size[k + 1]
    next_order = float(following / last) if last > 0 else 0.0
    whole = np.sqrt((relative.sum(0) ** 2).mean())
    state_error = float(following / whole) if whole > 0 else 0.0
    path_bytes = 8.0 * (k + 1) * expansion.n_steps * n_outputs
    n_paths = int(np.clip(_PATH_BYTES / path_bytes, _MIN_SERIES, _MAX_SERIES))
    some = np.arange(len(points.X))[:: max(1, -(-len(points.X) // n_paths))]
    paths = here.states(points.X[some], u, trajectories=True, orders=True)
    paths = paths.reshape(k + 1, -1, n_outputs)
    eigenvalue = _largest_eigenvalue(expansion.reservoir, paths, 1.0)
    both = (points.moments(states) for states in (orders[:-1].sum(0), orders.sum(0)))
    with np.errstate(over="ignore", invalid="ignore"):
        moments = list(both)
        change = np.inf  # if the squares of the orders overflow
        if all(np.isfinite(Sigma).all() for _, Sigma in moments):
            before, after = (gaussian_soft_margin(*pair, v, eta).value for pair in moments)
            change = _share(abs(after - before), soft_margin)
    falls = eigenvalue < 1 and next_order < _SMALL
    looked = _look(expansion, stimuli, u, v, eta, soft_margin, n_series)
    losses, seen = [change / _MARGIN_CHANGE], dict[str, Any]()
    if looked is not None:
        loss, lost, error, n_simulated = looked
        # With few series, a single one that changes sides says little.
        losses += [loss / _SIMULATED_LOSS, max(0.0, lost - error) / _SIMULATED_POINTS]
        losses.append(-loss / _SIMULATED_GAIN)
        seen.update(simulated_loss=loss, simulated_points=lost, n_simulated=n_simulated)
    scale = 1.0 if falls else _safe_scale(expansion.reservoir, paths, next_order)
    # The loss falls at least in proportion to the non-linearity.
    if 1 <= max(losses) < _HOPELESS:
        scale *= 0.9 / max(losses)
    return Validity(
        order=k,
        largest_eigenvalue=eigenvalue,
        next_order=next_order,
        state_error=state_error,
        soft_margin_error=change,
        trustworthy=bool(falls and max(losses) < 1),
        scale=scale,
        **seen,
    )


def _look(
    expansion: Unfolding,
    stimuli: Stimuli,
    u: ArrayLike,
    v: ArrayLike,
    eta: float,
    soft_margin: float,
    n_series: int,
) -> tuple[float, float, float, int] | None:
    """Return relative loss of κ, loss of accuracy and its error, in simulation.

    The unfolded and the simulated network read the same series, so the scatter of both
    cancels. The result is None if too few series could be simulated quickly.
    """
    if n_series <= _MIN_SERIES:
        return None
    points = stimuli.points(None, n_series)
    readout = check.readout_vector(v, expansion.n_outputs)
    unfolded = expansion.states(points.X, u)
    signs = np.sign(points.first)
    try:
        simulated = _simulated(expansion, points.X, u, rtol=_RTOL)
    except FloatingPointError:
        return np.inf, np.inf, 0.0, len(signs)
    margins, right = list[float](), list[np.ndarray]()
    for states in (unfolded, simulated):
        margins.append(gaussian_soft_margin(*points.moments(states), readout, eta).value)
        z = states @ readout
        middle = (z[signs > 0].mean() + z[signs < 0].mean()) / 2
        right.append(signs * (z - middle) > 0)
    weight = points.second / points.second.sum()
    gone = right[0].astype(float) - right[1]
    loss = _share(margins[0] - margins[1], soft_margin)
    # A series that changes sides by chance counts with its weight, in either direction.
    error = float(np.sqrt((weight**2) @ gone**2))
    return loss, float(weight @ gone), error, len(signs)


def _simulated(
    expansion: Unfolding,
    X: Any,
    u: ArrayLike,
    engine: str = "scipy",
    rtol: float | None = None,
) -> np.ndarray:
    """Return the states of the full network at the readout of an expansion."""
    network, dt = expansion.reservoir, expansion.dt
    if (time := expansion.readout_time) is not None:
        whole = int(time / dt)
        lengths = np.full(whole + 1, dt)
        lengths[-1] = time - whole * dt  # the last step ends at the readout
        return to_host(
            simulate(network, X[..., : whole + 1], u, lengths, engine, rtol=rtol)
        )
    dt = None if isinstance(network, EchoStateNetwork) else dt
    paths = simulate(network, X, u, dt, engine, trajectories=True, rtol=rtol)
    return np.tensordot(expansion.readout_weights, to_host(paths), axes=(0, 1))


def _largest_eigenvalue(reservoir: Reservoir, paths: np.ndarray, scale: float) -> float:
    """Return the largest Re λ̃ over the states furthest from rest, for f times ``scale``.

    Scaling f by s scales order k of the trajectories, ``paths[k]``, by s^k.
    """
    states = np.tensordot(scale ** np.arange(len(paths)), paths, axes=1)
    states = states[np.argsort((states**2).sum(1))[-_N_STATES:]]
    slope = reservoir.gain.derivative(reservoir.rest)
    slopes = slope + scale * (reservoir.gain.derivative(reservoir.rest + states) - slope)
    moved = (matrices.scaled_columns(reservoir.weights, row) for row in slopes)
    return max(spectra.largest(reservoir.mode_matrix(one), "real part") for one in moved)


def _safe_scale(reservoir: Reservoir, paths: np.ndarray, next_order: float) -> float:
    """Return the factor on f at which both criteria hold at this u.

    The ratio of two orders is proportional to the factor. The search ends, because the
    network is stable at rest.
    """
    scale = 0.9 * _SMALL / next_order if next_order >= _SMALL else 1.0
    while _largest_eigenvalue(reservoir, paths, scale) >= 1:
        scale *= _DESCENT
    return float(scale)


def _share(part: float, whole: float) -> float:
    """Return a part relative to the whole; infinite if the whole is zero."""
    if whole == 0:
        return np.inf if part > 0 else 0.0
    return float(part / abs(whole))


@dataclass(frozen=True)
class SimulatedCheck:
    """A comparison of the same projections on the unfolded and the simulated network."""

    #: Largest deviation of the unfolded from the simulated states, relative to the largest
    #: simulated state.
    state_error: float
    #: Soft margin with the given v, and with v solved again on the simulated states.
    unfolded: float
    simulated: float
    simulated_best: float
    #: Share of series on the correct side of the plane through the origin.
    unfolded_accuracy: float
    simulated_accuracy: float


@with_few_threads(lambda unfolding: unfolding.n_neurons)
def check_by_simulation(
    unfolding: Unfolding,
    X: ArrayLike | Array,
    labels: ArrayLike | Array,
    u: ArrayLike,
    v: ArrayLike,
    *,
    eta: float = 10.0,
    engine: str = "scipy",
) -> SimulatedCheck:
    """Evaluate the same projections on the unfolded and on the simulated network.

    Parameters
    ----------
    unfolding : Unfolding
        With a readout inside a step, only ``engine="scipy"``.
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        Series as they enter the network (after `SampleStimuli.transform`).
    labels : array_like (n_cases,)
        Two different values of any kind; the one that sorts last is ζ = +1.
    u, v : array_like
    eta : float
    engine : {"scipy", "nest"}
        See `simulate`.
    """
    inside = unfolding.readout_time is not None and engine != "scipy"
    wanted = 'be read at the end of a step (or use engine="scipy")'
    check.must(not inside, "unfolding", wanted, "a readout inside a step")
    # Do the cheap half first: it checks the arguments before the simulation runs.
    readout = check.readout_vector(v, unfolding.n_neurons)
    unfolded = to_host(unfolding.states(X, u))
    signs = signs_of(labels, len(unfolded))
    value = gaussian_soft_margin(*state_moments(unfolded, signs), readout, eta).value
    simulated = _simulated(unfolding, X, u, engine)
    M, Sigma = state_moments(simulated, signs)
    best = maximize_on_sphere(M, eta * Sigma)
    return SimulatedCheck(
        state_error=_share(np.abs(unfolded - simulated).max(), np.abs(simulated).max()),
        unfolded=value,
        simulated=gaussian_soft_margin(M, Sigma, readout, eta).value,
        simulated_best=float(best.value),
        unfolded_accuracy=float((signs * (unfolded @ readout) > 0).mean()),
        simulated_accuracy=float((signs * (simulated @ readout) > 0).mean()),
    )
