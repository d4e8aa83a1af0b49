"""What the variance of a recording is made of: the device's response, and what is not.

A linear filter never explains all of a recording. What it leaves has four causes, and each
asks for another recording: noise (drive more strongly), drift (reference segments),
non-linearity (drive more weakly) and memory beyond the lags (more lags). All shares are
estimated without bias: what chance explains is subtracted.

Drift is a gain and an offset that change slowly, fitted with cosines of time. The gain may
differ between outputs and between groups of lags. Memory is the correlation of the rest
with the drive at later lags.

Non-linearity is of second and third order in the drive. There are far too many such
products to fit them all, but the share that they explain can be estimated without fitting
(Haseman–Elston regression): if two samples have similar products of past drives, their
rests are similar as well. The similarity of all products of degree n of whitened Gaussian
variables x and x′ is a polynomial K_n of x·x′, |x|² and |x′|². K_n is the coefficient of
ρⁿ in Mehler's kernel, which has a recursion. The variables are the linear predictions of
the outputs, because the non-linearity acts on the states. Higher degrees are fitted on the
prediction of each output alone.

If the drive repeats a segment, the outputs differ by the noise alone. The noise is then
measured without a model, and all that the drive determines but the filter misses is
non-linearity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._base.printing import Shown
from ..math.ridge import ridge_path

#: Number of samples per coefficient of the drift, and largest number of cosines.
_PER_COEFFICIENT, _COSINES = 40, 12
#: Number of samples whose products are compared, and largest number of variables.
_COMPARED, _VARIABLES = 2000, 40
#: Size of a prediction, in deviations, beyond which its curvature is not known, and number
#: of moments of a recording at which the drift is kept.
_SEEN, _MOMENTS = 3.0, 8
#: Later lags to look at, as a multiple of the fitted ones.
_LATER = 3
#: Degrees that are fitted on the prediction of each output alone.
_STATIC = (2, 3, 4, 5, 6, 7)
#: Least number of repeated samples that show the noise.
_REPEATED = 60
#: A share is due to chance if it is smaller than this number of its standard errors.
_SURE = 3.0
#: Share of a drift that is not worth removing.
_STEADY = 1e-4
#: Shares of other causes below which a recording needs no better one.
_SMALL = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class VarianceShares(Shown):
    """The causes of the variance of a recording, as shares that sum to one.

    Attributes
    ----------
    linear : float
        Share of the linear response.
    noise : float
        Share that neither the drive nor slow changes explain. Unless the drive repeats
        itself, this includes non-linearity that the estimate misses.
    drift : float
        Share of slow changes of the gain and the offset.
    even, odd : float
        Share of the non-linearity of even and of odd degree in the drive.
    memory : float
        Share of the linear response at later lags than those fitted.
    error : float
        Standard error of the share of the non-linearity, the least certain one.
    repeated : int
        Number of samples whose past drive the recording repeats; they measure the noise.
    """

    linear: float
    noise: float
    drift: float
    even: float
    odd: float
    memory: float
    error: float
    repeated: int

    @property
    def nonlinearity(self) -> float:
        """Share of the non-linearity."""
        return self.even + self.odd

    @property
    def causes(self) -> dict[str, float]:
        """The shares that are not the linear response, by cause, largest first."""
        names = {"noise": self.noise, "drift": self.drift, "memory": self.memory}
        names["non-linearity"] = self.nonlinearity
        return dict(sorted(names.items(), key=lambda one: -one[1]))

    @property
    def largest(self) -> str | None:
        """The largest cause, or None if no cause has a share worth a new recording."""
        name, share = next(iter(self.causes.items()))
        return name if share > max(_SMALL, self.error) else None

    def _facts(self) -> dict[str, Any]:
        names = ("linear", "noise", "drift", "even", "odd", "memory")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Filtered:
    """One recording and its prediction, from the first sample that has all lags on.

    ``drive`` begins before them, at the start of the recording. ``made`` is the prediction
    by groups of lags, (n_groups, n_samples, n_outputs).
    """

    drive: np.ndarray
    outputs: np.ndarray
    made: np.ndarray

    @property
    def predicted(self) -> np.ndarray:
        """The whole prediction (n_samples, n_outputs)."""
        return self.made.sum(0)

    @property
    def rest(self) -> np.ndarray:
        """What the prediction leaves (n_samples, n_outputs)."""
        return self.outputs - self.predicted


def lag_groups(n_lags: int) -> list[slice]:
    """Return groups of lags whose gains may drift apart: lag 0, 1, 2–3, 4–7 and so on."""
    ends = [0, *(2**k for k in range(64) if 2**k < n_lags), n_lags]
    return [slice(start, stop) for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class Drift:
    """Slow changes of one recording.

    ``power`` (n_outputs,) is the power that they explain beyond chance, and ``error`` the
    standard error of its sum without drift. ``gains`` holds the relative change of the gain
    (n_groups, n_samples, n_outputs), and ``offset`` the change of the outputs themselves.
    ``n_unknowns`` is the number of coefficients per output.
    """

    change: np.ndarray
    gains: np.ndarray
    offset: np.ndarray
    power: np.ndarray
    error: float
    n_unknowns: int


def drift_of(part: Filtered, n_unknowns: int) -> Drift:
    """Return the drift of a recording to which ``n_unknowns`` were fitted per output."""
    n_groups, n, n_outputs = part.made.shape
    n_slow = min(_COSINES, n // (_PER_COEFFICIENT * (n_groups + 1)))
    t = (np.arange(n) + 0.5) / n
    slow = np.cos(np.pi * t[:, None] * np.arange(1, n_slow + 1))
    change, gains = np.zeros((n, n_outputs)), np.zeros(part.made.shape)
    offset = np.zeros((n, n_outputs))
    left, q = part.rest, n_slow * (n_groups + 1)
    if not q:
        return Drift(change, gains, offset, np.zeros(n_outputs), 0.0, 0)
    for k in range(n_outputs):
        X = np.concatenate([slow, *(slow * one[:, [k]] for one in part.made)], axis=1)
        found = np.linalg.lstsq(X, left[:, k], rcond=1e-9)[0]
        change[:, k] = X @ found
        waves = found.reshape(-1, n_slow) @ slow.T
        offset[:, k], gains[:, :, k] = waves[0], waves[1:]
    rest = left - change
    # Noise with memory is stronger at slow frequencies: (1 + ρ)/(1 − ρ) times if it forgets
    # at a rate of ρ per step.
    along, power = (rest[1:] * rest[:-1]).sum(0), (rest**2).sum(0)
    forgets = np.clip(along / np.maximum(power, 1e-300), 0.0, 0.99)
    slower = (1 + forgets) / (1 - forgets)
    noise = slower * power / max(n - q - n_unknowns, 1)
    power = (change**2).mean(0) - noise * q / n
    scatter = np.cov(rest * np.sqrt(slower), rowvar=False).reshape(-1)
    error = float(np.sqrt(2 * q * (scatter**2).sum())) / n
    return Drift(change, gains, offset, power, error, q)


def is_sure(drifts: Sequence[Drift]) -> bool:
    """Return whether outputs of unit variance drift, and not by chance alone."""
    power, error = sum(one.power for one in drifts), [one.error for one in drifts]
    least = max(
        _SURE * float(np.linalg.norm(error)), _STEADY * len(drifts) * np.size(power)
    )
    return float(np.sum(power)) > least


def products(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the similarity of all products of degree two and of three, each (n, n).

    X holds n samples of m whitened variables. With Mehler's kernel G = Σ_n ρⁿ K_n,
    n K_n = Σ_j e_j K_{n−j}, where e_j is j x·x′ for odd j and m − j (|x|² + |x′|²)/2 for
    even j.
    """
    m, dot, size = X.shape[1], X @ X.T, (X**2).sum(1)
    mixed = m - (size[:, None] + size)
    second = (dot**2 + mixed) / 2
    return second, (dot * second + mixed * dot + 3 * dot) / 3


