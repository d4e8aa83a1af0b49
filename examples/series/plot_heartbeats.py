"""
Heartbeats
==========

One network separates two classes of synthetic heartbeats. It has a random input projection
or the solved one, each with its best readout.
"""

# %%
# The network is fixed. The input projection u, one number per neuron, is random or solved.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtr

from greenfold import Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import synthetic_heartbeats

X, y = synthetic_heartbeats(900, n_steps=70, rng=0)
rng = np.random.default_rng(1)
network = unfold(Reservoir.random(100, rng=rng), n_steps=70, dt=10 / 70)
stimuli = SampleStimuli(X[:300], y[:300])

found = {
    "random": optimize(network, stimuli, u=rng.standard_normal(100)),
    "solved": optimize(network, stimuli),
}
print(found["solved"])

# %%
# The figure shows the readout values of 600 new series, and the accuracy with noise on
# every state. A readout of unit norm leaves the size of the noise unchanged, so the
# accuracy has a closed form.
labels = y[300:]
noises = np.array([0, 0.01, 0.02, 0.05, 0.1, 0.2])
figure, panels = plt.subplots(1, 3, figsize=(8.6, 2.8))
for panel, (name, best), colour in zip(panels, found.items(), ("C1", "C0"), strict=False):
    z = network.kernels(best.u, best.v).decision_values(stimuli.transform(X[300:]))
    bins = np.linspace(-0.6, 0.6, 41)
    panel.hist(z[labels == 1], bins, color="C2", alpha=0.6, label="normal")
    panel.hist(z[labels == -1], bins, color="C3", alpha=0.6, label="ectopic")
    panel.axvline(0, color="black", ls="--", lw=1)
    panel.set(
        title=f"{name} u: κ = {best.soft_margin:.3f}", xlabel="readout z = v·y", yticks=[]
    )
    right = [ndtr(labels * z / max(sigma, 1e-9)).mean() for sigma in noises]
    panels[2].plot(
        noises, right, "os"[name == "random"], ls="-", color=colour, label=f"{name} u"
    )
panels[0].legend()
panels[2].set(xlabel="readout noise σ", title="accuracy")
panels[2].legend()
plt.show()

# %%
# Because the gap between the classes is wider, the readout is robust to noise: see
# :doc:`/howto/noisy`. You can change u by hand in :doc:`the explorer </explorer>`.
