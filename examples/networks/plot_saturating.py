"""
A network that saturates
========================

If neurons saturate, the linear optimum may be poor. ``Dynamics`` optimises the full
network by gradient ascent.
"""

# %%
# A biased tanh network, and Gaussian classes that differ mostly in their covariance.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Dynamics, Gain, GaussianStimuli, Reservoir, optimize

network = Reservoir.random(12, g=0.8, gain=Gain.biased_tanh(0.5), rng=0)
stimuli = GaussianStimuli.random(4, strength=0.19, n_draws=1200, rng=1)
dynamics = Dynamics(network, n_steps=4, dt=0.5, tol=1e-3)

# %%
# Each u gets the readout that is best for it on the true network:
drawn = optimize(dynamics, stimuli, method="random", n_starts=5, rng=2)
linear = optimize(dynamics, stimuli, u=optimize(dynamics.linear, stimuli).u)
exact = optimize(dynamics, stimuli, n_starts=2, max_iter=30, rng=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.8), width_ratios=(1, 1.2))
y = np.linspace(-3, 3, 200)
left.plot(y, network.gain(y), color="C4")
left.plot(y, y, color="C5", ls="--", lw=1, label="linear")
left.set(xlabel="input to a neuron", ylabel="its rate", title="the gain", ylim=(-2.5, 1.5))
left.legend()
bars = {
    "best of 5\nrandom u": (drawn, "C1"),
    "linear optimum,\nreadout refitted": (linear, "C5"),
    "solved through\nthe network": (exact, "C0"),
}
for name, (best, colour) in bars.items():
    right.bar(
        name,
        best.fresh_margin,
        yerr=2 * best.fresh_error,
        color=colour,
        width=0.6,
        capsize=3,
    )
right.set(ylabel="κ on fresh draws, ± 2 s.e.", title="true network")
right.grid(visible=False, axis="x")
plt.show()

# %%
# There is no bound here. For larger networks, see :doc:`/howto/saturates`.
print(exact)
