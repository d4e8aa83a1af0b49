"""What follows from the linear maps of a system, for devices and networks of modes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, like, namespace
from ..systems import LinearSystem, System
from .kernel import Kernel
from .walk import checked_cotangent


class KnownByMaps(LinearSystem, System):
    """A linear system whose other methods follow from its three maps."""

    @abstractmethod
    def _carry_back(self, R_bar: np.ndarray) -> np.ndarray:
        """Return ∂L/∂u (n_inputs, n_channels), the adjoint of Rᵤ.

        ``R_bar`` is ∂L/∂Rᵤ (n_channels, n_steps, n_outputs).
        """

    @property
    def is_linear(self) -> bool:
        """Whether the system is linear, which it always is."""
        return True

    @property
    def degree(self) -> int:
        """Degree of the states as polynomials of the stimulus."""
        return 1

    @property
    def maps(self) -> KnownByMaps:
        """The system itself."""
        return self

    def _inputs(self, X: ArrayLike | Array, u: ArrayLike) -> tuple[Any, np.ndarray]:
        series = check.stimuli(X, self.n_steps)
        return series, check.input_projection(u, self.n_inputs, series.shape[1])

    def states(self, X: ArrayLike | Array, u: ArrayLike) -> Any:
        """Return the states at readout, (n_cases, n_outputs), on the device of ``X``."""
        series, projection = self._inputs(X, u)
        xp = namespace(series)
        flat = xp.reshape(check.finite_batch(series, xp), (series.shape[0], -1))
        return flat @ like(self.input_response(projection), series)

    def pullback(
        self,
        X: ArrayLike | Array,
        u: ArrayLike,
        cotangent: ArrayLike | Array,
        v: ArrayLike | None = None,
    ) -> Any:
        """Return the gradient with respect to the projections; see `Unfolding.pullback`."""
        series, projection = self._inputs(X, u)
        flat = check.host_array(series, "X").reshape(series.shape[0], -1)
        readout = None if v is None else check.readout_vector(v, self.n_outputs)
        bar = checked_cotangent(cotangent, flat, self.n_outputs, v)
        if readout is not None:
            d = (bar @ flat).reshape(projection.shape[1], -1)
            u_bar = (d @ self.readout_response(readout)).T.reshape(np.shape(u))
            return u_bar, (flat @ self.input_response(projection)).T @ bar
        R_bar = (flat.T @ bar).reshape(projection.shape[1], self.n_steps, -1)
        return self._carry_back(R_bar).reshape(np.shape(u))

    def kernels(self, u: ArrayLike, v: ArrayLike) -> Kernel:
        """Return the predictor a_(c,n) = vᵀ G_n u_c of one pair of projections u, v."""
        projection = check.input_projection(u, self.n_inputs)
        readout = check.readout_vector(v, self.n_outputs)
        return Kernel(np.ascontiguousarray((self.readout_response(readout) @ projection).T))
