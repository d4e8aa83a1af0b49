"""The linear head on pooled features: standardised, weighted by kind, ridge.

Features are made reservoir by reservoir. Those of the training series are kept between the
two passes over them if they fit into memory, and made again if they do not. Beyond
`DUAL_CASES` series the Gram matrix would grow too large; see `parts`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np
from scipy.linalg import blas

from .._arrays import batches, like, to_host
from .collection import Collection
from .feature_map import FeatureMap
from .kinds import N_ROWS, row_weights
from .ridge import solve_ridge

__all__ = ["HeadFit", "LinearHead", "fit_head"]

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
        from .parts import fit_parts

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
