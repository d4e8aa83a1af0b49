"""What an optimiser needs from a system: a few maps, whatever stands behind them.

A *system* turns a stimulus and an input projection u into states that a readout v weighs.
An unfolded network is one; an integrated, a discrete or a measured one has the same maps.
The linear problem, its certificate included, asks for three of them (`LinearSystem`), the
non-linear one for states and their pullback (`System`). Nothing else of a system is used,
so a new one is one file.

The input projection u has shape (n_inputs, n_channels), the readout v shape (n_outputs,);
in a network both are the number of neurons. Stimuli have n_channels · n_steps values,
channels one after the other.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import Any, Protocol, runtime_checkable

import numpy as np

_ABSENT = object()


class ResponseSum(Protocol):
    """G(d) = Σ_n d_n G_n, the map from input projections to states after the signal d."""

    def matrix(self) -> np.ndarray | None:
        """G(d) as (n_outputs, n_channels · n_inputs); None where it is too large to form.

        Columns are ordered by channel, then by input.
        """
        ...

    def drive(self, u: np.ndarray) -> np.ndarray:
        """States (n_outputs, n_vectors) for u (n_inputs, n_channels, n_vectors)."""
        ...

    def pull(self, v: np.ndarray) -> np.ndarray:
        """G(d)ᵀ v as (n_inputs, n_channels), for v of shape (n_outputs,)."""
        ...


class MatrixSum:
    """A `ResponseSum` that is simply a matrix.

    Parameters
    ----------
    matrix : ndarray (n_outputs, n_channels, n_inputs)
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self._matrix = matrix

    def matrix(self) -> np.ndarray:
        """The matrix with channels and inputs in one axis."""
        return self._matrix.reshape(len(self._matrix), -1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        """States for several input projections."""
        return np.tensordot(self._matrix, u, axes=((1, 2), (1, 0)))

    def pull(self, v: np.ndarray) -> np.ndarray:
        """G(d)ᵀ v."""
        return np.tensordot(v, self._matrix, axes=1).T


class HasSizes(Protocol):
    """How many steps a stimulus has, and how long u and v are."""

    @property
    def n_steps(self) -> int:
        """Steps of the stimuli."""
        ...

    @property
    def n_inputs(self) -> int:
        """Rows of the input projection."""
        ...

    @property
    def n_outputs(self) -> int:
        """Entries of the readout."""
        ...


@runtime_checkable
class LinearSystem(HasSizes, Protocol):
    """A linear system: kernels a = vᵀ G_n u with a certified optimum over u and v."""

    def input_response(self, u: Any) -> np.ndarray:
        """Rᵤ, (n_channels · n_steps, n_outputs): states are ``x @ input_response(u)``."""
        ...

    def readout_response(self, v: Any) -> np.ndarray:
        """L_v, (n_steps, n_inputs): kernels are ``readout_response(v) @ u``.

        A matrix v (n_outputs, n_vectors) gives (n_steps, n_inputs, n_vectors).
        """
        ...

    def response_sum(self, d: np.ndarray) -> ResponseSum:
        """G(d) for weights d (n_channels, n_steps) of the steps."""
        ...


@runtime_checkable
class System(HasSizes, Protocol):
    """A system, linear or not, as the optimisers see it."""

    @property
    def is_linear(self) -> bool:
        """Whether states are linear in the stimulus; then ``maps`` is all there is."""
        ...

    @property
    def maps(self) -> LinearSystem:
        """The linear system: of weak stimuli, where this one is not linear."""
        ...

    @property
    def degree(self) -> int | None:
        """Degree of the states as polynomials of the stimulus; None where they are none."""
        ...

    def states(self, X: Any, u: Any) -> Any:
        """(X, u) ↦ Y: states (n_cases, n_outputs) at the readout."""
        ...

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None) -> Any:
        """∂L/∂u from ∂L/∂Y; with v, (∂L/∂u, ∂L/∂v) from ∂L/∂z for z = Y v."""
        ...


def lacking(system: Any) -> list[str]:
    """Names in `System` that an object does not have; a linear system has them all too."""
    members = (*vars(HasSizes), *vars(System))
    names = [name for name in members if not name.startswith("_")]
    # As `isinstance` looks: without running a property.
    return [name for name in names if getattr_static(system, name, _ABSENT) is _ABSENT]


