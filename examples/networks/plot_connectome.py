"""
Drive a connectome
==================

Given a wiring diagram, find out how strongly to drive each neuron, and how much you lose if
you can drive only some of them.
"""

# %%
# This synthetic wiring diagram has 120 neurons at random places in a square. Neighbours are
# connected more often than distant neurons, and the strength of the synapses is log-normal.
# Replace it with your own matrix, in which ``weights[i, j]`` is the connection from neuron
# j to neuron i.
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from greenfold import Device, RandomDraws, Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import synthetic_heartbeats

rng = np.random.default_rng(3)
place = rng.uniform(size=(120, 2))
distance = np.linalg.norm(place[:, None] - place, axis=2)
joined = rng.uniform(size=distance.shape) < 0.6 * np.exp(-distance / 0.12)
np.fill_diagonal(joined, val=False)
sign = np.where(rng.uniform(size=120) < 0.7, 1, -1)
coupling = sp.csr_array(joined * rng.lognormal(sigma=0.8, size=distance.shape) * sign)
coupling *= 0.9 / np.abs(np.linalg.eigvals(coupling.toarray())).max()
network = Reservoir(coupling, tau=0.02)  # seconds
print(network)

# %%
# We drive all neurons, or only those near the left edge. The figure shows the bound for
# all neurons; the problem with fewer inputs has a bound of its own.
X, y = synthetic_heartbeats(400, n_steps=50, rng=0)
stimuli = SampleStimuli(X, y)
system = unfold(network, n_steps=50, dt=0.01)
everywhere = optimize(system, stimuli)
edge = np.flatnonzero(place[:, 0] < 0.3)
subset = optimize(system, stimuli, device=Device(inputs=edge))
drawn = optimize(system, stimuli, method=RandomDraws(20), rng=rng)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4), width_ratios=(1.25, 1))
for i, j in zip(*coupling.nonzero(), strict=True):
    left.plot(*place[[i, j]].T, color="black", lw=0.3, alpha=0.25, zorder=1)
most = np.abs(everywhere.u).max()
drive = left.scatter(
    *place.T,
    130 * np.abs(everywhere.u) / most + 4,
    everywhere.u,
    cmap="coolwarm",
    ec="black",
    lw=0.9,
    zorder=2,
    vmin=-most,
    vmax=most,
)
figure.colorbar(drive, ax=left, label="solved u", shrink=0.8)
left.axvline(0.3, color="C5", ls=":", lw=1.5)
left.set(xticks=[], yticks=[], aspect="equal")
left.set_title("input weight of each neuron", size=9)
left.grid(visible=False)
bars = {
    "random u": (drawn.starts.mean(), "C1"),
    "solved,\nleft only": (subset.soft_margin, "C0"),
    "solved,\nall neurons": (everywhere.soft_margin, "C0"),
}
for name, (value, colour) in bars.items():
    right.bar(name, value, color=colour, width=0.6)
right.axhline(everywhere.upper_bound, color="C5", ls="--", lw=1.2)
right.annotate(
    "proven bound",
    (0.4, everywhere.upper_bound),
    (0, 4),
    ha="center",
    textcoords="offset points",
    size=8,
)
right.set_title("random and solved u", size=9)
right.set(ylabel="soft margin κ", ylim=(0, 1.12 * everywhere.soft_margin))
right.grid(visible=False, axis="x")
plt.show()

# %%
# For units, stability and neurons that you cannot read, see :doc:`/howto/own-weights`.
