"""Stimuli given as labelled series: in memory, in chunks, or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, Sliced, is_dask, like, namespace, on_gpu, to_host
from .._base.messages import Argument, Refusal
from ..math.class_moments import ClassMoments, labelled_moments, trace
from ..math.margins import SoftMargin
from ..systems import LinearSystem, System
from .base import ClassWeight, Stimuli, class_share, label_array, two_classes
from .chunks import Chunks, DaskChunks, chunks_of, host_labels, moments_of_classes
from .state_moments import Design, Moments, WeightedSeries


class Normalization(TypedDict, total=False):
    """Options for weighting, centring and scaling the classes; see `SampleStimuli`."""

    class_weight: ClassWeight
    normalize: str | None
    length: float | None


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SampleStimuli(Stimuli):
    """Labelled series, centred and scaled as in the paper.

    Make stimuli from arrays with ``SampleStimuli(X, labels)``, from a stream with
    `SampleStimuli.from_batches`, or from a dask array with `SampleStimuli.from_dask`.
    `SampleStimuli.merge` joins stimuli whose moments were accumulated separately.

    Parameters
    ----------
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        A NumPy, PyTorch or CuPy array, or a source that can be sliced: a memory map, an
        HDF5 data set (``h5py.Dataset``), a Zarr array or the result of
        `greenfold.datasets.open_series`. Such a source is read in chunks whenever it is
        needed, in bounded memory.
    labels : array_like (n_cases,)
        Labels with two different values of any type; the larger value (by sorting) is
        ζ = +1.
    class_weight : {"balanced", None} or dict
        "balanced" gives both classes the weight ½, None gives every series the same weight,
        and a dict maps each label to its weight.
    normalize : {"paper", None}
        "paper" moves the origin to the midpoint of the class means and scales ‖μ‖ to
        ``length``; None keeps the series as they are.
    length : float, optional
        ‖μ‖ after normalisation; 1 by default.
    classes : array_like (2,), optional
        Both labels. Pass them if the series may belong to a single class, for example at
        one of several sites whose moments you `merge`.

    Attributes
    ----------
    classes, class_share : ndarray (2,)
        Labels of ζ = −1 and ζ = +1, and the total weight of each; the weights add to one.
    centre, scale : ndarray (n_channels, n_steps) and float
        Series enter the network as (x − centre) · scale; see `transform`.
    signs : ndarray (n_cases,) or None
        ζ of each series.
    """

    classes: np.ndarray
    centre: np.ndarray
    scale: float
    class_share: np.ndarray
    class_moments: tuple[ClassMoments, ClassMoments] = field(repr=False)
    signs: np.ndarray | None = field(default=None, repr=False)
    _chunks: Chunks | None = field(default=None, repr=False)
    _weights: np.ndarray | None = field(default=None, repr=False)

    def __init__(
        self,
        X: ArrayLike | Array | Sliced | Chunks,
        labels: ArrayLike | Array | Sliced,
        *,
        class_weight: ClassWeight = "balanced",
        normalize: str | None = "paper",
        length: float | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        chunks: Chunks | None = X if isinstance(X, Chunks) else chunks_of(X)
        if isinstance(X, np.memmap):
            chunks = Chunks.of_slices(cast(Sliced, X))
        elif chunks is None:
            chunks = Chunks.of_array(check.stimuli(X, _last_length(X)))
        found = label_array(host_labels(labels), chunks.shape[0])
        known = _known_classes(np.unique(found), classes)
        positive = found == known[1]
        moments = moments_of_classes(chunks, positive, 2)
        self._settle(moments, known, chunks.shape[1:], class_weight, normalize, length)
        self._set(signs=np.where(positive, 1, -1), _chunks=chunks)

    @classmethod
    def from_dask(
        cls,
        X: Sliced,
        y: ArrayLike | Sliced,
        *,
        client: Any = None,
        device: str = "cpu",
        classes: ArrayLike | None = None,
        **options: Unpack[Normalization],
    ) -> SampleStimuli:
        """Make stimuli whose series stay in the chunks of a dask array.

        At linear order, one pass over the data is enough: each worker adds up the moments
        of its chunks and sends only moments. Beyond linear order, the workers keep the
        chunks, and every evaluation sends u and v to them and gets sums back. If a worker
        is lost, its chunks are computed again. Up to rounding, the result equals that of
        `SampleStimuli` in memory.

        Parameters
        ----------
        X : dask array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Chunks may have any size, but the sizes must be known.
        y : array_like or dask array (n_cases,)
            Labels, in any chunks; they are loaded into memory.
        client : distributed.Client, optional
            The client in use by default. Without a client, dask's local scheduler does the
            work; it computes the chunks again at every evaluation unless ``X`` is
            persisted.
        device : str
            Device on which a worker processes its chunks beyond the linear order: "cuda"
            for its GPU (with PyTorch). Chunks that are CuPy arrays stay on their GPU.
        classes : array_like (2,), optional
            Both labels, as for `SampleStimuli`.
        **options
            ``class_weight``, ``normalize`` and ``length``, as for `SampleStimuli`.

        Examples
        --------
        >>> import dask.array as da
        >>> from greenfold import SampleStimuli
        >>> from greenfold.datasets import synthetic_heartbeats
        >>> X, y = synthetic_heartbeats(200, rng=0)
        >>> stimuli = SampleStimuli.from_dask(da.from_array(X, chunks=(60, -1)), y)
        >>> stimuli.mu.shape
        (140,)
        """
        got = f"{type(X).__name__}, use SampleStimuli(X, labels)"
        check.must(is_dask(X), "X", "be a dask array", got, TypeError)
        return cls(DaskChunks(X, client, device), y, classes=classes, **options)

    @classmethod
    def merge(
        cls, parts: Iterable[SampleStimuli], **options: Unpack[Normalization]
    ) -> SampleStimuli:
        """Merge stimuli whose moments were accumulated separately.

        All parts must have the same two labels and the same shape of series. Their
        normalisation may differ, and a part made with ``classes`` may hold a single class.
        The result keeps no series, so you can use it only at linear order. ``options`` are
        ``class_weight``, ``normalize`` and ``length`` of `SampleStimuli`.
        """
        every = list(parts)
        fits = every and all(hasattr(one, "class_moments") for one in every)
        check.require(fits, "`parts` must be one or more SampleStimuli.", TypeError)
        first = every[0]
        for one in every[1:]:
            got = f"series of shape {one.centre.shape} and {first.centre.shape}"
            same = one.centre.shape == first.centre.shape
            check.must(same, "parts", "agree in shape", got)
            got = f"{one.classes.tolist()} and {first.classes.tolist()}"
            same = np.array_equal(one.classes, first.classes)
            check.must(same, "parts", "have the same labels", got)
        sides = zip(*(one.class_moments for one in every), strict=True)
        moments = [reduce(ClassMoments.merge, side) for side in sides]
        return cls._of_moments(moments, first.classes, first.centre.shape, options)

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[tuple[ArrayLike | Array, ArrayLike | Array]],
        *,
        classes: ArrayLike | None = None,
        **options: Unpack[Normalization],
    ) -> SampleStimuli:
        """Accumulate the moments in one pass over a stream, in bounded memory.

        ``batches`` yields pairs (X, labels) of any size; a pair need not contain both
        classes. ``classes`` is as in `SampleStimuli`; ``options`` and the result are as in
        `merge`.
        """
        found: dict[Any, ClassMoments] = {}
        shape: tuple[int, ...] | None = None
        for values, names in _pairs(batches):
            X = check.stimuli(values, shape[1] if shape else _last_length(values))
            shape = shape or tuple(X.shape[1:])
            got = f"series of shape {tuple(X.shape[1:])} and {shape}"
            check.must(tuple(X.shape[1:]) == shape, "batches", "agree in shape", got)
            labels = label_array(names, X.shape[0])
            for label in np.unique(labels).tolist():
                part = ClassMoments.of(X, np.flatnonzero(labels == label))
                found[label] = found[label].merge(part) if label in found else part
        if shape is None:
            raise ValueError("`batches` is empty: no series were given.")
        same = len({isinstance(label, str) for label in found}) == 1
        check.must(same, "labels", "be of one type", "text and numbers", TypeError)
        known = _known_classes(np.array(sorted(found)), classes)
        empty = ClassMoments.empty(shape[0] * shape[1])
        moments = [found.get(label, empty) for label in known.tolist()]
        return cls._of_moments(moments, known, shape, options)

    @classmethod
    def settled(
        cls,
        moments: Stimuli,
        chunks: Chunks,
        signs: np.ndarray,
        weights: np.ndarray,
        parts: Sequence[ClassMoments],
        centre: np.ndarray | None = None,
        scale: float = 1.0,
    ) -> SampleStimuli:
        """Make stimuli from series whose moments are already known.

        The ``weights`` add to one; ``parts`` are the moments of the classes ζ = −1 and +1.
        Without a ``centre``, the series enter the network as they are.
        """
        if centre is None:
            centre = np.zeros((moments.n_channels, moments.n_steps))
        share = np.array([weights[signs == s].sum() for s in (-1, 1)])
        made = object.__new__(cls)
        made._set(**vars(moments), centre=centre, scale=scale, class_share=share)
        made._set(classes=np.array([-1, 1]), class_moments=tuple(parts))
        made._set(signs=signs, _chunks=chunks, _weights=weights)
        return made

    @classmethod
    def _of_moments(
        cls,
        parts: Sequence[ClassMoments],
        classes: np.ndarray,
        shape: tuple[int, ...],
        options: Normalization,
    ) -> SampleStimuli:
        made = object.__new__(cls)
        made._settle(parts, classes, shape, **options)
        return made

    def _settle(
        self,
        parts: Sequence[ClassMoments],
        classes: np.ndarray,
        shape: tuple[int, ...],
        class_weight: ClassWeight = "balanced",
        normalize: str | None = "paper",
        length: float | None = None,
    ) -> None:
        """Compute all attributes from the moments of the two classes."""
        minus, plus = parts
        both = minus.count > 0 and plus.count > 0
        weight = class_weight if both else None
        share = class_share(weight, classes, minus.count, plus.count)
        centre, scale = np.zeros_like(minus.mean), 1.0
        known = normalize in ("paper", None)
        check.must(known, "normalize", "be 'paper' or None", repr(normalize))
        told = length is not None
        check.without_effect(told and normalize is None, "length", "with normalize=None")
        check.without_effect(told and not both, "length", "for a single class")
        if normalize == "paper" and both:
            centre = (plus.mean + minus.mean) / 2
            distance = float(np.linalg.norm(plus.mean - minus.mean)) / 2
            spread = np.sqrt(max(trace(plus.covariance) + trace(minus.covariance), 0.0))
            if distance <= 1e-13 * max(spread, np.abs(centre).max()):
                why = "The series are scaled by the distance between the class means, but "
                cure = "=None (the soft margin then depends on the variance alone, or on "
                advice = "; pass ", Argument("normalize"), f"{cure}the non-linearity)"
                raise Refusal(f"{why}they coincide", advice, ".")
            length = check.positive(1.0 if length is None else length, "length")
            moderate = 1e-100 <= length <= 1e100
            check.must(moderate, "length", "lie between 1e-100 and 1e100", length)
            scale = length / distance
        means = [(part.mean - centre) * scale for part in parts]
        covariances = [part.covariance * scale**2 for part in parts]
        mu, psi = labelled_moments(means, covariances, share)
        self._set(mu=mu, psi=psi, n_channels=shape[0], n_steps=shape[1])
        self._set(classes=classes, class_share=share, class_moments=(minus, plus))
        self._set(centre=centre.reshape(shape), scale=scale)

    def match(self, system: System | LinearSystem) -> None:
        """Raise an error if the number of steps differs or a class is missing."""
        super().match(system)
        only = self.classes.tolist()[self.class_share.argmax()]
        alone = f"`stimuli` hold only class {only!r}; merge them with the other class."
        check.require(bool(self.class_share.all()), alone)

    def _facts(self) -> dict[str, Any]:
        series = "from a stream" if self.signs is None else len(self.signs)
        shares = ", ".join(f"{share:.3g}" for share in self.class_share)
        facts = {"classes": self.classes, "series": series, "class_share": f"({shares})"}
        return {**facts, **super()._facts()}

    def transform(self, X: ArrayLike | Array) -> Any:
        """Transform new series like the training series: (x − centre) · scale.

        ``X`` and the result are (n_cases, n_steps) or (n_cases, n_channels, n_steps), from
        the same array library.
        """
        checked = check.stimuli(X, self.n_steps)
        fits = checked.shape[1] == self.n_channels
        got = f"shape {tuple(checked.shape)}"
        check.must(fits, "X", f"have {self.n_channels} channel(s)", got)
        xp = namespace(checked)
        moved = (xp.astype(checked, xp.float64) - like(self.centre, checked)) * self.scale
        n_axes = getattr(X, "ndim", 0) or np.asarray(X).ndim
        return moved if n_axes == 3 else moved[:, 0, :]

    @cached_property
    def series(self) -> Any:
        """The transformed series (n_cases, n_channels, n_steps)."""
        if self._chunks is None:
            gone = "these stimuli were accumulated from batches and keep no series"
            advice = "make SampleStimuli(X, labels) from arrays for a non-linear order"
            raise ValueError(f"{gone}; {advice}.")
        if not self._chunks.in_memory:
            apart = "the series of these stimuli are in chunks and are not loaded into"
            raise ValueError(f"{apart} memory; read a part and `transform` it.")
        return self.transform(self._chunks.series[0])

    @property
    def case_weights(self) -> np.ndarray:
        """Weight of each series; the weights add to one."""
        signs = self.signs
        if signs is None:
            raise ValueError("stimuli from batches keep no series and so have no weights.")
        if self._weights is not None:
            return self._weights
        counts = np.array([(signs < 0).sum(), (signs > 0).sum()])
        return (self.class_share / counts)[(signs > 0).astype(int)]

    @property
    def class_laws(self) -> list[tuple[int, float, np.ndarray, np.ndarray]]:
        """ζ, weight, mean (D,) and covariance (D, D) of each class, transformed."""
        laws: list[tuple[int, float, np.ndarray, np.ndarray]] = []
        moments = zip((-1, 1), self.class_share, self.class_moments, strict=True)
        for sign, share, part in moments:
            mean = (part.mean - self.centre.ravel()) * self.scale
            laws.append((sign, share, mean, np.asarray(part.covariance) * self.scale**2))
        return laws

    @property
    def _weighted(self) -> WeightedSeries:
        if self._chunks is not None and not self._chunks.in_memory:
            return self._in_chunks
        X = self._resident()  # first, because it explains what to do if there are no series
        weights = self.case_weights
        design = Design(X, weights * np.asarray(self.signs), weights)
        return WeightedSeries(Chunks.of_array(X), [design])

    @cached_property
    def _in_chunks(self) -> WeightedSeries:
        assert self._chunks is not None
        rule = self.case_weights * np.asarray(self.signs), self.case_weights
        return WeightedSeries.of_chunks(self._chunks, *rule, self.centre, self.scale)

    def _resident(self) -> Any:
        """Return the series on their GPU, or as an ndarray."""
        return self.series if on_gpu(self.series) else to_host(self.series)

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """Return κ of a·x + xᵀCx on the series, ∂κ/∂a and ∂κ/∂C."""
        return self._weighted.kernel_margin(a, C, eta)

    def _nonlinear_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        return self._weighted.moment_map(system)

    @property
    def gpu_series(self) -> Any:
        """Series that are on a GPU; None if they are not."""
        if self._chunks is None or not self._chunks.in_memory:
            return None
        first = self._chunks.series[0]
        return first if on_gpu(first) else None

    @property
    def n_series(self) -> int:
        """Number of series; 0 for stimuli from a stream, which keep none."""
        return 0 if self.signs is None else len(self.signs)

    def rough_map(
        self, system: System, n_series: int, *, single: bool = True
    ) -> Callable[[np.ndarray], Moments]:
        """Return a map that uses some of the series, chosen evenly from both classes."""
        whole = len(self.case_weights) <= n_series
        found = self._weighted if whole else self._some(n_series)
        return found.moment_map(system, single=single)

    def points(self, degree: int | None, n_series: int) -> Design:
        """Return series chosen evenly from both classes; the class shares are kept."""
        del degree
        some = self._some(n_series)
        return Design(to_host(some.X), some.first, some.second)

    def _some(self, n_series: int) -> Design:
        signs = np.asarray(self.signs)
        sides = [np.flatnonzero(signs == sign) for sign in (-1, 1)]
        chosen = [side[:: max(1, -(-len(side) // (n_series // 2)))] for side in sides]
        index = np.sort(np.concatenate(chosen))
        weights = self.case_weights[index]
        for sign, share in zip((-1, 1), self.class_share, strict=True):
            side = signs[index] == sign
            each = weights[side] if self._weights is not None else np.ones(side.sum())
            weights[side] = each * (share / each.sum())
        if self._chunks is not None and not self._chunks.in_memory:
            some = self.transform(self._chunks.take(index))
        else:
            series = self._resident()
            some = namespace(series).take(series, like(index, series), axis=0)
        return Design(some, weights * signs[index], weights)

    def split(
        self, held_out: float, rng: np.random.Generator
    ) -> tuple[SampleStimuli, SampleStimuli]:
        """Return stimuli without a share ``held_out`` of each class, and that share.

        Both results use the coordinates of the first, which is normalised like these
        stimuli.
        """
        if self.signs is None or self._chunks is None or not self._chunks.in_memory:
            gone = "these stimuli do not hold them"
            needs = f"`held_out` as a share needs the series in memory, but {gone}"
            raise ValueError(f"{needs}; pass other stimuli to report on, or None.")
        sides: list[list[np.ndarray]] = [[], []]
        for sign in (-1, 1):
            index = rng.permutation(np.flatnonzero(self.signs == sign))
            n_out = min(max(1, round(held_out * len(index))), len(index) - 1)
            wanted, got = "be None if a class has only one series", f"{held_out:g}"
            check.must(n_out > 0, "held_out", wanted, got)
            sides[0].append(index[n_out:])
            sides[1].append(index[:n_out])
        kept, out = (np.sort(np.concatenate(side)) for side in sides)
        X, labels = self._chunks.series[0], self.classes[(self.signs > 0).astype(int)]
        weights = dict(zip(self.classes.tolist(), self.class_share, strict=True))
        own: Normalization = {"class_weight": weights, "normalize": None}
        plain = own.copy()
        if self.scale != 1 or self.centre.any():
            own |= {"normalize": "paper", "length": float(np.linalg.norm(self.mu))}
        first = SampleStimuli(X[kept], labels[kept], **own)
        return first, SampleStimuli(first.transform(X[out]), labels[out], **plain)


def _known_classes(found: np.ndarray, told: ArrayLike | None) -> np.ndarray:
    """Return the two classes ``told``, or those found if ``told`` is None."""
    if told is None:
        return two_classes(found)
    known = two_classes(np.unique(np.asarray(told)))
    strange = np.setdiff1d(found, known)[:3].tolist()
    check.must(not strange, "labels", f"be among `classes` {known.tolist()}", strange)
    return known


def _last_length(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.shape(X)
        except ValueError:  # ragged; `check.stimuli` raises the error
            shape = (0,)
    return int(shape[-1]) if len(shape) else 0


def _pairs(batches: object) -> Iterator[tuple[Any, Any]]:
    pairs = "be an iterable of pairs (X, labels)"
    got = type(batches).__name__
    check.must(isinstance(batches, Iterable), "batches", pairs, got, TypeError)
    for entry in cast(Iterable[tuple[Any, Any]], batches):
        fits = type(entry) in (tuple, list) and len(entry) == 2
        got = f"an entry of type {type(entry).__name__}"
        check.must(fits, "batches", pairs, got, TypeError)
        yield entry
