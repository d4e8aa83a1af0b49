"""What a margin is made of: means and covariances of the stimuli, linear and bilinear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.printing import Shown
from .._base.threads import with_few_threads
from ..stimuli.base import Stimuli
from ..stimuli.gaussian import GaussianStimuli
from ..systems import System, rows_of
from ..unfolding.unfolding import Unfolding

_Laws = list[tuple[int, float, np.ndarray, np.ndarray]]


@dataclass(frozen=True, eq=False, repr=False)
class MarginParts(Shown):
    """The soft margin κ of a pair (u, v) as a sum of parts (paper, supplement).

    κ = ``mean_linear`` + ``mean_bilinear`` − ``variance_linear`` − ``variance_mixed`` −
    ``variance_bilinear``. The linear parts come from G⁽¹⁾ alone, the bilinear ones from
    G⁽²⁾; a linear system has no bilinear parts.

    Attributes
    ----------
    mean_linear : float
        v·M₀, from the class means of the stimuli.
    mean_bilinear : float
        v·M₁, from their second moments: ``mean_bilinear`` = ``mean_of_means`` +
        ``mean_of_covariances``.
    mean_of_means : float
        The part of v·M₁ from the class means. It is zero for classes with means ±μ.
    mean_of_covariances : float
        The part of v·M₁ from the difference of the class covariances, tr(Cχ).
    variance_linear : float
        (η/2) vᵀΣ₀v, from ψ.
    variance_mixed, variance_bilinear : float
        The parts of (η/2) vᵀΣ₁v of first and second degree in G⁽²⁾: the paper's
        σ₁[u, u, u] and σ₂[u, u, u, u].
    variance_of_higher : float
        The part of ``variance_mixed`` + ``variance_bilinear`` from the third and fourth
        cumulants of the stimuli; zero for Gaussian classes.
    equal_covariances : float
        κ of the same u and v if χ were zero: both classes keep their means and get the
        mean of the two covariances.
    """

    mean_linear: float
    mean_bilinear: float
    mean_of_means: float
    mean_of_covariances: float
    variance_linear: float
    variance_mixed: float
    variance_bilinear: float
    variance_of_higher: float
    equal_covariances: float

    @property
    def soft_margin(self) -> float:
        """κ, the sum of the parts."""
        linear = self.mean_linear - self.variance_linear
        return linear + (self.mean_bilinear - self.variance_mixed - self.variance_bilinear)

    @property
    def from_covariances(self) -> float:
        """The change of κ due to the difference χ of the class covariances."""
        return self.soft_margin - self.equal_covariances

    @property
    def share_of_covariances(self) -> float:
        """The share of the separation v·M that comes from the class covariances."""
        total = self.mean_linear + self.mean_bilinear
        return self.mean_of_covariances / total if total else np.nan

    def _facts(self) -> dict[str, Any]:
        facts = {"soft_margin": self.soft_margin, "mean_linear": self.mean_linear}
        facts |= {"mean_bilinear": self.mean_bilinear}
        facts |= {"variance_linear": self.variance_linear}
        variance = self.variance_mixed + self.variance_bilinear
        return {**facts, "variance_bilinear": variance}

    def __str__(self) -> str:
        return (
            f"separation {self.mean_linear + self.mean_bilinear:.4g}: "
            f"{self.mean_linear:.4g} from the class means (linear), "
            f"{self.mean_of_covariances:.4g} from the class covariances and "
            f"{self.mean_of_means:.4g} from the class means (bilinear)\n"
            f"variance term {self.variance_linear:.4g} (linear) "
            f"{self.variance_mixed:+.4g} (mixed) {self.variance_bilinear:+.4g} (bilinear)\n"
            f"soft margin {self.soft_margin:.4g}; with equal class covariances, this u and "
            f"v would have {self.equal_covariances:.4g}"
        )


@with_few_threads(rows_of)
def margin_parts(
    system: System, stimuli: Stimuli, u: ArrayLike, v: ArrayLike, eta: float = 10.0
) -> MarginParts:
    """Split the soft margin of u and v into parts by stimulus statistics.

    The labelled states are ζy = ζ G⁽¹⁾ux + ζ G⁽²⁾uuxx (paper, equation 13,
    `class-generalized-states-nonlinear`). Each part says which moments of the stimuli it
    comes from, and whether the linear or the bilinear kernel carries it.

    Parameters
    ----------
    system : System
        A linear system, or an `Unfolding` at order 1 with a quadratic gain.
    stimuli : GaussianStimuli or SampleStimuli
    u : array_like (n_inputs,) or (n_inputs, n_channels)
    v : array_like (n_outputs,)
    eta : float

    Examples
    --------
    >>> from greenfold import Gain, GaussianStimuli, Reservoir, optimize, unfold
    >>> from greenfold.analysis import margin_parts
    >>> reservoir = Reservoir.random(20, gain=Gain.quadratic(0.01), rng=0)
    >>> unfolding = unfold(reservoir, n_steps=5, dt=1.0, order=1)
    >>> stimuli = GaussianStimuli.random(5, strength=0.1, rng=1)
    >>> best = optimize(unfolding, stimuli, rng=2)
    >>> parts = margin_parts(unfolding, stimuli, best.u, best.v)
    >>> bool(abs(parts.soft_margin - best.soft_margin) < 1e-12)
    True
    >>> parts.share_of_covariances > 0.5
    True
    """
    eta = check.positive(eta, "eta")
    stimuli.match(system)
    projection = check.input_projection(u, system.n_inputs, stimuli.n_channels)
    readout = check.readout_vector(v, system.n_outputs)
    if system.is_linear:
        a = system.maps.input_response(projection) @ readout
        C = np.zeros((len(a), len(a)))
    else:
        wanted = "be linear, or an Unfolding at order 1 with a quadratic gain"
        fits = isinstance(system, Unfolding) and system.degree == 2
        check.must(fits, "system", wanted, type(system).__name__, TypeError)
        assert isinstance(system, Unfolding)
        kernel = system.kernels(projection, readout)
        a, square = kernel.linear.ravel(), kernel.quadratic
        assert square is not None
        C = square.reshape(a.size, a.size)
    laws: _Laws = stimuli.class_laws
    pooled = sum(weight * S for _, weight, _, S in laws)
    same: _Laws = [(sign, weight, m, np.asarray(pooled)) for sign, weight, m, _ in laws]
    of_means = sum(sign * weight * float(m @ C @ m) for sign, weight, m, _ in laws)
    of_covariances = sum(sign * w * float(np.vdot(C, S)) for sign, w, _, S in laws)
    parts = stimuli.kernel_parts(a, C, eta)
    total = parts.linear.value + parts.mixed.value + parts.bilinear.value
    separation, variance = _gaussian_terms(laws, a, C, eta)
    # Without a bilinear part, only second moments enter; the rest would be rounding.
    higher = total - variance if C.any() else 0.0
    kappa = parts.mean_linear + parts.mean_bilinear - total
    equal, cost = _gaussian_terms(same, a, C, eta)
    return MarginParts(
        mean_linear=parts.mean_linear,
        mean_bilinear=parts.mean_bilinear,
        mean_of_means=of_means,
        mean_of_covariances=of_covariances,
        variance_linear=parts.linear.value,
        variance_mixed=parts.mixed.value,
        variance_bilinear=parts.bilinear.value,
        variance_of_higher=higher,
        equal_covariances=kappa + ((equal - cost) - (separation - variance)),
    )


def with_equal_covariances(stimuli: Stimuli) -> GaussianStimuli:
    """Return Gaussian classes with the same μ and ψ, but χ = 0.

    Use them to see what a non-linear network gains from the covariances of its stimuli:
    with χ = 0 the bilinear kernel contributes nothing to v·M, so no pair (u, v) has a
    larger soft margin in a network of order 1 than in the linear one.

    Parameters
    ----------
    stimuli : GaussianStimuli or SampleStimuli
        Their class means must be ±μ, as `SampleStimuli` makes them by default.
    """
    (_, _, plus, _), (_, _, minus, _) = stimuli.class_laws
    allowed = 1e-9 * float(np.abs(plus - minus).max(initial=0.0))
    opposite = bool(np.abs(plus + minus).max(initial=0.0) <= allowed)
    wanted = "have class means of opposite sign; make them with normalize='paper'"
    check.must(opposite, "stimuli", wanted, "other means")
    mu = stimuli.mu.reshape(stimuli.n_channels, stimuli.n_steps)
    return GaussianStimuli(mu, np.asarray(stimuli.psi))


def _gaussian_terms(
    laws: _Laws, a: np.ndarray, C: np.ndarray, eta: float
) -> tuple[float, float]:
    """Return separation and variance term of a·x + xᵀCx for Gaussian classes."""
    separation, second = 0.0, 0.0
    for sign, weight, m, S in laws:
        mean = float(a @ m + m @ C @ m + np.vdot(C, S))
        slope, CS = a + 2 * C @ m, C @ S
        separation += sign * weight * mean
        inside = float(slope @ S @ slope) + 2 * float(np.vdot(CS, CS.T))
        second += weight * (mean**2 + inside)
    return separation, 0.5 * eta * (second - separation**2)
