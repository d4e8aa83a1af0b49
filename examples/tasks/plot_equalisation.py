"""
Equalise a channel
==================

A channel mixes and distorts the symbols that it transmits, and the reservoir recovers them.
We solve for the best u for this regression task, with a lower bound on the loss.
"""

# %%
# A synthetic series of four symbols passes through a channel with echoes, a weak
# non-linearity and noise.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import RegressionTask, Reservoir, optimize, unfold
from greenfold.datasets import channel_equalisation

x, y = channel_equalisation(3000, rng=0)
task = RegressionTask.from_series(x[:2000], y[:2000], n_steps=20, ridge=1e-4)
network = unfold(Reservoir.random(50, rng=0), n_steps=20, dt=0.25)
solved = optimize(network, task)
rng = np.random.default_rng(7)
drawn = optimize(network, task, u=rng.standard_normal(50))
print(
    f"loss {solved.loss:.4f}, lower bound {solved.loss_bound:.4f}; random {drawn.loss:.4f}"
)

# %%
# The figure shows the readout on new data, with a random and with the solved u. We add
# noise to the reading of every node; its variance equals the ridge penalty (``ridge``). The
# predicted symbol is the one of the four that is nearest to the readout.
windows = np.lib.stride_tricks.sliding_window_view(x[2000:], 20)
sent = y[2019:]
symbols = np.array([-3, -1, 1, 3])
figure, panels = plt.subplots(1, 2, figsize=(7.4, 2.9), sharey=True)
for panel, name, colour, found in (
    (panels[0], "random u", "C1", drawn),
    (panels[1], "solved u", "C0", solved),
):
    states = network.states(windows - task.mean, found.u)
    states = states + 0.01 * rng.standard_normal(states.shape)
    read = (states @ found.V + task.offset).ravel()
    nearest = symbols[np.abs(read[:, None] - symbols).argmin(1)]
    wrong = nearest != sent
    shift = rng.uniform(-0.5, 0.5, len(sent))
    panel.plot(sent + shift, read, ".", color=colour, ms=3, alpha=0.6)
    panel.set(
        title=f"{name}: {wrong.mean():.1%} of the symbols wrong", xlabel="symbol sent"
    )
    panel.set(xticks=symbols, yticks=symbols)
    for level in (-2, 0, 2):
        panel.axhline(level, color="black", lw=0.8, ls=":")
panels[0].set(ylabel="readout")
plt.show()
