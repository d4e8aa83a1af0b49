"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import math
import os
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .._base.files import is_standard_output, plain
from .._base.progress import Bar, display, raise_if_interrupted

_OUTPUT = "Output"
_NETWORK = "Network"
_DATA = "Data"
#: The panel of options that say on which machine.
WHERE = "Where it runs"


def complete_dataset(incomplete: str) -> list[str]:
    """Names of data sets on this machine; nothing where they cannot be listed."""
    from ..datasets.archive import list_datasets

    try:
        return [name for name in list_datasets() if name.startswith(incomplete)]
    except (OSError, ValueError):
        return []


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Name of a data set ([bold]greenfold data list[/bold]) or path of a file: "
        ".ts, .tsv, .txt, .csv, .arff, .npz or .npy, also with .gz; .h5, .zarr or "
        ".parquet, which need not fit into memory. [bold]-[/bold] is the standard input, "
        "with --format.",
        autocompletion=complete_dataset,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print JSON and nothing else.", rich_help_panel=_OUTPUT),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug", help="Show the traceback of an error.", rich_help_panel=_OUTPUT
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**32 - 1,
        help="Seed of the network, of random projections and of splits.",
        rich_help_panel=_NETWORK,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Of a dask scheduler, such as tcp://10.0.0.1:8786, in place of this machine.",
        rich_help_panel=WHERE,
    ),
]
Redo = Annotated[bool, typer.Option("--redo", help="Redo finished results too.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="Directory with data sets; by default the one that GREENFOLD_DATA names.",
        rich_help_panel=_DATA,
    ),
]
Test = Annotated[
    Path | None,
    typer.Option("--test", help="File with test series.", rich_help_panel=_DATA),
]
Trim = Annotated[
    bool,
    typer.Option(
        "--trim",
        help="Take missing values at the end of a series for padding.",
        rich_help_panel=_DATA,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="Format of DATA in place of its suffix: ts, tsv, txt, csv, arff, npz or npy.",
        rich_help_panel=_DATA,
    ),
]
LabelFile = Annotated[
    Path | None,
    typer.Option(
        "--y",
        help="Labels, one a series, where DATA has none: .npy, or text with one a line.",
        rich_help_panel=_DATA,
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option(
        "--weights",
        help="Own weights, a square matrix: .npy, .npz, .csv, .tsv or .txt; row i holds "
        "the connections to neuron i. In place of a random network.",
        rich_help_panel=_NETWORK,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Write a report, one HTML file.", rich_help_panel=_OUTPUT
    ),
]
Neurons = Annotated[
    int,
    typer.Option("--neurons", "-n", min=1, help="Size.", rich_help_panel=_NETWORK),
]
Alpha = Annotated[
    float,
    typer.Option(
        "--alpha",
        help="Non-linearity of the gain y + αy²; used from order 1 on.",
        rich_help_panel=_NETWORK,
    ),
]
Spread = Annotated[
    float,
    typer.Option("--g", help="Spread of the random weights.", rich_help_panel=_NETWORK),
]
Tau = Annotated[
    str,
    typer.Option(
        "--tau",
        help="Time constant in the unit of the duration, or 'auto'.",
        rich_help_panel=_NETWORK,
    ),
]
Duration = Annotated[
    float,
    typer.Option(
        "--duration", help="Time the longest series takes.", rich_help_panel=_NETWORK
    ),
]
Noise = Annotated[
    float,
    typer.Option(
        "--noise",
        min=0,
        help="Standard deviation of the noise on every neuron's state at the readout.",
        rich_help_panel=_NETWORK,
    ),
]
Eta = Annotated[
    str,
    typer.Option(
        "--eta",
        help="Control parameter η of the soft margin, or 'cv': chosen by cross-validation.",
        rich_help_panel=_NETWORK,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", help="Processes or threads.", rich_help_panel=_OUTPUT),
]


Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="Where the network is run: cpu, cuda or cuda:1, … (PyTorch).",
        rich_help_panel=_OUTPUT,
    ),
]


