"""Ridge regression for very many series, at a cost linear in their number.

The series are divided at random into parts of a few thousand. Each part is solved as if it
were all, with the same penalty, and the solutions are averaged: divide and conquer, which
for kernel ridge regression loses little while the parts are large (Zhang, Duchi and
Wainwright, 2015). The penalty is the one at which the average predicts best a few hundred
series that no part has seen; so it is smaller than a part alone would choose, because the
average takes the variance away. The same series calibrate the probabilities.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

from .._arrays import like, to_host
from .collection import Collection
from .feature_map import FeatureMap
from .head import HeadFit, LinearHead, gram_of, standard, standardised
from .ridge import PENALTIES, mean_square, ridge_path

__all__ = ["fit_parts"]

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
