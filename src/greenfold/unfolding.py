"""Recurrence into feed-forward: the network unfolded to a chosen order.

`unfold` computes the propagators once; the `Unfolding` it returns answers with states,
Green's functions, kernels and gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import _validation as check
from . import batch, stepping, volterra
from ._arrays import like, namespace
from .kernels import Kernel, collapse, sweep_back
from .propagators import Propagators, build, plan_quadrature
from .reservoir import Reservoir


def unfold(
    reservoir: Reservoir,
    *,
    n_steps: int,
    dt: float,
    order: int = 0,
    readout: Any = None,
    tol: float = 1e-10,
) -> Unfolding:
    """Unfold a reservoir for stimuli of ``n_steps`` constant steps of length ``dt``.

    Parameters
    ----------
    reservoir : Reservoir
    n_steps : int
        Number of steps K of the stimuli.
    dt : float
        Length Δ of a step, in the unit of ``reservoir.tau``.
    order : int
        Order of the expansion in the non-linearity: 0 is the linear network, 1 the
        paper's O(α), any higher order works. A linear gain has no higher orders, so
        that every order gives the same result.
    readout : None, float or array_like (n_steps,)
        When the state is read: at the end T = KΔ (None), at a time in (0, T], or as a
        weighted sum over the ends of the steps (time-integrated readout).
    tol : float
        Relative error allowed to the quadrature inside a step (`plan_quadrature`).

    Returns
    -------
    Unfolding

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import Gain, Reservoir, unfold
    >>> reservoir = Reservoir.random(50, gain=Gain.quadratic(0.05), rng=0)
    >>> unfolding = unfold(reservoir, n_steps=20, dt=0.5, order=1)
    >>> X = np.random.default_rng(1).standard_normal((3, 20))
    >>> unfolding.states(X, np.ones(50) / np.sqrt(50)).shape
    (3, 50)
    """
    if not isinstance(reservoir, Reservoir):
        raise TypeError(f"`reservoir` must be a Reservoir; got {type(reservoir).__name__}.")
    n_steps = check.count(n_steps, "n_steps")
    dt = check.positive(dt, "dt")
    order = check.count(order, "order", minimum=0)
    tol = check.positive(tol, "tol")
    if reservoir.gain.is_linear:
        order = 0
    n_panels, n_nodes = plan_quadrature(reservoir, dt, order, tol)
    needed = 8.0 * reservoir.n_neurons**2 * n_nodes * (3 + (n_nodes if order >= 2 else 0))
    if needed > 8 * batch.TABLE_BYTES:
        raise MemoryError(
            f"`order` = {order} needs {needed / 2**30:.1f} GiB of propagators for "
            f"{reservoir.n_neurons} neurons; lower `order`, or raise `tol`."
        )
    panel = build(reservoir, dt / n_panels, n_nodes, order)
    weights = np.zeros(n_steps)
    weights[-1] = 1.0
    base = Unfolding(reservoir, n_steps, dt, order, tol, weights, None, panel, n_panels)
    return base if readout is None else base.with_readout(readout)


@dataclass(frozen=True, eq=False)
class Unfolding:
    """A reservoir unfolded into a feed-forward map from stimuli to states.

    Made by `unfold`. Stimuli ``X`` have shape (n_cases, n_steps) or (n_cases,
    n_channels, n_steps), the input projection ``u`` shape (n_neurons,) or (n_neurons,
    n_channels). Batch work runs in float64 in the array namespace and on the device of
    ``X``.

    Attributes
    ----------
    reservoir : Reservoir
    n_steps : int
    dt : float
    order : int
    tol : float
    readout_weights : ndarray (n_steps,)
        Weight of the state at the end of each step in the readout.
    readout_time : float or None
        Set where the readout is inside a step, which `readout_weights` cannot express.
    """

    reservoir: Reservoir
    n_steps: int
    dt: float
    order: int
    tol: float
    readout_weights: np.ndarray
    readout_time: float | None
    _panel: Propagators = field(repr=False)
    _n_panels: int = field(repr=False)

    @property
    def duration(self) -> float:
        """T = KΔ."""
        return self.n_steps * self.dt

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.reservoir.n_neurons

    @property
    def readout(self) -> Any:
        """The readout, in the form that `with_readout` takes."""
        return self.readout_weights if self.readout_time is None else self.readout_time

    @cached_property
    def linear(self) -> Unfolding:
        """The same unfolding at order 0."""
        return self if self.order == 0 else replace(self, order=0)

    def with_readout(self, readout: Any) -> Unfolding:
        """The same unfolding read at another time, or integrated over time.

        Parameters
        ----------
        readout : float or array_like (n_steps,)
            As in `unfold`. The propagators are shared.
        """
        value = check.host_array(readout, "readout", ndim=(0, 1))
        if value.ndim == 1:
            if value.shape != (self.n_steps,):
                raise ValueError(
                    "`readout` weights must have one entry per step, shape "
                    f"({self.n_steps},); got shape {value.shape}."
                )
            if not value.any():
                raise ValueError("`readout` weights are all zero; nothing would be read.")
            return replace(self, readout_weights=value, readout_time=None)
        time = float(value)
        if not 0 < time <= self.duration * (1 + 1e-12):
            raise ValueError(
                f"`readout` must be a time in (0, {self.duration:g}]; got {time:g}."
            )
        steps = time / self.dt
        nearest = round(steps)
        weights = np.zeros(self.n_steps)
        if nearest >= 1 and abs(steps - nearest) < 1e-9 * max(1.0, steps):
            weights[nearest - 1] = 1.0
            return replace(self, readout_weights=weights, readout_time=None)
        return replace(self, readout_weights=weights, readout_time=time)

    @cached_property
    def _schedule(self) -> stepping.Schedule:
        shared = (self.order, self.reservoir.gain.coefficients)
        if self.readout_time is None:
            used = int(np.flatnonzero(self.readout_weights)[-1]) + 1
            return stepping.Schedule(
                self._panel,
                self._n_panels,
                used,
                self.readout_weights[:used],
                None,
                0,
                *shared,
            )
        whole = int(self.readout_time // self.dt)
        length = self.readout_time - whole * self.dt
        n_panels, n_nodes = plan_quadrature(self.reservoir, length, self.order, self.tol)
        tail = build(self.reservoir, length / n_panels, n_nodes, self.order)
        weights = np.zeros(whole)
        return stepping.Schedule(
            self._panel, self._n_panels, whole, weights, tail, n_panels, *shared
        )

    def _inputs(self, X: Any, u: Any) -> tuple[Any, np.ndarray]:
        X = check.stimuli(X, self.n_steps)
        return X, check.input_projection(u, self.n_neurons, X.shape[1])

    def has_kernels_of_all_neurons(self, n_channels: int = 1) -> bool:
        """Whether `response` exists for this order and readout and fits into memory."""
        schedule = self._schedule
        if self.order == 0:
            return True
        if not batch.has_kernels(schedule) or schedule.tail is not None:
            return False
        needed = volterra.table_bytes(schedule, self.n_neurons, n_channels)
        return needed <= batch.TABLE_BYTES

    def response(self, u: Any, reference: Any = None) -> volterra.Response:
        """Kernels of all neurons for one input projection (orders 0 and 1).

        Parameters
        ----------
        u : array_like (n_neurons,) or (n_neurons, n_channels)
        reference : array, optional
            The result lives in its namespace and on its device; NumPy by default.
        """
        self._require_kernels()
        schedule = self._schedule
        if self.order and schedule.tail is not None:
            raise ValueError(
                "`readout` lies inside a step, where the kernels of all neurons exist at "
                "order 0 only; choose the end of a step, or use `states` and `kernels`."
            )
        projection = check.input_projection(u, self.n_neurons)
        if self.order:
            self._require_memory(
                "the kernels of all neurons",
                volterra.table_bytes(schedule, self.n_neurons, projection.shape[1]),
            )
        if reference is None:
            return volterra.respond(schedule, projection)
        return volterra.respond(schedule.on(reference), like(projection, reference))

    def states(
        self, X: Any, u: Any, *, trajectories: bool = False, orders: bool = False
    ) -> Any:
        """Network states at the readout.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        u : array_like (n_neurons,) or (n_neurons, n_channels)
        trajectories : bool
            Return the states at the end of every step instead of the readout.
        orders : bool
            Return the orders 0 … ``order`` apart instead of their sum.

        Returns
        -------
        array (n_cases, n_neurons)
            With ``trajectories``: (n_cases, n_steps, n_neurons). With ``orders``: one
            more leading axis of length ``order`` + 1.
        """
        X, projection = self._inputs(X, u)
        schedule = self._schedule
        if trajectories:
            schedule = self.with_readout(np.ones(self.n_steps))._schedule
        return batch.states(
            schedule, X, projection, trajectories=trajectories, orders=orders
        )

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None) -> Any:
        """Gradient with respect to the projections, by the adjoint.

        For any function L of the states Y = ``states(X, u)``, give ``cotangent`` =
        ∂L/∂Y and get ∂L/∂u. For a function of the read-out z = Y v, give v and
        ``cotangent`` = ∂L/∂z and get (∂L/∂u, ∂L/∂v). Cases are processed in batches of
        bounded memory; the cost is about twice that of `states`.

        Parameters
        ----------
        X, u
            As in `states`.
        cotangent : array (n_cases, n_neurons), or (n_cases,) with ``v``
        v : array_like (n_neurons,), optional

        Returns
        -------
        u_gradient : array, shaped like ``u``
        v_gradient : array (n_neurons,)
            Only with ``v``.
        """
        X, projection = self._inputs(X, u)
        xp = namespace(X)
        readout = None if v is None else like(check.readout_vector(v, self.n_neurons), X)
        wanted = (X.shape[0],) if readout is not None else (X.shape[0], self.n_neurons)
        host = check.host_array(cotangent, "cotangent")
        if host.shape != wanted:
            raise ValueError(
                f"`cotangent` must have shape {wanted}; got shape {host.shape}."
            )
        cotangent = (
            xp.astype(cotangent, xp.float64) if _same(cotangent, X) else like(host, X)
        )
        u_bar, v_bar = batch.pullback(self._schedule, X, projection, cotangent, readout)
        u_bar = xp.reshape(u_bar, np.shape(u)) if np.ndim(u) == 1 else u_bar
        return u_bar if readout is None else (u_bar, v_bar)

    def kernels(self, u: Any, v: Any) -> Kernel:
        """Collapse the reservoir with both projections into plain kernels.

        Parameters
        ----------
        u : array_like (n_neurons,) or (n_neurons, n_channels)
        v : array_like (n_neurons,)

        Returns
        -------
        Kernel
            For the readout of this unfolding; see `with_readout` for other times.
        """
        self._require_kernels()
        projection = check.input_projection(u, self.n_neurons)
        readout = check.readout_vector(v, self.n_neurons)
        return collapse(self._schedule, projection, readout, self.n_steps)

    def readout_response(self, v: Any) -> np.ndarray:
        """Linear response seen from the readout: row n is l_n with a_n = l_n · u.

        Parameters
        ----------
        v : array_like (n_neurons,) or (n_neurons, n_vectors)

        Returns
        -------
        ndarray (n_steps, n_neurons) or (n_steps, n_neurons, n_vectors)
            Steps after the readout are zero.
        """
        vectors = check.host_array(v, "v", ndim=(1, 2))
        check.readout_vector(vectors.reshape(len(vectors), -1)[:, 0], self.n_neurons)
        return sweep_back(self.linear._schedule, vectors, self.n_steps)

    def drive_block(self, signal: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Linear states Σ_n G⁽¹⁾_n u x_n after one signal, for several input projections.

        Parameters
        ----------
        signal : ndarray (n_channels, n_steps)
        u : ndarray (n_neurons, n_channels, n_vectors)

        Returns
        -------
        ndarray (n_neurons, n_vectors)
        """
        y = np.zeros((u.shape[2], u.shape[0]))
        read = np.zeros_like(y)
        for step, panel, weight in self.linear._schedule.walk():
            y = y @ panel.E + np.tensordot(signal[:, step], u, axes=(0, 1)).T @ panel.F
            if weight:
                read = read + weight * y
        return read.T

    def greens1(self) -> np.ndarray:
        """First-order Green's function G⁽¹⁾_ipn, binned (paper, `Greensfunction`).

        Returns
        -------
        ndarray (n_steps, n_neurons, n_neurons)
            Entry [n, i, p]: state of neuron i at the readout after unit input to neuron p
            in step n.
        """
        n = self.n_neurons
        self._require_memory("G⁽¹⁾", 8.0 * self.n_steps * n**2)
        linear = volterra.respond(self.linear._schedule, np.eye(n)).linear
        found = np.zeros((self.n_steps, n, n))
        found[: len(linear)] = linear.transpose(0, 2, 1)
        return found

    def greens2(self) -> np.ndarray:
        """Second-order Green's function G⁽²⁾_ipqnm, binned (paper, `G2-general`).

        For small networks only: it has N³ K² entries. It contains the factor α.

        Returns
        -------
        ndarray (n_neurons, n_neurons, n_neurons, n_steps, n_steps)
            Entry [i, p, q, n, m]: coefficient of x_n x_m u_p u_q in the state of neuron i;
            symmetric under (p, n) ↔ (q, m).
        """
        n, k = self.n_neurons, self.n_steps
        if self.order == 0:
            raise ValueError(
                "`order` of this unfolding is 0, a linear network without G⁽²⁾; unfold a "
                "reservoir of quadratic gain with order=1."
            )
        self._require_kernels()
        # The kernels and the result are held at the same time.
        self._require_memory("G⁽²⁾", 8.0 * 3.5 * n**3 * k**2)
        _, pairs = volterra.full_kernels(self.response(np.eye(n)), k)
        # One channel for each neuron: (p, n, q, m, i).
        return pairs.reshape(n, k, n, k, n).transpose(4, 0, 2, 1, 3)

    def _require_kernels(self) -> None:
        if not batch.has_kernels(self._schedule):
            raise ValueError(
                f"`order` = {self.order} of the gain {self.reservoir.gain.name} has terms "
                "beyond the square of the stimulus, which plain kernels do not hold; "
                "unfold a linear or quadratic gain with order 0 or 1, or use `states`."
            )

    def _require_memory(self, what: str, needed: float) -> None:
        if needed > batch.TABLE_BYTES:
            raise MemoryError(
                f"{what} would need {needed / 2**30:.3g} GiB for {self.n_neurons} neurons "
                f"and {self.n_steps} steps, more than the {batch.TABLE_BYTES / 2**30:g} "
                "GiB allowed; use `states`, `kernels` and `pullback`, which never form it."
            )


def _same(value: Any, reference: Any) -> bool:
    """Whether ``value`` is already an array of the namespace of ``reference``."""
    try:
        return namespace(value) is namespace(reference) and hasattr(value, "shape")
    except TypeError:
        return False
