"""Estimator checks of scikit-learn, quick or in full, and of aeon."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

#: Those that fail first where an estimator departs from the contract; each takes some
#: hundredths of a second with a tiny network.
QUICK = {
    "check_complex_data",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_array",
    "check_estimators_dtypes",
    "check_estimators_empty_data_messages",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit1d",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_get_params_invariance",
    "check_n_features_in",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_requires_y_none",
    "check_set_params",
    "check_valid_tag_types",
}

_EVERY = """
import warnings
warnings.simplefilter("error")
warnings.filterwarnings("ignore", "numba is not installed")
from sklearn.utils.estimator_checks import check_estimator
from greenfold import *
made = {}
results = check_estimator(made, on_skip=None, on_fail=None)
bad = [(r["check_name"], r["status"], r["exception"]) for r in results
       if r["status"] != "passed"]
assert not bad, bad
assert len(results) > 40
"""


def pass_quick_checks(estimator: Any) -> None:
    """Run the quick checks of scikit-learn on an estimator."""
    from sklearn.utils.estimator_checks import estimator_checks_generator

    ran = set()
    pairs: Any = estimator_checks_generator(estimator)
    for made, check in pairs:
        name = check.func.__name__
        if name in QUICK:
            check(made)
            ran.add(name)
    # Some are not for every kind of estimator: missing values, a `y` that is needed.
    assert len(QUICK - ran) <= 3, QUICK - ran


def pass_every_check(estimator: str) -> None:
    """Run all checks of scikit-learn on an estimator written as code, without a skip.

    In a process of its own: one check is skipped unless SciPy was imported with the
    variable.
    """
    done = subprocess.run(
        [sys.executable, "-c", _EVERY.replace("made = {}", f"made = {estimator}")],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def pass_every_check_of_aeon(adapter: Any, least: int = 21) -> None:
    """Run aeon's checks on a class; none of them is skipped or fails."""
    from aeon.testing.estimator_checking import check_estimator

    results = check_estimator(adapter)
    bad = {name: said for name, said in results.items() if said != "PASSED"}
    assert not bad, bad
    assert len(results) >= least
