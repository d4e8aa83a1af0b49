"""Bridge to reservoirpy: solve the input weights of a node that reservoirpy runs.

It needs the extra ``greenfold[reservoirpy]``. A `reservoirpy.nodes.Reservoir` is an
`EchoStateNetwork` with random input weights. The functions here solve for these weights
(`solve_sequence` also for the bias) and keep the rest of the node.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from reservoirpy import activationsfunc as activations
from reservoirpy.nodes import Reservoir as Node

from ._base import checks as check
from ._base.arrays import AnyArray, Array
from ._base.printing import Shown
from ._base.threads import with_few_threads
from .devices.device import Device
from .dynamics.integration import DrivenNetwork, Dynamics
from .networks.echo_state import EchoStateNetwork
from .networks.gains import Gain
from .optimizers.method import Method
from .optimizers.result import Projections, RegressionProjections
from .optimizers.run import optimize
from .optimizers.sequence_loss import SequenceProblem
from .stimuli.base import ClassWeight
from .stimuli.samples import SampleStimuli
from .stimuli.sequences import SequenceTask, check_sequences
from .systems import LinearSystem, System
from .unfolding.unfolding import unfold

__all__ = ["SolvedInput", "network_of", "solve_input", "solve_sequence"]

#: Fields of a result in the unit of the states.
_IN_STATES = ("soft_margin", "separation", "variance", "history", "starts")
_GAINS = {
    activations.identity: Gain.linear,
    activations.tanh: Gain.tanh,
    activations.sigmoid: Gain.sigmoid,
    activations.softplus: Gain.softplus,
    activations.relu: Gain.relu,
}


@dataclass(frozen=True, eq=False, repr=False)
class SolvedInput(Shown):
    """A node with solved input weights, and the solution that they come from."""

    #: A new node with solved `Win`; its norm is that of the given node unless you pass
    #: ``norm``. The given node is not changed. The solved `Win` is a dense array, even if
    #: that of the given node is sparse.
    node: Any
    #: u = `Win` at unit norm, the readout v, κ and, if it exists, the bound.
    projections: Projections | RegressionProjections
    #: The network that the node runs.
    network: EchoStateNetwork

    def _facts(self) -> dict[str, Any]:
        return {"network": self.network, "projections": self.projections}


def network_of(node: Any, *, n_channels: int = 1, gain: Gain | None = None) -> Any:
    """Return the `EchoStateNetwork` that a node runs.

    The network starts at its fixed point, but a node starts at zero. If the node has a
    bias, pass ``start=np.zeros(n_neurons)`` to `Dynamics` to get the states of the node.

    Parameters
    ----------
    node : reservoirpy.nodes.Reservoir
        The node, which is not changed. If its weights are not drawn yet, they are those
        that it would draw for series of ``n_channels`` channels.
    n_channels : int
    gain : Gain, optional
        Gain of the neurons, if reservoirpy does not define the activation of the node.
    """
    drawn = _drawn(node, n_channels)
    return EchoStateNetwork(drawn.W, *_parts(drawn, gain))


@with_few_threads(lambda node: node.units)
def solve_input(
    node: Any,
    X: ArrayLike,
    labels: ArrayLike,
    *,
    eta: float = 10.0,
    exact: bool = False,
    readout: ArrayLike | None = None,
    norm: float | None = None,
    gain: Gain | None = None,
    class_weight: ClassWeight = "balanced",
    device: Device | None = None,
    method: Method | str | None = None,
    rng: np.random.Generator | int | None = None,
) -> SolvedInput:
    """Solve the input weights of a node for two classes of series.

    By default, the network is linearised at rest and the optimum is certified.

    Parameters
    ----------
    node, gain
        As in `network_of`.
    X : array (n_series, n_steps, n_channels), or list of arrays (n_steps, n_channels)
        Series of equal length, in the layout that the node runs.
    labels : array_like (n_series,)
        The class of each series, one of two values.
    eta : float
        Control parameter η of the soft margin, for series scaled to ‖μ‖ = 1.
    exact : bool
        Continue from the linear solution on the full network, with states measured from
        the midpoint between the classes. This matters if the series saturate the network.
    readout : int or array_like (n_steps,), optional
        Step to read, counted from 1, or weights of the steps; by default the last step.
    norm : float, optional
        Frobenius norm of the solved `Win`; by default, the norm of the node's own `Win`.
    class_weight
        See `SampleStimuli`.
    device : Device, optional
        Constraints on `Win`; see `optimize`.
    method, rng
        As in `optimize`; with ``exact``, for the full network.

    Examples
    --------
    >>> from reservoirpy.nodes import Reservoir
    >>> from greenfold.datasets import synthetic_heartbeats
    >>> from greenfold.reservoirpy import solve_input
    >>> X, y = synthetic_heartbeats(40, n_steps=30, rng=0)
    >>> solved = solve_input(Reservoir(20, lr=0.3, sr=0.9, seed=1), X[:, :, None], y)
    >>> solved.projections.status
    'certified'
    >>> solved.node.run(X[0][:, None]).shape
    (30, 20)
    """
    series = _series(X)
    drawn = _drawn(node, series.shape[1])
    network = EchoStateNetwork(drawn.W, *_parts(drawn, gain))
    own = float(np.linalg.norm(_dense(drawn.Win))) if norm is None else norm
    got = "only zeros, so pass `norm`, the norm of the solved weights"
    check.must(own or norm is not None, "node", "have input weights", got)
    size = check.positive(own, "norm")
    n_steps = series.shape[2]
    stimuli = SampleStimuli(series, labels, class_weight=class_weight)
    linear = unfold(network, n_steps=n_steps, readout=readout)
    if exact and not network.gain.is_linear:
        u = optimize(linear, stimuli, eta, device=device).u
        own = SampleStimuli(
            series * size, labels, class_weight=class_weight, normalize=None
        )
        # η is for series with ‖μ‖ = 1; the series of the node are larger by this factor.
        factor = float(np.linalg.norm(own.mu)) or 1.0
        given = _BetweenClasses(network, own, linear.readout), own, eta / factor
        found = [
            optimize(*given, u=u, device=device),
            optimize(*given, method, device=device, rng=rng),
        ]
        best = max(found, key=lambda one: one.soft_margin)
        # Convert back to that unit, in which the states are smaller by the factor.
        margin = {name: getattr(best, name) / factor for name in _IN_STATES}
        best = replace(best, eta=eta, **margin)
    else:
        best = optimize(linear, stimuli, eta, method, device=device, rng=rng)
    drawn.Win = np.asarray(size * best.u.reshape(network.n_neurons, -1), dtype=drawn.dtype)
    return SolvedInput(drawn, best, network)


@with_few_threads(lambda node: node.units)
def solve_sequence(
    node: Any,
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    ridge: float = 1e-11,
    washout: int | None = None,
    max_iter: int = 100,
    gain: Gain | None = None,
) -> SolvedInput:
    """Solve the input weights and the bias of a node for sequences read at each step.

    Put a ``reservoirpy.nodes.Ridge`` behind the node and fit it on the same series.

    Parameters
    ----------
    node, gain
        As in `network_of`; the spectral radius may be above one.
    x : array (n_steps, n_channels), or list of such
        Inputs, in the layout that the node runs.
    y : array (n_steps, n_targets), or list of such, optional
        Targets at each step; by default the next input, for forecasts.
    ridge : float
        Penalty on the readout, in units of the squared states.
    washout : int, optional
        Number of steps after which the node has forgotten its initial state; by default,
        it is measured on ``x``.
    max_iter : int
        Largest number of evaluations of the error and its gradient.

    Returns
    -------
    SolvedInput
        A node with solved `Win` and bias, which keep their joint norm. Both become dense:
        `Win` takes memory for units × n_channels numbers, and every neuron gets a bias. In
        the projections, the bias is the last column of u.

    Examples
    --------
    >>> from reservoirpy.nodes import Reservoir
    >>> from greenfold.datasets import lorenz
    >>> from greenfold.reservoirpy import solve_sequence
    >>> series = lorenz(600, rng=0) / 10
    >>> node = Reservoir(30, lr=0.5, sr=0.9, input_scaling=0.3, seed=1)
    >>> solved = solve_sequence(node, series, max_iter=20)
    >>> solved.node.run(series[:5]).shape
    (5, 30)
    """
    inputs = check_sequences(x, "x")
    if y is None:
        inputs, targets = [one[:-1] for one in inputs], [one[1:] for one in inputs]
    else:
        targets = check_sequences(y, "y")
    drawn = _drawn(node, inputs[0].shape[1])
    leak, gain, bias = _parts(drawn, gain)
    network = EchoStateNetwork(drawn.W, leak, gain, allow_unstable=True)
    u = np.column_stack([_dense(drawn.Win), np.broadcast_to(bias, network.n_neurons)])
    size = float(np.linalg.norm(u))
    check.must(size, "node", "have input weights or a bias", "zeros only")
    if washout is None:
        longest = max(inputs, key=len)
        memory = DrivenNetwork(network, u[:, :-1], u[:, -1]).memory(longest)
        washout = min(memory, max(len(longest) // 4, 1))
    task = SequenceTask.from_sequences(
        [size * one for one in inputs], targets, washout=washout, ridge=ridge, bias=size
    )
    problem = SequenceProblem(Dynamics(network, n_steps=task.n_steps), task)
    max_iter = check.count(max_iter, "max_iter")
    best = problem.described([problem.ascend(u / size, max_iter=max_iter, tol=1e-6)])
    drawn.Win = np.asarray(size * best.u[:, :-1], dtype=drawn.dtype)
    drawn.bias = np.asarray(size * best.u[:, -1], dtype=drawn.dtype)
    return SolvedInput(drawn, best, network)


class _BetweenClasses(System):
    """A node's network with states measured from the midpoint between the class means.

    A ridge readout has an intercept but κ has none, and the right origin of a non-linear
    network is known only from its states.
    """

    def __init__(
        self, network: EchoStateNetwork, stimuli: SampleStimuli, readout: ArrayLike | None
    ) -> None:
        sides = [np.asarray(stimuli.signs) == sign for sign in (-1, 1)]
        self._weights = np.sum([side / (2 * side.sum()) for side in sides], axis=0)
        self.n_steps = stimuli.n_steps
        self.n_inputs = self.n_outputs = network.n_neurons
        start = np.zeros(network.n_neurons)  # a node starts at zero
        self._dynamics = Dynamics(
            network, n_steps=self.n_steps, readout=readout, start=start
        )

    @property
    def is_linear(self) -> bool:
        return False

    @property
    def degree(self) -> None:
        return None

    @property
    def maps(self) -> LinearSystem:
        return self._dynamics.maps

    def states(self, X: AnyArray, u: ArrayLike) -> Any:
        states = self._dynamics.states(X, u)
        return states - self._weights @ states

    def pullback(
        self, X: AnyArray, u: ArrayLike, cotangent: Array, v: ArrayLike | None = None
    ) -> Any:
        mean = np.multiply.outer(self._weights, np.asarray(cotangent).sum(axis=0))
        return self._dynamics.pullback(X, u, cotangent - mean, v)


def _series(X: ArrayLike) -> np.ndarray:
    """Reorder the axes of reservoirpy's series to (n_series, n_channels, n_steps)."""
    if isinstance(X, list | tuple):
        lengths = {np.shape(one)[0] for one in X if np.ndim(one)} or {0}
        got = f"lengths {min(lengths)} to {max(lengths)}, pad short ones with zeros first"
        check.must(len(lengths) == 1, "X", "hold series of equal length", got)
    array = check.host_array(X, "X")
    wanted = "have shape (n_series, n_steps, n_channels), the layout of reservoirpy"
    advice = ", pass X[:, :, None]" if array.ndim == 2 else ""
    check.must(array.ndim == 3, "X", wanted, f"shape {array.shape}{advice}")
    return np.ascontiguousarray(array.transpose(0, 2, 1))


