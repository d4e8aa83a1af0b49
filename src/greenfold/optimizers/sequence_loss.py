"""Input weights for sequences, with one ridge readout for all steps.

The loss of u and its gradient at the optimal V are

    L(u) = min_V Σ_t |y_t − V x_t − c|² / T + λ ‖V‖²,    ∂L/∂x_t = 2 Vᵀ(V x_t + c − y_t) / T

so one backward pass through the network gives ∂L/∂u. With weights w_t of the steps, the
sum is Σ_t w_t |…|² and T = Σ_t w_t. The ascent maximises −log L, because L itself is flat
where errors fall by orders of magnitude.
"""

from __future__ import annotations

import itertools
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from .._base import checks as check
from .._base.arrays import Array, empty, like, namespace, to_host
from .._base.progress import tell
from ..dynamics.integration import Dynamics, Prepared
from ..math.margins import SoftMargin
from ..math.ridge import ridge_solver, solve_ridge
from ..stimuli.sequences import SequenceTask
from ..systems import System
from ..unfolding.unfolding import unfold
from .ascent import Ascent
from .linear import Candidate, ascend
from .method import Method
from .regression import regress_given
from .result import RegressionProjections

#: Number of further ascents if the end of an ascent needs shorter sub-steps.
_SETTLED = 3
#: Number of blocks that are left out in turn.
_N_BLOCKS = 4
#: Smallest and largest penalty of a path, and the units of log penalty and log scale.
_RIDGES = (1e-14, 1e2)
_UNITS = np.array([10.0, 3.0])
#: Rise of log L that stands for a network that diverges.
_WALL = 2.0


class SequenceProblem:
    """The objective −log L of a network on a task, for the ascent.

    Parameters
    ----------
    system : Dynamics
        The network, made for the segments of the task.
    task : SequenceTask
        The task. The computation runs on the device that holds its arrays.
    """

    def __init__(self, system: Dynamics, task: SequenceTask) -> None:
        task.match(system)
        self.system, self.task = system, task

    @cached_property
    def prepared(self) -> Prepared:
        """The segments, prepared to compute the states for many projections."""
        return self.system.prepare(self.task.X, washout=self.task.washout)

    @cached_property
    def _roots(self) -> Array | None:
        """Roots of the weights of the steps, (n_rows, 1); None if all weights are one."""
        xp = namespace(self.task.used)
        used = xp.reshape(self.task.used, (-1, 1))
        return None if bool(xp.all(used == 1)) else xp.sqrt(used)

    def _weighted(self, rows: Array) -> Array:
        """Multiply rows (n_rows, …) by the roots of their weights, in place."""
        if self._roots is not None:
            rows *= self._roots
        return rows

    @cached_property
    def _targets(self) -> Array:
        """The targets, times the roots of their weights, (n_rows, n_targets)."""
        xp, n_targets = namespace(self.task.y), self.task.n_targets
        y = xp.reshape(self.task.y, (-1, n_targets))
        return y if self._roots is None else y * self._roots

    def _features(self, states: Array) -> Array:
        """Return the features of the readout (n_rows, n_features), times the roots."""
        task, xp = self.task, namespace(states)
        if task.see_input:
            states = xp.concat([states, *self._seen], axis=2)
        return self._weighted(xp.reshape(states, (-1, states.shape[2])))

    @cached_property
    def _seen(self) -> list[Array]:
        """Inputs that the readout sees, the latest first, (n_read, n_segments, …)."""
        task, xp = self.task, namespace(self.task.X)
        x = task.X[:, : task.n_channels - task.has_constant, :]
        parts = (
            x[:, :, task.washout - lag : task.n_steps - lag]
            for lag in range(task.see_input)
        )
        return [xp.permute_dims(part, (2, 0, 1)) for part in parts]

    def _mean(self, Z: Array) -> Array:
        """Return the mean of the features Z, (n_features,)."""
        xp = namespace(Z)
        if self._roots is None:
            return xp.mean(Z, axis=0)
        return (xp.permute_dims(self._roots, (1, 0)) @ Z)[0, :] / self.task.n_used

    def _residual(self, Z: Array, V: np.ndarray) -> Array:
        """Return the residuals of the targets (n_rows, n_targets), times the roots."""
        readout = like(V, Z)
        at_mean = self._mean(Z) @ readout
        if self._roots is not None:
            at_mean = self._roots * at_mean
        return self._targets - Z @ readout + at_mean

    def readout(self, states: Array) -> tuple[np.ndarray, float, Array]:
        """Return the optimal V (n_features, n_targets), L, and ∂L/∂states.

        It overwrites ``states``.
        """
        task, xp, n = self.task, namespace(states), self.task.n_used
        Z = self._features(states)
        mean = to_host(self._mean(Z))
        Zt = xp.permute_dims(Z, (1, 0))
        gram = to_host(Zt @ Z) / n - np.outer(mean, mean)
        cross = to_host(Zt @ self._targets) / n
        V = solve_ridge(gram, cross, task.ridge)
        residual = self._residual(Z, V)
        loss = float(xp.sum(residual * residual)) / n + task.ridge * float((V**2).sum())
        slopes = like(-2 / n * V[: states.shape[2]].T, states)
        return V, loss, xp.reshape(self._weighted(residual) @ slopes, states.shape)

    def errors(self, u: np.ndarray, V: np.ndarray) -> np.ndarray:
        """Return the mean squared error of each target."""
        residual = to_host(self._residual(self._features(self.prepared(u).states), V))
        return (residual**2).sum(0) / self.task.n_used

    def evaluate(self, u: np.ndarray) -> tuple[np.ndarray, SoftMargin, np.ndarray]:
        """Return the optimal V, −log L, and its gradient with respect to u."""
        walk = self.prepared(u)
        V, loss, bar = self.readout(walk.states)
        gradient = to_host(walk.pullback(bar)[0]) / -loss
        value = -float(np.log(loss))
        tell(f"error {loss:.5g}")
        # The tolerance of the ascent is relative to these terms; with a term of one, it is
        # absolute in log L.
        return V, SoftMargin(value, 1.0, 0.0), gradient.reshape(u.shape)

    def described(self, found: list[Candidate]) -> RegressionProjections:
        """Return the best of the ends of several ascents, as a result."""
        task, best = self.task, max(found, key=lambda one: one.margin.value)
        loss, total = float(np.exp(-best.margin.value)), float(task.variance.sum())
        noisy = self.errors(best.u, best.v) + task.ridge * (best.v**2).sum(0)
        return RegressionProjections(
            u=best.u[:, 0] if best.u.shape[1] == 1 else best.u,
            V=best.v,
            gain=total - loss,
            upper_bound=None,
            loss=loss,
            r2=1 - noisy / np.where(task.variance > 0, task.variance, np.nan),
            status=best.status,
            starts=total - np.exp([-one.margin.value for one in found]),
            wall_time=0.0,
        )

    def ascend(self, u: np.ndarray, *, max_iter: int, tol: float) -> Candidate:
        """Ascend from one start, until the sub-steps are short enough at the end."""
        found = ascend(self, u, max_iter=max_iter, tol=tol)
        for _ in range(_SETTLED):
            if found.status == "interrupted" or self.prepared.settle(found.u):
                break
            found = ascend(self, found.u, max_iter=max_iter, tol=tol)
        return found