def _whitened(P: np.ndarray) -> np.ndarray:
    """Return the leading uncorrelated combinations of variables, at unit variance."""
    P = P - P.mean(0)
    U, s, _ = np.linalg.svd(P / np.maximum(P.std(0), 1e-300), full_matrices=False)
    kept = min(int((s > 1e-3 * s[0]).sum()), _VARIABLES)
    return U[:, :kept] * np.sqrt(len(P))


def _of_products(
    X: np.ndarray, rest: np.ndarray, times: np.ndarray, apart: int
) -> tuple[np.ndarray, float]:
    """Return the power of ``rest`` that products of degree 2 and 3 explain, and its error.

    Samples less than ``apart`` steps apart are not compared, because their noise may be
    alike.
    """
    n = len(rest)
    alike = rest @ rest.T
    kernels = [one * (n / np.trace(one)) for one in products(X)]
    near = np.abs(times[:, None] - times) < apart
    for one in kernels:
        one[near] = 0.0
    A = np.array([[(one * other).sum() for other in kernels] for one in kernels])
    found = np.linalg.solve(A, [(one * alike).sum() for one in kernels])
    scatter = float((np.cov(rest, rowvar=False).reshape(-1) ** 2).sum())
    return found, float(np.sqrt(2 * scatter * np.linalg.inv(A).sum()))


