"""
Forecast a chaotic series
=========================

A network forecasts the series by running on its own predictions. We compare random with
solved input weights.
"""

# %%
# A network of fifty neurons learns from 1500 samples of the Lorenz attractor.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import ReservoirForecaster
from greenfold.datasets import lorenz
from greenfold.estimators.sequences import valid_steps

series = lorenz(2200, rng=4)
train, rest = series[:1500], series[1500:]
setting = {"spectral_radius": 0.4, "bias_scale": 1.0, "see_input": False, "random_state": 0}
models = {
    "random": ReservoirForecaster(50, input_weights="random", **setting).fit(train),
    "solved": ReservoirForecaster(50, **setting).fit(train),
}

# %%
# Each forecast begins after a context of 200 samples. It is valid until its error exceeds
# 0.4 standard deviations. One Lyapunov time, in which a small error grows by a factor of e,
# is 22 samples.
lyapunov, context = 22, rest[:200]
truth = rest[200:500]
figure, panels = plt.subplots(2, 1, figsize=(6.4, 4), sharex=True, layout="constrained")
time = np.arange(len(truth)) / lyapunov
for axes, (name, model), colour in zip(panels, models.items(), ("C1", "C0"), strict=True):
    made = model.forecast(len(truth), context=context)
    valid = valid_steps(made, truth, series.std(0)) / lyapunov
    axes.plot(time, truth[:, 0], "0.6", lw=3, label="truth")
    axes.plot(time, made[:, 0], colour, lw=1.2, label=f"{name} input weights")
    axes.axvline(valid, ymax=0.8, color="0.3", ls=":", lw=1)
    text = f"valid for {valid:.1f} Lyapunov times"
    axes.text(0.1, -23, text, size=8)
    axes.set(ylabel="x", ylim=(-25, 32))
    axes.legend(loc="upper right", ncols=2)
panels[-1].set_xlabel("time (Lyapunov times)")
plt.show()

# %%
# A single forecast says little. Here are the mean valid times of 43 forecasts, in Lyapunov
# times:
starts = range(200, 500, 7)
for name, model in models.items():
    steps = [
        valid_steps(
            model.forecast(200, context=rest[at - 200 : at]),
            rest[at : at + 200],
            series.std(0),
        )
        for at in starts
    ]
    print(f"{name:6}  {np.mean(steps) / lyapunov:.1f}")

# %%
# Solved input weights help most if the network is small for its task: see
# :doc:`/howto/forecast`.
