"""Base class of all stimuli, with helpers for series, labels and class weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import Array, like, to_host
from .._base.printing import Shown
from ..math.class_moments import Symmetric
from ..math.margins import SoftMargin
from ..systems import LinearSystem, System
from .state_moments import Design, Moments

#: "balanced", or one weight per label.
ClassWeight: TypeAlias = str | dict[Any, float] | None


@dataclass(frozen=True, eq=False)
class Series:
    """A batch of series of one or several lengths, aligned at their ends.

    The network is read out at the end of each series. ``values`` (n_cases, n_channels,
    n_steps) are zero before a series begins. ``present`` (n_cases, n_steps) marks the steps
    of each series; it is None if all series have the full length. Networks run on the GPU
    of the array ``place``, or on the host if it is None.
    """

    values: np.ndarray
    present: np.ndarray | None = None
    place: Array | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def n_channels(self) -> int:
        """Number of channels C."""
        return self.values.shape[1]

    @property
    def n_steps(self) -> int:
        """Number of steps K of the longest series."""
        return self.values.shape[2]

    def __getitem__(self, cases: np.ndarray | slice) -> Series:
        present = None if self.present is None else self.present[cases]
        return Series(self.values[cases], present, self.place)

    def moved(self, centre: np.ndarray, scale: float) -> np.ndarray:
        """Return (x − centre) · scale, with zeros before a series begins.

        Zero input keeps the network at rest until the series begins.
        """
        values = (self.values - centre) * scale
        return values if self.present is None else values * self.present[:, None, :]

    def to_network(self, centre: np.ndarray, scale: float) -> Any:
        """Return the result of `moved` on the device on which the network runs."""
        values = self.moved(centre, scale)
        return values if self.place is None else like(values, self.place)


def label_array(labels: ArrayLike | Array, n_cases: int) -> np.ndarray:
    """Return the labels as a host array, with one label of one type per series."""
    array = to_host(check.unmasked(labels, "labels"))
    wanted = f"have one entry per series, shape ({n_cases},)"
    check.must(array.shape == (n_cases,), "labels", wanted, f"shape {array.shape}")
    if array.dtype.kind == "O":
        kinds = sorted({type(label).__name__ for label in array})
        mixed = len(kinds) > 1 or kinds == ["NoneType"]
        check.must(not mixed, "labels", "be of one type", ", ".join(kinds), TypeError)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError("`labels` must not be NaN or infinite.")
    return array


def signs_of(labels: ArrayLike | Array, n_cases: int) -> np.ndarray:
    """Return ζ = ±1 for two labels of any type; the larger label (by sorting) is +1.

    Labels that are already ±1 are kept, even if all are equal.
    """
    array = label_array(labels, n_cases)
    classes = np.unique(array)
    if array.dtype.kind in "if" and np.isin(classes, (-1, 1)).all():
        return array
    return np.where(array == two_classes(classes)[1], 1, -1)


def two_classes(classes: np.ndarray) -> np.ndarray:
    """Return ``classes``, or raise an error unless there are exactly two."""
    got = ", ".join(repr(c) for c in classes[:5].tolist())
    got = f"{len(classes)}: {got}{', …' if len(classes) > 5 else ''}"
    check.must(len(classes) == 2, "labels", "hold exactly two classes", got)
    return classes


def class_share(
    class_weight: ClassWeight, classes: np.ndarray, n_minus: float, n_plus: float
) -> np.ndarray:
    """Return the weights of the two classes, which add to one; see `SampleStimuli`."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.array([0.5, 0.5])
    if class_weight is None:
        return np.array([n_minus, n_plus]) / (n_minus + n_plus)
    try:
        given = np.array([float(class_weight[c]) for c in classes.tolist()])
    except (KeyError, TypeError, ValueError, IndexError):
        given = np.zeros(2)
    positive = (given > 0).all() and np.isfinite(given).all()
    wanted = "be 'balanced', None, or a dict with one positive weight per label"
    fits = isinstance(class_weight, dict) and positive
    check.must(fits, "class_weight", f"{wanted} {classes.tolist()}", repr(class_weight))
    return given / given.sum()


