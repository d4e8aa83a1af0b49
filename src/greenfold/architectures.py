"""Reservoirs by the plan of their connections: drawn, laid out, or read from a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from . import _validation as check
from . import graphs, topologies
from .gains import Gain


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
        ``greenfold.pooled`` are these, at a cost linear in the number of neurons.

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

        With the input projection of `greenfold.topologies.legendre_delay` the states are
        the coefficients of the last θ of the input along orthonormal Legendre polynomials,
        and a fixed readout is the input θ ago (LegT). Any other u can be solved for.

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
