"""Side by side with peers, in one run, as ratios; see docs/benchmarks.md."""

import os

# One thread of BLAS for everyone, unless the environment says how many: with matrices of
# 100 rows two threads wait for each other, most of all on a machine with other work.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