def on_device(task: Any, device: str) -> Any:
    """The series of a `Split` on a device."""
    if device == "cpu":
        return task
    from .._base import arrays as _arrays

    if isinstance(task.X, list) or isinstance(task.X_test, list):
        raise typer.BadParameter(
            f"--device {device} takes series of one length; these have several, which "
            "stay on the host: leave it out"
        )
    moved = {
        name: _arrays.on_device(getattr(task, name), device)
        for name in ("X", "X_test")
        if getattr(task, name) is not None
    }
    return replace(task, **moved)


def number_or(word: str, text: str, option: str) -> float | str:
    """A positive number, or the one word that may stand for it."""
    if text == word:
        return word
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(
            f"{option} must be a positive number or '{word}', not {text!r}"
        )
    return value


def order_of(text: str) -> int | str:
    """The order of an expansion, or "exact" for none."""
    if text == "exact":
        return text
    if text not in ("0", "1", "2", "3", "4", "5"):
        raise typer.BadParameter(f"--order must be 0 to 5 or 'exact', not {text!r}")
    return int(text)


def check_target(path: Path | None, option: str) -> None:
    """Refuse a file that cannot be written before the work begins."""
    if path is None:
        return
    name = repr(str(path))
    try:
        kind = os.stat(path.expanduser()).st_mode
    except FileNotFoundError:
        kind = None  # or a link to a file that is yet to be written
    except OSError as error:
        raise typer.BadParameter(
            f"{option} {name} cannot be used: {error.strerror}"
        ) from None
    if kind is not None and stat.S_ISDIR(kind):
        raise typer.BadParameter(f"{option} names a directory, {name}; name a file")
    if kind is not None and (stat.S_ISBLK(kind) or stat.S_ISSOCK(kind)):
        raise typer.BadParameter(
            f"{option} {name} is neither a file nor a pipe; name a file"
        )
    if is_standard_output(path):
        raise typer.BadParameter(
            f"{option} {name} is the standard output, where the results are printed; name "
            "a file or another pipe"
        )
    folder = Path(os.path.realpath(path.expanduser())).parent
    if (kind is None or stat.S_ISREG(kind)) and not folder.is_dir():
        raise typer.BadParameter(f"the directory of {option} {name} does not exist")


_invocation: list[str] = []


def remember(arguments: list[str]) -> None:
    """Keep the arguments, so that a page can say how it was made."""
    _invocation[:] = arguments


def command_line() -> str:
    """The command as it would be typed again."""
    return shlex.join(["greenfold", *_invocation])


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    # Text that is no text (lone surrogates) stays escaped, so that any reader parses it.
    print(json.dumps(plain(value), indent=2, allow_nan=False))


class Progress:
    """Steps of a command, one after the other, in one bar."""

    def __init__(self, bar: Bar) -> None:
        self._bar, self._pending = bar, 0.0

    def step(self, text: str, weight: float = 1.0) -> None:
        """The work before is done; what follows is ``text``, of the given weight."""
        raise_if_interrupted()
        self._bar.advance(self._pending, text)
        self._pending = weight


@contextmanager
def progress(total: float) -> Iterator[Progress]:
    """Show the steps of a command; ends it if Ctrl-C was pressed meanwhile.

    Parameters
    ----------
    total : float
        Sum of the weights of the steps.
    """
    with display() as shown, shown.bar("", total) as bar:
        yield Progress(bar)
    raise_if_interrupted()


#: A non-linear fit takes about this many linear ones.
_NONLINEAR = 20.0


def weight_of(order: int | str) -> float:
    """Weight of a fit in the progress bar."""
    return _NONLINEAR if order else 1.0


def write_page(path: Path, task: Any, rows: Any, remark: str = "") -> Path:
    """Write the report, and end here if Ctrl-C was pressed meanwhile."""
    from ..apps.report.page import write_report

    made = write_report(
        path,
        task,
        rows,
        remark=remark,
        command=command_line(),
        on_part=lambda _: raise_if_interrupted(),
    )
    raise_if_interrupted()
    return made


def console() -> Any:
    """Where tables go: plain and wide enough in a pipe."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=110, no_color=True)
