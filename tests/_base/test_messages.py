"""Errors know the arguments in their messages, also after a trip to another process."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from greenfold import ReservoirClassifier
from greenfold._base import checks as check
from greenfold._base.messages import (
    Argument,
    ArgumentError,
    ArgumentTypeError,
    Refusal,
    told,
)
from greenfold.datasets import DataError, MissingValueError
from greenfold.datasets.parsed import naming
from greenfold.estimators.parameters import ParameterError

KEEP = (", or use ", Argument("missing", "keep"), " to keep NaN")


@pytest.mark.parametrize(
    ("error", "kind"), [(ValueError, ArgumentError), (TypeError, ArgumentTypeError)]
)
def test_a_wrong_argument_is_known_by_name(error, kind):
    with pytest.raises(error, match="^`eta` must be positive; got -1.$") as caught:
        check.must(False, "eta", "be positive", -1, error)
    found = caught.value
    assert type(found) is kind
    assert (found.name, found.wanted, found.got) == ("eta", "be positive", "-1")
    assert told(found, lambda one: f"--{one.name}") == "--eta must be positive; got -1."
    assert told(found, lambda one: None) == str(found)


@pytest.mark.parametrize(
    "error",
    [
        ArgumentError("tau", "be given"),
        ArgumentTypeError("tau", "be a number", "text"),
        ParameterError("g", "a float", "'a'", "ReservoirClassifier", " Write a number."),
        Refusal("fill them", KEEP, "."),
        DataError("fill them", KEEP, "."),
        MissingValueError("fill them", KEEP, ".", positions=np.ones((1, 3), int)),
    ],
)
def test_errors_come_back_from_other_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again._parts == error._parts
    assert np.all(getattr(again, "positions", 0) == getattr(error, "positions", 0))


def test_a_wrong_parameter_is_told_in_the_wording_of_scikit_learn():
    with pytest.raises(ParameterError) as caught:
        ReservoirClassifier(g=-1.0).fit(np.eye(4), [0, 1, 0, 1])
    wanted = "must be a float in the range [1e-100, 1e+100]"
    what = "The 'g' parameter of ReservoirClassifier"
    assert str(caught.value) == f"{what} {wanted}. Got -1.0 instead."
    assert told(caught.value, lambda one: f"--{one.name}") == f"--g {wanted}; got -1.0."


def test_advice_that_a_caller_cannot_follow_is_left_out():
    error = Refusal("fill them", KEEP, ".")
    assert str(error) == "fill them, or use missing='keep' to keep NaN."
    assert told(error, lambda one: None) == "fill them."
    assert told(error, lambda one: "--keep") == "fill them, or use --keep to keep NaN."


def test_the_name_of_a_file_keeps_the_arguments():
    with pytest.raises(DataError) as caught, naming("a.csv"):
        raise DataError("has gaps: fill them", KEEP, ".")
    assert told(caught.value, lambda one: None) == "`a.csv` has gaps: fill them."
