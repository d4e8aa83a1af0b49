from .comparison import (
    Row,
    Split,
    Spread,
    compare,
    measure,
    random_spread,
    share_bounds,
    to_record,
)
from .page import write_report

__all__ = [
    "Row",
    "Split",
    "Spread",
    "compare",
    "measure",
    "random_spread",
    "share_bounds",
    "to_record",
    "write_report",
]
