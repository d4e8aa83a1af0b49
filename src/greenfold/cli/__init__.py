"""The command line: ``greenfold demo | fit | predict | evaluate | data | …``.

The exit code is 0 for success, 1 for an error in the data or the model or if the reader of
a pipe has closed it, 2 for a wrong command line, and 130 after an interrupt (Ctrl-C).
"""

import os
import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments; by default those of the process.
    """

    def leave(*_: object) -> None:
        os.write(2, b"greenfold: interrupted.\n")
        os._exit(130)

    # There is nothing to clean up yet, and an exception would turn into other errors inside
    # modules that are being imported, above all extensions.
    before = signal.signal(signal.SIGINT, leave)
    try:
        from .app import run  # imported here, because typer may be missing
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("typer", "rich"):
            raise
        sys.exit(
            f"greenfold: the command line needs {missing}: install it with "
            "`pip install greenfold[cli]`."
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        run(arguments)
    except KeyboardInterrupt:  # before the commands handle it themselves
        print("greenfold: interrupted.", file=sys.stderr)
        sys.exit(130)
