"""Series that come with the explorer; drawn, never measured."""

from __future__ import annotations

import numpy as np

from .. import _validation as check
from .make import Source


def which_came_first(
    n_cases: int,
    n_steps: int = 70,
    noise: float = 0.6,
    rng: np.random.Generator | int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw **synthetic** series with two opposite bumps, told apart by their order.

    The bumps come around one third and two thirds of the time, vary in time and height and
    stand on red noise, so that both have to be remembered until the readout.

    Parameters
    ----------
    n_cases : int
    n_steps : int
    noise : float
        Standard deviation of the noise; the bumps are about 1 high.
    rng : numpy Generator, int or None

    Returns
    -------
    X : ndarray (n_cases, n_steps)
    y : ndarray (n_cases,)
        +1 where the upward bump comes first, −1 where it comes second.

    Examples
    --------
    >>> X, y = which_came_first(10, rng=0)
    >>> X.shape, int(y.sum())
    ((10, 70), 0)
    """
    n_cases, n_steps = check.count(n_cases, "n_cases"), check.count(n_steps, "n_steps")
    rng = check.generator(rng)
    t = (np.arange(n_steps) + 0.5) / n_steps
    y = rng.permutation(np.where(np.arange(n_cases) % 2, 1, -1))
    X = np.zeros((n_cases, n_steps))
    for place, sign in ((0.36, 1), (0.68, -1)):
        centre = place + 0.04 * rng.standard_normal((n_cases, 1))
        height = 1 + 0.3 * rng.standard_normal((n_cases, 1))
        X += sign * y[:, None] * height * np.exp(-0.5 * ((t - centre) / 0.05) ** 2)
    # Red noise of unit variance that forgets in a twentieth of the time.
    keep = np.exp(-20 / n_steps)
    walk = rng.standard_normal((n_cases, n_steps))
    for n in range(1, n_steps):
        walk[:, n] = keep * walk[:, n - 1] + np.sqrt(1 - keep**2) * walk[:, n]
    return X + noise * walk, y


def built_in_source(seed: int = 0) -> Source:
    """`which_came_first` as a data set of the explorer's."""
    X, y = which_came_first(500, rng=seed)
    names = np.where(y > 0, "up first", "down first")
    return Source(
        "Which bump came first",
        X[:200],
        names[:200],
        X[200:],
        names[200:],
        "Two opposite bumps in one order or the other, on red noise; drawn by greenfold.",
        n_series=200,
    )
