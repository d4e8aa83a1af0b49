"""The command line: ``greenfold demo | fit | predict | evaluate | data | …``.

The exit code is 0 for success, 1 for an error in the data or the model or if the reader of
a pipe has closed it, 2 for a wrong command line, and 130 after an interrupt (Ctrl-C).
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; by default those of the process.
    """
    try:
        # Imported here, because typer may be missing.
        with _leaving_at_once():
            from .app import run
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("typer", "rich"):
            raise
        sys.exit(
            f"greenfold: the command line needs {missing}: install it with "
            "`pip install greenfold[cli]`."
        )
    try:
        code = run(arguments)
    except KeyboardInterrupt:  # before the commands handle it themselves
        print("greenfold: interrupted.", file=sys.stderr)
        code = 130
    sys.exit(code)


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """Exit immediately at Ctrl-C, without an exception.

    An exception would turn into other errors inside modules that are being imported, above
    all extensions. There is nothing to clean up yet.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(*_: object) -> None:
        os.write(2, b"greenfold: interrupted.\n")
        os._exit(130)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
