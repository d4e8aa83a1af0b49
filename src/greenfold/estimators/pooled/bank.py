"""The filter bank: reservoirs of damped oscillators on several time scales.

A linear reservoir that is read at every step is a bank of causal filters. Here each
reservoir covers one time scale τ₀: the decay times of its oscillators lie around τ₀, their
frequencies around 1/τ₀, and each random readout mixes all of them. Times are in steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...networks.reservoir import Reservoir

#: Number of readouts that compete with each other.
GROUP = 8
#: Shortest time scale in steps: below it, a step exceeds the memory.
SHORTEST = 1.5
#: Decay times of a reservoir of time scale τ₀, relative to τ₀.
DECAYS = (0.5, 2.0)
#: Angular frequencies of a reservoir, times τ₀: from a filter that hardly oscillates while
#: it decays to a filter that oscillates twice. They end at half a turn per step, the
#: Nyquist frequency.
FREQUENCIES = (0.3, 12.0)
#: A slow reservoir is read every τ₀/6 steps (its fastest mode turns by two radians in
#: between), but at least 128 times per series.
READS_PER_SCALE = 6
MIN_READS = 128
#: Number of parts of a reservoir that receive different channels.
PARTS = 8


@dataclass(frozen=True, eq=False)
class ScaleReservoir:
    """A linear reservoir of damped oscillators, and its readouts.

    Attributes
    ----------
    scale : float
        Time scale τ₀ in steps.
    decay_times, frequencies : ndarray (n_oscillators,)
        In steps, and in radians per step.
    u : ndarray (2 n_oscillators, n_channels)
        Input projection; neurons 2j and 2j + 1 are oscillator j.
    readouts : ndarray (2 n_oscillators, n_readouts)
        Readout vectors. Readouts i, i + n/8, i + 2n/8, … compete with each other.
    stride : int
        Steps from one reading to the next; the last step of a series is always read.
    """

    scale: float
    decay_times: np.ndarray
    frequencies: np.ndarray
    u: np.ndarray
    readouts: np.ndarray
    stride: int = 1

    @property
    def n_readouts(self) -> int:
        """Number of readouts D."""
        return self.readouts.shape[1]

    def reservoir(self) -> Reservoir:
        """Return the same network as a `Reservoir`, for steps of length one.

        Its input projection is τ times `u`, because the neurons here have no time constant.
        """
        return Reservoir.oscillators(self.decay_times, self.frequencies)

    @cached_property
    def rates(self) -> np.ndarray:
        """λ_j = −1/T_j + iω_j of each oscillator, complex."""
        return -1 / self.decay_times + 1j * self.frequencies

    @cached_property
    def drive(self) -> np.ndarray:
        """Effect of the input between two readings, (stride · n_channels, 2 n_oscillators).

        The state at a reading is exp(λ·stride) times the state at the previous reading,
        plus the steps in between (in time order, channels innermost) times this matrix. The
        real parts of all oscillators come first, then the imaginary parts. This is exact
        for input that is constant over a step: each step adds (exp(λ) − 1)/λ · u x.
        """
        complex_u = self.u[0::2] + 1j * self.u[1::2]
        step = (np.expm1(self.rates) / self.rates)[:, None] * complex_u
        left = np.arange(self.stride - 1, -1, -1)
        each = np.exp(left[:, None, None] * self.rates[:, None]) * step
        flat = np.moveaxis(each, 1, 2).reshape(-1, len(self.rates))
        return np.concatenate([flat.real, flat.imag], axis=1)

    @cached_property
    def split_readouts(self) -> np.ndarray:
        """`readouts` in the order of `drive`: real parts, then imaginary parts."""
        return np.concatenate([self.readouts[0::2], self.readouts[1::2]])

    def impulse_response(self, n_steps: int) -> np.ndarray:
        """Return the response to one step of input, (n_steps, n_channels, n_readouts)."""
        one = replace(self, stride=1)
        J = len(self.rates)
        start = one.drive[:, :J] + 1j * one.drive[:, J:]
        state = np.exp(np.arange(n_steps)[:, None, None] * self.rates) * start
        return np.concatenate([state.real, state.imag], axis=2) @ self.split_readouts


@dataclass(frozen=True, eq=False)
class FilterBank:
    """Reservoirs of several time scales that receive the same series."""

    scales: tuple[ScaleReservoir, ...]
    n_channels: int


def draw_bank(
    n_steps: float,
    n_channels: int,
    rng: np.random.Generator,
    *,
    n_scales: int = 8,
    n_oscillators: int = 32,
    n_readouts: int = 88,
) -> FilterBank:
    """Draw a filter bank for series of the typical length ``n_steps``.

    Time scales are spaced evenly in their logarithm, from 1.5 steps to half the series.
    Decay times and frequencies are log-uniform around them, and readouts are normal. The
    number of readouts is a multiple of 8. Every oscillator has the same response to white
    noise.

    With several channels, a reservoir has eight parts. Each part receives its own random
    mixture of some channels, so there are filters for single channels as well as for
    combinations. A readout reads one part.
    """
    longest = max(n_steps / 2, SHORTEST)
    scales = np.geomspace(SHORTEST, longest, n_scales) if n_scales > 1 else [longest]
    most = max(1, int(n_steps // MIN_READS))
    drawn = []
    for scale in scales:
        low, high = np.log(DECAYS)
        decay = scale * np.exp(rng.uniform(low, high, n_oscillators))
        fastest = min(FREQUENCIES[1] / scale, np.pi)
        low, high = np.log([FREQUENCIES[0] / scale, fastest])
        frequency = np.exp(rng.uniform(low, high, n_oscillators))
        u = np.zeros((2 * n_oscillators, n_channels))
        # The power of exp(−t/T) is T/2.
        u[0::2] = np.sqrt(2 / decay)[:, None]
        readouts = rng.standard_normal((2 * n_oscillators, n_readouts))
        if n_channels > 1:
            u[0::2] *= _mixtures(rng, n_oscillators, n_channels)
            parts = min(PARTS, n_oscillators)
            part = np.arange(2 * n_oscillators) // 2 % parts
            group = np.arange(n_readouts) % (n_readouts // GROUP)
            readouts *= part[:, None] == group % parts
        readouts /= np.linalg.norm(readouts, axis=0)
        stride = max(1, min(int(scale // READS_PER_SCALE), most))
        drawn.append(ScaleReservoir(float(scale), decay, frequency, u, readouts, stride))
    return FilterBank(tuple(drawn), n_channels)


def _mixtures(rng: np.random.Generator, n_oscillators: int, n_channels: int) -> np.ndarray:
    """Return the weight of each channel in each input, (n_oscillators, n_channels).

    The number of channels of a part is log-uniform, so single channels are as frequent as
    mixtures of half of the channels.
    """
    weights = np.zeros((n_oscillators, n_channels))
    for part in range(min(PARTS, n_oscillators)):
        size = int(2 ** rng.uniform(0, np.log2(n_channels + 1)))
        heard = rng.choice(n_channels, size, replace=False)
        mixture = rng.standard_normal(size)
        weights[part::PARTS, heard] = mixture / np.linalg.norm(mixture)
    return weights
