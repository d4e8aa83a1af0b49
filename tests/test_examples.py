"""The examples in docstrings run as they are written."""

from __future__ import annotations

import doctest
import importlib
from operator import attrgetter

import pytest

from . import parts


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
# Every forecaster of sktime says so when it is made.
@pytest.mark.filterwarnings("ignore:The default of config ``remember_data``:FutureWarning")
@pytest.mark.parametrize(("module", "name"), [*parts.examples()])
def test_examples_in_docstrings(module, name, capsys):
    for part in filter(parts.is_missing, parts.needed_by_examples(module, name)):
        pytest.skip(parts.reason(part))
    documented = importlib.import_module(module)
    written = attrgetter(name)(documented) if name else documented
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(written, name or module, module=documented)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    failed, tried = runner.run(example)
    assert tried > 0
    assert failed == 0, capsys.readouterr().out
