"""Readouts and pooling in the operations of an array library: NumPy, PyTorch, CuPy.

The same numbers as `_compiled`, up to rounding, by whole-array operations; this is what
runs on a GPU, and where numba is not installed.
"""

from __future__ import annotations

from typing import Any

import array_api_compat as compat

from .bank import GROUP
from .kinds import N_THRESHOLDS

__all__ = ["pool", "readings"]


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
    a, b = decay[0], decay[1]
    # After m rounds, every state holds the last 2^m readings.
    step = 1
    while step < Y.shape[1]:
        old_re, old_im = re[:, :-step], im[:, :-step]
        re = xp.concat([re[:, :step], re[:, step:] + old_re * a - old_im * b], axis=1)
        im = xp.concat([im[:, :step], im[:, step:] + old_re * b + old_im * a], axis=1)
        a, b = a * a - b * b, 2 * a * b
        step *= 2
    Z = re @ readouts[:J] + im @ readouts[J:]
    out = [Z]
    for _ in range(2):
        last = out[-1]
        out.append(xp.concat([last[:, :1], last[:, 1:] - last[:, :-1]], axis=1))
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
        See `kinds`.
    """
    xp = compat.array_namespace(X)
    Z = readings(X, drive, decay, readouts)
    n, _, K, D = Z.shape
    Z = xp.reshape(Z, (3 * n, K, D))
    now = xp.arange(K, dtype=Z.dtype, device=compat.device(Z))
    # Sums over each quarter, and the mean position, are one product with these rows.
    quarter = [xp.astype((now >= ends[q]) & (now < ends[q + 1]), Z.dtype) for q in range(4)]
    basis = xp.stack([*quarter, now + 0.5])
    counts, level, position, stretch = [], [], [], []
    for t in range(N_THRESHOLDS):
        own = xp.reshape(thresholds[t], (1, 3, D))
        own = xp.reshape(xp.broadcast_to(own, (n, 3, D)), (3 * n, D))
        weight = xp.astype(Z > own[:, None, :], Z.dtype)
        sums = basis @ weight
        total = xp.sum(sums[:, :4], axis=1)
        over = 1 / xp.clip(total, 1, None)
        mean = xp.sum(weight * Z, axis=1) * over
        counts.append(sums[:, :4])
        level.append(xp.where(total > 0, mean, own))
        mean = sums[:, 4] * over / K
        position.append(xp.where(total > 0, mean, xp.full_like(mean, 0.5)))
        stretch.append(_longest(weight, now, xp) / K)
    lengths = [max(ends[q + 1] - ends[q], 1) for q in range(4)]
    rows = [
        *(xp.sum(c, axis=1) / K for c in counts),
        *(
            xp.sum(c[:, h : h + 2], axis=1) / max(ends[h + 2] - ends[h], 1)
            for h in (0, 2)
            for c in counts
        ),
        *(c[:, q] / lengths[q] for q in range(4) for c in counts),
        *level,
        *position,
        *stretch,
        xp.max(Z, axis=1),
        xp.min(Z, axis=1),
        xp.sqrt(xp.sum(Z * Z, axis=1) / K),
        *_won(Z, xp),
    ]
    # Rows (3 n, D) into one table a series, its columns signal by signal.
    table = xp.reshape(xp.stack(rows, axis=1), (n, 3, len(rows), D))
    return xp.reshape(xp.permute_dims(table, (0, 2, 1, 3)), (n, len(rows), 3 * D))


def _longest(above: Any, now: Any, xp: Any) -> Any:
    """Length of the longest stretch of ones along axis 1."""
    if compat.is_numpy_namespace(xp):
        run = xp.zeros_like(above[:, 0])
        longest = xp.zeros_like(run)
        for k in range(above.shape[1]):
            run += 1
            run *= above[:, k]
            xp.maximum(longest, run, out=longest)
        return longest
    # Time since the last step that was not above. The loop would be as many kernels.
    end = (now + 1)[:, None]
    return xp.max(end - _running_max(end - end * above, xp), axis=1)


def _running_max(values: Any, xp: Any) -> Any:
    """Largest value so far along axis 1."""
    if compat.is_torch_namespace(xp):
        return xp.cummax(values, 1).values
    step = 1
    while step < values.shape[1]:
        moved = xp.maximum(values[:, step:], values[:, :-step])
        values = xp.concat([values[:, :step], moved], axis=1)
        step *= 2
    return values


def _won(Z: Any, xp: Any) -> list[Any]:
    """√ of the mean |z| over time where a readout is the largest, smallest of its group."""
    n, K, D = Z.shape
    size = xp.abs(Z)
    found = []
    for better in (xp.maximum, xp.minimum):
        best, width = Z, D
        while width > D // GROUP:
            width //= 2
            best = better(best[..., :width], best[..., width:])
        wins = xp.reshape(Z, (n, K, GROUP, width)) == best[:, :, None, :]
        wins = xp.astype(xp.reshape(wins, (n, K, D)), Z.dtype)
        found.append(xp.sqrt(xp.sum(wins * size, axis=1) / K))
    return found
