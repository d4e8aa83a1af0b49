"""The application: its commands, and one place where every error ends."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .._base.progress import noticing_interrupts, was_interrupted
from .._base.threads import few_threads
from .options import remember


class _Group(TyperGroup):
    """Commands whose errors are one sentence on stderr and an exit code."""

    def main(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, **extra: Any
    ) -> Any:
        """Run a command and exit."""
        arguments = list(sys.argv[1:] if args is None else args)
        remember(arguments)
        extra["standalone_mode"] = False
        sys.exit(_guarded(super().main, arguments, extra))


def _guarded(work: Any, arguments: list[str], extra: dict[str, Any]) -> int:
    """Exit code of the work; whatever it raises becomes a sentence."""
    debug = "--debug" in arguments
    try:
        with warnings.catch_warnings(), noticing_interrupts(), few_threads():
            warnings.showwarning = _say_warning
            code = work(args=arguments, **extra)
            sys.stdout.flush()
    except BrokenPipeError as error:
        if error.filename:  # not the standard output, but a pipe that was to be written
            _say(_sentence(error))
            return 1
        # Nobody reads any more; keep Python from saying so when it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted.")
        return 130
    except typer.TyperException as error:
        return _refuse_usage(error)
    except Exception as error:
        if was_interrupted():  # Ctrl-C inside an extension module may come out as anything
            _say("interrupted.")
            return 130
        if debug:
            traceback.print_exc()
        else:
            _say(_sentence(error))
        return 1
    if code == 130:
        _say("interrupted.")
    return code if isinstance(code, int) else 0


def _refuse_usage(error: Any) -> int:
    """A command that was not understood."""
    ctx = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return 2  # typer has printed the help
    path = ctx.command_path if ctx is not None else "greenfold"
    text = " ".join(error.format_message().split()).rstrip(".")
    _say(f"{text}; see `{path} --help`.")
    return int(error.exit_code)


#: What the library advises in Python, as an option.
_OPTIONS = {
    "pass missing='trim' if": "give --trim if",
    "or missing='keep' to keep NaN": "or fill them first",
    "pass missing='keep' to keep them as NaN": "fill them, or leave the series out",
    "pass labels='required' if it is, or labels='none' if not": "give --labels if it is, "
    "or --no-labels if not",
    "write both into one file with numpy.savez(path, X=X, y=y)": "give them with --y",
    "cut the recording there and give the parts as a list": "cut the recording there and "
    "give the further parts with --more",
    "or name them with `drive`": "or name them with --drive",
    "or name them with `states`": "or name them with --states",
    "call the reader you mean, such as read_table": "name the format with --format",
}
#: Errors that the library raises on purpose, with a sentence.
_EXPECTED = (ValueError, ArithmeticError, OSError, ImportError, MemoryError)


def _sentence(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    for advice, option in _OPTIONS.items():
        text = text.replace(advice, option)
    expected = isinstance(error, _EXPECTED)
    if isinstance(error, OSError) and error.strerror and error.filename:
        text = f"`{error.filename}` cannot be used: {error.strerror}"
    if not expected or not text:
        text = f"unexpected {type(error).__name__}: {text or 'no message'}"
        return f"{text.rstrip('.')}; run again with --debug for the traceback."
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _say(text: str) -> None:
    print(f"greenfold: {text}", file=sys.stderr)


def _say_warning(message: Any, *_: Any, **__: Any) -> None:
    _say(f"warning: {' '.join(str(message).split())}")


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
            help="Print the version and leave.",
        ),
    ] = False,
) -> None:
    del version


def run(arguments: Sequence[str] | None = None) -> int:
    """Exit code of one command."""
    # A terminal that lacks a letter shows a question mark; it is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    command = typer.main.get_command(app)
    try:
        command.main(
            args=None if arguments is None else list(arguments), prog_name="greenfold"
        )
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(bool(done.code))
    return 0


# The modules below add their commands to `app`.
from . import data as _data  # noqa: E402
from . import (  # noqa: E402
    demo,
    evaluate,
    explore,
    fit,
    mask,
    memory,
    predict,
    reproduce,
    score,
    study,
    sweep,
)

for _module in (
    fit, predict, score, evaluate, mask, memory, sweep, study, explore, demo, reproduce,
):  # fmt: skip
    _module.register(app)
app.add_typer(_data.app, name="data")


def _flowing(text: str) -> str:
    """Paragraphs without line breaks of their own: the terminal sets its width."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


for _info in (*app.registered_commands, *_data.app.registered_commands):
    _info.help = _flowing(inspect.getdoc(_info.callback) or "")
