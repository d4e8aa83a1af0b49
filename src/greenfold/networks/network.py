"""What networks in continuous and discrete time share: parts, resting state, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from .._base import checks as check
from .._base import codec
from .._base.printing import Shown
from . import weights as plans
from .gains import KINDS, Gain
from .resting_state import UnstableError


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Network(Shown, codec.Saved):
    """Base of `Reservoir` and `EchoStateNetwork`, which add their equation of motion."""

    weights: np.ndarray
    gain: Gain
    allow_unstable: bool
    bias: np.ndarray | None
    rest: np.ndarray = field(init=False)

    #: Number of networks drawn up to this one, the first stable one.
    n_draws: ClassVar[int] = 1
    #: The attribute that sets the speed of the neurons, and its largest value.
    _speed: ClassVar[str]
    _fastest: ClassVar[float] = np.inf
    #: Whether a network with a non-linear gain may be unstable at rest.
    _may_grow: ClassVar[bool] = False
    #: Label of the largest eigenvalue, and the attribute that holds it.
    _growth: ClassVar[tuple[str, str]]
    #: Defaults of a network made from a graph.
    _of_graph: ClassVar[dict[str, Any]] = {}

    def __init__(
        self, weights: Any, speed: Any, gain: Any, bias: Any, allow_unstable: Any
    ) -> None:
        wanted = "be a Gain, such as Gain.quadratic(0.05)"
        check.must(isinstance(gain, Gain), "gain", wanted, repr(gain), TypeError)
        matrix = check.square_weights(weights)
        name = self._speed
        # A frozen dataclass refuses to set attributes.
        vars(self).update(weights=matrix, gain=gain, allow_unstable=bool(allow_unstable))
        speed = check.positive_each(speed, name, len(matrix), self._fastest)
        vars(self).update({name: speed, "bias": check.constant_input(bias, len(matrix))})
        rest = self._resting_state()
        rest.flags.writeable = False
        vars(self)["rest"] = rest
        tolerated = self.allow_unstable and (self._may_grow or self.gain.is_linear)
        if not (self.is_stable or tolerated):
            message = f"`weights` make the network unstable: {self._say_growth()}."
            raise UnstableError(message, getattr(self, self._growth[1]))

    def _resting_state(self) -> np.ndarray:
        bias = np.zeros(self.n_neurons) if self.bias is None else self.bias
        if self.bias is None and not self.gain.offset:
            return bias
        if not (self.gain.is_linear and self.allow_unstable):
            return self._find_rest(bias)
        try:
            return self._solve_rest(bias)
        except np.linalg.LinAlgError:
            why = "one of its modes has the eigenvalue 1 and integrates it without end"
            problem = f"`bias` leaves the network without a rest state: {why}"
            raise ValueError(f"{problem}; scale the weights.") from None

    def _solve_rest(self, bias: np.ndarray) -> np.ndarray:
        """Return the resting state of a linear network, stable or not."""
        connectivity = self.gain.slope * self.weights
        return np.linalg.solve(np.eye(self.n_neurons) - connectivity, bias)

    #: The stable resting state for a bias, and how an unstable network grows, in words.
    _find_rest: ClassVar[Callable[..., np.ndarray]]
    _say_growth: ClassVar[Callable[..., str]]

    @classmethod
    def _draw(
        cls, plan: plans.Plan, spectral_radius: Any, max_draws: Any = None, **parts: Any
    ) -> Self:
        """Return the first stable network of a plan; with None, the first one drawn."""
        if spectral_radius is not None or max_draws is None:
            spectral_radius = check.positive(spectral_radius, "spectral_radius")
        if max_draws is None:
            return cls(plan.draw(spectral_radius), **parts)
        max_draws = check.count(max_draws, "max_draws")
        found: list[float] = []
        while True:
            weights = plan.draw(spectral_radius)
            try:
                made = cls(weights, **parts)
            except UnstableError as error:
                found.append(error.abscissa)
                # The largest eigenvalue varies by about 1/√N between draws: far beyond
                # that, drawing again does not help.
                hopeless = min(found) > 1 + 5 / np.sqrt(len(weights))
                if len(found) == max_draws or hopeless:
                    allow = "allow_unstable" in str(error)
                    message = _say_draws(found, plan.g, hopeless, allow)
                    raise UnstableError(message, min(found)) from None
            else:
                vars(made)["n_draws"] = len(found) + 1
                return made

    @classmethod
    def cycle(cls, n_neurons: int, weight: float = 0.9, *args: Any, **kwargs: Any) -> Self:
        """Make a ring of neurons, each driving the next with the same weight.

        ``args`` and ``kwargs`` are the arguments of the class after the weights. With a
        gain of slope 1, the network is stable for |weight| < 1.
        """
        return cls(plans.cycle_weights(n_neurons, weight), *args, **kwargs)

    @classmethod
    def delay_line(
        cls, n_neurons: int, weight: float = 0.9, *args: Any, **kwargs: Any
    ) -> Self:
        """Make a chain of neurons, each driving the next; any weight is stable.

        In continuous time it is a cascade of low-pass filters; in discrete time with leak 1
        it is a shift register. The arguments are as in `cycle`.
        """
        return cls(plans.delay_line_weights(n_neurons, weight), *args, **kwargs)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        *args: Any,
        spectral_radius: float | None = 0.9,
        weight: str | None = "weight",
        nodes: Any = None,
        inhibitory: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Make a network from a graph, such as a connectome or a NetworkX graph.

        An edge from j to i becomes W_ij, so activity runs along the edges. Entry [i, j] of
        a matrix is the edge from i to j; if your matrix is W itself, pass it to the class.

        Parameters
        ----------
        graph : networkx graph, scipy sparse array or array_like (n_nodes, n_nodes)
            Directed or not, with self-loops or not, connected or not.
        spectral_radius : float, optional
            Scale the weights so that this is the largest |λ| of W; None keeps them as they
            are.
        weight : str or None
            Edge attribute of a NetworkX graph that holds the weight; edges without it, or
            all edges if None, have weight 1.
        nodes : iterable, optional
            Nodes that become neurons, in this order: nodes of a NetworkX graph, or row
            numbers of a matrix.
        inhibitory : iterable, optional
            Nodes whose outgoing weights are negated.
        *args, **kwargs
            As in `cycle`; ``leak`` is 0.3 by default.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import Reservoir
        >>> edges = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])  # 0 → 1 → 2 → 0
        >>> Reservoir.from_graph(edges, spectral_radius=0.5).weights.round(2).tolist()
        [[0.0, 0.0, 0.5], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]
        """
        weights = plans.graph_weights(graph, weight, nodes, inhibitory, spectral_radius)
        usual = {} if args else cls._of_graph
        return cls(weights, *args, **{**usual, **kwargs})

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


