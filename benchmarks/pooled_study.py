"""The pooled classifier in detail: calibration, irregular series, solved readouts.

Nothing is chosen on test data; comparisons use the same series and seeds.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import mean
from typing import Any
from unittest import mock

import numpy as np
from scipy.linalg import eigh
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from greenfold import PooledReservoirClassifier, ReservoirClassifier
from greenfold.datasets import load_dataset
from greenfold.estimators.pooled import FilterBank
from greenfold.estimators.pooled import feature_map as _plain
from greenfold.estimators.pooled.feature_map import FeatureMap, fit_map
from greenfold.math.decisions import expected_calibration_error

from ._measure import Report, Row
from .classification import UCR

#: Largest number of test series per set in comparisons of many small classifiers.
MOST_TESTED = 300
#: Sets of the study of solved readouts.
STUDIED = ("GunPoint", "ECG200", "Trace", "ItalyPowerDemand", "ArrowHead", "CBF", "Plane")


def both(name: str) -> tuple[Any, Any, Any, Any]:
    """Training and test series and labels."""
    train, test = (load_dataset(name, s, download=False) for s in ("train", "test"))
    return *train, *test


# Calibration


def calibration_rows(n_seeds: int = 3) -> list[Row]:
    """Expected calibration error: Gaussian clouds, held-out calibration, pooled."""
    rows, halved = [], []
    for name in UCR:
        X, y, X_test, y_test = both(name)
        found: dict[str, list[float]] = {"clouds": [], "held_out": [], "pooled": []}
        for seed in range(n_seeds):
            one = ReservoirClassifier(random_state=seed).fit(X, y)
            codes = np.searchsorted(one.classes_, y_test)
            # Before calibration on held-out series.
            clouds = one.decision_.log_odds(one.read_out(X_test))
            pooled = PooledReservoirClassifier(random_state=seed).fit(X, y)
            for kind, p in (
                ("clouds", softmax(clouds, axis=1)),
                ("held_out", one.predict_proba(X_test)),
                ("pooled", pooled.predict_proba(X_test)),
            ):
                found[kind].append(expected_calibration_error(p, codes))
        errors = {kind: mean(values) for kind, values in found.items()}
        halved.append({k: errors[k] <= errors["clouds"] / 2 for k in errors})
        detail: dict[str, Any] = {**errors, "test_series": len(y_test), "seeds": n_seeds}
        beside = ", ".join(
            f"{word} {100 * errors[kind]:.1f}"
            for word, kind in (("solved", "held_out"), ("before", "clouds"))
        )
        title = f"calibration error, {name}: pooled ({beside})"
        rows.append(Row(title, 100 * errors["pooled"], "%", "", None, detail))
    for kind, title in (
        ("pooled", "pooled classifier"),
        ("held_out", "classifier with solved projections"),
    ):
        count = sum(one[kind] for one in halved)
        rows.append(
            Row(
                f"sets with at most half the error of clouds, {title}",
                count,
                f"of {len(UCR)}",
                "target ≥ 5 sets",
                count >= 5,
                {},
            )
        )
    return rows


# Irregular series


def cropped(X: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Stretches of each series, of 60 to 100 % of its length, at random places."""
    found = []
    for one in X:
        length = int(rng.uniform(0.6, 1.0) * len(one)) + 1
        start = int(rng.integers(len(one) - length + 1))
        found.append(one[start : start + length])
    return found


