"""The paper's network in continuous time, and the base class of all networks.

`Network` defines the parts, resting state, architectures and file format. `Reservoir` adds
its equation of motion, modes and stability.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base import model_files
from .._base.messages import ALLOW, Argument, Part
from .._base.printing import Shown
from . import matrices, spectra
from . import weights as plans
from .gains import KINDS, Gain
from .resting_state import UnstableError, continuous_resting_state

__all__ = ["Gain", "Reservoir", "UnstableError"]


#: A class of networks, as a function of weights W and of its other arguments.
Others = ParamSpec("Others")
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Network(Shown, model_files.Saved):
    """A base class of `Reservoir` and `EchoStateNetwork`, which add equations of motion."""

    weights: matrices.Weights
    gain: Gain
    allow_unstable: bool
    bias: np.ndarray | None
    rest: np.ndarray = field(init=False)

    #: Number of draws up to this network, the first stable one.
    n_draws: ClassVar[int] = 1
    #: The attribute that sets the speed of the neurons, and its largest value.
    _speed: ClassVar[str]
    _fastest: ClassVar[float] = np.inf
    #: Whether a network with a non-linear gain may be unstable at rest.
    _may_grow: ClassVar[bool] = False
    #: Label of the largest eigenvalue, and the attribute that holds it.
    _growth: ClassVar[tuple[str, str]]

    def __init__(
        self,
        weights: plans.Matrix,
        speed: ArrayLike,
        gain: Gain,
        bias: ArrayLike | None,
        allow_unstable: bool,
    ) -> None:
        wanted = "be a Gain, such as Gain.quadratic(0.05)"
        check.instance(gain, Gain, "gain", wanted)
        matrix = check.square_weights(weights)
        name = self._speed
        # A frozen dataclass does not allow `setattr`.
        vars(self).update(weights=matrix, gain=gain, allow_unstable=bool(allow_unstable))
        n = matrix.shape[0]
        speed = check.positive_each(speed, name, n, self._fastest)
        vars(self).update({name: speed, "bias": check.constant_input(bias, n)})
        rest = self._resting_state()
        rest.flags.writeable = False
        vars(self)["rest"] = rest
        tolerated = self.allow_unstable and (self._may_grow or self.gain.is_linear)
        if not (tolerated or self.is_stable):
            what = "`weights` make the network unstable: "
            raise UnstableError(
                getattr(self, self._growth[1]), what, *self._say_growth(), "."
            )

    def _resting_state(self) -> np.ndarray:
        bias = np.zeros(self.n_neurons) if self.bias is None else self.bias
        if self.bias is None and not self.gain.offset:
            return bias
        if not (self.gain.is_linear and self.allow_unstable):
            return self._find_rest(bias)
        try:
            return self._solve_rest(bias)
        except np.linalg.LinAlgError:
            why = "one of its modes has the eigenvalue 1 and integrates the bias forever"
            problem = f"`bias` leaves the network without a rest state: {why}"
            raise ValueError(f"{problem}; scale the weights.") from None

    def _solve_rest(self, bias: np.ndarray) -> np.ndarray:
        """Return the resting state of a linear network, stable or not."""
        connectivity = self.gain.slope * self.weights
        return spectra.solve(matrices.plus_diagonal(-connectivity, 1.0), bias)

    #: Methods that return the stable resting state for a bias, and that describe how an
    #: unstable network grows.
    _find_rest: ClassVar[Callable[..., np.ndarray]]
    _say_growth: ClassVar[Callable[..., tuple[Part, ...]]]

    @classmethod
    def cycle(
        cls: Callable[Concatenate[matrices.Weights, Others], Made],
        n_neurons: int,
        weight: float = 0.9,
        *args: Others.args,
        **kwargs: Others.kwargs,
    ) -> Made:
        """Make a ring of neurons, in which each drives the next with the same weight.

        ``args`` and ``kwargs`` are the arguments of the class after the weights. With a
        gain of slope 1, the network is stable for |weight| < 1.
        """
        return cls(plans.cycle_weights(n_neurons, weight), *args, **kwargs)

    @classmethod
    def delay_line(
        cls: Callable[Concatenate[matrices.Weights, Others], Made],
        n_neurons: int,
        weight: float = 0.9,
        *args: Others.args,
        **kwargs: Others.kwargs,
    ) -> Made:
        """Make a chain of neurons, in which each drives the next; any weight is stable.

        In continuous time, it is a cascade of low-pass filters. In discrete time with leak
        1, it is a shift register. The arguments are as in `cycle`.
        """
        return cls(plans.delay_line_weights(n_neurons, weight), *args, **kwargs)

    @classmethod
    def from_graph(
        cls: Callable[Concatenate[matrices.Weights, Others], Made],
        graph: Any,
        spectral_radius: float | None = 0.9,
        weight: str | None = "weight",
        nodes: Iterable[Hashable] | None = None,
        inhibitory: Iterable[Hashable] | None = None,
        *args: Others.args,
        **kwargs: Others.kwargs,
    ) -> Made:
        """Make a network from a graph, such as a connectome or a NetworkX graph.

        An edge from j to i becomes W_ij, so activity runs along the edges. In a matrix,
        entry [i, j] is the edge from i to j. If your matrix is W itself, pass it to the
        class instead.

        Parameters
        ----------
        graph : Connectome, networkx graph, scipy sparse array or array_like
            Directed or not, with self-loops or not, connected or not.
        spectral_radius : float, optional
            Scale the weights so that this is the largest |λ| of W; None keeps them as they
            are.
        weight : str or None
            Edge attribute of a NetworkX graph that holds the weight. Edges without it, or
            all edges if it is None, have weight 1. Matrices have no attributes.
        nodes : iterable, optional
            Nodes that become neurons, in this order: nodes of a NetworkX graph, or row
            numbers of a matrix.
        inhibitory : iterable, optional
            Nodes whose outgoing weights are negated.
        *args, **kwargs
            As in `cycle`.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Reservoir
        >>> edges = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])  # 0 → 1 → 2 → 0
        >>> Reservoir.from_graph(edges, spectral_radius=0.5).weights.round(2).tolist()
        [[0.0, 0.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]
        """
        weights = plans.graph_weights(graph, weight, nodes, inhibitory, spectral_radius)
        return cls(weights, *args, **kwargs)

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.weights.shape[0]

    @property
    def is_stable(self) -> bool:
        """Whether every mode of the linear network decays."""
        return getattr(self, self._growth[1]) < 1

    def _facts(self) -> dict[str, Any]:
        shown, growth = self._growth
        speed = _range(getattr(self, self._speed))
        facts = {"neurons": self.n_neurons, self._speed: speed, "gain": self.gain.name}
        facts[shown] = getattr(self, growth)
        return facts if self.bias is None else {**facts, "bias": _range(self.bias)}

    def __repr__(self) -> str:
        bias = "" if self.bias is None else f", bias={_range(self.bias)}"
        speed = f"{self._speed}={_range(getattr(self, self._speed))}"
        size = f"{type(self).__name__}({self.n_neurons} neurons"
        return f"{size}, {speed}, gain={self.gain.name}{bias})"


def slope_at_rest(gain: Gain | None, purpose: str) -> float:
    """Return the slope of the gain at zero, which divides the weights of the network."""
    slope = gain.slope if isinstance(gain, Gain) else 1.0
    check.require(slope, f"`gain` must have a slope at rest for a network to {purpose}.")
    return slope


def _g(g: float | None, spectral_radius: float | None) -> float:
    """Return the spread of the weights, which a spectral radius replaces."""
    both = g is not None and spectral_radius is not None
    check.without_effect(both, "g", "beside `spectral_radius`")
    return 0.9 if g is None else g


def _range(value: float | np.ndarray) -> str:
    """Format a number, or the range of several."""
    low, high = float(np.min(value)), float(np.max(value))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _taken_gain(gain: Gain) -> dict[str, Any]:
    if gain.kind not in KINDS:
        code = f"the gain {gain.name} is made of functions and cannot be saved"
        raise TypeError(f"{code}; use one of {', '.join(KINDS)}.")
    return {"kind": gain.kind, "parameters": dict(gain.parameters)}


#: The time to expand a gain grows with the square of its degree. Degree 2,000 takes
#: seconds.
_PARAMETERS = model_files.Plain(
    "values by name, with a degree up to 2,000",
    lambda x: isinstance(x, dict) and cast(dict[str, int], x).get("degree", 0) <= 2000,
)
#: Fields of every network in a file.
NETWORK = {
    "weights": model_files.Square("neurons"),
    "gain": model_files.Object(
        Gain.of_kind, _taken_gain, kind=model_files.one_of(KINDS), parameters=_PARAMETERS
    ),
    "allow_unstable": model_files.FLAG,
    "bias": model_files.Maybe(model_files.Numbers("neurons")),
}
#: Field for the speed of the neurons: one number, or one per neuron.
PER_NEURON = model_files.Numbers("neurons", or_one=True)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Reservoir(Network, kind="reservoir"):
    """A recurrent network τ ẏ = −y + W φ(y) + b + u x(t) (equation 1, `eom_network`).

    The paper's network has one time constant and no bias. A bias, or a gain that is not
    zero at zero, moves the resting state. In `unfold`, `Dynamics` and `simulate`, states
    are deviations from ``rest``, and every series starts at rest.

    Parameters
    ----------
    weights : array_like or scipy sparse (n_neurons, n_neurons)
        W_ij is the connection from neuron j to neuron i. ``weights`` of the network is
        an ndarray, or a CSR array if they are given sparse. `unfold` computes with
        products with W if there are 1,000 neurons or more and at most 10 % connections,
        without any dense array.
    tau : float or array_like (n_neurons,)
        Time constant of all neurons or of each neuron, in the unit of time of the stimuli.
    gain : Gain, optional
        Gain φ; linear by default. The slope φ' at rest need not be 1: the linear part of
        the dynamics has the connectivity W diag(φ').
    allow_unstable : bool
        Accept a *linear* network whose modes grow (Re λ ≥ 1); its unfolding is exact over a
        finite time. A non-linear network with growing modes is refused, as in the paper.
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
        weights: plans.Matrix,
        tau: ArrayLike = 0.25,
        gain: Gain | None = None,
        allow_unstable: bool = False,
        *,
        bias: ArrayLike | None = None,
    ) -> None:
        gain = Gain.linear() if gain is None else gain
        super().__init__(weights, tau, gain, bias, allow_unstable)

    def _find_rest(self, bias: np.ndarray) -> np.ndarray:
        tau, gain = np.broadcast_to(np.asarray(self.tau), bias.shape), self.gain
        return continuous_resting_state(self.weights, bias, tau, gain, gain.derivative)

    def _say_growth(self) -> tuple[Part, ...]:
        radius = self.spectral_abscissa
        escape: Part = (
            ", since a non-linear network cannot be unfolded around growing modes"
        )
        if self.gain.is_linear:
            escape = ALLOW
        if isinstance(self.tau, np.ndarray):
            grows = f"a mode grows by {radius - 1:.4g} of its size per mean time constant"
            advice = "scale the weights down, slow excitation or speed up inhibition"
            return f"with these time constants, {grows}; {advice}", escape
        largest = f"the largest real part of the eigenvalues of φ'(0) W is {radius:.4g}"
        what, by = "multiply the weights (or ", f") by {0.9 / radius:.3g} to reach 0.9"
        return f"{largest}, and it must be below 1; {what}", Argument("g"), by, escape

    @classmethod
    def random(
        cls,
        n_neurons: int,
        g: float | None = None,
        tau: ArrayLike = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        allow_unstable: bool = False,
        max_draws: int = 100,
        spectral_radius: float | None = None,
        connectivity: float = 1.0,
        bias: ArrayLike | None = None,
    ) -> Self:
        """Draw the paper's random network, with weights W_ij ~ N(0, g²/N).

        Parameters
        ----------
        n_neurons : int
        g : float, optional
            Spread of the weights; the eigenvalues fill a disc of radius about g. It is 0.9
            by default.
        tau, gain, allow_unstable, bias
            See `Reservoir`.
        rng : numpy Generator, int or None
            Source of randomness.
        max_draws : int
            Largest number of draws. An unstable network is drawn again, and the first
            stable draw is kept; its attribute ``n_draws`` counts the draws. At g =
            0.9, 12 % of networks of 20 neurons and 4 % of networks of 100 are drawn again.
        spectral_radius : float, optional
            Scale the weights so that this is the largest |λ| of W; it replaces ``g``.
        connectivity : float
            Probability of a connection; g remains the radius. Up to 0.1, 1,000 neurons and
            more are drawn as a sparse array.
        """
        plan = plans.random_plan(n_neurons, _g(g, spectral_radius), rng, connectivity)
        make = partial(cls, tau=tau, gain=gain, allow_unstable=allow_unstable, bias=bias)
        return plans.first_stable(plan, make, spectral_radius, max_draws)

    @classmethod
    def excitatory_inhibitory(
        cls,
        n_neurons: int,
        g: float | None = None,
        tau: ArrayLike = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        excitatory: float = 0.8,
        connectivity: float = 1.0,
        inhibition: float | None = 1.0,
        bias: ArrayLike | None = None,
        max_draws: int = 100,
        spectral_radius: float | None = None,
    ) -> Self:
        """Draw a network that obeys Dale's law: each neuron only excites or only inhibits.

        Parameters
        ----------
        n_neurons, gain, rng, connectivity, max_draws, spectral_radius
            As in `random`.
        g : float, optional
            Radius of the disc that the bulk of the eigenvalues fills; 0.9 by default.
        tau, bias : float, (float, float) or array_like (n_neurons,)
            Two numbers apply to the excitatory and to the inhibitory neurons.
        excitatory : float
            Share of excitatory neurons, which come first.
        inhibition : float, optional
            Ratio of inhibition to excitation, summed over the inputs of each neuron; 1 is
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
        g = _g(g, spectral_radius)
        plan = plans.dale_plan(n_neurons, g, rng, excitatory, connectivity, inhibition)
        tau, bias = plan.per_neuron(tau), None if bias is None else plan.per_neuron(bias)
        make = partial(cls, tau=tau, gain=gain, bias=bias)
        return plans.first_stable(plan, make, spectral_radius, max_draws)

    @classmethod
    def oscillators(
        cls,
        decay_times: ArrayLike,
        frequencies: ArrayLike,
        tau: float | None = None,
        gain: Gain | None = None,
    ) -> Self:
        """Make a network of independent damped oscillators, whose modes you choose.

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
            Time constant; by default the shortest decay time, so that no neuron inhibits
            itself. It scales the input but does not change the modes.
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
        g: float | None = None,
        tau: ArrayLike = 0.25,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        reach: float = 0.2,
        connectivity: float = 0.1,
        positions: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        max_draws: int = 100,
        spectral_radius: float | None = None,
    ) -> Self:
        """Draw a network in space, in which nearby neurons are more likely to connect.

        The probability of a connection falls as exp(−distance / reach). Weights are normal
        and of either sign. No neuron drives itself.

        Parameters
        ----------
        n_neurons, tau, gain, rng, bias, max_draws, spectral_radius
            As in `random`.
        g : float, optional
            Approximate radius of the disc of eigenvalues, 0.9 by default; with a short
            reach, some lie outside.
        reach : float
            Distance over which the probability falls by a factor e, in the unit of the
            positions.
        connectivity : float
            Mean probability of a connection.
        positions : array_like (n_neurons, n_dimensions), optional
            Positions of the neurons. By default they are drawn in the unit square with
            periodic boundaries.
        """
        place = reach, connectivity, positions
        plan = plans.spatial_plan(n_neurons, _g(g, spectral_radius), rng, *place)
        make = partial(cls, tau=tau, gain=gain, bias=bias)
        return plans.first_stable(plan, make, spectral_radius, max_draws)

    @classmethod
    def legendre(
        cls,
        n_neurons: int,
        theta: float,
        tau: float | None = None,
        gain: Gain | None = None,
    ) -> Self:
        """Make the Legendre delay system, which stores the last θ of its input.

        With the input projection of `greenfold.networks.weights.legendre_delay`, the states
        are the coefficients of the last θ of the input in orthonormal Legendre polynomials,
        and a fixed readout gives the input from a time θ ago (LegT). You can also solve for
        another u.

        Parameters
        ----------
        n_neurons : int
        theta : float
            Length of the window, in the unit of time of the stimuli.
        tau : float, optional
            Time constant; θ/n by default. It scales the input but does not change the
            modes.
        gain : Gain, optional
        """
        made = plans.legendre_delay(n_neurons, theta, tau)
        return cls(made.weights / slope_at_rest(gain, "remember"), made.tau, gain)

    def with_tau(self, tau: ArrayLike) -> Reservoir:
        """Return the same network with another time constant.

        If the time constants differ, a number is their new mean, and their ratios are kept.
        """
        if isinstance(self.tau, np.ndarray) and np.ndim(tau) == 0:
            tau = self.tau * (check.positive(tau, "tau") / self.mean_tau)
        return replace(self, tau=tau)

    @property
    def mean_tau(self) -> float:
        """The time constant, or the mean of unequal time constants."""
        return float(np.mean(self.tau))

    @cached_property
    def pace(self) -> float | np.ndarray:
        """Mean time constant divided by that of each neuron; 1.0 if they are equal."""
        return self.mean_tau / self.tau if isinstance(self.tau, np.ndarray) else 1.0

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        """Taylor coefficients of φ(y* + d) − φ(y*) in powers of d, from c_0 = 0 on.

        They are numbers if the network rests at zero, and arrays (n_neurons,) otherwise.
        """
        if self.rest.any():
            return self.gain.around(self.rest)
        return (0.0, *self.gain.coefficients[1:])

    @cached_property
    def linear_weights(self) -> matrices.Weights:
        """Connectivity W_ij φ'(y*_j) of the network linearised at rest."""
        slope = self.coefficients[1] if len(self.coefficients) > 1 else 0.0
        return matrices.scaled_columns(self.weights, slope)

    def mode_matrix(self, connectivity: matrices.Weights) -> matrices.Weights:
        """Return the matrix that has these `Eigenmodes`, from a connectivity."""
        if not isinstance(self.pace, np.ndarray):
            return connectivity
        decay = matrices.scaled_rows(self.pace, matrices.plus_diagonal(connectivity, -1.0))
        return matrices.plus_diagonal(decay, 1.0)

    @cached_property
    def spectral_abscissa(self) -> float:
        """Largest Re λ of the linear connectivity; see `modes` if τ differs."""
        return spectra.largest(self.mode_matrix(self.linear_weights), "real part")

    def modes(self, slowest: int | None = None) -> spectra.Eigenmodes:
        """Return eigenvalues, left eigenvectors and time constants of the connectivity.

        ``slowest`` limits the modes to those of largest Re λ. A large sparse network then
        needs products with W alone.
        """
        matrix = self.mode_matrix(self.linear_weights)
        return spectra.eigenmodes(matrix, self.mean_tau, self.pace, slowest)

    def linearized_abscissa(self, states: ArrayLike) -> np.ndarray:
        """Return the largest Re λ̃ of the connectivity W_ij φ'(y_j) around given states.

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
        found = np.empty(len(slopes))
        for case, slope in enumerate(slopes):
            matrix = self.mode_matrix(matrices.scaled_columns(self.weights, slope))
            found[case] = spectra.largest(matrix, "real part")
        return found.reshape(states.shape[:-1])


RESERVOIR = model_files.describe("reservoir", Reservoir, **NETWORK, tau=PER_NEURON)