def slope_at_rest(gain: Any, purpose: str) -> float:
    """Slope of the gain at zero, by which the linear network's weights are divided."""
    slope = 1.0 if gain is None else getattr(gain, "slope", 1.0)
    if slope == 0:
        raise ValueError(f"`gain` must have a slope at rest for a network to {purpose}.")
    return slope


def _range(value: float | np.ndarray) -> str:
    """Format a number, or the range of several."""
    low, high = float(np.min(value)), float(np.max(value))
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def _say_draws(found: list[float], g: float, hopeless: bool, allow: bool) -> str:
    """Say what to do if no draw of a random network was stable."""
    if len(found) == 1 and not hopeless:
        way = "draw again with a larger max_draws, or scale it with spectral_radius=0.9"
    else:
        way = f"lower `g`, or scale the network with spectral_radius=0.9 (g={g:g} here)"
    drawn = "the network drawn is" if len(found) == 1 else f"all {len(found)} draws are"
    return (
        f"{drawn} unstable: the largest real part of the eigenvalues of φ'(0) W is "
        f"{min(found):.4g}, and it must be below 1; {way}"
        f"{', or pass allow_unstable=True' if allow else ''}."
    )


def _taken_gain(gain: Gain) -> dict[str, Any]:
    if gain.kind not in KINDS:
        code = f"the gain {gain.name} is made of code and cannot be saved"
        raise TypeError(f"{code}; others can: {', '.join(KINDS)}.")
    return {"kind": gain.kind, "parameters": dict(gain.parameters)}


#: The time to expand a gain grows with the square of its degree: seconds for this one.
_PARAMETERS = codec.Plain(
    "values by name, with a degree up to 2,000",
    lambda x: isinstance(x, dict) and x.get("degree", 0) <= 2000,
)
#: Fields of every network in a file.
NETWORK = {
    "weights": codec.Numbers("neurons", "neurons"),
    "gain": codec.Object(
        Gain.of_kind, _taken_gain, kind=codec.one_of(KINDS), parameters=_PARAMETERS
    ),
    "allow_unstable": codec.FLAG,
    "bias": codec.Maybe(codec.Numbers("neurons")),
}
#: Speed of the neurons.
PER_NEURON = codec.Numbers("neurons", or_one=True)
