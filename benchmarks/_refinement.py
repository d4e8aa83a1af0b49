"""A mask refined on the device itself: each pass plays the series and reads the states.

A solved mask is the best mask of the linear response, but devices bend. One pass tells more
than one number: the states of every series. They are smooth functions of the mask, so
kernel regression over the masks that were played predicts the states for a new mask, and
the soft margin of the predicted states has a gradient. Each pass plays the best predicted
mask close to the best one so far, and corrects the prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from greenfold import Projections, SampleStimuli
from greenfold.math.margins import gaussian_soft_margin, state_moments
from greenfold.math.ridge import solve_ridge
from greenfold.math.sphere import maximize_on_sphere
from greenfold.systems import System

#: Parts of the series that are held out in turn.
_PARTS = 5
#: Passes that play the first and the last mask once more, each.
_JUDGED = 3
#: Masks from which the prediction is made, and those among which the best is looked for.
_NEAR, _BEST = 100, 10
#: Widths of the kernel for masks of unit norm, and shares of noise, to choose from by
#: leave-one-out, and the number of passes after which the choice is made again.
_WIDTHS, _NOISES, _AGAIN = (0.3, 0.6, 1.2, 2.4), (1e-3, 1e-2, 1e-1, 1.0), 10
#: Lags of the curvature, and the penalty and the largest number of passes of its fit.
_LAGS, _RIDGE, _CURVED = 3, 1e-3, 30
#: Steps towards the best predicted mask.
_CLIMB = 20
#: First, smallest and largest distance to the next mask, and its random share, without
#: which masks may fall into a plane.
_REACH, _LEAST, _MOST, _RANDOM = 0.3, 0.05, 1.0, 0.1


class _Judge:
    """κ of measured states, whose offset and unit are those of the device."""

    def __init__(self, stimuli: SampleStimuli, eta: float) -> None:
        assert stimuli.signs is not None
        self.signs, self.weights, self.eta = stimuli.signs, stimuli.case_weights, eta

    def solved(self, Y: np.ndarray, some: Any = slice(None)) -> Any:
        """Return M, Σ and the best readout of some series."""
        signs, w, states = self.signs[some], self.weights[some], Y[some]
        means = [w[signs == s] @ states[signs == s] / w[signs == s].sum() for s in (-1, 1)]
        M, Sigma = state_moments(states - np.mean(means, axis=0), signs, w)
        return M, Sigma, maximize_on_sphere(M, self.eta * Sigma).v

    def held_out(self, Y: np.ndarray) -> float:
        """Return κ of each part of the series with the readout of the others."""
        found = list[float]()
        for k in range(_PARTS):
            held = np.arange(len(Y)) % _PARTS == k
            v = self.solved(Y, ~held)[2]
            M, Sigma, _ = self.solved(Y, held)
            found.append(self.margin(M, Sigma, v))
        return float(np.mean(found))

    def margin(self, M: np.ndarray, Sigma: np.ndarray, v: np.ndarray) -> float:
        return gaussian_soft_margin(M, Sigma, v, self.eta).value

    def evaluate(self, Y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return κ with the best readout v, its derivative by z = Y v, and v."""
        M, Sigma, v = self.solved(Y)
        z, slope = Y @ v, np.empty(len(Y))
        for sign in (-1, 1):
            own = self.signs == sign
            w = self.weights[own]
            spread = z[own] - w @ z[own] / w.sum()
            slope[own] = sign * w / (2 * w.sum()) - self.eta * w * spread
        return self.margin(M, Sigma, v), slope, v


@dataclass(eq=False)
class _Pass:
    """One mask, its states, their held-out κ, and what curvature does not explain."""

    u: np.ndarray
    states: np.ndarray
    value: float
    rest: np.ndarray


