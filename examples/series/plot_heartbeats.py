"""
Heartbeats
==========

One network separates two classes of synthetic heartbeats. We compare a random input
projection with the solved one, each with its best readout.
"""

# %%
# Both cases share the same network. Only the input projection u, one number per neuron,
# and the readout v differ.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import (
    Reservoir,
    ReservoirClassifier,
    SampleStimuli,
    noisy_accuracy,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats

X, y = synthetic_heartbeats(1200, n_steps=70, rng=0)
X_train, y_train, X_test, y_test = X[:300], y[:300], X[300:], y[300:]
rng = np.random.default_rng(1)
network = unfold(Reservoir.random(100, rng=rng), n_steps=70, dt=10 / 70)
stimuli = SampleStimuli(X_train, y_train)

found = {
    "random": optimize(network, stimuli, u=rng.standard_normal(100)),
    "solved": optimize(network, stimuli),
}
print(found["solved"])

# %%
# With noise on every state, we measure the accuracy of a classifier. It chooses η, the
# weight of the variance in κ, by cross-validation at each noise level. The curves are means
# over five networks.
noises = (0, 0.01, 0.02, 0.05, 0.1, 0.2)


def accuracy(projection, sigma, seed):
    """Return the expected accuracy on the test series under readout noise."""
    classifier = ReservoirClassifier(
        input_projection=projection, readout_noise=sigma, random_state=seed
    ).fit(X_train, y_train)
    return noisy_accuracy(classifier, X_test, y_test, sigma)


# %%
# The figure shows the readout values of 900 new series at η = 10, and the accuracy under
# noise:
figure, panels = plt.subplots(1, 3, figsize=(8.6, 2.8))
bins = np.linspace(-0.6, 0.6, 41)
for panel, (name, best) in zip(panels, found.items(), strict=False):
    z = network.kernels(best.u, best.v).decision_values(stimuli.transform(X_test))
    panel.hist(z[y_test == 1], bins, color="C2", alpha=0.6, label="normal")
    panel.hist(z[y_test == -1], bins, color="C3", alpha=0.6, label="ectopic")
    panel.axvline(0, color="black", ls=":", lw=1, label="threshold")
    panel.set(
        title=f"{name} u: κ = {best.soft_margin:.3f}",
        xlabel="readout z = v·y",
        ylabel="number of series",
    )
panels[0].legend(loc="upper left", handlelength=1.2)
for name, style in (("random", "C1s--"), ("solved", "C0o-")):
    values = [np.mean([accuracy(name, s, seed) for seed in range(5)]) for s in noises]
    panels[2].plot(noises, values, style, label=f"{name} u")
panels[2].set(xlabel="readout noise σ", ylabel="test accuracy", title="accuracy")
panels[2].legend()
plt.show()

# %%
# With the solved u, the two classes are farther apart, so the readout is more robust to
# noise: see :doc:`/howto/noisy`. You can change u by hand in
# :doc:`the explorer </explorer>`.
