"""The entry point when extras are missing."""

from __future__ import annotations

import subprocess
import sys

from .conftest import one_sentence


def test_the_library_does_not_need_the_extras():
    code = (
        "import sys, greenfold, greenfold.apps.report\n"
        "extras = {'typer', 'rich', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "assert not extras, extras\n"
        "sys.modules['typer'] = None\n"
        "from greenfold.cli import main\n"
        "main(['demo'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    one_sentence(done.stderr)
    assert "greenfold[cli]" in done.stderr
