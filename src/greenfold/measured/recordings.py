"""Recordings as they come from a device: refused with what to record instead."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from .._arrays import to_host
from ..datasets.errors import DataError

#: Share of samples at the largest or smallest value from which an output counts as clipped;
#: a Gaussian signal of 12 bits has far less.
_CLIPPED = 0.05
#: Ratio of sizes between recordings beyond which they can not be in one unit.
_UNITS = 100.0
#: The same between channels of one recording, which may well differ a lot.
_UNITS_OF_CHANNELS = 1e4
#: Spread of a signal below which it is constant, relative to its size.
_CONSTANT = 1e-9
#: Reciprocal condition of XᵀX below which the drive does not tell all lags apart.
_EXCITED = 1e-11


def as_list(value: Any, name: str) -> list[np.ndarray]:
    """One recording or several, each as (n_samples, n_channels) of floats."""
    several = isinstance(value, list | tuple) and any(np.ndim(one) > 1 for one in value)
    found = []
    for number, one in enumerate(value if several else [value]):
        label = f"`{name}`" + (f", recording {number}," if several else "")
        if isinstance(one, np.ma.MaskedArray):
            one = one.filled(np.nan)
        try:
            array = np.asarray(to_host(one), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{label} could not be read as numbers ({error}); give an array "
                "(n_samples, n_channels)."
            ) from None
        if array.ndim == 1:
            array = array[:, None]
        if array.ndim != 2 or array.size == 0:
            raise DataError(
                f"{label} must have shape (n_samples, n_channels); got {array.shape}."
            )
        found.append(array)
    return found


def check_recordings(drive: Any, states: Any) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Drives and outputs of all recordings, without their means.

    Raises
    ------
    DataError
        One sentence that says what to record instead.
    """
    drives, outputs = as_list(drive, "drive"), as_list(states, "states")
    if len(drives) != len(outputs):
        raise DataError(
            f"`drive` holds {len(drives)} recordings and `states` {len(outputs)}; give one "
            "of each for every recording."
        )
    for number, (d, y) in enumerate(zip(drives, outputs, strict=True)):
        where = f" in recording {number}" if len(drives) > 1 else ""
        if len(d) != len(y):
            raise DataError(
                f"`drive` has {len(d)} samples and `states` {len(y)}{where}; sample both "
                "with one clock, one sample a step."
            )
        for name, array, first in (("drive", d, drives[0]), ("states", y, outputs[0])):
            if array.shape[1] != first.shape[1]:
                raise DataError(
                    f"`{name}` has {array.shape[1]} channels{where} and "
                    f"{first.shape[1]} in the first one; record the same channels each "
                    "time."
                )
            _finite(array, name, where)
    for name, arrays in (("drive", drives), ("states", outputs)):
        _same_units(arrays, name)
    _moving(drives, "drive", "input", "drive every input with a random signal of its own")
    _moving(
        outputs,
        "states",
        "output",
        "check its sensor and record again, or leave that column out",
    )
    for name, arrays in (("drive", drives), ("states", outputs)):
        _same_units_of_channels(arrays, name)
    _not_clipped(outputs)
    return [d - d.mean(0) for d in drives], [y - y.mean(0) for y in outputs]


def check_independent(correlation: np.ndarray) -> None:
    """Refuse inputs that always carry the same signal, by their correlations."""
    size = np.abs(correlation - np.diag(np.diag(correlation)))
    if size.size > 1 and size.max() > 0.999:
        i, j = sorted(int(k) for k in np.unravel_index(size.argmax(), size.shape))
        raise DataError(
            f"`drive` carries the same signal at inputs {i} and {j}, so that their "
            "responses cannot be told apart; drive every input with a random signal of its "
            "own."
        )


def check_excited(gram: np.ndarray) -> None:
    """Refuse a drive that leaves directions of the past undriven, by XᵀX."""
    size = np.abs(gram).sum(0).max()
    lapack: Any = linalg.lapack
    factor, info = lapack.dpotrf(gram)
    if info == 0 and lapack.dpocon(factor, size)[0] > _EXCITED:
        return
    raise DataError(
        "`drive` is too regular to tell the response at every lag (it repeats itself, "
        "changes too slowly, or its inputs follow from each other); drive with white noise "
        "that is new in every step."
    )


def check_length(n_usable: int, n_lags: int, n_inputs: int, n_recordings: int) -> None:
    """Refuse recordings that are too short for their number of inputs and lags."""
    needed = 2 * n_lags * n_inputs
    if n_usable < needed:
        total = needed + n_recordings * (n_lags - 1)
        raise DataError(
            f"`drive` is too short: {max(n_usable, 0)} samples can be used for "
            f"{n_lags * n_inputs} unknowns of each output ({n_inputs} inputs × {n_lags} "
            f"lags); record at least {total} samples, better ten times as many, or give "
            "fewer `n_lags`."
        )


def _finite(array: np.ndarray, name: str, where: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        sample, channel = (int(k) for k in bad[0])
        raise DataError(
            f"`{name}` has {len(bad)} missing or infinite values{where}, the first at "
            f"sample {sample}, channel {channel}; cut the recording at such gaps and give "
            "the parts as a list."
        )


def _same_units(arrays: list[np.ndarray], name: str) -> None:
    largest = max(np.abs(array).max() for array in arrays)
    if largest > 1e100:
        raise DataError(
            f"`{name}` reaches {largest:.1e}, more than can be squared; give it in a unit "
            "in which it is about one."
        )
    size = np.array([array.std(0) for array in arrays])
    known = np.where(size > 0, size, np.nan)
    if len(arrays) < 2 or np.isnan(known).all(0).any():
        return
    ratio = np.nanmax(known, axis=0) / np.nanmin(known, axis=0)
    worst = int(ratio.argmax())
    if ratio[worst] > _UNITS:
        column = known[:, worst]
        raise DataError(
            f"`{name}`, channel {worst}, is {ratio[worst]:.0f} times larger in recording "
            f"{int(np.nanargmax(column))} than in recording {int(np.nanargmin(column))}: "
            "they are not in one unit; convert them, or record with one setting."
        )


def _same_units_of_channels(arrays: list[np.ndarray], name: str) -> None:
    """Projections have unit norm: one huge channel would be all that they see."""
    size = np.max([array.std(0) for array in arrays], axis=0)
    largest = int(size.argmax())
    if len(size) == 1:
        return
    typical = float(np.median(np.delete(size, largest)))
    if size[largest] > _UNITS_OF_CHANNELS * typical:
        raise DataError(
            f"`{name}`, channel {largest}, is {size[largest] / typical:.1e} times as large "
            "as the others: it is not in their unit; convert it, or leave it out."
        )


def _moving(arrays: list[np.ndarray], name: str, word: str, advice: str) -> None:
    spread = np.max([array.std(0) for array in arrays], axis=0)
    size = np.max([np.abs(array).max(0) for array in arrays], axis=0)
    still = np.flatnonzero(spread <= _CONSTANT * size)
    if len(still):
        raise DataError(f"`{name}` never changes at {word} {still[0]}; {advice}.")


def _not_clipped(outputs: list[np.ndarray]) -> None:
    for channel in range(outputs[0].shape[1]):
        values = np.concatenate([y[:, channel] for y in outputs])
        for extreme, word in ((values.max(), "largest"), (values.min(), "smallest")):
            share = float((values == extreme).mean())
            if share > _CLIPPED and len(np.unique(values)) > 16:
                raise DataError(
                    f"`states` is clipped at output {channel}: {100 * share:.0f} % of its "
                    f"samples have its {word} value; record with a weaker drive or a wider "
                    "range."
                )
