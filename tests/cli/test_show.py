"""Tables for a terminal."""

from __future__ import annotations

from .conftest import SMALL, invoke


def test_the_table_fits_eighty_columns(beats, monkeypatch):
    from rich.console import Console

    import greenfold.cli.show as show

    monkeypatch.setattr(show, "console", lambda: Console(width=80))
    text = invoke("evaluate", beats, *SMALL, "--alpha", 0.02).stdout
    assert "…" not in text
    assert "non-linear" in text
    assert max(map(len, text.splitlines())) <= 80