class KernelsOfAll(Protocol):
    """Kernels of all outputs at one u: y = a·x + xᵀCx, with the way back."""

    @property
    def read_steps(self) -> int:
        """Steps of the stimuli that reach the readout."""
        ...

    def full(self) -> tuple[np.ndarray, np.ndarray]:
        """Plain arrays a (D, n_outputs), C (D, D, n_outputs), D = n_channels · n_steps."""
        ...

    def states_of(self, X: Any, products: Any) -> Any:
        """States of series (n_cases, n_channels, n_steps); see `products`."""
        ...

    def products(self, X: Any) -> Any:
        """Products of the values of each series that C multiplies, to be kept."""
        ...

    def pull(
        self, v: np.ndarray, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> np.ndarray:
        """Gradient with respect to u from the cotangents of a v and C v."""
        ...


@runtime_checkable
class QuadraticSystem(System, Protocol):
    """A system whose states are at most quadratic in the stimulus, known by its kernels.

    An optional fast road: where a system has it, moments of many series cost no more than
    products with its kernels, and Gaussian classes have a closed form.
    """

    def has_kernels_of_all(self, n_channels: int = 1) -> bool:
        """Whether `kernels_of_all` exists for this readout and fits into memory."""
        ...

    def prefers_kernels(self, n_cases: int, n_channels: int = 1) -> bool:
        """Whether the kernels are the cheaper way to the states of so many series."""
        ...

    def kernels_of_all(self, u: Any, reference: Any = None) -> KernelsOfAll:
        """Kernels of all outputs for one input projection, where ``reference`` lives."""
        ...


class Divergence(FloatingPointError):
    """A state that grows without bound.

    Attributes
    ----------
    step, series : int
        Where it was first seen.
    """

    def __init__(self, step: int, series: int) -> None:
        super().__init__(
            f"the network diverges in step {step} of series {series}; scale `X` down, or "
            "choose a gain that saturates."
        )
        self.step, self.series = step, series

    def __reduce__(self) -> tuple[Any, ...]:
        return Divergence, (self.step, self.series)  # it may come from another process


class StatesAt(Protocol):
    """States of many stimuli at one u, with the way back."""

    @property
    def states(self) -> Any:
        """Y, (n_cases, n_outputs)."""
        ...

    def pullback(self, cotangent: Any, v: Any = None) -> tuple[Any, Any]:
        """∂L/∂u (n_inputs, n_channels) and, with v, ∂L/∂v; as `System.pullback`."""
        ...


class PreparedStates(Protocol):
    """States of the same stimuli at one u after the other."""

    def __call__(self, u: Any) -> StatesAt:
        """States at u and the way back, integrated alike at every u."""
        ...

    @property
    def n_sub(self) -> int | None:
        """In how many sub-steps; None before the first u."""
        ...

    def settle(self, u: Any) -> bool:
        """Whether that is accurate enough at u; where not, it is from now on."""
        ...


@runtime_checkable
class IntegratedSystem(System, Protocol):
    """A system that is integrated step by step, to an accuracy that it measures.

    Optional: states and their pullback at one u share a walk through the stimuli.
    """

    @property
    def tol(self) -> float:
        """Error allowed to a state."""
        ...

    @property
    def step_error(self) -> Any:
        """Error of the last integration, as an object with ``error``; None before it."""
        ...

    @property
    def quadratic(self) -> System | None:
        """The same with its non-linearity cut after the square, expanded; for a start."""
        ...

    def with_tol(self, tol: float) -> Any:
        """The same integrated to another accuracy."""
        ...

    def states(self, X: Any, u: Any, *, n_sub: int | None = None) -> Any:
        """As `System.states`, in so many sub-steps of a step, whatever the error."""
        ...

    def pullback(
        self, X: Any, u: Any, cotangent: Any, v: Any = None, *, n_sub: int | None = None
    ) -> Any:
        """As `System.pullback`, in so many sub-steps of a step."""
        ...

    def probe(self, norms: np.ndarray) -> np.ndarray:
        """Positions, in increasing order, of the stimuli on which the error is looked at.

        ``norms`` are the squared norms of all. Prepared with these stimuli alone, the
        system settles as it does with all.
        """
        ...

    def prepare(self, X: Any) -> PreparedStates:
        """The same stimuli at one u after the other; in float32 if they are."""
        ...


@runtime_checkable
class Expansion(System, Protocol):
    """A system that is one order of an expansion in a non-linearity."""

    @property
    def order(self) -> int:
        """Order k of the expansion."""
        ...

    @property
    def reservoir(self) -> Any:
        """The network that was expanded."""
        ...

    @property
    def dt(self) -> float:
        """Length of a step."""
        ...

    def at_order(self, order: int, *, tol: float | None = None) -> Any:
        """The same system at another order."""
        ...


@runtime_checkable
class Network(Protocol):
    """A network that can be unfolded: what an estimator needs to know of one."""

    @property
    def weights(self) -> np.ndarray:
        """Connections, (n_neurons, n_neurons)."""
        ...

    @property
    def n_neurons(self) -> int:
        """Number of neurons."""
        ...

    @property
    def gain(self) -> Any:
        """Gain function of the neurons."""
        ...

    @property
    def tau(self) -> Any:
        """Time constant, or one for each neuron."""
        ...

    @property
    def allow_unstable(self) -> bool:
        """Whether growing modes were accepted."""
        ...

    def with_tau(self, tau: float) -> Any:
        """The same network with another time constant."""
        ...
