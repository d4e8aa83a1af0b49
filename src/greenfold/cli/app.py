"""The application: its commands, and the handling of their errors."""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._base.interrupts import noticing_interrupts, was_interrupted
from .._base.messages import ArgumentError, Refusal, sentence, told
from .._base.threads import few_threads
from .data import fetch, list_, path
from .explore import explore
from .fit import demo, evaluate, fit
from .forecast import forecast
from .jobs import reproduce, study, sweep
from .mask import mask
from .memory import memory
from .options import invocation
from .predict import predict, score, show_
from .recording import recording
from .show import printable


class _Group(TyperGroup):
    """A group of commands that reports an error as one sentence on stderr."""

    def main(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, **extra: Any
    ) -> Any:
        """Run a command and exit with its code."""
        invocation.arguments = list(sys.argv[1:] if args is None else args)
        invocation.context = None
        extra["standalone_mode"] = False
        with noticing_interrupts():
            code = _guarded(super().main, extra)
        sys.exit(code)


def _guarded(work: Callable[..., object], extra: dict[str, Any]) -> int:
    """Run ``work`` and return its exit code; report an exception in one sentence."""
    try:
        with warnings.catch_warnings(), few_threads():
            warnings.showwarning = partial(_say_warning, set())
            code = work(args=list(invocation.arguments), **extra)
            sys.stdout.flush()
    except BrokenPipeError as error:
        if error.filename:  # a pipe that the command writes to, not standard output
            _say(_sentence(error))
            return 1
        # The reader has closed the pipe; keep Python from complaining at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except typer.TyperException as error:
        return _refuse_usage(error)
    except Exception as error:
        if was_interrupted():  # Ctrl-C inside an extension module may come out as anything
            code = 130
        elif "--debug" in invocation.arguments:
            traceback.print_exc()
            return 1
        else:
            _say(_sentence(error))
            return 1
    if code == 130:
        _say("interrupted.")
    return code if isinstance(code, int) else 0


#: Patterns in typer's messages, and the words that replace them.
_BETTER = {
    r"^Invalid value: ": "",
    r"^Invalid value for '(\S+)'(?: / \S+)?: (?:must|Input should)": r"\1 must",
    r"^Invalid .*'(--\S+)'.*: ('.*') is not one of (.*)": r"\1 must be one of \3, not \2",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
    "a valid integer, unable to parse string as an integer": "a whole number",
    "a valid number, unable to parse string as a number": "a number",
}


def _refuse_usage(error: typer.TyperException) -> int:
    """Report a wrong command line and return its exit code."""
    ctx = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return 2  # typer has printed the help
    path = ctx.command_path if ctx is not None else "greenfold"
    text = " ".join(error.format_message().split()).rstrip(".").replace("Value error, ", "")
    for said, better in _BETTER.items():
        text = re.sub(said, better, text)
    _say(f"{text}; see `{path} --help`.")
    return int(error.exit_code)


#: Errors that the library raises on purpose, with a message for the user.
_EXPECTED = (ValueError, ArithmeticError, OSError, ImportError, MemoryError)


def _sentence(error: Exception) -> str:
    """Return the message of an error as one line."""
    if isinstance(error, ArgumentError):  # about a value of the command line, if typed
        text = told(error, invocation.typed)
    else:
        text = told(error, invocation.option) if isinstance(error, Refusal) else str(error)
    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"`{error.filename}` cannot be used: {error.strerror}"
    if isinstance(error, _EXPECTED) and text.strip():
        return sentence(text)
    found = f"unexpected {type(error).__name__}: {sentence(text) or 'no message'}"
    return f"{found.rstrip('.')}; run again with --debug for the traceback."


def _say(text: str) -> None:
    print(f"greenfold: {printable(text)}", file=sys.stderr)


def _say_warning(said: set[str], message: object, *_: object, **__: object) -> None:
    """Print a warning, unless it has been ``said``: every fit of a command repeats it."""
    text = " ".join(str(message).split())
    if text not in said:
        said.add(text)
        _say(f"warning: {text}")


app = typer.Typer(
    cls=_Group,
    name="greenfold",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Reservoir computing, solved: optimal input and readout projections.",
    epilog="Example: [bold]greenfold demo[/bold]",
)
_data = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, find and fetch data sets.",
    epilog="Example: [bold]greenfold data list[/bold]",
)
_OWN = (
    fit, predict, score, show_, evaluate, forecast, mask, recording, memory,
    sweep, study, explore, demo, reproduce,
)  # fmt: skip
for _to, _commands in ((app, _OWN), (_data, (list_, path, fetch))):
    for _one in _commands:
        _to.command(_one.__name__.rstrip("_"), epilog=_one.epilog)(_one)
app.add_typer(_data, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"greenfold {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    del version


def run(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    # A terminal that cannot show a character prints a question mark instead of failing.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    command = typer.main.get_command(app)
    command.main(None if arguments is None else list(arguments), prog_name="greenfold")
