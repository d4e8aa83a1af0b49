"""The command line: ``greenfold demo | fit | predict | evaluate | data | reproduce``.

Exit codes: 0 done, 1 something is wrong with the data or the model (or the reader of a pipe
went away), 2 the command was not understood, 130 interrupted (Ctrl-C).
"""

from .entry import main

__all__ = ["main"]
