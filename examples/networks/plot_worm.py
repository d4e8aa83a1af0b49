"""
A connectome from its file
==========================

Read a list of edges between named cells, and find out which cells to drive and which to
read.
"""

# %%
# The file is made here: 300 cells in the three layers of a worm, from sensory cells (S)
# over interneurons (I) to motor neurons (M), with about as many connections as *C. elegans*
# has. Put the path of your own file in place of ``path``; the columns of FlyWire, neuPrint
# and of general lists are found by themselves.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from greenfold import AtMost, Device, Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import read_connectome, synthetic_heartbeats

rng = np.random.default_rng(4)
layers = {"S": 80, "I": 90, "M": 130}
names = [f"{layer}{k:03}" for layer, count in layers.items() for k in range(count)]
place = np.concatenate([np.full(n, k) for k, n in enumerate(layers.values())])
ahead = np.array([[0.4, 1.0, 0.1], [0.2, 1.0, 0.8], [0.02, 0.2, 0.6]])
likely = ahead[place[:, None], place] * rng.lognormal(size=300)
chosen = rng.choice(300 * 300, 3500, replace=False, p=(likely / likely.sum()).ravel())
counts = np.ceil(rng.lognormal(1, 1, len(chosen))).astype(int)
rows = [
    f"{names[edge // 300]},{names[edge % 300]},{n}"
    for edge, n in zip(chosen.tolist(), counts.tolist(), strict=True)
]
path = Path(tempfile.mkdtemp()) / "edges.csv"
path.write_text("\n".join(["source,target,weight", *rows]) + "\n")

# %%
# Every fifth interneuron inhibits. The weights are scaled to a largest \|λ\| of 0.9.
cells = read_connectome(path, inhibitory=names[80:170:5])
network = Reservoir.from_graph(cells, spectral_radius=0.9, tau=0.02)  # seconds
print(cells)

# %%
# Two classes of heartbeats drive the network. The best u may drive all cells, ten cells
# that the search chooses, or the sensory cells alone, with motor neurons to read. Random
# weights of the sensory cells are for comparison.
X, y = synthetic_heartbeats(400, n_steps=50, rng=0)
stimuli = SampleStimuli(X, y)
system = unfold(network, n_steps=50, dt=0.016)
kind = np.array([name[0] for name in cells.names])
sensory, motor = np.flatnonzero(kind == "S"), np.flatnonzero(kind == "M")
everywhere = optimize(system, stimuli)
ten = optimize(system, stimuli, device=Device(mask=AtMost(10)), rng=0)
some = Device(inputs=sensory, outputs=motor)
between = optimize(system, stimuli, device=some)
drawn = optimize(system, stimuli, method="random", device=some, rng=1)
for what, weights in {"driven": everywhere.u, "read": everywhere.v}.items():
    named = [f"{name} ({weight:+.2f})" for name, weight in cells.strongest(weights, 4)]
    print(f"{what} most: {', '.join(named)}")

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4), width_ratios=(1.1, 1))
u, v = np.abs(everywhere.u), np.abs(everywhere.v)
for letter, colour in zip("SIM", ("C2", "C3", "C4"), strict=True):
    own, what = kind == letter, {"S": "sensory", "I": "interneuron", "M": "motor"}[letter]
    left.scatter(u[own], v[own], 14, colour, label=what, lw=0)
for weights in everywhere.u, everywhere.v:  # of each two names, the higher one above
    pair = sorted(np.argsort(-np.abs(weights))[:2], key=lambda at: -v[at])
    for at, shift in zip(pair, (3, -9), strict=True):
        text, dot = cells.names[at], (u[at], v[at])
        left.annotate(text, dot, (4, shift), textcoords="offset points", size=8)
left.set(ylim=(-0.04, 1.15 * v.max()))
left.set(xlabel="|u|: how strongly it is driven", ylabel="|v|: how strongly it is read")
left.legend(fontsize=8)
bars = {
    "sensory to motor,\nbest of 10 random": (drawn.soft_margin, "C1"),
    "sensory to motor,\nsolved": (between.soft_margin, "C0"),
    "ten cells": (ten.soft_margin, "C0"),
    "all cells": (everywhere.soft_margin, "C0"),
}
for name, (value, colour) in bars.items():
    right.barh(name, value, color=colour, height=0.6)
right.axvline(everywhere.upper_bound, color="C5", ls="--", lw=1.2)
right.annotate(
    "proven\nbound",
    (everywhere.upper_bound, 0),
    (-4, 0),
    ha="right",
    va="center",
    textcoords="offset points",
    size=8,
)
right.set(xlabel="soft margin κ")
right.grid(visible=False, axis="y")
plt.show()

# %%
# For larger networks, the file formats and the command line, see :doc:`/howto/connectome`.
