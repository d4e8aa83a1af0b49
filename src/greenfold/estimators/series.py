"""Functions that read series for estimators: arrays, or lists of series of any length.

`read_values` checks them. `read_aligned` then aligns them at their ends, or
`group_by_length` fills gaps and groups them by length.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from operator import attrgetter
from typing import Any, TypeGuard, cast

import array_api_compat as compat
import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets

from .._base import checks as check
from .._base.arrays import (
    Array,
    batches,
    content_hashes,
    in_chunks,
    is_array,
    like,
    namespace,
    on_gpu,
    to_host,
)
from .._base.messages import SeriesError
from ..stimuli.base import Series
from ..stimuli.chunks import Chunks, chunks_of, host_labels
from .base import SeriesEstimator, SeriesLike, moderate

# scikit-learn's type stubs know neither NumPy's dtypes nor arrays of three axes.
_check_array: Any = validation.check_array
_validate_data: Any = validation.validate_data
#: Series this many times longer or shorter than those of the fit are refused as a mistake.
_OTHER_LENGTHS = 16
#: Series of fewer steps are refused too, because second differences need three.
_FEWEST_STEPS = 4
#: Series of at most this many steps, and this many times as many channels, look as if
#: their axes were exchanged. The archives hold no such series.
_FEW_STEPS, _MANY_CHANNELS = 16, 4
#: Number of evenly spaced values by which series are sorted.
_LOOKS = 16
#: A value this many times larger than a typical series hides all other values.
_VANISHING = 1e100
#: Number of values per channel, their mean, and the sum of squares around it.
Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


def read_values(
    estimator: SeriesEstimator, X: SeriesLike, *, fitting: bool, gaps: bool = False
) -> Any:
    """Check ``X``, an array or a list of series of any length, and return its values.

    When fitting, set the attributes ``n_features_in_``, ``n_channels_in_`` and
    ``_any_length`` of the estimator; otherwise compare ``X`` with them. With ``gaps``, NaN
    is allowed, single precision is kept, and arrays of other libraries stay on their
    device. Without ``gaps``, values must be finite, and are returned in double precision on
    the host. The result is an array (n_cases, n_channels, n_steps), or a list of
    (n_channels, n_steps) arrays.
    """
    X = check.unmasked(X, "X", np.nan if gaps else None)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1:
        X = list(X)  # NumPy's form of series of unequal length
    _refuse_nested(X)
    if gaps and is_array(X) and not isinstance(X, np.ndarray):
        return _read_foreign(estimator, cast("Array", X), fitting)
    dtype = [np.float64, np.float32] if gaps else np.float64
    if _holds_series(X):
        found = _read_list(estimator, X, fitting, dtype, gaps)
    else:
        found = _read_array(estimator, to_host(X) if is_array(X) else X, fitting, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(found.sum())  # one quick pass over what is usually finite
        if not isfinite(total):
            named = {"estimator_name": type(estimator).__name__, "input_name": "X"}
            validation.assert_all_finite(found, allow_nan=True, **named)
            if not gaps:
                _check_finite(np.asarray(np.isnan(found).any((1, 2))), "NaN")
    if fitting:
        _warn_if_odd(found)
        if not gaps and not isinstance(found, list):
            _check_sizes(found)
    return found


def _refuse_nested(X: object) -> None:
    """Refuse a table whose cells hold whole series."""
    columns = getattr(X, "dtypes", None)
    if columns is None or all(
        getattr(one, "kind", "") != "O" for one in np.atleast_1d(columns)
    ):
        return
    cell: Any = cast("Any", X).iloc[0, 0] if len(cast("Any", X)) else 0.0
    nested = np.ndim(cell) > 0
    what = f"X is a nested table, whose cells hold whole series ({type(cell).__name__})"
    how = "pass an array (n_cases, n_channels, n_steps), which sktime and aeon call numpy3D"
    check.require(not nested, f"{what}: {how}.")


def _warn_if_odd(series: Any) -> None:
    """Warn if training series look as if they were passed wrongly."""
    shapes = (
        {one.shape for one in series} if isinstance(series, list) else {series.shape[1:]}
    )
    channels, steps = max(shapes, key=lambda shape: shape[1])
    if channels >= _MANY_CHANNELS * steps and steps <= _FEW_STEPS:
        warnings.warn(
            f"X holds series of {channels} channels and {steps} steps; if it is the other "
            "way round, exchange the last two axes of X, which are channels and steps.",
            UserWarning,
            stacklevel=6,
        )
    # fmax and fmin ignore missing values.
    flat = np.array(
        [np.all(np.fmax.reduce(one, 1) == np.fmin.reduce(one, 1)) for one in series]
    )
    if steps > 2 and flat.any():
        n, first = int(flat.sum()), int(np.argmax(flat))
        many = "all" if n == len(flat) else f"{n} of {len(flat)}"
        warnings.warn(
            f"{many} training series in X do not change over time, the first at index "
            f"{first}; check that time is the last axis of X, or drop them.",
            UserWarning,
            stacklevel=6,
        )


def _read_array(
    estimator: SeriesEstimator, X: SeriesLike, fitting: bool, dtype: Any
) -> np.ndarray:
    """Return series of equal length on the host, (n_cases, n_channels, n_steps)."""
    if getattr(X, "ndim", 2) > 3:
        wanted = "(n_cases, n_steps) or (n_cases, n_channels, n_steps)"
        raise ValueError(f"X must have shape {wanted}; got shape {np.shape(X)}.")
    options = {"dtype": dtype, "ensure_all_finite": False}  # checked afterwards
    named = {"estimator": estimator, "input_name": "X", **options}
    if getattr(X, "ndim", 0) == 3:
        cube = _check_array(X, allow_nd=True, **named)
        if 0 in cube.shape:
            raise ValueError(f"Found array with 0 channel(s) or step(s): {cube.shape}.")
        match_shape(estimator, *cube.shape[1:], fitting=fitting)
        return cube
    # Series of one channel and equal length: an ordinary scikit-learn table.
    if not fitting and (n := estimator.n_channels_in_) != 1:
        was = f"because {type(estimator).__name__} was fitted with {n} channels"
        wanted = f"X must have shape (n_cases, {n}, n_steps), {was}"
        raise ValueError(f"{wanted}; got shape {np.shape(X)}.")
    # A table with named columns must have the columns of the fit.
    if not fitting and (estimator._any_length or not hasattr(X, "columns")):
        table = _check_array(X, **named)
        validation._check_feature_names(estimator, X, reset=False)
        match_shape(estimator, 1, table.shape[1], fitting)
        return table[:, None, :]
    table = _validate_data(estimator, X, reset=fitting, **options)
    if fitting:
        estimator.n_channels_in_, estimator._any_length = 1, False
    return table[:, None, :]


def _takes(estimator: SeriesEstimator, n_steps: int) -> bool:
    """Return whether the estimator pools over time scales that suit this length."""
    n, far = estimator.n_features_in_, _OTHER_LENGTHS
    near = n_steps >= _FEWEST_STEPS and n <= far * n_steps and n_steps <= far * n
    return estimator._takes_any_length and near


def _check_finite(wrong: np.ndarray, what: str) -> None:
    """Raise an error if any series is ``wrong``, and name the first."""
    if wrong.any():
        takes = "estimators in greenfold.estimators.pooled accept NaN"
        cure = f"; impute such values or drop that series ({takes})."
        raise SeriesError(f"Input X contains {what}, in the", int(np.argmax(wrong)), cure)


def _check_sizes(cube: np.ndarray) -> None:
    """Refuse values so large that all other series vanish next to them."""
    sizes = np.abs(cube).max((1, 2))
    known, index = np.sort(sizes[sizes > 0]), int(np.argmax(sizes))
    usual = known[len(known) // 2 - 1] if len(known) > 1 else sizes[index]
    if sizes[index] / _VANISHING > usual:
        value = f"X holds a value of size {sizes[index]:.3g} in the"
        hides = f", next to which series of the usual size {usual:.3g} vanish"
        raise SeriesError(value, index, f"{hides}; impute it or drop that series.")


def _holds_series(X: object) -> TypeGuard[Sequence[ArrayLike]]:
    """Return whether ``X`` is a list whose entries must be read one by one."""
    if not isinstance(X, list | tuple) or not X:
        return False
    shapes = set()
    for index, one in enumerate(X):
        try:
            shapes.add(np.shape(one))
        except ValueError:
            ragged = "X holds channels of unequal length in the"
            cure = "; pass every series as one array (n_channels, n_steps)."
            raise SeriesError(ragged, index, cure) from None
    ndims = {len(shape) for shape in shapes}
    return ndims == {2} or (ndims == {1} and len(shapes) > 1)


def _read_list(
    estimator: SeriesEstimator,
    X: Sequence[ArrayLike],
    fitting: bool,
    dtype: Any,
    gaps: bool,
) -> list[np.ndarray]:
    found = []
    for index, entry in enumerate(X):
        one = _check_array(
            np.atleast_2d(to_host(entry) if is_array(entry) else np.asarray(entry)),
            dtype=dtype,
            ensure_min_features=0,
            ensure_all_finite=False,
            estimator=estimator,
        )
        if not one.shape[1]:
            raise SeriesError("X holds an empty", index)
        found.append(one)
    test = np.isinf if gaps else lambda one: ~np.isfinite(one)
    wrong = np.array([test(one).any() for one in found])
    _check_finite(wrong, "infinity" if gaps else "NaN or infinity")
    channels, lengths = ({one.shape[axis] for one in found} for axis in (0, 1))
    got = f"{min(channels)} to {max(channels)}"
    wanted = "X must hold series with the same number of channels"
    check.require(len(channels) == 1, f"{wanted}; got {got}.")
    # The lengths in a list may differ.
    longest = max(lengths) if fitting else estimator.n_features_in_
    match_shape(estimator, channels.pop(), longest, fitting)
    if fitting:
        estimator._any_length = len(lengths) > 1
    return found


def _read_foreign(estimator: SeriesEstimator, X: Array, fitting: bool) -> Any:
    """Read an array of PyTorch, CuPy, …, and leave it on its device."""
    xp = namespace(X)
    wanted = "(n_cases, n_steps) or (n_cases, n_channels, n_steps) without empty axes"
    fits, got = X.ndim in (2, 3) and 0 not in X.shape, f"got shape {tuple(X.shape)}"
    check.require(fits, f"X must have shape {wanted}; {got}.")
    if not xp.isdtype(X.dtype, "real floating"):
        if xp.isdtype(X.dtype, "complex floating"):
            raise ValueError("Complex data not supported.")
        X = xp.astype(X, xp.float32)
    if bool(xp.any(xp.isinf(X))):
        raise ValueError("Input X contains infinity.")
    cube = X[:, None, :] if X.ndim == 2 else X
    match_shape(estimator, cube.shape[1], cube.shape[2], fitting)
    return cube


def match_shape(
    estimator: SeriesEstimator, n_channels: int, n_steps: int, fitting: bool
) -> None:
    """Set the numbers of channels and steps, or compare them with those of the fit."""
    if fitting:
        # Otherwise `reset` keeps the names of an earlier table.
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        estimator.n_channels_in_, estimator.n_features_in_ = n_channels, n_steps
        estimator._any_length = False
        return
    expecting, n = f"but {type(estimator).__name__} is expecting", estimator.n_features_in_
    if n_channels != estimator.n_channels_in_:
        wanted = f"{estimator.n_channels_in_} channels as input"
        raise ValueError(f"X has {n_channels} channels, {expecting} {wanted}.")
    if n_steps == n or estimator._any_length or _takes(estimator, n_steps):
        return
    cure = "a pooled estimator takes series of other lengths"
    if estimator._takes_any_length:
        least = max(_FEWEST_STEPS, -(-n // _OTHER_LENGTHS))
        cure = f"series may have {least} to {n * _OTHER_LENGTHS} steps"
    problem = f"X has {n_steps} features, {expecting} {n} features as input"
    raise ValueError(f"{problem}; {cure}.")


def read_aligned(estimator: SeriesEstimator, X: SeriesLike, *, fitting: bool) -> Series:
    """Return finite series aligned at their ends; parameters are as in `read_values`.

    Steps more than ``n_features_in_`` before the end are dropped. If the array is on a GPU,
    networks run there.
    """
    if on_gpu(X):
        found = read_aligned(estimator, to_host(X), fitting=fitting)
        return replace(found, place=cast("Array", X)[:0])
    found = read_values(estimator, X, fitting=fitting)
    n_steps = estimator.n_features_in_
    if not isinstance(found, list) and found.shape[2] == n_steps:
        return Series(found)
    values = np.zeros((len(found), len(found[0]), n_steps))
    present = np.zeros((len(found), n_steps), dtype=bool)
    for row, begun, one in zip(values, present, found, strict=True):
        length = min(one.shape[1], n_steps)
        row[:, n_steps - length :] = one[:, one.shape[1] - length :]
        begun[n_steps - length :] = True
    return Series(values, None if present.all() else present)


def read_labelled(
    estimator: SeriesEstimator,
    X: SeriesLike,
    y: object,
    sample_weight: ArrayLike | None,
    *,
    fitting: bool,
) -> tuple[Series, np.ndarray, np.ndarray]:
    """Return series as in `read_aligned`, with their class labels and weights.

    Series of weight zero are left out.
    """
    found = read_aligned(estimator, X, fitting=fitting)
    labels = read_labels(estimator, y, len(found))
    weights = read_weights(sample_weight, len(labels))
    used = weights > 0
    if used.all():
        return found, labels, weights
    return found[used], labels[used], weights[used]


def read_weights(sample_weight: ArrayLike | None, n_cases: int) -> np.ndarray:
    """Return weights (n_cases,), non-negative and not all zero; for None, ones."""
    if sample_weight is None:
        return np.ones(n_cases)
    weights = check.unmasked(sample_weight, "sample_weight")
    weights = _check_array(
        weights, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    wanted = f"`sample_weight` must have shape ({n_cases},); got shape {weights.shape}."
    check.require(weights.shape == (n_cases,), wanted)
    validation.check_non_negative(weights, "`sample_weight`")
    some = "Sample weights must contain at least one non-zero number."
    check.require(weights.any(), some)
    return moderate(weights)


def read_labels(estimator: SeriesEstimator, y: object, n_cases: int) -> np.ndarray:
    """Return class labels (n_cases,) of any type."""
    labels = validation.column_or_1d(_brought(estimator, y), warn=True)
    _check_array(labels, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(labels)
    return _match_cases(labels, n_cases)


def read_targets(estimator: SeriesEstimator, y: object, n_cases: int) -> np.ndarray:
    """Return targets (n_cases,) or (n_cases, n_targets) of at least two series."""
    targets = _check_array(
        _brought(estimator, y),
        ensure_2d=False,
        dtype=np.float64,
        input_name="y",
        estimator=estimator,
    )
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = validation.column_or_1d(targets, warn=True)
    wanted = "y must have shape (n_cases,) or (n_cases, n_targets)"
    check.require(targets.ndim < 3, f"{wanted}; got shape {targets.shape}.")
    few = "Found array with n_samples=1 while a minimum of 2 is required by"
    check.require(n_cases > 1, f"{few} {type(estimator).__name__}, which holds out one.")
    return _match_cases(targets, n_cases)


def _brought(estimator: SeriesEstimator, y: object) -> Any:
    """Return ``y`` on the host."""
    name = type(estimator).__name__
    check.require(
        y is not None, f"{name} requires y to be passed, but the target y is None."
    )
    y = check.unmasked(host_labels(y) if in_chunks(y) else y, "y")
    return to_host(y) if is_array(y) else y


def _match_cases(y: np.ndarray, n_cases: int) -> np.ndarray:
    unequal = "Found input variables with inconsistent numbers of samples"
    check.require(len(y) == n_cases, f"{unequal}: [{n_cases}, {len(y)}]")
    return y


# Series grouped by length


@dataclass(eq=False)
class SeriesByLength:
    """Series without gaps, grouped by length.

    Each group is a pair of the positions of its series and the series themselves, (n,
    n_channels, n_steps).
    """

    groups: list[tuple[np.ndarray, Any]]
    n_cases: int
    n_channels: int

    def __len__(self) -> int:
        return self.n_cases

    @property
    def lengths(self) -> np.ndarray:
        """Number of steps per series, (n_cases,)."""
        found = np.empty(self.n_cases, dtype=int)
        for cases, values in self.groups:
            found[cases] = values.shape[2]
        return found

    @property
    def order(self) -> np.ndarray:
        """Positions of the series by length, then by their values.

        A random draw in this order does not depend on the order of the input.
        """
        return np.lexsort(self.looks().T[::-1])

    def looks(self) -> np.ndarray:
        """Return numbers (n_cases, …) that distinguish series: size, values and sums."""
        found = np.empty((self.n_cases, _LOOKS + 3))
        for cases, values in self.groups:
            rows = np.nan_to_num(to_host(values).reshape(len(cases), -1).astype(float))
            size = rows.shape[1]
            at = np.linspace(0, size - 1, _LOOKS).astype(int)
            with np.errstate(over="ignore", invalid="ignore"):
                sums = rows.sum(1), (rows * np.arange(size)).sum(1)
            found[cases] = np.column_stack([np.full(len(cases), size), rows[:, at], *sums])
        return found

    def hashes(self) -> np.ndarray:
        """Return a hash of each series, (n_cases,); equal series have equal hashes."""
        found = np.empty(self.n_cases, dtype=np.uint64)
        for cases, values in self.groups:
            found[cases] = content_hashes(to_host(values), values.shape[2])
        return found

    def take(self, chosen: np.ndarray) -> SeriesByLength:
        """Return the series at the positions ``chosen``, in that order.

        For series in chunks, ``chosen`` must be sorted.
        """
        groups, place = [], np.full(self.n_cases, -1)
        place[chosen] = np.arange(len(chosen))
        for cases, values in self.groups:
            at = np.flatnonzero(place[cases] >= 0)
            if len(at):
                at = at[np.argsort(place[cases[at]])]
                taken = namespace(values).take(values, like(at, values), axis=0)
                groups.append((place[cases[at]], taken))
        return SeriesByLength(groups, len(chosen), self.n_channels)

    def each_part(
        self, work: Callable[..., Any], parts: list[np.ndarray], lists: Any, *shared: Any
    ) -> Iterable[Any]:
        """Yield ``work(series of the part, *entries, *shared)`` for each part in turn.

        A part is an array of sorted positions; each of ``lists`` has one entry per part.
        """
        for part, *own in zip(parts, *lists, strict=True):
            yield work(self.take(part), *own, *shared)

    def once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``work(*arguments)``, a result to share in `each_part`."""
        return work(*arguments)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard deviation of each channel, over all series and steps."""
        size = self.largest()
        # The unit of each channel is a power of two, in which no square overflows.
        unit = np.ldexp(1.0, np.frexp(np.where(size > 0, size, 1.0))[1] - 1)
        steps, mean, square = self.sums(unit)
        return mean * unit, np.sqrt(square / np.maximum(steps, 1)) * unit

    def largest(self) -> np.ndarray:
        """Return the largest absolute value of each channel."""
        found = np.zeros(self.n_channels)
        for rows in self._batches():
            found = np.fmax(found, np.fmax.reduce(np.abs(rows), axis=(0, 2)))
        return found

    def sums(self, unit: np.ndarray) -> Sums:
        """Return the `Sums` of each channel, with its values in ``unit`` (n_channels,)."""
        zero = np.zeros(self.n_channels)
        found = zero, zero, zero
        for batch in self._batches():
            rows = batch / unit[:, None]
            known = ~np.isnan(rows)
            count = known.sum(axis=(0, 2))
            own = np.where(known, rows, 0).sum(axis=(0, 2)) / np.maximum(count, 1)
            apart = np.where(known, rows - own[:, None], 0)
            found = _joined_sums(found, (count, own, (apart**2).sum(axis=(0, 2))))
        return found

    def _batches(self, size: int = 2**20) -> Iterator[np.ndarray]:
        """Yield the values in float64 on the host, a few megabytes at a time."""
        for _, values in self.groups:
            n_cases, n_channels, n_steps = values.shape
            for rows in batches(n_cases, n_channels * n_steps, size):
                yield to_host(values[rows, ...]).astype(np.float64)


def _joined_sums(one: Sums, other: Sums) -> Sums:
    steps, mean, square = one
    count, own, apart = other
    change, total = own - mean, np.maximum(steps + count, 1)
    square = square + (apart + change**2 * steps * count / total)
    return steps + count, mean + change * count / total, square


def read_by_length(
    estimator: SeriesEstimator, X: SeriesLike, *, fitting: bool, most: int
) -> SeriesByLength:
    """Return series that may have gaps.

    Series in chunks are brought into memory, unless there are more than ``most``.
    """
    chunks = chunks_of(X)
    if chunks is None:
        return group_by_length(read_values(estimator, X, fitting=fitting, gaps=True))
    match_shape(estimator, *chunks.shape[1:], fitting=fitting)
    made = _ChunkedSeries(chunks)
    return made if len(made) > most else made.take(np.arange(len(made)))


def group_by_length(series: Any) -> SeriesByLength:
    """Return a collection of an array (n_cases, n_channels, n_steps) or a list of series.

    A series runs from its first to its last value, so arrays padded with NaN hold series of
    unequal length. Gaps inside a series are filled with straight lines. A channel without
    any value stays NaN, and is treated as constant at the mean of the training set.
    """
    if isinstance(series, list):
        return _group([_complete(one, i) for i, one in enumerate(series)])
    xp = compat.array_namespace(series)
    gaps = xp.any(xp.isnan(series), axis=(1, 2))
    if not bool(xp.any(gaps)):
        n_cases, n_channels, _ = series.shape
        return SeriesByLength([(np.arange(n_cases), series)], n_cases, n_channels)
    rows = enumerate(zip(to_host(series), to_host(gaps), strict=True))
    made = _group([_complete(one, i) if gap else one for i, (one, gap) in rows])
    made.groups = [(cases, like(values, series)) for cases, values in made.groups]
    return made


def _group(series: list[np.ndarray]) -> SeriesByLength:
    lengths = np.array([one.shape[1] for one in series])
    groups = []
    for length in np.unique(lengths):
        cases = np.flatnonzero(lengths == length)
        groups.append((cases, np.stack([series[i] for i in cases])))
    return SeriesByLength(groups, len(series), series[0].shape[0])


def _complete(one: np.ndarray, index: int) -> np.ndarray:
    """Trim a series to the steps from its first to its last value, and fill its gaps."""
    known = ~np.isnan(one)
    if known.all():
        return one
    steps = np.flatnonzero(known.any(axis=0))
    if len(steps) == 0:
        raise SeriesError("X holds no value at all in the", index)
    one, known = one[:, steps[0] : steps[-1] + 1].copy(), known[:, steps[0] : steps[-1] + 1]
    time = np.arange(one.shape[1])
    for channel, there in zip(one, known, strict=True):
        if there.any() and not there.all():
            channel[~there] = np.interp(time[~there], time[there], channel[there])
    return one


class _ChunkedSeries(SeriesByLength):
    """A collection that stays out of memory and loads a few series at a time."""

    def __init__(self, chunks: Chunks) -> None:
        super().__init__([], chunks.shape[0], chunks.shape[1])
        self.chunks = chunks
        parts = chunks.each(_checked, (chunks.series, chunks.firsts))
        # The workers of a cluster keep the chunks, because every part needs all of them.
        self._parts = chunks.keep(parts, 8.0 * float(np.prod(chunks.shape)))

    @property
    def lengths(self) -> np.ndarray:
        return np.concatenate(self.chunks.collect(self._ask(attrgetter("lengths"))))

    def looks(self) -> np.ndarray:
        return np.concatenate(self.chunks.collect(self._ask(SeriesByLength.looks)))

    def take(self, chosen: np.ndarray) -> SeriesByLength:
        return group_by_length(self.chunks.collect([self._promise(chosen)])[0])

    def each_part(
        self, work: Callable[..., Any], parts: list[np.ndarray], lists: Any, *shared: Any
    ) -> list[Any]:
        series = [self._promise(part) for part in parts]
        own = list(zip(*lists, strict=True))
        return self.chunks.collect(self.chunks.each(_on_part, (series, own), work, *shared))

    def once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        entries = [[argument] for argument in arguments]
        return self.chunks.keep(self.chunks.each(work, entries), 0.0)[0]

    def sums(self, unit: np.ndarray) -> Sums:
        return self.chunks.total(self._ask(SeriesByLength.sums, unit), _joined_sums)

    def largest(self) -> np.ndarray:
        return self.chunks.total(self._ask(SeriesByLength.largest), np.fmax)

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Apply a function to each chunk where it is stored."""
        return self.chunks.each(_answer, (self._parts,), question, *arguments)

    def _promise(self, chosen: np.ndarray) -> Any:
        return self.chunks.join(self.chunks.rows(chosen, self._parts), np.concatenate)


def _checked(X: object, first: int) -> np.ndarray:
    """Return a chunk on the host in floating point; values must be finite or missing."""
    host = check.unmasked(to_host(X), "X", np.nan)
    wanted, got = "hold real numbers of fixed width", f"dtype {host.dtype}"
    check.must(host.dtype.kind in "iuf", "X", wanted, got, TypeError)
    if host.dtype not in (np.float32, np.float64):
        host = host.astype(np.float64)
    if np.isinf(host).any():
        case = first + int(np.argwhere(np.isinf(host))[0][0])
        raise SeriesError("Input X contains infinity, in the", case)
    empty = np.isnan(host).all(axis=(1, 2))
    if empty.any():
        case = first + int(np.argmax(empty))
        raise SeriesError("X holds no value at all in the", case)
    return host


def _answer(X: np.ndarray, question: Callable[..., Any], *arguments: Any) -> Any:
    return question(group_by_length(X), *arguments)


def _on_part(X: np.ndarray, own: tuple[Any, ...], work: Any, *shared: Any) -> Any:
    return work(group_by_length(X), *own, *shared)
