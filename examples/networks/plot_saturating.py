"""
A network that saturates
========================

If neurons saturate, the linear optimum may be poor. With ``Dynamics``, you optimise
directly on the simulated network, by gradient ascent.
"""

# %%
# The network has a biased tanh gain. The two Gaussian classes differ mostly in their
# covariance.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import (
    Ascent,
    Dynamics,
    Gain,
    GaussianStimuli,
    RandomDraws,
    Reservoir,
    optimize,
)

network = Reservoir.random(12, g=0.8, gain=Gain.biased_tanh(0.5), rng=0)
stimuli = GaussianStimuli.random(4, strength=0.19, n_draws=1200, rng=1)
dynamics = Dynamics(network, n_steps=4, dt=0.5, tol=1e-3)

# %%
# We compare three ways to choose u. Each u gets its best readout on the simulated network.
drawn = optimize(dynamics, stimuli, method=RandomDraws(5), rng=2)
linear = optimize(dynamics, stimuli, u=optimize(dynamics.linear, stimuli).u)
exact = optimize(dynamics, stimuli, method=Ascent(n_starts=2, max_evaluations=30))

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.8), width_ratios=(1, 1.2))
y = np.linspace(-3, 3, 200)
left.plot(y, network.gain(y), color="C4", label="biased tanh")
left.plot(y, y, color="C4", ls=":", lw=1, label="linear")
left.set(
    xlabel="input to a neuron",
    ylabel="rate of the neuron",
    title="the gain",
    ylim=(-2.5, 1.5),
)
left.legend()
bars = {
    "best of 5\nrandom u": (drawn, "C1"),
    "linear optimum,\nreadout refitted": (linear, "C0"),
    "solved on\nthe network": (exact, "C0"),
}
for name, (best, colour) in bars.items():
    right.bar(
        name,
        best.fresh_margin,
        yerr=2 * best.fresh_error,
        color=colour,
        ecolor="C4",
        width=0.6,
        capsize=3,
    )
right.set(ylabel="κ on fresh stimuli, ± 2 s.e.", title="simulated network")
right.grid(visible=False, axis="x")
plt.show()

# %%
# A non-linear network has no upper bound. For larger networks, see :doc:`/howto/saturates`.
print(exact)
