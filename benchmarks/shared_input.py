"""One input projection for all classes, against one per class and random ones.

The sum of the soft margins with its bound at η = 10, and test accuracy with η
cross-validated, read without noise and with noise of 0.1 on every state, for which it was
fitted. The noise of each class's readout is drawn separately, in the unit in which the
means of the class and the rest are two apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greenfold.datasets import load_dataset
from greenfold.estimators.margin import ReservoirClassifier, noisy_accuracy

from ._measure import Report, Row

DATA = ("Plane", "Trace", "CBF", "ECG5000")
KINDS = ("shared", "solved", "random")
N_NEURONS = 40
ETA = 10.0
NOISES = (0.0, 0.1)
N_SEEDS = 2


def run(rounds: int) -> Report:
    """Margins and accuracies of every data set; nothing is timed."""
    del rounds
    rows = []
    for name in DATA:
        train, test = (load_dataset(name, part) for part in ("train", "test"))
        rows += [_margins(name, *train), *_accuracies(name, train, test)]
    notes = [
        f"N = {N_NEURONS}, archive's split; margins at η = {ETA:g} of network 0, "
        f"accuracies with η cross-validated, mean of {N_SEEDS} networks",
        "solved: one u per class; random: one random u for all",
    ]
    return Report("shared input: one u for all classes", notes, rows)


def _fit(kind: str, X: Any, y: np.ndarray, **given: Any) -> ReservoirClassifier:
    made = ReservoirClassifier(input_projection=kind, n_neurons=N_NEURONS, **given)
    return made.fit(X, y)


def _margins(name: str, X: Any, y: np.ndarray) -> Row:
    fits = {
        kind: _fit(kind, X, y, random_state=0, eta=ETA, certify=kind != "random")
        for kind in KINDS
    }
    totals = {kind: float(np.sum(fit.soft_margin_)) for kind, fit in fits.items()}
    bound = fits["shared"].shared_bound_
    assert bound is not None
    detail = {**totals, "bound": bound, "gap": (bound - totals["shared"]) / bound}
    detail["solved_bound"] = float(np.sum(fits["solved"].soft_margin_bound_))
    share = 100 * totals["shared"] / bound
    n_classes = len(fits["shared"].classes_)
    beside = f"one u per class {totals['solved']:.4f}, random {totals['random']:.4f}"
    title = f"{name}, {n_classes} classes: Σκ of the shared u, {totals['shared']:.4f} "
    title += f"({beside}), as a share of its bound"
    return Row(title, share, "%", "", None, detail)


def _accuracies(name: str, train: Any, test: Any) -> list[Row]:
    """Accuracy of the shared u, with that of the others, for each noise."""
    rows = []
    for noise in NOISES:
        percent = {
            kind: [
                100 * noisy_accuracy(fit, test[0], test[1], noise, rng=seed)
                for seed in range(N_SEEDS)
                for fit in [_fit(kind, *train, random_state=seed, readout_noise=noise)]
            ]
            for kind in KINDS
        }
        means = {kind: float(np.mean(values)) for kind, values in percent.items()}
        detail = {**means, "each": percent}
        beside = f"one u per class {means['solved']:.1f}, random {means['random']:.1f}"
        title = f"{name}: accuracy of the shared u, noise {noise:g} ({beside})"
        rows.append(Row(title, means["shared"], "%", "", None, detail))
    return rows
