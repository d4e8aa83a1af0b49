"""The way into the command line, before anything that may be missing is imported."""

from __future__ import annotations

import sys
from collections.abc import Sequence


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
