"""What the optimisation of a regression returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import _archive
from .._repr import Shown
from .result import MESSAGES, relative_gap


@dataclass(frozen=True, eq=False, repr=False)
class RegressionProjections(Shown):
    """Input projection and readouts of a regression, with the loss they reach.

    Attributes
    ----------
    u : ndarray (n_inputs,) or (n_inputs, n_channels)
        Of unit norm.
    V : ndarray (n_outputs, n_targets)
        Readouts.
    gain : float
        J: what the variance of the targets falls by, less λ‖V‖².
    upper_bound : float or None
        No u and V reach a larger gain; None for a system that is not linear.
    loss : float
        Sum over targets of the mean squared error, plus λ‖V‖².
    loss_bound : float or None
        No u and V reach a smaller loss.
    r2 : ndarray (n_targets,)
        Share of each target's variance that is explained, readout noise of variance λ
        included.
    gap : float or None
        (upper_bound − gain), relative to the larger.
    status : str
        "certified", "relaxed", "converged", "solved" or "interrupted".
    starts : ndarray
        Gain that each start ended with.
    wall_time : float
    """

    u: np.ndarray
    V: np.ndarray
    gain: float
    upper_bound: float | None
    loss: float
    r2: np.ndarray
    status: str
    starts: np.ndarray = field(repr=False)
    wall_time: float = field(repr=False)

    @property
    def loss_bound(self) -> float | None:
        """The smallest loss that any u and V could have."""
        if self.upper_bound is None:
            return None
        return self.loss + self.gain - self.upper_bound

    @property
    def gap(self) -> float | None:
        """Relative distance to the upper bound."""
        if self.upper_bound is None:
            return None
        return relative_gap(self.upper_bound, self.gain)

    def save(self, path: str | Path) -> None:
        """Write the result to a file that holds no code; read it with `greenfold.load`."""
        arrays: dict[str, np.ndarray] = {}
        _archive.write(path, "regression", pack_regression(self, arrays), arrays)

    def _facts(self) -> dict[str, Any]:
        return {
            "gain": self.gain,
            "upper_bound": self.upper_bound,
            "loss": self.loss,
            "u": self.u.shape,
            "V": self.V.shape,
            "status": self.status,
        }


_ARRAYS = ("u", "V", "r2", "starts")
_NUMBERS = ("gain", "upper_bound", "loss", "wall_time")


def pack_regression(
    result: RegressionProjections, arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """A result for JSON, its arrays put into ``arrays``."""
    arrays |= {name: getattr(result, name) for name in _ARRAYS}
    return {name: getattr(result, name) for name in (*_NUMBERS, "status")}


def unpack_regression(
    content: _archive.Content, described: dict[str, Any] | None = None
) -> RegressionProjections:
    """The result in a file, or in a part of one that is described."""
    described = content.described if described is None else described
    if described["status"] not in MESSAGES:
        _archive.refuse(f"it has an unknown status {described['status']!r}.")
    numbers = {
        name: None if described[name] is None else float(described[name])
        for name in _NUMBERS
    }
    if not all(np.isfinite(one) for one in numbers.values() if one is not None):
        _archive.refuse("its numbers are not finite.")
    V = content.numbers("V", (None, None))
    u = content.arrays["u"]
    if u.ndim not in (1, 2):
        _archive.refuse(f"its array 'u' has shape {u.shape}.")
    made: dict[str, Any] = {
        "u": content.numbers("u", u.shape),
        "V": V,
        # Of a target that does not vary, no share of the variance is known.
        "r2": content.numbers("r2", (V.shape[1],), finite=False),
        "starts": content.numbers("starts", (None,)),
        "status": described["status"],
    }
    return RegressionProjections(**made, **numbers)  # pyright: ignore[reportArgumentType]
