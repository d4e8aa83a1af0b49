"""A network in discrete time: the leaky echo state network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base import model_files
from .._base.arrays import is_sparse
from .._base.messages import ALLOW, Part
from . import matrices, spectra
from . import weights as plans
from .gains import Gain
from .reservoir import NETWORK, PER_NEURON, Network, Reservoir, slope_at_rest
from .resting_state import discrete_resting_state

__all__ = ["EchoStateNetwork"]

#: A sparse product with about 40 states on the host is faster than a dense one from this
#: number of neurons on, up to this share: 9 against 16 µs for 100 neurons with 10
#: connections each, and 24 against 140 µs for 300.
_THIN_NEURONS, _THIN_SHARE = 100, 0.15


@dataclass(frozen=True, eq=False, init=False, repr=False)
class EchoStateNetwork(Network, kind="echo_state_network"):
    """A leaky echo state network y' = (1 − a) y + a φ(W y + u x + b).

    The convention is that of reservoirpy. `unfold` takes the network at linear order, for
    which the optimum can be certified. `Dynamics` runs and differentiates the full network.
    In both, states are deviations from ``rest``, every series starts at rest, and one step
    of the stimulus is one step of the network.

    Parameters
    ----------
    weights : array_like or scipy sparse (n_neurons, n_neurons)
        W_ij is the connection from neuron j to neuron i; kept as in `Reservoir`.
    leak : float or array_like (n_neurons,)
        Leak a in (0, 1], the share of a neuron's state that each step renews.
    gain : Gain, optional
        Gain φ; tanh by default.
    bias : float or array_like (n_neurons,), optional
        The bias b; zero by default.
    allow_unstable : bool
        Accept a network whose modes grow at rest. A linear network then grows without
        bound; with tanh it saturates, and its input may stabilise it.

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

    leak: float | np.ndarray

    _speed = "leak"
    _growth = ("spectral_radius", "spectral_radius")
    _fastest = 1.0
    _may_grow = True

    def __init__(
        self,
        weights: plans.Matrix,
        leak: ArrayLike = 1.0,
        gain: Gain | None = None,
        bias: ArrayLike | None = None,
        allow_unstable: bool = False,
    ) -> None:
        gain = Gain.tanh() if gain is None else gain
        super().__init__(weights, leak, gain, bias, allow_unstable)

    def _find_rest(self, bias: np.ndarray) -> np.ndarray:
        gain = self.gain
        return discrete_resting_state(self.weights, bias, self.leak, gain, gain.derivative)

    def _solve_rest(self, bias: np.ndarray) -> np.ndarray:
        return super()._solve_rest(self.gain.slope * bias)

    def _say_growth(self) -> tuple[Part, ...]:
        grows = f"multiplies a small deviation from rest by {self.spectral_radius:.4g}"
        what = f"one step {grows}, and the factor must be below 1; scale the weights down"
        return what, ALLOW

    @classmethod
    def random(
        cls,
        n_neurons: int,
        leak: ArrayLike = 0.3,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        connectivity: float = 0.1,
        spectral_radius: float = 0.9,
        bias: ArrayLike | None = None,
        allow_unstable: bool = False,
    ) -> EchoStateNetwork:
        """Draw a network with sparse normal weights, scaled to a spectral radius.

        This is usual for echo state networks. The parameters are those of
        `EchoStateNetwork` and of `Reservoir.random`; ``spectral_radius`` is the largest |λ|
        of W.
        """
        plan = plans.random_plan(n_neurons, 1.0, rng, connectivity)
        weights = plan.draw(check.positive(spectral_radius, "spectral_radius"))
        return cls(weights, leak, gain, bias, allow_unstable)

    @classmethod
    def spatial(
        cls,
        n_neurons: int,
        leak: ArrayLike = 0.3,
        gain: Gain | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        reach: float = 0.2,
        connectivity: float = 0.1,
        positions: ArrayLike | None = None,
        spectral_radius: float = 0.9,
        bias: ArrayLike | None = None,
    ) -> EchoStateNetwork:
        """Draw a network in space, as `Reservoir.spatial` does, and scale its weights.

        The parameters are those of `Reservoir.spatial` and of `random`.
        """
        plan = plans.spatial_plan(n_neurons, 1.0, rng, reach, connectivity, positions)
        weights = plan.draw(check.positive(spectral_radius, "spectral_radius"))
        return cls(weights, leak, gain, bias)

    @classmethod
    def legendre(
        cls, n_neurons: int, theta: float, gain: Gain | None = None
    ) -> EchoStateNetwork:
        """Make the Legendre delay system for input that is constant over each step.

        ``theta`` is the length of the window in steps. The gain is linear by default, like
        the delay system. `greenfold.networks.weights.legendre_step` gives the matching
        input projection.
        """
        gain = Gain.linear() if gain is None else gain
        weights = plans.legendre_step(n_neurons, theta).weights
        return cls(weights / slope_at_rest(gain, "remember"), 1.0, gain)

    def with_leak(self, leak: ArrayLike) -> EchoStateNetwork:
        """Return the same network with another leak."""
        return replace(self, leak=leak)

    def scaled(self, factor: float) -> EchoStateNetwork:
        """Return the same network with its weights times a factor, however they grow."""
        return replace(self, weights=self.weights * factor, allow_unstable=True)

    @cached_property
    def linear_step(self) -> tuple[matrices.Weights, np.ndarray]:
        """E = 1 − a + a φ' W and the diagonal a φ' of F, of the step d' = E d + F u x.

        a is the leak and φ' the slope φ'(W y* + b) of each neuron.
        """
        active = self.weights @ self.rest + (0.0 if self.bias is None else self.bias)
        slope = np.asarray(self.gain.derivative(active), dtype=np.float64)
        leak = np.broadcast_to(self.leak, (self.n_neurons,))
        part = leak * slope
        return matrices.plus_diagonal(
            matrices.scaled_rows(part, self.weights), 1 - leak
        ), part

    @cached_property
    def spectral_radius(self) -> float:
        """Largest |λ| of E: the share of the slowest deviation left after one step."""
        return spectra.largest(self.linear_step[0], "absolute value")


model_files.describe("echo_state_network", EchoStateNetwork, **NETWORK, leak=PER_NEURON)


#: A network in continuous or in discrete time.
AnyNetwork: TypeAlias = Reservoir | EchoStateNetwork


def thinned(network: AnyNetwork) -> AnyNetwork:
    """Return an echo state network for products with several states on the host.

    Few connections become a sparse array if that is faster.
    """
    W: matrices.Weights = network.weights
    kept = isinstance(network, Reservoir) or is_sparse(W)
    if kept or len(W) < _THIN_NEURONS or np.count_nonzero(W) > _THIN_SHARE * W.size:
        return network
    return replace(network, weights=matrices.csr(W), allow_unstable=True)
