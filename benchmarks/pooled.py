"""The pooled classifier: accuracy against published values, speed against aeon's fastest.

All run with default settings and one thread, after the compilers are warmed up; times are
of fit and predict together, in turn, on the same series. Nothing is chosen on test data.
`pooled_cuda` runs on a GPU.
"""

from __future__ import annotations

import csv
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from greenfold.datasets import load_dataset, synthetic_heartbeats
from greenfold.estimators.pooled import PooledReservoirClassifier, ReservoirFeatures
from greenfold.math.decisions import expected_calibration_error

from ._measure import MIB, Report, Row, alternating_seconds, in_fresh_process
from .classification import UCR, UEA

N_SEEDS = 5
PUBLISHED = ("ROCKET", "MiniROCKET", "MR-Hydra", "HC2")
#: Number of steps and number of the long series.
N_LONG, LONG_STEPS = 2000, 1000


def long_series(n_cases: int, n_steps: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four classes of noisy oscillations that begin at random times."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_cases) % 4
    phase = rng.uniform(0, 2 * np.pi, (n_cases, 1))
    frequency = 10 * (1 + 0.4 * y[:, None]) / n_steps
    X = np.sin(2 * np.pi * frequency * np.arange(n_steps) + phase)
    return X + rng.standard_normal(X.shape), y


def heartbeats() -> tuple[tuple[Any, Any], tuple[Any, Any], str]:
    """ECG5000, five classes, or synthetic beats if there are no data."""
    if os.environ.get("GREENFOLD_DATA"):
        train, test = (
            load_dataset("ECG5000", s, download=False) for s in ("train", "test")
        )
        return train, test, "ECG5000"
    X, y = synthetic_heartbeats(5000, rng=0)
    return (X[:500], y[:500]), (X[500:], y[500:]), "synthetic beats"


def ours(**options: Any) -> Any:
    return PooledReservoirClassifier(random_state=0, **options)


def peers() -> dict[str, Callable[[], Any]]:
    from aeon.classification.convolution_based import (
        MiniRocketClassifier,
        RocketClassifier,
    )
    from aeon.classification.interval_based import QUANTClassifier

    return {
        "ROCKET": lambda: RocketClassifier(random_state=0, n_jobs=1),
        "MiniROCKET": lambda: MiniRocketClassifier(random_state=0, n_jobs=1),
        "QUANT": lambda: QUANTClassifier(random_state=0),
    }


def speed_rows(rounds: int) -> tuple[list[Row], list[str]]:
    """Fit and predict, in turn with the peers."""
    train, test, source = heartbeats()
    X, y = long_series(N_LONG, LONG_STEPS)
    half = N_LONG // 2
    problems = {
        f"{source}, {len(train[0])}/{len(test[0])} × {np.shape(train[0])[1]}": (
            train,
            test,
        ),
        f"{half}/{half} × {LONG_STEPS}": ((X[:half], y[:half]), (X[half:], y[half:])),
    }
    makers = {"ours": ours, **peers()}
    rows, notes = [], []
    for title, ((X, y), (X_test, y_test)) in problems.items():
        accuracy: dict[str, float] = {}
        few = np.concatenate([np.flatnonzero(y == c)[:5] for c in np.unique(y)])

        def work(name: str, X=X, y=y, X_test=X_test, y_test=y_test, found=accuracy) -> None:
            fitted = makers[name]().fit(X, y)
            found[name] = float((fitted.predict(X_test) == y_test).mean())

        for make in makers.values():  # compile
            make().fit(X[few], y[few]).predict(X_test[:5])
        # ROCKET takes minutes, and its ratio is far from the target: it runs once.
        slow = {"ROCKET"}
        quick = [name for name in makers if name not in slow]
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # All run in one thread, so processor time is their own, whatever else the
            # machine does.
            times: dict[str, list[float]] = {name: [] for name in quick}
            for _ in range(rounds):
                for name in quick:
                    times[name].append(_processor_seconds(lambda name=name: work(name)))
            for name in slow:
                times[name] = [_processor_seconds(lambda name=name: work(name))] * rounds
        for name, target, factor in (
            ("ROCKET", "target ≥ 3×", 3),
            ("MiniROCKET", "target ≥ 0.25×", 0.25),
            ("QUANT", "", None),
        ):
            ratios = [p / o for p, o in zip(times[name], times["ours"], strict=True)]
            value = median(ratios)
            rows.append(
                Row(
                    f"{title}, against {name}",
                    value,
                    "× faster",
                    target,
                    None if factor is None else value >= factor,
                    {
                        "ours_s": median(times["ours"]),
                        "theirs_s": median(times[name]),
                        "ratio_low": min(ratios),
                        "ratio_high": max(ratios),
                        "ours": f"{100 * accuracy['ours']:.2f}%",
                        "theirs": f"{100 * accuracy[name]:.2f}%",
                    },
                )
            )
        notes.append(
            f"{title}: processor time of one thread; ROCKET once, the others {rounds} "
            "rounds in turn"
        )
    return rows, notes


def _processor_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def cost_row() -> Row:
    """Time of the features of a series against the time its operations must take."""
    n, n_steps = 256, 140
    X, _ = long_series(n, n_steps)
    features = ReservoirFeatures(random_state=0).fit(X)
    made, series = features.map_, features._read(X, fitting=False)
    values = flops = 0
    for one in made.bank.scales:
        reads = -(-n_steps // one.stride)
        width = 2 * len(one.decay_times)
        values += 3 * reads * one.n_readouts
        flops += 2 * reads * width * (one.n_readouts + one.stride)
    with threadpool_limits(1):
        a = np.random.default_rng(0).standard_normal((n_steps, 64)).astype(np.float32)
        b = np.random.default_rng(1).standard_normal((64, 88)).astype(np.float32)
        jobs = {
            "features": (lambda: [made.blocks(series, s) for s in range(8)], 1),
            "product": (lambda: [a @ b for _ in range(1000)], 1),
        }
        times = alternating_seconds(jobs, 5)
    per_series = median(times["features"]) / n
    product = median(times["product"]) / 1000 * flops / (2 * n_steps * 64 * 88)
    return Row(
        "features of a series of 140 steps",
        1e3 * per_series,
        "ms",
        "",
        None,
        {
            "matrix_products_MFLOP": flops / 1e6,
            "share_of_time_of_products_alone": product / per_series,
            "readings_pooled": values,
            "ns_a_reading": 1e9 * per_series / values,
            "features": sum(made.widths),
        },
    )


def _fit_and_predict(n_cases: int, n_steps: int) -> dict[str, Any]:
    """In a fresh process: fit on a thousand, predict the others; processor time."""
    X, y = long_series(n_cases, n_steps)
    n_train = min(1000, n_cases // 2)
    start = time.process_time()
    fitted = ours().fit(X[:n_train], y[:n_train])
    fitting = time.process_time() - start
    start = time.process_time()
    fitted.predict(X[n_train:])
    return {
        "fit_s": fitting,
        "predict_s": time.process_time() - start,
        "data_bytes": X.nbytes,
    }


def _fit_many(n_cases: int, n_steps: int) -> dict[str, Any]:
    """In a fresh process: fit on all; processor time."""
    X, y = long_series(n_cases, n_steps)
    few = X[:200]
    ours().fit(few, y[:200]).predict(few[:2])  # compile, or load from the cache
    start = time.process_time()
    fitted = ours().fit(X, y)
    taken = time.process_time() - start
    return {
        "fit_s": taken,
        "data_bytes": X.nbytes,
        "score": fitted.score(*long_series(400, n_steps, 1)),
    }


def growth_rows() -> list[Row]:
    """Time and memory with more series, and with longer ones."""
    rows = []
    first = None
    for n_cases, n_steps in (
        (2000, 100),
        (2000, 1000),
        (2000, 4000),
        (20000, 100),
        (100000, 100),
    ):
        found = in_fresh_process(_fit_and_predict, n_cases=n_cases, n_steps=n_steps)
        n_test = n_cases - min(1000, n_cases // 2)
        per_value = 1e9 * found["predict_s"] / n_test / n_steps
        first = first or per_value
        rows.append(
            Row(
                f"predict {n_test} × {n_steps}",
                per_value,
                "ns/step",
                "linear: ≤ 1.5× first" if len(rows) else "",
                per_value <= 1.5 * first if len(rows) else None,
                {
                    "predict_s": found["predict_s"],
                    "fit_1000_s": found["fit_s"],
                    "peak_MiB": round(found["peak_bytes"] / MIB),
                    "data_MiB": round(found["data_bytes"] / MIB),
                },
            )
        )
    first = None
    for n_cases in (5000, 20000, 100000):
        found = in_fresh_process(_fit_many, n_cases=n_cases, n_steps=100)
        per_case = 1e3 * found["fit_s"] / n_cases
        first = first or per_case
        rows.append(
            Row(
                f"fit {n_cases} × 100",
                per_case,
                "ms/series",
                "linear: ≤ 1.5× first" if n_cases > 5000 else "",
                per_case <= 1.5 * first if n_cases > 5000 else None,
                {
                    "fit_s": found["fit_s"],
                    "accuracy": f"{100 * found['score']:.1f}%",
                    "peak_MiB": round(found["peak_bytes"] / MIB),
                    "data_MiB": round(found["data_bytes"] / MIB),
                },
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
    return {name: {m: float(rows[name][m]) for m in PUBLISHED} for name in UCR}


def archive_rows() -> list[Row]:
    """Default settings on every data set, with published accuracies."""
    others = published()
    rows, found = [], {}
    for name in UCR:
        (X, y), (X_test, y_test) = (
            load_dataset(name, split, download=False) for split in ("train", "test")
        )
        scores, errors = [], []
        for seed in range(N_SEEDS):
            one = PooledReservoirClassifier(random_state=seed).fit(X, y)
            p = one.predict_proba(X_test)
            codes = np.searchsorted(one.classes_, y_test)
            scores.append(float((p.argmax(axis=1) == codes).mean()))
            errors.append(expected_calibration_error(p, codes))
        found[name] = mean(scores)
        detail: dict[str, Any] = {
            m: f"{100 * a:.1f}" for m, a in others.get(name, {}).items()
        }
        detail |= {"low": 100 * min(scores), "high": 100 * max(scores)}
        detail |= {"calibration_error": mean(errors)}
        beside = ", ".join(
            f"{m} {100 * others[name][m]:.1f}" for m in PUBLISHED if name in others
        )
        title = f"{name} ({beside})" if beside else name
        rows.append(Row(title, 100 * found[name], "%", "", None, detail))
    value = mean(found.values())
    means = {
        method: f"{100 * mean(others[name][method] for name in UCR):.1f}"
        for method in (PUBLISHED if others else ())
    }
    beside = "".join(f", {m} {figure}" for m, figure in means.items())
    rows.append(
        Row(
            f"mean of the {len(UCR)} UCR sets, default settings{beside}",
            100 * value,
            "%",
            "target ≥ 97.2 %",
            value >= 0.972,
            {"exactly": value, **means, "seeds": N_SEEDS},
        )
    )
    return rows


def several_channels_rows() -> list[Row]:
    """The UEA sets, against aeon's MiniRocket in the same run."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    rows = []
    for name in UEA:
        (X, y), (X_test, y_test) = (
            load_dataset(name, split, download=False) for split in ("train", "test")
        )
        scores: dict[str, list[float]] = {"ours": [], "MiniROCKET": []}
        for seed in range(N_SEEDS):
            one = PooledReservoirClassifier(random_state=seed).fit(X, y)
            scores["ours"].append(float((one.predict(X_test) == y_test).mean()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                A, B = _same_length(X, X_test)
                peer: Any = MiniRocketClassifier(random_state=seed).fit(A, y)
                scores["MiniROCKET"].append(float((peer.predict(B) == y_test).mean()))
        shown = {n: f"{100 * mean(v):.2f}%" for n, v in scores.items()}
        shown |= {"low": 100 * min(scores["ours"]), "high": 100 * max(scores["ours"])}
        title = f"{name} (MiniROCKET {shown['MiniROCKET']})"
        rows.append(Row(title, 100 * mean(scores["ours"]), "%", "", None, shown))
    return rows


def _same_length(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Pad series with zeros at their ends, for a peer that needs equal lengths."""
    longest = max(one.shape[-1] for one in [*X, *X_test])

    def pad(one: np.ndarray) -> np.ndarray:
        lack = longest - one.shape[-1]
        return np.pad(np.atleast_2d(one), ((0, 0), (0, lack)))

    return np.stack([pad(one) for one in X]), np.stack([pad(one) for one in X_test])


def run(rounds: int) -> Report:
    """All rows of this benchmark."""
    rows, notes = speed_rows(min(rounds, 3))
    rows.append(cost_row())
    if os.environ.get("GREENFOLD_DATA"):
        with threadpool_limits(1):
            rows += archive_rows() + several_channels_rows()
        notes.append("published accuracies: provided split, from reference/ of the data")
        notes.append("series of unequal length are padded with zeros for MiniROCKET")
    else:
        notes.append("without GREENFOLD_DATA: no accuracies on real data")
    rows += growth_rows()
    notes.append("growth: processor time of one thread, in a separate process")
    return Report("pooled", notes, rows)
