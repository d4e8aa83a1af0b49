"""States and gradients of many stimuli: the cheaper of two routes, in bounded memory.

`stepping` carries every case through the network; `all_neurons` computes the kernels
of all neurons once and applies them to every case. The functions here choose, cut the cases
into batches, and move the propagators to where the stimuli live.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.arrays import batches, like, namespace, working_bytes
from . import state_kernels as all_neurons
from . import stepping
from .schedule import Schedule

#: Tables of kernels beyond this many bytes are not formed.
TABLE_BYTES = 2**30


def has_kernels(schedule: Schedule) -> bool:
    """Whether the state is at most quadratic in the stimulus."""
    return schedule.order == 0 or (schedule.order == 1 and len(schedule.coefficients) == 3)


def require_kernels(schedule: Schedule, gain: str) -> None:
    """Refuse what plain kernels do not hold."""
    if not has_kernels(schedule):
        raise ValueError(
            f"`order` = {schedule.order} of the gain {gain} has terms beyond the square of "
            "the stimulus, which plain kernels do not hold; unfold a linear or quadratic "
            "gain with order 0 or 1, or use `states`."
        )


def require_memory(what: str, needed: float, n_neurons: int, n_steps: int) -> None:
    """Refuse tables beyond `TABLE_BYTES`."""
    if needed > TABLE_BYTES:
        raise MemoryError(
            f"{what} would need {needed / 2**30:.3g} GiB for {n_neurons} neurons and "
            f"{n_steps} steps, more than the {TABLE_BYTES / 2**30:g} GiB allowed; use "
            "`states`, `kernels` and `pullback`, which never form it."
        )


def prefers_kernels(
    schedule: Schedule, n_cases: int, n_neurons: int, n_channels: int
) -> bool:
    """Whether kernels of all neurons are cheaper than stepping every case.

    Both are counted in multiplications: per case, stepping takes 2 (q + 1) N² a panel,
    the kernels (K C)²/2 · N after (K C)²/2 · (q + 1) N² once.
    """
    n = n_neurons
    if schedule.order == 0:
        return True
    if not has_kernels(schedule) or schedule.tail is not None:
        return False
    if all_neurons.table_bytes(schedule, n, n_channels) > TABLE_BYTES:
        return False
    q, panels = len(schedule.panel.nodes), schedule.n_panels
    pairs = (schedule.n_inputs * n_channels) ** 2 / 2
    by_kernels = pairs * n * (n_cases + (q + 1) * n * panels)
    by_steps = n_cases * schedule.n_inputs * panels * 2 * (q + 1) * n**2
    return by_kernels < by_steps


def states(
    schedule: Schedule,
    X: Any,
    u: np.ndarray,
    *,
    trajectories: bool = False,
    orders: bool = False,
    kernels: bool | None = None,
) -> Any:
    """Read-out states, or trajectories, of checked stimuli.

    Parameters
    ----------
    schedule : Schedule
        On the host.
    X : array (n_cases, n_channels, n_steps)
    u : ndarray (n_neurons, n_channels)
    trajectories, orders : bool
        As in `Unfolding.states`.
    kernels : bool, optional
        Force one of the two routes.
    """
    if kernels is None:
        kernels = not trajectories and prefers_kernels(schedule, X.shape[0], *u.shape)
    xp = namespace(X)
    if kernels:
        compute = _by_kernels(schedule, X, u)
        size = _bytes_by_kernels(schedule, u)
    else:
        compute = _by_steps(schedule, X, u, trajectories)
        size = schedule.bytes_per_case(len(u), adjoint=trajectories)
    found = []
    for part in batches(X.shape[0], size, working_bytes(X)):
        checked = check.finite_batch(X[part, ...], xp, part.start)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            parts = compute(checked)
            found.append(xp.stack(parts) if orders else sum(parts[1:], parts[0]))
        if not bool(xp.all(xp.isfinite(found[-1]))):
            raise OverflowError(
                f"the states of order {schedule.order} exceed floating point; scale `X` or "
                "`u` down."
            )
    if len(found) == 1:
        return found[0]
    return xp.concat(found, axis=1 if orders else 0)


def _by_kernels(schedule: Schedule, X: Any, u: np.ndarray) -> Callable:
    response = all_neurons.respond(schedule.on(X), like(u, X))
    return lambda part: all_neurons.states(response, part[:, :, : schedule.n_inputs])


def _by_steps(schedule: Schedule, X: Any, u: np.ndarray, trajectories: bool) -> Callable:
    there, projection, xp = schedule.on(X), like(u, X), namespace(X)

    def compute(part: Any) -> list[Any]:
        read, steps, _ = stepping.forward(
            there, part, projection, trajectories=trajectories
        )
        return [xp.stack(s, axis=1) for s in steps] if trajectories else read

    return compute


def _bytes_by_kernels(schedule: Schedule, u: np.ndarray) -> float:
    """Working memory of one case on the route through kernels."""
    width = schedule.n_inputs * u.shape[1]
    return 8.0 * (2 * len(u) + 2 * width + (width**2 if schedule.order else 0))


def pullback(
    schedule: Schedule,
    X: Any,
    u: np.ndarray,
    cotangent: Any,
    v: Any = None,
    *,
    kernels: bool | None = None,
) -> tuple[Any, Any]:
    """Gradients with respect to u and, where given, v.

    Parameters
    ----------
    schedule, X, u, kernels
        As in `states`.
    cotangent : array (n_cases, n_neurons), or (n_cases,) with ``v``
        In the namespace of ``X``.
    v : array (n_neurons,), optional
        In the namespace of ``X``.

    Returns
    -------
    u_bar : array (n_neurons, n_channels)
    v_bar : array (n_neurons,)
        Zero without ``v``.
    """
    if kernels is None:
        kernels = prefers_kernels(schedule, X.shape[0], *u.shape)
    xp = namespace(X)
    there, projection = schedule.on(X), like(u, X)
    v_bar = xp.zeros_like(projection[:, 0])
    room = working_bytes(X)
    if kernels:
        response = all_neurons.respond(there, projection)
        linear_bar = xp.zeros_like(response.linear)
        pairs_bar = None if response.pairs is None else xp.zeros_like(response.pairs)
        for part in batches(X.shape[0], _bytes_by_kernels(schedule, u), room):
            batch = check.finite_batch(X[part, ...], xp, part.start)
            batch, bar = batch[:, :, : schedule.n_inputs], cotangent[part, ...]
            if v is not None:
                read = all_neurons.states(response, batch)
                v_bar = v_bar + bar @ sum(read[1:], read[0])
                bar = bar[:, None] * v[None, :]
            linear_part, pairs_part = all_neurons.states_pullback(response, batch, bar)
            linear_bar = linear_bar + linear_part
            pairs_bar = None if pairs_bar is None else pairs_bar + pairs_part
        return all_neurons.pullback(response, linear_bar, pairs_bar), v_bar
    u_bar = xp.zeros_like(projection)
    for part in batches(X.shape[0], schedule.bytes_per_case(len(u), adjoint=True), room):
        batch = check.finite_batch(X[part, ...], xp, part.start)
        read, _, kept = stepping.forward(there, batch, projection, keep=True)
        bar = cotangent[part, ...]
        if v is not None:
            v_bar = v_bar + bar @ sum(read[1:], read[0])
            bar = bar[:, None] * v[None, :]
        u_bar = u_bar + stepping.pullback(there, batch, projection, kept, bar)
    return u_bar, v_bar
