"""What a file keeps of a fitted estimator: its parameters, and attributes by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._base import codec
from .._base.archive import refuse
from .._base.codec import Arrays, Field, Stored


class Unset(codec.Maybe):
    """An attribute that not every fitted estimator has."""


def describe_fitted(
    kind: str,
    cls: type,
    check: Callable[[Any], None],
    finish: Callable[[Any], None],
    /,
    **attributes: Field,
) -> None:
    """Describe a fitted estimator by its attributes beside those that all have.

    ``check`` refuses one whose parameters are wrong. ``finish`` checks what was read as a
    whole, and sets what follows from it.
    """

    def take(estimator: Any) -> dict[str, Any]:
        check_is_fitted(estimator)
        taken = {name: getattr(estimator, name, None) for name in attributes}
        return {**taken, "parameters": estimator.get_params(deep=False)}

    def make(parameters: Any, **read: Any) -> Any:
        for name, value in read.items():
            if name == "feature_names_in_" and value is not None:
                value = np.array(value, dtype=object)
            if value is not None or not isinstance(attributes[name], Unset):
                setattr(parameters, name, value)
        finish(parameters)
        return parameters

    attributes = {
        "n_channels_in_": codec.counted("channels"),
        "n_features_in_": codec.counted("steps"),
        "feature_names_in_": Unset(codec.Several(codec.TEXT, "steps")),
        **attributes,
    }
    codec.describe(kind, make, take, parameters=_Parameters(cls, check), **attributes)


class _Parameters(Field):
    """Parameters of an estimator, which is made of them; whole numbers name lengths."""

    def __init__(self, cls: type, check: Callable[[Any], None]) -> None:
        self.cls, self.check = cls, check

    def pack(self, value: Mapping[str, Any], name: str, arrays: Arrays) -> dict[str, Any]:
        return {k: self._pack(k, v, f"{name}_{k}", arrays) for k, v in value.items()}

    def _pack(self, key: str, value: Any, name: str, arrays: Arrays) -> Any:
        if key == "random_state" and not isinstance(value, int | np.integer):
            return None  # a generator is not kept
        if isinstance(value, codec.Saved):
            return codec.SAVED.pack(value, name, arrays)
        leaf = super().pack
        if isinstance(value, dict):
            items = [[leaf(part, name, arrays) for part in pair] for pair in value.items()]
            return {"pairs": items}
        if value is None or isinstance(value, str | bool | int | float | np.generic):
            return leaf(value, name, arrays)
        dense = value.toarray() if hasattr(value, "toarray") else value
        return leaf(np.asarray(dense, dtype=np.float64), name, arrays)

    def unpack(self, told: Any, name: str, stored: Stored) -> Any:
        given = {k: self._unpack(v, f"{name}_{k}", stored) for k, v in told.items()}
        estimator = self.cls(**given)
        self.check(estimator)
        stored.lengths.update({k: v for k, v in given.items() if type(v) is int})
        return estimator

    def _unpack(self, told: Any, name: str, stored: Stored) -> Any:
        if not isinstance(told, dict):
            return told
        if "pairs" in told:
            return dict(told["pairs"])
        if "array" in told:
            return codec.Numbers(ndim=(1, 2)).unpack(told, name, stored)
        return codec.SAVED.unpack(told, name, stored)


class Labels(Field):
    """Distinct labels; they say how many ``classes`` there are, and how many ``scores``."""

    def pack(self, value: np.ndarray, name: str, arrays: Arrays) -> dict[str, Any]:
        """JSON of the labels: numbers, truth values or text."""
        objects = value.dtype.kind == "O"
        if objects and not all(isinstance(label, str) for label in value):
            raise TypeError(
                "labels must be numbers or text to be saved; got "
                f"{sorted({type(label).__name__ for label in value})}."
            )
        packed = super().pack(value.astype(str) if objects else value, name, arrays)
        return {**packed, "objects": objects}

    def unpack(self, told: Any, name: str, stored: Stored) -> np.ndarray:
        """The labels, checked."""
        labels = stored.array(told, name)
        n = stored.length("classes", len(labels))
        stored.length("scores", 1 if n == 2 else n)
        if labels.ndim != 1 or n < 2 or len(np.unique(labels)) < n:
            refuse("its classes are not distinct labels.")
        objects = codec.FLAG.unpack(told.get("objects"), "objects", stored)
        return labels.astype(object) if objects else labels
