"""What every page shares: templates, how numbers are written, and how a page is saved."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..._base.files import replacing

_PACKAGES = ("numpy", "scipy", "scikit-learn", "matplotlib", "jinja2")


@contextmanager
def extra() -> Iterator[None]:
    """Imports of what a page needs; says how to install what is missing."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"A report needs {error.name}: install it with `pip install greenfold[report]`."
        ) from error


def environment() -> Any:
    """The templates of this folder, every value of which is escaped."""
    with extra():
        import jinja2
        from markupsafe import Markup

    def read(name: str) -> str:
        return files("greenfold.apps.report").joinpath(name).read_text(encoding="utf-8")

    made = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(read),
    )
    # Our own SVG is safe: it holds no text of the user's.
    made.filters["svg"] = Markup
    return made


def number(value: Any) -> str:
    """Four digits, or a dash where there is no value."""
    if value is None or not np.isfinite(value):
        return "–"
    return f"{float(value):.4g}".replace("-", "−")


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.1f} %"


def now() -> str:
    """When the page is made."""
    return datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def versions() -> list[tuple[str, str]]:
    """What the page was made with."""
    from ... import __version__

    found = [("greenfold", __version__), ("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found


def write(path: str | Path, text: str) -> Path:
    """Save a page in one step, replacing what was there; its absolute path."""
    target = Path(path).expanduser().absolute()
    with replacing(target) as stream:
        # Labels may hold lone surrogates, which no encoding has.
        stream.write(text.encode("utf-8", errors="replace"))
    return target
