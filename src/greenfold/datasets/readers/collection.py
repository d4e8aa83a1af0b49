"""What all readers share: numbers checked, one pair ``(X, y)`` out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from greenfold.datasets.errors import DataError, MissingValueError

__all__ = [
    "MISSING_TOKENS",
    "Collection",
    "Missing",
    "assemble",
    "check_missing_policy",
    "parse_values",
]

Collection: TypeAlias = NDArray[np.float64] | list[NDArray[np.float64]]
"""Equal lengths: one array; unequal lengths: a list of (n_channels, n_steps_i) arrays."""

Missing: TypeAlias = Literal["error", "keep", "trim"]

MISSING_TOKENS = {"", "?", "nan", "na"}


def check_missing_policy(missing: str) -> None:
    """Reject a `missing` argument that is none of the three policies."""
    if missing not in ("error", "keep", "trim"):
        raise ValueError(
            f"`missing` must be 'error', 'keep' or 'trim'; got {missing!r} instead."
        )


def parse_values(tokens: list[str], *, path: str, case: int) -> NDArray[np.float64]:
    """Numbers of one channel, NaN where the file has a missing value.

    Parameters
    ----------
    tokens : list of str, length n_steps
        One field each; ``?``, ``NaN``, ``NA`` and an empty field are missing values.
    path, case : str, int
        File and series (counted from 0), for the error messages.

    Returns
    -------
    ndarray of shape (n_steps,)
    """
    try:
        values = np.array(tokens, dtype=np.float64)
    except ValueError:
        values = np.array(
            [_parse_value(t, path, case, step) for step, t in enumerate(tokens)],
            dtype=np.float64,
        )
    # NumPy, like Python, reads "1_0" as ten; in a data file it is a mistake.
    if any("_" in token for token in tokens):
        step = next(i for i, token in enumerate(tokens) if "_" in token)
        raise _not_a_number(tokens[step], path, case, step)
    return values


def _parse_value(token: str, path: str, case: int, step: int) -> float:
    token = token.strip()
    if token.lower() in MISSING_TOKENS:
        return np.nan
    try:
        return float(token)
    except ValueError:
        raise _not_a_number(token, path, case, step) from None


def _not_a_number(token: str, path: str, case: int, step: int) -> DataError:
    return DataError(
        f"`{path}` has {token[:40]!r} instead of a number in series {case}, position "
        f"{step} (counting from 0): correct the value, or write `?` if it is missing."
    )


def assemble(
    series: Sequence[NDArray[np.float64]],
    y: NDArray[Any] | None,
    *,
    path: str,
    missing: Missing,
    unequal: bool = False,
) -> tuple[Collection, Any]:
    """Check the series of one file and bring them into their final shape.

    Parameters
    ----------
    series : sequence of n_cases ndarrays of shape (n_channels, n_steps_i)
        NaN marks a missing value.
    y : ndarray of shape (n_cases,), or None
    path : str
        The file, for the error messages.
    missing : {"error", "keep", "trim"}
        See :func:`greenfold.datasets.read_series`.
    unequal : bool, default False
        The file declares unequal lengths: return a list even if the lengths happen to
        agree, so that both splits of a data set come out in the same form.

    Returns
    -------
    X : ndarray (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
    y : as given
    """
    if not series:
        raise DataError(f"`{path}` holds no series: is it the right file, and complete?")
    n_channels = series[0].shape[0]
    for case, one in enumerate(series):
        if one.shape[0] != n_channels:
            raise DataError(
                f"`{path}` has {one.shape[0]} channels in series {case} but "
                f"{n_channels} in series 0: every series needs the same channels."
            )
        if np.isinf(one).any():
            channel, step = np.argwhere(np.isinf(one))[0]
            raise DataError(
                f"`{path}` has an infinite value in series {case}, channel {channel}, "
                f"position {step} (counting from 0): correct it, or write `?` if it is "
                "missing."
            )
    if missing == "trim":
        series = [one[:, : _observed_length(one)] for one in series]
    for case, one in enumerate(series):
        if one.size == 0:
            raise DataError(
                f"`{path}` has no value at all in series {case} (counting from 0): "
                "remove that series."
            )
    if missing != "keep":
        _refuse_missing(series, path)
    if unequal or len({one.shape[1] for one in series}) > 1:
        return list(series), y
    stacked = np.stack(series)
    return (stacked[:, 0, :] if n_channels == 1 else stacked), y


def _observed_length(one: NDArray[np.float64]) -> int:
    """Steps up to the last one at which any channel has a value."""
    observed = np.flatnonzero(~np.isnan(one).all(axis=0))
    return int(observed[-1]) + 1 if observed.size else 0


def _refuse_missing(series: Sequence[NDArray[np.float64]], path: str) -> None:
    """Raise if any value is missing, saying where and what can be done."""
    found = [
        np.column_stack([np.full(len(where), case), where])
        for case, one in enumerate(series)
        if len(where := np.argwhere(np.isnan(one)))
    ]
    if not found:
        return
    positions = np.concatenate(found)
    case, channel, step = positions[0]
    padded = all(not np.isnan(one[:, : _observed_length(one)]).any() for one in series)
    cure = (
        "pass missing='trim' if the series have unequal lengths, or missing='keep' to "
        "keep NaN"
        if padded
        else "pass missing='keep' to keep them as NaN"
    )
    what = (
        "1 missing value,"
        if len(positions) == 1
        else (f"{len(positions)} missing values, the first")
    )
    raise MissingValueError(
        f"`{path}` has {what} in series {case}, channel {channel}, position {step} "
        f"(counting from 0): {cure}.",
        positions,
    )
