"""The margin, the soft margin, and the Gaussian form of the soft margin."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from .._base import checks as check
from .class_moments import Symmetric


class SoftMargin(NamedTuple):
    """A Gaussian soft margin κ = separation − variance."""

    value: float
    #: v·M, the mean signed distance of the states from the decision plane.
    separation: float
    #: (η/2) vᵀΣv, the penalty on the spread of the states along v.
    variance: float


def gaussian_margin(
    x: np.ndarray, mean: np.ndarray, covariance: Symmetric, eta: float, noise: float = 0.0
) -> SoftMargin:
    """Return κ = x·mean − (η/2)(xᵀ covariance x + noise) of a readout or a kernel x.

    For a pair (u, v), x is the kernel of the pair, with the moments μ and ψ of the stimuli.
    """
    separation = float(x @ mean)
    variance = 0.5 * eta * (float(x @ (covariance @ x)) + noise)
    return SoftMargin(separation - variance, separation, variance)


def labelled(states: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """Return each state y_ν of (n_cases, n_neurons) times its label ζ_ν = ±1."""
    states = check.host_array(states, "states", ndim=(2,))
    signs = check.host_array(labels, "labels", ndim=(1,))
    wanted = f"have one entry per case, {len(states)}"
    check.must(len(signs) == len(states), "labels", wanted, len(signs))
    known, found = np.isin(signs, (-1, 1)).all(), np.unique(signs)[:4].tolist()
    check.must(known, "labels", "be −1 or +1", f"values such as {found}")
    return states * signs[:, None]


def margin(states: ArrayLike, labels: ArrayLike, v: ArrayLike) -> float:
    """Return the margin κ, the minimum of ζ vᵀy (paper, equation 4, `def_margin`).

    Parameters
    ----------
    states : array_like (n_cases, n_neurons)
    labels : array_like (n_cases,)
        ±1.
    v : array_like (n_neurons,)
        Readout. It is not normalised: pass a unit vector to get a distance.
    """
    signed = labelled(states, labels)
    return float((signed @ check.readout_vector(v, signed.shape[1])).min())


def soft_margin(
    states: ArrayLike,
    labels: ArrayLike,
    v: ArrayLike,
    eta: float = 10.0,
    *,
    average: bool = True,
) -> float:
    """Return the soft margin −(1/η) ln⟨exp(−η ζ vᵀy)⟩ (paper, equation 5, ``soft_margin``).

    It is concave in v by Hölder's inequality (paper, equation 14, `Hoelder`) and exceeds
    the margin by at most ln(n_cases)/η. The computation is stable for any η.

    Parameters
    ----------
    states, labels, v
        As in `margin`.
    eta : float
        Control parameter η; large values approach the margin.
    average : bool
        If true, ⟨·⟩ is the mean over the cases, as in the paper's Gaussian form. If false,
        it is the sum, as in the paper's definition; the result is then lower by
        ln(n_cases)/η.
    """
    eta = check.positive(eta, "eta")
    signed = labelled(states, labels)
    exponents = -eta * (signed @ check.readout_vector(v, signed.shape[1]))
    cases = np.log(len(signed)) if average else 0.0
    return float(-(float(np.asarray(logsumexp(exponents))) - cases) / eta)


def state_moments(
    states: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean M = ⟨ζy⟩ and the covariance Σ = cov(ζy) of labelled states.

    They are the moments in the paper's equation 6, `soft_margin_approx_Gaussian`.

    Parameters
    ----------
    states, labels
        As in `margin`.
    weights : array_like (n_cases,), optional
        Non-negative weights of the cases; equal by default.
    """
    signed = labelled(states, labels)
    if weights is None:
        share = np.full(len(signed), 1 / len(signed))
    else:
        share = check.host_array(weights, "weights", ndim=(1,))
        fits = share.shape == (len(signed),) and (share >= 0).all() and share.any()
        wanted = f"be {len(signed)} non-negative numbers, not all zero"
        got = f"shape {share.shape} with minimum {share.min():g}"
        check.must(fits, "weights", wanted, got)
        share = share / share.sum()
    M = share @ signed
    centred = signed - M
    return M, (centred * share[:, None]).T @ centred


def gaussian_soft_margin(
    M: ArrayLike, Sigma: ArrayLike, v: ArrayLike, eta: float = 10.0
) -> SoftMargin:
    """Return κ = v·M − (η/2) vᵀΣv (paper, equation 6, `soft_margin_approx_Gaussian`).

    It equals the soft margin if ζy is Gaussian; otherwise it is the soft margin up to the
    second cumulant. `state_moments` computes M and Σ.
    """
    eta = check.positive(eta, "eta")
    mean = check.host_array(M, "M", ndim=(1,))
    covariance = check.host_array(Sigma, "Sigma", ndim=(2,))
    shape, got = (len(mean), len(mean)), covariance.shape
    check.must(got == shape, "Sigma", f"have shape {shape}", got)
    readout = check.readout_vector(v, len(mean))
    return gaussian_margin(readout, mean, covariance, eta)


def svm_readout(states: ArrayLike, labels: ArrayLike, *, C: float = 1e4) -> np.ndarray:
    """Return the unit readout of maximal margin, from a linear support vector machine.

    Use it as a reference for the readout of the soft margin. The decision plane passes
    through the origin.

    Parameters
    ----------
    states, labels
        As in `margin`.
    C : float
        Penalty on states inside the margin, for states of unit standard deviation; large
        values approach the hard margin.
    """
    from sklearn.svm import LinearSVC  # pyright: ignore[reportMissingTypeStubs]

    signed = labelled(states, labels)
    scale = signed.std()
    check.require(scale, "`states` are all equal, so no readout separates them.")
    signs = check.host_array(labels, "labels").astype(int)
    both = len(np.unique(signs)) > 1
    check.require(both, "`labels` contain only one class; a margin needs two.")
    # `dual=False` is Newton's method; its default tolerance stops it a few percent short.
    made, cost = cast(Any, LinearSVC), check.positive(C, "C")
    machine = made(C=cost, dual=False, tol=1e-10, fit_intercept=False, max_iter=100_000)
    machine.fit(signed * signs[:, None] / scale, signs)
    v = machine.coef_[0]
    return v / np.linalg.norm(v)
