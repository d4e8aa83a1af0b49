"""The choice of η: the same under other names and orders, and as accurate as before.

``python -m benchmarks.eta_choice [SET …] [--cases PATH] [--json PATH]`` takes data sets of
the archive. Results are kept in ``--cases``, so a second call continues a stopped one. The
earlier rule took the η of the highest score in one deal of folds, accuracy with a tenth of
the margin; both rules choose on the same folds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.model_selection import train_test_split

from greenfold import ReservoirClassifier
from greenfold.analysis.eta import ETAS, N_FOLDS, Folds
from greenfold.datasets import load_dataset

from ._measure import Report, Row, write_json

SETS = ["ArrowHead", "CBF", "Coffee", "ECG200", "ECGFiveDays", "GunPoint"]
SETS += ["ItalyPowerDemand", "Plane", "PowerCons", "SyntheticControl", "Trace"]
SETS += ["TwoLeadECG"]
N_PERMUTATIONS, N_SPLITS, MAX_TEST = 20, 10, 1500
#: The same for a run of all benchmarks.
FEW, FEW_SETS = 3, SETS[2:6:3]


def permuted(name: str, n_permutations: int = N_PERMUTATIONS) -> list[float]:
    """η chosen for the training series, in other orders and with other class names."""
    X, y = load_dataset(name, "train")
    codes, found = np.unique(y, return_inverse=True)[1], []
    for seed in range(n_permutations):
        rng = np.random.default_rng(seed)
        order, names = rng.permutation(len(X)), rng.permutation(codes.max() + 1)
        classifier = ReservoirClassifier(random_state=0)
        found.append(classifier.fit(X[order], names[codes][order]).eta_)
    return found


def compared(name: str, split: int) -> dict[str, Any]:
    """Test accuracy with the η of both rules, on the provided split (0) or another."""
    X, y = load_dataset(name, "train")
    X_test, y_test = load_dataset(name, "test")
    if split:
        series, labels = np.concatenate([X, X_test]), np.concatenate([y, y_test])
        X, X_test, y, y_test = train_test_split(
            series, labels, train_size=len(X), stratify=labels, random_state=split
        )
    kept = np.random.default_rng(0).permutation(len(y_test))[:MAX_TEST]
    seen: list[int] = []

    def choose(folds: Folds, done: list[Any]) -> Any:
        if len(done[0].judged) == len(ETAS):
            seen.append(_earlier(folds, done))
        return own(folds, done)

    own = Folds.choose
    with mock.patch.object(Folds, "choose", choose):
        now = ReservoirClassifier(random_state=split).fit(X, y)
    eta = float(ETAS[seen[-1]])
    before = now
    if eta != now.eta_:
        before = ReservoirClassifier(random_state=split, eta=eta).fit(X, y)
    judged = X_test[kept], y_test[kept]
    return {
        "eta": [now.eta_, eta],
        "accuracy": [float(one.score(*judged)) for one in (now, before)],
    }


def _earlier(folds: Folds, done: list[Any]) -> int:
    """Index of the best η by accuracy and a tenth of the margin, in one deal of folds."""
    each = folds.weights * np.sqrt(folds.class_weights[folds.codes])
    score = np.zeros(len(ETAS))
    for fold in done[:N_FOLDS]:
        # `judged` is 1 for a right answer plus 4 tanh of a margin, positive if it is right.
        right = fold.judged > 0.5
        score += (right + 0.1 * (fold.judged - right) / 4) @ each[fold.cases]
    return int(np.argmax(np.round(score, 9)))


def report(cases: dict[str, dict[str, Any]]) -> Report:
    """The table for all sets that were run."""
    etas, splits = cases["permuted"], cases["compared"]
    moved = [name for name, found in etas.items() if len(set(found)) > 1]
    count = max(map(len, etas.values()))
    rows = [
        Row(
            f"sets with one η under {count} permutations of names and order",
            float(len(etas) - len(moved)),
            f"of {len(etas)}",
            "all",
            not moved,
            {"eta": {name: sorted(set(found)) for name, found in etas.items()}},
        )
    ]
    by_set: dict[str, list[Any]] = {}
    for key, case in splits.items():
        by_set.setdefault(key.partition("|")[0], []).append(case["accuracy"])
    detail, below = {}, []
    for name, found in by_set.items():
        now, before = np.transpose(found)
        change = now - before
        error = float(change.std(ddof=1) / np.sqrt(len(change)))
        detail[name] = [float(now.mean()), float(before.mean()), error]
        if change.mean() < -max(error, 1e-12):
            below.append(name)
    mean, earlier = (float(np.mean([one[k] for one in detail.values()])) for k in (0, 1))
    rows.append(
        Row(
            f"mean accuracy, {len(splits)} splits (earlier rule {100 * earlier:.2f})",
            100 * mean,
            "%",
            "not below by > error",
            mean >= earlier,
            {"below by more than one error": below, "now, earlier, error": detail},
        )
    )
    notes = ["100 neurons, defaults; the provided split and stratified ones of its size"]
    return Report("eta_choice: names, order and accuracy", notes, rows)


def run(rounds: int) -> Report:
    """Two sets, few permutations and splits."""
    del rounds
    cases: dict[str, dict[str, Any]] = {"permuted": {}, "compared": {}}
    for name in FEW_SETS:
        cases["permuted"][name] = permuted(name, FEW)
        for k in range(FEW):
            cases["compared"][f"{name}|{k}"] = compared(name, k)
    return report(cases)


def main() -> None:
    """Run the sets, and continue from earlier results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.eta_choice")
    parser.add_argument("sets", nargs="*", metavar="SET", default=SETS)
    kept = Path(tempfile.gettempdir()) / "greenfold-eta-choice.json"
    parser.add_argument("--cases", type=Path, default=kept, help="what was run")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the table")
    options = parser.parse_args()
    cases: dict[str, dict[str, Any]] = {"permuted": {}, "compared": {}}
    if options.cases.exists():
        cases = json.loads(options.cases.read_text(encoding="utf-8"))
    work = [("permuted", name, partial(permuted, name)) for name in options.sets]
    for k in range(N_SPLITS):
        work += [
            ("compared", f"{name}|{k}", partial(compared, name, k)) for name in options.sets
        ]
    for part, key, job in work:
        if key not in cases[part]:
            cases[part][key] = job()
            options.cases.write_text(json.dumps(cases), encoding="utf-8")
    found = report(cases)
    found.show()
    if options.json:
        write_json(options.json, [found])


if __name__ == "__main__":
    main()
