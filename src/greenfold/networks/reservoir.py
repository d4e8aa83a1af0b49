"""What the network is: weights, time constants, gain and bias; its modes and stability.

Reservoirs by the plan of their connections: drawn, laid out, or read from a graph.

A network as JSON and arrays, and back; what both kinds of network share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from scipy import linalg

from .._base import checks as check
from .._base import codec
from .._base.printing import Shown
from . import weights as graphs
from . import weights as topologies
from .gains import KINDS, Gain
from .modes import Modes, abscissa
from .resting_state import UnstableError, rest_of_rates

__all__ = ["Gain", "Modes", "Reservoir", "UnstableError"]


class Architectures:
    """Constructors of `Reservoir`, which inherits them."""

    if TYPE_CHECKING:

        def __init__(
            self,
            weights: Any,
            tau: Any = 0.25,
            gain: Gain | None = None,
            allow_unstable: bool = False,
            *,
            bias: Any = None,
        ) -> None: ...

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
        max_draws: int = 1,
        spectral_radius: float | None = None,
        connectivity: float = 1.0,
        bias: Any = None,
    ) -> Self:
        """Draw W_ij ~ N(0, g²/N), the paper's random network.

        Parameters
        ----------
        n_neurons : int
        g : float
            Spread of the weights; the eigenvalues fill a disc of radius g. Networks
            scatter around it, the more the smaller they are, so that one with g close to
            1 may be unstable: at g = 0.9 and 100 neurons, four of a hundred are.
        tau, gain, allow_unstable, bias
            See `Reservoir`.
        rng : numpy Generator, int or None
            Source of randomness.
        max_draws : int
            Draw again while the network is unstable, at most so many in all. The first
            stable draw is kept, so that seeds whose first one is stable give the same
            network for any number.
        spectral_radius : float, optional
            Scale the weights so that the largest |λ| of W is this, whatever g is.
        connectivity : float
            Probability of a connection; g stays the radius.
        """
        n_neurons = check.count(n_neurons, "n_neurons")
        g = check.positive(g, "g")
        share = topologies.connection_probability(connectivity)
        source = check.generator(rng)

        def draw() -> np.ndarray:
            return topologies.random_weights(n_neurons, g, source, share)

        def make(weights: np.ndarray) -> Self:
            return cls(weights, tau, gain, allow_unstable, bias=bias)

        scaled = topologies.scaling(draw, spectral_radius)
        draws = check.count(max_draws, "max_draws")
        return topologies.first_stable(scaled, make, n_neurons, g, draws)

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
        max_draws: int = 1,
        spectral_radius: float | None = None,
    ) -> Self:
        """Draw a network that obeys Dale's law: a neuron excites, or inhibits, all others.

        Parameters
        ----------
        n_neurons : int
        g : float
            Radius of the disc that the bulk of the eigenvalues fills.
        tau : float, (float, float) or array_like (n_neurons,)
            Two numbers are the time constants of excitatory and inhibitory neurons.
        gain, bias
            See `Reservoir`; two numbers are the bias of either population.
        rng : numpy Generator, int or None
        excitatory : float
            Share of excitatory neurons, which come first.
        connectivity : float
            Probability of a connection.
        inhibition : float, optional
            Inhibition over excitation, summed over the inputs of each neuron: 1 is
            balanced, more is dominated by inhibition. None leaves it as it is drawn.
        max_draws, spectral_radius
            As in `random`.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Reservoir
        >>> network = Reservoir.excitatory_inhibitory(50, tau=(0.02, 0.01), rng=0)
        >>> np.unique(np.sign(network.weights[:, :40])).tolist()
        [1.0]
        >>> np.unique(np.sign(network.weights[:, 40:])).tolist()
        [-1.0]
        """
        n_neurons = check.count(n_neurons, "n_neurons", minimum=2)
        g, share = check.positive(g, "g"), check.positive(excitatory, "excitatory")
        n_excitatory = round(share * n_neurons)
        if not 0 < n_excitatory < n_neurons:
            raise ValueError(
                "`excitatory` must leave neurons of both kinds, a share between 0 and 1; "
                f"got {share:g} of {n_neurons} neurons."
            )
        if inhibition is not None:
            inhibition = check.positive(inhibition, "inhibition")
        p = topologies.connection_probability(connectivity)
        source = check.generator(rng)
        sizes = (n_excitatory, n_neurons - n_excitatory)

        def draw() -> np.ndarray:
            return topologies.dale_weights(*sizes, g, source, p, inhibition)

        def make(weights: np.ndarray) -> Self:
            each = [topologies.by_population(value, sizes) for value in (tau, bias)]
            return cls(weights, each[0], gain, bias=each[1])

        scaled = topologies.scaling(draw, spectral_radius)
        draws = check.count(max_draws, "max_draws")
        return topologies.first_stable(scaled, make, n_neurons, g, draws)

    @classmethod
    def cycle(
        cls,
        n_neurons: int,
        weight: float = 0.9,
        tau: Any = 0.25,
        gain: Gain | None = None,
        *,
        bias: Any = None,
    ) -> Self:
        """A ring of neurons, each driving the next with the same weight.

        Parameters
        ----------
        n_neurons : int
        weight : float
            Below 1 in size for a gain of slope 1.
        tau, gain, bias
            See `Reservoir`.
        """
        weights = topologies.cycle_weights(*topologies.checked_chain(n_neurons, weight))
        return cls(weights, tau, gain, bias=bias)

    @classmethod
    def delay_line(
        cls,
        n_neurons: int,
        weight: float = 0.9,
        tau: Any = 0.25,
        gain: Gain | None = None,
        *,
        bias: Any = None,
    ) -> Self:
        """A chain of neurons, each driving the next: a cascade of low-pass filters.

        Parameters
        ----------
        n_neurons : int
        weight : float
        tau, gain, bias
            See `Reservoir`.
        """
        weights = topologies.delay_line_weights(
            *topologies.checked_chain(n_neurons, weight)
        )
        return cls(weights, tau, gain, bias=bias)

    @classmethod
    def oscillators(
        cls,
        decay_times: Any,
        frequencies: Any,
        tau: float | None = None,
        gain: Gain | None = None,
    ) -> Self:
        """A network of independent damped oscillators, whose modes are chosen, not drawn.

        Oscillator j is the pair of neurons 2j and 2j + 1 with the block [[a, −b], [b, a]]
        of φ'(0) W, a = 1 − τ/T_j and b = τω_j. Its eigenvalues a ± ib make the linear mode
        of the network (paper, equation 1, `eom_network`) decay as exp(−t/T_j) and turn by
        ω_j per unit of time, exactly and for every τ.

        Parameters
        ----------
        decay_times : array_like (n_oscillators,)
            T_j > 0, in the unit of time that the stimuli use.
        frequencies : array_like (n_oscillators,)
            Angular frequencies ω_j ≥ 0, in radians per unit of time.
        tau : float, optional
            Time constant of the neurons; the shortest decay time by default, so that no
            neuron inhibits itself. It scales the input, not the modes.
        gain : Gain, optional
            φ; linear by default.

        Notes
        -----
        W is block-diagonal and real, and stored dense as every network. The reservoirs of
        ``greenfold.estimators.pooled`` are these, at a cost linear in the number of
        neurons.

        Examples
        --------
        >>> from greenfold import Reservoir
        >>> network = Reservoir.oscillators([2.0, 8.0], [1.0, 0.5])
        >>> network
        Reservoir(4 neurons, tau=2, gain=linear)
        >>> network.modes().time_constants.tolist()
        [8.0, 8.0, 2.0, 2.0]
        """
        weights, tau = topologies.oscillator_weights(decay_times, frequencies, tau)
        return cls(weights / _slope(gain, "oscillate"), tau, gain)

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
        max_draws: int = 1,
        spectral_radius: float | None = None,
    ) -> Self:
        """Draw a network in space: the nearer two neurons, the likelier a connection.

        A connection exists with a probability that falls as exp(−distance / reach). Weights
        are normal, of either sign; no neuron drives itself.

        Parameters
        ----------
        n_neurons : int
        g : float
            Radius of the disc that the eigenvalues fill, about; for a short reach some
            scatter beyond it.
        tau, gain, bias
            See `Reservoir`.
        rng : numpy Generator, int or None
        reach : float
            Length over which the probability falls by e, in the unit of the positions.
        connectivity : float
            Mean probability of a connection.
        positions : array_like (n_neurons, n_dimensions), optional
            Where the neurons are. By default they are drawn in the unit square (or line, or
            cube), which closes on itself: none is at an edge.
        n_dimensions : int
            Of positions that are drawn.
        max_draws, spectral_radius
            As in `random`.

        Examples
        --------
        >>> from greenfold import Reservoir
        >>> Reservoir.spatial(100, reach=0.1, rng=0)
        Reservoir(100 neurons, tau=0.25, gain=linear)
        """
        source = check.generator(rng)
        draw, g = topologies.spatial_draws(
            n_neurons, g, source, reach, connectivity, positions, n_dimensions
        )

        def make(weights: np.ndarray) -> Self:
            return cls(weights, tau, gain, bias=bias)

        scaled = topologies.scaling(draw, spectral_radius)
        draws = check.count(max_draws, "max_draws")
        return topologies.first_stable(scaled, make, n_neurons, g, draws)

    @classmethod
    def legendre(
        cls,
        n_neurons: int,
        theta: float,
        tau: float | None = None,
        gain: Gain | None = None,
    ) -> Self:
        """The Legendre delay system: a window of length θ slides over the input.

        With the input projection of `greenfold.networks.weights.legendre_delay` the
        states are the coefficients of the last θ of the input along orthonormal Legendre
        polynomials, and a fixed readout is the input θ ago (LegT). Any other u can be
        solved for.

        Parameters
        ----------
        n_neurons : int
        theta : float
            Length of the window, in the unit of time that the stimuli use.
        tau : float, optional
            Time constant of the neurons, θ/n by default. It scales the input, not the
            modes.
        gain : Gain, optional
            φ; linear by default.

        Examples
        --------
        >>> from greenfold import Reservoir
        >>> network = Reservoir.legendre(12, theta=3.0)
        >>> network
        Reservoir(12 neurons, tau=0.25, gain=linear)
        >>> bool(abs(network.weights.trace()) < 1e-12)
        True
        """
        made = topologies.legendre_delay(n_neurons, theta, tau)
        return cls(made.weights / _slope(gain, "remember"), made.tau, gain)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        tau: Any = 0.25,
        gain: Gain | None = None,
        *,
        spectral_radius: float | None = 0.9,
        weight: str | None = "weight",
        nodes: Any = None,
        inhibitory: Any = None,
        allow_unstable: bool = False,
        bias: Any = None,
    ) -> Self:
        """A graph as a network: a connectome, or one of NetworkX's many kinds.

        An edge from j to i becomes W_ij, so that activity runs along the edges. Matrices
        are read as graphs, entry [i, j] for the edge from i to j; a matrix that is W itself
        goes to `Reservoir`.

        Parameters
        ----------
        graph : networkx graph, scipy sparse array or array_like (n_nodes, n_nodes)
            Directed or not, with self-loops or not, connected or not.
        tau, gain, allow_unstable, bias
            See `Reservoir`.
        spectral_radius : float, optional
            Scale the weights so that the largest |λ| of W is this; None leaves them as they
            are.
        weight : str or None
            Attribute of an edge of a NetworkX graph that is its weight; edges without it,
            or all if None, weigh 1.
        nodes : iterable, optional
            Which nodes become neurons, and in which order: nodes of a NetworkX graph, or
            row numbers of a matrix.
        inhibitory : iterable, optional
            Nodes whose outgoing weights are negated.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Reservoir
        >>> edges = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])  # 0 → 1 → 2 → 0
        >>> Reservoir.from_graph(edges, spectral_radius=0.5).weights.round(2).tolist()
        [[0.0, 0.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]
        """
        weights = graphs.graph_weights(graph, weight, nodes, inhibitory, spectral_radius)
        return cls(weights, tau, gain, allow_unstable, bias=bias)


def _slope(gain: Any, purpose: str) -> float:
    """Slope of the gain at zero, by which weights of the linear network are divided."""
    slope = 1.0 if gain is None else getattr(gain, "slope", 1.0)
    if slope == 0:
        raise ValueError(f"`gain` must have a slope at rest for a network to {purpose}.")
    return slope


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reservoir(Architectures, Shown, codec.Saved, kind="reservoir"):
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


def _taken_gain(gain: Gain) -> dict[str, Any]:
    if gain.kind not in KINDS:
        raise TypeError(
            f"the gain {gain.name} is made of code and can not be saved; others can: "
            f"{', '.join(KINDS)}."
        )
    return {"kind": gain.kind, "parameters": dict(gain.parameters)}


#: What a file holds of every network.
NETWORK = {
    "weights": codec.Numbers("neurons", "neurons"),
    "gain": codec.Object(
        Gain.of_kind,
        _taken_gain,
        kind=codec.one_of(KINDS),
        # The series of a gain takes the square of its degree: seconds for this one.
        parameters=codec.Plain(
            "values by name, with a degree up to 2,000",
            lambda x: isinstance(x, dict) and x.get("degree", 0) <= 2000,
        ),
    ),
    "allow_unstable": codec.FLAG,
    "bias": codec.Maybe(codec.Numbers("neurons")),
}
PER_NEURON = codec.Numbers("neurons", or_one=True)
RESERVOIR = codec.describe("reservoir", Reservoir, **NETWORK, tau=PER_NEURON)
