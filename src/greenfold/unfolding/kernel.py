"""A reservoir with its readout fixed is a plain kernel of the stimulus.

    z = a · x                      (order 0)
    z = a · x + xᵀ C x             (order 1, quadratic gain)

With both projections fixed it is a `Kernel`, which is how predictions are made; the network
is only run to check them. As a function of u it is `ReadoutKernels`: a and C depend on u
through the pulse responses only, C = Σ_k R_kᵀ diag(s_k) R_k with R_k the responses at the
nodes of step k to a pulse in each step so far, and s_k the readout carried back to that
step. Value and adjoint are one matrix product per step, K³/3 · q N multiplications and K²
numbers of memory, several times cheaper than the kernels of all neurons.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base import checks as check
from .._base import codec
from .._base.arrays import batches, like, namespace, working_bytes
from .._base.printing import Shown
from .linear import LinearOrder


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(Shown, codec.Saved, kind="kernel"):
    """The collapsed predictor of one pair of projections.

    Attributes
    ----------
    linear : ndarray (n_channels, n_steps)
        a, in order of time.
    quadratic : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        C, symmetric under the exchange of its two (channel, step) pairs.

    Notes
    -----
    Steps after the readout have zero weight.
    """

    linear: np.ndarray
    quadratic: np.ndarray | None = None

    def __post_init__(self) -> None:
        linear = check.host_array(self.linear, "linear", ndim=(2,))
        object.__setattr__(self, "linear", linear)
        if self.quadratic is None:
            return
        quadratic = check.host_array(self.quadratic, "quadratic", ndim=(4,))
        if quadratic.shape != (*linear.shape, *linear.shape):
            raise ValueError(
                f"`quadratic` must have shape {(*linear.shape, *linear.shape)} to match "
                f"`linear`; got {quadratic.shape}."
            )
        object.__setattr__(self, "quadratic", quadratic)

    def _facts(self) -> dict[str, Any]:
        return {
            "channels": len(self.linear),
            "steps": self.n_steps,
            "order": 0 if self.quadratic is None else 1,
        }

    @property
    def n_steps(self) -> int:
        """Number of steps of the stimuli."""
        return self.linear.shape[1]

    def decision_values(self, X: Any) -> Any:
        """Read-out z of each stimulus.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Any array namespace; the result lives where ``X`` does.

        Returns
        -------
        array (n_cases,), float64
        """
        X = check.stimuli(X, self.n_steps)
        n_channels = self.linear.shape[0]
        if X.shape[1] != n_channels:
            raise ValueError(
                f"`X` must have {n_channels} channel(s), as the kernel has; "
                f"got shape {tuple(X.shape)}."
            )
        xp = namespace(X)
        size = self.linear.size
        a = like(self.linear.reshape(size), X)
        C = None if self.quadratic is None else like(self.quadratic.reshape(size, size), X)
        found = []
        for part in batches(
            X.shape[0], 8.0 * size * (3 if C is not None else 2), working_bytes(X)
        ):
            batch = check.finite_batch(X[part, ...], xp, part.start)
            flat = xp.reshape(batch, (batch.shape[0], size))
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                z = flat @ a
                if C is not None:
                    z = z + xp.sum((flat @ C) * flat, axis=1)
            found.append(check.finite_result(z, xp))
        return xp.concat(found) if len(found) > 1 else found[0]

    def predict(self, X: Any) -> Any:
        """Class ±1 of each stimulus: the sign of its decision value, +1 at zero."""
        z = self.decision_values(X)
        xp = namespace(z)
        return xp.where(z >= 0, xp.ones_like(z), -xp.ones_like(z))


_AXES = ("channels", "steps")
KERNEL = codec.describe(
    "kernel",
    Kernel,
    linear=codec.Numbers(*_AXES),
    quadratic=codec.Maybe(codec.Numbers(*_AXES, *_AXES)),
)


class ReadoutKernels:
    """u ↦ (a, C) for one readout v, at order 0, or at order 1 of a gain of degree 2."""

    def __init__(self, linear: LinearOrder, v: np.ndarray) -> None:
        self._linear, plan = linear, linear.plan
        bars = linear.carry_back(v)
        self._rows = linear.kernel_rows(bars)
        self._weights = source_weights(linear, bars) if plan.step.order else None
        self._tail_bars = bars[plan.n_whole * plan.n_sub :]

    def at(self, u: np.ndarray) -> KernelsAt:
        """Kernels at one u (n_neurons, n_channels)."""
        a = u.T @ self._rows.T
        if self._weights is None:
            return KernelsAt(self, a, None, None)
        linear, K, n_channels = self._linear, self._linear.n_steps, u.shape[1]
        starts = linear.pulse_starts(u)
        responses = linear.pulse_nodes(u, starts)
        C = np.zeros((K, n_channels, K, n_channels))
        for step, weights in enumerate(self._weights):
            if weights.any():
                _add_square(C, _so_far(responses, step), weights)
        if linear.plan.tail is not None:
            self._add_tail(C, u, starts)
        return KernelsAt(self, a, C.transpose(1, 0, 3, 2), responses)

    def _add_tail(self, C: np.ndarray, u: np.ndarray, starts: np.ndarray) -> None:
        """Add what the panels of a shortened last step contribute."""
        tail = self._linear.plan.tail
        current = starts[:: self._linear.plan.n_sub][::-1].copy()  # earliest pulse first
        for bar in self._tail_bars:
            at_nodes = current @ tail.E_nodes
            at_nodes[-1] += u.T @ tail.F_nodes
            weights = tail.coefficients[2] * (tail.S @ bar)
            _add_square(C, at_nodes.reshape(-1, len(weights)), weights)
            current = current @ tail.E
            current[-1] += u.T @ tail.F

    def pull(
        self, responses: np.ndarray | None, a_bar: np.ndarray, C_bar: np.ndarray | None
    ) -> np.ndarray:
        """Gradient with respect to u of a function of z, read at the ends of steps.

        ``responses`` are the `LinearOrder.pulse_nodes` of u, ``a_bar`` and the symmetric
        ``C_bar`` the cotangents of the kernels, shaped like them.
        """
        gradient = (a_bar @ self._rows).T
        if C_bar is None or responses is None or self._weights is None:
            return gradient
        linear, n, n_channels = self._linear, self._linear.plan.n_whole, len(a_bar)
        by_time = C_bar.transpose(1, 0, 3, 2)[:n, :, :n]  # (step, channel, step, channel)
        bar = np.zeros_like(responses)
        for step, weights in enumerate(self._weights):
            so_far = _so_far(responses, step)
            square = by_time[: step + 1, :, : step + 1].reshape(len(so_far), -1)
            change = (square @ so_far) * (2 * weights)
            bar[: step + 1] += change.reshape(step + 1, n_channels, -1)[::-1]
        nothing = np.zeros((n_channels, len(gradient)))
        return gradient + linear.pulse_adjoint(None, bar, nothing)


@dataclass(frozen=True, eq=False)
class KernelsAt:
    """Kernels of one readout at one u, and the way back.

    Attributes
    ----------
    a : ndarray (n_channels, n_steps)
    C : ndarray (n_channels, n_steps, n_channels, n_steps) or None
        Symmetric under the exchange of its two (channel, step) pairs.
    """

    _readout: ReadoutKernels = field(repr=False)
    a: np.ndarray
    C: np.ndarray | None
    _responses: np.ndarray | None = field(repr=False)

    def pullback(self, a_bar: np.ndarray, C_bar: np.ndarray | None) -> np.ndarray:
        """Gradient (n_neurons, n_channels) from the cotangents of a and of symmetric C."""
        return self._readout.pull(self._responses, a_bar, C_bar)


class SquareOfInput:
    """Contraction m₁ of G⁽²⁾ with a readout and a second moment of the stimuli.

    (paper, equation 12, `G2-general`): the quadratic form of u in ⟨ζ z⟩, without the tensor
    G⁽²⁾. It is for order 1 of a quadratic gain, read at the ends of steps.
    """

    def __init__(self, linear: LinearOrder) -> None:
        self._linear, each = linear, np.eye(linear.n_inputs)
        # Responses at the nodes to a pulse into each single neuron.
        self._responses = linear.pulse_nodes(each, linear.pulse_starts(each))

    def __call__(self, v: np.ndarray, second_moment: np.ndarray) -> np.ndarray:
        """m₁ as (n_channels, N, n_channels, N) for a second moment (D, D)."""
        K = self._linear.n_steps
        n_channels = len(second_moment) // K
        moment = second_moment.reshape(n_channels, K, n_channels, K)
        total = np.zeros((n_channels, len(v), n_channels, len(v)))
        bars = self._linear.carry_back(v)
        for step, weights in enumerate(source_weights(self._linear, bars)):
            so_far = self._responses[: step + 1][::-1]  # (step + 1, N, width)
            weighted = so_far * weights
            for c, d in np.ndindex(n_channels, n_channels):
                now = moment[c, : step + 1, d, : step + 1]
                mixed = np.tensordot(now, so_far, axes=(1, 0))
                total[c, :, d, :] += np.tensordot(weighted, mixed, axes=((0, 2), (0, 2)))
        return total


def source_weights(linear: LinearOrder, bars: np.ndarray) -> np.ndarray:
    """Weight in z of the squared state at every node, (n_whole, n_sub · q · n_neurons).

    The readout, carried back to each panel, goes through the quadrature of its source.
    """
    plan = linear.plan
    whole = bars[: plan.n_whole * plan.n_sub]
    weights = plan.step.coefficients[2] * (whole @ plan.step.S.T)
    return weights.reshape(plan.n_whole, plan.n_sub * weights.shape[1])


def _so_far(responses: np.ndarray, step: int) -> np.ndarray:
    """Responses at the nodes of a step to a pulse in each (step so far, channel)."""
    return responses[: step + 1][::-1].reshape((step + 1) * responses.shape[1], -1)


def _add_square(C: np.ndarray, responses: np.ndarray, weights: np.ndarray) -> None:
    """Add Rᵀ diag(s) R to the block of C of the steps so far, (step, channel) pairs."""
    block = (responses * weights) @ responses.T
    n_channels = C.shape[1]
    n = len(block) // n_channels
    C[:n, :, :n] += block.reshape(n, n_channels, n, n_channels)
