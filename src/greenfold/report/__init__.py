"""One HTML page about a fit: comparison, figures, certificate, parameters.

`compare` needs nothing but greenfold; `write_report` needs matplotlib and jinja2
(``pip install greenfold[report]``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .comparison import (
    Row,
    Spread,
    Task,
    compare,
    measure,
    random_spread,
    share_bounds,
    to_record,
)

if TYPE_CHECKING:
    from .page import write_report

__all__ = [
    "Row",
    "Spread",
    "Task",
    "compare",
    "measure",
    "random_spread",
    "share_bounds",
    "to_record",
    "write_report",
]


def __getattr__(name: str) -> object:
    # matplotlib takes a second to import; only a page needs it.
    if name == "write_report":
        from .page import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