def hermite(p: np.ndarray, degrees: Sequence[int]) -> np.ndarray:
    """Return polynomials of one prediction, orthonormal for its own samples."""
    z = (p - p.mean()) / max(float(p.std()), 1e-300)
    Q, R = np.linalg.qr(np.stack([z**k for k in range(max(degrees) + 1)], axis=1))
    return (Q * np.sign(np.diag(R)))[:, list(degrees)] * np.sqrt(len(p))


def _nonlinear(
    parts: Sequence[Filtered], lefts: Sequence[np.ndarray], n_lags: int
) -> tuple[float, float, float]:
    """Return the power of even and of odd degree, and the standard error of their sum."""
    made, rest = [one.predicted for one in parts], np.concatenate(lefts)
    n_outputs = rest.shape[1]
    (even, odd), rest = _curvature([_stacked(one, 2) for one in made], rest)
    starts = np.cumsum([0, *(len(one) + 2 * n_lags for one in lefts)])
    times = np.concatenate(
        [at + np.arange(len(one)) for at, one in zip(starts, lefts, strict=False)]
    )
    # The states may have been curved at earlier steps, too.
    tried = []
    for n_before in {1, max(2, _VARIABLES // (2 * n_outputs))}:
        X = np.concatenate([_stacked(one, n_before) for one in made])
        kept = np.arange(0, len(X), max(1, -(-len(X) // _COMPARED)))
        tried.append(_of_products(_whitened(X[kept]), rest[kept], times[kept], 2 * n_lags))
    more, error = max(tried, key=lambda one: float(one[0].sum()))
    if more.sum() > 0:
        even, odd = even + more[0], odd + more[1]
    return max(float(even), 0.0), max(float(odd), 0.0), error


def _curvature(
    stacked: Sequence[np.ndarray], rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the power of even and odd curves of each prediction, and what they leave.

    The curves are functions of the present and of the last prediction of an output, so
    they need no Gaussian variables.
    """
    P, n, power, left = np.concatenate(stacked), len(rest), np.zeros(2), rest.copy()
    for k in range(rest.shape[1]):
        curves = [hermite(P[:, j], _STATIC) for j in (k, k + rest.shape[1])]
        parts = [np.concatenate([one[:, i::2] for one in curves], axis=1) for i in (0, 1)]
        X = np.concatenate(parts, axis=1)
        found = np.linalg.lstsq(X, rest[:, k], rcond=1e-6)[0]
        weights = np.split(found, [parts[0].shape[1]])
        pairs = zip(parts, weights, strict=True)
        both = np.array([((one @ w) ** 2).mean() for one, w in pairs])
        left[:, k] -= X @ found
        chance = X.shape[1] / n * (left[:, k] ** 2).mean()
        power += both * max(1 - chance / max(float(both.sum()), 1e-300), 0.0)
    return power, left


def _stacked(P: np.ndarray, n: int) -> np.ndarray:
    """Return each sample with the n − 1 before it; the first samples repeat."""
    at = np.arange(len(P))[:, None] - np.arange(n)
    return P[np.maximum(at, 0)].reshape(len(P), -1)


def _memory(drive: np.ndarray, left: np.ndarray, n_lags: int) -> float:
    """Return the power that follows the drive at later lags, beyond chance.

    ``drive`` is white; both arrays end at the same sample.
    """
    n_inputs, found = drive.shape[1], 0.0
    for lag in range(n_lags, n_lags + min(_LATER * n_lags, len(left) // 8)):
        past = drive[max(len(drive) - len(left) - lag, 0) : len(drive) - lag]
        late = left[len(left) - len(past) :]
        size = np.maximum((past**2).mean(0), 1e-300)
        power = ((past.T @ late / len(late)) ** 2 / size[:, None]).sum()
        found += float(power - n_inputs * (late**2).mean(0).sum() / len(late))
    return found


def repeated_noise(
    drives: Sequence[np.ndarray], lefts: Sequence[np.ndarray], n_lags: int
) -> tuple[float, int]:
    """Return the power that differs between samples with one past, and their number."""
    ids = np.unique(np.concatenate(drives), axis=0, return_inverse=True)[1].ravel()
    windows, rests, at = [], [], 0
    for d, left in zip(drives, lefts, strict=True):
        own = np.lib.stride_tricks.sliding_window_view(ids[at : at + len(d)], n_lags)
        n = min(len(own), len(left))
        windows.append(own[len(own) - n :])
        rests.append(left[len(left) - n :])
        at += len(d)
    every, rest = np.concatenate(windows), np.concatenate(rests)
    if ids.max() + 1 == len(ids) or not len(every):
        return 0.0, 0
    _, group, count = np.unique(every, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()
    again = count[group] > 1
    n, n_groups = int(again.sum()), int((count > 1).sum())
    if n < _REPEATED:
        return 0.0, 0
    means = np.stack([np.bincount(group, one, len(count)) for one in rest.T], axis=1)
    left = (rest - (means / count[:, None])[group])[again]
    return float((left**2).sum()) / (n - n_groups), n


def variance_shares(
    parts: Sequence[Filtered],
    white: Sequence[np.ndarray],
    n_lags: int,
    drift: float,
) -> VarianceShares:
    """Return the causes of the variance of recordings, without their drift.

    ``white`` holds the unpredictable part (n_samples, n_inputs) of each drive. The
    prediction has ``n_lags`` lags and was fitted without a penalty. ``drift`` is the power
    of the drift, summed over the outputs.
    """
    n, drives = sum(len(one.outputs) for one in parts), [one.drive for one in parts]
    total = sum(float((one.outputs**2).sum()) for one in parts) / n + drift
    # A fit makes the rest smaller than it is; correct for the number of unknowns.
    grown = np.sqrt(n / max(n - n_lags * drives[0].shape[1], 1))
    lefts = [grown * one.rest for one in parts]
    rest = sum(float((one**2).sum()) for one in lefts) / n
    late = [_memory(*one, n_lags) * len(one[1]) for one in zip(white, lefts, strict=True)]
    memory = min(max(sum(late) / n, 0.0), rest)
    even, odd, error = _nonlinear(parts, lefts, n_lags)
    noise, repeated = repeated_noise(drives, lefts, 2 * n_lags)
    known = max(rest - memory - noise, 0.0)
    curved = max(even + odd, 1e-300)
    if repeated or curved > known:
        even, odd = even / curved * known, known - even / curved * known
    found = {"drift": drift, "even": even, "odd": odd, "memory": memory}
    found["noise"] = max(rest - even - odd - memory, 0.0)
    shares = {name: float(one) / total for name, one in found.items()}
    linear, error = 1 - sum(shares.values()), error / total
    return VarianceShares(linear=linear, error=error, repeated=repeated, **shares)


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate(Shown):
    """What a device adds to its linear prediction p: curvature, noise and drift.

    With z = p/size, output k at time t is p_k + Σ_l Σ_j even[l, k, j] (z_j² − 1) +
    odd[l, k, j] (z_j³ − 3 z_j) + noise, with z_j at time t − l. A network of units that
    bend their states has this form to leading order, if its outputs are the states.

    Attributes
    ----------
    size : ndarray (n_outputs,)
        Standard deviation of the prediction in the recording.
    even, odd : ndarray (n_back, n_outputs, n_outputs)
        Curvature that follows predictions at the present and at earlier steps.
    noise : ndarray (n_outputs, n_outputs)
        Covariance of all that remains.
    gains : ndarray (n_moments, n_steps, n_outputs)
        Relative change of the response at several moments of the recording.
    offsets : ndarray (n_moments, n_outputs)
        Change of the outputs at the same moments.
    """

    size: np.ndarray
    even: np.ndarray
    odd: np.ndarray
    noise: np.ndarray
    gains: np.ndarray
    offsets: np.ndarray

    def _facts(self) -> dict[str, Any]:
        return {"size": self.size, "moments": len(self.gains)}

    def bent(self, path: np.ndarray) -> np.ndarray:
        """Return what curvature adds to predictions ``path`` (n_back, n, n_outputs).

        The first prediction is the present one, and the others are those of earlier steps.
        """
        total = np.zeros(path.shape[1:])
        for p, even, odd in zip(path, self.even, self.odd, strict=False):
            square, cube = _curves(p / self.size)
            total += square @ even.T + cube @ odd.T
        return total

    def weak(self, G: np.ndarray) -> np.ndarray:
        """Return the response of a weakly driven device, from G fitted to the recording.

        G is (n_steps, n_outputs, n_inputs), with the latest step last.
        """
        made = G.copy()
        for lag, odd in enumerate(self.odd[: len(G)]):
            made[: len(G) - lag] -= 3 * (odd / self.size) @ G[lag:]
        return made


def _curves(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return even and odd curves of predictions of unit variance, within what was seen."""
    z = np.clip(z, -_SEEN, _SEEN)
    return z**2 - 1, z**3 - 3 * z


def surrogate(
    parts: Sequence[Filtered],
    drifts: Sequence[Drift],
    shares: VarianceShares,
    n_lags: int,
    n_steps: int,
    unit: np.ndarray,
) -> Surrogate:
    """Return what the device adds to its linear prediction, fitted to recordings.

    Drifts are in ``unit`` (n_outputs,). The noise has the size of its share: what remains
    of a device of high order is determined by the drive, and readouts can use it.
    """
    P = [one.predicted for one in parts]
    n, n_outputs = sum(len(one) for one in P), P[0].shape[1]
    size = np.sqrt(sum((one**2).sum(0) for one in P) / n)
    size = np.maximum(size, 1e-300)
    n_back = int(np.clip(n // (20 * n_outputs), 1, min(n_lags, n_steps)))
    features, rests = [], []
    for one, part in zip(P, parts, strict=True):
        curves = np.concatenate(_curves(one / size), axis=1)
        features.append(_stacked(curves, n_back))
        rests.append(part.rest)
    F, rest = np.concatenate(features), np.concatenate(rests)
    W = _best_ridge(F - F.mean(0), rest - rest.mean(0))
    left = rest - (F - F.mean(0)) @ W
    curves = W.reshape(n_back, 2, n_outputs, n_outputs).transpose(1, 0, 3, 2)
    gains, offsets = np.zeros((0, n_steps, n_outputs)), np.zeros((0, n_outputs))
    if drifts:
        cuts = [np.array_split(one.gains, _MOMENTS, axis=1) for one in drifts]
        means = np.array([part.mean(1) for one in cuts for part in one])
        gains = np.zeros((len(means), n_steps, n_outputs))
        for lag in range(min(n_lags, n_steps)):  # lags 0, 1, 2–3, 4–7, … share a gain
            group = min(lag.bit_length(), means.shape[1] - 1)
            gains[:, n_steps - 1 - lag] = means[:, group]
        cuts = [np.array_split(one.offset, _MOMENTS) for one in drifts]
        offsets = np.array([part.mean(0) for one in cuts for part in one]) * unit
    # A fit makes the rest smaller than it is; correct for the number of unknowns.
    unknowns = n_lags * parts[0].drive.shape[1] + sum(one.n_unknowns for one in drifts)
    noise = left.T @ left / max(n - unknowns, 1)
    missed = max(shares.noise + shares.nonlinearity + shares.memory, 1e-300)
    known = shares.noise / missed * float((rest**2).sum()) / max(n - unknowns, 1)
    noise *= min(known / max(float(np.trace(noise)), 1e-300), 1.0)
    return Surrogate(size, *curves, noise=noise, gains=gains, offsets=offsets)


def _best_ridge(F: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the ridge solution (n_features, n_outputs), with a penalty for each output.

    Blocks of time that were left out choose the penalty; without a gain there, the solution
    is zero.
    """
    blocks = np.arange(len(F)) * 4 // len(F)
    grams, crosses = (
        np.array([F[blocks == b].T @ other[blocks == b] for b in range(4)])
        for other in (F, rest)
    )
    A, B = grams.sum(0), crosses.sum(0)
    penalties = np.geomspace(1e-4, 1e2, 13) * max(float(np.trace(A)) / len(A), 1e-300)
    errors = np.zeros((len(penalties), rest.shape[1]))
    for own, cross in zip(grams, crosses, strict=True):
        for k, W in enumerate(ridge_path(A - own, B - cross, 0.75 * penalties)):
            errors[k] += (W * (own @ W) - 2 * W * cross).sum(0)
    found = np.stack(list(ridge_path(A, B, penalties)))
    best = errors.argmin(0)
    chosen = found[best, :, np.arange(rest.shape[1])].T
    return np.where(errors.min(0) < 0, chosen, 0.0)
