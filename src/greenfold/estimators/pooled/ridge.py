"""The linear head on pooled features: standardised, weighted by kind, ridge.

Features are made reservoir by reservoir. Those of the training series are kept between the
two passes over them if they fit into memory, and made again if they do not. Beyond
`DUAL_CASES` series the Gram matrix would grow too large; see `parts`.

Ridge regression for very many series, at a cost linear in their number.

The series are divided at random into parts of a few thousand. Each part is solved as if it
were all, with the same penalty, and the solutions are averaged: divide and conquer, which
for kernel ridge regression loses little while the parts are large (Zhang, Duchi and
Wainwright, 2015). The penalty is the one at which the average predicts best a few hundred
series that no part has seen; so it is smaller than a part alone would choose, because the
average takes the variance away. The same series calibrate the probabilities.

Ridge regression from a Gram matrix, the penalty chosen by leaving one case out.

With more features than cases everything follows from K = F Fᵀ (n × n): one eigenvalue
decomposition serves all penalties, the leave-one-out residuals included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np
from scipy import linalg
from scipy.linalg import blas

from ..._base.arrays import batches, like, to_host
from .bank import N_ROWS, row_weights
from .collection import Collection
from .feature_map import FeatureMap

__all__ = [
    "PENALTIES",
    "HeadFit",
    "LinearHead",
    "RidgeSolution",
    "fit_head",
    "fit_parts",
    "mean_square",
    "ridge_path",
    "solve_ridge",
]


#: Penalties that are compared, relative to the mean squared length of a centred case: from
#: hardly any to one that leaves little but the mean.
PENALTIES = np.logspace(-5, 2, 22)
#: Relative spread of cases below which they differ by rounding only.
_ALIKE = 1e-12


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """Ridge regression on centred features, in its dual form.

    Attributes
    ----------
    dual : ndarray (n_cases, n_targets)
        Coefficients are w = Fᵀ · dual for any features F of Gram matrix K, because the
        columns of dual sum to zero.
    offset : ndarray (n_targets,)
        Prediction at the weighted mean of the cases.
    penalty : float
        In units of K.
    held_out : ndarray (n_cases, n_targets)
        Prediction for each case by the solution without that case.
    penalties, errors : ndarray (n_penalties,)
        Mean squared leave-one-out error of each.
    """

    dual: np.ndarray
    offset: np.ndarray
    penalty: float
    held_out: np.ndarray
    penalties: np.ndarray
    errors: np.ndarray


def solve_ridge(
    gram: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    penalties: np.ndarray = PENALTIES,
) -> RidgeSolution:
    """Minimise Σ_i ω_i |y_i − f(x_i)|² + λ|w|² over f = w·x + b, at the best λ.

    Parameters
    ----------
    gram : ndarray (n_cases, n_cases)
        K = F Fᵀ; the features need not be centred.
    targets : ndarray (n_cases, n_targets)
    weights : ndarray (n_cases,), optional
        ω_i > 0; one by default.
    penalties : ndarray (n_penalties,)
        Relative to the mean diagonal of the centred K.
    """
    omega = np.ones(len(gram)) if weights is None else weights
    unit = mean_square(gram, omega)
    found, errors = None, []
    for penalty, (dual, held_out) in zip(
        penalties, ridge_path(gram, targets, omega, penalties * unit), strict=True
    ):
        squares = ((targets - held_out) ** 2).mean(axis=1)
        errors.append(np.average(squares, weights=omega))
        if found is None or errors[-1] < found[0]:
            found = errors[-1], penalty * unit, dual, held_out
    assert found is not None
    _, penalty, dual, held_out = found
    offset = np.average(targets, axis=0, weights=omega)
    return RidgeSolution(
        dual, offset, float(penalty), held_out, penalties * unit, np.array(errors)
    )


def mean_square(gram: np.ndarray, weights: np.ndarray) -> float:
    """Weighted squared length of a centred case, on average; one where all are alike."""
    share = weights / weights.sum()
    centred = weights @ np.diag(gram) - weights.sum() * (share @ gram @ share)
    return float(centred) / len(gram) if centred > _ALIKE * np.trace(gram) else 1.0


def ridge_path(
    gram: np.ndarray, targets: np.ndarray, weights: np.ndarray, penalties: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Dual coefficients and held-out predictions for each penalty, in units of K.

    Notes
    -----
    With S = diag(√ω), A = S K S (centred) = V e Vᵀ and d = 1/(e + λ), the residual without
    case i is [V d Vᵀ S(y − ȳ)]_i / √ω_i (Σ_k V_ik² d_k − ω_i/λΣω): the usual
    (y_i − f_i)/(1 − h_i), in which the small factor λ cancels.
    """
    omega = np.asarray(weights, dtype=np.float64)
    share = omega / omega.sum()
    A = np.array(gram, dtype=np.float64)
    row = A @ share
    A += share @ row
    A -= row[:, None]
    A -= row[None, :]
    root = np.sqrt(omega)
    A *= root[:, None]
    A *= root[None, :]
    e, V = linalg.eigh(A, overwrite_a=True, check_finite=False)
    e = np.maximum(e, 0)
    rotated = V.T @ (root[:, None] * (targets - share @ targets))
    squared = V**2
    for penalty in penalties:
        d = 1 / (e + penalty)
        c = V @ (d[:, None] * rotated)
        # Centring has put √share among the eigenvectors of e = 0; the intercept is its
        # part, and is not penalised.
        left = squared @ d - share / penalty
        yield root[:, None] * c, targets - c / (left * root)[:, None]


