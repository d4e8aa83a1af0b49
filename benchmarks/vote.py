"""Let classifiers of different kinds vote: the recipe of the page on unaligned series.

``python -m benchmarks.vote`` runs the vote and its members on the sets below
``GREENFOLD_DATA``, with the provided split and five seeds, and writes
``docs/_vote/vote.json``. It needs aeon and PyTorch, and takes about ten minutes.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from aeon.classification.convolution_based import (  # pyright: ignore[reportMissingImports]
    HydraClassifier,
)
from aeon.classification.interval_based import (  # pyright: ignore[reportMissingImports]
    QUANTClassifier,
)
from sklearn.ensemble import VotingClassifier

from greenfold import PooledReservoirClassifier
from greenfold._base.files import plain, write_json
from greenfold.apps.sweep import Comparison, Workers, compare, sweep


class Vote(VotingClassifier):
    """Predict with the mean of the probabilities of several classifiers."""

    def __init__(self, hydra: bool = True, random_state: int | None = 0) -> None:
        self.hydra, self.random_state = hydra, random_state
        kinds = [PooledReservoirClassifier, QUANTClassifier, HydraClassifier]
        members = [kind(random_state=random_state) for kind in kinds[: 2 + hydra]]
        super().__init__([(type(one).__name__, one) for one in members], voting="soft")


ESTIMATORS = (
    "PooledReservoirClassifier",
    "QUANT",
    "Hydra",
    "two=benchmarks.vote:Vote(hydra=False)",
    "three=benchmarks.vote:Vote",
)
PUBLISHED = ("HC2", "MR-Hydra", "ROCKET")
N_SEEDS = 5
RECORD = Path(__file__).parents[1] / "docs" / "_vote" / "vote.json"


def main() -> None:
    """Run all seeds and record the means over them."""
    found = []
    for seed in range(N_SEEDS):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(os.environ["GREENFOLD_DATA"]) / "ucr"
            sweep(ESTIMATORS, [data], folder=folder, seed=seed, workers=Workers(1))
            found.append(compare(folder, published=PUBLISHED))
    mean = np.mean([one.accuracy for one in found], axis=0).round(4)
    last = found[-1]
    both = Comparison(last.estimators, last.datasets, mean, last.resamples)
    seeds = [one.mean_accuracy for one in found]
    write_json(RECORD, plain({**both.record(), "mean_accuracy_of_seeds": seeds}))
    print(both)


if __name__ == "__main__":
    main()
