"""
Series that are not aligned
===========================

A burst can begin at any time. If you read a reservoir only once, at the end, you miss it.
If you read at every step and pool over time, you find it.
"""

# %%
# Each series contains a slow or a fast burst, which begins at a random time.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import PooledReservoirClassifier, ReservoirClassifier

rng = np.random.default_rng(0)


def draw(n_cases, largest_shift):
    """Make noisy series with a burst of 30 steps, shifted by up to `largest_shift`."""
    y = np.arange(n_cases) % 2
    t = np.arange(100) - 68 + rng.integers(0, largest_shift + 1, (n_cases, 1))
    burst = np.sin(t * (0.5 + 0.3 * y[:, None])) * ((t > 0) & (t < 30))
    return burst + 0.5 * rng.standard_normal(t.shape), y


# %%
# We measure the accuracy of both classifiers as the shifts grow:
shifts = (0, 5, 20, 60)
scores = {"read once": [], "read at every step, pooled": []}
for shift in shifts:
    X, y = draw(100, shift)
    X_test, y_test = draw(300, shift)
    once = ReservoirClassifier(n_neurons=50, random_state=0)
    pooled = PooledReservoirClassifier(n_readouts=16, random_state=0)
    for row, classifier in zip(scores.values(), (once, pooled), strict=True):
        row.append(classifier.fit(X, y).score(X_test, y_test))

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.8))
for label, colour in ((0, "C2"), (1, "C3")):
    for place, series in enumerate(X[y == label][:3]):
        left.plot(
            series - 4 * (2 * place + label),
            color=colour,
            lw=1,
            label=None if place else ("slow burst", "fast burst")[label],
        )
left.set(xlabel="step", ylabel="x, one series below the other", yticks=[])
left.set(title="six series", ylim=(None, 6.5))
left.legend(ncols=2, loc="upper left")
for (name, row), mark in zip(scores.items(), ("s:", "o-"), strict=True):
    right.plot(shifts, row, mark, label=name, color="C4")
right.set(xlabel="largest shift (steps)", ylabel="test accuracy", ylim=(0.45, 1.02))
right.legend(loc="lower left")
plt.show()

# %%
# To find out which of the two suits your series, see :doc:`/howto/unaligned`.
