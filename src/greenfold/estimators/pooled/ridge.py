"""Ridge regression on pooled features, which are standardised and weighted by kind.

There are more features than cases, so it is solved in its dual form.

More than `DUAL_CASES` series are divided at random into parts of a few thousand. Each part
is solved separately, with the same penalty, and the solutions are averaged. For kernel
ridge regression, this divide and conquer loses little while the parts are large (Zhang,
Duchi and Wainwright, 2015). The penalty is the one for which the average best predicts a
few hundred held-out series; these series also calibrate the probabilities.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np
from scipy.linalg import blas

from ..._base.arrays import Array, batches, like, to_host
from ..._base.progress import tell
from ...math.ridge import PENALTIES, dual_path, mean_square, solve_dual
from ..series import SeriesByLength
from .feature_map import N_ROWS, FeatureMap, LinearHead, row_weights

#: Largest number of series to solve all at once; the cost grows as the cube of the number.
DUAL_CASES = 4096
#: Largest size in bytes at which the features of the training series are kept.
KEPT_BYTES = 2**30
#: Approximate number of series per part, and of held-out series.
PART_CASES = 2500
HELD_OUT = 512
#: Relative spread below which a feature varies only by rounding.
_ROUNDING = 1e-5
#: Number of columns to standardise at a time.
_COLUMNS = 2**11


class HeadFit(NamedTuple):
    """A fitted head, the held-out ``cases``, and their scores computed without them."""

    head: LinearHead
    penalty: float
    cases: np.ndarray
    held_out: np.ndarray


@dataclass(frozen=True)
class _Features:
    """Standardised features (features − mean) · factor of each reservoir."""

    made: FeatureMap
    scales: list[tuple[np.ndarray, np.ndarray]]
    n_jobs: int | None

    def blocks(self, series: SeriesByLength) -> Iterator[Array]:
        """Yield the features of the series, reservoir by reservoir."""
        for scale, (mean, factor) in enumerate(self.scales):
            block = self.made.blocks(series, scale, self.n_jobs)
            block -= like(mean, block)
            block *= like(factor, block, block.dtype)
            yield block

    def head(self, coefficients: list[np.ndarray], intercept: np.ndarray) -> LinearHead:
        """Return the head with coefficients for standardised features."""
        own = [
            (W * factor[:, None]).astype(np.float32)
            for W, (_, factor) in zip(coefficients, self.scales, strict=True)
        ]
        return LinearHead([mean for mean, _ in self.scales], own, intercept)


def fit_head(
    made: FeatureMap,
    series: SeriesByLength,
    targets: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
) -> HeadFit:
    """Fit ridge regression to the features of training series.

    ``targets`` are (n_cases, n_targets), and ``weights`` (n_cases,) are the weights of the
    cases. ``seed`` determines how more than `DUAL_CASES` series are divided into parts.
    """
    n, features = len(series), _Features(made, [], n_jobs)
    omega = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if n > DUAL_CASES:
        return _fit_parts(features, series, targets, omega, seed)
    keep = 4 * n * sum(made.widths) <= KEPT_BYTES
    gram, kept = np.zeros((n, n)), []
    for scale in range(len(made.widths)):
        tell(f"features of reservoir {scale + 1} of {len(made.widths)}")
        block = made.blocks(series, scale, n_jobs)
        features.scales.append(standard(block))
        gram += gram_of(block)
        if keep:
            kept.append(block)
        del block
    solution = solve_dual(gram, targets, omega)
    blocks = kept if keep else features.blocks(series)
    intercept, coefficients = _weigh(blocks, solution.dual, targets, omega)
    head = features.head(coefficients, intercept)
    return HeadFit(head, solution.penalty, np.arange(n), solution.held_out)


def standard(block: Array) -> tuple[np.ndarray, np.ndarray]:
    """Standardise features in place; return their means, float32, and factors.

    A factor brings a centred feature to its weight; it is zero for a constant feature.
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
    block *= like(factor, block, block.dtype)
    return mean, factor


