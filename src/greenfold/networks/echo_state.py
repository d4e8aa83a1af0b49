"""A network in discrete time: the leaky echo state network."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._base import checks as check
from .._base import codec
from .._base.printing import Shown
from . import weights as graphs
from . import weights as topologies
from .gains import Gain
from .reservoir import NETWORK, PER_NEURON, check_gain, printed_range
from .resting_state import UnstableError, rest_of_map

__all__ = ["EchoStateNetwork"]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class EchoStateNetwork(Shown, codec.Saved, kind="echo_state_network"):
    """A leaky echo state network y' = (1 − a) y + a φ(W y + u x + b).

    The convention is reservoirpy's. `unfold` takes it at the linear order, with the
    certificate; `Dynamics` runs and differentiates it as it is; both count states from
    ``rest``, where every series begins. A step of the stimulus is a step of the network.

    Parameters
    ----------
    weights : array_like or scipy sparse (n_neurons, n_neurons)
        W_ij is the connection from neuron j to neuron i. Stored dense.
    leak : float or array_like (n_neurons,)
        a in (0, 1]: the part of a neuron that is new in every step.
    gain : Gain, optional
        φ; tanh by default.
    bias : float or array_like (n_neurons,), optional
        The bias b; zero by default.
    allow_unstable : bool
        Accept a *linear* network whose modes grow.

    Attributes
    ----------
    rest : ndarray (n_neurons,)
        The state without input, y* = φ(W y* + b).

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import EchoStateNetwork, GaussianStimuli, optimize, unfold
    >>> network = EchoStateNetwork.random(50, leak=0.3, rng=0)
    >>> best = optimize(unfold(network, n_steps=20), GaussianStimuli.random(20, rng=1))
    >>> best.status
    'certified'
    """

    weights: np.ndarray
    leak: float | np.ndarray
    gain: Gain
    bias: np.ndarray | None
    allow_unstable: bool
    rest: np.ndarray = field(init=False)

    def __init__(
        self,
        weights: Any,
        leak: Any = 1.0,
        gain: Gain | None = None,
        bias: Any = None,
        allow_unstable: bool = False,
    ) -> None:
        matrix = check.square_weights(weights)
        values = {
            "weights": matrix,
            "leak": _checked_leak(leak, len(matrix)),
            "gain": check_gain(gain, Gain.tanh()),
            "bias": check.constant_input(bias, len(matrix)),
            "allow_unstable": bool(allow_unstable),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        rest = self._find_rest()
        rest.flags.writeable = False
        object.__setattr__(self, "rest", rest)
        self._refuse_growth()

    def _find_rest(self) -> np.ndarray:
        n = self.n_neurons
        if self.bias is None and not self.gain.offset:
            return np.zeros(n)
        bias = np.zeros(n) if self.bias is None else self.bias
        if self.gain.is_linear and self.allow_unstable:
            slope = self.gain.slope
            try:
                return np.linalg.solve(np.eye(n) - slope * self.weights, slope * bias)
            except np.linalg.LinAlgError:
                raise ValueError(
                    "`bias` leaves the network without a rest state: one of its modes has "
                    "the eigenvalue 1 and integrates it for ever; scale the weights."
                ) from None
        return rest_of_map(self.weights, bias, self.leak, self.gain, self.gain.derivative)

    def _refuse_growth(self) -> None:
        if self.is_stable or (self.allow_unstable and self.gain.is_linear):
            return
        escape = ", or pass allow_unstable=True" if self.gain.is_linear else ""
        raise UnstableError(
            "`weights` make the network unstable: a step multiplies a small deviation from "
            f"rest by {self.spectral_radius:.4g}, and it must be by less than 1; scale the "
            f"weights down{escape}.",
            self.spectral_radius,
        )

    def _facts(self) -> dict[str, Any]:
        facts = {
            "neurons": self.n_neurons,
            "leak": printed_range(self.leak),
            "gain": self.gain.name,
            "spectral_radius": self.spectral_radius,
        }
        return facts if self.bias is None else {**facts, "bias": printed_range(self.bias)}

    def __repr__(self) -> str:
        bias = "" if self.bias is None else f", bias={printed_range(self.bias)}"
        return (
            f"EchoStateNetwork({self.n_neurons} neurons, leak={printed_range(self.leak)}, "
            f"gain={self.gain.name}{bias})"
        )

    @classmethod
    def random(
        cls,
        n_neurons: int,
        leak: Any = 0.3,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        connectivity: float = 0.1,
        spectral_radius: float = 0.9,
        bias: Any = None,
    ) -> EchoStateNetwork:
        """Draw sparse normal weights and scale them, as is usual for echo state networks.

        Parameters
        ----------
        n_neurons : int
        leak, gain, bias
            See `EchoStateNetwork`.
        rng : numpy Generator, int or None
        connectivity : float
            Probability of a connection.
        spectral_radius : float
            Largest |λ| of W.
        """
        n_neurons = check.count(n_neurons, "n_neurons")
        share = topologies.connection_probability(connectivity)
        radius = check.positive(spectral_radius, "spectral_radius")
        drawn = topologies.random_weights(n_neurons, 1.0, check.generator(rng), share)
        return cls(topologies.scaled_to_radius(drawn, radius), leak, gain, bias)

    @classmethod
    def cycle(
        cls,
        n_neurons: int,
        weight: float = 0.9,
        leak: Any = 1.0,
        gain: Gain | None = None,
        *,
        bias: Any = None,
    ) -> EchoStateNetwork:
        """A ring of neurons, each driving the next with the same weight.

        Parameters
        ----------
        n_neurons : int
        weight : float
        leak, gain, bias
            See `EchoStateNetwork`.
        """
        chain = topologies.checked_chain(n_neurons, weight)
        return cls(topologies.cycle_weights(*chain), leak, gain, bias)

    @classmethod
    def delay_line(
        cls,
        n_neurons: int,
        weight: float = 0.9,
        leak: Any = 1.0,
        gain: Gain | None = None,
        *,
        bias: Any = None,
    ) -> EchoStateNetwork:
        """A chain of neurons, each driving the next: without a leak, a shift register.

        Parameters
        ----------
        n_neurons : int
        weight : float
        leak, gain, bias
            See `EchoStateNetwork`.
        """
        chain = topologies.checked_chain(n_neurons, weight)
        return cls(topologies.delay_line_weights(*chain), leak, gain, bias)

    @classmethod
    def spatial(
        cls,
        n_neurons: int,
        leak: Any = 0.3,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        reach: float = 0.2,
        connectivity: float = 0.1,
        positions: Any = None,
        n_dimensions: int = 2,
        spectral_radius: float = 0.9,
        bias: Any = None,
    ) -> EchoStateNetwork:
        """Draw a network in space, as `Reservoir.spatial` does, and scale it.

        Parameters
        ----------
        n_neurons : int
        leak, gain, bias
            See `EchoStateNetwork`.
        rng, reach, connectivity, positions, n_dimensions
            See `Reservoir.spatial`.
        spectral_radius : float
            Largest |λ| of W.
        """
        source = check.generator(rng)
        draw, _ = topologies.spatial_draws(
            n_neurons, 1.0, source, reach, connectivity, positions, n_dimensions
        )
        radius = check.positive(spectral_radius, "spectral_radius")
        return cls(topologies.scaled_to_radius(draw(), radius), leak, gain, bias)

    @classmethod
    def legendre(
        cls, n_neurons: int, theta: float, gain: Gain | None = None
    ) -> EchoStateNetwork:
        """The Legendre delay system for input that is constant over each step.

        Its input projection is that of `greenfold.networks.weights.legendre_step`; any
        other u can be solved for.

        Parameters
        ----------
        n_neurons : int
        theta : float
            Length of the window in steps.
        gain : Gain, optional
            φ; linear by default here, as the delay system is.
        """
        gain = check_gain(gain, Gain.linear())
        if gain.slope == 0:
            raise ValueError("`gain` must have a slope at rest for a network to remember.")
        weights = topologies.legendre_step(n_neurons, theta).weights
        return cls(weights / gain.slope, 1.0, gain)

    @classmethod
    def from_graph(
        cls,
        graph: Any,
        leak: Any = 0.3,
        gain: Gain | None = None,
        *,
        spectral_radius: float | None = 0.9,
        weight: str | None = "weight",
        nodes: Any = None,
        inhibitory: Any = None,
        bias: Any = None,
    ) -> EchoStateNetwork:
        """A graph as a network; an edge from j to i becomes W_ij.

        Parameters
        ----------
        graph, weight, nodes, inhibitory, spectral_radius
            See `Reservoir.from_graph`.
        leak, gain, bias
            See `EchoStateNetwork`.
        """
        weights = graphs.graph_weights(graph, weight, nodes, inhibitory, spectral_radius)
        return cls(weights, leak, gain, bias)

    def with_leak(self, leak: Any) -> EchoStateNetwork:
        """The same network with another leak."""
        return EchoStateNetwork(
            self.weights, leak, self.gain, self.bias, self.allow_unstable
        )

    @property
    def n_neurons(self) -> int:
        """Number of neurons N."""
        return self.weights.shape[0]

    @cached_property
    def linear_step(self) -> tuple[np.ndarray, np.ndarray]:
        """E and F of the network linearised at rest: d' = E d + F u x.

        E = 1 − a + a φ' W and F = a φ', with the leak and the slope φ'(W y* + b) of each
        neuron; both (n_neurons, n_neurons).
        """
        active = self.weights @ self.rest + (0.0 if self.bias is None else self.bias)
        slope = np.asarray(self.gain.derivative(active), dtype=np.float64)
        part = np.broadcast_to(self.leak * slope, (self.n_neurons,))
        keep = np.broadcast_to(1 - np.asarray(self.leak), (self.n_neurons,))
        return np.diag(keep) + part[:, None] * self.weights, np.diag(part)

    @cached_property
    def spectral_radius(self) -> float:
        """Largest |λ| of E: what is left of the slowest deviation after a step."""
        return float(np.abs(np.linalg.eigvals(self.linear_step[0])).max())

    @property
    def is_stable(self) -> bool:
        """Whether every mode of the linear network decays."""
        return self.spectral_radius < 1


def _checked_leak(leak: Any, n_neurons: int) -> float | np.ndarray:
    value = check.positive_each(leak, "leak", n_neurons)
    if np.max(value) > 1:
        raise ValueError(f"`leak` must lie in (0, 1]; got {np.max(value):g}.")
    return value


codec.describe("echo_state_network", EchoStateNetwork, **NETWORK, leak=PER_NEURON)
