"""A device on the command line: its recordings, the series, masks in and out."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import typer

from .._base.files import replacing
from ..datasets.errors import DataError
from ..datasets.recordings import read_recording
from ..devices.device import Device
from .inputs import load_task


def device_of(
    kind: str | None, levels: str | None, box: str | None, input_noise: float, noise: float
) -> Device:
    """The device that the options describe."""
    return Device(
        **_mask_of(kind, levels, box),
        input_noise=input_noise or None,
        readout_noise=noise or None,
    )


def _mask_of(kind: str | None, levels: str | None, box: str | None) -> dict[str, Any]:
    """The mask as a `Device` takes it."""
    given = [
        name
        for name, one in (("--mask", kind), ("--levels", levels), ("--box", box))
        if one is not None
    ]
    if len(given) > 1:
        raise typer.BadParameter(
            f"{given[0]} and {given[1]} each say what the mask may be; give one"
        )
    if levels is not None:
        if "," not in levels:
            return {"levels": whole_numbers(levels, "--levels")[0]}
        return {"levels": _numbers(levels, "--levels")}
    if box is not None:
        ends = _numbers(box, "--box")
        if len(ends) != 2:
            raise typer.BadParameter(f"--box must be LOW,HIGH, not {box!r}")
        return {"box": tuple(ends)}
    if kind not in (None, "sign", "nonnegative", "free"):
        raise typer.BadParameter(
            f"--mask must be sign, nonnegative or free, not {kind!r}; for others give "
            "--levels or --box"
        )
    return {} if kind == "free" else {"mask": kind or "sign"}


def _numbers(text: str, option: str) -> list[float]:
    try:
        found = [float(one) for one in text.split(",")]
    except ValueError:
        found = []
    if not found or not np.isfinite(found).all():
        raise typer.BadParameter(
            f"{option} must be numbers separated by commas, not {text!r}"
        )
    return found


def whole_numbers(text: str, option: str) -> list[int]:
    """Numbers from 1 on, separated by commas."""
    try:
        found = [int(one) for one in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise typer.BadParameter(f"{option} must be whole numbers from 1 on, not {text!r}")
    return found


def recordings(paths: list[Path], drive: str | None, states: str | None) -> list[Any]:
    """Recordings of one device, with the same columns."""

    def columns(text: str | None) -> list[str] | None:
        return None if text is None else [one.strip() for one in text.split(",")]

    found = [
        read_recording(path, drive=columns(drive), states=columns(states)) for path in paths
    ]
    first = found[0]
    for path, one in zip(paths, found, strict=True):
        for what in ("drive_names", "state_names"):
            if getattr(one, what) != getattr(first, what):
                raise DataError(
                    f"`{path}` has other channels than `{paths[0]}`; record the same "
                    "columns, in the same order."
                )
    return found


def two_classes(
    data: str, classes: str | None, **reading: Any
) -> tuple[np.ndarray, np.ndarray, str]:
    """Series of one length and labels of two classes, and what they are called.

    Parameters
    ----------
    data : str
    classes : str or None
        ``A,B``, or ``A`` for that class against all others.
    **reading
        See `load_task`.
    """
    task = load_task(data, test=None, holdout=0.0, **reading)
    if isinstance(task.X, list):
        raise DataError(
            f"`{task.name}` has series of different lengths; a mask is solved for one "
            "readout time: cut or pad them to one length."
        )
    X, y = np.asarray(task.X), np.asarray(task.y).astype(str)
    known = np.unique(y).tolist()
    shown = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    if classes is None:
        if len(known) != 2:
            raise DataError(
                f"`{task.name}` has {len(known)} classes ({shown}): name two to tell apart "
                "with --classes A,B, or one against the others with --classes A."
            )
        return X, y, task.name
    chosen = [one.strip() for one in classes.split(",") if one.strip()]
    absent = [one for one in chosen if one not in known]
    if absent:
        raise DataError(
            f"`{task.name}` has no class {absent[0]!r}; --classes may name {shown}."
        )
    if len(chosen) == 1 and len(known) > 1:
        rest = f"not {chosen[0]}"
        return X, np.where(y == chosen[0], chosen[0], rest), f"{task.name}, {rest} or not"
    if len(set(chosen)) != 2:
        raise typer.BadParameter(f"--classes must name one or two, not {classes!r}")
    kept = np.isin(y, chosen)
    return X[kept], y[kept], f"{task.name}, {' or '.join(chosen)}"


def write_weights(path: Path, what: str, names: Any, values: np.ndarray) -> None:
    """A table with a row for each channel of the device, in one step."""
    table = np.asarray(values).reshape(len(names), -1)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    n = table.shape[1]
    lines.writerow([what, *(["weight"] if n == 1 else [f"channel_{c}" for c in range(n)])])
    # repr of a float reads back as the same number.
    lines.writerows(
        [name, *map(repr, row)] for name, row in zip(names, table.tolist(), strict=True)
    )
    with replacing(path.expanduser()) as stream:
        stream.write(text.getvalue().encode("utf-8", errors="replace"))
