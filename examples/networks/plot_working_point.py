"""
From background noise to a non-linearity
========================================

Find the weak non-linearity α of neurons that fire in background noise, and what it is worth
for telling two classes apart.
"""

# %%
# The rate of a leaky integrate-and-fire neuron depends on the mean and the noise of its
# input; Siegert's function gives this rate. Input is in mV: the neuron fires when it
# reaches 15 mV.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import erfcx

from greenfold import Ascent, Gain, GaussianStimuli, Reservoir, optimize, unfold
from greenfold.analysis import margin_parts, with_equal_covariances

nodes, weights = np.polynomial.legendre.leggauss(40)


def rate(mean, noise=4.0, membrane=0.02, refractory=0.002):
    """Return the firing rate in Hz for a mean input in mV."""
    low, high = -mean / noise, (15 - mean) / noise
    at = low + (high - low) * (nodes[:, None] + 1) / 2
    passage = (high - low) / 2 * (weights @ erfcx(-at))
    return 1 / (refractory + membrane * np.sqrt(np.pi) * passage)


# %%
# The rest of the network adds slow noise to the input of each neuron, here 10 ± 3 mV. A
# signal d on top of it sees the mean response, which is smoother than the neuron's own.
# ``Gain.under_noise`` returns its slope and curvature, and their ratio is the paper's α.
mean, deviation = 10.0, 3.0
gain = Gain.under_noise(rate, mean, deviation)
_, slope, curvature = gain.coefficients
print(f"slope {slope:.3f} Hz/mV, curvature {curvature:.4f} Hz/mV²")
print(f"α = {curvature / slope:.4f} per mV")

d = np.linspace(-8, 8, 81)
draws = mean + deviation * np.random.default_rng(0).standard_normal(4000)
response = np.array([rate(draws + shift).mean() for shift in d])
figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
left.plot(d, rate(mean + d), "--", color="C4", lw=1, label="without background noise")
left.plot(d, response, color="C0", label="mean under noise (drawn)")
near = np.abs(d) <= 6
parabola = response[40] + slope * d + curvature * d**2
left.plot(d[near], parabola[near], ":", color="C1", lw=2.2, label="slope and curvature")
left.set(xlabel="signal d (mV)", ylabel="rate (Hz)")
left.legend(fontsize=7.5)
for shift, dash in ((8.0, "-"), (10.0, "--"), (13.0, ":")):
    spread = np.linspace(1, 6, 11)
    gains = [Gain.under_noise(rate, shift, s).coefficients for s in spread]
    right.plot(
        spread, [c[2] / c[1] for c in gains], f"C0{dash}", label=f"mean {shift:g} mV"
    )
right.plot(deviation, curvature / slope, "o", color="C1")
right.set(xlabel="background noise σ (mV)", ylabel="α (1/mV)", ylim=(0, None))
right.legend(fontsize=7.5)
plt.tight_layout()
plt.show()

# %%
# Far below threshold, more noise makes the neurons more linear. A network of such neurons
# with weights W in mV/Hz is the paper's network with weights ``slope * W``. Its stimuli
# have close means, so the covariances decide how well the classes can be told apart.
drawn = Reservoir.random(40, g=0.8, tau=0.25, rng=1)
network = Reservoir(drawn.weights / slope, drawn.tau, gain)
stimuli = GaussianStimuli.random(6, strength=0.2, rng=2)
system = unfold(network, n_steps=6, dt=0.5, order=1)
best = optimize(system, stimuli, method=Ascent(n_starts=2))
linear = optimize(system.linear, stimuli)
print(f"κ: linear network {linear.soft_margin:.4f}, this network {best.soft_margin:.4f}")
print(f"expansion trustworthy: {best.validity.trustworthy}")
print(margin_parts(system, stimuli, best.u, best.v))

# %%
# If both classes had the same covariance, the non-linearity would be worth nothing:
equal = with_equal_covariances(stimuli)
best = optimize(system, equal, method=Ascent(n_starts=2))
print(f"κ with equal covariances: {best.soft_margin:.4f}")
