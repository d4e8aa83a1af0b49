"""How the states of one piece of the series are made, and how a gradient comes back.

A *passage* goes to where the pieces are, once, and stays there: u and v follow at every
evaluation. What its `back` returns for the pieces is added up; `finish` makes the gradient
of the sum.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

import numpy as np

from .._arrays import namespace, to_host
from ..systems import KernelsOfAll, QuadraticSystem, System
from .design import Design


class Passage(Protocol):
    """From series to states, and back."""

    def states(self, design: Design, u: np.ndarray) -> Any:
        """Y, (n_cases, n_outputs), in float64 where the series live."""
        ...

    def back(self, design: Design, u: np.ndarray, bar: Any, v: np.ndarray) -> np.ndarray:
        """The share of one piece in ∂κ/∂u, from ∂κ/∂z; to be added to the others."""
        ...

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """∂κ/∂u, (n_inputs, n_channels), from the shares of all pieces."""
        ...


class SteppedPassage:
    """By the states and the pullback that every system has.

    Parameters
    ----------
    system : System
    options : dict
        Further arguments of both.
    single : bool
        Hand the series over in single precision.
    """

    def __init__(self, system: System, *, single: bool = False, **options: Any) -> None:
        self._system, self._single, self._options = system, single, options

    def _series(self, design: Design) -> Any:
        xp = namespace(design.X)
        return xp.astype(design.X, xp.float32) if self._single else design.X

    def states(self, design: Design, u: np.ndarray) -> Any:
        """States."""
        found = self._system.states(self._series(design), u, **self._options)
        xp = namespace(found)
        return xp.astype(found, xp.float64, copy=False)

    def back(self, design: Design, u: np.ndarray, bar: Any, v: np.ndarray) -> np.ndarray:
        """The gradient of the piece."""
        X = self._series(design)
        found = self._system.pullback(X, u, bar, v, **self._options)[0]
        return to_host(found).astype(np.float64, copy=False)

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The sum itself."""
        del u, v
        return total


class KernelPassage:
    """By the kernels of all outputs, made once for each u wherever there are pieces."""

    def __init__(self, system: QuadraticSystem) -> None:
        self._system = system
        self._lock = Lock()
        self._latest: tuple[bytes, KernelsOfAll] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_system": self._system}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_system"])

    def _at(self, u: np.ndarray, reference: Any = None) -> KernelsOfAll:
        key = u.tobytes()
        with self._lock:  # the threads of a worker need the same ones
            if self._latest is None or self._latest[0] != key:
                self._latest = key, self._system.kernels_of_all(u, reference)
            return self._latest[1]

    def states(self, design: Design, u: np.ndarray) -> Any:
        """States."""
        # The products of the series are not kept: they are larger than the series.
        return self._at(u, design.X).states_of(design.X, None)

    def back(self, design: Design, u: np.ndarray, bar: Any, v: np.ndarray) -> np.ndarray:
        """∂κ/∂C of the piece and below it ∂κ/∂a, (D + 1, D)."""
        del u, v
        a_bar, C_bar = design.cotangents_of_kernels(bar)
        return np.concatenate([C_bar, a_bar[None]])

    def finish(self, total: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Through the kernels back to u."""
        kernels = self._at(u)
        shape = u.shape[1], total.shape[1] // u.shape[1]
        C_bar, a_bar = total[:-1].reshape(*shape, *shape), total[-1].reshape(shape)
        return kernels.pull(v, a_bar, C_bar)
