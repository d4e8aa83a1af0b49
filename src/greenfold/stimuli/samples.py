"""Stimuli given as labelled series, in memory or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .._base import checks as check
from .._base.arrays import like, namespace, on_gpu, to_host
from ..math.covariances import trace
from ..math.margins import SoftMargin
from ..systems import System
from .base import Stimuli, class_share
from .chunked import Gathered, ScatteredDesign, gather, gather_batches, joined
from .chunks import Pieces, is_dask, take
from .class_moments import ClassMoments, labelled_moments
from .design import Design, Moments, WeightedSeries


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SampleStimuli(Stimuli):
    """Labelled series, centred and scaled as the paper does.

    Make one from arrays, ``SampleStimuli(X, labels)``, from a stream,
    `SampleStimuli.from_batches`, or from a dask array, `SampleStimuli.from_dask`. Those
    whose moments were accumulated apart are joined by `SampleStimuli.merge`.

    Parameters
    ----------
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        Of NumPy, PyTorch or CuPy. What can be sliced along its first axis is read piece by
        piece, and again whenever it is needed, in bounded memory: a memory map, a data set
        of HDF5 (``h5py.Dataset``) or Zarr (``zarr.Array``), and what
        `greenfold.datasets.open_series` returns.
    labels : array_like (n_cases,)
        Two different values of any kind. The larger one (by sorting) is ζ = +1.
    class_weight : {"balanced", None} or dict
        "balanced" gives both classes the weight ½, None every series the same weight,
        a dict gives each label its weight.
    normalize : {"paper", None}
        "paper" puts the origin half-way between the class means and scales to ‖μ‖ =
        ``length``; None leaves the series as they are.
    length : float
        ‖μ‖ after normalisation.

    Attributes
    ----------
    classes : ndarray (2,)
        The labels of ζ = −1 and ζ = +1.
    centre : ndarray (n_channels, n_steps)
    scale : float
        Series enter the network as (x − centre) · scale; see `transform`.
    class_share : ndarray (2,)
        Total weight of each class, adding to one.
    series : array (n_cases, n_channels, n_steps)
        The transformed series, where they are in memory.
    signs : ndarray (n_cases,) or None
        ζ of each series.
    """

    classes: np.ndarray
    centre: np.ndarray
    scale: float
    class_share: np.ndarray
    class_moments: tuple[ClassMoments, ClassMoments] = field(repr=False)
    signs: np.ndarray | None = field(repr=False)
    _raw: Any = field(repr=False)
    _weights: np.ndarray | None = field(repr=False)
    _pieces: Pieces | None = field(repr=False)

    def __init__(
        self,
        X: Any,
        labels: Any,
        *,
        class_weight: Any = "balanced",
        normalize: str | None = "paper",
        length: float = 1.0,
    ) -> None:
        self._settle(gather(X, labels), class_weight, normalize, length)

    @classmethod
    def from_dask(
        cls,
        X: Any,
        y: Any,
        *,
        class_weight: Any = "balanced",
        normalize: str | None = "paper",
        length: float = 1.0,
        client: Any = None,
        device: str = "cpu",
    ) -> SampleStimuli:
        """Stimuli whose series stay in the chunks of a dask array.

        The linear order takes one pass: the moments are added up where the chunks are, and
        only they travel. Beyond it the chunks are kept by the workers of the cluster, and
        every evaluation sends u and v to them and gets sums back; what a lost worker held
        is computed again. The result is that of `SampleStimuli` in memory, up to rounding.

        Parameters
        ----------
        X : dask array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            In chunks of any size, which must be known.
        y : array_like or dask array (n_cases,)
            Labels, in any chunks; they are brought here.
        class_weight, normalize, length
            As for `SampleStimuli`.
        client : distributed.Client, optional
            By default the one that is in use. Without any, dask's scheduler of this process
            works, and chunks are made again at every evaluation unless ``X`` is persisted.
        device : str
            Where a worker keeps its chunks and works on them beyond the linear order:
            "cuda" for its GPU (with PyTorch). Chunks that are CuPy arrays already stay
            where they are.

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
        if not is_dask(X):
            raise TypeError(
                f"`X` must be a dask array; got {type(X).__name__}, use "
                "SampleStimuli(X, labels)."
            )
        made = object.__new__(cls)
        made._settle(gather(X, y, client, device), class_weight, normalize, length)
        return made

    @classmethod
    def merge(
        cls,
        parts: Iterable[SampleStimuli],
        *,
        class_weight: Any = "balanced",
        normalize: str | None = "paper",
        length: float = 1.0,
    ) -> SampleStimuli:
        """Join stimuli whose moments were accumulated apart, from these moments alone.

        Parameters
        ----------
        parts : iterable of SampleStimuli
            Of the same two labels and one shape, however each was normalised.
        class_weight, normalize, length
            As for `SampleStimuli`.

        Returns
        -------
        SampleStimuli
            Equal to that of all series together up to rounding, but without the series: it
            serves the linear order.
        """
        made = object.__new__(cls)
        made._settle(joined(parts), class_weight, normalize, length)
        return made

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[tuple[Any, Any]],
        *,
        class_weight: Any = "balanced",
        normalize: str | None = "paper",
        length: float = 1.0,
    ) -> SampleStimuli:
        """Accumulate the moments in one pass over a stream, in bounded memory.

        Parameters
        ----------
        batches : iterable of (X, labels)
            Batches of any size; they need not contain both classes.
        class_weight, normalize, length
            As for `SampleStimuli`.

        Returns
        -------
        SampleStimuli
            Equal to the in-memory one up to rounding, but without the series: it serves
            the linear order. Non-linear orders need the series themselves.
        """
        made = object.__new__(cls)
        made._settle(gather_batches(batches), class_weight, normalize, length)
        return made

    @classmethod
    def settled(
        cls,
        moments: Stimuli,
        X: Any,
        signs: np.ndarray,
        weights: np.ndarray,
        parts: tuple[ClassMoments, ClassMoments],
        *,
        pieces: Pieces | None = None,
        frame: tuple[np.ndarray, float] | None = None,
    ) -> SampleStimuli:
        """Series whose moments are known already.

        Parameters
        ----------
        moments : Stimuli
            μ and ψ of the series.
        X : array (n_cases, n_channels, n_steps) or None
        signs : ndarray (n_cases,)
            ζ of each series.
        weights : ndarray (n_cases,)
            Weight of each series, adding to one.
        parts : two ClassMoments
            Of the classes ζ = −1 and ζ = +1.
        pieces : Pieces, optional
            The series, in place of ``X``.
        frame : (ndarray (n_channels, n_steps), float), optional
            Centre and scale; by default the series are as they enter the network.
        """
        shape = moments.n_channels, moments.n_steps
        centre, scale = frame or (np.zeros(shape), 1.0)
        made = object.__new__(cls)
        values = {
            **vars(moments),
            "classes": np.array([-1, 1]),
            "centre": centre,
            "scale": scale,
            "class_share": np.array([weights[signs == s].sum() for s in (-1, 1)]),
            "class_moments": parts,
            "signs": signs,
            "_raw": X,
            "_weights": weights,
            "_pieces": pieces,
        }
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def _settle(
        self, found: Gathered, class_weight: Any, normalize: str | None, length: float
    ) -> None:
        """Compute everything from the moments of the two classes."""
        parts, classes, shape = found.parts, found.classes, found.shape
        minus, plus = parts
        share = class_share(class_weight, classes, minus.count, plus.count)
        centre, scale = np.zeros_like(minus.mean), 1.0
        if normalize == "paper":
            centre = (plus.mean + minus.mean) / 2
            distance = float(np.linalg.norm(plus.mean - minus.mean)) / 2
            spread = np.sqrt(max(trace(plus.covariance) + trace(minus.covariance), 0.0))
            if distance <= 1e-13 * max(spread, np.abs(centre).max()):
                raise ValueError(
                    "`normalize` = 'paper' scales by the distance of the class means, but "
                    "they coincide; pass normalize=None (the soft margin then rests on the "
                    "variance alone, or on the non-linearity)."
                )
            scale = check.positive(length, "length") / distance
        elif normalize is not None:
            raise ValueError(f"`normalize` must be 'paper' or None; got {normalize!r}.")
        means = [(part.mean - centre) * scale for part in parts]
        mu, psi = labelled_moments(
            means, [part.covariance * scale**2 for part in parts], share
        )
        values = {
            "mu": mu,
            "psi": psi,
            "n_channels": shape[0],
            "n_steps": shape[1],
            "classes": classes,
            "centre": centre.reshape(shape),
            "scale": scale,
            "class_share": share,
            "class_moments": (minus, plus),
            "signs": found.signs,
            "_raw": found.raw,
            "_weights": None,
            "_pieces": found.pieces,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _facts(self) -> dict[str, Any]:
        series = "from a stream" if self.signs is None else len(self.signs)
        shares = ", ".join(f"{share:.3g}" for share in self.class_share)
        facts = {"classes": self.classes, "series": series, "class_share": f"({shares})"}
        return {**facts, **super()._facts()}

    def transform(self, X: Any) -> Any:
        """Treat new series as the training series were: (x − centre) · scale.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)

        Returns
        -------
        array of the same shape and namespace, float64
        """
        checked = check.stimuli(X, self.n_steps)
        if checked.shape[1] != self.n_channels:
            raise ValueError(
                f"`X` must have {self.n_channels} channel(s); got shape "
                f"{tuple(checked.shape)}."
            )
        xp = namespace(checked)
        moved = (xp.astype(checked, xp.float64) - like(self.centre, checked)) * self.scale
        return moved if getattr(X, "ndim", np.ndim(X)) == 3 else moved[:, 0, :]

    @cached_property
    def series(self) -> Any:
        """The transformed series (n_cases, n_channels, n_steps)."""
        if self._pieces is not None:
            raise ValueError(
                "the series of these stimuli lie in pieces and are not brought into "
                "memory; read what you need, and `transform` it."
            )
        if self._raw is None:
            raise ValueError(
                "these stimuli were accumulated from batches and keep no series; make "
                "SampleStimuli(X, labels) from arrays for a non-linear order."
            )
        return self.transform(self._raw)

    @property
    def case_weights(self) -> np.ndarray:
        """Weight of each series, adding to one."""
        signs = self.signs
        if signs is None:
            raise ValueError(
                "stimuli from batches keep no series, hence no weights of them."
            )
        if self._weights is not None:
            return self._weights
        counts = np.array([(signs < 0).sum(), (signs > 0).sum()])
        return (self.class_share / counts)[(signs > 0).astype(int)]

    @property
    def labelled_second_moment(self) -> np.ndarray:
        """⟨ζ x xᵀ⟩ of the transformed series; needs their moments only."""
        total = np.zeros(self.psi.shape)
        moments = zip((-1, 1), self.class_share, self.class_moments, strict=True)
        for sign, share, part in moments:
            mean = (part.mean - self.centre.ravel()) * self.scale
            inside = np.asarray(part.covariance) * self.scale**2
            total += sign * share * (inside + np.outer(mean, mean))
        return total

    def _design(self) -> WeightedSeries:
        return self._scattered or self._in_memory()

    def _in_memory(self) -> Design:
        series = self._resident()  # first: it says what to do where there are none
        weights = self.case_weights
        return Design(series, weights * np.asarray(self.signs), weights)

    def _resident(self) -> Any:
        """The series on the GPU they live on, or as an ndarray."""
        return self.series if on_gpu(self.series) else to_host(self.series)

    @cached_property
    def _scattered(self) -> ScatteredDesign | None:
        if self._pieces is None:
            return None
        weights = self.case_weights
        rule = weights * np.asarray(self.signs), weights
        return ScatteredDesign(self._pieces, *rule, self.centre, self.scale)

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """κ of a·x + xᵀCx on the series, and ∂κ/∂a, ∂κ/∂C."""
        return self._design().kernel_margin(a, C, eta)

    def _nonlinear_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        return self._design().moment_map(system)

    @property
    def n_series(self) -> int:
        """Number of series; 0 for stimuli from a stream, which keep none."""
        return 0 if self.signs is None else len(self.signs)

    def rough_map(
        self, system: System, n_series: int, *, single: bool = True
    ) -> Callable[[np.ndarray], Moments]:
        """Some of the series, evenly chosen from both classes."""
        whole = len(self.case_weights) <= n_series
        design = self._design() if whole else self._some(n_series)
        return design.moment_map(system, single=single)

    def points(self, degree: int | None, n_series: int) -> Design:
        """Series chosen evenly from both classes, which keep their shares."""
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
        if self._pieces is not None:
            some = self.transform(take(self._pieces, index))
        else:
            series = self._resident()
            some = namespace(series).take(series, like(index, series), axis=0)
        return Design(some, weights * signs[index], weights)
