"""
A binary mask for a photonic delay loop
=======================================

A modulator with two states drives a photonic delay loop, so the entries of the mask are ±1.
We compare the solved mask with random masks and with the proven upper bound.
"""

# %%
# A node with delayed feedback acts like a ring of virtual nodes: each of them drives the
# next one in the following round. We use the linear approximation of this ring.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Device, EchoStateNetwork, SampleStimuli, optimize, unfold
from greenfold.datasets import synthetic_heartbeats

N = 50
loop = unfold(EchoStateNetwork.cycle(N, weight=0.85), n_steps=40)
X, y = synthetic_heartbeats(300, n_steps=40, rng=0)
stimuli = SampleStimuli(X, y)

free = optimize(loop, stimuli)
binary = optimize(loop, stimuli, device=Device(mask="sign"), rng=0)
rng = np.random.default_rng(1)
signs = rng.choice([-1.0, 1.0], (30, N))
drawn = np.array([optimize(loop, stimuli, u=one).soft_margin for one in signs])
print(f"random ±1 masks {drawn.mean() / free.upper_bound:.0%} of the bound, on average")
print(f"solved ±1 mask  {binary.share:.0%}")

# %%
# The figure shows the two masks over one round, and the soft margins of all masks:
figure, panels = plt.subplots(3, 1, figsize=(6.8, 3.8), height_ratios=(1, 1, 1.5))
for axes, mask, colour, name in (
    (panels[0], signs[0], "C1", "random mask"),
    (panels[1], np.sign(binary.u), "C0", "solved mask"),
):
    axes.step(np.arange(N), mask, colour, where="mid")
    axes.fill_between(np.arange(N), mask, step="mid", color=colour, alpha=0.2, lw=0)
    axes.set(yticks=[-1, 1], ylabel=name.replace(" ", "\n"), xlim=(0, N - 1), xticks=[])
    axes.grid(visible=False)
panels[1].set(xlabel="virtual nodes in one round")
axes = panels[2]
axes.plot(drawn, np.zeros_like(drawn), "C1|", ms=14, label="30 random ±1 masks")
axes.plot(binary.soft_margin, 0, "C0D", ms=7, label="solved ±1 mask")
axes.plot(free.soft_margin, 0, "C0o", mfc="none", ms=7, label="solved, any u")
axes.axvline(free.upper_bound, ymax=0.5, color="C5", ls="--", label="upper bound")
axes.set(
    xlabel="soft margin κ", yticks=[], xlim=(0, 1.08 * free.soft_margin), ylim=(-1, 2.6)
)
axes.legend(ncols=2, loc="upper left")
plt.show()

# %%
# For masks with more levels, with non-negative entries, or for only some of the inputs, see
# :doc:`/howto/masks`.
