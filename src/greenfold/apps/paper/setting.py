"""What the paper's figures share: networks, projections, heartbeats, and one look."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import Gain, Reservoir, SampleStimuli, Unfolding, optimize, unfold
from ...datasets.archive import BinarySplit
from ...math.sphere import SphereMaximum, maximize_on_sphere
from ...stimuli.base import Stimuli
from ...validity import ExpansionWarning
from ..style import RANDOM, SOLVED, drawing


@dataclass(frozen=True)
class Paper:
    """The paper's network and its control parameter η."""

    n_neurons: int = 100
    g: float = 0.9
    tau: float = 0.25
    eta: float = 10.0

    def network(self, seed: int, alpha: float = 0.0, g: float | None = None) -> Reservoir:
        """The first stable draw of N(0, g²/N) weights; they do not depend on α."""
        rng, gain = (
            np.random.default_rng(seed),
            Gain.quadratic(alpha) if alpha else Gain.linear(),
        )
        spread: dict[str, Any] = {"g": g or self.g, "tau": self.tau, "allow_unstable": True}
        while True:
            drawn = Reservoir.random(self.n_neurons, rng=rng, **spread)
            if drawn.is_stable:
                return Reservoir(drawn.weights, self.tau, gain)

    def unfold(
        self, seed: int, n_steps: int, dt: float, alpha: float = 0.0,
        tol: float = 1e-10, g: float | None = None,
    ) -> Unfolding:  # fmt: skip
        """The network of a seed, to first order where α is not zero."""
        reservoir, order = self.network(seed, alpha, g), 1 if alpha else 0
        return unfold(reservoir, n_steps=n_steps, dt=dt, order=order, tol=tol)

    def projections(self, n_vectors: int, *seed: int) -> np.ndarray:
        """Random input projections of the stream ``seed``, (n_vectors, n_neurons)."""
        return unit_vectors(np.random.default_rng(seed), n_vectors, self.n_neurons)


@dataclass(frozen=True)
class OnSteps(Paper):
    """The paper's network, the first of its seed, on stimuli of so many steps."""

    network_seed: int = 0
    n_steps: int = 10
    dt: float = 1.0


@dataclass(frozen=True)
class OnHeartbeats(Paper):
    """The paper's network on ECG5000, whose series take this long."""

    duration: float = 10.0


class Heartbeats:
    """ECG5000 as it enters the network: training stimuli, test series and their signs."""

    def __init__(self, ecg: BinarySplit, duration: float) -> None:
        self.stimuli = SampleStimuli(ecg.X_train, ecg.y_train)
        self.X_test, self.signs = self.stimuli.transform(ecg.X_test), ecg.y_test
        self.steps = (self.stimuli.n_steps, duration / self.stimuli.n_steps)

    def accuracy(self, system: Unfolding, u: Any, v: Any, X: Any = None) -> float:
        """Accuracy in per cent on the test series, or on X in their place."""
        z = system.kernels(u, v).decision_values(self.X_test if X is None else X)
        return 100 * float((z * self.signs > 0).mean())


def unit_vectors(rng: np.random.Generator, n_vectors: int, size: int) -> np.ndarray:
    """Random directions, (n_vectors, size)."""
    drawn = rng.standard_normal((n_vectors, size))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def best_readouts(
    system: Unfolding, stimuli: Stimuli, us: np.ndarray, eta: float
) -> Iterator[tuple[np.ndarray, Any, SphereMaximum]]:
    """Every u with the moments of its states and the readout that is best for them."""
    moments_at = stimuli.moment_map(system)
    for u in us:
        moments = moments_at(u[:, None])
        yield u, moments, maximize_on_sphere(moments.M, eta * moments.Sigma)


