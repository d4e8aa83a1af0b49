"""Comparisons with peers in one run, as ratios; see docs/benchmarks.md."""

import os

# One BLAS thread for everyone, unless the environment sets the number: with matrices of 100
# rows two threads wait for each other, above all on a busy machine.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
