"""
An echo state network
=====================

This is a leaky tanh network in discrete time, as in reservoirpy. Instead of leaving its
input weights ``Win`` random, we solve for them.
"""

# %%
# The network is sparse and leaky, with spectral radius 0.9. The input is so strong that the
# saturation of tanh matters.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Dynamics, EchoStateNetwork, Gain, SampleStimuli, optimize
from greenfold.datasets import synthetic_heartbeats

network = EchoStateNetwork.random(
    60, leak=0.3, connectivity=0.1, spectral_radius=0.9, gain=Gain.tanh(), rng=0
)
X, y = synthetic_heartbeats(600, n_steps=70, rng=1)
stimuli = SampleStimuli(X[:200], y[:200], length=2.0)
dynamics = Dynamics(network, n_steps=70)

# %%
# We solve for u on the linearised network, with a certificate. Then we run the full network
# with the solved u and with five random ones. Each u gets its best readout on the full
# network.
solved = optimize(dynamics, stimuli, u=optimize(dynamics.linear, stimuli).u)
rng = np.random.default_rng(2)
drawn = [optimize(dynamics, stimuli, u=rng.standard_normal(60)) for _ in range(5)]

# %%
# The figure shows the accuracy on 400 other series, with noise on every state:
fresh, labels = stimuli.transform(X[200:]), y[200:]
noises = np.array([0, 0.05, 0.1, 0.2, 0.4])


def accuracy(best):
    """Return the accuracy over 100 noisy readings of each series, for every σ."""
    z = dynamics.states(fresh, best.u) @ best.v
    noise = noises[:, None, None] * rng.standard_normal((100, len(z)))
    return ((z + noise > 0) == (labels > 0)).mean((1, 2))


figure, axes = plt.subplots(figsize=(5.4, 3))
rows = np.array([accuracy(best) for best in drawn])
axes.plot(noises, rows.T, "C1", lw=0.8, alpha=0.5)
axes.plot(noises, rows.mean(0), "C1s--", label="random Win: five, and their mean")
axes.plot(noises, accuracy(solved), "C0o-", label="solved Win")
axes.set(xlabel="readout noise σ", ylabel="accuracy")
axes.legend()
plt.show()

# %%
# For a reservoirpy node, ``greenfold.reservoirpy.solve_input`` does this and returns a node
# with the solved ``Win``: see :doc:`/howto/echo-state`.
