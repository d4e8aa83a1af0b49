"""Patterns that were planted at a known time are found again."""

import numpy as np
import pytest

from greenfold import PooledReservoirClassifier, ReservoirClassifier
from greenfold.analysis import scores_by_stretch

SMALL = {"n_scales": 3, "n_oscillators": 6, "n_readouts": 16, "engine": "array"}
MAKE = {
    "margin": lambda: ReservoirClassifier(n_neurons=30, random_state=0),
    "pooled": lambda: PooledReservoirClassifier(**SMALL, random_state=0),
}
START, STOP = 42, 54


def planted(n=80, n_channels=1, seed=0):
    """Noise with a bump in class 1, always at the same steps."""
    rng = np.random.default_rng(seed)
    X = 0.5 * rng.standard_normal((n, n_channels, 60))
    y = np.arange(n) % 2
    wave = 2 * np.sin(np.arange(STOP - START) * np.pi / (STOP - START))
    X[:, -1, START:STOP] += y[:, None] * wave
    return (X[:, 0] if n_channels == 1 else X), y


@pytest.mark.parametrize("n_channels", [1, 2])
@pytest.mark.parametrize("kind", MAKE)
def test_a_planted_pattern_moves_the_score(kind, n_channels):
    X, y = planted(n_channels=n_channels)
    fitted = MAKE[kind]().fit(X, y)
    found = scores_by_stretch(fitted, X, n_stretches=10)
    inside = (found.edges[:-1] < STOP) & (found.edges[1:] > START)
    # A network that is read once blurs the edges of a pattern; its middle stands out.
    assert inside[found.sizes.argmax()]
    assert found.sizes[inside].mean() > 2 * found.sizes[~inside].mean()
    # Without it, class 1 scores lower; class 0 has no pattern to lose.
    means = [found.changes[y == k][:, inside].mean() for k in (0, 1)]
    assert means[1] < -abs(means[0])


def test_the_kernel_stands_over_a_planted_pattern():
    X, y = planted()
    kernel = MAKE["margin"]().fit(X, y).kernel_.linear[0]
    strength = np.abs(kernel)
    assert START <= strength.argmax() < STOP
    # Twelve of sixty steps hold most of the kernel's weight.
    assert strength[START:STOP].sum() > strength.sum() / 2


def test_a_stretch_becomes_the_line_between_its_ends():
    """For a sum as score, the change is that of the values, computed by hand."""

    class Total:
        def decision_function(self, X):
            return X.sum(axis=-1)

    X = np.array([[0.0, 1.0, 5.0, 5.0, 4.0, 9.0]])
    found = scores_by_stretch(Total(), X, n_stretches=3)
    assert found.edges.tolist() == [0, 2, 4, 6]
    # 0, 1 become 5, 5; 5, 5 become 2, 3; 4, 9 become 5, 5.
    np.testing.assert_allclose(found.changes, [[9.0, -5.0, -3.0]], atol=1e-12)
    straight = np.arange(12.0)[None]
    inner = scores_by_stretch(Total(), straight, n_stretches=4).changes[0, 1:3]
    np.testing.assert_allclose(inner, 0, atol=1e-12)


def test_several_classes_and_wrong_numbers():
    X, _ = planted()
    fitted = MAKE["margin"]().fit(X, np.arange(len(X)) % 3)
    found = scores_by_stretch(fitted, X, n_stretches=6)
    assert found.changes.shape == (len(X), 6, 3)
    assert found.sizes.shape == (6,)
    with pytest.raises(ValueError, match="`n_stretches` must be at most the 60 steps"):
        scores_by_stretch(fitted, X, n_stretches=61)
