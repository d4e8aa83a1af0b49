"""What the series that a fold holds out say about a classifier of the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..decisions import Clouds, decide, held_out_score
from ..optimizers.ascent import ascend
from ..optimizers.linear import LinearProblem
from ..optimizers.shared import SharedProblem
from ..stimuli import Series, Stimuli, frames_of
from ..systems import LinearSystem

#: Accuracy on few series is coarse and leaves many η equal. A small share of the margin
#: in log-odds, saturating, decides among them.
_MARGIN_SHARE = 0.1
_MARGIN_SCALE = 4.0
#: Evaluations of the ascent of a fold, and the relative change of κ that ends it: the
#: spread over the folds is far wider.
_EVALUATIONS = 30
_TOLERANCE = 1e-3


class Fold(NamedTuple):
    """What one fold says about the series that it held out.

    Attributes
    ----------
    accuracy, score : ndarray (n_etas,)
        Held-out accuracy, and the weighted sum of what is maximised.
    weight : float
        The sum of the weights in ``score``.
    log_odds : ndarray (n_etas, n_held_out, n_classes)
        Under readout noise, each series several times.
    codes, weights : ndarray (n_held_out,)
    seen : ndarray (n_classes,) of bool
        Classes that the fold knew.
    """

    accuracy: np.ndarray
    weight: float
    score: np.ndarray
    log_odds: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    seen: np.ndarray


def distinct_series(series: Series, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which series of a class are copies of each other.

    Returns
    -------
    group : ndarray (n_cases,)
        Number of the distinct series that each one is; sorted by class, then by value.
    code : ndarray (n_groups,)
        Class of each.
    """
    rows = np.column_stack([codes, series.values.reshape(len(series), -1)])
    unique, group = np.unique(rows, axis=0, return_inverse=True)
    return group.ravel(), unique[:, 0].astype(int)


def may_hold_out(series: Series, codes: np.ndarray) -> bool:
    """Whether two classes have series both to learn from and to hold out."""
    _, code = distinct_series(series, codes)
    return bool((np.bincount(code) >= 2).sum() >= 2)


def folds_of(
    series: Series, codes: np.ndarray, rng: np.random.Generator, n_folds: int
) -> np.ndarray:
    """Fold of each series; classes are dealt out in turn, however small they are.

    Copies of a series stay together, so that none is judged by itself, and the order of
    the series does not matter: one of weight two counts as two copies do.
    """
    group, code = distinct_series(series, codes)
    order = rng.permutation(len(code))
    order = order[np.argsort(code[order], kind="stable")]
    fold = np.empty(len(code), dtype=int)
    fold[order] = np.arange(len(code)) % min(n_folds, len(code))
    return fold[group]


def one_fold(
    system: LinearSystem,
    series: Series,
    codes: np.ndarray,
    weights: np.ndarray,
    class_weights: np.ndarray,
    held_out: np.ndarray,
    etas: np.ndarray,
    *,
    u: np.ndarray | None,
    shared: bool,
    scaling: float | None,
    noise: float,
    threshold: str,
    solved: bool = False,
) -> Fold | None:
    """How well the series that one fold holds out are told.

    With ``solved`` u is ascended for the one η in ``etas``, as it is in the end; else it
    is the leading singular vector, which serves all η.
    """
    n_classes = len(class_weights)
    train = ~held_out
    seen = np.bincount(codes[train], minlength=n_classes) > 0
    held_out = held_out & seen[codes]
    if seen.sum() < 2 or not held_out.any():
        return None
    inside, outside = series[train], series[held_out]
    labels, w = codes[train], weights[train]
    heads = range(n_classes) if n_classes > 2 else (1,)
    Z_in = np.zeros((len(etas), len(inside), len(heads)))
    Z_out = np.zeros((len(etas), len(outside), len(heads)))
    known = [c for c in heads if seen[c]]
    frames = frames_of(inside, labels, w, class_weights, known, scaling)
    if shared and len(frames) > 1:
        parts = (LinearProblem(system, frame.stimuli, 1.0) for frame in frames)
        u = SharedProblem(tuple(parts)).stacked_atom()
    for c, frame in zip(known, frames, strict=True):
        column = c if n_classes > 2 else 0
        kernels = _kernels(system, frame.stimuli, u, etas, solved)
        for Z, part in ((Z_in, inside), (Z_out, outside)):
            moved = part.moved(frame.centre, frame.scale).reshape(len(part), -1)
            Z[:, :, column] = (moved @ kernels).T
    accuracy, score = np.empty(len(etas)), np.empty(len(etas))
    answers = codes[held_out]
    w_out = weights[held_out] * class_weights[answers]
    # Accuracy on a class of n series is known to 1/√n. Classes of equal weight enter the
    # choice in proportion to √n, each by what is known of it; else the two series of a rare
    # class would choose η by chance.
    w_score = weights[held_out] * np.sqrt(class_weights[answers])
    jitter = _noise_points(noise, len(heads))
    odds = np.empty((len(etas), len(jitter) * len(outside), n_classes))
    for i in range(len(etas)):
        clouds = Clouds.of(Z_in[i], labels, w, class_weights)
        decision = decide(clouds, noise=noise, threshold=threshold)
        correct, margin = held_out_score(decision, Z_out[i], answers, noise)
        accuracy[i] = w_out @ correct / w_out.sum()
        score[i] = w_score @ (correct + _MARGIN_SHARE * np.tanh(margin / _MARGIN_SCALE))
        # What is read later carries the noise.
        odds[i] = decision.log_odds(np.concatenate([Z_out[i] + one for one in jitter]))
    repeated, share = np.tile(answers, len(jitter)), np.tile(w_out, len(jitter))
    share = share / len(jitter)
    return Fold(accuracy, float(w_score.sum()), score, odds, repeated, share, seen)


def _noise_points(noise: float, n_readouts: int) -> np.ndarray:
    """Points of equal weight that have mean and covariance of the noise, (n, n_readouts).

    Not draws: a series of weight two is to count as two copies of it.
    """
    if noise == 0:
        return np.zeros((1, n_readouts))
    corners = noise * np.sqrt(n_readouts) * np.eye(n_readouts)
    return np.concatenate([corners, -corners])


def _kernels(
    system: LinearSystem,
    stimuli: Stimuli,
    u: np.ndarray | None,
    etas: np.ndarray,
    solved: bool,
) -> np.ndarray:
    """Kernels of the optimal readouts for every η, (n_channels · n_steps, n_etas)."""
    problem = LinearProblem(system, stimuli, float(etas[0]) if solved else 1.0)
    if u is None:
        _, u, _ = problem.best_atom(stimuli.mu)
        if solved and stimuli.mu.any():
            found = ascend(problem, u, max_iter=_EVALUATIONS, tol=_TOLERANCE)
            if found.status == "interrupted":
                raise KeyboardInterrupt
            u = found.u
    return problem.kernels(u, etas)
