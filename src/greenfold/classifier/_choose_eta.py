"""η by cross-validation, with the input projection solved anew in every fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed

from ..optimizers._linear import LinearProblem
from ..sphere import solve_in_eigenbasis
from ..stimuli import linear_map
from ..unfolding import Unfolding
from ._clouds import Clouds, decide, held_out_score
from ._onevsrest import Frame, frame_of
from ._series import Series

#: Two values a decade, from where only the distance of the class means counts to where
#: only their spread does.
ETAS = np.geomspace(0.1, 1e6, 15)
N_FOLDS = 5
#: Where no series can be held out.
FALLBACK = 10.0
#: Accuracy on few series is coarse and leaves many η equal. A small share of the margin
#: in log-odds, saturating, decides among them.
_MARGIN_SHARE = 0.1
_MARGIN_SCALE = 4.0


@dataclass(frozen=True, eq=False)
class EtaScores:
    """Outcome of a cross-validation over η.

    Attributes
    ----------
    etas : ndarray (n_etas,)
    accuracy : ndarray (n_etas,)
        Held-out accuracy, under readout noise where it was given.
    score : ndarray (n_etas,)
        What is maximised: accuracy, plus a little for the margin.
    best : float
    """

    etas: np.ndarray
    accuracy: np.ndarray
    score: np.ndarray
    best: float


def cross_validate(
    unfolding: Unfolding,
    series: Series,
    codes: np.ndarray,
    weights: np.ndarray,
    *,
    u: np.ndarray | None,
    scaling: float | None,
    noise: float,
    threshold: str,
    seed: int,
    n_jobs: int | None,
    etas: np.ndarray = ETAS,
) -> EtaScores:
    """Choose η by held-out accuracy.

    In each fold the input projection is the leading singular vector of G(μ), which is the
    optimal one for small η and costs one decomposition; one more gives the optimal
    readouts for the whole grid of η.

    Parameters
    ----------
    unfolding : Unfolding
        The linear order is used.
    series : Series
    codes : ndarray (n_cases,)
        Classes 0, 1, ….
    weights : ndarray (n_cases,)
    u : ndarray (n_neurons, n_channels) or None
        Input projection to keep.
    scaling, noise, threshold
        As the estimator's.
    seed : int
        Shuffles the folds; equal seeds make results comparable.
    n_jobs : int or None
    etas : ndarray (n_etas,)
    """
    fold = _folds(codes, np.random.default_rng(seed))
    jobs = (
        delayed(_one_fold)(
            unfolding.linear,
            series,
            codes,
            weights,
            fold == k,
            etas,
            u=u,
            scaling=scaling,
            noise=noise,
            threshold=threshold,
        )
        for k in range(fold.max() + 1)
    )
    done = [found for found in Parallel(n_jobs, prefer="threads")(jobs) if found]
    total = sum(found[0] for found in done)
    if not total:
        nothing = np.full(len(etas), np.nan)
        return EtaScores(etas, nothing, nothing, FALLBACK)
    accuracy = np.sum([found[1] for found in done], axis=0) / total
    score = np.sum([found[2] for found in done], axis=0) / total
    return EtaScores(etas, accuracy, score, float(etas[np.argmax(score)]))


def _folds(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fold of each series; classes are dealt out in turn, however small they are."""
    fold = np.empty(len(codes), dtype=int)
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold[order] = np.arange(len(codes)) % min(N_FOLDS, len(codes))
    return fold


def _one_fold(
    unfolding: Unfolding,
    series: Series,
    codes: np.ndarray,
    weights: np.ndarray,
    held_out: np.ndarray,
    etas: np.ndarray,
    *,
    u: np.ndarray | None,
    scaling: float | None,
    noise: float,
    threshold: str,
) -> tuple[float, np.ndarray, np.ndarray] | None:
    """Weight, and weighted sums of accuracy and score, of one fold."""
    n_classes = int(codes.max()) + 1
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
    for column, c in enumerate(heads):
        if not seen[c]:
            continue
        frame = frame_of(inside, labels == c, w, scaling)
        kernels = _kernels(unfolding, frame, u, etas)
        for Z, part in ((Z_in, inside), (Z_out, outside)):
            moved = part.moved(frame.centre, frame.scale).reshape(len(part), -1)
            Z[:, :, column] = (moved @ kernels).T
    accuracy, score = np.empty(len(etas)), np.empty(len(etas))
    answers, w_out = codes[held_out], weights[held_out]
    for i in range(len(etas)):
        clouds = Clouds.of(Z_in[i], labels, w, n_classes)
        decision = decide(clouds, noise=noise, threshold=threshold)
        correct, margin = held_out_score(decision, Z_out[i], answers, noise)
        accuracy[i] = w_out @ correct
        score[i] = accuracy[i] + _MARGIN_SHARE * (w_out @ np.tanh(margin / _MARGIN_SCALE))
    return float(w_out.sum()), accuracy, score


def _kernels(
    unfolding: Unfolding, frame: Frame, u: np.ndarray | None, etas: np.ndarray
) -> np.ndarray:
    """Kernels of the optimal readouts for every η, (n_channels · n_steps, n_etas)."""
    stimuli = frame.stimuli
    if u is None:
        _, u, _ = LinearProblem(unfolding, stimuli, 1.0).best_atom(stimuli.mu)
    R = linear_map(unfolding, u)
    Sigma = R.T @ stimuli.psi @ R
    values, vectors = np.linalg.eigh((Sigma + Sigma.T) / 2)
    readouts = solve_in_eigenbasis(R.T @ stimuli.mu, etas[:, None] * values, vectors).v
    return R @ readouts.T
