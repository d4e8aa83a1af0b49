"""How often bands with a nominal level of 90 % cover the true series.

A forecaster with the defaults is fitted once per seed; from many origins on the samples
after, it gives a band, and the share of the true values inside is counted, over origins,
steps and channels. A band that is not finite does not cover. The width is in deviations of
the training series; a band of its mean ± 1.64 deviations has a width of 3.3.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import series
from ._cells import Cell, Found
from ._measure import Report, Row
from .forecast import LORENZ, MACKEY_GLASS
from .ordinary import autoregressive, load_like

LEVEL, N_SEEDS, N_ORIGINS, CONTEXT = 0.9, 5, 60, 600
LOW, HIGH = 85.0, 95.0


@dataclass(frozen=True)
class Case:
    """Samples to train, steps to forecast, and what the band is for."""

    n_train: int
    n_steps: int
    note: str


CASES = {
    "Lorenz": Case(3000, 44, "two Lyapunov times"),
    "driven Duffing": Case(2000, 50, "with its drive as `exog`"),
    "Mackey–Glass": Case(3000, 100, "0.6 Lyapunov times"),
    "load-like": Case(1344, 24, "hours of eight weeks, a day ahead"),
    "sunspots": Case(200, 11, "years"),
    "AR(1)": Case(500, 10, "coefficient 0.8"),
}


def duffing(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of 0.2 of ẍ = −0.3 ẋ + x − x³ + 0.5 cos 1.2 t, and the drive."""
    from scipy.integrate import solve_ivp

    times = 100 + 0.2 * np.arange(n)
    phase = float(np.random.default_rng(seed).uniform(0, 2 * np.pi))

    def field(t: float, s: np.ndarray) -> list[float]:
        x, v = s
        return [v, -0.3 * v + x - x**3 + 0.5 * np.cos(1.2 * t + phase)]

    how: Any = {"t_eval": times, "rtol": 1e-10, "atol": 1e-10, "method": "DOP853"}
    found = solve_ivp(field, (0, times[-1]), [0.1, 0.0], **how)
    return found.y[:1].T, np.cos(1.2 * times + phase)[:, None]


def data(name: str, seed: int) -> tuple[np.ndarray, np.ndarray | None]:
    """A series with what follows the training samples, and known inputs."""
    case, rng = CASES[name], np.random.default_rng([seed, 5])
    n = case.n_train + 3000
    if name == "Lorenz":
        return np.concatenate(LORENZ.clean(seed))[:n], None
    if name == "Mackey–Glass":
        return np.concatenate(MACKEY_GLASS.clean(seed))[:n], None
    if name == "driven Duffing":
        return duffing(n, seed)
    if name == "load-like":
        return load_like(n, rng)[:, None], None
    if name == "sunspots":
        return series.load("real/sunspots"), None
    return autoregressive(n, rng)[:, None], None


def covered(name: str, seed: int) -> dict[str, Any]:
    """Share inside the band, by step, and its median width."""
    from greenfold import ReservoirForecaster

    case, (every, exog) = CASES[name], data(name, seed)
    n_train, n_steps = case.n_train, case.n_steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ReservoirForecaster(random_state=seed)
        known = () if exog is None else (exog[:n_train],)
        model.fit(every[:n_train], *known)
        # The fresh samples of the first two come from another trajectory.
        apart = CONTEXT if name in ("Lorenz", "Mackey–Glass") else 0
        begins = np.linspace(n_train + apart, len(every) - n_steps, N_ORIGINS).astype(int)
        inside, widths = [], []
        for origin in np.unique(begins):
            first = max(0, origin - CONTEXT)
            more = {} if exog is None else {"exog": exog[first : origin + n_steps]}
            low, high = model.forecast_band(
                n_steps, every[first:origin], level=LEVEL, **more
            )
            truth = every[origin : origin + n_steps].reshape(np.shape(low))
            inside.append(((low <= truth) & (truth <= high)).reshape(n_steps, -1).mean(1))
            width = (np.asarray(high) - low).reshape(n_steps, -1)
            widths.append(width / every[:n_train].std(0))
    return {
        "inside": np.mean(inside, axis=0),
        "width": float(np.nanmedian(widths)),
        "origins": len(inside),
    }


def cells(found: Found) -> Iterator[Cell]:
    """Five seeds of every series."""
    del found
    for seed in range(N_SEEDS):
        for name in CASES:
            yield Cell(f"{name}|{seed}", covered, (name, seed), seed)


def report(found: Found) -> Report:
    """One row per series."""
    rows = []
    for name, case in CASES.items():
        mine = [one for key, one in found.items() if key.startswith(f"{name}|")]
        if not mine:
            continue
        steps = 100 * np.mean([one["inside"] for one in mine], axis=0)
        share, third = float(steps.mean()), max(1, len(steps) // 3)
        rows.append(
            Row(
                f"{name}, {case.n_steps} steps ({case.note}): inside the 90 % band",
                share,
                "%",
                f"{LOW:g}–{HIGH:g} %",
                LOW <= share <= HIGH,
                {
                    "first third of the steps": round(float(steps[:third].mean()), 1),
                    "last third": round(float(steps[-third:].mean()), 1),
                    "width in deviations": round(
                        float(np.median([one["width"] for one in mine])), 3
                    ),
                    "by seed": [round(100 * float(np.mean(o["inside"])), 1) for o in mine],
                    "origins": mine[0]["origins"],
                },
            )
        )
    notes = [
        f"defaults, up to {N_SEEDS} seeds of network and series (sunspots: of the "
        f"network), {N_ORIGINS} origins each on samples after those of the fit",
        "samples to train: " + ", ".join(f"{n} {c.n_train}" for n, c in CASES.items()),
    ]
    return Report("bands: coverage of a nominal 90 %", notes, rows)
