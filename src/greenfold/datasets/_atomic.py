"""Files that appear complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
