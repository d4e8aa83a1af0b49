"""Series read slice by slice, here: a memory map, a data set of HDF5 or Zarr, Parquet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

from .._arrays import BATCH_BYTES

#: Memory that the series of one piece take, in float64.
_PIECE_BYTES = 2**24


class Later:
    """Something to be computed when it is asked for, and kept if it is wanted again."""

    def __init__(self, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self._work, self._arguments = work, arguments
        self._kept: list[Any] | None = None

    def keep(self) -> None:
        """Compute it once only."""
        self._kept = []

    def value(self) -> Any:
        """What it is."""
        if self._kept:
            return self._kept[0]
        found = self._work(*(_value(argument) for argument in self._arguments))
        if self._kept is not None:
            self._kept.append(found)
        return found


def _value(argument: Any) -> Any:
    return argument.value() if isinstance(argument, Later) else argument


class SlicedPieces:
    """Pieces of anything that has a shape, a dtype and can be sliced along its first axis.

    One piece after the other is read, so that memory is bounded however many there are.

    Parameters
    ----------
    source : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        Such as `numpy.memmap`, `h5py.Dataset`, `zarr.Array`.
    """

    def __init__(self, source: Any) -> None:
        shape = tuple(int(n) for n in source.shape)
        self._source = source
        self.device = "cpu"
        n_channels = 1 if len(shape) == 2 else shape[1]
        self.shape = (shape[0], n_channels, shape[-1])
        size = int(np.prod(self.shape[1:]))
        rows = max(1, _PIECE_BYTES // (8 * size))
        # A file in chunks is read in whole ones, where these are not far apart in size.
        chunks = getattr(source, "chunks", None)
        if chunks and chunks[0] and int(chunks[0]) <= 4 * rows:
            rows = max(1, rows // int(chunks[0])) * int(chunks[0])
        edges = [*range(0, shape[0], rows), shape[0]]
        self._slices = [slice(a, b) for a, b in pairwise(edges)]
        self.sizes = tuple(part.stop - part.start for part in self._slices)
        self.series: list[Any] = [Later(self._read, (part,)) for part in self._slices]

    def _read(self, part: slice) -> np.ndarray:
        values = np.asarray(self._source[part])
        return values[:, None, :] if values.ndim == 2 else values

    def share(self, value: Any) -> Any:
        """The value itself."""
        return value

    def each(
        self, work: Callable[..., Any], lists: Sequence[Sequence[Any]], *shared: Any
    ) -> list[Any]:
        """One `Later` a piece."""
        entries = zip(*lists, strict=True)
        return [Later(work, (*own, *shared)) for own in entries]

    def keep(self, parts: list[Any], n_bytes: float) -> list[Any]:
        """Keep them where they are small; else each is computed whenever it is needed."""
        if n_bytes <= BATCH_BYTES:
            for part in parts:
                part.keep()
        return parts

    def join(self, parts: list[Any], work: Callable[[list[Any]], Any]) -> Any:
        """One `Later`."""
        return Later(lambda *found: work(list(found)), parts)

    def total(
        self,
        parts: list[Any],
        merge: Callable[[Any, Any], Any],
        finish: Callable[..., Any] | None = None,
        *shared: Any,
    ) -> Any:
        """One part after the other."""
        found = reduce(merge, (part.value() for part in parts))
        return found if finish is None else finish(found, *shared)

    def collect(self, parts: list[Any]) -> list[Any]:
        """All of them."""
        return [part.value() for part in parts]
