"""pandas in, pandas out: rows of forecasts continue the index of the series."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from ..._base import checks as check
from ..._base.checks import require

#: Functions of pandas that continue an index, by its type.
_RANGES = {
    "DatetimeIndex": "date_range",
    "PeriodIndex": "period_range",
    "TimedeltaIndex": "timedelta_range",
}


@dataclass(frozen=True, eq=False)
class Frame:
    """The index and the columns of a DataFrame or Series.

    pandas is imported only here, when a caller has passed one of its objects.

    Attributes
    ----------
    index : pandas.Index
    columns : pandas.Index or None
        None for a Series.
    name : hashable
        Name of a Series.
    step : DateOffset, int, float or None
        Distance of the rows, or None if it is not regular.
    n_rows : int
        Number of rows up to the end of ``index``.
    """

    index: Any
    columns: Any
    name: Any
    step: Any
    n_rows: int

    @classmethod
    def of(cls, value: object, name: str) -> Frame | None:
        """Return the frame of an object of pandas, or None for anything else."""
        if not is_pandas(value):
            return None
        table: Any = value
        index = table.index
        wanted = "have one level of row index; pass a list with one table per series"
        check.must(index.nlevels == 1, name, wanted, f"{index.nlevels} levels")
        step = _step(index)
        back = len(index) > 1 and index.is_monotonic_decreasing
        what = f"`{name}` runs backwards, from {index[0]} to {index[-1]}"
        require(not (back and _is_ordered(index)), f"{what}; sort it by its index first.")
        columns = getattr(table, "columns", None)
        if columns is not None:
            wanted = "hold numbers; leave out other columns, or make dates the index"
            other = [one for one, kind in table.dtypes.items() if kind.kind not in "biuf"]
            check.must(not other, name, wanted, f"column {other[0]!r}" if other else "")
        return cls(index, columns, getattr(table, "name", None), step, len(index))

    @property
    def end(self) -> Frame:
        """The last row, which is all that a continuation needs."""
        return replace(self, index=self.index[-1:])

    def later(self, n: int) -> Frame:
        """Return the last row after ``n`` more rows."""
        return replace(self, index=self._ahead(n)[-1:], n_rows=self.n_rows + n)

    def wrap(self, made: np.ndarray) -> Any:
        """Return values of the same rows as an object of pandas."""
        return self._filled(made, self.index)

    def continued(self, made: np.ndarray) -> Any:
        """Return values of the rows that follow."""
        if self.step is None:
            what = "the rows of the series are not at regular distances, so the rows of "
            what += "the forecast are numbered; for dates, use `series.asfreq(…)` first."
            warnings.warn(what, UserWarning, stacklevel=3)
        return self._filled(made, self._ahead(len(made)))

    def _ahead(self, n: int) -> Any:
        pandas = import_module("pandas")
        end, step, name = self.index[-1], self.step, self.index.name
        if step is None:
            return pandas.RangeIndex(self.n_rows, self.n_rows + n)
        if kind := _RANGES.get(type(self.index).__name__):
            return getattr(pandas, kind)(end, periods=n + 1, freq=step, name=name)[1:]
        if isinstance(self.index, pandas.RangeIndex):
            return pandas.RangeIndex(end + step, end + step * (n + 1), step, name=name)
        return pandas.Index(end + step * np.arange(1, n + 1), name=name)

    def _filled(self, made: np.ndarray, index: Any) -> Any:
        pandas = import_module("pandas")
        if self.columns is None:
            return pandas.Series(made.reshape(-1), index, name=self.name)
        return pandas.DataFrame(made.reshape(len(made), -1), index, self.columns)


def is_pandas(value: object) -> bool:
    """Return whether a value is a DataFrame or Series of pandas."""
    own = type(value).__module__.partition(".")[0] == "pandas"
    return own and hasattr(value, "iloc")


def _is_ordered(index: Any) -> bool:
    """Return whether an index holds numbers or times, which have an order."""
    return type(index).__name__ in _RANGES or index.dtype.kind in "iuf"


def _step(index: Any) -> Any:
    """Return the distance of rows, or None if it is not regular or not known."""
    kind = type(index).__name__
    if kind == "PeriodIndex":
        return index.freq if (np.diff(index.asi8) == 1).all() else None
    if kind in _RANGES:
        known = index.freq
        if known is None and len(index) > 2:
            known = import_module("pandas").infer_freq(index)
        return known
    if kind == "RangeIndex":
        return index.step
    if index.dtype.kind not in "iuf" or len(index) < 2:
        return None
    steps = np.diff(index.to_numpy())
    # Numbers such as 0.1, 0.2 and 0.3 are rounded.
    even = steps[0] > 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0)
    mean = (index[-1] - index[0]) / len(steps)
    return (steps[0] if index.dtype.kind in "iu" else mean) if even else None
