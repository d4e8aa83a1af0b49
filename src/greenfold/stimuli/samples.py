"""Stimuli given as labelled series, in memory or as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from .. import _validation as check
from .._arrays import like, namespace, on_gpu, to_host
from ..covariances import trace
from ..margins import SoftMargin
from ..systems import System
from .base import Stimuli
from .class_moments import ClassMoments, labelled_moments
from .design import Design, Moments


@dataclass(frozen=True, eq=False, init=False, repr=False)
class SampleStimuli(Stimuli):
    """Labelled series, centred and scaled as the paper does.

    Make one from arrays, ``SampleStimuli(X, labels)``, or from a stream,
    `SampleStimuli.from_batches`.

    Parameters
    ----------
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
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
    series : array (n_cases, n_channels, n_steps) or None
        The transformed series; None for stimuli from a stream.
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

    def __init__(
        self,
        X: Any,
        labels: Any,
        *,
        class_weight: Any = "balanced",
        normalize: str | None = "paper",
        length: float = 1.0,
    ) -> None:
        X = check.stimuli(X, _last_length(X))
        labels = _label_array(labels, X.shape[0])
        classes = _two_classes(np.unique(labels))
        signs = np.where(labels == classes[1], 1, -1)
        parts = [ClassMoments.of(X, np.flatnonzero(signs == s)) for s in (-1, 1)]
        self._settle(parts, classes, X.shape[1:], class_weight, normalize, length, signs, X)

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
        found: dict[Any, ClassMoments] = {}
        shape: tuple[int, ...] | None = None
        for X, labels in _pairs(batches):
            X = check.stimuli(X, shape[1] if shape else _last_length(X))
            shape = shape or tuple(X.shape[1:])
            if tuple(X.shape[1:]) != shape:
                raise ValueError(
                    f"`batches` must agree in shape: one holds series of shape "
                    f"{tuple(X.shape[1:])}, the first one of {shape}."
                )
            labels = _label_array(labels, X.shape[0])
            for label in np.unique(labels).tolist():
                part = ClassMoments.of(X, np.flatnonzero(labels == label))
                found[label] = found[label].merge(part) if label in found else part
        if shape is None:
            raise ValueError("`batches` is empty: no series were given.")
        if len({isinstance(label, str) for label in found}) > 1:
            raise TypeError("`labels` must be of one kind; got text and numbers.")
        classes = _two_classes(np.array(sorted(found)))
        made = object.__new__(cls)
        made._settle(
            [found[label] for label in classes.tolist()],
            classes,
            shape,
            class_weight,
            normalize,
            length,
            None,
            None,
        )
        return made

    @classmethod
    def settled(
        cls,
        moments: Stimuli,
        X: Any,
        signs: np.ndarray,
        weights: np.ndarray,
        parts: tuple[ClassMoments, ClassMoments],
    ) -> SampleStimuli:
        """Series whose moments are known already, as they enter the network.

        Parameters
        ----------
        moments : Stimuli
            μ and ψ of the series.
        X : array (n_cases, n_channels, n_steps)
        signs : ndarray (n_cases,)
            ζ of each series.
        weights : ndarray (n_cases,)
            Weight of each series, adding to one.
        parts : two ClassMoments
            Of the classes ζ = −1 and ζ = +1.
        """
        made = object.__new__(cls)
        values = {
            **vars(moments),
            "classes": np.array([-1, 1]),
            "centre": np.zeros(X.shape[1:]),
            "scale": 1.0,
            "class_share": np.array([weights[signs == s].sum() for s in (-1, 1)]),
            "class_moments": parts,
            "signs": signs,
            "_raw": X,
            "_weights": weights,
        }
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def _settle(
        self, parts, classes, shape, class_weight, normalize, length, signs, raw
    ) -> None:
        """Compute everything from the moments of the two classes."""
        minus, plus = parts
        share = _class_share(class_weight, classes, minus.count, plus.count)
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
            "signs": signs,
            "_raw": raw,
            "_weights": None,
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

    def _design(self) -> Design:
        series = self._resident()  # first: it says what to do where there are none
        weights = self.case_weights
        return Design(series, weights * np.asarray(self.signs), weights)

    def _resident(self) -> Any:
        """The series on the GPU they live on, or as an ndarray."""
        return self.series if on_gpu(self.series) else to_host(self.series)

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
        if len(self.case_weights) <= n_series:
            design = self._design()
        else:
            design = self._some(n_series)
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
        series = self._resident()
        some = namespace(series).take(series, like(index, series), axis=0)
        return Design(some, weights * signs[index], weights)


def _last_length(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.shape(X)
        except ValueError:  # ragged; `check.stimuli` says so
            shape = (0,)
    return int(shape[-1]) if len(shape) else 0


def _pairs(batches: Any) -> Iterator[tuple[Any, Any]]:
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"`batches` must be an iterable of (X, labels); got {type(batches).__name__}."
        )
    for entry in batches:
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise TypeError(
                "`batches` must be an iterable of pairs (X, labels); got an entry of type "
                f"{type(entry).__name__}."
            )
        yield entry[0], entry[1]


def _label_array(labels: Any, n_cases: int) -> np.ndarray:
    array = to_host(labels)
    if array.ndim != 1 or len(array) != n_cases:
        raise ValueError(
            f"`labels` must have one entry per series, shape ({n_cases},); got shape "
            f"{array.shape}."
        )
    if array.dtype.kind == "O":
        kinds = sorted({type(label).__name__ for label in array})
        if len(kinds) > 1 or kinds == ["NoneType"]:
            raise TypeError(f"`labels` must be of one kind; got {', '.join(kinds)}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("`labels` must not be NaN or infinite.")
    return array


def signs_of(labels: Any, n_cases: int) -> np.ndarray:
    """ζ = ±1 of labels of any kind: the larger of two (by sorting) is +1.

    Labels that are ±1 already are left alone, of one class too.
    """
    array = _label_array(labels, n_cases)
    classes = np.unique(array)
    if array.dtype.kind in "if" and np.isin(classes, (-1, 1)).all():
        return array
    return np.where(array == _two_classes(classes)[1], 1, -1)


def _two_classes(classes: np.ndarray) -> np.ndarray:
    if len(classes) != 2:
        shown = ", ".join(repr(c) for c in classes[:5].tolist())
        raise ValueError(
            f"`labels` must hold exactly two classes; got {len(classes)}: {shown}"
            f"{', …' if len(classes) > 5 else ''}."
        )
    return classes


def _class_share(class_weight: Any, classes: np.ndarray, n_minus: int, n_plus: int):
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.array([0.5, 0.5])
    if class_weight is None:
        return np.array([n_minus, n_plus]) / (n_minus + n_plus)
    if isinstance(class_weight, dict):
        try:
            given = np.array([float(class_weight[c]) for c in classes.tolist()])
        except (KeyError, TypeError, ValueError):
            given = np.zeros(2)
        if (given > 0).all() and np.isfinite(given).all():
            return given / given.sum()
    raise ValueError(
        "`class_weight` must be 'balanced', None, or a dict with a positive weight for "
        f"each of the labels {classes.tolist()}; got {class_weight!r}."
    )
