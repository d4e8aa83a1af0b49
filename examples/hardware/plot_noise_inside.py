"""
Noise inside the network
========================

Some nodes are noisy, and the dynamics spread their noise. If you take the noise into
account when you solve for u and v, the readout avoids the noisy nodes.
"""

# %%
# Eight of thirty nodes receive white noise. The covariance of this noise at the readout
# follows from a Lyapunov equation.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Device, Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import synthetic_heartbeats
from greenfold.devices.noise import state_covariance

X, y = synthetic_heartbeats(300, n_steps=20, rng=0)
stimuli = SampleStimuli(X, y)
reservoir = Reservoir.random(30, rng=1)
network = unfold(reservoir, n_steps=20, dt=10 / 20)
noisy = np.arange(30) < 8
without = optimize(network, stimuli)
drawn = optimize(network, stimuli, u=np.random.default_rng(2).standard_normal(30))

# %%
# The left panel shows how the soft margin falls as the noise grows, for three choices of u
# and v. The right panel shows how much of the readout v lies on the noisy nodes:
levels = np.array([0, 0.01, 0.02, 0.03, 0.04])
margins = {
    "random u": [],
    "solved, noise ignored": [],
    "solved, noise included": [],
}
bounds = []
for level in levels:
    P = state_covariance(reservoir, np.where(noisy, level, 0.0), duration=10.0)
    for name, found in (("random u", drawn), ("solved, noise ignored", without)):
        margins[name].append(found.soft_margin - found.eta / 2 * found.v @ P @ found.v)
    solved = optimize(network, stimuli, device=Device(state_noise=P))
    margins["solved, noise included"].append(solved.soft_margin)
    bounds.append(solved.upper_bound)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3), width_ratios=(1.5, 1))
styles = {"C1s--": 1.6, "C0o:": 1.6, "C0o-": 5}  # the widest below the bound
for (name, row), (style, width) in zip(margins.items(), styles.items(), strict=True):
    left.plot(levels, row, style, lw=width, alpha=0.5 if width > 2 else 1, label=name)
left.plot(levels, bounds, "C5--", label="upper bound")
left.set(
    xticks=levels,
    xlabel="intensity of the noise",
    ylabel="soft margin κ",
)
left.legend(loc="lower left", fontsize=7.5)
for place, found in enumerate((without, solved)):
    share = (found.v[noisy] ** 2).sum()
    right.bar(
        place, 1 - share, color="C0", width=0.6, label=None if place else "quiet nodes"
    )
    right.bar(
        place,
        share,
        bottom=1 - share,
        color="C0",
        alpha=0.35,
        width=0.6,
        label=None if place else "noisy nodes",
    )
right.set_xticks([0, 1], ["noise\nignored", "noise\nincluded"])
right.set(ylabel="fraction of |v|²", ylim=(0, 1.25), yticks=[0, 0.5, 1])
right.grid(visible=False, axis="x")
right.legend(loc="upper center", ncols=2)
plt.show()