@dataclass(frozen=True)
class Iterate:
    """A point on the way of `UnseenProblem.follow`.

    Attributes
    ----------
    u : ndarray (n_inputs, n_channels)
        Of unit norm.
    ridge : float
    scale : float
        Factor of the recurrent weights.
    loss : float
        Mean squared error on unseen blocks, summed over the targets.
    """

    u: np.ndarray
    ridge: float
    scale: float = 1.0
    loss: float = np.inf


class UnseenProblem(SequenceProblem):
    """The error on blocks that the readout has not seen, and its gradient.

    The steps that count are cut into contiguous blocks of equal weight. For each block, the
    readout is fitted to the other blocks, in closed form from sums over each block.

    Rows are multiplied by the roots of their weights. With Φ = [s, 1], the readout θ has
    the normal matrix M = Σ φφᵀ + nλD over the rows that it is fitted to, where D leaves out
    the intercept. With the residuals r on the block and e on the fitted rows, with
    P = ∂L/∂θ = −2 Σ φrᵀ and Λ = M⁻¹P, the derivative of L = Σ |r|² is −2θr by a row φ of
    the block, Λe − θΛᵀφ by a fitted row, and −n Σ Λ·Dθ by λ.
    """

    @cached_property
    def _blocks(self) -> list[slice]:
        """Parts of the rows in the order of time, with equal sums of weights."""
        weights = to_host(self.task.used).T.ravel()
        share = np.cumsum(weights) / weights.sum()
        cuts = np.searchsorted(share, np.arange(1, _N_BLOCKS) / _N_BLOCKS) + 1
        ends = [0, *cuts.tolist(), len(weights)]
        return [slice(a, b) for a, b in itertools.pairwise(ends) if weights[a:b].any()]

    @cached_property
    def _evaluated(self) -> dict[tuple[bool, bytes], tuple[Iterate, float, np.ndarray]]:
        """Points of all paths with log L and its derivative, by the place of the search."""
        return {}

    @cached_property
    def _rows(self) -> tuple[Any, Any]:
        """Rows of features, root of the weight, and targets, in the order of time.

        All are times the root. Two views of the same memory have shapes (n_segments,
        n_read, …) and (n_rows, …). The states are still to be filled in.
        """
        xp, n = namespace(self.task.X), self.system.n_neurons

        def in_time(array: Array) -> Any:
            return xp.permute_dims(array, (1, 0, 2))

        n_read, n_segments = self.task.used.shape
        root = xp.sqrt(self.task.used)[:, :, None]
        Y = xp.reshape(self._targets, (n_read, n_segments, -1))
        seen = self._seen if self.task.see_input else []
        fixed = xp.concat([*(root * one for one in seen), root, Y], axis=2)
        rows = empty((n_segments, n_read, n + fixed.shape[2]), self.task.X)
        rows[:, :, n:] = in_time(fixed)
        return rows, xp.reshape(rows, (n_segments * n_read, -1))

    def unseen(self, states: Array, ridge: float) -> tuple[float, Array, float]:
        """Return L, ∂L/∂states and ∂L/∂log λ. It overwrites ``states``.

        Readouts lie in the span of the rows, so more features than rows are expressed in an
        orthonormal basis of them.
        """
        xp, n_neurons, m = namespace(states), states.shape[2], self.task.n_targets
        by_segment, both = self._rows
        roots = None if self._roots is None else by_segment[:, :, -m - 1 : -m]
        by_segment[:, :, :n_neurons] = xp.permute_dims(states, (1, 0, 2))
        if roots is not None:
            by_segment[:, :, :n_neurons] *= roots
        features, basis = both[:, : -m - 1], None
        if features.shape[0] < features.shape[1]:
            basis = xp.linalg.qr(xp.matrix_transpose(features))[0]
            both = xp.concat([features @ basis, both[:, -m - 1 :]], axis=1)
        k = both.shape[1] - m - 1
        Z, Y = both[:, : k + 1], both[:, k + 1 :]
        sums = [to_host(xp.matrix_transpose(both[p, :]) @ both[p, :]) for p in self._blocks]
        whole, loss, by_ridge = np.sum(sums, axis=0), 0.0, 0.0
        fitted: list[tuple[np.ndarray, np.ndarray, Array]] = []
        for part, own in zip(self._blocks, sums, strict=True):
            rest = whole - own
            n, mean = rest[k, k], rest[k] / rest[k, k]
            centred = rest / n - np.outer(mean, mean)
            solve = ridge_solver(centred[:k, :k], ridge)
            V = solve(centred[:k, k + 1 :])
            theta = np.vstack([V, mean[k + 1 :] - mean[:k] @ V])
            r = Y[part, :] - Z[part, :] @ like(theta, Z)
            P = -2 * to_host(xp.matrix_transpose(Z[part, :]) @ r)
            rise = solve(P[:k] - np.outer(mean[:k], P[k])) / n
            loss += float(xp.sum(r * r))
            by_ridge -= n * ridge * float((rise * V).sum())
            fitted.append((theta, np.vstack([rise, P[k] / n - mean[:k] @ rise]), r))
        n_used = n_neurons if basis is None else k  # the inputs seen do not vary
        for index, part in enumerate(self._blocks):
            others = [one for i, one in enumerate(fitted) if i != index]
            H = np.hstack([theta for theta, _, _ in others])
            K = np.hstack([rise for _, rise, _ in others])
            there, back = np.hstack([H, K]), -np.hstack([K, H])[:n_used].T
            summed = np.sum([rise for _, rise, _ in others], axis=0)[:n_used]
            theta, _, r = fitted[index]
            left, right = [Y[part, :], r], [summed.T, -2 * theta[:n_used].T]
            few = 4 * H.shape[1] < k
            if few:
                left.append(Z[part, :] @ like(there, Z))
                right.append(back)
            slope = xp.concat(left, axis=1) @ like(np.vstack(right), Z)
            if not few:
                slope += Z[part, :] @ like(there @ back, Z)
            both[part, :n_used] = slope
        slopes = both[:, :n_used]
        if basis is not None:
            slopes = slopes @ xp.matrix_transpose(basis)[:, :n_neurons]
        bar = xp.reshape(slopes, (*by_segment.shape[:2], n_neurons))
        states[...] = xp.permute_dims(bar if roots is None else bar * roots, (1, 0, 2))
        return loss, states, by_ridge

    def evaluate_at(
        self, at: Iterate, *, by_scale: bool
    ) -> tuple[float, np.ndarray, float, float]:
        """Return log L and its derivatives by u, log ridge and log scale.

        Without ``by_scale``, the last is zero.
        """
        walk = self.prepared(at.u, at.scale if by_scale else None)
        loss, bar, by_ridge = self.unseen(walk.states, at.ridge)
        gradient = to_host(walk.pullback(bar)[0]).reshape(at.u.shape) / loss
        mean = loss / self.task.n_used
        tell(f"error {mean:.5g}")
        return float(np.log(mean)), gradient, by_ridge / loss, walk.scale_bar / loss

    def follow(
        self,
        start: Iterate,
        *,
        free_ridge: bool,
        scales: tuple[float, float] | None,
        max_iter: int,
        tol: float = 1e-6,
    ) -> list[Iterate]:
        """Minimise the error on unseen blocks by L-BFGS; return the points of its steps.

        u keeps its unit norm. The penalty is free with ``free_ridge``, and the factor of
        the recurrent weights within ``scales``. ``max_iter`` limits the evaluations. They
        are kept, so a call with a larger limit continues the path of an earlier one.
        """
        size, path, tried = start.u.size, list[Iterate](), dict[bytes, Iterate]()
        logs = np.log([start.ridge, start.scale])
        ends = [
            _RIDGES if free_ridge else (start.ridge, start.ridge),
            (start.scale, start.scale) if scales is None else scales,
        ]
        limits = (np.log(ends) / _UNITS[:, None]).tolist()

        def value(x: np.ndarray) -> tuple[float, np.ndarray]:
            if len(tried) > max_iter:
                raise StopIteration
            key = scales is not None, x.tobytes()
            if key in self._evaluated:
                at, log_loss, slope = self._evaluated[key]
                tried[x.tobytes()] = at
                return log_loss, slope
            norm = float(np.linalg.norm(x[:size]))
            ridge, scale = np.exp(x[size:] * _UNITS).tolist()
            at = Iterate(x[:size].reshape(start.u.shape) / norm, ridge, scale)
            try:
                found = self.evaluate_at(at, by_scale=scales is not None)
            except FloatingPointError:
                # An integrated network may diverge at a trial point.
                if not tried:
                    raise
                worst = max(one.loss for one in tried.values())
                return float(np.log(worst)) + _WALL, np.zeros_like(x)
            log_loss, slope, *others = found
            tried[x.tobytes()] = at = replace(at, loss=float(np.exp(log_loss)))
            tangent = (slope - (slope * at.u).sum() * at.u).ravel() / norm
            slope = np.concatenate([tangent, _UNITS * others])
            self._evaluated[key] = at, log_loss, slope
            return log_loss, slope

        def keep(xk: np.ndarray) -> None:
            path.append(tried[xk.tobytes()])

        with suppress(StopIteration):
            minimize(
                value,
                np.concatenate([start.u.ravel(), logs / _UNITS]),
                jac=True,
                method="L-BFGS-B",
                bounds=[(None, None)] * size + limits,
                callback=keep,
                options={"maxiter": max_iter, "maxcor": 20, "ftol": tol, "gtol": 0.0},
            )
        return path


