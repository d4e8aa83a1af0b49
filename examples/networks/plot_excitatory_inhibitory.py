"""
Excitation and inhibition
=========================

This circuit obeys Dale's law and has sigmoid rates, a bias, slow excitation and fast
inhibition. How well does each order of the expansion approximate the simulated network?
"""

# %%
# The bias sets the resting state of the network. All states below are deviations from it.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Gain, Reservoir, simulate, unfold

circuit = Reservoir.excitatory_inhibitory(
    50,
    g=3.0,
    tau=(0.02, 0.01),
    gain=Gain.sigmoid(),
    bias=(-0.5, -1.0),
    inhibition=1.2,
    connectivity=0.3,
    rng=1,
)
print(circuit)

# %%
# We apply random input of increasing strength, and compare the states of each order with
# those that an ODE solver computes for the full network.
rng = np.random.default_rng(0)
u = rng.standard_normal(50)
u /= np.linalg.norm(u)
X = rng.standard_normal((3, 12))
strengths = np.geomspace(0.1, 3, 5)
errors = np.empty((3, len(strengths)))
for column, strength in enumerate(strengths):
    truth = simulate(circuit, strength * X, u, 0.005)
    for order in range(3):
        states = unfold(circuit, n_steps=12, dt=0.005, order=order).states(strength * X, u)
        errors[order, column] = np.abs(states - truth).max() / np.abs(truth).max()

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3))
weights = np.asarray(circuit.weights)
shown = np.where(weights == 0, np.nan, weights)  # no colour where there is no connection
image = left.imshow(shown, cmap="coolwarm", vmin=-2, vmax=2)
figure.colorbar(image, ax=left, label="weight", shrink=0.8)
n_excitatory = int((weights > 0).any(0).sum())
left.axvline(n_excitatory - 0.5, color="black", lw=1)
left.set(
    xlabel=f"from neuron ({n_excitatory} excitatory | rest inhibitory)", ylabel="to neuron"
)
left.set(title="one sign per column")
left.grid(visible=False)
for order, mark in zip(range(3), ("s--", "o-", "^:"), strict=True):
    right.loglog(strengths, errors[order], "C4" + mark, label=f"order {order}")
right.set(xlabel="strength of the input", ylabel="relative error of the states")
right.set(title="error of the expansion")
right.legend()
plt.show()
