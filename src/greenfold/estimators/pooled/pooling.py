"""What is pooled over time, and how an array library does it: NumPy, PyTorch, CuPy.

Both engines fill the same table of `N_ROWS` rows for every reading (a readout, or its first
or second difference in time). This one takes whole-array operations: it runs on a GPU, and
where numba is not installed. `compiled` gives the same numbers, up to rounding.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np

#: Readouts that compete with each other.
GROUP = 8
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


def readings(X: Any, drive: Any, decay: Any, readouts: Any) -> Any:
    """Readouts and their differences of a batch of series of one length.

    Parameters
    ----------
    X : array (n_cases, n_reads, stride · n_channels)
        The series cut into readings.
    drive, readouts : array
        See `ScaleReservoir.drive` and `split_readouts`.
    decay : array (2, n_oscillators)
        Real and imaginary part of exp(λ·stride).

    Returns
    -------
    array (n_cases, 3, n_reads, n_readouts)
    """
    xp = compat.array_namespace(X)
    J = decay.shape[1]
    Y = X @ drive
    re, im = Y[..., :J], Y[..., J:]
    a, b = decay[0, :], decay[1, :]
    # After m rounds, every state holds the last 2^m readings.
    step = 1
    while step < Y.shape[1]:
        old_re, old_im = re[:, :-step, :], im[:, :-step, :]
        re = xp.concat([re[:, :step, :], re[:, step:, :] + old_re * a - old_im * b], axis=1)
        im = xp.concat([im[:, :step, :], im[:, step:, :] + old_re * b + old_im * a], axis=1)
        a, b = a * a - b * b, 2 * a * b
        step *= 2
    Z = re @ readouts[:J, :] + im @ readouts[J:, :]
    out = [Z]
    for _ in range(2):
        last = out[-1]
        out.append(xp.concat([last[:, :1, :], last[:, 1:, :] - last[:, :-1, :]], axis=1))
    return xp.stack(out, axis=1)


def pool(
    X: Any, drive: Any, decay: Any, readouts: Any, thresholds: Any, ends: list[int]
) -> Any:
    """Pooled features of a batch of series of one length, for one reservoir.

    Parameters
    ----------
    X, drive, decay, readouts
        As in `readings`.
    thresholds : array (3, 3 n_readouts)
    ends : list of 5 int
        Where the quarters of the time begin, and the end.

    Returns
    -------
    array (n_cases, N_ROWS, 3 n_readouts)
        Rows as in `KINDS`.
    """
    xp = compat.array_namespace(X)
    Z = readings(X, drive, decay, readouts)
    K, D = Z.shape[2:]
    now = xp.arange(K, dtype=Z.dtype, device=compat.device(Z))
    # Sums over each quarter, and the mean position, are one product with these rows.
    quarter = [xp.astype((now >= ends[q]) & (now < ends[q + 1]), Z.dtype) for q in range(4)]
    basis = xp.stack([*quarter, now + 0.5])
    counts, level, position, stretch, stretches = [], [], [], [], []
    for t in range(N_THRESHOLDS):
        own = xp.reshape(thresholds[t, :], (3, 1, D))
        weight = xp.astype(own < Z, Z.dtype)
        sums = basis @ weight
        count = sums[:, :, :4, :]
        total = xp.sum(count, axis=2)
        over = 1 / xp.maximum(total, xp.ones_like(total))
        mean = xp.sum(weight * Z, axis=2) * over
        counts.append(count)
        level.append(xp.where(total > 0, mean, own[:, 0, :]))
        mean = sums[:, :, 4, :] * over / K
        position.append(xp.where(total > 0, mean, xp.full_like(mean, 0.5)))
        stretch.append(_longest(weight, now, xp) / K)
        # A stretch begins at every step above that does not follow another.
        number = total - xp.sum(weight[:, :, 1:, :] * weight[:, :, :-1, :], axis=2)
        mean = total / xp.maximum(number, xp.ones_like(number))
        stretches.append(xp.sqrt(mean / K))
    lengths = [max(ends[q + 1] - ends[q], 1) for q in range(4)]
    rows = [
        *(xp.sum(c, axis=2) / K for c in counts),
        *(
            xp.sum(c[:, :, h : h + 2, :], axis=2) / max(ends[h + 2] - ends[h], 1)
            for h in (0, 2)
            for c in counts
        ),
        *(c[:, :, q, :] / lengths[q] for q in range(4) for c in counts),
        *level,
        *position,
        *stretch,
        *stretches,
        xp.max(Z, axis=2),
        xp.min(Z, axis=2),
        xp.sqrt(xp.sum(Z * Z, axis=2) / K),
        *_won(Z, xp),
    ]
    return xp.reshape(xp.stack(rows, axis=1), (-1, len(rows), 3 * D))


def _longest(above: Any, now: Any, xp: Any) -> Any:
    """Length of the longest stretch of ones along axis 2."""
    if compat.is_numpy_namespace(xp):
        run = xp.zeros_like(above[:, :, 0])
        longest = xp.zeros_like(run)
        for k in range(above.shape[2]):
            run += 1
            run *= above[:, :, k]
            xp.maximum(longest, run, out=longest)
        return longest
    # Time since the last step that was not above. The loop would be as many kernels.
    end = (now + 1)[:, None]
    return xp.max(end - _running_max(end - end * above, xp), axis=2)


def _running_max(values: Any, xp: Any) -> Any:
    """Largest value so far along axis 2."""
    if compat.is_torch_namespace(xp):
        return xp.cummax(values, 2).values
    step = 1
    while step < values.shape[2]:
        moved = xp.maximum(values[:, :, step:, :], values[:, :, :-step, :])
        values = xp.concat([values[:, :, :step, :], moved], axis=2)
        step *= 2
    return values


def _won(Z: Any, xp: Any) -> list[Any]:
    """√ of the mean |z| over time where a readout is the largest, smallest of its group."""
    K, D = Z.shape[2:]
    size = xp.abs(Z)
    found = []
    for better in (xp.maximum, xp.minimum):
        best, width = Z, D
        while width > D // GROUP:
            width //= 2
            best = better(best[..., :width], best[..., width:])
        members = xp.concat([best] * GROUP, axis=3)
        wins = xp.astype(members == Z, Z.dtype)
        found.append(xp.sqrt(xp.sum(wins * size, axis=2) / K))
    return found
