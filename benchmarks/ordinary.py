"""Ordinary data: independent noise, and eighteen short, noisy or seasonal series.

Twelve series come with statsmodels and aeon, six are made. From each of ten origins in the
last third of a series, a forecaster that was fitted to all samples before forecasts a
season, or as far as the table says; the error is the root mean square over steps and
channels, in deviations of these samples. The defaults of `ReservoirForecaster` stand beside
drawn input weights, ridge on delays, the last value and the last season.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from . import series
from ._cells import Cell, Found
from ._measure import Report, Row

#: Lengths of independent noise, the least R² on fresh data, and the number of seeds.
NOISE, N_NOISE_SEEDS, N_FRESH = {500: -0.03, 1500: -0.01, 5000: -0.01}, 10, 5000
N_ORIGINS, N_SEEDS = 10, 3
#: Longest error, in deviations, and ratios of median errors.
WORST, OVER_DRAWN, OVER_RIDGE, ENOUGH = 5.0, 1.1, 1.15, 8
#: Steps to forecast, by series.
STEPS = {
    "sunspots": 11,
    "air passengers": 12,
    "lynx": 10,
    "prescriptions": 12,
    "solar": 24,
    "US change": 8,
    "CO2": 12,
    "El Niño": 12,
    "Nile": 10,
    "growth": 8,
    "unemployment": 8,
    "interest and inflation": 8,
    "AR(1)": 10,
    "two seasons": 24,
    "Lorenz x, 5 % noise": 20,
    "trend": 12,
    "random walk": 10,
    "pure noise": 10,
}
MODELS = ("solved", "drawn", "ridge on delays", "last value", "last season")


def autoregressive(n: int, rng: np.random.Generator) -> np.ndarray:
    """An AR(1) with a coefficient of 0.8."""
    found = rng.standard_normal(n)
    for t in range(1, n):
        found[t] += 0.8 * found[t - 1]
    return found


def load_like(n: int, rng: np.random.Generator) -> np.ndarray:
    """Hours with a daily shape, quieter weekends, and noise."""
    hours = np.arange(n)
    day = np.sin(2 * np.pi * hours / 24) + 0.4 * np.cos(4 * np.pi * hours / 24)
    weekend = (hours // 24) % 7 >= 5
    quiet = day * np.where(weekend, 0.5, 1.0) - 0.6 * weekend
    return quiet + 0.2 * rng.standard_normal(n)


@cache
def made(name: str) -> np.ndarray:
    """One of the six series that are made, (n_samples, 1)."""
    rng = np.random.default_rng(list(STEPS).index(name))
    noise = rng.standard_normal(2000)
    if name == "AR(1)":
        found = autoregressive(500, rng)
    elif name == "two seasons":
        found = load_like(1344, rng)
    elif name == "Lorenz x, 5 % noise":
        from greenfold.datasets import lorenz

        found = lorenz(1500, rng=0)[:, 0]
        found = found + 0.05 * found.std() * noise[:1500]
    elif name == "trend":
        found = np.linspace(0, 10, 300) + noise[:300]
    elif name == "random walk":
        found = np.cumsum(noise[:500])
    else:
        found = noise[:500]
    return found[:, None]


def whole(name: str) -> np.ndarray:
    """A series by name."""
    real = f"real/{name}"
    return series.load(real) if real in series.names("real") else made(name)


def origins(name: str) -> np.ndarray:
    """Ten places in the last third of a series."""
    n = len(whole(name))
    return np.linspace(2 * n // 3, n - STEPS[name], N_ORIGINS).astype(int)


def on_noise(n_samples: int, seed: int) -> dict[str, float]:
    """R² of `SequenceRegressor` on fresh data, where there is nothing to learn."""
    from greenfold import SequenceRegressor

    rng = np.random.default_rng([n_samples, seed])
    x, y = rng.standard_normal((2, n_samples + N_FRESH))
    found: dict[str, float] = {}
    for kind, name in (("solved", "solved"), ("random", "drawn")):
        model = SequenceRegressor(input_weights=kind, random_state=seed)
        started = time.perf_counter()
        model.fit(x[:n_samples], y[:n_samples])
        found[f"{name}_s"] = time.perf_counter() - started
        found[name] = float(model.score(x[n_samples:], y[n_samples:]))
    return found


def forecasts(name: str, origin: int, seed: int) -> dict[str, float | None]:
    """Error of every model from one origin, in deviations; None where it is not finite."""
    from greenfold import ReservoirForecaster
    from greenfold.estimators.sequences.backtest import simple_forecasts

    every, n = whole(name), STEPS[name]
    before, truth = every[:origin], every[origin : origin + n]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made: dict[str, np.ndarray] = {}
        for kind, weights in (("solved", "solved"), ("drawn", "random")):
            model: Any = ReservoirForecaster(input_weights=weights, random_state=seed)
            made[kind] = model.fit(before).forecast(n)
        if seed == 0:  # the others do not depend on it
            rows = every.reshape(len(every), -1)
            simple = simple_forecasts(rows, np.array([origin]), n)[0]
            simple.setdefault("last season", simple["last value"])
            made |= {kind: one[0] for kind, one in simple.items()}
        found: dict[str, float | None] = {}
        for kind, one in made.items():
            ahead = np.asarray(one).reshape(n, -1)
            error = np.sqrt((((ahead - truth) / before.std(0)) ** 2).mean())
            found[kind] = float(error) if np.isfinite(error) else None
    return found


def cells(found: Found) -> Iterator[Cell]:
    """Noise of all lengths and seeds; all origins of all series, seed after seed."""
    del found
    for seed in range(N_NOISE_SEEDS):
        for n in NOISE:
            yield Cell(f"noise {n}|{seed}", on_noise, (n, seed), seed)
    for seed in range(N_SEEDS):
        for name in STEPS:
            for place, origin in enumerate(origins(name)):
                given = name, int(origin), seed
                yield Cell(f"{name}|{place}|{seed}", forecasts, given, seed)


def _noise_row(found: Found, n: int, least: float) -> Row | None:
    mine = [one for key, one in found.items() if key.startswith(f"noise {n}|")]
    if not mine:
        return None
    solved, drawn = ([one[k] for one in mine] for k in ("solved", "drawn"))
    return Row(
        f"independent noise, {n} samples: R² on fresh data, lowest of {len(mine)} seeds",
        100 * min(solved),
        "%",
        f"≥ {100 * least:g} %",
        min(solved) >= least,
        {
            "solved": np.round(solved, 4).tolist(),
            "drawn": np.round(drawn, 4).tolist(),
            "seconds to fit": round(float(np.mean([one["solved_s"] for one in mine])), 2),
        },
    )


def errors(found: Found, name: str) -> dict[str, np.ndarray]:
    """All errors of a series by model; NaN where a forecast is not finite."""
    mine = [one for key, one in found.items() if key.startswith(f"{name}|")]
    return {
        kind: np.array([one[kind] for one in mine if kind in one], dtype=float)
        for kind in MODELS
    }


def median(values: np.ndarray) -> float:
    """Median; a forecast that is not finite is the worst."""
    return float(np.median(np.where(np.isfinite(values), values, np.inf)))


def report(found: Found) -> Report:
    """Independent noise; one row per series; and what holds of all of them."""
    rows = [_noise_row(found, n, least) for n, least in NOISE.items()]
    table = {}
    for name in STEPS:
        each = errors(found, name)
        if len(each["solved"]) and all(len(one) for one in each.values()):
            table[name] = each
    medians = {n: {k: median(v) for k, v in each.items()} for n, each in table.items()}
    for name, each in table.items():
        solved, own = each["solved"], medians[name]
        ratio = own["solved"] / own["drawn"]
        bad = int((~np.isfinite(solved)).sum())
        worst = float(np.nanmax(solved))
        rows.append(
            Row(
                f"{name}: median error of solved over drawn",
                ratio,
                "times",
                f"≤ {OVER_DRAWN:g}, error ≤ {WORST:g}",
                bool(ratio <= OVER_DRAWN and not bad and worst <= WORST),
                {
                    **{kind: round(one, 3) for kind, one in own.items()},
                    "over ridge on delays": round(
                        own["solved"] / own["ridge on delays"], 3
                    ),
                    "largest error": round(worst, 2),
                    "largest error, drawn": round(float(np.nanmax(each["drawn"])), 2),
                    "not finite": bad,
                    "forecasts": len(solved),
                },
            )
        )
    if table:
        bad = sum(int((~np.isfinite(one["solved"])).sum()) for one in table.values())
        worst = max(float(np.nanmax(one["solved"])) for one in table.values())
        drawn = [own["solved"] / own["drawn"] for own in medians.values()]
        ridge = [own["solved"] / own["ridge on delays"] for own in medians.values()]
        near = sum(one <= OVER_RIDGE for one in ridge)
        rows += [
            Row(
                "forecasts that are not finite, all series",
                float(bad),
                "",
                "0",
                not bad,
                {},
            ),
            Row(
                "largest error of a forecast, all series",
                worst,
                "deviations",
                f"≤ {WORST:g}",
                worst <= WORST,
                {},
            ),
            Row(
                "median error of solved over drawn, worst series",
                max(drawn),
                "times",
                f"≤ {OVER_DRAWN:g}",
                max(drawn) <= OVER_DRAWN,
                {"series": list(medians)[int(np.argmax(drawn))]},
            ),
            Row(
                f"series with a median error ≤ {OVER_RIDGE:g} times ridge on delays",
                float(near),
                f"of {len(ridge)}",
                f"≥ {ENOUGH}",
                near >= ENOUGH,
                {"median of the ratios": float(np.median(ridge))},
            ),
        ]
    notes = [
        f"series: {N_ORIGINS} origins in the last third, up to {N_SEEDS} seeds of the "
        "network; errors are in deviations of the samples before the origin",
        "from statsmodels: sunspots, CO2, El Niño, Nile, growth (GDP, consumption, "
        "investment), unemployment, interest and inflation; from aeon: air passengers "
        "(differences of logs), lynx (logs), prescriptions, solar, US change (five "
        "channels); the other six are made",
        f"independent noise: `SequenceRegressor` with defaults, {N_FRESH} fresh samples",
    ]
    return Report("ordinary series", notes, [row for row in rows if row is not None])
