"""The estimator against two reservoir libraries, with readout noise, and on the archive.

Both peers get the same task, 100 neurons and one BLAS thread, like ours; ours runs with its
default settings, and its time includes the cross-validation of η. reservoirpy has no
classifier of its own: the last state of each series goes to a RidgeClassifierCV. Both
simple representations of reservoir-computing run; the faster counts for time and the better
for accuracy. Nothing is chosen on test data.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from greenfold.datasets import ecg5000_paper, load_dataset, synthetic_heartbeats
from greenfold.estimators.margin import ReservoirClassifier, noisy_accuracy

from ._measure import Report, Row, alternating_seconds, median_seconds

N_NEURONS = 100
#: Number of networks to average accuracies over.
N_NETWORKS = 10
N_ARCHIVE_SEEDS = 3
SIGMA = 0.1
UCR = [
    *("ArrowHead", "CBF", "Coffee", "ECG200", "ECG5000", "ECGFiveDays", "GunPoint"),
    *("ItalyPowerDemand", "OSULeaf", "Plane", "PowerCons", "SyntheticControl"),
    *("Trace", "TwoLeadECG"),
]
UEA = ["BasicMotions", "JapaneseVowels"]
PUBLISHED = {
    "LDA": "LDA(raw)",
    "RidgeCV": "RidgeCV(raw)",
    "TWIESN": "TWIESN(ESN)",
    "ROCKET": "ROCKET",
}

Split = tuple[np.ndarray, np.ndarray]


def heartbeats(split: Any, seed: int) -> Split:
    """Classes 1 and 2 of ECG5000, or synthetic beats if there are no data."""
    if os.environ.get("GREENFOLD_DATA"):
        X, y = load_dataset("ECG5000", split, download=False)
        return np.asarray(X)[y <= 2], y[y <= 2]
    X, y = synthetic_heartbeats(469 if split == "train" else 4217, rng=seed)
    return X, np.where(y > 0, 1, 2)


def peers(
    train: Split, test: Split
) -> dict[str, tuple[Callable[[], None], Callable[[], float]]]:
    """Name to (fit, predict); predict returns the accuracy."""
    from reservoir_computing.modules import RC_model  # pyright: ignore[reportMissingImports]
    from reservoirpy.nodes import Reservoir as Node  # pyright: ignore[reportMissingImports]
    from sklearn.linear_model import RidgeClassifierCV

    (X, y), (X_test, y_test) = train, test
    columns, columns_test = X[:, :, None], X_test[:, :, None]
    fitted: dict[str, Any] = {}

    def last_states(series: np.ndarray, workers: int) -> np.ndarray:
        # The leak of our network: dt / tau with T = 10 and tau = 0.25.
        node = Node(units=N_NEURONS, lr=10 / X.shape[1] / 0.25, sr=0.9, seed=0)
        return np.asarray(node.run(series, workers=workers))[:, -1]

    def fit_py(workers: int) -> None:
        fitted["py"] = RidgeClassifierCV().fit(last_states(columns, workers), y)

    def predict_py(workers: int) -> float:
        found = fitted["py"].predict(last_states(columns_test, workers))
        return float((found == y_test).mean())

    def fit_rc(kind: str) -> None:
        np.random.seed(0)  # noqa: NPY002 - the peer draws from NumPy's global state
        model = RC_model(n_internal_units=N_NEURONS, mts_rep=kind)
        model.fit(columns, np.eye(2)[y - 1], verbose=False)
        fitted[kind] = model

    def predict_rc(kind: str) -> float:
        return float((fitted[kind].predict(columns_test) + 1 == y_test).mean())

    cores = os.cpu_count() or 1
    ways = sorted({1, cores})
    workers = min(ways, key=lambda n: median_seconds(lambda: fit_py(n), 1, warm_up=0))
    return {
        f"reservoirpy {version('reservoirpy')}, {workers} worker(s)": (
            lambda: fit_py(workers),
            lambda: predict_py(workers),
        ),
        **{
            f"reservoir-computing {version('reservoir-computing')}, {kind} state": (
                lambda kind=kind: fit_rc(kind),
                lambda kind=kind: predict_rc(kind),
            )
            for kind in ("last", "mean")
        },
    }


def speed_rows(rounds: int) -> tuple[list[Row], list[str]]:
    """Fit, predict and accuracy against the peers, in one run."""
    train, test = heartbeats("train", 0), heartbeats("test", 1)
    ours = ReservoirClassifier(random_state=0)

    def fit() -> None:
        ours.fit(*train)

    accuracy: dict[str, float] = {}
    jobs: dict[str, tuple[Callable[[], Any], int]] = {}
    fit()
    jobs["ours fit"] = (fit, 5)
    jobs["ours predict"] = (lambda: ours.predict(test[0]), 31)
    names = []
    for name, (peer_fit, peer_predict) in peers(train, test).items():
        names.append(name)
        peer_fit()
        accuracy[name] = peer_predict()
        jobs[f"{name} fit"] = (peer_fit, 1)
        jobs[f"{name} predict"] = (peer_predict, 1)
    with threadpool_limits(1):
        times = alternating_seconds(jobs, rounds)
        accuracy["ours"] = ours.score(*test)

    def ratios(peer: str, parts: tuple[str, ...]) -> list[float]:
        """Peer over ours, round by round."""
        peer_parts = zip(*(times[f"{peer} {part}"] for part in parts), strict=True)
        own_parts = zip(*(times[f"ours {part}"] for part in parts), strict=True)
        return [sum(p) / sum(o) for p, o in zip(peer_parts, own_parts, strict=True)]

    both = ("fit", "predict")
    rpy, rc = names[0], names[1:]
    rows = [
        _ratio_row("fit + predict, against reservoirpy", ratios(rpy, both), 10),
        _ratio_row(
            "fit + predict, against reservoir-computing",
            [min(pair) for pair in zip(*(ratios(n, both) for n in rc), strict=True)],
            3,
        ),
        _ratio_row(
            "predict, against the faster of both",
            [min(t) for t in zip(*(ratios(n, ("predict",)) for n in names), strict=True)],
            100,
        ),
    ]
    best = max(value for name, value in accuracy.items() if name != "ours")
    rows.append(
        Row(
            "accuracy, compared with the better of both",
            100 * accuracy["ours"],
            "%",
            f"target ≥ {100 * best - 0.3:.2f} %",
            accuracy["ours"] >= best - 0.003,
            {name: f"{100 * value:.2f}%" for name, value in accuracy.items()},
        )
    )
    source = "ECG5000, classes 1 and 2" if _has_data() else "synthetic beats"
    notes = [
        f"{len(train[0])} / {len(test[0])} series × {train[0].shape[1]} steps ({source}), "
        f"N = {N_NEURONS}; medians of {rounds} rounds, one BLAS thread; η {ours.eta_:.4g}",
        *(
            f"    {name}: fit {1e3 * median(times[f'{name} fit']):.1f} ms, "
            f"predict {1e3 * median(times[f'{name} predict']):.2f} ms"
            for name in ["ours", *names]
        ),
    ]
    return rows, notes


def _ratio_row(name: str, ratios: list[float], target: float) -> Row:
    value = median(ratios)
    detail = {"ratio_low": min(ratios), "ratio_high": max(ratios)}
    return Row(name, value, "× faster", f"target ≥ {target:g}×", value >= target, detail)


def _has_data() -> bool:
    return bool(os.environ.get("GREENFOLD_DATA"))


def projection_rows() -> list[Row]:
    """Solved against random input projections: the paper's task, and readout noise."""
    task = ecg5000_paper()
    paper: dict[str, list[float]] = {}
    noisy: dict[str, list[float]] = {}
    train, test = heartbeats("train", 0), heartbeats("test", 1)
    for kind in ("solved", "random"):
        for seed in range(N_NETWORKS):
            shared: dict[str, Any] = {"input_projection": kind, "random_state": seed}
            one = ReservoirClassifier(eta=10.0, threshold="origin", **shared)
            one.fit(task.X_train, task.y_train)
            paper.setdefault(kind, []).append(one.score(task.X_test, task.y_test))
            one = ReservoirClassifier(readout_noise=SIGMA, **shared).fit(*train)
            noisy.setdefault(kind, []).append(noisy_accuracy(one, *test, SIGMA))
    rows = []
    gain = 100 * (mean(paper["solved"]) - mean(paper["random"]))
    shown = {kind: f"{100 * mean(v):.2f}%" for kind, v in paper.items()}
    rows.append(
        Row(
            "paper's task, η = 10, solved u",
            100 * mean(paper["solved"]),
            "%",
            "target ≥ 97.3 %",
            mean(paper["solved"]) >= 0.973,
            {**shown, "networks": N_NETWORKS},
        )
    )
    rows.append(Row("    above random u", gain, "points", "target ≥ 2", gain >= 2, shown))
    gain = 100 * (mean(noisy["solved"]) - mean(noisy["random"]))
    shown = {kind: f"{100 * mean(v):.2f}%" for kind, v in noisy.items()}
    each = [100 * (a - b) for a, b in zip(noisy["solved"], noisy["random"], strict=True)]
    rows.append(
        Row(
            f"readout noise σ = {SIGMA}, above random u",
            gain,
            "points",
            "target ≥ 4",
            gain >= 4,
            {**shown, "lowest": min(each), "highest": max(each), "networks": N_NETWORKS},
        )
    )
    return rows


