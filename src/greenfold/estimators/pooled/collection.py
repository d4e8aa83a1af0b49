"""Series of any length, with gaps, as pooling wants them: complete, grouped by length.

What comes before the first and after the last value of a series does not belong to it (so
that arrays padded with NaN hold series of unequal length). Gaps inside are filled by
straight lines between their ends. A channel without any value stays NaN, and is treated as
constant at the mean of the training set.

Series in chunks, of which pooled estimators ask moments of all and some at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import array_api_compat as compat
import numpy as np
from sklearn.utils import validation

from ..._base.arrays import batches, is_array, like, namespace, to_host
from ...stimuli.chunks import Chunks

__all__ = ["Collection", "read_collection"]


# scikit-learn's own types know neither NumPy's dtypes nor arrays of three axes.
_check_array: Any = validation.check_array
_validate_data: Any = validation.validate_data


#: Deviations whose squares, summed over any number of values, stay in floating point.
_SQUARES = (1e-140, 1e140)


#: Number of values of every channel, their mean, and the sum of squares around it.
Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


def joined_sums(one: Sums, other: Sums) -> Sums:
    """Of the values of both."""
    steps, mean, square = one
    count, own, apart = other
    change, total = own - mean, np.maximum(steps + count, 1)
    square = square + (apart + change**2 * steps * count / total)
    return steps + count, mean + change * count / total, square


def in_squares(
    sums: Callable[[np.ndarray], Sums], largest: Callable[[], np.ndarray], n_channels: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every channel, in a unit whose squares exist.

    Parameters
    ----------
    sums : callable
        Of the values in a unit for every channel.
    largest : callable
        Largest value of every channel.
    n_channels : int
    """

    def spread(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        steps, mean, square = sums(unit)
        return mean, np.sqrt(square / np.maximum(steps, 1))

    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = spread(np.ones(n_channels))
    low, high = _SQUARES
    if ((low < deviation) & (deviation < high)).all():
        return mean, deviation
    # Squares left floating point: count in a unit of each channel, a power of two.
    size = largest()
    unit = np.ldexp(1.0, np.frexp(np.where(size > 0, size, 1.0))[1] - 1)
    mean, deviation = spread(unit)
    return mean * unit, deviation * unit


@dataclass(frozen=True, eq=False)
class Collection:
    """Series without gaps, those of one length together.

    Attributes
    ----------
    groups : list of (ndarray of int, array)
        Positions of the series in the collection, and the series (n, n_channels, n_steps).
    n_cases : int
    n_channels : int
    """

    groups: list[tuple[np.ndarray, Any]]
    n_cases: int
    n_channels: int

    def __len__(self) -> int:
        return self.n_cases

    @property
    def lengths(self) -> np.ndarray:
        """Steps of every series, (n_cases,)."""
        found = np.empty(self.n_cases, dtype=int)
        for cases, values in self.groups:
            found[cases] = values.shape[2]
        return found

    def take(self, chosen: np.ndarray) -> Collection:
        """The series at sorted positions ``chosen``, in that order."""
        groups = []
        for cases, values in self.groups:
            at = np.flatnonzero(np.isin(cases, chosen))
            if len(at):
                taken = namespace(values).take(values, like(at, values), axis=0)
                groups.append((np.searchsorted(chosen, cases[at]), taken))
        return Collection(groups, len(chosen), self.n_channels)

    def each_part(
        self, work: Callable[..., Any], parts: list[np.ndarray], lists: Any, *shared: Any
    ) -> Iterator[Any]:
        """``work(series of the part, *entries, *shared)`` of one part after the other.

        Parameters
        ----------
        work : callable
        parts : list of ndarray of int
            Sorted positions.
        lists : sequence of lists
            One entry of each for every part.
        *shared
        """
        for part, *own in zip(parts, *lists, strict=True):
            yield work(self.take(part), *own, *shared)

    def once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """``work(*arguments)``, to be given to `each_part`."""
        return work(*arguments)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every channel over all series and steps."""
        return in_squares(self.sums, self.largest, self.n_channels)

    def largest(self) -> np.ndarray:
        """Largest value of every channel, whatever its sign."""
        found = np.zeros(self.n_channels)
        for rows in self._pieces():
            found = np.fmax(found, np.fmax.reduce(np.abs(rows), axis=(0, 2)))
        return found

    def sums(self, unit: np.ndarray) -> Sums:
        """Of the values of every channel in a unit of its own."""
        zero = np.zeros(self.n_channels)
        found = zero, zero, zero
        for piece in self._pieces():
            rows = piece / unit[:, None]
            known = ~np.isnan(rows)
            count = known.sum(axis=(0, 2))
            own = np.where(known, rows, 0).sum(axis=(0, 2)) / np.maximum(count, 1)
            apart = np.where(known, rows - own[:, None], 0)
            found = joined_sums(found, (count, own, (apart**2).sum(axis=(0, 2))))
        return found

    def _pieces(self, size: int = 2**20) -> Iterator[np.ndarray]:
        """The values in float64 on the host, a few megabytes at a time."""
        for _, values in self.groups:
            n_cases, n_channels, n_steps = values.shape
            for rows in batches(n_cases, n_channels * n_steps, size):
                yield to_host(values[rows, ...]).astype(np.float64)


def read_collection(estimator: Any, X: Any, *, fitting: bool) -> Collection:
    """Check ``X`` the way scikit-learn does, and bring it into groups.

    Parameters
    ----------
    estimator : BaseEstimator
        Its ``n_features_in_`` (steps of the longest series) and ``n_channels_in_`` are set
        when fitting, and compared with afterwards.
    X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps), or list
        A list holds series of shape (n_steps,) or (n_channels, n_steps) of any length. An
        array of another library stays where it is.
    fitting : bool
    """
    if isinstance(X, list | tuple) and (shapes := _shapes(X)) is not None:
        found = _read_list(estimator, X, shapes, fitting)
    elif is_array(X) and not isinstance(X, np.ndarray):
        found = _read_foreign(estimator, X, fitting)
    elif getattr(X, "ndim", 0) == 3:
        cube = _check_array(
            X,
            dtype=[np.float64, np.float32],
            allow_nd=True,
            ensure_all_finite="allow-nan",
            estimator=estimator,
            input_name="X",
        )
        if 0 in cube.shape:
            raise ValueError(f"Found array with 0 channel(s) or step(s): {cube.shape}.")
        match_shape(estimator, cube.shape[1], cube.shape[2], fitting)
        found = cube
    else:
        found = _read_table(estimator, X, fitting)
    if isinstance(found, list):
        return _group([_complete(one, i) for i, one in enumerate(found)])
    return whole_collection(found)


def _shapes(X: Any) -> list[tuple[int, ...]] | None:
    """Shapes of the entries of a list that must be read one by one; None for the rest."""
    if not X:
        return None
    try:
        shapes = [np.shape(one) for one in X]
    except ValueError:  # an entry is itself ragged; scikit-learn says so better
        return None
    ndims = {len(shape) for shape in shapes}
    return shapes if ndims == {2} or (ndims == {1} and len(set(shapes)) > 1) else None


def _read_table(estimator: Any, X: Any, fitting: bool) -> np.ndarray:
    """Series of one channel and equal length: an ordinary scikit-learn table."""
    options = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
    if not fitting and estimator.n_channels_in_ != 1:
        raise ValueError(
            f"X must have shape (n_cases, {estimator.n_channels_in_}, n_steps), as "
            f"{type(estimator).__name__} was fitted with {estimator.n_channels_in_} "
            f"channels; got shape {np.shape(X)}."
        )
    if not fitting and estimator._any_length:
        table = _check_array(X, estimator=estimator, input_name="X", **options)
        return table[:, None, :]
    table = _validate_data(estimator, X, reset=fitting, **options)
    if fitting:
        estimator.n_channels_in_ = 1
        estimator._any_length = False
    return table[:, None, :]


def _read_foreign(estimator: Any, X: Any, fitting: bool) -> Any:
    """An array of PyTorch, CuPy, …, left on its device."""
    xp = namespace(X)
    if X.ndim not in (2, 3) or 0 in X.shape:
        raise ValueError(
            "X must have shape (n_cases, n_steps) or (n_cases, n_channels, n_steps), none "
            f"of them zero; got shape {tuple(X.shape)}."
        )
    if not xp.isdtype(X.dtype, "real floating"):
        if xp.isdtype(X.dtype, "complex floating"):
            raise ValueError("Complex data not supported.")
        X = xp.astype(X, xp.float32)
    if bool(xp.any(xp.isinf(X))):
        raise ValueError("Input X contains infinity.")
    cube = X[:, None, :] if X.ndim == 2 else X
    match_shape(estimator, cube.shape[1], cube.shape[2], fitting)
    return cube


def _read_list(
    estimator: Any, X: Any, shapes: list[tuple[int, ...]], fitting: bool
) -> list[np.ndarray]:
    """Series of any length, one array each."""
    found = []
    for index, entry in enumerate(X):
        one = _check_array(
            np.atleast_2d(to_host(entry) if is_array(entry) else np.asarray(entry)),
            dtype=[np.float64, np.float32],
            ensure_min_features=0,
            ensure_all_finite="allow-nan",
            estimator=estimator,
            input_name="X",
        )
        if one.shape[1] == 0:
            raise ValueError(f"X holds an empty series at index {index}.")
        found.append(one)
    channels = {len(one) for one in found}
    if len(channels) > 1:
        raise ValueError(
            "X must hold series of the same number of channels; got "
            f"{min(channels)} to {max(channels)}."
        )
    lengths = {one.shape[1] for one in found}
    if fitting:
        match_shape(estimator, channels.pop(), max(lengths), fitting)
        estimator._any_length = len(lengths) > 1
    elif channels != {estimator.n_channels_in_}:
        _refuse_channels(estimator, channels.pop())
    return found


def match_shape(estimator: Any, n_channels: int, n_steps: int, fitting: bool) -> None:
    """Set the numbers of channels and steps, or compare with those of the fit."""
    if fitting:
        # `reset` leaves the names of an earlier table behind otherwise.
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        estimator.n_channels_in_, estimator.n_features_in_ = n_channels, n_steps
        estimator._any_length = False
        return
    if n_channels != estimator.n_channels_in_:
        _refuse_channels(estimator, n_channels)
    if n_steps != estimator.n_features_in_ and not estimator._any_length:
        raise ValueError(
            f"X has {n_steps} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def _refuse_channels(estimator: Any, got: int) -> None:
    raise ValueError(
        f"X has {got} channels, but {type(estimator).__name__} is expecting "
        f"{estimator.n_channels_in_} channels as input."
    )


def whole_collection(cube: Any) -> Collection:
    """Series of an array; grouped by length only if values are missing."""
    xp = compat.array_namespace(cube)
    gaps = xp.any(xp.isnan(cube), axis=(1, 2))
    if not bool(xp.any(gaps)):
        n_cases, n_channels, _ = cube.shape
        return Collection([(np.arange(n_cases), cube)], n_cases, n_channels)
    host = to_host(cube)
    whole = ~to_host(gaps)
    series = [
        one if fine else _complete(one, i)
        for i, (one, fine) in enumerate(zip(host, whole, strict=True))
    ]
    made = _group(series)
    return Collection(
        [(cases, like(values, cube)) for cases, values in made.groups],
        made.n_cases,
        made.n_channels,
    )


def _group(series: list[np.ndarray]) -> Collection:
    lengths = np.array([one.shape[1] for one in series])
    groups = []
    for length in np.unique(lengths):
        cases = np.flatnonzero(lengths == length)
        groups.append((cases, np.stack([series[i] for i in cases])))
    return Collection(groups, len(series), series[0].shape[0])


def _complete(one: np.ndarray, index: int) -> np.ndarray:
    """A series from its first to its last value, with the gaps between filled."""
    known = ~np.isnan(one)
    if known.all():
        return one
    steps = np.flatnonzero(known.any(axis=0))
    if len(steps) == 0:
        raise ValueError(f"X holds no value at all in the series at index {index}.")
    one, known = one[:, steps[0] : steps[-1] + 1].copy(), known[:, steps[0] : steps[-1] + 1]
    time = np.arange(one.shape[1])
    for channel, there in zip(one, known, strict=True):
        if there.any() and not there.all():
            channel[~there] = np.interp(time[~there], time[there], channel[there])
    return one


class ChunkCollection:
    """A `Collection` of which some series at a time are brought here.

    Parameters
    ----------
    chunks : Chunks
    """

    def __init__(self, chunks: Chunks) -> None:
        self.chunks, self.n_channels = chunks, chunks.shape[1]
        parts = chunks.each(_checked, (chunks.series, chunks.firsts))
        # The workers of a cluster keep them: every part of the series asks for them all.
        self._parts = chunks.keep(parts, 8.0 * float(np.prod(chunks.shape)))

    def __len__(self) -> int:
        return self.chunks.shape[0]

    @property
    def lengths(self) -> np.ndarray:
        """Steps of every series, (n_cases,)."""
        return np.concatenate(
            self.chunks.collect(self.chunks.each(_lengths, (self._parts,)))
        )

    def take(self, chosen: np.ndarray) -> Collection:
        """The series at sorted positions ``chosen``, in that order, in memory."""
        return whole_collection(self.chunks.collect([self._promise(chosen)])[0])

    def _promise(self, chosen: np.ndarray) -> Any:
        return self.chunks.join(self.chunks.rows(chosen, self._parts), _stacked)

    def each_part(
        self, work: Callable[..., Any], parts: list[np.ndarray], lists: Any, *shared: Any
    ) -> list[Any]:
        """As `Collection.each_part`, where the chunks are."""
        series = [self._promise(part) for part in parts]
        own = list(zip(*lists, strict=True))
        made = self.chunks.each(_on_part, (series, own), work, *shared)
        return self.chunks.collect(made)

    def once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """As `Collection.once`, where the chunks are."""
        entries = [[argument] for argument in arguments]
        return self.chunks.keep(self.chunks.each(work, entries), 0.0)[0]

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every channel over all series and steps."""
        return in_squares(self._moments, self._largest, self.n_channels)

    def _moments(self, unit: np.ndarray) -> Sums:
        parts = self.chunks.each(_moments, (self._parts,), unit)
        return self.chunks.total(parts, joined_sums)

    def _largest(self) -> np.ndarray:
        return self.chunks.total(self.chunks.each(_largest, (self._parts,)), np.fmax)


def _checked(X: Any, first: int) -> np.ndarray:
    """A chunk on the host in floating point, if it is finite or missing."""
    host = to_host(X)
    if host.dtype.kind not in "iuf":
        raise TypeError(
            f"`X` must hold real numbers of fixed width; got dtype {host.dtype}."
        )
    if host.dtype not in (np.float32, np.float64):
        host = host.astype(np.float64)
    if np.isinf(host).any():
        case = first + int(np.argwhere(np.isinf(host))[0][0])
        raise ValueError(f"Input X contains infinity, in the series at index {case}.")
    empty = np.isnan(host).all(axis=(1, 2))
    if empty.any():
        case = first + int(np.argmax(empty))
        raise ValueError(f"X holds no value at all in the series at index {case}.")
    return host


def _stacked(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts)


def _on_part(X: np.ndarray, own: tuple[Any, ...], work: Any, *shared: Any) -> Any:
    return work(whole_collection(X), *own, *shared)


def _lengths(X: np.ndarray) -> np.ndarray:
    return whole_collection(X).lengths


def _moments(X: np.ndarray, unit: np.ndarray) -> Sums:
    return whole_collection(X).sums(unit)


def _largest(X: np.ndarray) -> np.ndarray:
    return whole_collection(X).largest()
