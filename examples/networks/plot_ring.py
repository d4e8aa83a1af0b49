"""
Which modes a ring uses
=======================

For a ring, as for every normal network, finding the best pair of projections is a convex
problem over modes. The optimum is therefore proven, and it uses only a few modes.
"""

# %%
# In a ring of 2000 neurons, each neuron drives the next. Its weights
# are sparse, so no 2000×2000 matrix is formed. It separates two classes of heartbeats.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import Reservoir, SampleStimuli, optimize, unfold
from greenfold.datasets import synthetic_heartbeats

ring = unfold(Reservoir.cycle(2000, weight=0.9, tau=0.25), n_steps=70, dt=0.1)
X, y = synthetic_heartbeats(200, n_steps=70, rng=1)
stimuli = SampleStimuli(X, y)
best = optimize(ring, stimuli, eta=10)
print(best)

# %%
# For each mode, κ depends only on the product w of the coefficients of u and v. Unit
# vectors u and v can reach all products w whose absolute values add up to at most one. We
# call the derivative of κ with respect to the absolute value of w the pull of a mode. At
# the optimum, all modes in use have the same pull, and no other mode has a larger one. The
# problem is convex, so every point with these two properties is an optimum.
#
# The modes of a ring are waves around it, so a Fourier transform gives the coefficients of
# u and v. All modes but two stand for a sine and a cosine, hence the factor two.
w = 2 * np.fft.rfft(best.u, norm="ortho") * np.fft.rfft(best.v, norm="ortho").conj()
w[[0, -1]] /= 2
gamma = ring.maps.modes().responses
a = np.real(gamma @ w)
pull = np.abs((stimuli.mu - 10 * stimuli.psi @ a) @ gamma)
used = np.flatnonzero(np.abs(w) > 1e-6)

# κ as a function of w in the two strongest modes, with all other modes at zero.
first, second = used[np.argsort(-np.abs(w[used]))[:2]]
sides = np.real(gamma[:, [first, second]] * np.exp(1j * np.angle(w[[first, second]])))
p, q = np.meshgrid(*[np.linspace(-1.15, 1.15, 231)] * 2)
kernels = np.stack([p, q], axis=-1) @ sides.T
variances = np.einsum("ijn,nm,ijm->ij", kernels, stimuli.psi, kernels)
margins = kernels @ stimuli.mu - 5 * variances
inside = np.where(np.abs(p) + np.abs(q) <= 1, margins, -np.inf)
top = np.unravel_index(np.argmax(inside), p.shape)

figure, (ball, modes) = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=[1, 1.45])
levels = inside[top] * np.array([-6, -3, -1, 0, 0.4, 0.8, 1.0])
ball.contour(p, q, margins, levels=levels, colors="C5", linewidths=0.8, linestyles="-")
ball.plot([], [], "C5", lw=0.8, label="lines of equal κ")
ball.fill([1, 0, -1, 0], [0, 1, 0, -1], color="C0", alpha=0.12, lw=0)
ball.plot([1, 0, -1, 0, 1], [0, 1, 0, -1, 0], "C0", label="limit, Σ|w| = 1")
ball.plot(p[top], q[top], "C0o", label=f"best of the two, κ = {inside[top]:.3f}")
ball.set(xlabel=f"w of mode {first}", ylabel=f"w of mode {second}", aspect="equal")
ball.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))

number = np.arange(2 * used.max() + 1)
modes.plot(number, pull[number] / pull.max(), "C5", label="pull, relative to the largest")
modes.vlines(used, 0, np.abs(w[used]), "C0")
modes.plot(used, np.abs(w[used]), "C0o", label="weight |w| of a mode in use")
modes.set(xlabel="mode (waves around the ring)", ylabel="weight and pull", ylim=(0, 1.05))
modes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()

# %%
# The optimum uses neighbouring pairs of modes, because the pull peaks between two whole
# numbers of waves. See :doc:`/theory/optimum` for the proof and for other exact cases. Even
# a ring of 100,000 neurons takes only a few seconds.
