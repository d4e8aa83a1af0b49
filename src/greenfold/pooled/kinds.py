"""What is pooled: the kinds of features of one readout over time, and their rows.

Both routes, compiled and array, fill the same table of `N_ROWS` rows for every reading
(a readout, or its first or second difference in time).
"""

from __future__ import annotations

import numpy as np

__all__ = ["KINDS", "N_ROWS", "N_SIGNALS", "N_THRESHOLDS", "WEIGHTS", "row_weights"]

#: Thresholds of a reading: random quantiles of its training values, in ascending order.
N_THRESHOLDS = 3
#: The readout and its first and second difference, interleaved in this order.
N_SIGNALS = 3

#: Kind to its rows. "quarters" and "halves" have one row for each part of time and, within
#: it, each threshold.
KINDS: dict[str, slice] = {
    "above": slice(0, 3),  # proportion of time above a threshold
    "halves": slice(3, 9),  # the same in each half of the time
    "quarters": slice(9, 21),  # the same in each quarter
    "level": slice(21, 24),  # mean of the values above; the threshold where there are none
    "position": slice(24, 27),  # mean time above, 0 … 1; ½ where there is none
    "stretch": slice(27, 30),  # longest stretch above, as a proportion
    "stretches": slice(30, 33),  # √ of the mean length of all stretches, as a proportion
    "max": slice(33, 34),
    "min": slice(34, 35),
    "rms": slice(35, 36),
    "largest": slice(36, 37),  # √ of mean |z| where it is the largest of its group, else 0
    "smallest": slice(37, 38),
}
N_ROWS = 38

#: Weight of a kind after standardisation, one where it is not named. What tells *when*
#: something happened helps with aligned series and hurts with others; at half the weight
#: it did least harm and most good in leave-one-out tests on training data.
WEIGHTS = {"halves": 0.5, "quarters": 0.5, "position": 0.5}


def row_weights() -> np.ndarray:
    """Weight of every row, (N_ROWS,)."""
    weights = np.ones(N_ROWS)
    for kind, weight in WEIGHTS.items():
        weights[KINDS[kind]] = weight
    return weights