#: Series up to which all features are used, at a cost that grows as their cube.
DUAL_CASES = 4096
#: Features of the training series that are kept.
KEPT_BYTES = 2**30
#: Columns standardised at a time.
_COLUMNS = 2**11
#: Relative spread below which a feature varies by rounding only.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class LinearHead:
    """Scores Σ (features − mean) · coefficients + intercept.

    Attributes
    ----------
    means : list of ndarray (n_features_of_reservoir,), float32
    coefficients : list of ndarray (n_features_of_reservoir, n_targets), float32
    intercept : ndarray (n_targets,)
    """

    means: list[np.ndarray]
    coefficients: list[np.ndarray]
    intercept: np.ndarray

    def scores(
        self, made: FeatureMap, series: Collection, n_jobs: int | None = None
    ) -> np.ndarray:
        """Scores (n_cases, n_targets) of series."""
        return made.scores(series, self.means, self.coefficients, n_jobs) + self.intercept


@dataclass(frozen=True, eq=False)
class HeadFit:
    """A fitted head, and what it predicts for series that were held out.

    Attributes
    ----------
    head : LinearHead
    penalty : float
    cases : ndarray of int
        Series that were held out: one after the other all of them, or a part.
    held_out : ndarray (len(cases), n_targets)
        Their scores without them.
    """

    head: LinearHead
    penalty: float
    cases: np.ndarray
    held_out: np.ndarray


def fit_head(
    made: FeatureMap,
    series: Collection,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
) -> HeadFit:
    """Ridge regression on the features of training series.

    Parameters
    ----------
    made : FeatureMap
    series : Collection
    targets : ndarray (n_cases, n_targets)
    weights : ndarray (n_cases,), optional
        Of the cases.
    seed : int
        Used beyond `DUAL_CASES`.
    n_jobs : int, optional
    """
    n = len(series)
    if n > DUAL_CASES:
        return fit_parts(made, series, targets, weights, seed=seed, n_jobs=n_jobs)
    keep = 4 * n * sum(made.widths) <= KEPT_BYTES
    gram = np.zeros((n, n))
    kept, means, factors = [], [], []
    for scale in range(len(made.widths)):
        block = made.blocks(series, scale, n_jobs)
        mean, factor = standard(block)
        gram += gram_of(block)
        means.append(mean)
        factors.append(factor)
        if keep:
            kept.append(block)
        del block
    solution = solve_ridge(gram, targets, weights)
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    coefficients, intercept = [], solution.offset.copy()
    for scale, (mean, factor) in enumerate(zip(means, factors, strict=True)):
        if keep:
            block = kept[scale]
        else:
            block = standardised(made.blocks(series, scale, n_jobs), mean, factor)
        both = np.concatenate([solution.dual, share[:, None]], axis=1)
        xp = compat.array_namespace(block)
        wide = xp.astype(like(both, block), block.dtype)
        found = to_host(xp.permute_dims(block, (1, 0)) @ wide).astype(np.float64)
        intercept -= found[:, -1] @ found[:, :-1]
        coefficients.append((found[:, :-1] * factor[:, None]).astype(np.float32))
    head = LinearHead(means, coefficients, intercept)
    return HeadFit(head, solution.penalty, np.arange(n), solution.held_out)


