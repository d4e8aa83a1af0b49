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
    outside = series.take(cases)
    held = [
        standardised(made.blocks(outside, s, n_jobs), *scales[s]) for s in range(n_scales)
    ]
    penalties = None
    duals: list[np.ndarray] = []
    scores: Any = 0.0
    for part in parts:
        few, own = series.take(part), omega[part]
        gram, cross = np.zeros((len(part), len(part))), np.zeros((len(cases), len(part)))
        for s in range(n_scales):
            block = standardised(made.blocks(few, s, n_jobs), *scales[s])
            gram += gram_of(block)
            cross += _products(held[s], block)
        if penalties is None:
            penalties = PENALTIES * mean_square(gram, own)
        path = ridge_path(gram, targets[part], own, penalties)
        duals.append(np.stack([dual for dual, _ in path]))
        share = own / own.sum()
        offset = share @ targets[part]
        scores = scores + ((cross - share @ gram) @ duals[-1] + offset) / n_parts
    assert penalties is not None
    errors = ((scores - targets[cases]) ** 2).mean(axis=2) @ omega[cases]
    best = int(errors.argmin())
    coefficients: list[Any] = [0.0] * n_scales
    intercept = np.zeros(targets.shape[1])
    for part, dual in zip(parts, duals, strict=True):
        few, share = series.take(part), omega[part] / omega[part].sum()
        both = np.concatenate([dual[best], share[:, None]], axis=1) / n_parts
        intercept += share @ targets[part] / n_parts
        for s in range(n_scales):
            block = standardised(made.blocks(few, s, n_jobs), *scales[s])
            xp = compat.array_namespace(block)
            found = _products(xp.permute_dims(block, (1, 0)), like(both.T.copy(), block))
            intercept -= n_parts * (found[:, -1] @ found[:, :-1])
            coefficients[s] = coefficients[s] + found[:, :-1]
    head = LinearHead(
        [mean for mean, _ in scales],
        [
            (W * factor[:, None]).astype(np.float32)
            for W, (_, factor) in zip(coefficients, scales, strict=True)
        ],
        intercept,
    )
    return HeadFit(head, float(penalties[best]), cases, scores[best])


def _products(a: Any, b: Any) -> np.ndarray:
    """Products a bᵀ in the precision of ``a``, on the host in float64."""
    xp = compat.array_namespace(a)
    turned = xp.permute_dims(xp.astype(b, a.dtype), (1, 0))
    return to_host(a @ turned).astype(np.float64)
