"""
Memory capacity
===============

How well can you recover the input of some steps ago from noisy states? With the solved u,
the network remembers more than with random ones, and comes close to the proven upper bound.
"""

# %%
# The input is white noise. The memory at a delay of k steps is the fraction of the variance
# of the input k steps ago that the readout recovers. The memory capacity is the sum over
# the delays.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Reservoir, memory_capacity, unfold

network = unfold(Reservoir.random(30, tau=2.0, rng=0), n_steps=40, dt=0.5)
delays = np.arange(1, 11)
drawn = memory_capacity(network, "random", delays=delays, rng=7)
solved = memory_capacity(network, delays=delays)
print(f"random {drawn.random.mean():.2f} on average, best of ten {drawn.total:.2f}")
print(f"solved {solved.total:.2f}, upper bound {solved.bound:.2f}")

# %%
# The figure shows the memory at each delay, with the best of ten random projections and
# with the solved one:
figure, axes = plt.subplots(figsize=(6, 2.9))
axes.bar(
    delays - 0.2, drawn.capacity, 0.4, color="C1", label=f"best random u, {drawn.total:.2f}"
)
axes.bar(
    delays + 0.2, solved.capacity, 0.4, color="C0", label=f"solved u, {solved.total:.2f}"
)
axes.set(xlabel="delay (steps)", ylabel="memory", xticks=delays)
axes.legend(title=f"memory capacity (upper bound {solved.bound:.2f})", title_fontsize=8)
axes.grid(visible=False, axis="x")
plt.show()

# %%
# In a terminal, ``greenfold memory`` computes this for your own network.
