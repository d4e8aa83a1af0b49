"""κ at a fixed readout as a function of u: a polynomial of degree four, at O(α).

κ(u) = u·m₀ + uᵀ(m₁ − σ₀)u − σ₁[u, u, u] − σ₂[u, u, u, u] (paper, supplement). The
tensors are never formed: the adjoint of the unfolding gives their contractions with u.
"""

from __future__ import annotations

import numpy as np

from ..math.margins import SoftMargin
from ..math.sphere import maximize_on_sphere
from ..unfolding.unfolding import Unfolding
from .nonlinear import NonlinearProblem


class FixedReadout:
    """The function κ(u) and its gradient at one readout, from the readout's kernels."""

    def __init__(self, problem: NonlinearProblem, v: np.ndarray) -> None:
        assert isinstance(problem.system, Unfolding)
        self._stimuli, self._eta = problem.stimuli, problem.eta
        self._readout = problem.system.readout_kernels(v)

    def __call__(self, u: np.ndarray) -> tuple[SoftMargin, np.ndarray]:
        """Return κ and ∂κ/∂u (n_inputs, n_channels)."""
        kernels = self._readout.at(u)
        a, C = kernels.a, kernels.C
        assert C is not None
        given = a.ravel(), C.reshape(a.size, a.size), self._eta
        margin, a_bar, C_bar = self._stimuli.kernel_margin(*given)
        return margin, kernels.pullback(a_bar.reshape(a.shape), C_bar.reshape(C.shape))


class InputPolynomial:
    """κ at one readout v as a polynomial of degree four in u (paper, supplement).

    κ(u) = u·m₀ + uᵀ(m₁ − σ₀)u − σ₁[u, u, u] − σ₂[u, u, u, u].

    Parameters
    ----------
    problem : NonlinearProblem
        An `Unfolding` at order 1 with a quadratic gain, and its stimuli.
    v : ndarray (n_neurons,)

    Attributes
    ----------
    m0 : ndarray (n_neurons, n_channels)
    m1, sigma0 : ndarray (n_neurons, n_channels, n_neurons, n_channels)
        Matrices on pairs of entries of u.
    """

    def __init__(self, problem: NonlinearProblem, v: np.ndarray) -> None:
        self._eta, self._stimuli = problem.eta, problem.stimuli
        m0, m1, sigma0 = QuadraticInput(problem).matrices(v)
        assert isinstance(problem.system, Unfolding)
        self._readout = problem.system.readout_kernels(v)
        self.m0 = m0.T
        self.m1, self.sigma0 = (one.transpose(1, 0, 3, 2) for one in (m1, sigma0))

    def sigma1(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return σ₁[u, u, u] and its gradient in u, both (η/2) times a third moment.

        The gradient is the contraction of σ₁ with u twice, summed over the three places.
        """
        return self._cost(u, cross=True)

    def sigma2(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """Return σ₂[u, u, u, u] and its gradient in u; see `sigma1`."""
        return self._cost(u, cross=False)

    def _cost(self, u: np.ndarray, *, cross: bool) -> tuple[float, np.ndarray]:
        kernels = self._readout.at(u.reshape(self.m0.shape))
        assert kernels.C is not None
        a, C = kernels.a.ravel(), kernels.C.reshape(kernels.a.size, -1)
        parts = self._stimuli.kernel_parts(a, C, self._eta)
        part = parts.mixed if cross else parts.bilinear
        back = part.a_bar.reshape(kernels.a.shape), part.C_bar.reshape(kernels.C.shape)
        return part.value, kernels.pullback(*back)


class QuadraticInput:
    """The best u for a fixed v without the O(α) terms of Σ (cases A and B).

    It solves the paper's equations 15 and 16, `soft-margin-gradient-u`,
    `soft-margin-gradient-lambda-u`.
    """

    def __init__(self, problem: NonlinearProblem) -> None:
        system, stimuli = problem.system, problem.stimuli
        n = stimuli.n_channels
        if not (isinstance(system, Unfolding) and system.has_kernels_of_all(n)):
            raise ValueError(
                "`method` 'alternating' is the paper's O(α) algorithm. It needs order 1, a "
                "quadratic gain and a readout at the end of a step; use 'ascent' instead."
            )
        self.problem, self.system = problem, system
        self.m1 = system.square_of_input()

    def matrices(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the paper's m₀, m₁ and σ₀ for a readout v, channels before neurons."""
        stimuli = self.problem.stimuli
        rows = self.system.maps.readout_response(v)  # (K, N)
        mu = stimuli.mu.reshape(stimuli.n_channels, -1)
        psi = np.asarray(stimuli.psi).reshape(*mu.shape, *mu.shape)
        half = np.einsum("cndm,np->cpdm", psi, rows)
        sigma0 = 0.5 * self.problem.eta * np.einsum("cpdm,mq->cpdq", half, rows)
        m1 = np.asarray(self.m1(v, stimuli.labelled_second_moment))
        return mu @ rows, m1.reshape(sigma0.shape), sigma0

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """Maximise u·m₀ + uᵀ(m₁ − σ₀)u over unit u."""
        m0, m1, sigma0 = self.matrices(v)
        Q = 2 * (sigma0 - m1).reshape(m0.size, -1)
        u = maximize_on_sphere(m0.ravel(), (Q + Q.T) / 2).v
        return u.reshape(m0.shape).T