def with_gaps(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A fifth of the values missing, in gaps of some steps."""
    holed = X.copy()
    n_steps = X.shape[1]
    for one in holed:
        while np.isnan(one).mean() < 0.2:
            start = int(rng.integers(n_steps))
            one[start : start + int(rng.integers(1, max(2, n_steps // 20)))] = np.nan
    return holed


def filled(X: Any, n_steps: int) -> np.ndarray:
    """For a peer that needs complete series of one length: lines through gaps, zeros."""
    made = np.zeros((len(X), 1, n_steps))
    for row, one in zip(made[:, 0], X, strict=True):
        known = np.flatnonzero(~np.isnan(one))
        row[: len(one)] = np.interp(np.arange(len(one)), known, one[known])
    return made


def irregular_rows(n_seeds: int = 3) -> list[Row]:
    """Series of unequal length and with missing values, against MiniRocket."""
    from aeon.classification.convolution_based import MiniRocketClassifier

    rows = []
    for name, change, title in (
        ("GunPoint", cropped, "stretches of 60 to 100 %"),
        ("OSULeaf", cropped, "stretches of 60 to 100 %"),
        ("GunPoint", with_gaps, "a fifth of the values missing"),
        ("ECG200", with_gaps, "a fifth of the values missing"),
        ("OSULeaf", with_gaps, "a fifth of the values missing"),
    ):
        X, y, X_test, y_test = both(name)
        ours, theirs = [], []
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            A, B = change(X, rng), change(X_test, rng)
            one = PooledReservoirClassifier(random_state=seed).fit(A, y)
            ours.append(float((one.predict(B) == y_test).mean()))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                n_steps = X.shape[1]
                peer: Any = MiniRocketClassifier(random_state=seed)
                peer.fit(filled(A, n_steps), y)
                told = peer.predict(filled(B, n_steps))
            theirs.append(float((told == y_test).mean()))
        rows.append(
            Row(
                f"{name}, {title} (MiniROCKET {100 * mean(theirs):.1f})",
                100 * mean(ours),
                "%",
                "",
                None,
                {"MiniROCKET": 100 * mean(theirs), "seeds": n_seeds},
            )
        )
    return rows


# Solved readouts


class HalfSolved(PooledReservoirClassifier):
    """Half the readouts of every reservoir solved, in place of random ones.

    A solved readout has the largest ratio of one class's power to that of all classes, over
    all steps of the training series; the latter includes the variance of the noise.
    """

    noise = 0.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Keep the classes for the readouts, and fit."""
        self._codes = np.unique(y, return_inverse=True)[1]
        return super().fit(X, y, sample_weight)

    def _fit_map(self, series: Any) -> None:
        super()._fit_map(series)
        made = self.map_
        scales = []
        for one in made.bank.scales:
            eye = np.eye(2 * len(one.decay_times))
            seen = FilterBank((replace(one, readouts=eye),), series.n_channels)
            probe = FeatureMap(seen, [], made.mean, made.deviation, "array")
            cases, values = series.groups[0]
            states = probe.readings(probe.standardise(values), 0)[:, 0]
            solved = _ratios(states.astype(np.float64), self._codes[cases], self.noise)
            readouts = one.readouts.copy()
            half = one.n_readouts // 2
            readouts[:, :half] = solved[:, np.arange(half) % solved.shape[1]]
            scales.append(replace(one, readouts=readouts))
        bank = FilterBank(tuple(scales), series.n_channels)
        rng = np.random.default_rng(self._head_seed)
        self.map_ = fit_map(bank, series, rng, scaling=self.scaling, engine=made.engine)


def _ratios(states: np.ndarray, codes: np.ndarray, noise: float) -> np.ndarray:
    """Readouts (n_neurons, n) by ratio of powers, the best of each class in turn."""
    n = states.shape[2]
    powers = [
        np.einsum("iks,ikt->st", states[codes == c], states[codes == c])
        / (states.shape[1] * (codes == c).sum())
        for c in range(codes.max() + 1)
    ]
    total = np.mean(powers, axis=0)
    total += (1e-3 * np.trace(total) / n + noise**2) * np.eye(n)
    each = [eigh(power, total)[1][:, ::-1] for power in powers]
    found = np.stack(each, axis=2).reshape(n, -1)
    return found / np.linalg.norm(found, axis=0)


@contextmanager
def readout_noise(sigma: float, seed: int) -> Iterator[None]:
    """Independent noise on every state at every reading; needs engine="array"."""
    original = _plain.readings
    rng = np.random.default_rng(seed)

    def noisy(X: Any, drive: Any, decay: Any, readouts: Any) -> Any:
        Z = original(X, drive, decay, readouts)[:, 0]
        shape = (*Z.shape[:2], readouts.shape[0])
        # At the same readings, noise of the states reaches every readout.
        Z = Z + (sigma * rng.standard_normal(shape, np.float32)) @ readouts
        first = np.diff(Z, axis=1, prepend=np.zeros_like(Z[:, :1]))
        second = np.diff(first, axis=1, prepend=np.zeros_like(Z[:, :1]))
        return np.stack([Z, first, second], axis=1)

    with mock.patch.object(_plain, "readings", noisy):
        yield


def solved_rows(n_seeds: int = 3) -> list[Row]:
    """Half the readouts solved against all random, in small banks."""
    rows = []
    banks: tuple[tuple[str, float, dict[str, Any]], ...] = (
        (
            "64 neurons, 16 readouts per reservoir",
            0.0,
            {"n_scales": 4, "n_oscillators": 8, "n_readouts": 16},
        ),
        (
            "64 neurons, 16 readouts, noise 0.3",
            0.3,
            {"n_scales": 4, "n_oscillators": 8, "n_readouts": 16},
        ),
        (
            "16 neurons, 16 readouts",
            0.0,
            {"n_scales": 2, "n_oscillators": 4, "n_readouts": 16},
        ),
        (
            "16 neurons, 16 readouts, noise 0.3",
            0.3,
            {"n_scales": 2, "n_oscillators": 4, "n_readouts": 16},
        ),
    )
    for title, sigma, options in banks:
        random, solved = [], []
        for name in STUDIED:
            X, y, X_test, y_test = both(name)
            X_test, y_test = X_test[:MOST_TESTED], y_test[:MOST_TESTED]
            engine = "array" if sigma else "auto"
            for seed in range(n_seeds):
                for kind, found in (
                    (PooledReservoirClassifier, random),
                    (HalfSolved, solved),
                ):
                    one = kind(random_state=seed, engine=engine, **options)
                    if isinstance(one, HalfSolved):
                        one.noise = sigma
                    with readout_noise(sigma, seed):
                        told = one.fit(X, y).predict(X_test)
                    found.append(float((told == y_test).mean()))
        apart = np.array(solved) - random
        each = apart.reshape(len(STUDIED), n_seeds).mean(axis=1)
        error = 100 * float(each.std(ddof=1) / len(each) ** 0.5)
        rows.append(
            Row(
                f"half solved minus all random ({100 * mean(random):.1f} %), {title}, "
                f"± {error:.1f}",
                100 * float(apart.mean()),
                "points",
                "",
                None,
                {
                    "random": 100 * mean(random),
                    "half_solved": 100 * mean(solved),
                    "error_over_sets": error,
                    "sets_better": int((each > 0).sum()),
                    "sets_worse": int((each < 0).sum()),
                    "seeds": n_seeds,
                },
            )
        )
    return rows


def run(rounds: int) -> Report:
    """All rows of this benchmark; ``rounds`` is the number of seeds, up to three."""
    if not os.environ.get("GREENFOLD_DATA"):
        raise SystemExit("GREENFOLD_DATA must name the folder with the archive's files.")
    n_seeds = min(rounds, 3)
    with threadpool_limits(1):
        rows = calibration_rows(n_seeds) + irregular_rows(n_seeds) + solved_rows(n_seeds)
    notes = [
        "calibration error: 15 bins of equal width, test series; clouds: the classifier "
        "with solved projections before it was calibrated",
        "MiniROCKET needs complete series of one length: gaps are filled by straight lines "
        "like ours, short series padded with zeros",
        f"solved readouts: {', '.join(STUDIED)}; up to {MOST_TESTED} test series",
        "noise: standard deviation on every state, which white noise of unit variance "
        "drives to about one",
    ]
    return Report("pooled: details", notes, rows)
