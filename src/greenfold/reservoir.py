"""What the network is: weights, time constant and gain; its modes and stability."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from . import _archive
from . import _validation as check
from ._repr import Shown
from .gains import KINDS, Gain


class UnstableError(ValueError):
    """A network has modes that grow.

    Attributes
    ----------
    abscissa : float
        Largest real part of its eigenvalues.
    """

    def __init__(self, message: str, abscissa: float) -> None:
        super().__init__(message)
        self.abscissa = abscissa


def _is_hopeless(found: list[float], n_neurons: int) -> bool:
    """Whether draws lie so far from stability that another would be no better.

    The largest eigenvalue scatters by about 1/√N from draw to draw.
    """
    return min(found) > 1 + 5 / np.sqrt(n_neurons)


def _refused(found: list[float], n_neurons: int, g: float, last: UnstableError) -> str:
    """What to do where no draw of a random network was stable."""
    if len(found) == 1 and not _is_hopeless(found, n_neurons):
        way = "draw again with max_draws=100, or scale it with spectral_radius=0.9"
    else:
        way = f"lower `g`, or scale the network with spectral_radius=0.9 (g={g:g} here)"
    drawn = "the network drawn is" if len(found) == 1 else f"all {len(found)} draws are"
    allow = ", or pass allow_unstable=True" if "allow_unstable" in str(last) else ""
    return (
        f"{drawn} unstable: the largest real part of the eigenvalues of φ'(0) W is "
        f"{min(found):.4g}, and it must be below 1; {way}{allow}."
    )


def _abscissa(matrix: np.ndarray) -> float:
    """Largest real part of the eigenvalues."""
    return float(np.real(np.linalg.eigvals(matrix)).max())


@dataclass(frozen=True)
class Modes:
    """Eigenmodes of the connectivity: w_αᵀ W = λ_α w_αᵀ, slowest mode first.

    Attributes
    ----------
    eigenvalues : ndarray (n_neurons,), complex
        λ_α of φ'(0) W, by decreasing real part.
    left_vectors : ndarray (n_neurons, n_neurons), complex
        Row α is w_α, of unit length.
    time_constants : ndarray (n_neurons,)
        τ_α = τ / (1 − Re λ_α); infinite where Re λ_α ≥ 1.

    Notes
    -----
    Modes are for looking at a network. W is not normal, so its eigenvectors may be
    badly conditioned; no result of greenfold is computed from them.
    """

    eigenvalues: NDArray[np.complex128]
    left_vectors: NDArray[np.complex128]
    time_constants: NDArray[np.float64]

    def loading(self, u: Any) -> np.ndarray:
        """Loading ω_α = w_αᵀ u of an input projection (paper, Fig. 2c).

        Parameters
        ----------
        u : array_like (n_neurons,) or (n_neurons, n_channels)

        Returns
        -------
        ndarray (n_neurons,) or (n_neurons, n_channels), complex
        """
        vector = check.host_array(u, "u", ndim=(1, 2))
        check.input_projection(vector, len(self.eigenvalues))
        return self.left_vectors @ vector


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reservoir(Shown):
    """A recurrent network τ ẏ = −y + W φ(y) + u x(t) (paper, `eom_network`).

    Parameters
    ----------
    weights : array_like or scipy sparse (n_neurons, n_neurons)
        W_ij is the connection from neuron j to neuron i. Stored dense: the
        propagator of a sparse network is dense.
    tau : float
        Time constant of the neurons, in the unit of time that the stimuli use.
    gain : Gain, optional
        φ; linear by default. A gain with φ'(0) ≠ 1 is exact too: the linear part of
        the dynamics then has the connectivity φ'(0) W.
    allow_unstable : bool
        Accept a *linear* network whose modes grow (Re λ ≥ 1). Its unfolding is exact
        over a finite time. A non-linear one is always refused, as in the paper: the
        perturbation expansion is built on growing modes and diverges.
    """

    weights: np.ndarray
    tau: float
    gain: Gain
    allow_unstable: bool

    def __init__(
        self,
        weights: Any,
        tau: float = 0.25,
        gain: Gain | None = None,
        allow_unstable: bool = False,
    ) -> None:
        gain = Gain.linear() if gain is None else gain
        if not isinstance(gain, Gain):
            raise TypeError(
                f"`gain` must be a Gain, such as Gain.quadratic(0.05); got {gain!r}."
            )
        object.__setattr__(self, "weights", check.square_weights(weights))
        object.__setattr__(self, "tau", check.positive(tau, "tau"))
        object.__setattr__(self, "gain", gain)
        object.__setattr__(self, "allow_unstable", bool(allow_unstable))
        self._refuse_growth()

    def _facts(self) -> dict[str, Any]:
        return {
            "neurons": self.n_neurons,
            "tau": self.tau,
            "gain": self.gain.name,
            "largest_real_part": self.spectral_abscissa,
        }

    def __repr__(self) -> str:
        return (
            f"Reservoir({self.n_neurons} neurons, tau={self.tau:g}, gain={self.gain.name})"
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
        raise UnstableError(
            "`weights` make the network unstable: the largest real part of the "
            f"eigenvalues of φ'(0) W is {radius:.4g}, and it must be below 1; multiply "
            f"the weights (or g) by {scale:.3g} to reach 0.9, {escape}.",
            radius,
        )

    @classmethod
    def random(
        cls,
        n_neurons: int,
        g: float = 0.9,
        tau: float = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        allow_unstable: bool = False,
        max_draws: int = 1,
        spectral_radius: float | None = None,
    ) -> Reservoir:
        """Draw W_ij ~ N(0, g²/N), the paper's random network.

        Parameters
        ----------
        n_neurons : int
        g : float
            Spread of the weights; the eigenvalues fill a disc of radius g. Networks
            scatter around it, the more the smaller they are, so that one with g close to
            1 may be unstable: at g = 0.9 and 100 neurons, four of a hundred are.
        tau, gain, allow_unstable
            See `Reservoir`.
        rng : numpy Generator, int or None
            Source of randomness.
        max_draws : int
            Draw again while the network is unstable, at most so many in all. The first
            stable draw is kept, so that seeds whose first one is stable give the same
            network for any number.
        spectral_radius : float, optional
            Scale the weights so that the largest |λ| of W is this, whatever g is.
        """
        n_neurons = check.count(n_neurons, "n_neurons")
        spread = check.positive(g, "g") / np.sqrt(n_neurons)
        max_draws = check.count(max_draws, "max_draws")
        if spectral_radius is not None:
            check.positive(spectral_radius, "spectral_radius")
        source = check.generator(rng)
        found: list[float] = []
        while True:
            weights = source.standard_normal((n_neurons, n_neurons)) * spread
            if spectral_radius is not None:
                weights *= spectral_radius / np.abs(np.linalg.eigvals(weights)).max()
            try:
                return cls(weights, tau, gain, allow_unstable)
            except UnstableError as error:
                found.append(error.abscissa)
                if len(found) == max_draws or _is_hopeless(found, n_neurons):
                    message = _refused(found, n_neurons, g, error)
                    raise UnstableError(message, min(found)) from None

    def with_tau(self, tau: float) -> Reservoir:
        """The same network with another time constant."""
        return Reservoir(self.weights, tau, self.gain, self.allow_unstable)

    def save(self, path: str | Path) -> None:
        """Write the network to a file that holds no code; read it with `greenfold.load`."""
        arrays: dict[str, np.ndarray] = {}
        _archive.write(path, "reservoir", pack_reservoir(self, arrays, "reservoir"), arrays)

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.weights.shape[0]

    @cached_property
    def spectral_abscissa(self) -> float:
        """Largest Re λ of the linear connectivity φ'(0) W."""
        return _abscissa(self.gain.slope * self.weights)

    @property
    def is_stable(self) -> bool:
        """Whether every mode of the linear network decays."""
        return self.spectral_abscissa < 1

    def modes(self) -> Modes:
        """Eigenvalues, left eigenvectors and time constants of the connectivity."""
        eigenvalues, left = cast(
            "tuple[np.ndarray, np.ndarray]",
            linalg.eig(self.gain.slope * self.weights, left=True, right=False),
        )
        order = np.argsort(-np.real(eigenvalues), kind="stable")
        eigenvalues = eigenvalues[order]
        with np.errstate(divide="ignore"):
            decay = np.maximum(1 - np.real(eigenvalues), 0)
            constants = self.tau / decay
        # LAPACK's left vectors satisfy wᴴ W = λ wᴴ; the paper writes wᵀ W = λ wᵀ.
        return Modes(eigenvalues, left.conj().T[order], constants)

    def linearized_abscissa(self, states: Any) -> np.ndarray:
        """Largest Re λ̃ of the connectivity linearised around given states.

        The linearised connectivity is W_ij φ'(y_j) (paper, supplement "Linearized
        connectivity", where φ'(y) = 1 + 2αy). The network is locally stable where
        the result is below 1.

        Parameters
        ----------
        states : array_like (..., n_neurons)
            Any collection of states, for example a trajectory.

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
        slopes = self.gain.derivative(states).reshape(-1, self.n_neurons)
        # One matrix at a time: a stack of N×N matrices for a whole trajectory of many
        # cases would not fit into memory.
        found = [_abscissa(self.weights * slope) for slope in slopes]
        return np.asarray(found).reshape(states.shape[:-1])


def pack_reservoir(
    reservoir: Any, arrays: dict[str, np.ndarray], name: str
) -> dict[str, Any]:
    """A network as JSON; its weights go into ``arrays`` under ``name``."""
    if not isinstance(reservoir, Reservoir):
        raise TypeError(
            f"only a Reservoir can be saved as a network; got {type(reservoir).__name__}."
        )
    gain = reservoir.gain
    if gain.kind not in KINDS:
        raise TypeError(
            f"the gain {gain.name} is made of code and can not be saved; others can: "
            f"{', '.join(KINDS)}."
        )
    arrays[f"{name}_weights"] = reservoir.weights
    return {
        "weights": f"{name}_weights",
        "tau": reservoir.tau,
        "allow_unstable": reservoir.allow_unstable,
        "gain": gain.kind,
        "gain_parameters": dict(gain.parameters),
    }


def unpack_reservoir(described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Reservoir:
    """The network that `pack_reservoir` described; checked as every network is."""
    return Reservoir(
        arrays[described["weights"]],
        float(described["tau"]),
        Gain.of_kind(described["gain"], described["gain_parameters"]),
        bool(described["allow_unstable"]),
    )
