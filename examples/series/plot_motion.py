"""
Motion in several channels
==========================

The accelerations along three axes form one stimulus with three channels. The solved u shows
which axes matter.
"""

# %%
# We simulate a sensor on a wrist and two kinds of motion. Both swing along x. Along y, one
# motion is ahead of x and the other is behind. Along z, there is only noise.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Reservoir, SampleStimuli, optimize, unfold

rng = np.random.default_rng(0)
n_cases, n_steps = 400, 50
labels = np.where(np.arange(n_cases) % 2, 1, -1)
phase = np.linspace(0, 4 * np.pi, n_steps) + 0.3 * rng.standard_normal((n_cases, 1))
lead = labels[:, None] * np.pi / 4
X = np.stack([np.sin(phase), np.sin(phase + lead), np.zeros_like(phase)], axis=1)
X += 0.6 * rng.standard_normal(X.shape)
print(X.shape, "cases, channels, steps")

# %%
# Here, u is a matrix with one column per channel. The solution still comes with a
# certificate: a proof that no better u and v exist.
network = unfold(Reservoir.random(60, rng=rng), n_steps=n_steps, dt=0.2)
best = optimize(network, SampleStimuli(X[:200], labels[:200]))
kernel = network.kernels(best.u, best.v)
print(best)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.8), width_ratios=(1, 1.6))
left.bar(["x", "y", "z"], (best.u**2).sum(0), color="C0")
left.set(xlabel="axis of the sensor", ylabel="fraction of |u|²", title="input per axis")
left.set(ylim=(0, 1))
for name, weights, style in zip("xyz", kernel.linear, ("-", "--", ":"), strict=True):
    right.plot(np.arange(n_steps) * 0.2, weights, "C0" + style, label=f"axis {name}")
right.set(xlabel="time", ylabel="weight of the predictor", title="the kernel")
right.legend()
plt.show()

# %%
# We measure the accuracy on new series:
stimuli = SampleStimuli(X[:200], labels[:200])
hits = kernel.predict(stimuli.transform(X[200:])) == labels[200:]
print(f"accuracy {hits.mean():.3f}")
