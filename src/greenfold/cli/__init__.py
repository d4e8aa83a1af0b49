"""The command line: ``greenfold demo | fit | predict | evaluate | data | reproduce``.

Exit codes: 0 done, 1 something is wrong with the data or the model (or the reader of a pipe
went away), 2 the command was not understood, 130 interrupted (Ctrl-C).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.
    """
    try:
        from .app import run
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("typer", "rich"):
            raise
        sys.exit(
            f"greenfold: the command line needs {missing}: install it with "
            "`pip install greenfold[cli]`."
        )
    sys.exit(run(arguments))
