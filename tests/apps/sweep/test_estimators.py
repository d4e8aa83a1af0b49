"""Parsing of estimators from text."""

from __future__ import annotations

import importlib
import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import greenfold
from greenfold.apps.runner import source_digest
from greenfold.apps.sweep import _ABOVE, KNOWN, _code_of, parse_estimator


@pytest.mark.parametrize(
    ("text", "label", "target", "parameters"),
    [
        (
            "ReservoirClassifier",
            "ReservoirClassifier",
            "greenfold.estimators.margin:ReservoirClassifier",
            {},
        ),
        (
            "small=pooledreservoirclassifier(n_readouts=16)",
            "small",
            "greenfold.estimators.pooled:PooledReservoirClassifier",
            {"n_readouts": 16},
        ),
        (
            'sklearn.svm:SVC(kernel="rbf", C=1e-1)',
            "SVC-kernel=rbf-C=0.1",
            "sklearn.svm:SVC",
            {"kernel": "rbf", "C": 0.1},
        ),
        ("a.b:C(x=[1, (2, 3)], y={'k': None})", "C-x=_1_2_3_-y=_k_None_", "a.b:C", None),
    ],
)
def test_texts(text, label, target, parameters):
    spec = parse_estimator(text)
    assert (spec.label, spec.target) == (label, target)
    if parameters is not None:
        assert spec.parameters == parameters
    # It is the name of a folder, and a field of a table with commas.
    assert not set(spec.label) & set("/\\, \"'")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("PooledReservoirClasifier", "did you mean 'PooledReservoirClassifier'"),
        ("zzzzzz", "known: ReservoirClassifier"),
        ("", "module:Class"),
        ("../x", "module:Class"),
        ("ROCKET(3)", "literals with a name"),
        ("ROCKET(n=open('x'))", "literals with a name"),
        ("ROCKET(**{'n': 1})", "literals with a name"),
        ("ROCKET(n={1, 2})", "literals with a name"),
        ("ROCKET(n=1)(m=2)", "literals with a name"),
        ("ROCKET(n=", "module:Class"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(text, part):
    with pytest.raises(ValueError, match=re.escape(part)) as caught:
        parse_estimator(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("no_such_module:Thing", "no_such_module"),
        ("sklearn.svm:NoSuch", "has no class 'NoSuch'"),
        ("sklearn.svm:__doc__", "not a class with a `fit` method"),
        ("ReservoirClassifier(colour=1)", "does not take these parameters"),
    ],
)
def test_what_cannot_be_made_is_one_sentence(text, part):
    with pytest.raises(ValueError, match=re.escape(part)):
        parse_estimator(text).make(0)


def test_the_seed_is_given_where_it_is_taken_and_not_named():
    assert parse_estimator("ReservoirClassifier").make(7).random_state == 7
    assert parse_estimator("ReservoirClassifier(random_state=1)").make(7).random_state == 1
    assert not hasattr(parse_estimator("sklearn.naive_bayes:GaussianNB").make(7), "seed")


@pytest.mark.needs("aeon")
def test_the_known_names_exist():
    for name in KNOWN:
        assert parse_estimator(name).load().__name__ == KNOWN[name].partition(":")[2]


@pytest.mark.needs("aeon")
def test_any_class_of_aeon_has_its_name():
    assert parse_estimator("SummaryClassifier").target == (
        "aeon.classification.feature_based:SummaryClassifier"
    )


def test_code_is_a_version_or_a_digest_of_the_sources(own):
    installed = parse_estimator("sklearn.svm:SVC").code()
    assert installed == f"scikit-learn {version('scikit-learn')}"
    spec = parse_estimator("own_estimators:Nearest")
    before = spec.code()
    assert before.startswith("own_estimators sources ")
    own.write_text(own.read_text() + "\n# changed\n")
    sys.modules.pop("own_estimators")
    importlib.invalidate_caches()
    _code_of.cache_clear()
    assert spec.code() != before


def test_applications_and_the_command_line_make_no_result_stale():
    """What the digest of the sources leaves out is imported by nothing that it covers."""
    source = Path(greenfold.__file__).parent
    upwards = re.compile(r"^\s*(?:from|import)\b.*\b(?:apps|cli)\b", re.MULTILINE)
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if upwards.search(path.read_text(encoding="utf-8"))
        and path.relative_to(source).parts[0] not in _ABOVE
    }
    # The entry points of the command and nothing else.
    assert found == {"__main__.py"}
    assert upwards.search("    from ..apps.study import plan\n")
    # This copy of greenfold is no installed version: its code is a digest.
    spec = parse_estimator("ReservoirClassifier")
    digest = source_digest(source, {"apps", "cli"})
    assert spec.code() in (
        f"greenfold sources {digest}",
        f"greenfold {version('greenfold')}",
    )
