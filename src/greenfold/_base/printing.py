"""The printed form of objects: a line in a terminal, a small table in a notebook."""

from __future__ import annotations

import html
from typing import Any

import numpy as np


class Shown:
    """An object that prints a few facts instead of its arrays.

    The method `_facts` of a class returns their names and values, most important first. A
    dataclass needs ``repr=False``; otherwise its own repr is used.
    """

    def _facts(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = (f"{name}={text_of(one)}" for name, one in self._facts().items())
        return f"{type(self).__name__}({', '.join(facts)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name.replace('_', ' '))}</th>"
            f"<td style='text-align:left'>{html.escape(text_of(one))}</td></tr>"
            for name, one in self._facts().items()
        )
        title = html.escape(type(self).__name__)
        return f"<table><caption>{title}</caption><tbody>{rows}</tbody></table>"


def text_of(value: object) -> str:
    """Format a value without the name of its type."""
    if isinstance(value, float | np.floating):
        return f"{float(value):.4g}"
    if isinstance(value, np.ndarray):
        return np.array2string(
            value, precision=4, threshold=8, edgeitems=3, separator=", ", max_line_width=200
        )
    if isinstance(value, str):
        return value
    return repr(value.item() if isinstance(value, np.generic) else value)
