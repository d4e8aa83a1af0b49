"""A closed loop of 10⁵ steps on Lorenz's attractor, and its Lyapunov exponents.

A loop is on the attractor if it never leaves the range of the training series; if 95 % of
its samples are as close to a true trajectory as 99 % of the samples of another true
trajectory; if it comes as close to 90 % of that trajectory; and if its deviations are
within a fifth of the true ones. The true exponents are 0.906, 0 and −14.57 (Sprott 2003).
The middle one counts as zero within 5 % of the largest.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import series
from ._cells import Cell, Found
from ._forecast_peers import invariant_subspace
from ._measure import Report, Row
from .forecast import TRAIN, forecaster

N_NEURONS, N_SEEDS, N_STEPS, N_EXPONENT_STEPS = 100, 50, 100_000, 20_000
DT, EXPONENTS = 0.05, (0.906, 0.0, -14.57)
MODELS = ("solved", "drawn", "rule of 2602.11069")
#: Every so many samples are compared with the true trajectory.
STRIDE = 10


def truth() -> np.ndarray:
    """A long true trajectory; the file of series may hold it."""
    from greenfold.datasets import lorenz

    kept = "made/Lorenz attractor/0"
    if series.is_kept(kept):
        return series.load(kept)
    return lorenz(20_000, rng=12_345)


def is_on_attractor(loop: np.ndarray) -> tuple[bool, dict[str, float]]:
    """Whether a loop is, and the figures behind the answer."""
    from scipy.spatial import cKDTree

    if not np.isfinite(loop).all():
        return False, {"left_at": float(np.argmin(np.isfinite(loop).all(1)))}
    every = truth() / truth().std(0)
    half = len(every) // 2
    tree = cKDTree(every[:half])
    near = float(np.quantile(tree.query(every[half::STRIDE])[0], 0.99))
    kept = loop[::STRIDE] / truth().std(0)
    close = float(np.mean(tree.query(kept)[0] <= near))
    visited = float(np.mean(cKDTree(kept).query(every[:half:STRIDE])[0] <= near))
    spread = float(np.abs(kept.std(0) - 1).max())
    good = close >= 0.95 and visited >= 0.9 and spread <= 0.2
    return good, {"close": close, "visited": visited, "spread": spread}


def ran(kind: str, seed: int) -> dict[str, Any]:
    """Fit, run 10⁵ steps, and measure."""
    from greenfold.datasets import lorenz

    train = lorenz(TRAIN, rng=seed)
    if kind == "rule of 2602.11069":
        model = invariant_subspace(N_NEURONS, train.shape[1], seed)
    else:
        weights = "random" if kind == "drawn" else "solved"
        model = forecaster(N_NEURONS, seed, input_weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(train)
        good, detail = is_on_attractor(model.forecast(N_STEPS))
        spectrum = None
        if "left_at" not in detail:
            spectrum = model.lyapunov_exponents(3, n_steps=N_EXPONENT_STEPS, dt=DT)
    return {"on_attractor": good, "exponents": spectrum, **detail}


def cells(found: Found) -> Iterator[Cell]:
    """Fifty seeds of three models."""
    del found
    for seed in range(N_SEEDS):
        for kind in MODELS:
            yield Cell(f"{kind}|{seed}", ran, (kind, seed), seed // 5)


def report(found: Found) -> Report:
    """Share on the attractor, and share with the right spectrum, of each model."""
    rows = []
    for kind in MODELS:
        mine = [one for key, one in found.items() if key.startswith(f"{kind}|")]
        if not mine:
            continue
        on = [one["on_attractor"] for one in mine]
        some = [one["exponents"] for one in mine if one["exponents"] is not None]
        each = np.array(some, dtype=float).reshape(-1, 3)
        largest = np.abs(each[:, 0] / EXPONENTS[0] - 1) <= 0.05
        signs = (np.abs(each[:, 1]) <= 0.05 * EXPONENTS[0]) & (each[:, 2] < -1)
        signs &= each[:, 0] > 0.05 * EXPONENTS[0]
        both = int((largest & signs).sum())
        rows += [
            Row(
                f"{kind}: loops of {N_STEPS:,} steps on the attractor",
                float(sum(on)),
                f"of {len(on)}",
                "",
                None,
                {"left the range of training": sum("left_at" in one for one in mine)},
            ),
            Row(
                f"{kind}: largest exponent within 5 %, and the signs +, 0, −",
                float(both),
                f"of {len(on)}",
                "",
                None,
                {
                    "largest within 5 %": int(largest.sum()),
                    "signs": int(signs.sum()),
                    "median": np.median(each, axis=0).round(3).tolist(),
                    "largest": each[:, 0].round(4).tolist(),
                    "third": each[:, 2].round(3).tolist(),
                },
            ),
        ]
    notes = [
        f"Lorenz, N = {N_NEURONS}, {TRAIN} samples to train, defaults, up to {N_SEEDS} "
        f"seeds; exponents over {N_EXPONENT_STEPS:,} steps, per unit of time; the true "
        "ones are " + ", ".join(f"{one:g}" for one in EXPONENTS),
        "rule of 2602.11069: input weights from an invariant subspace of a symmetric W of "
        "radius 0.1, as far as its abstract and a summary tell",
    ]
    return Report("long run: 10⁵ closed-loop steps of Lorenz", notes, rows)
