"""What the network is: weights, time constants, gain and bias; its modes and stability."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import linalg

from . import _archive
from . import _validation as check
from ._repr import Shown
from .architectures import Architectures
from .gains import Gain
from .modes import Modes, abscissa
from .network_file import pack_network, unpack_network
from .rest import UnstableError, rest_of_rates

__all__ = ["Gain", "Modes", "Reservoir", "UnstableError"]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reservoir(Architectures, Shown):
    """A recurrent network τ ẏ = −y + W φ(y) + b + u x(t) (equation 1, `eom_network`).

    The paper's network has one time constant and no bias. Where a bias, or a gain that is
    not zero at zero, moves the rest state away from zero, it is found, checked for
    stability, and everything is counted from it: states of `unfold`, `Dynamics` and
    `simulate` are deviations from ``rest``, where every series begins.

    Parameters
    ----------
    weights : array_like or scipy sparse (n_neurons, n_neurons)
        W_ij is the connection from neuron j to neuron i. Stored dense: the
        propagator of a sparse network is dense.
    tau : float or array_like (n_neurons,)
        Time constant of the neurons, or of each, in the unit of time that the stimuli use.
    gain : Gain, optional
        φ; linear by default. A gain with φ' ≠ 1 at rest is exact too: the linear part of
        the dynamics then has the connectivity W diag(φ').
    allow_unstable : bool
        Accept a *linear* network whose modes grow (Re λ ≥ 1). Its unfolding is exact
        over a finite time. A non-linear one is always refused, as in the paper: the
        perturbation expansion is built on growing modes and diverges.
    bias : float or array_like (n_neurons,), optional
        b, a constant input to each neuron.

    Attributes
    ----------
    rest : ndarray (n_neurons,)
        The state without input, y* = W φ(y*) + b.

    Examples
    --------
    >>> from greenfold import Gain, Reservoir
    >>> weights = [[0.5, -1.0], [0.8, 0.0]]
    >>> network = Reservoir(weights, tau=[0.02, 0.01], gain=Gain.sigmoid(), bias=0.3)
    >>> network.rest.round(3).tolist()
    [-0.129, 0.674]
    """

    weights: np.ndarray
    tau: float | np.ndarray
    gain: Gain
    allow_unstable: bool
    bias: np.ndarray | None
    rest: np.ndarray = field(init=False)

    def __init__(
        self,
        weights: Any,
        tau: Any = 0.25,
        gain: Gain | None = None,
        allow_unstable: bool = False,
        *,
        bias: Any = None,
    ) -> None:
        gain = check_gain(gain, Gain.linear())
        matrix = check.square_weights(weights)
        values = {
            "weights": matrix,
            "tau": check.positive_each(tau, "tau", len(matrix)),
            "gain": gain,
            "allow_unstable": bool(allow_unstable),
            "bias": check.constant_input(bias, len(matrix)),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        rest = self._find_rest()
        rest.flags.writeable = False
        object.__setattr__(self, "rest", rest)
        self._refuse_growth()

    def _find_rest(self) -> np.ndarray:
        n = self.n_neurons
        bias = np.zeros(n) if self.bias is None else self.bias
        if self.bias is None and not self.gain.offset:
            return bias
        if self.gain.is_linear and self.allow_unstable:
            try:
                return np.linalg.solve(np.eye(n) - self.gain.slope * self.weights, bias)
            except np.linalg.LinAlgError:
                raise ValueError(
                    "`bias` leaves the network without a rest state: one of its modes has "
                    "the eigenvalue 1 and integrates it for ever; scale the weights."
                ) from None
        tau = np.broadcast_to(np.asarray(self.tau), (n,))
        return rest_of_rates(self.weights, bias, tau, self.gain, self.gain.derivative)

    def _facts(self) -> dict[str, Any]:
        facts = {
            "neurons": self.n_neurons,
            "tau": printed_range(self.tau),
            "gain": self.gain.name,
            "largest_real_part": self.spectral_abscissa,
        }
        return facts if self.bias is None else {**facts, "bias": printed_range(self.bias)}

    def __repr__(self) -> str:
        bias = "" if self.bias is None else f", bias={printed_range(self.bias)}"
        return (
            f"Reservoir({self.n_neurons} neurons, tau={printed_range(self.tau)}, "
            f"gain={self.gain.name}{bias})"
        )

    def _refuse_growth(self) -> None:
        if self.is_stable or (self.allow_unstable and self.gain.is_linear):
            return
        radius = self.spectral_abscissa
        scale = 0.9 / radius
        escape = (
            "or pass allow_unstable=True"
            if self.gain.is_linear
            else "since a non-linear network cannot be unfolded around growing modes"
        )
        if isinstance(self.tau, np.ndarray):
            raise UnstableError(
                "`weights` make the network unstable: with these time constants its "
                f"fastest growing mode grows by {radius - 1:.4g} of itself in their mean; "
                "scale the weights down, slow excitation or speed up inhibition, "
                f"{escape}.",
                radius,
            )
        raise UnstableError(
            "`weights` make the network unstable: the largest real part of the "
            f"eigenvalues of φ'(0) W is {radius:.4g}, and it must be below 1; multiply "
            f"the weights (or g) by {scale:.3g} to reach 0.9, {escape}.",
            radius,
        )

    def with_tau(self, tau: Any) -> Reservoir:
        """The same network with another time constant.

        Parameters
        ----------
        tau : float or array_like (n_neurons,)
            A number is the new mean of unequal time constants, whose ratios are kept.
        """
        if isinstance(self.tau, np.ndarray) and np.ndim(tau) == 0:
            tau = self.tau * (check.positive(tau, "tau") / self.mean_tau)
        return Reservoir(self.weights, tau, self.gain, self.allow_unstable, bias=self.bias)

    def save(self, path: str | Path) -> None:
        """Write the network to a file that holds no code; read it with `greenfold.load`."""
        arrays: dict[str, np.ndarray] = {}
        _archive.write(path, "reservoir", pack_reservoir(self, arrays, "reservoir"), arrays)

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.weights.shape[0]

    @property
    def mean_tau(self) -> float:
        """The time constant, or the mean of unequal ones."""
        return float(np.mean(self.tau))

    @cached_property
    def pace(self) -> float | np.ndarray:
        """Mean time constant over that of each neuron; 1.0 where they are equal."""
        return self.mean_tau / self.tau if isinstance(self.tau, np.ndarray) else 1.0

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        """Taylor coefficients of φ(y* + d) − φ(y*) in powers of d, from c_0 = 0 on.

        Numbers where the network rests at zero, else arrays (n_neurons,).
        """
        if self.rest.any():
            return self.gain.around(self.rest)
        return (0.0, *self.gain.coefficients[1:])

    @cached_property
    def linear_weights(self) -> np.ndarray:
        """Connectivity W_ij φ'(y*_j) of the network linearised at rest."""
        slope = self.coefficients[1] if len(self.coefficients) > 1 else 0.0
        return slope * self.weights

    def mode_matrix(self, connectivity: np.ndarray) -> np.ndarray:
        """What `Modes` are the modes of, for a connectivity that acts on deviations."""
        if not isinstance(self.pace, np.ndarray):
            return connectivity
        identity = np.eye(self.n_neurons)
        return identity + self.pace[:, None] * (connectivity - identity)

    @cached_property
    def spectral_abscissa(self) -> float:
        """Largest Re λ of the linear connectivity; see `Modes` for unequal neurons."""
        return abscissa(self.mode_matrix(self.linear_weights))

    @property
    def is_stable(self) -> bool:
        """Whether every mode of the linear network decays."""
        return self.spectral_abscissa < 1

    def modes(self) -> Modes:
        """Eigenvalues, left eigenvectors and time constants of the connectivity."""
        eigenvalues, left = cast(
            "tuple[np.ndarray, np.ndarray]",
            linalg.eig(self.mode_matrix(self.linear_weights), left=True, right=False),
        )
        order = np.argsort(-np.real(eigenvalues), kind="stable")
        eigenvalues = eigenvalues[order]
        with np.errstate(divide="ignore"):
            decay = np.maximum(1 - np.real(eigenvalues), 0)
            constants = self.mean_tau / decay
        # LAPACK's left vectors satisfy wᴴ W = λ wᴴ; the paper writes wᵀ W = λ wᵀ.
        return Modes(eigenvalues, left.conj().T[order], constants, self.pace)

    def linearized_abscissa(self, states: Any) -> np.ndarray:
        """Largest Re λ̃ of the connectivity linearised around given states.

        The linearised connectivity is W_ij φ'(y_j) (paper, supplement "Linearized
        connectivity", where φ'(y) = 1 + 2αy). The network is locally stable where
        the result is below 1.

        Parameters
        ----------
        states : array_like (..., n_neurons)
            Any collection of states, for example a trajectory, as deviations from rest.

        Returns
        -------
        ndarray (...)
        """
        states = check.host_array(states, "states")
        if states.shape[-1] != self.n_neurons:
            raise ValueError(
                f"`states` must have {self.n_neurons} neurons along its last axis; "
                f"got shape {states.shape}."
            )
        slopes = self.gain.derivative(self.rest + states).reshape(-1, self.n_neurons)
        # One matrix at a time: a stack of N×N matrices for a whole trajectory of many
        # cases would not fit into memory.
        found = [abscissa(self.mode_matrix(self.weights * slope)) for slope in slopes]
        return np.asarray(found).reshape(states.shape[:-1])


def check_gain(gain: Any, default: Gain) -> Gain:
    """Return ``gain``, or the default for None."""
    gain = default if gain is None else gain
    if not isinstance(gain, Gain):
        raise TypeError(
            f"`gain` must be a Gain, such as Gain.quadratic(0.05); got {gain!r}."
        )
    return gain


def printed_range(value: float | np.ndarray) -> str:
    """A number, or the range of several, as it is printed."""
    low, high = float(np.min(value)), float(np.max(value))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


#: What a file holds of a network beside its weights and gain.
_PARTS = ("tau", "allow_unstable", "bias")


def pack_reservoir(
    reservoir: Any, arrays: dict[str, np.ndarray], name: str
) -> dict[str, Any]:
    """A network as JSON; its arrays go into ``arrays`` under ``name``."""
    if not isinstance(reservoir, Reservoir):
        raise TypeError(
            f"only a Reservoir can be saved as a network; got {type(reservoir).__name__}."
        )
    return pack_network(reservoir, _PARTS, arrays, name)


def unpack_reservoir(described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Reservoir:
    """The network that `pack_reservoir` described; checked as every network is."""
    return Reservoir(**unpack_network(described, _PARTS, arrays))
