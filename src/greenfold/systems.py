"""What an optimiser asks of a system: a few maps, however they are computed.

A *system* turns a stimulus and an input projection u into states that a readout v weighs.
The linear problem and its certificate need only three maps (`LinearSystem`); the non-linear
problem needs only the states and their pullback (`System`). Derive your own system from
these classes. What not every system can do has a default, which returns None or False. u
has shape (n_inputs, n_channels) and v has shape (n_outputs,). A stimulus has n_channels ·
n_steps values, channel by channel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ._base.arrays import AnyArray, Array


class ResponseSum(Protocol):
    """The map G(d) = Σ_n d_n G_n from input projections to states after the signal d.

    ``matrix()`` returns G(d) as (n_outputs, n_channels · n_inputs), or None if it is too
    large to form. ``drive(u)`` returns states (n_outputs, n_vectors) for u (n_inputs,
    n_channels, n_vectors). ``pull(v)`` returns G(d)ᵀ v as (n_inputs, n_channels); a matrix
    v (n_outputs, n_vectors) adds an axis.
    """

    def matrix(self) -> np.ndarray | None: ...
    def drive(self, u: np.ndarray) -> np.ndarray: ...
    def pull(self, v: np.ndarray) -> np.ndarray: ...


class MatrixSum:
    """A `ResponseSum` that is a matrix (n_outputs, n_channels, n_inputs)."""

    def __init__(self, matrix: np.ndarray) -> None:
        self._matrix = matrix

    def matrix(self) -> np.ndarray:
        """Return the matrix with channels and inputs in one axis."""
        return self._matrix.reshape(len(self._matrix), -1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        """Return the states for several input projections."""
        return np.tensordot(self._matrix, u, axes=((1, 2), (1, 0)))

    def pull(self, v: np.ndarray) -> np.ndarray:
        """Return G(d)ᵀ v for one v or several."""
        return np.tensordot(self._matrix, v, axes=(0, 0)).swapaxes(0, 1)


class NormalModes(Protocol):
    """The invariant directions and planes that all G_n of a normal network share.

    ``responses`` γ (n_steps, n_blocks) holds the complex factor by which G_n multiplies
    each direction or plane, with a plane read as the complex numbers. ``vectors(x)``
    returns real vectors (n_neurons, …) for coordinates (n_blocks, …), such that vᵀ G_n u =
    Re Σ_b γ_nb conj(y_b) x_b for coordinates x of u and y of v.
    """

    @property
    def responses(self) -> np.ndarray: ...
    def vectors(self, coordinates: np.ndarray) -> np.ndarray: ...


class KernelsOfAll(Protocol):
    """The kernels of all outputs at one u, y = a·x + xᵀCx, with their gradients.

    ``read_steps`` steps of the stimuli reach the readout. ``full()`` returns a (D,
    n_outputs) and C (D, D, n_outputs), with D = n_channels · n_steps. ``states_of(X,
    products)`` returns the states of series (n_cases, n_channels, n_steps); ``products`` is
    a stored ``products(X)`` or None. ``pull(v, a_bar, C_bar)`` returns the gradient with
    respect to u from the cotangents of a v and C v.
    """

    @property
    def read_steps(self) -> int: ...
    def full(self) -> tuple[np.ndarray, np.ndarray]: ...
    def states_of(self, X: Array, products: Array | None) -> Any: ...
    def products(self, X: Array) -> Any: ...
    def pull(
        self, v: np.ndarray, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> np.ndarray: ...


class Sized(ABC):
    """An object with numbers of stimulus steps, of inputs (rows of u) and of outputs."""

    n_steps: int
    n_inputs: int
    n_outputs: int


def rows_of(system: Sized) -> int:
    """Return the number of rows of the largest matrices of a system."""
    return max(system.n_inputs, system.n_outputs)


class LinearSystem(Sized):
    """A linear system with kernels a = vᵀ G_n u; its optimum over u and v can be certified.

    A matrix v (n_outputs, n_vectors) adds an axis to what `readout_response` returns.
    """

    @abstractmethod
    def input_response(self, u: np.ndarray) -> np.ndarray:
        """Return Rᵤ (n_channels · n_steps, n_outputs): the states are ``x @ Rᵤ``."""

    @abstractmethod
    def readout_response(self, v: np.ndarray) -> np.ndarray:
        """Return L_v (n_steps, n_inputs): the kernels are ``L_v @ u``."""

    @abstractmethod
    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """Return G(d) for weights d (n_channels, n_steps) of the steps."""

    @property
    def n_products(self) -> int | None:
        """Number of vectors multiplied by a sparse W so far; None if W is not used."""
        return None

    def reduced(self, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return vᵀ G_n u (n_steps, r, k) for v (n_outputs, r) and u (n_inputs, k)."""
        made = np.empty((self.n_steps, v.shape[1], u.shape[1]))
        if v.shape[1] < u.shape[1]:
            for column, one in enumerate(v.T):
                made[:, column] = self.readout_response(one) @ u
        else:
            for column in range(u.shape[1]):
                made[:, :, column] = self.input_response(u[:, column : column + 1]) @ v
        return made

    def beside(self, series: Array) -> LinearSystem:
        """Return the same system, with its products on the device of some series."""
        del series
        return self

    def modes(self) -> NormalModes | None:
        """Return the modes if the system is normal and knows them.

        With modes, the joint optimum over u and v is a convex problem.
        """
        return None


class System(Sized):
    """A system, linear or not, as the optimisers see it."""

    @property
    @abstractmethod
    def is_linear(self) -> bool:
        """Whether `maps` describes the whole system, or only its answer to weak stimuli."""

    @property
    @abstractmethod
    def degree(self) -> int | None:
        """Degree of the states as polynomials of the stimulus; None if they are none."""

    @property
    @abstractmethod
    def maps(self) -> LinearSystem:
        """The linear system for weak stimuli."""

    @abstractmethod
    def states(self, X: AnyArray, u: ArrayLike) -> Any:
        """Return the states (n_cases, n_outputs) at the readout."""

    @abstractmethod
    def pullback(
        self, X: AnyArray, u: ArrayLike, cotangent: Array, v: ArrayLike | None = None
    ) -> Any:
        """Return ∂L/∂u from ∂L/∂Y; with v, (∂L/∂u, ∂L/∂v) from ∂L/∂z for z = Y v."""

    def has_kernels_of_all(self, n_channels: int = 1) -> bool:
        """Return whether `kernels_of_all` exists for so many channels, and fits."""
        del n_channels
        return False

    def prefers_kernels(self, n_cases: int, n_channels: int = 1) -> bool:
        """Return whether kernels are the cheaper way to the states of many series."""
        del n_cases, n_channels
        return False

    def kernels_of_all(self, u: ArrayLike, reference: Array | None = None) -> KernelsOfAll:
        """Return the kernels at one u, on the device of ``reference``.

        The states of such a system are at most quadratic in the stimulus. The moments of
        many series then cost only products with the kernels, and Gaussian classes have a
        closed form.
        """
        raise TypeError(f"a {type(self).__name__} has no kernels; use `states`.")


class Divergence(FloatingPointError):
    """A state grew without bound; ``step`` and ``series`` tell where it was first seen."""

    def __init__(self, step: int, series: int) -> None:
        where, advice = f"step {step} of series {series}", "choose a gain that saturates"
        super().__init__(f"the network diverges in {where}; scale `X` down, or {advice}.")
        self.step, self.series = step, series

    def __reduce__(self) -> tuple[Any, ...]:
        return Divergence, (self.step, self.series)  # may come from another process
