"""What an unfolded network is: its numbers, when it is read, and the schedule of both."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from .._repr import Shown
from ..echo_state import EchoStateNetwork
from .linear_order import LinearOrder
from .propagators import Propagators, build, plan_quadrature
from .schedule import Schedule, plan_readout, steps_until


@dataclass(frozen=True, eq=False, repr=False)
class Unfolded(Shown):
    """The part of `Unfolding` that answers nothing about stimuli yet."""

    reservoir: Any
    n_steps: int
    dt: float
    order: int
    tol: float
    readout_weights: np.ndarray
    readout_time: float | None
    _panel: Propagators = field(repr=False)
    _n_panels: int = field(repr=False)

    def _facts(self) -> dict[str, Any]:
        weighted = np.flatnonzero(self.readout_weights)
        if self.readout_time is not None:
            read = f"at {self.readout_time:.4g}"
        elif len(weighted) > 1:
            read = f"weighted over {len(weighted)} steps"
        else:
            read = f"at {(weighted[0] + 1) * self.dt:.4g}"
        return {
            "reservoir": self.reservoir,
            "steps": self.n_steps,
            "dt": self.dt,
            "order": self.order,
            "read": read,
        }

    def __getstate__(self) -> dict[str, Any]:
        # Without what is made again when it is needed, which would be most of it.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def duration(self) -> float:
        """T = KΔ."""
        return self.n_steps * self.dt

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.reservoir.n_neurons

    @property
    def n_inputs(self) -> int:
        """Rows of the input projection: the neurons."""
        return self.n_neurons

    @property
    def n_outputs(self) -> int:
        """Entries of the readout: the neurons."""
        return self.n_neurons

    @property
    def is_linear(self) -> bool:
        """Whether this is the linear order."""
        return self.order == 0

    @property
    def degree(self) -> int:
        """Degree of the states as polynomials of the stimulus."""
        if self.order == 0:
            return 1
        return self.order * (len(self.reservoir.coefficients) - 2) + 1

    @property
    def readout(self) -> Any:
        """The readout, in the form that `with_readout` takes."""
        return self.readout_weights if self.readout_time is None else self.readout_time

    @property
    def linear(self) -> Self:
        """The same unfolding at order 0."""
        return self if self.order == 0 else self._order_zero

    @cached_property
    def _order_zero(self) -> Self:
        return replace(self, order=0)

    @property
    def maps(self) -> LinearOrder:
        """The three maps of order 0, as the optimisers use them: without checks."""
        return self._maps

    @cached_property
    def _maps(self) -> LinearOrder:
        return LinearOrder(self.linear._schedule, self.n_steps)

    def with_readout(self, readout: Any) -> Self:
        """The same unfolding read at another time, or integrated over time.

        Parameters
        ----------
        readout : float or array_like (n_steps,)
            As in `unfold`. The propagators are shared.
        """
        weights, time = plan_readout(readout, self.n_steps, self.dt)
        if time is not None and isinstance(self.reservoir, EchoStateNetwork):
            raise ValueError(
                f"`readout` = {time:g} lies inside a step of {self.dt:g}, of which a "
                "network in discrete time knows the end only; give a multiple of the step."
            )
        return replace(self, readout_weights=weights, readout_time=time)

    @cached_property
    def _schedule(self) -> Schedule:
        order = self.order
        used, length = steps_until(self.readout_weights, self.readout_time, self.dt)
        tail, tail_panels = None, 0
        if length:
            tail_panels, n_nodes = plan_quadrature(self.reservoir, length, order, self.tol)
            tail = build(self.reservoir, length / tail_panels, n_nodes, order)
        return Schedule(
            self._panel,
            self._n_panels,
            used,
            self.readout_weights[:used],
            tail,
            tail_panels,
            order,
            self.reservoir.coefficients if order else (0.0,),
        )