def best_margins(R: np.ndarray, mu: np.ndarray, psi: np.ndarray, eta: float) -> np.ndarray:
    """max_v κ of one response R (n_steps, n_neurons) to μ (n_stimuli, n_steps) and ψ."""
    seen = np.flatnonzero(np.abs(R).max(1) > 0)
    R, mu, psi = R[seen], mu[:, seen], psi[:, seen][:, :, seen]
    if len(R) < R.shape[1]:
        # One more direction stands for all those along which κ does not change.
        basis, _ = np.linalg.qr(R.T)
        R = np.column_stack([R @ basis, np.zeros(len(R))])
    Q = eta * (R.T @ psi @ R)
    return maximize_on_sphere(mu @ R, (Q + Q.transpose(0, 2, 1)) / 2).value


def alternation(
    system: Unfolding, stimuli: Stimuli, eta: float, n_rounds: int, *seed: int
) -> Any:
    """Some rounds of the paper's alternation from a random start of the stream ``seed``."""
    rng = np.random.default_rng(seed)
    start: dict[str, Any] = {"n_starts": 1, "max_iter": n_rounds, "tol": 1e-12, "rng": rng}
    return optimize(system, stimuli, eta, "alternating", **start)


def chunks(total: int, size: int) -> list[range]:
    """The numbers 0 … total − 1 in consecutive ranges."""
    return [range(i, min(i + size, total)) for i in range(0, total, size)]


@contextmanager
def expansion_judged_elsewhere() -> Iterator[None]:
    """Silence `ExpansionWarning` where the validity is among the figure's numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExpansionWarning)
        yield


#: What is neither random nor solved, nor of a class.
NEUTRAL = "#4d4d4d"
#: What the record calls ``optimised``, the paper's word, is shown by ours.
SHOWN = {"random": "random", "optimised": "solved"}
KINDS = (("random", RANDOM), ("optimised", SOLVED))

#: Time has no unit of its own in the paper: Δt = 1 and τ = 0.25 in the same unit.
TIME = "time $t$ (a.u.)"
READOUT_TIME = "readout time $T$ (a.u.)"
MARGIN = r"soft margin $\kappa_\eta$ (a.u.)"
ACCURACY = "accuracy on 4332 test series (%)"

_LOOK: dict[Any, Any] = {
    "axes.titlesize": 9.5,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.formatter.use_mathtext": True,
    "grid.color": "#E4E4E4",
    "figure.constrained_layout.use": True,
    "hatch.color": "0.45",
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "greenfold",
    "pdf.fonttype": 42,
}


def style() -> Any:
    """Draw and save inside this: readable, colour-blind safe."""
    return drawing(_LOOK)


def sheet(width: float, height: float) -> Any:
    """An empty figure in inches, tied to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def panel(
    axes: Any,
    name: str,
    title: str,
    x: str = "",
    y: str = "",
    legend: str = "",
    **more: Any,
) -> None:
    """Letter a panel as the paper does, with what it shows, its labels and its legend."""
    axes.set_title(f"$\\bf{{({name})}}$ {title}", loc="left")
    axes.set(xlabel=x, ylabel=y)
    if legend:
        axes.legend(loc=legend, **more)


def right_axis(axes: Any, label: str, **more: Any) -> Any:
    """A second vertical axis, on the right."""
    right = axes.twinx()
    right.set_ylabel(label, **more)
    right.spines["right"].set_visible(True)
    right.grid(False)
    return right


def plain_ticks(axis: Any, ticks: Any) -> None:
    """Numbers as one writes them on a logarithmic axis, those within its limits."""
    low, high = axis.get_view_interval()
    kept = [tick for tick in ticks if low < tick < high]
    axis.set_ticks(kept, [f"{tick:g}" for tick in kept])
    axis.set_ticks([], minor=True)


def draw_means(axes: Any, x: Any, values: Any, dash: str, colour: str, label: str) -> None:
    """Means over networks with their standard deviations; values (n_networks, n_x)."""
    mean, spread = np.mean(values, axis=0), np.std(values, axis=0)
    axes.errorbar(x, mean, spread, fmt=dash, color=colour, ms=4, capsize=2, label=label)
