"""One spelling for class labels, whatever the file format wrote.

The archives write the class "1" as ``1``, ``1.0`` or ``  1.0000000e+00`` depending on
the format, so that labels kept as text would not compare equal between two files of the
same data set. The rule here is the same for every format:

* all labels are whole numbers: an ``int64`` array;
* all labels are numbers, some not whole: strings, each in Python's shortest spelling
  (strings, because scikit-learn takes fractional numbers for a regression target);
* anything else: strings as written, stripped of surrounding blanks and quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from greenfold.datasets.errors import DataError

__all__ = ["Labels", "bare", "canonical_labels", "check_label_policy"]

Labels: TypeAlias = Literal["required", "optional", "none"]
"""What is asked of the labels; see :func:`greenfold.datasets.read_series`."""

# float() also takes "1_0", "nan" and "infinity", which are names rather than numbers.
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_MISSING = {"", "?", "nan"}
# Above 2**53 a float64 no longer tells neighbouring whole numbers apart.
_EXACT = 2.0**53


def check_label_policy(labels: str) -> None:
    """Reject a `labels` argument that is none of the three policies."""
    if labels not in ("required", "optional", "none"):
        raise ValueError(
            f"`labels` must be 'required', 'optional' or 'none'; got {labels!r} instead."
        )


def canonical_labels(
    written: Sequence[str],
    *,
    path: str,
    declared: Sequence[str] = (),
    labels: Labels = "required",
) -> NDArray[Any] | None:
    """Class labels as one array, spelled alike for every file format.

    Parameters
    ----------
    written : sequence of str, length n_cases
        The labels as the file has them.
    path : str
        The file, for the error messages.
    declared : sequence of str, optional
        The classes that the file's header announces. A label outside them is an error;
        they also take part in the choice between integers and strings, so that both
        splits of a data set come out in the same type.
    labels : {"required", "optional", "none"}, default "required"
        Whether a label may be missing (``?``, ``NaN`` or nothing).

    Returns
    -------
    ndarray of shape (n_cases,) or None
        ``int64`` if all labels are whole numbers, else strings. If only some are missing,
        an array of objects with None in their place; None alone if all are, or if
        `labels` is ``"none"``.
    """
    if labels == "none":
        return None
    names = [bare(label) for label in written]
    known = [case for case, name in enumerate(names) if name.lower() not in _MISSING]
    if len(known) < len(names) and labels == "optional":
        if not known:
            return None
        y = np.full(len(names), None, dtype=object)
        given = canonical_labels([names[i] for i in known], path=path, declared=declared)
        y[known] = [] if given is None else given.tolist()
        return y
    for case, name in enumerate(names):
        if name.lower() in _MISSING:
            raise DataError(
                f"`{path}` has no class label for series {case} (counting from 0): "
                "add the label or remove the series."
            )
    classes = [bare(label) for label in declared]
    if classes:
        allowed = {_key(name) for name in classes}
        for case, name in enumerate(names):
            if _key(name) not in allowed:
                raise DataError(
                    f"`{path}` gives series {case} (counting from 0) the label "
                    f"{name[:40]!r}, which its header does not declare: correct the "
                    "label or the list of classes in the header."
                )
    if not all(_NUMBER.fullmatch(name) for name in [*names, *classes]):
        return np.array(names, dtype=np.str_)
    numbers = [float(name) for name in [*names, *classes]]
    if all(number.is_integer() and abs(number) < _EXACT for number in numbers):
        return np.array(numbers[: len(names)]).astype(np.int64)
    return np.array([repr(number) for number in numbers[: len(names)]], dtype=np.str_)


def bare(label: str) -> str:
    """Label without surrounding blanks and without one pair of quotes."""
    label = label.strip()
    if len(label) >= 2 and label[0] == label[-1] and label[0] in "'\"":
        label = label[1:-1].strip()
    return label


def _key(name: str) -> float | str:
    """What two spellings of one class have in common."""
    return float(name) if _NUMBER.fullmatch(name) else name.casefold()
