"""
Compare with ROCKET on an archive
=================================

``greenfold sweep`` measured the accuracy of both greenfold classifiers on fourteen data
sets of the UCR archive. We compare them with published results of ROCKET.
"""

# %%
# The results are in the repository, so run this script in a clone of it. See
# :doc:`/howto/archive` for the command that wrote them.
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

place = Path("docs/_sweep/comparison.json")
folder = next(one for one in (Path.cwd(), *Path.cwd().parents) if (one / place).exists())
record = json.loads((folder / place).read_text("utf-8"))
accuracy = dict(zip(record["estimators"], np.array(record["accuracy"]).T, strict=True))
for name, values in accuracy.items():
    print(f"{name:28} {values.mean():.4f}")

# %%
# Points above the diagonal are data sets on which the reservoir is better.
rocket = accuracy["ROCKET (published)"]
figure, axes = plt.subplots(figsize=(4.6, 4.2))
axes.axline((1, 1), slope=1, color="C4", lw=1, ls=":", label="equally good")
for name, mark, face in (
    ("ReservoirClassifier", "s", "none"),
    ("PooledReservoirClassifier", "o", "C4"),
):
    mean = accuracy[name].mean()
    axes.plot(
        rocket,
        accuracy[name],
        mark,
        color="C4",
        mfc=face,
        alpha=0.7,
        label=f"{name}, mean {mean:.3f}",
    )
axes.set(xlabel=f"ROCKET (published), mean {rocket.mean():.3f}", ylabel="greenfold")
axes.set(xlim=(0.79, 1.01), ylim=(0.45, 1.02), title="accuracy on 14 data sets")
axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16))
plt.show()