def standard(block: Any) -> tuple[np.ndarray, np.ndarray]:
    """Standardise features in place.

    Returns
    -------
    mean : ndarray (n_features,), float32
    factor : ndarray (n_features,)
        Brings a centred feature to its weight; zero where it does not vary.
    """
    xp = compat.array_namespace(block)
    n, width = block.shape
    equal = like(np.full((1, n), 1 / n, np.float32), block)
    mean = to_host(equal @ block)[0]
    block -= like(mean, block)
    square = np.empty(width)
    for columns in batches(width, 1, _COLUMNS):
        part = block[:, columns]
        square[columns] = to_host(xp.sum(part * part, axis=0))
    deviation = np.sqrt(square / n)
    weight = np.repeat(row_weights(), width // N_ROWS)
    varies = deviation > _ROUNDING * np.abs(mean) + np.finfo(np.float32).tiny
    factor = np.where(varies, weight / np.where(varies, deviation, 1), 0)
    block *= xp.astype(like(factor, block), block.dtype)
    return mean, factor


def standardised(block: Any, mean: np.ndarray, factor: np.ndarray) -> Any:
    """(block − mean) · factor, in place."""
    xp = compat.array_namespace(block)
    block -= like(mean, block)
    block *= xp.astype(like(factor, block), block.dtype)
    return block


def gram_of(block: Any) -> np.ndarray:
    """F Fᵀ, each product in single precision."""
    if not isinstance(block, np.ndarray):
        xp = compat.array_namespace(block)
        return to_host(block @ xp.permute_dims(block, (1, 0))).astype(np.float64)
    # One triangle costs half of a full product.
    syrk: Any = blas.ssyrk  # pyright: ignore[reportAttributeAccessIssue]
    upper = syrk(1.0, block.T, trans=1)
    return np.triu(upper).astype(np.float64) + np.triu(upper, 1).T


#: Series of a part, about.
PART_CASES = 2500
#: Series held out.
HELD_OUT = 512


def fit_parts(
    made: FeatureMap,
    series: Collection,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
) -> HeadFit:
    """Ridge regression part by part; parameters as in `head.fit_head`."""
    rng = np.random.default_rng(seed)
    n = len(series)
    omega = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    order = rng.permutation(n)
    cases, rest = np.sort(order[:HELD_OUT]), order[HELD_OUT:]
    n_parts = max(2, round(len(rest) / PART_CASES))
    parts = [np.sort(part) for part in np.array_split(rest, n_parts)]
    n_scales = len(made.widths)
    first = series.take(parts[0])
    scales = [standard(made.blocks(first, s, n_jobs)) for s in range(n_scales)]
    held = series.once(_held_blocks, made, series.take(cases), scales, n_jobs)
    rest_of = [targets[part] for part in parts], [omega[part] for part in parts]
    shared = made, scales, held, n_jobs
    # The first part says in which unit the penalties of all are counted.
    begun = [[entries[0]] for entries in rest_of]
    found = list(series.each_part(_solve_part, parts[:1], begun, None, *shared))
    penalties = found[0][0]
    others = [entries[1:] for entries in rest_of]
    found += series.each_part(_solve_part, parts[1:], others, penalties, *shared)
    scores = sum(part_scores / n_parts for _, _, part_scores in found)
    errors = ((scores - targets[cases]) ** 2).mean(axis=2) @ omega[cases]
    best = int(errors.argmin())
    duals = [dual[best] for _, dual, _ in found]
    coefficients: list[Any] = [0.0] * n_scales
    intercept = np.zeros(targets.shape[1])
    for own, weighed in series.each_part(
        _weigh_part, parts, (duals, *rest_of), n_parts, made, scales, n_jobs
    ):
        intercept += own
        coefficients = [a + b for a, b in zip(coefficients, weighed, strict=True)]
    head = LinearHead(
        [mean for mean, _ in scales],
        [
            (W * factor[:, None]).astype(np.float32)
            for W, (_, factor) in zip(coefficients, scales, strict=True)
        ],
        intercept,
    )
    return HeadFit(head, float(penalties[best]), cases, np.asarray(scores)[best])


def _held_blocks(
    made: FeatureMap, outside: Collection, scales: list[Any], n_jobs: int | None
) -> list[Any]:
    """Standardised features of the series held out, reservoir by reservoir."""
    return [
        standardised(made.blocks(outside, s, n_jobs), *scale)
        for s, scale in enumerate(scales)
    ]


def _solve_part(
    few: Collection,
    targets: np.ndarray,
    own: np.ndarray,
    penalties: np.ndarray | None,
    made: FeatureMap,
    scales: list[Any],
    held: list[Any],
    n_jobs: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Penalties, dual coefficients at each, and the scores of the series held out."""
    n = len(few)
    gram, cross = np.zeros((n, n)), np.zeros((len(held[0]), n))
    for s, scale in enumerate(scales):
        block = standardised(made.blocks(few, s, n_jobs), *scale)
        gram += gram_of(block)
        cross += _products(held[s], block)
    if penalties is None:
        penalties = PENALTIES * mean_square(gram, own)
    duals = np.stack([dual for dual, _ in ridge_path(gram, targets, own, penalties)])
    share = own / own.sum()
    return penalties, duals, (cross - share @ gram) @ duals + share @ targets


def _weigh_part(
    few: Collection,
    dual: np.ndarray,
    targets: np.ndarray,
    own: np.ndarray,
    n_parts: int,
    made: FeatureMap,
    scales: list[Any],
    n_jobs: int | None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """What one part adds to the intercept and to the coefficients of each reservoir."""
    share = own / own.sum()
    both = np.concatenate([dual, share[:, None]], axis=1) / n_parts
    intercept, coefficients = share @ targets / n_parts, []
    for s, scale in enumerate(scales):
        block = standardised(made.blocks(few, s, n_jobs), *scale)
        xp = compat.array_namespace(block)
        found = _products(xp.permute_dims(block, (1, 0)), like(both.T.copy(), block))
        intercept = intercept - n_parts * (found[:, -1] @ found[:, :-1])
        coefficients.append(found[:, :-1])
    return intercept, coefficients


def _products(a: Any, b: Any) -> np.ndarray:
    """Products a bᵀ in the precision of ``a``, on the host in float64."""
    xp = compat.array_namespace(a)
    turned = xp.permute_dims(xp.astype(b, a.dtype), (1, 0))
    return to_host(a @ turned).astype(np.float64)
