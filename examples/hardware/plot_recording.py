"""
From a recording to a mask
==========================

You have a device, but you do not know its equations. You drive it with noise and record its
response. How long must the recording be to give a mask as good as the true response would?
"""

# %%
# The device has 16 coupled nodes, and its readings are noisy. In the laboratory, you would
# read ``drive`` and ``states`` from a file with `read_recording`.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import (
    EchoStateNetwork,
    Gain,
    MeasuredResponse,
    RandomDraws,
    SampleStimuli,
    optimize,
    unfold,
)
from greenfold.datasets import synthetic_heartbeats

N, n_steps = 16, 12
device = EchoStateNetwork.random(
    N, leak=0.6, gain=Gain.linear(), connectivity=0.3, spectral_radius=0.7, rng=0
)
truth = unfold(device, n_steps=n_steps)
rng = np.random.default_rng(1)


def record(n_samples, noise=0.3):
    """Return white noise for every input, and the noisy outputs."""
    drive = rng.standard_normal((n_samples, N))
    states, state = np.empty_like(drive), np.zeros(N)
    for row, pulse in enumerate(drive):
        state = 0.4 * state + 0.6 * (device.weights @ state + pulse)
        states[row] = state
    return drive, states + noise * rng.standard_normal(states.shape)


# %%
# From each recording, we estimate the response of the device. We solve for the best mask
# for this response, and then test the mask on the device.
X, y = synthetic_heartbeats(300, n_steps=n_steps, rng=2)
stimuli = SampleStimuli(X, y)
best = optimize(truth, stimuli)
lengths = (700, 1500, 4000, 10000)
believed, reached = [], []
for n_samples in lengths:
    response = MeasuredResponse.fit(*record(n_samples), n_steps=n_steps)
    found = optimize(response, stimuli)
    believed.append(found.soft_margin)
    M, Sigma = stimuli.moments(truth, found.u)
    reached.append(M @ found.v - found.eta / 2 * found.v @ Sigma @ found.v)
drawn = optimize(truth, stimuli, method=RandomDraws(20), rng=3)

figure, axes = plt.subplots(figsize=(6, 3.1))
axes.axhline(best.upper_bound, color="C5", ls="--", label="upper bound")
axes.semilogx(lengths, believed, "C0o:", mfc="none", label="solved, estimated κ")
axes.semilogx(lengths, reached, "C0o-", label="solved, κ on the device")
axes.axhline(drawn.starts.mean(), color="C1", ls="-.", label="random masks, mean of 20")
axes.set(xlabel="samples recorded", ylabel="soft margin κ", ylim=(0, None))
axes.set_xticks(lengths, [str(n) for n in lengths], minor=False)
axes.minorticks_off()
axes.legend(loc="lower right")
plt.show()

# %%
# With a short recording, the estimated κ is too high, and the mask is worse on the device.
# `margin_interval` tells you, without a test on the device, how large this difference can
# be: see :doc:`/howto/recording`.
