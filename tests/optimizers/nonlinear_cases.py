"""Small problems of weakly non-linear networks."""

from greenfold import Gain, GaussianStimuli, unfold
from greenfold.math.margins import gaussian_soft_margin

from ..conftest import small

ETA = 10.0


def setting(
    order=1, n=10, alpha=0.02, strength=1.0, n_channels=1, seed=0, gain=None, g=0.6
):
    """A small network, weak enough in its non-linearity to be trusted."""
    reservoir = small(gain or Gain.quadratic(alpha), n=n, g=g, seed=seed)
    unfolding = unfold(
        reservoir, n_steps=5, dt=0.5, order=order, tol=1e-8 if order else None
    )
    stimuli = GaussianStimuli.random(
        5, strength=strength, n_channels=n_channels, rng=100 + seed
    )
    return unfolding, stimuli


def kappa_of(unfolding, stimuli, found):
    M, Sigma = stimuli.moments(unfolding, found.u)
    return gaussian_soft_margin(M, Sigma, found.v, ETA).value


def judged(found):
    """The verdict on the expansion, which must be there."""
    assert found.validity is not None
    return found.validity
