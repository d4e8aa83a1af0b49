"""
One input projection for many classes
=====================================

A device has one mask, however many classes there are. The shared u maximises the sum of
all soft margins; only the readouts differ between the classes.
"""

# %%
# In each of the five classes, a bump occurs at a different time.
import matplotlib.pyplot as plt
import numpy as np

from greenfold import ReservoirClassifier

rng = np.random.default_rng(0)
labels = np.arange(200) % 5
steps = np.linspace(0, 1, 20)
X = np.exp(-(((steps - 0.25 - 0.15 * labels[:, None]) / 0.08) ** 2))
X += 0.25 * rng.standard_normal(X.shape)

# %%
# We compare three cases: one random u, one solved u, and one solved u per class. The last
# one would need five devices or five runs. The figure shows the sum of the soft margins.
names = {"random": "one random u", "shared": "one solved u", "solved": "one u per class"}
fits = {
    kind: ReservoirClassifier(
        input_projection=kind,
        n_neurons=20,
        eta=10,
        certify=kind != "random",
        random_state=0,
    ).fit(X, labels)
    for kind in names
}
bound = fits["shared"].shared_bound_
print(f"upper bound for one u {bound:.4f}")

figure, axes = plt.subplots(figsize=(6.4, 2.4))
colours = ("C1", "C0", "C0")
for place, (kind, colour) in enumerate(zip(names, colours, strict=True)):
    left = 0.0
    for margin in fits[kind].soft_margin_:
        hatch = "//" if kind == "solved" else None
        axes.barh(
            -place, margin, left=left, color=colour, ec="white", alpha=0.85, hatch=hatch
        )
        left += margin
axes.axvline(bound, color="C5", ls="--", label="upper bound for one u")
axes.set_yticks([0, -1, -2], names.values())
axes.set(xlabel="sum of the soft margins of the five classes")
axes.grid(visible=False, axis="y")
axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
plt.show()
