"""Series of any length, with gaps, as pooling wants them: complete, grouped by length.

What comes before the first and after the last value of a series does not belong to it (so
that arrays padded with NaN hold series of unequal length). Gaps inside are filled by
straight lines between their ends. A channel without any value stays NaN, and is treated as
constant at the mean of the training set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import array_api_compat as compat
import numpy as np

from ..._base.arrays import batches, like, namespace, to_host
from ...stimuli.chunks import Pieces, first_of, rows_of

__all__ = ["Collection", "collect"]

#: Deviations whose squares, summed over any number of values, stay in floating point.
_SQUARES = (1e-140, 1e140)
#: Number of values of every channel, their mean, and the sum of squares around it.
Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(eq=False)
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
    ) -> Iterable[Any]:
        """``work(series of the part, *entries, *shared)`` of one part after the other.

        A part is an array of sorted positions; each of ``lists`` has one entry per part.
        """
        for part, *own in zip(parts, *lists, strict=True):
            yield work(self.take(part), *own, *shared)

    def once(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """``work(*arguments)``, to be given to `each_part`."""
        return work(*arguments)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of every channel over all series and steps."""

        def spread(unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            steps, mean, square = self.sums(unit)
            return mean, np.sqrt(square / np.maximum(steps, 1))

        with np.errstate(over="ignore", invalid="ignore"):
            mean, deviation = spread(np.ones(self.n_channels))
        low, high = _SQUARES
        if ((low < deviation) & (deviation < high)).all():
            return mean, deviation
        # Squares left floating point: count in a unit of each channel, a power of two.
        size = self.largest()
        unit = np.ldexp(1.0, np.frexp(np.where(size > 0, size, 1.0))[1] - 1)
        mean, deviation = spread(unit)
        return mean * unit, deviation * unit

    def largest(self) -> np.ndarray:
        """Largest value of every channel, whatever its sign."""
        found = np.zeros(self.n_channels)
        for rows in self._batches():
            found = np.fmax(found, np.fmax.reduce(np.abs(rows), axis=(0, 2)))
        return found

    def sums(self, unit: np.ndarray) -> Sums:
        """Of the values of every channel in a unit of its own."""
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
        """The values in float64 on the host, a few megabytes at a time."""
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


def collect(series: Any) -> Collection:
    """Complete the series of an array (n_cases, n_channels, n_steps) or a list."""
    if isinstance(series, list):
        return _group([_complete(one, i) for i, one in enumerate(series)])
    xp = compat.array_namespace(series)
    gaps = xp.any(xp.isnan(series), axis=(1, 2))
    if not bool(xp.any(gaps)):
        n_cases, n_channels, _ = series.shape
        return Collection([(np.arange(n_cases), series)], n_cases, n_channels)
    rows = enumerate(zip(to_host(series), to_host(gaps), strict=True))
    made = _group([_complete(one, i) if gap else one for i, (one, gap) in rows])
    made.groups = [(cases, like(values, series)) for cases, values in made.groups]
    return made


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


class ChunkedCollection(Collection):
    """A collection that is not in memory; some series at a time are brought here."""

    def __init__(self, chunks: Pieces) -> None:
        super().__init__([], chunks.shape[0], chunks.shape[1])
        self.chunks = chunks
        parts = chunks.each(_checked, (chunks.series, first_of(chunks)))
        # The workers of a cluster keep them: every part of the series asks for them all.
        self._parts = chunks.keep(parts, 8.0 * float(np.prod(chunks.shape)))

    @property
    def lengths(self) -> np.ndarray:
        return np.concatenate(self.chunks.collect(self._ask(attrgetter("lengths"))))

    def take(self, chosen: np.ndarray) -> Collection:
        return collect(self.chunks.collect([self._promise(chosen)])[0])

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
        return self.chunks.total(self._ask(Collection.sums, unit), _joined_sums)

    def largest(self) -> np.ndarray:
        return self.chunks.total(self._ask(Collection.largest), np.fmax)

    def _ask(self, question: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The question, to be asked of each chunk where it is."""
        return self.chunks.each(_answer, (self._parts,), question, *arguments)

    def _promise(self, chosen: np.ndarray) -> Any:
        return self.chunks.join(rows_of(self.chunks, chosen, self._parts), np.concatenate)


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


def _answer(X: np.ndarray, question: Callable[..., Any], *arguments: Any) -> Any:
    return question(collect(X), *arguments)


def _on_part(X: np.ndarray, own: tuple[Any, ...], work: Any, *shared: Any) -> Any:
    return work(collect(X), *own, *shared)