def solve_sequences(
    system: System,
    task: SequenceTask,
    method: Method,
    *,
    u: np.ndarray | None,
    rng: np.random.Generator,
) -> RegressionProjections:
    """Return the best u and V for a sequence task; see `optimize`.

    For a linear network, it solves a regression with one window per step, which also gives
    a bound.
    """
    started = time.perf_counter()
    wanted = "be a Dynamics without restricted inputs or outputs for a SequenceTask"
    check.instance(system, Dynamics, "system", wanted)
    assert isinstance(system, Dynamics)
    if system.is_linear and not task.see_input:
        windows = task.windows()
        linear = unfold(system.reservoir, n_steps=windows.n_steps, dt=system.dt)
        if u is not None:
            return regress_given(linear, windows, u)
        return method.regress(linear, windows, rng)
    problem = SequenceProblem(system, task)
    if u is not None:
        V, margin, _ = problem.evaluate(u)
        found = [Candidate(u, V, margin, "solved")]
    else:
        wanted = "be Ascent for a SequenceTask whose readout is not linear in the input"
        check.instance(method, Ascent, "method", wanted)
        assert isinstance(method, Ascent)
        found: list[Candidate] = []
        for _ in range(method.n_starts or 1):
            drawn = rng.standard_normal((system.n_inputs, task.n_channels))
            start = drawn / np.linalg.norm(drawn)
            limit, tol = method.max_evaluations, method.tol or 1e-6
            found.append(problem.ascend(start, max_iter=limit, tol=tol))
            if found[-1].status == "interrupted":
                break
    return replace(problem.described(found), wall_time=time.perf_counter() - started)