def published() -> dict[str, dict[str, float]]:
    """Published accuracies on the provided split, by data set and method."""
    path = Path(os.environ["GREENFOLD_DATA"]) / "reference" / "ucr_default_split.csv"
    if not path.exists():
        return {}
    with open(path, newline="") as stream:
        rows = {row["dataset"]: row for row in csv.DictReader(stream)}
    return {
        name: {m: float(rows[name][c]) for m, c in PUBLISHED.items() if rows[name].get(c)}
        for name in UCR
        if name in rows
    }


def archive_rows() -> list[Row]:
    """Default settings on every data set, with published accuracies."""
    others = published()
    rows, found = [], {}
    for name in UCR + UEA:
        X: Any
        X_test: Any
        (X, y), (X_test, y_test) = (
            load_dataset(name, split, download=False) for split in ("train", "test")
        )
        scores, seconds = [], []
        for seed in range(N_ARCHIVE_SEEDS):
            one = ReservoirClassifier(random_state=seed)
            seconds.append(
                median_seconds(lambda one=one, X=X, y=y: one.fit(X, y), 1, warm_up=0)
            )
            scores.append(one.score(X_test, y_test))
        found[name] = mean(scores)
        detail = {m: f"{100 * a:.1f}" for m, a in others.get(name, {}).items()}
        detail |= {"low": 100 * min(scores), "high": 100 * max(scores)}
        detail |= {"fit_s": median(seconds)}
        rows.append(Row(name, 100 * found[name], "%", "", None, detail))
    ours = mean(found[name] for name in UCR)
    means = {
        method: f"{100 * mean(others[name][method] for name in UCR):.1f}"
        for method in (PUBLISHED if others else ())
    }
    rows.append(
        Row(
            "mean of the 14 UCR sets, default settings",
            100 * ours,
            "%",
            "target ≥ 81 %",
            ours >= 0.81,
            {**means, "networks": N_ARCHIVE_SEEDS},
        )
    )
    return rows


def run(rounds: int) -> Report:
    """All rows of this benchmark."""
    rows, notes = speed_rows(min(rounds, 3))
    if _has_data():
        with threadpool_limits(1):
            rows += projection_rows() + archive_rows()
        notes.append("published accuracies: provided split, from reference/ of the data")
    else:
        notes.append("without GREENFOLD_DATA: no accuracies on real data")
    return Report("classification", notes, rows)