class KernelPart(NamedTuple):
    """A part of (η/2) vᵀΣv, with its gradients in the kernels a and C."""

    value: float
    a_bar: np.ndarray
    C_bar: np.ndarray


class KernelParts(NamedTuple):
    """κ = mean_linear + mean_bilinear − linear − mixed − bilinear.

    ``mean_linear`` and ``mean_bilinear`` are v·M₀ and v·M₁. ``linear`` is (η/2) vᵀΣ₀v;
    ``mixed`` and ``bilinear`` are the parts of (η/2) vᵀΣ₁v of first and of second degree
    in C, the paper's σ₁[u, u, u] and σ₂[u, u, u, u].
    """

    mean_linear: float
    mean_bilinear: float
    linear: KernelPart
    mixed: KernelPart
    bilinear: KernelPart


@dataclass(frozen=True, eq=False, repr=False)
class Stimuli(Shown):
    """Two classes of stimuli with labels ζ = ±1, described by their moments.

    Attributes
    ----------
    mu : ndarray (n_channels · n_steps,)
        μ = ⟨ζx⟩, channel after channel.
    psi : ndarray or Factored (n_channels · n_steps, n_channels · n_steps)
        ψ = cov(ζx), in the same order. For few, long series, only a factor of it is kept.
    n_channels, n_steps : int
    """

    mu: np.ndarray
    psi: Symmetric
    n_channels: int
    n_steps: int

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _facts(self) -> dict[str, Any]:
        facts = {"channels": self.n_channels, "steps": self.n_steps}
        norm = float(np.linalg.norm(self.mu))
        return {**facts, "mu_norm": norm, "separability": self.separability}

    @property
    def separability(self) -> float:
        """Class distance over the spread along μ, ‖μ‖²/√(μᵀψμ); infinite without spread."""
        length = float(self.mu @ self.mu)
        spread = float(np.sqrt(max(self.mu @ self.psi @ self.mu, 0.0)))
        if spread == 0:
            return np.inf if length else 0.0
        return length / spread

    def moments(self, system: System, u: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return M(u) = ⟨ζy⟩ and Σ(u) = cov(ζy) of the states at the readout.

        At order 1, they follow from the kernels of the labelled states (paper, equation 13,
        `class-generalized-states-nonlinear`).

        Their shapes are (n_outputs,) and (n_outputs, n_outputs), for u (n_inputs,) or
        (n_inputs, n_channels).
        """
        projection = check.input_projection(u, system.n_inputs, self.n_channels)
        found = self.moment_map(system)(projection)
        return found.M, found.Sigma

    def moment_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        """Return a differentiable function from u to M(u) and Σ(u).

        The function takes u (n_inputs, n_channels) and returns an object with ``M``,
        ``Sigma`` and ``pull(v, eta)``, the gradient of the soft margin by u at fixed v.
        """
        self.match(system)
        if system.is_linear:
            return lambda u: LinearMoments(self, system.maps, u)
        return self._nonlinear_map(system)

    @property
    def gpu_series(self) -> Any:
        """Series that are on a GPU, where systems then compute; None if they are not."""
        return None

    @property
    def n_series(self) -> int:
        """Number of series that represent the classes; 0 if moments have closed forms."""
        return 0

    def rough_map(
        self, system: System, n_series: int, *, single: bool = True
    ) -> Callable[[np.ndarray], Moments]:
        """Return a cheaper `moment_map` of an integrated system, to start an ascent.

        It uses at most about ``n_series`` series, in single precision if ``single``.
        """
        del n_series, single
        return self.moment_map(system)

    def _nonlinear_map(self, system: System) -> Callable[[np.ndarray], Moments]:
        raise self._linear_only()

    def _linear_only(self) -> TypeError:
        return TypeError(f"{type(self).__name__} has no moments beyond the linear order.")

    def kernel_margin(
        self, a: np.ndarray, C: np.ndarray, eta: float
    ) -> tuple[SoftMargin, np.ndarray, np.ndarray]:
        """Return the soft margin κ of the predictor z = a·x + xᵀCx, ∂κ/∂a and ∂κ/∂C.

        ``a`` has D = n_channels · n_steps entries; C is (D, D) and symmetric.
        """
        raise self._linear_only()

    def kernel_parts(self, a: np.ndarray, C: np.ndarray, eta: float) -> KernelParts:
        """Return the parts of κ that a and C of the predictor a·x + xᵀCx contribute."""
        none_a, none_C = np.zeros_like(a), np.zeros_like(C)
        linear, a_alone, _ = self.kernel_margin(a, none_C, eta)
        square, _, C_alone = self.kernel_margin(none_a, C, eta)
        whole, a_bar, C_bar = self.kernel_margin(a, C, eta)
        # The separation is linear in a and C, so it drops out of the mixed gradients.
        mixed = whole.variance - linear.variance - square.variance
        squared = self.labelled_second_moment - C_alone
        return KernelParts(
            linear.separation,
            square.separation,
            KernelPart(linear.variance, self.mu - a_alone, none_C),
            KernelPart(mixed, a_alone - a_bar, C_alone - C_bar),
            KernelPart(square.variance, none_a, squared),
        )

    @property
    def class_laws(self) -> list[tuple[int, float, np.ndarray, np.ndarray]]:
        """ζ, weight, mean (D,) and covariance (D, D) of each class."""
        raise self._linear_only()

    @property
    def labelled_second_moment(self) -> np.ndarray:
        """Second moment ⟨ζ x xᵀ⟩ (D, D) for quadratic networks; χ for Gaussian classes."""
        total = np.zeros(self.psi.shape)
        for sign, share, mean, inside in self.class_laws:
            total += sign * share * (inside + np.outer(mean, mean))
        return total

    def points(self, degree: int | None, n_series: int) -> Design:
        """Return series and the rule that gives the moments of their states.

        The rule is exact if one exists for states that are polynomials of ``degree`` in the
        stimulus; otherwise about ``n_series`` series are chosen.
        """
        raise TypeError(f"{type(self).__name__} has no series to look at.")

    def fresh_margin(
        self, system: System, u: ArrayLike, v: ArrayLike, eta: float
    ) -> tuple[float, float] | None:
        """Return κ on fresh stimuli and its standard error, or None if there are none."""
        return None

    def match(self, system: System | LinearSystem) -> None:
        """Raise an error if the system was made for another number of steps."""
        match_steps("stimuli", self.n_steps, system)


def match_steps(
    name: str, n_steps: int, system: System | LinearSystem, what: str = ""
) -> None:
    """Raise an error if the system was not made for ``n_steps`` steps."""
    if system.n_steps != n_steps:
        given = f"`{name}` has {what}{n_steps} steps, but the system was made for"
        raise ValueError(f"{given} {system.n_steps}; make it with n_steps={n_steps}.")


class LinearMoments:
    """`Moments` at linear order, which need only μ and ψ of the stimuli."""

    def __init__(self, stimuli: Stimuli, system: LinearSystem, u: np.ndarray) -> None:
        self._stimuli, self._system = stimuli, system
        self._R = system.input_response(u)
        self.M = self._R.T @ stimuli.mu
        Sigma = self._R.T @ stimuli.psi @ self._R
        self.Sigma = (Sigma + Sigma.T) / 2

    def pull(self, v: np.ndarray, eta: float) -> np.ndarray:
        """Return ∂κ/∂u at fixed v."""
        d = self._stimuli.mu - eta * (self._stimuli.psi @ (self._R @ v))
        by_channel = d.reshape(self._stimuli.n_channels, self._stimuli.n_steps)
        return (by_channel @ self._system.readout_response(v)).T
