"""Drives of a device: of the next recording, and of series within its range.

The next recording: how strong, how long, and its drive.

Two kinds of errors of a fitted response have to be balanced. Everything that the filter
does not explain makes it uncertain, by the number of unknowns over the number of samples;
with f times the drive, noise falls as 1/f², and non-linearity of even degree rises as f²,
of odd degree as f⁴. And non-linearity of odd degree makes the response depend on the
strength of the drive: if an output is z + c (z³ − 3z) for a prediction z of unit variance,
a weak signal sees 1 − 3c, and the share of c is 6c². The square of that error is 1.5 times
the share, and a longer recording does not reduce it. Masks bear a common factor of all
outputs, so only a part of it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.printing import Shown
from .shares import VarianceShares

#: Smallest and largest change of the amplitude in one step, and the least that is advised.
_FACTORS, _NOTABLE = (0.1, 4.0), 1.15
#: Share of the response's power that errors of the fit may have; relative squared error of
#: the response per share of odd degree, and a guess per share of even degree.
_ERROR, _BIAS, _EVEN_BIAS = 0.001, 0.4, 0.25
#: Ratio of noise and non-linearity from which on the drive does not become weaker.
_NOISY = 5.0
#: Share of the linear response below which a recording without a sure cause is not called
#: clean.
_UNKNOWN = 0.9
#: How much longer a recording may become in one step.
_LONGER = 4.0
#: Number of reference segments, their length in lags, and their largest share of the drive.
_SEGMENTS, _LAGS_LONG, _LARGEST_SHARE = 10, 6, 0.2
#: Largest value of uniform noise, in standard deviations.
_RANGE = 3**0.5


@dataclass(frozen=True, eq=False, repr=False)
class NextRecording(Shown):
    """The recording to make next.

    Attributes
    ----------
    advice : str
        What to do, and why, in one or two sentences.
    factor : float
        Amplitude of the drive, relative to the last recording.
    amplitude : ndarray (n_inputs,)
        Standard deviation of the drive at each input.
    n_samples : int
        Length of the recording.
    n_reference : int
        Length of the reference segment, the same drive several times; 0 for none.
    n_lags : int
        Number of lags to fit, if the next fit needs more.
    """

    advice: str
    factor: float
    amplitude: np.ndarray
    n_samples: int
    n_reference: int
    n_lags: int

    def _facts(self) -> dict[str, Any]:
        facts = {"advice": self.advice, "factor": self.factor, "samples": self.n_samples}
        return {**facts, "reference": self.n_reference, "lags": self.n_lags}

    def drive(
        self,
        *,
        bits: int | None = None,
        positive: bool = False,
        rng: np.random.Generator | int | None = None,
    ) -> np.ndarray:
        """Draw the drive (n_samples, n_inputs).

        Parameters
        ----------
        bits : int, optional
            Number of bits of the converter; the values are then its levels, evenly spaced.
        positive : bool
            Shift the drive so that its smallest value is 0.
        rng : numpy Generator, int or None

        Notes
        -----
        The values are uniform, which makes best use of a limited range. They are new in
        each step, except in the reference segments, which are spread over the recording.
        """
        generator, n = check.generator(rng), self.n_samples
        made = generator.uniform(-1, 1, (n, len(self.amplitude)))
        if self.n_reference:
            first = made[: self.n_reference].copy()
            for start in np.linspace(0, n - len(first), _SEGMENTS).round().astype(int):
                made[start : start + len(first)] = first
        if bits is not None:
            levels = 2 ** check.count(bits, "bits") - 1
            made = np.round((made + 1) / 2 * levels) / levels * 2 - 1
        return (made + positive) * _RANGE * self.amplitude


@dataclass(frozen=True, eq=False, repr=False)
class Encoding(Shown):
    """Drives of a device with a limited range: offset + gain · (mask · series).

    Attributes
    ----------
    gain : float
        Largest factor with which all series fit into the range.
    offset : ndarray (n_inputs,)
        Drive of each input at rest, which centres its values in the range. A linear device
        answers it with a constant, so keep it up between series; the mean of the outputs,
        or the intercept of a readout, removes this constant.
    u : ndarray (n_inputs, n_channels)
    low, high : float
        Ends of the range.
    bits : int or None
        Number of bits of the converter.
    """

    gain: float
    offset: np.ndarray
    u: np.ndarray
    low: float
    high: float
    bits: int | None

    def _facts(self) -> dict[str, Any]:
        return {"gain": self.gain, "offset": self.offset, "bits": self.bits}

    @classmethod
    def of(
        cls, u: np.ndarray, X: np.ndarray, drive_range: np.ndarray, bits: int | None
    ) -> Encoding:
        """Return the encoding of series (n_cases, n_channels, n_steps) with u."""
        low, high = (float(one) for one in drive_range)
        made = np.einsum("ic,sck->isk", u, X).reshape(len(u), -1)
        # The series begin and end at rest, where the drive is the offset alone.
        least, most = np.minimum(made.min(1), 0.0), np.maximum(made.max(1), 0.0)
        widest = float((most - least).max())
        gain = (high - low) / widest if widest > 0 else 1.0
        offset = (low + high - gain * (least + most)) / 2
        return cls(gain, np.clip(offset, low, high), u, low, high, bits)

    def drive(self, X: ArrayLike) -> np.ndarray:
        """Return the drive (n_cases, n_steps, n_inputs) of transformed series.

        Values beyond the range, which new series may have, are cut off at its ends.
        """
        series = np.asarray(X, dtype=np.float64)
        series = series[:, None] if series.ndim == 2 else series
        made = self.offset + self.gain * np.einsum("ic,sck->ski", self.u, series)
        made = np.clip(made, self.low, self.high)
        if self.bits is None:
            return made
        step = (self.high - self.low) / (2**self.bits - 1)
        return self.low + np.round((made - self.low) / step) * step


def next_recording(
    shares: VarianceShares, n_samples: int, n_lags: int, drive_size: np.ndarray
) -> NextRecording:
    """Return the recording to make after one with these shares.

    That one has ``n_samples`` samples, ``n_lags`` fitted lags, and a drive of standard
    deviation ``drive_size`` (n_inputs,).
    """
    factors, largest = np.geomspace(*_FACTORS, 200), shares.largest
    noise, even, odd = (max(x, 0.0) for x in (shares.noise, shares.even, shares.odd))
    lags = 2 * n_lags if largest == "memory" else n_lags
    unknowns = lags * len(drive_size)
    # Noise and non-linearity that this recording cannot show may still be there; what it
    # shows by chance does not forbid a stronger drive, whose recording shows it better.
    noise = max(noise, shares.error / 2)
    odd = max(odd - shares.error, shares.error / 10)
    lost = noise / factors**2 + even * factors**2 + odd * factors**4
    bias = _BIAS * odd * factors**4 + _EVEN_BIAS * even * factors**2
    best = int((bias + unknowns / (_LONGER * n_samples) * lost).argmin())
    factor = float(factors[best])
    # A good recording needs no other drive, a noisy and nearly linear one no weaker one.
    noisy = largest == "noise" and shares.noise > _NOISY * shares.nonlinearity
    here = int(np.abs(factors - 1).argmin())
    good = largest is None and bias[here] + unknowns / n_samples * lost[here] < _ERROR
    unknown = largest is None and shares.linear < _UNKNOWN
    keep = good or unknown or (noisy and factor < 1)
    if keep or max(factor, 1 / factor) < _NOTABLE:
        factor, best = 1.0, here
    wanted = unknowns * (lost[best] / max(shares.linear, 0.05)) / _ERROR
    # A slow change is told from the response over a longer time.
    least = _LONGER / 2 * n_samples if largest == "drift" else n_samples
    length = int(np.ceil(np.clip(wanted, least, _LONGER * n_samples)))
    length = n_samples if good else max(length, 4 * unknowns + lags)
    reference = min(_LAGS_LONG * n_lags, int(_LARGEST_SHARE * length / _SEGMENTS))
    reference = reference if reference > 2 * n_lags else 0
    return NextRecording(
        _advice(shares, factor, length, length > 1.2 * n_samples),
        factor,
        factor * drive_size,
        length,
        reference,
        lags,
    )


def _advice(shares: VarianceShares, factor: float, length: int, longer: bool) -> str:
    """Return what to do about the largest cause."""
    largest = shares.largest
    strength = f"drive {factor:.2g} times as strongly"
    length_too = f"record {length} samples" if longer else ""
    if largest is None and shares.linear < _UNKNOWN:
        return (
            f"Only {shares.linear:.0%} of the outputs is a linear response, and this "
            "recording does not tell why: check that it holds every input of the device"
            f"{f', and {length_too}' if longer else ''}."
        )
    if largest is None:
        clean = "The device is nearly linear and the recording is clean"
        better = " and ".join(filter(None, [strength if factor != 1 else "", length_too]))
        return f"{clean}; {f'for more, {better}' if better else 'keep this drive'}."
    told = f"The largest cause is {largest} ({shares.causes[largest]:.0%} of the variance)"
    if longer and factor == 1:
        length_too += " and fit them together with these"
    also = f", and {length_too}" if longer else ""
    if largest == "drift":
        return (
            f"{told}: record again once the device has settled, with reference segments, "
            f"which repeat the same drive{also}. Slow changes are removed from this fit."
        )
    if largest == "memory":
        return f"{told}: fit more lags{also}."
    if largest == "noise" and factor > 1:
        return f"{told}: {strength}{also}."
    if largest == "noise":
        weaker = f", and {strength}" if factor < 1 else ""
        again = length_too or "average repeated recordings"
        return f"{told}, but a stronger drive would bend the response: {again}{weaker}."
    if factor < 1:
        return f"{told}: {strength}{also}."
    return f"{told}, but a weaker drive would sink in the noise: {length_too or 'keep it'}."
