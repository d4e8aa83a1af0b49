"""The series that benchmarks of forecasts take from packages, and those made for them.

``python -m benchmarks.series [OUT.npz]`` integrates the systems of dysts, reads the data
sets that statsmodels and aeon carry with them, and writes all of them to one file; nothing
is downloaded, and what the file holds already is kept. The benchmarks read that file, at
``GREENFOLD_SERIES`` or in the folder of temporary files, and need none of these packages.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import warnings
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

#: Samples per period of a system of dysts, and in all.
PER_PERIOD, N_SAMPLES = 30, 7500
#: Periods to skip, and seconds of the processor that an integration may take.
SKIPPED, PATIENCE = 20, 120
#: Times as many samples where dysts interpolates between them.
FINER = 5
#: A system is left out if a channel varies by less in the last third, in deviations.
STILL = 1e-3


def path() -> Path:
    """Where the file lies."""
    default = Path(tempfile.gettempdir()) / "greenfold-series.npz"
    return Path(os.environ.get("GREENFOLD_SERIES", default))


def is_kept(name: str) -> bool:
    """Whether there is a file that holds this series."""
    return path().exists() and name in _file().files


@cache
def _file() -> Any:
    if not path().exists():
        raise SystemExit("the series are missing; run `python -m benchmarks.series`")
    return np.load(path(), allow_pickle=False)


@cache
def load(name: str) -> np.ndarray:
    """A series of the file, (n_samples, n_channels)."""
    return _file()[name]


def names(kind: str) -> list[str]:
    """Names of all series of a kind, "dysts", "real" or "made"."""
    return [one for one in _file().files if one.startswith(f"{kind}/")]


# Systems of dysts


def integrated(name: str) -> tuple[np.ndarray, float]:
    """Samples of a system, and the number of samples per Lyapunov time.

    dysts gives equations, a point on the attractor, the period and the Lyapunov exponent,
    and maps angles to a circle; a system with a delay has one channel.
    """
    import dysts.flows  # pyright: ignore[reportMissingImports]
    from dysts.base import DynSysDelay  # pyright: ignore[reportMissingImports]

    system = getattr(dysts.flows, name)()
    skipped = SKIPPED * PER_PERIOD
    options: dict[str, Any] = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-9}
    finer = 1
    if isinstance(system, DynSysDelay):  # dysts interpolates linearly between samples
        options, finer = {"embedding_dim": 1}, FINER
    n = (N_SAMPLES + skipped) * finer
    found = system.make_trajectory(
        n, resample=True, pts_per_period=PER_PERIOD * finer, **options
    )
    if found is None:
        raise FloatingPointError("dysts' integration stopped early")
    found = np.asarray(found, dtype=float)[::finer][skipped:]
    late = found[-N_SAMPLES // 3 :].std(0)
    if not np.isfinite(found).all() or (late <= STILL * found.std(0)).any():
        raise FloatingPointError("it comes to rest, or diverges")
    if not (late > 1e-9 * np.abs(found).max(0)).all():
        raise FloatingPointError("a channel is constant")
    exponent = float(np.max(system.maximum_lyapunov_estimated))
    if not exponent > 0:
        raise FloatingPointError("dysts knows no positive Lyapunov exponent")
    return found, PER_PERIOD / (exponent * system.period)


def _attempt(name: str) -> tuple[str, Any, str]:
    """What `integrated` finds, or why it does not, within the time."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"it takes more than {PATIENCE} s")

    # Seconds of the processor, so that a busy machine leaves out the same systems.
    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return name, integrated(name), ""
    except Exception as error:  # a system may raise anything
        return name, None, str(error) or type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def of_dysts(jobs: int, kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All systems that can be integrated, and their Lyapunov times; ``kept`` holds some."""
    from dysts.systems import (  # pyright: ignore[reportMissingImports]
        get_attractor_list,
    )

    every, found = sorted(get_attractor_list()), dict(kept)
    missing = [name for name in every if f"dysts/{name}" not in found]
    with get_context("spawn").Pool(jobs, maxtasksperchild=10) as pool:
        for name, made, why in pool.imap_unordered(_attempt, missing):
            if made is None:
                print(f"{name} is left out: {why}", flush=True)
            else:
                found[f"dysts/{name}"], found[f"lyapunov/{name}"] = made
    n_found = sum(f"dysts/{name}" in found for name in every)
    print(f"{n_found} of {len(every)} systems of dysts", flush=True)
    return dict(sorted(found.items()))


# Data sets of statsmodels and aeon


def real() -> dict[str, np.ndarray]:
    """Twelve measured series, as the packages have them."""
    import pandas as pd
    import statsmodels.api as sm
    from aeon.datasets import (
        load_airline,
        load_lynx,
        load_PBS_dataset,
        load_solar,
        load_uschange,
    )

    def frame(name: str) -> Any:
        return getattr(sm.datasets, name).load_pandas().data

    def column(values: Any) -> np.ndarray:
        return np.asarray(values, dtype=float).reshape(len(values), -1)

    with warnings.catch_warnings():  # aeon will drop two of them
        warnings.simplefilter("ignore", FutureWarning)
        lynx: Any = load_lynx()
        prescriptions: Any = load_PBS_dataset()
    airline: Any = load_airline()
    solar: Any = load_solar()
    macro, change = frame("macrodata"), load_uschange()
    change = pd.concat([pd.DataFrame(one) for one in change], axis=1)
    co2 = frame("co2")["co2"].resample("MS").mean().interpolate()
    elnino = frame("elnino").drop(columns="YEAR").to_numpy().ravel()
    growth = np.log(macro[["realgdp", "realcons", "realinv"]]).diff().dropna()
    found = {
        "sunspots": frame("sunspots")["SUNACTIVITY"],
        "air passengers": np.diff(np.log(np.ravel(airline))),
        "lynx": np.log(np.ravel(lynx)),
        "prescriptions": np.ravel(prescriptions),
        "solar": np.ravel(solar),
        "US change": change.select_dtypes("number"),
        "CO2": co2,
        "El Niño": elnino,
        "Nile": frame("nile")["volume"],
        "growth": growth,
        "unemployment": macro["unemp"],
        "interest and inflation": frame("interest_inflation")[["Dp", "R"]],
    }
    return {f"real/{name}": column(values) for name, values in found.items()}


# Made here, because integrating them takes as long as some fits


def of_tasks(kept: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Training and fresh samples of other systems; ``kept`` holds some of them."""
    from greenfold.datasets import lorenz

    from . import equal_time, forecast

    found = dict(kept)
    for task in (*forecast.TASKS, forecast.LORENZ_96, forecast.LORENZ_X):
        n_seeds = forecast.N_SEEDS if task in forecast.TASKS else forecast.FEW_SEEDS
        for seed in (*range(n_seeds), equal_time.SEARCHED):
            name = f"made/{task.name}/{seed}"
            if name not in found:
                found[name] = np.concatenate(task.clean(seed))
    name = "made/Lorenz attractor/0"
    if name not in found:
        found[name] = lorenz(20_000, rng=12_345)
    return found


def write(target: Path, arrays: dict[str, Any]) -> None:
    """Write all arrays to one file, as a whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as file:
        np.savez_compressed(file, **arrays)
    partial.replace(target)
    size = target.stat().st_size / 2**20
    print(f"{len(arrays)} arrays, {size:.1f} MiB, in {target}")


def main() -> None:
    """Make the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.series")
    parser.add_argument("out", nargs="?", type=Path, default=path(), metavar="OUT.npz")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    found = dict(np.load(options.out)) if options.out.exists() else {}
    if not any(name.startswith("real/") for name in found):
        found |= real()
    write(options.out, found)
    found = of_tasks(found)
    write(options.out, of_dysts(options.jobs, found))


if __name__ == "__main__":
    main()
