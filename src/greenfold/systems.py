"""Protocols for systems: the few maps that an optimiser needs, however implemented.

A *system* turns a stimulus and an input projection u into states that a readout v weighs.
The linear problem and its certificate need only three maps (`LinearSystem`); the non-linear
problem needs only the states and their pullback (`System`). u has shape (n_inputs,
n_channels) and v has shape (n_outputs,). A stimulus has n_channels · n_steps values,
channel by channel.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import Any, Protocol, runtime_checkable

import numpy as np

_ABSENT = object()


class ResponseSum(Protocol):
    """The map G(d) = Σ_n d_n G_n from input projections to states after the signal d.

    ``matrix()`` returns G(d) as (n_outputs, n_channels · n_inputs), or None if it is too
    large to form. ``drive(u)`` returns states (n_outputs, n_vectors) for u (n_inputs,
    n_channels, n_vectors). ``pull(v)`` returns G(d)ᵀ v as (n_inputs, n_channels).
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
        """Return G(d)ᵀ v."""
        return np.tensordot(v, self._matrix, axes=1).T


class HasSizes(Protocol):
    """An object with numbers of stimulus steps, of inputs (rows of u) and of outputs."""

    @property
    def n_steps(self) -> int: ...
    @property
    def n_inputs(self) -> int: ...
    @property
    def n_outputs(self) -> int: ...


def rows_of(system: HasSizes) -> int:
    """Return the number of rows of the largest matrices of a system."""
    return max(system.n_inputs, system.n_outputs)


@runtime_checkable
class LinearSystem(HasSizes, Protocol):
    """A linear system with kernels a = vᵀ G_n u; its optimum over u and v can be certified.

    ``input_response(u)`` returns Rᵤ (n_channels · n_steps, n_outputs): the states are
    ``x @ Rᵤ``. ``readout_response(v)`` returns L_v (n_steps, n_inputs): the kernels are
    ``L_v @ u``. A matrix v (n_outputs, n_vectors) adds an axis. ``response_sum(d)`` returns
    G(d) for weights d (n_channels, n_steps) of the steps.
    """

    def input_response(self, u: Any) -> np.ndarray: ...
    def readout_response(self, v: Any) -> np.ndarray: ...
    def response_sum(self, d: np.ndarray) -> ResponseSum: ...


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


@runtime_checkable
class ModalLinearSystem(LinearSystem, Protocol):
    """A linear system that may know its modes; ``modes()`` is None if it is not normal.

    This protocol is optional. With modes, the joint optimum over u and v is a convex
    problem.
    """

    def modes(self) -> NormalModes | None: ...


@runtime_checkable
class System(HasSizes, Protocol):
    """A system, linear or not, as the optimisers see it.

    If ``is_linear``, ``maps`` describes the whole system; otherwise, it describes the
    linear system for weak stimuli. ``degree`` is the degree of the states as polynomials of
    the stimulus, or None if they are not polynomials. ``states(X, u)`` returns the states
    (n_cases, n_outputs) at the readout. ``pullback`` returns ∂L/∂u from ∂L/∂Y; with v, it
    returns (∂L/∂u, ∂L/∂v) from ∂L/∂z for z = Y v.
    """

    @property
    def is_linear(self) -> bool: ...
    @property
    def maps(self) -> LinearSystem: ...
    @property
    def degree(self) -> int | None: ...
    def states(self, X: Any, u: Any) -> Any: ...
    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None) -> Any: ...


def lacking(system: Any) -> list[str]:
    """Return the names in `System` that an object lacks."""
    members = (*vars(HasSizes), *vars(System))
    names = [name for name in members if not name.startswith("_")]
    # Look names up as `isinstance` does, without running a property.
    return [name for name in names if getattr_static(system, name, _ABSENT) is _ABSENT]


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
    def states_of(self, X: Any, products: Any) -> Any: ...
    def products(self, X: Any) -> Any: ...
    def pull(self, v: Any, a_bar: np.ndarray, C_bar: np.ndarray | None) -> np.ndarray: ...