def _drawn(node: Any, n_channels: int) -> Any:
    """Return a copy of a node, with its weights drawn."""
    check.instance(node, Node, "node", "be a reservoirpy.nodes.Reservoir")
    fits = node.input_dim in (None, n_channels)
    wanted = f"take {n_channels} channel(s), as the series have"
    check.must(fits, "node", wanted, node.input_dim)
    copy = deepcopy(node)
    if not copy.initialized:
        copy.initialize(np.zeros((1, n_channels)))
    copy.reset()
    return copy


def _parts(drawn: Any, gain: Gain | None) -> tuple[Any, Any, Any]:
    """Return the leak, gain and bias of a node."""
    if gain is None:
        name = getattr(drawn.activation, "__name__", repr(drawn.activation))
        got = f"{name}, pass it as gain=Gain.custom(function, derivative)"
        known = drawn.activation in _GAINS
        check.must(known, "node", "have an activation whose derivative is known", got)
        gain = _GAINS[drawn.activation]()
    bias = _dense(drawn.bias).ravel()
    leak = np.asarray(drawn.lr, dtype=np.float64)
    bias = float(bias[0]) if len(bias) == 1 else bias
    return leak if leak.ndim else float(leak), gain, bias


def _dense(value: Any) -> np.ndarray:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value, dtype=float)
