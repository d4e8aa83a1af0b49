"""The installed library without extras: import, fit, save and load; its metadata."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import greenfold
from greenfold import ReservoirClassifier
from greenfold.datasets import synthetic_heartbeats

assert Path(greenfold.__file__).is_relative_to(sys.prefix), greenfold.__file__
assert Path(greenfold.__file__).with_name("py.typed").exists()

X, y = synthetic_heartbeats(300, n_steps=70, rng=0)
classifier = ReservoirClassifier(n_neurons=50, random_state=0).fit(X[:100], y[:100])
accuracy = classifier.score(X[100:], y[100:])
# Guessing gives 0.5; three standard deviations of 200 draws above it are 0.61.
assert accuracy > 0.61, accuracy

classifier.save("beats.gfm")
np.testing.assert_array_equal(greenfold.load("beats.gfm").predict(X), classifier.predict(X))

metadata = importlib.metadata.metadata("greenfold")
assert metadata["Version"] == greenfold.__version__
readme = metadata.get_payload() or metadata["Description"]
relative = re.findall(r"\]\((?!https?:)[^)]*\)", str(readme))
assert "# greenfold" in str(readme), "the README is missing"
assert not relative, f"links that do not work outside the repository: {relative}"

# The command line is an extra; without it one sentence says so.
command = [sys.executable, "-I", "-m", "greenfold", "--help"]
refused = subprocess.run(command, capture_output=True, text=True, check=False)
assert refused.returncode == 1, refused
assert "greenfold[cli]" in refused.stderr, refused

print(f"greenfold {greenfold.__version__}, accuracy {accuracy:.3f}")