@runtime_checkable
class QuadraticSystem(System, Protocol):
    """A system with kernels, whose states are at most quadratic in the stimulus.

    This protocol is optional. With kernels, the moments of many series cost only products
    with the kernels, and Gaussian classes have a closed form. ``has_kernels_of_all`` tells
    whether the kernels exist and fit into memory. ``prefers_kernels`` tells whether they
    are the cheaper way to compute the states of many series. ``kernels_of_all`` returns the
    kernels at one u, on the device of ``reference``.
    """

    def has_kernels_of_all(self, n_channels: int = 1) -> bool: ...
    def prefers_kernels(self, n_cases: int, n_channels: int = 1) -> bool: ...
    def kernels_of_all(self, u: Any, reference: Any = None) -> KernelsOfAll: ...


class Divergence(FloatingPointError):
    """A state grew without bound; ``step`` and ``series`` tell where it was first seen."""

    def __init__(self, step: int, series: int) -> None:
        where, advice = f"step {step} of series {series}", "choose a gain that saturates"
        super().__init__(f"the network diverges in {where}; scale `X` down, or {advice}.")
        self.step, self.series = step, series

    def __reduce__(self) -> tuple[Any, ...]:
        return Divergence, (self.step, self.series)  # may come from another process


class StatesAt(Protocol):
    """States Y (n_cases, n_outputs) at one u, with `pullback` as in `System`."""

    @property
    def states(self) -> Any: ...
    def pullback(self, cotangent: Any, v: Any = None) -> tuple[Any, Any]: ...


class PreparedStates(Protocol):
    """A function that returns the states of fixed stimuli at one u after another.

    It keeps its number of sub-steps: ``n_sub`` per step, or None before the first u.
    ``settle(u)`` tells whether this number is accurate enough at u, and increases it if
    not.
    """

    def __call__(self, u: Any) -> StatesAt: ...
    @property
    def n_sub(self) -> int | None: ...
    def settle(self, u: Any) -> bool: ...


@runtime_checkable
class IntegratedSystem(System, Protocol):
    """A system that is integrated step by step, to an accuracy that it measures.

    This protocol is optional. The states and their pullback at one u then share one pass
    through the stimuli. ``tol`` is the tolerated error of a state, ``with_tol(tol)``
    returns the same system with another tolerance, and ``step_error.error`` is the error of
    the last integration. ``quadratic`` is the expanded system with its non-linearity cut
    after the square, or None. If ``n_sub`` is given, ``states`` and ``pullback`` take this
    many sub-steps per step, whatever the error. ``probe(norms)`` takes the squared norms of
    all stimuli and returns the sorted positions of those on which the error is measured: a
    system prepared with these alone settles as with all. ``prepare(X)`` prepares to compute
    the states of the same stimuli at many u, in float32 if ``X`` is.
    """

    @property
    def tol(self) -> float: ...
    @property
    def step_error(self) -> Any: ...
    @property
    def quadratic(self) -> System | None: ...
    def with_tol(self, tol: float) -> Any: ...
    def states(self, X: Any, u: Any, *, n_sub: int | None = None) -> Any: ...
    def pullback(
        self, X: Any, u: Any, cotangent: Any, v: Any = None, *, n_sub: int | None = None
    ) -> Any: ...
    def probe(self, norms: np.ndarray) -> np.ndarray: ...
    def prepare(self, X: Any) -> PreparedStates: ...


@runtime_checkable
class Expansion(System, Protocol):
    """A system that is one order of an expansion in a non-linearity.

    It has the ``order``, the expanded ``reservoir`` and the length ``dt`` of a step.
    ``at_order`` returns the same system at another order.
    """

    @property
    def order(self) -> int: ...
    @property
    def reservoir(self) -> Any: ...
    @property
    def dt(self) -> float: ...
    def at_order(self, order: int, *, tol: float | None = None) -> Any: ...


@runtime_checkable
class Network(Protocol):
    """A network that an estimator can unfold.

    ``tau`` is one time constant or one per neuron, and ``with_tau`` returns the same
    network with another one. ``allow_unstable`` tells whether growing modes are accepted.
    """

    @property
    def weights(self) -> np.ndarray: ...
    @property
    def n_neurons(self) -> int: ...
    @property
    def gain(self) -> Any: ...
    @property
    def tau(self) -> Any: ...
    @property
    def allow_unstable(self) -> bool: ...
    def with_tau(self, tau: float) -> Any: ...
