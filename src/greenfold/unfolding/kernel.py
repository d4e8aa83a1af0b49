"""A reservoir with both projections fixed is a plain kernel of the stimulus.

    z = a · x                      (order 0)
    z = a · x + xᵀ C x             (order 1, quadratic gain)

These kernels are how predictions are made; the network is only run to check them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._base import checks as check
from .._base import codec
from .._base.arrays import batches, like, namespace, working_bytes
from .._base.printing import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Shown, codec.Saved, kind="kernel"):
    """The collapsed predictor of one pair of projections.

    Attributes
    ----------
    linear : ndarray (n_channels, n_steps)
        a, in order of time.
    quadratic : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        C, symmetric under the exchange of its two (channel, step) pairs.

    Notes
    -----
    Steps after the readout have zero weight.
    """

    linear: np.ndarray
    quadratic: np.ndarray | None = None

    def __post_init__(self) -> None:
        linear = check.host_array(self.linear, "linear", ndim=(2,))
        object.__setattr__(self, "linear", linear)
        if self.quadratic is None:
            return
        quadratic = check.host_array(self.quadratic, "quadratic", ndim=(4,))
        if quadratic.shape != (*linear.shape, *linear.shape):
            raise ValueError(
                f"`quadratic` must have shape {(*linear.shape, *linear.shape)} to match "
                f"`linear`; got {quadratic.shape}."
            )
        object.__setattr__(self, "quadratic", quadratic)

    def _facts(self) -> dict[str, Any]:
        return {
            "channels": len(self.linear),
            "steps": self.n_steps,
            "order": 0 if self.quadratic is None else 1,
        }

    @property
    def n_steps(self) -> int:
        """Number of steps of the stimuli."""
        return self.linear.shape[1]

    def decision_values(self, X: Any) -> Any:
        """Read-out z of each stimulus.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Any array namespace; the result lives where ``X`` does.

        Returns
        -------
        array (n_cases,), float64
        """
        X = check.stimuli(X, self.n_steps)
        n_channels = self.linear.shape[0]
        if X.shape[1] != n_channels:
            raise ValueError(
                f"`X` must have {n_channels} channel(s), as the kernel has; "
                f"got shape {tuple(X.shape)}."
            )
        xp = namespace(X)
        size = self.linear.size
        a = like(self.linear.reshape(size), X)
        C = None if self.quadratic is None else like(self.quadratic.reshape(size, size), X)
        found = []
        for part in batches(
            X.shape[0], 8.0 * size * (3 if C is not None else 2), working_bytes(X)
        ):
            batch = check.finite_batch(X[part, ...], xp, part.start)
            flat = xp.reshape(batch, (batch.shape[0], size))
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                z = flat @ a
                if C is not None:
                    z = z + xp.sum((flat @ C) * flat, axis=1)
            found.append(check.finite_result(z, xp))
        return xp.concat(found) if len(found) > 1 else found[0]

    def predict(self, X: Any) -> Any:
        """Class ±1 of each stimulus: the sign of its decision value, +1 at zero."""
        z = self.decision_values(X)
        xp = namespace(z)
        return xp.where(z >= 0, xp.ones_like(z), -xp.ones_like(z))


_AXES = ("channels", "steps")
KERNEL = codec.describe(
    "kernel",
    Kernel,
    linear=codec.Numbers(*_AXES),
    quadratic=codec.Maybe(codec.Numbers(*_AXES, *_AXES)),
)
