"""Every test of this folder may need what numba compiles."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _compiled(compiled: None) -> None: ...
