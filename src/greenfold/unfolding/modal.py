"""A normal network given by its modes, without any N×N matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.printing import Shown
from .kernels import KnownByMaps
from .linear import modal_responses, modal_step

#: Up to this number of neurons, a sum of Green's functions is formed as a matrix.
_DENSE_SIZE = 400


@dataclass(frozen=True, eq=False, repr=False)
class ModalSystem(KnownByMaps, Shown):
    """A normal linear network given by its modes: a diagonal state-space model.

    Use it in place of an `Unfolding` in `optimize`. Memory and time grow with n_neurons ·
    n_steps, so 10⁵ neurons fit on a laptop. `ring` and `oscillators` make the networks of
    `Reservoir.cycle` and `Reservoir.oscillators`.

    Parameters
    ----------
    E : array_like (n_blocks,), real or complex
        Factor by which each mode changes per step. A mode takes one neuron or a pair.
    F : array_like (n_blocks,), real or complex
        State of each mode after a step of unit input, from rest.
    n_steps : int
        Number of steps of the stimuli; the state is read after the last step.
    pairs : array_like of bool (n_blocks,), optional
        Modes that take a pair of neurons; by default, those with a complex E or F.
    on_ring : bool
        Whether the modes are the Fourier modes of a ring, starting with the constant mode.
        Projections then run around the ring; otherwise, neurons are in the order of the
        modes.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, optimize
    >>> from greenfold.unfolding import ModalSystem
    >>> ring = ModalSystem.ring(1000, n_steps=10, dt=0.5)
    >>> best = optimize(ring, GaussianStimuli.random(10, strength=1.0, rng=0))
    >>> best.status, best.u.shape
    ('certified', (1000,))
    """

    E: np.ndarray
    F: np.ndarray
    n_steps: int
    pairs: ArrayLike | None = None
    on_ring: bool = False
    #: Number of neurons: rows of the input projection, and entries of the readout.
    n_inputs: int = field(init=False, repr=False)
    n_outputs: int = field(init=False, repr=False)
    _pairs: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("E", "F"):
            given = np.asarray(check.unmasked(getattr(self, name), name))
            wanted = "have one finite number per mode"
            fits = given.ndim == 1 and given.size and np.isfinite(given).all()
            check.must(fits, name, wanted, f"shape {given.shape}")
            object.__setattr__(self, name, given.astype(complex))
        got = f"{len(self.E)} and {len(self.F)}"
        check.must(len(self.E) == len(self.F), "F", "have one number per entry of E", got)
        turns = (np.imag(self.E) != 0) | (np.imag(self.F) != 0)
        pairs = turns if self.pairs is None else np.asarray(self.pairs, dtype=bool)
        wanted, got = "have one truth value per mode", f"shape {pairs.shape}"
        check.must(pairs.shape == turns.shape, "pairs", wanted, got)
        alone = "be true for every mode with a complex E or F"
        check.must((pairs >= turns).all(), "pairs", alone, pairs.tolist())
        object.__setattr__(self, "_pairs", pairs)
        object.__setattr__(self, "n_steps", check.count(self.n_steps, "n_steps"))
        for name in ("n_inputs", "n_outputs"):
            object.__setattr__(self, name, len(self.E) + int(pairs.sum()))

    @classmethod
    def continuous(
        cls,
        rates: ArrayLike,
        drive: float,
        *,
        n_steps: int,
        dt: float,
        pairs: ArrayLike | None = None,
        on_ring: bool = False,
    ) -> ModalSystem:
        """Make a system of modes ẏ = rate · y + drive · u x, in steps of length ``dt``."""
        each, dt = np.asarray(rates, dtype=complex), check.positive(dt, "dt")
        return cls(*modal_step(each, drive, dt), n_steps, pairs, on_ring)

    @classmethod
    def oscillators(
        cls,
        decay_times: ArrayLike,
        frequencies: ArrayLike,
        tau: float | None = None,
        *,
        n_steps: int,
        dt: float,
    ) -> ModalSystem:
        """Make the oscillators of `Reservoir.oscillators`, with the same arguments."""
        T = check.host_array(decay_times, "decay_times", ndim=(1,))
        omega = check.host_array(frequencies, "frequencies", ndim=(1,))
        check.must(T.min() > 0, "decay_times", "be positive", f"{T.min():g}")
        tau = float(T.min()) if tau is None else check.positive(tau, "tau")
        rates, pairs = 1j * omega - 1 / T, np.full(len(T), True)
        return cls.continuous(rates, 1 / tau, n_steps=n_steps, dt=dt, pairs=pairs)

    @classmethod
    def ring(
        cls,
        n_neurons: int,
        weight: float = 0.9,
        tau: float = 0.25,
        *,
        n_steps: int,
        dt: float,
    ) -> ModalSystem:
        """Make the ring of `Reservoir.cycle`: each neuron drives the next by ``weight``."""
        n, tau = check.count(n_neurons, "n_neurons"), check.positive(tau, "tau")
        waves = np.arange(n // 2 + 1)
        pairs = (waves > 0) & (2 * waves < n)
        alone = np.where(waves == 0, 1.0, -1.0)
        turn = np.where(pairs, np.exp(-2j * np.pi * waves / n), alone)
        rates = (check.number(weight, "weight") * turn - 1) / tau
        return cls.continuous(
            rates, 1 / tau, n_steps=n_steps, dt=dt, pairs=pairs, on_ring=True
        )

    def _facts(self) -> dict[str, Any]:
        slowest = float(np.abs(self.E).max())
        return {"neurons": self.n_inputs, "steps": self.n_steps, "slowest": slowest}

    @cached_property
    def _first(self) -> np.ndarray:
        """First neuron of each mode, unless the modes are those of a ring."""
        return np.append(0, np.cumsum(1 + self._pairs)[:-1])

    @property
    def responses(self) -> np.ndarray:
        """Factors γ (n_steps, n_blocks) by which G_n multiplies each mode."""
        return self._responses

    @cached_property
    def _responses(self) -> np.ndarray:
        at_end = np.eye(1, self.n_steps, self.n_steps - 1)[0]
        return modal_responses(self.E, self.F, at_end, self.n_steps)

    def modes(self) -> ModalSystem:
        """Return the system itself, which has ``responses`` and `vectors`."""
        return self

    def vectors(self, coordinates: np.ndarray) -> np.ndarray:
        """Return real vectors (n_neurons, …) from complex coordinates (n_blocks, …)."""
        if self.on_ring:
            return along_ring(coordinates, self.n_inputs)
        turned = coordinates.T
        made = np.empty((*turned.shape[:-1], self.n_inputs))
        made[..., self._first] = np.real(turned)
        made[..., self._first[self._pairs] + 1] = np.imag(turned)[..., self._pairs]
        return made.T

    def coordinates(self, vectors: ArrayLike) -> np.ndarray:
        """Return complex coordinates (n_blocks, …) of real vectors (n_neurons, …)."""
        turned = np.asarray(vectors, dtype=np.float64).T
        if self.on_ring:
            sizes = wave_sizes(self.n_inputs)
            return (np.fft.rfft(turned, axis=-1, norm="ortho") * sizes).T
        made = turned[..., self._first].astype(complex)
        made[..., self._pairs] += 1j * turned[..., self._first[self._pairs] + 1]
        return made.T

    def input_response(self, u: ArrayLike) -> np.ndarray:
        """Return Rᵤ (n_channels · n_steps, n_neurons) for u, with or without channels."""
        x = self.coordinates(np.reshape(u, (self.n_inputs, -1)))
        return np.concatenate([self.vectors((self.responses * own).T).T for own in x.T])

    def readout_response(self, v: ArrayLike) -> np.ndarray:
        """Return L_v (n_steps, n_neurons) for a readout v; several v add an axis."""
        y = self.coordinates(v)
        if y.ndim == 1:
            return self.vectors((self.responses.conj() * y).T).T
        made = self.responses.conj()[:, :, None] * y
        return self.vectors(made.swapaxes(0, 1)).swapaxes(0, 1)

    def response_sum(self, d: np.ndarray) -> ModalSum:
        """Return G(d) = Σ_n d_n G_n for weights d (n_channels, n_steps)."""
        return ModalSum(self, d @ self.responses)

    def _carry_back(self, R_bar: np.ndarray) -> np.ndarray:
        """Return ∂L/∂u (n_neurons, n_channels) from ∂L/∂Rᵤ (n_channels, n_steps, N)."""
        by_step = self.coordinates(R_bar.transpose(2, 0, 1))
        return self.vectors(np.einsum("bcn,nb->bc", by_step, self.responses.conj()))


def wave_sizes(n_neurons: int) -> np.ndarray:
    """Return the size of the coordinate of each Fourier mode, √2 for a pair of neurons."""
    waves = np.arange(n_neurons // 2 + 1)
    return np.where((waves > 0) & (2 * waves < n_neurons), np.sqrt(2), 1.0)


def along_ring(coordinates: np.ndarray, n_neurons: int) -> np.ndarray:
    """Return vectors (n_neurons, …) around a ring from coordinates of Fourier modes."""
    waves = coordinates.T / wave_sizes(n_neurons)
    return np.fft.irfft(waves, n_neurons, axis=-1, norm="ortho").T


@dataclass(frozen=True, eq=False)
class RingModes:
    """The `greenfold.systems.NormalModes` of circulant weights: Fourier modes."""

    responses: np.ndarray
    n_neurons: int

    def vectors(self, coordinates: np.ndarray) -> np.ndarray:
        """Return real vectors (n_neurons, …) from complex coordinates (n_blocks, …)."""
        return along_ring(coordinates, self.n_neurons)


@dataclass(frozen=True, eq=False)
class ModalSum:
    """The sum G(d) of a `ModalSystem`, a `greenfold.systems.ResponseSum` kept by modes."""

    system: ModalSystem
    #: Factor of each channel, mode by mode, (n_channels, n_blocks).
    numbers: np.ndarray

    def matrix(self) -> np.ndarray | None:
        """Return G(d) as (n_neurons, n_channels · n_neurons), or None if too large."""
        n = self.system.n_inputs
        if n > _DENSE_SIZE:
            return None
        x = self.system.coordinates(np.eye(n))
        made = [self.system.vectors(own[:, None] * x) for own in self.numbers]
        return np.concatenate(made, axis=1)

    def drive(self, u: np.ndarray) -> np.ndarray:
        """Return states (n_neurons, n_vectors) for u (n_neurons, n_channels, n_vectors)."""
        x = self.system.coordinates(u)
        return self.system.vectors(np.einsum("cb,bcr->br", self.numbers, x))

    def pull(self, v: np.ndarray) -> np.ndarray:
        """Return G(d)ᵀ v as (n_neurons, n_channels, …) for one v or several."""
        y = self.system.coordinates(v)
        return self.system.vectors(np.einsum("cb,b...->bc...", self.numbers.conj(), y))
