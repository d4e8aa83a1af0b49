"""Files that appear complete or not at all, and values as JSON holds them."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` for writing and move it over `path` at the end.

    If the body raises, `path` stays as it was and nothing is left behind.
    """
    # Not tempfile, whose files are readable by their owner alone even after the move.
    temporary = path.with_name(f".partial-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as stream:
            yield stream
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def plain(value: Any) -> Any:
    """A value as JSON can hold it: arrays as lists, None for what is no finite number."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON has no form for.")


def write_json(path: Path, value: Any) -> None:
    """Write JSON, complete or not at all."""
    with replacing(path) as stream:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)
        stream.write(text.encode())
