"""The paper's network in continuous time, its modes and its stability."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._base import checks as check
from .._base import codec
from . import weights as plans
from .gains import Gain
from .network import NETWORK, PER_NEURON, Network, slope_at_rest
from .resting_state import UnstableError, continuous_resting_state

__all__ = ["Gain", "Modes", "Reservoir", "UnstableError"]


def abscissa(matrix: np.ndarray) -> float:
    """Largest real part of the eigenvalues."""
    return float(np.real(np.linalg.eigvals(matrix)).max())


@dataclass(frozen=True)
class Modes:
    """Eigenmodes of the connectivity: w_αᵀ W = λ_α w_αᵀ, slowest mode first.

    Use them to look at a network. W is not normal, so its eigenvectors may be badly
    conditioned; greenfold computes no result from them.

    Attributes
    ----------
    eigenvalues : ndarray (n_neurons,), complex
        λ_α of W diag(φ') at rest, by decreasing real part. If time constants differ, λ_α of
        1 + (τ/τ_i)(W diag(φ') − 1) with their mean τ. A mode decays if Re λ_α < 1.
    left_vectors : ndarray (n_neurons, n_neurons), complex
        Row α is w_α, of unit length.
    time_constants : ndarray (n_neurons,)
        τ_α = τ / (1 − Re λ_α); infinite where Re λ_α ≥ 1.
    """

    eigenvalues: NDArray[np.complex128]
    left_vectors: NDArray[np.complex128]
    time_constants: NDArray[np.float64]
    _pace: Any = field(default=1.0, repr=False)

    def loading(self, u: Any) -> np.ndarray:
        """Loading ω_α = w_αᵀ u of an input projection u (paper, figure 2c).

        If the time constants differ, u_i is scaled by τ/τ_i. u is (n_neurons,) or
        (n_neurons, n_channels), and the complex result has the same shape.
        """
        vector = check.host_array(u, "u", ndim=(1, 2))
        check.input_projection(vector, len(self.eigenvalues))
        if isinstance(self._pace, np.ndarray):
            vector = (vector.T * self._pace).T
        return self.left_vectors @ vector


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reservoir(Network, kind="reservoir"):
    """A recurrent network τ ẏ = −y + W φ(y) + b + u x(t) (equation 1, `eom_network`).

    The paper's network has one time constant and no bias. A bias, or a gain that is not
    zero at zero, moves the resting state. In `unfold`, `Dynamics` and `simulate`, states
    are deviations from ``rest``, and every series starts at rest.

    Parameters
    ----------
    weights : array_like or scipy sparse (n_neurons, n_neurons)
        W_ij is the connection from neuron j to neuron i. Stored dense: the propagator of a
        sparse network is dense.
    tau : float or array_like (n_neurons,)
        Time constant of all neurons or of each, in the unit of time of the stimuli.
    gain : Gain, optional
        Gain φ; linear by default. The slope φ' at rest need not be 1: the linear part of
        the dynamics has the connectivity W diag(φ').
    allow_unstable : bool
        Accept a *linear* network whose modes grow (Re λ ≥ 1); its unfolding is exact over a
        finite time. A non-linear one with growing modes is refused, as in the paper.
    bias : float or array_like (n_neurons,), optional
        Bias b, a constant input to each neuron.

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

    tau: float | np.ndarray

    _speed = "tau"
    _growth = ("largest_real_part", "spectral_abscissa")

    def __init__(
        self,
        weights: Any,
        tau: Any = 0.25,
        gain: Gain | None = None,
        allow_unstable: bool = False,
        *,
        bias: Any = None,
    ) -> None:
        gain = Gain.linear() if gain is None else gain
        super().__init__(weights, tau, gain, bias, allow_unstable)

    def _find_rest(self, bias: np.ndarray) -> np.ndarray:
        tau, gain = np.broadcast_to(np.asarray(self.tau), bias.shape), self.gain
        return continuous_resting_state(self.weights, bias, tau, gain, gain.derivative)

    def _say_growth(self) -> str:
        radius = self.spectral_abscissa
        escape = "since a non-linear network cannot be unfolded around growing modes"
        if self.gain.is_linear:
            escape = "or pass allow_unstable=True"
        if isinstance(self.tau, np.ndarray):
            grows = f"the fastest growing mode grows by {radius - 1:.4g} of itself in their"
            advice = "scale the weights down, slow excitation or speed up inhibition"
            return f"with these time constants {grows} mean; {advice}, {escape}"
        largest = f"the largest real part of the eigenvalues of φ'(0) W is {radius:.4g}"
        advice = f"multiply the weights (or g) by {0.9 / radius:.3g} to reach 0.9"
        return f"{largest}, and it must be below 1; {advice}, {escape}"

    @classmethod
    def random(
        cls,
        n_neurons: int,
        g: float = 0.9,
        tau: Any = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        allow_unstable: bool = False,
        max_draws: int = 100,
        spectral_radius: float | None = None,
        connectivity: float = 1.0,
        bias: Any = None,
    ) -> Self:
        """Draw W_ij ~ N(0, g²/N), the paper's random network.

        Parameters
        ----------
        n_neurons : int
        g : float
            Spread of the weights; the eigenvalues fill a disc of radius about g.
        tau, gain, allow_unstable, bias
            See `Reservoir`.
        rng : numpy Generator, int or None
            Source of randomness.
        max_draws : int
            Draw again while the network is unstable, at most this many times in all. The
            first stable draw is kept; its attribute ``n_draws`` counts the draws. At g =
            0.9, 12 % of networks of 20 neurons and 4 % of networks of 100 are drawn again.
        spectral_radius : float, optional
            Scale the weights so that this is the largest |λ| of W, whatever g is.
        connectivity : float
            Probability of a connection; g stays the radius.
        """
        plan = plans.random_plan(n_neurons, g, rng, connectivity)
        parts = {"tau": tau, "gain": gain, "allow_unstable": allow_unstable, "bias": bias}
        return cls._draw(plan, spectral_radius, max_draws, **parts)

    @classmethod
    def excitatory_inhibitory(
        cls,
        n_neurons: int,
        g: float = 0.9,
        tau: Any = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        excitatory: float = 0.8,
        connectivity: float = 1.0,
        inhibition: float | None = 1.0,
        bias: Any = None,
        max_draws: int = 100,
        spectral_radius: float | None = None,
    ) -> Self:
        """Draw a network that obeys Dale's law: each neuron only excites or only inhibits.

        Parameters
        ----------
        n_neurons, gain, rng, connectivity, max_draws, spectral_radius
            As in `random`.
        g : float
            Radius of the disc that the bulk of the eigenvalues fills.
        tau, bias : float, (float, float) or array_like (n_neurons,)
            Two numbers are for excitatory and inhibitory neurons.
        excitatory : float
            Share of excitatory neurons, which come first.
        inhibition : float, optional
            Inhibition over excitation, summed over the inputs of each neuron; 1 is
            balanced. None keeps the ratio as drawn.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Reservoir
        >>> network = Reservoir.excitatory_inhibitory(50, tau=(0.02, 0.01), rng=0)
        >>> signs = np.unique(np.sign(network.weights), axis=0)
        >>> signs.tolist() == [[1.0] * 40 + [-1.0] * 10]
        True
        """
        plan = plans.dale_plan(n_neurons, g, rng, excitatory, connectivity, inhibition)
        parts = {"tau": plan.per_neuron(tau), "gain": gain, "bias": plan.per_neuron(bias)}
        return cls._draw(plan, spectral_radius, max_draws, **parts)

    @classmethod
    def oscillators(
        cls,
        decay_times: Any,
        frequencies: Any,
        tau: float | None = None,
        gain: Gain | None = None,
    ) -> Self:
        """Make independent damped oscillators, so that you choose the modes of the network.

        Oscillator j is the pair of neurons 2j and 2j + 1 with the block [[a, −b], [b, a]]
        of φ'(0) W, where a = 1 − τ/T_j and b = τω_j. Its linear mode decays as exp(−t/T_j)
        and turns by ω_j per unit of time, exactly and for every τ.
        ``greenfold.estimators.pooled`` uses these reservoirs.

        Parameters
        ----------
        decay_times : array_like (n_oscillators,)
            T_j > 0, in the unit of time of the stimuli.
        frequencies : array_like (n_oscillators,)
            Angular frequencies ω_j ≥ 0, in radians per unit of time.
        tau : float, optional
            The shortest decay time by default, so that no neuron inhibits itself. It scales
            the input but does not change the modes.
        gain : Gain, optional

        Examples
        --------
        >>> from greenfold import Reservoir
        >>> network = Reservoir.oscillators([2.0, 8.0], [1.0, 0.5])
        >>> network.modes().time_constants.tolist()
        [8.0, 8.0, 2.0, 2.0]
        """
        weights, tau = plans.oscillator_weights(decay_times, frequencies, tau)
        return cls(weights / slope_at_rest(gain, "oscillate"), tau, gain)

    @classmethod
    def spatial(
        cls,
        n_neurons: int,
        g: float = 0.9,
        tau: Any = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        reach: float = 0.2,
        connectivity: float = 0.1,
        positions: Any = None,
        n_dimensions: int = 2,
        bias: Any = None,
        max_draws: int = 100,
        spectral_radius: float | None = None,
    ) -> Self:
        """Draw a network in space, where near neurons are more likely to connect.

        The probability of a connection falls as exp(−distance / reach). Weights are normal,
        of either sign; no neuron drives itself.

        Parameters
        ----------
        n_neurons, tau, gain, rng, bias, max_draws, spectral_radius
            As in `random`.
        g : float
            Approximate radius of the disc of eigenvalues; a short reach puts some outside.
        reach : float
            Distance over which the probability falls by e, in the unit of the positions.
        connectivity : float
            Mean probability of a connection.
        positions : array_like (n_neurons, n_dimensions), optional
            Positions of the neurons. By default they are drawn in the unit square (or line,
            or cube) with periodic boundaries.
        n_dimensions : int
            Number of dimensions of drawn positions.
        """
        place = reach, connectivity, positions, n_dimensions
        plan = plans.spatial_plan(n_neurons, g, rng, *place)
        return cls._draw(plan, spectral_radius, max_draws, tau=tau, gain=gain, bias=bias)

    @classmethod
    def legendre(
        cls,
        n_neurons: int,
        theta: float,
        tau: float | None = None,
        gain: Gain | None = None,
    ) -> Self:
        """Make the Legendre delay system, which keeps a window of length θ of its input.

        With the input projection of `greenfold.networks.weights.legendre_delay`, the states
        are the coefficients of the last θ of the input along orthonormal Legendre
        polynomials, and a fixed readout gives the input θ ago (LegT). You can also solve
        for another u.

        Parameters
        ----------
        n_neurons : int
        theta : float
            Length of the window, in the unit of time of the stimuli.
        tau : float, optional
            θ/n by default. It scales the input but does not change the modes.
        gain : Gain, optional
        """
        made = plans.legendre_delay(n_neurons, theta, tau)
        return cls(made.weights / slope_at_rest(gain, "remember"), made.tau, gain)

    def with_tau(self, tau: Any) -> Reservoir:
        """Return the same network with another time constant.

        If time constants differ, a number is their new mean, and their ratios are kept.
        """
        if isinstance(self.tau, np.ndarray) and np.ndim(tau) == 0:
            tau = self.tau * (check.positive(tau, "tau") / self.mean_tau)
        return Reservoir(self.weights, tau, self.gain, self.allow_unstable, bias=self.bias)

    @property
    def mean_tau(self) -> float:
        """The time constant, or the mean of unequal ones."""
        return float(np.mean(self.tau))

    @cached_property
    def pace(self) -> float | np.ndarray:
        """Mean time constant over that of each neuron; 1.0 if they are equal."""
        return self.mean_tau / self.tau if isinstance(self.tau, np.ndarray) else 1.0

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        """Taylor coefficients of φ(y* + d) − φ(y*) in powers of d, from c_0 = 0 on.

        They are numbers if the network rests at zero, else arrays (n_neurons,).
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
        """Return the matrix whose modes are `Modes`, for a connectivity of deviations."""
        if not isinstance(self.pace, np.ndarray):
            return connectivity
        identity = np.eye(self.n_neurons)
        return identity + self.pace[:, None] * (connectivity - identity)

    @cached_property
    def spectral_abscissa(self) -> float:
        """Largest Re λ of the linear connectivity; see `Modes` if time constants differ."""
        return abscissa(self.mode_matrix(self.linear_weights))

    def modes(self) -> Modes:
        """Eigenvalues, left eigenvectors and time constants of the connectivity."""
        eig: Any = linalg.eig
        matrix = self.mode_matrix(self.linear_weights)
        eigenvalues, left = eig(matrix, left=True, right=False)
        order = np.argsort(-np.real(eigenvalues), kind="stable")
        eigenvalues = eigenvalues[order]
        with np.errstate(divide="ignore"):
            constants = self.mean_tau / np.maximum(1 - np.real(eigenvalues), 0)
        # LAPACK's left vectors satisfy wᴴ W = λ wᴴ; the paper writes wᵀ W = λ wᵀ.
        return Modes(eigenvalues, left.conj().T[order], constants, self.pace)

    def linearized_abscissa(self, states: Any) -> np.ndarray:
        """Largest Re λ̃ of the connectivity W_ij φ'(y_j), linearised around given states.

        ``states`` (..., n_neurons), such as a trajectory, are deviations from rest. The
        network is locally stable where the result (...) is below 1 (paper, supplement
        "Linearized connectivity", with φ'(y) = 1 + 2αy).
        """
        states = check.host_array(states, "states")
        wanted = f"have {self.n_neurons} neurons along its last axis"
        fits = states.shape[-1:] == (self.n_neurons,)
        check.must(fits, "states", wanted, f"shape {states.shape}")
        slopes = self.gain.derivative(self.rest + states).reshape(-1, self.n_neurons)
        # One matrix at a time: N×N matrices for a whole trajectory of many cases may not
        # fit into memory.
        found = [abscissa(self.mode_matrix(self.weights * slope)) for slope in slopes]
        return np.asarray(found).reshape(states.shape[:-1])


RESERVOIR = codec.describe("reservoir", Reservoir, **NETWORK, tau=PER_NEURON)
