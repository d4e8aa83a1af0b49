"""Every test in this folder may need code compiled by numba."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _compiled(compiled: None) -> None: ...