class _Predicted:
    """States predicted for any mask, from the states of the masks that were played.

    They are Σ_l z_l A_l + z_l² B_l + z_l³ C_l, with the states z_l of the linear system l
    steps before the readout, and kernel regression on the rest. The matrices are the same
    for all series, so that a few passes determine them. The kernel compares masks, so that
    one small matrix serves all series and outputs.
    """

    def __init__(self, system: System, series: np.ndarray, shape: tuple[int, ...]) -> None:
        self.system, self.shape = system, shape
        self.series = [np.zeros_like(series) for _ in range(min(_LAGS, system.n_steps))]
        for lag, late in enumerate(self.series):
            late[..., lag:] = series[..., : series.shape[-1] - lag]
        self.width, self.noise = 1.0, 1e-2
        self.bends = np.zeros((len(self.series), 3, system.n_outputs, system.n_outputs))
        self.bends[0, 0] = np.eye(system.n_outputs)

    def path(self, u: np.ndarray) -> np.ndarray:
        """Return linear states at the readout and before it, (n_lags, n, n_outputs)."""
        projection = u.reshape(self.shape)
        return np.array([self.system.states(X, projection) for X in self.series])

    def fit(self, passes: list[_Pass], *, choose: bool) -> None:
        """Fit curvature and kernel; choose the width and the noise again if asked."""
        if choose:
            self.curve(passes[:_CURVED])
            for one in passes:
                one.rest = one.states - self.bent(one.u)
        self.U = np.array([one.u for one in passes])
        rest = np.array([one.rest.ravel() for one in passes])
        self.mean = rest.mean(0)
        rest = rest - self.mean
        square = ((self.U[:, None] - self.U) ** 2).sum(-1)

        def inverse(width: float, noise: float) -> np.ndarray:
            K = np.exp(-square / (2 * width**2)) + noise * np.eye(len(rest))
            return np.linalg.inv(K)

        products = rest @ rest.T

        def error(choice: tuple[float, float]) -> float:  # leave-one-out, in closed form
            K = inverse(*choice)
            return float((((K @ products) * K).sum(1) / np.diag(K) ** 2).sum())

        if choose:
            choices = [(width, noise) for width in _WIDTHS for noise in _NOISES]
            self.width, self.noise = min(choices, key=error)
        self.weights = inverse(self.width, self.noise) @ rest

    def curve(self, passes: list[_Pass]) -> None:
        """Fit linear, square and cubic terms of all lags, close to the linear system."""
        paths = np.array([self.path(one.u) for one in passes])  # pass, lag, series, output
        size, n_outputs = paths.std(), paths.shape[-1]
        powers = np.stack([paths, paths**2 / size, paths**3 / size**2], axis=2)
        F = powers.transpose(0, 3, 1, 2, 4).reshape(-1, powers.shape[1] * 3 * n_outputs)
        T = np.concatenate([one.states for one in passes])
        F, T = F - F.mean(0), T - T.mean(0)
        W = np.zeros((F.shape[1], n_outputs))
        W[:n_outputs] = np.eye(n_outputs)
        gram = F.T @ F
        ridge = _RIDGE * np.trace(gram) / len(gram)
        W += solve_ridge(gram, F.T @ (T - F @ W), ridge)
        units = np.array([1, size, size**2])[:, None, None]
        self.bends = W.reshape(len(self.series), 3, n_outputs, n_outputs) / units

    def bent(self, u: np.ndarray) -> np.ndarray:
        """Return the linear states with their curvature."""
        parts = zip(self.path(u), self.bends, strict=True)
        return np.sum([p @ A + p**2 @ B + p**3 @ C for p, (A, B, C) in parts], axis=0)

    def near(self, u: np.ndarray) -> np.ndarray:
        return np.exp(-((u - self.U) ** 2).sum(1) / (2 * self.width**2))

    def states(self, u: np.ndarray) -> np.ndarray:
        made = self.bent(u)
        return made + (self.mean + self.near(u) @ self.weights).reshape(made.shape)

    def pull(self, u: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
        """Return ∂L/∂u from ∂L/∂Y."""
        projection = u.reshape(self.shape)
        along = (self.weights @ cotangent.ravel()) * self.near(u)
        total = along @ (self.U - u) / self.width**2
        for X, p, (A, B, C) in zip(self.series, self.path(u), self.bends, strict=True):
            back = cotangent @ A.T + 2 * p * (cotangent @ B.T)
            back += 3 * p**2 * (cotangent @ C.T)
            total = total + np.ravel(self.system.pullback(X, projection, back))
        return total


def refine(
    projections: Projections,
    measure: Callable[[np.ndarray], np.ndarray],
    system: System,
    stimuli: SampleStimuli,
    n_passes: int,
    seed: int,
) -> np.ndarray:
    """Return a mask refined with so many calls of ``measure``.

    ``measure(u)`` plays the training series with the mask u (unit norm), always equally
    strongly, and returns noisy states (n_series, n_outputs). The last six calls compare the
    refined with the given mask; the better one is returned.
    """
    generator, judge = np.random.default_rng(seed), _Judge(stimuli, projections.eta)
    series, shape = np.asarray(stimuli.series), projections.u.shape
    model = _Predicted(system, series, shape)
    start = projections.u.ravel() / np.linalg.norm(projections.u)
    first = model.path(start)[0]

    def played(u: np.ndarray) -> np.ndarray:
        return measure(u.reshape(shape)) / unit

    unit = 1.0
    begun = played(start)
    moved, centred = begun - begun.mean(0), first - first.mean(0)
    unit = float((moved * centred).sum() / (centred**2).sum())

    def noted(u: np.ndarray, states: np.ndarray) -> _Pass:
        return _Pass(u, states, judge.held_out(states), states - model.bent(u))

    given = noted(start, begun / unit)
    passes, best, reach, found = [given], given, _REACH, start

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        norm = np.linalg.norm(x)
        u = x / norm
        value, slope, v = judge.evaluate(model.states(u))
        gradient = model.pull(u, slope[:, None] * v)
        return -value, -(gradient - u * (u @ gradient)) / norm

    def climbed(centre: np.ndarray) -> np.ndarray:
        """Return the best predicted mask close to a centre."""
        half = reach / len(centre) ** 0.5
        near: dict[str, Any] = {"bounds": [(x - half, x + half) for x in centre]}
        x = minimize(objective, centre, jac=True, options={"maxiter": _CLIMB}, **near).x
        return x / np.linalg.norm(x)

    for n in range(1, n_passes - 2 * _JUDGED):
        passes = sorted(passes, key=lambda one: -float(one.u @ best.u))[:_NEAR]
        model.fit(passes, choose=n % _AGAIN == _AGAIN // 2)
        few = sorted(passes, key=lambda one: -one.value)[:_BEST]
        if n > _BEST:  # the largest of many noisy values is luck
            few.sort(key=lambda one: objective(one.u)[0])
        reach = max(0.9 * reach, _LEAST) if few[0] is best else min(1.3 * reach, _MOST)
        best = few[0]
        found = climbed(best.u)
        random = generator.standard_normal(len(start))
        u = found + _RANDOM * reach * random / np.linalg.norm(random)
        u /= np.linalg.norm(u)
        passes.append(noted(u, played(u)))
    judged = [
        np.mean([judge.held_out(played(u)) for _ in range(_JUDGED)]) for u in (start, found)
    ]
    return (found if judged[1] > judged[0] else start).reshape(shape)
