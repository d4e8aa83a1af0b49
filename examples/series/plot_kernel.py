"""
A reservoir as one vector
=========================

Network, input projection and readout collapse into one weight per time step. A prediction
is then a dot product, which you can compute in any language.
"""

# %%
# We fit a classifier, and get everything that a prediction needs.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import ReservoirClassifier
from greenfold.datasets import synthetic_heartbeats
from greenfold.estimators.margin import to_numpy

X, y = synthetic_heartbeats(600, rng=0)
classifier = ReservoirClassifier(random_state=0).fit(X[:300], y[:300])
k = to_numpy(classifier)
weights = k["linear"][0, 0] * k["scale"][0]
offset = weights @ k["centre"][0, 0] + k["threshold"][0]

# %%
# 140 multiplications and one comparison give the same result as `predict`:
by_hand = np.where(X[300:] @ weights > offset, 1, -1)
print("agrees with predict:", bool((by_hand == classifier.predict(X[300:])).all()))
print(f"accuracy {np.mean(by_hand == y[300:]):.3f}")

figure, (above, below) = plt.subplots(2, 1, figsize=(6.4, 3.6), sharex=True)
for label, colour, name in ((1, "C2", "normal"), (-1, "C3", "ectopic")):
    above.plot(X[y == label].mean(0), colour, label=f"{name}, mean")
above.legend()
above.set(ylabel="heartbeat")
weights = weights / np.abs(weights).max()
below.fill_between(np.arange(140), weights, color="C0", alpha=0.3, lw=0)
below.plot(weights, "C0")
below.set(ylabel="weight (largest 1)", xlabel="step")
plt.show()

# %%
# To save these weights as a file of arrays or as ONNX, see :doc:`/howto/deploy`.
