"""Simulated devices of six kinds, with noise, drift and saturation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

KINDS = ("Ikeda ring", "Mackey–Glass loop", "tanh network", "sin²", "linear", "memristors")
DEFECTS = ("noise", "drift", "saturation", "noise, drift", "noise, saturation")
#: Number of inputs and of outputs, and strongest lags of a response.
N, N_LAGS = 10, 15
#: Strength of the drive, weak and strong; in between, the devices bend by a few percent.
WEAK = dict[str, float](zip(KINDS, (0.05, 0.05, 0.05, 0.05, 0.1, 0.2), strict=True))
STRONG = dict[str, float](zip(KINDS, (0.5, 0.5, 1.0, 0.4, 1.0, 0.8), strict=True))
#: Noise, in deviations of the outputs, and changes of gain and offset.
NOISE = {"noise": 0.5, "noise, drift": 0.4, "noise, saturation": 0.1}
DRIFT = {"drift": 0.5, "noise, drift": 0.3}


def wandering(n: int, rng: np.random.Generator) -> np.ndarray:
    """A slow curve (n, 1) of unit variance."""
    t, k = (np.arange(n) + 0.5) / n, np.arange(1, 4)
    made = np.cos(np.pi * t[:, None] * k) @ (rng.standard_normal(3) / k)
    return (made / np.sqrt((made**2).mean()))[:, None]


@dataclass(frozen=True, eq=False)
class Simulated:
    """One device: ten nodes, each with its input, which all are read.

    ``size`` is that of the outputs under the first drive, for noise and offsets.
    """

    kind: str
    defect: str
    W: np.ndarray
    into: np.ndarray
    phase: np.ndarray
    kept: np.ndarray
    size: float = 1.0

    @classmethod
    def make(cls, kind: str, defect: str, seed: int = 0) -> Simulated:
        """Draw the weights of a device."""
        rng = np.random.default_rng([KINDS.index(kind), seed])
        W = 0.6 * np.linalg.qr(rng.standard_normal((N, N)))[0]
        if kind in KINDS[:2]:
            ring = np.eye(N)
            W = 0.6 * np.roll(ring, 1, axis=0) + 0.3 * np.roll(ring, 2, axis=0)
        low, high = (0.3, 0.6) if kind in ("Ikeda ring", "sin²") else (-0.3, 0.3)
        phase, into = rng.uniform(low, high, N), rng.uniform(0.5, 1.0, N)
        device = cls(kind, defect, W, into, phase, rng.uniform(0.3, 0.7, N))
        size = float(device.clean(device.first_drive(seed)).std())
        return replace(device, size=size)

    @property
    def strength(self) -> float:
        """Deviation of the first drive."""
        return (STRONG if "saturation" in self.defect else WEAK)[self.kind]

    def first_drive(self, seed: int, n: int = 3000) -> np.ndarray:
        """Return uniform noise, (n, N)."""
        made = np.random.default_rng([7, seed]).uniform(-1, 1, (n, N))
        return self.strength * 3**0.5 * made

    def _step(self, state: np.ndarray, pulse: np.ndarray) -> np.ndarray:
        fed, phase = state @ self.W.T + pulse * self.into, self.phase
        if self.kind == "Ikeda ring":
            return np.sin(fed + phase) ** 2 - np.sin(phase) ** 2
        if self.kind == "Mackey–Glass loop":
            rest = 0.5 + phase
            return 1.3 * ((fed + rest) / (1 + (fed + rest) ** 2) - rest / (1 + rest**2))
        if self.kind == "tanh network":
            return np.tanh(fed + phase) - np.tanh(phase)
        if self.kind == "memristors":  # conductances that fade and move less near the ends
            pushed = 0.5 * pulse * self.into * (1 - state**2)
            return np.clip(self.kept * state + 0.15 * (state @ self.W.T) + pushed, -1, 1)
        return fed

    def _read(self, state: np.ndarray) -> np.ndarray:
        if self.kind == "sin²":
            return np.sin(state + self.phase) ** 2 - np.sin(self.phase) ** 2
        return np.tanh(state) if self.kind == "linear" else state

    def clean(self, drive: np.ndarray) -> np.ndarray:
        """Return the outputs (n, N) without noise and drift."""
        state, path = np.zeros(N), np.empty((len(drive), N))
        for t, pulse in enumerate(drive):
            state = self._step(state, pulse)
            path[t] = self._read(state)
        return path

    def ends(self, driven: np.ndarray) -> np.ndarray:
        """Return the outputs after series (n_series, n_steps, N), from rest."""
        state = np.zeros((len(driven), N))
        for t in range(driven.shape[1]):
            state = self._step(state, driven[:, t])
        return self._read(state)

    def response(self, n_steps: int, pulse: float = 1e-4) -> np.ndarray:
        """Return the response G (n_steps, N, N) to weak pulses."""
        G = np.empty((n_steps, N, N))
        for n in range(n_steps):
            driven = np.zeros((2, N, n_steps, N))
            driven[0, range(N), n, range(N)] = pulse
            driven[1] = -driven[0]
            up, down = (self.ends(one) for one in driven)
            G[n] = (up - down).T / (2 * pulse)
        return G

    def spoilt(
        self, clean: np.ndarray, moments: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what drift and what noise add to outputs at moments (n, 1)."""
        drift, noise = DRIFT.get(self.defect, 0.0), NOISE.get(self.defect, 0.01)
        own = np.random.default_rng(11)
        gain, offset = own.uniform(0.5, 1, N), self.size * own.uniform(-0.5, 0.5, N)
        changed = drift * moments * (clean * gain + offset)
        return changed, noise * self.size * rng.standard_normal(clean.shape)

    def recorded(self, drive: np.ndarray, seed: int = 0) -> np.ndarray:
        """Return the outputs as they are recorded."""
        clean, rng = self.clean(drive), np.random.default_rng([13, seed])
        return clean + sum(self.spoilt(clean, wandering(len(clean), rng), rng))

    def played(self, driven: np.ndarray, seed: int = 0) -> np.ndarray:
        """Return the outputs after series of pulses, at moments in random order."""
        clean, rng = self.ends(driven), np.random.default_rng([17, seed])
        moments = rng.permutation(wandering(len(clean), rng))
        return clean + sum(self.spoilt(clean, moments, rng))

    def powers(self, drive: np.ndarray, seed: int = 0) -> dict[str, float]:
        """Return the power of each cause, from the parts of the simulation."""
        clean, rng = self.clean(drive), np.random.default_rng([13, seed])
        drift, noise = self.spoilt(clean, wandering(len(clean), rng), rng)
        late = [drive[N_LAGS - lag : len(drive) - lag] for lag in range(N_LAGS)]
        X, Y = np.concatenate(late, axis=1), clean[N_LAGS:]
        X, Y = X - X.mean(0), Y - Y.mean(0)
        rest = Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0]
        found = {"noise": noise, "drift": drift - drift.mean(0)}
        bent = float((rest**2).sum()) / (len(X) - X.shape[1])
        powers = {name: float((one**2).sum(1).mean()) for name, one in found.items()}
        return {**powers, "non-linearity": bent}