def gram_of(block: Array) -> np.ndarray:
    """Return F Fᵀ, computed in single precision."""
    if not isinstance(block, np.ndarray):
        xp = compat.array_namespace(block)
        return to_host(block @ xp.permute_dims(block, (1, 0))).astype(np.float64)
    # One triangle costs half of a full product.
    syrk: Any = blas.ssyrk  # pyright: ignore[reportAttributeAccessIssue]
    upper = syrk(1.0, block.T, trans=1)
    return np.triu(upper).astype(np.float64) + np.triu(upper, 1).T


def _weigh(
    blocks: Iterable[Array],
    dual: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    n_parts: int = 1,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the contribution of some cases to the intercept and the coefficients."""
    share = weights / weights.sum()
    both = np.concatenate([dual, share[:, None]], axis=1) / n_parts
    intercept, coefficients = share @ targets / n_parts, []
    for block in blocks:
        xp = compat.array_namespace(block)
        wide = like(both, block, block.dtype)
        found = to_host(xp.permute_dims(block, (1, 0)) @ wide).astype(np.float64)
        intercept = intercept - n_parts * (found[:, -1] @ found[:, :-1])
        coefficients.append(found[:, :-1])
    return intercept, coefficients


def _fit_parts(
    features: _Features,
    series: SeriesByLength,
    targets: np.ndarray,
    omega: np.ndarray,
    seed: int,
) -> HeadFit:
    order = series.order[np.random.default_rng(seed).permutation(len(series))]
    cases, others = np.sort(order[:HELD_OUT]), order[HELD_OUT:]
    n_parts = max(2, round(len(others) / PART_CASES))
    parts = [np.sort(part) for part in np.array_split(others, n_parts)]
    first = series.take(parts[0])
    for scale in range(len(features.made.widths)):
        block = features.made.blocks(first, scale, features.n_jobs)
        features.scales.append(standard(block))
    held = series.once(_held_blocks, features, series.take(cases))
    own = [targets[part] for part in parts], [omega[part] for part in parts]
    # The first part sets the unit of the penalties of all parts.
    begun = [[entries[0]] for entries in own]
    found = list(series.each_part(_solve_part, parts[:1], begun, None, features, held))
    penalties = found[0][0]
    left = [entries[1:] for entries in own]
    found += series.each_part(_solve_part, parts[1:], left, penalties, features, held)
    scores = sum(part_scores / n_parts for _, _, part_scores in found)
    errors = ((scores - targets[cases]) ** 2).mean(axis=2) @ omega[cases]
    best = int(errors.argmin())
    duals = [dual[best] for _, dual, _ in found]
    coefficients: list[Any] = [0.0] * len(features.scales)
    intercept = np.zeros(targets.shape[1])
    for added, weighed in series.each_part(
        _weigh_part, parts, (duals, *own), features, n_parts
    ):
        intercept += added
        coefficients = [a + b for a, b in zip(coefficients, weighed, strict=True)]
    head = features.head(coefficients, intercept)
    return HeadFit(head, float(penalties[best]), cases, np.asarray(scores)[best])


def _held_blocks(features: _Features, outside: SeriesByLength) -> list[Array]:
    return list(features.blocks(outside))


def _solve_part(
    few: SeriesByLength,
    targets: np.ndarray,
    own: np.ndarray,
    penalties: np.ndarray | None,
    features: _Features,
    held: list[Array],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return penalties, dual coefficients for each, and scores of held-out series."""
    n = len(few)
    gram, cross = np.zeros((n, n)), np.zeros((held[0].shape[0], n))
    for outside, block in zip(held, features.blocks(few), strict=True):
        gram += gram_of(block)
        xp = compat.array_namespace(block)
        products = outside @ xp.permute_dims(block, (1, 0))
        cross += to_host(products).astype(np.float64)
    if penalties is None:
        penalties = PENALTIES * mean_square(gram, own)
    duals = np.stack([dual for dual, _ in dual_path(gram, targets, own, penalties)])
    share = own / own.sum()
    return penalties, duals, (cross - share @ gram) @ duals + share @ targets


def _weigh_part(
    few: SeriesByLength,
    dual: np.ndarray,
    targets: np.ndarray,
    own: np.ndarray,
    features: _Features,
    n_parts: int,
) -> tuple[np.ndarray, list[np.ndarray]]:
    return _weigh(features.blocks(few), dual, targets, own, n_parts)
