"""Cost of sequences: a gradient, a fit, a stream of a million steps; and two filters.

``python -m benchmarks sequences`` runs on the host, in turn with reservoirpy; ``python -m
benchmarks.sequences --cuda`` computes the gradient at N = 1000 on a GPU, as a share of the
matrix products alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ._measure import (
    Report,
    Row,
    alternating_seconds,
    in_fresh_process,
    resident_bytes,
    write_json,
)

N_NEURONS, TRAIN, STREAM = 100, 3000, 1_000_000
#: Number of seeds of network and series for the two filters.
N_SEEDS = 10


def problem_of(n_neurons: int, n_samples: int, reference: Any = None) -> Any:
    """A forecasting problem and the projection to evaluate it at."""
    from greenfold import Dynamics, EchoStateNetwork, SequenceTask
    from greenfold.datasets import mackey_glass
    from greenfold.optimizers.sequence_loss import SequenceProblem

    z = mackey_glass(n_samples + 1, rng=0)
    z = (z - z.mean()) / z.std()
    network = EchoStateNetwork.random(
        n_neurons, leak=0.5, connectivity=10 / n_neurons, rng=0
    )
    task = SequenceTask.from_sequences(z[:-1], z[1:], washout=40, n_read=50, bias=1.0)
    task = task if reference is None else task.on(reference)
    problem = SequenceProblem(Dynamics(network, n_steps=task.n_steps), task)
    u = np.random.default_rng(0).standard_normal((n_neurons, task.n_channels))
    return problem, u / np.linalg.norm(u)


def gradient_row(rounds: int) -> Row:
    """One evaluation with its gradient, over one pass of the same segments."""
    problem, u = problem_of(N_NEURONS, TRAIN)
    X = problem.task.X

    def one_pass() -> None:
        problem.system.states(X, u)

    found = alternating_seconds(
        {"pass": (one_pass, 9), "evaluation": (lambda: problem.evaluate(u), 9)}, rounds
    )
    ratios = [b / a for a, b in zip(*found.values(), strict=True)]
    return Row(
        f"a gradient at N = {N_NEURONS}, {TRAIN} steps, over one pass of the segments",
        median(ratios),
        "times",
        "≤ 4",
        median(ratios) <= 4,
        {name: median(taken) for name, taken in found.items()},
    )


def fit_row(rounds: int) -> Row:
    """A fit with 100 evaluations, and reservoirpy's single fit of the same size."""
    from reservoirpy.nodes import Reservoir, Ridge

    from greenfold import ReservoirForecaster
    from greenfold.datasets import lorenz

    z = lorenz(TRAIN, rng=0)
    z = (z - z.mean(0)) / z.std(0)

    def theirs() -> None:
        model: Any = Reservoir(N_NEURONS, lr=0.5, sr=0.9, seed=0) >> Ridge(ridge=1e-6)
        model.fit(z[:-1], z[1:], warmup=100)

    def ours() -> None:
        ReservoirForecaster(N_NEURONS, max_iter=100, random_state=0).fit(z)

    found = alternating_seconds({"reservoirpy": (theirs, 1), "ours": (ours, 1)}, rounds)
    ratios = [b / a for a, b in zip(*found.values(), strict=True)]
    seconds = median(found["ours"])
    return Row(
        f"a fit of {TRAIN} steps with 100 evaluations, N = {N_NEURONS}",
        seconds,
        "s",
        "≤ 10 on one core",
        seconds <= 10,
        {"over_one_fit_of_reservoirpy": median(ratios)},
    )


def streamed(n_neurons: int, n_steps: int) -> dict[str, Any]:
    """Predict a stream in parts, with the state kept; seconds and memory."""
    from greenfold import SequenceRegressor

    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(1000), rng.standard_normal(1000)
    model = SequenceRegressor(n_neurons, input_weights="random", random_state=0).fit(x, y)
    state, before, started = None, resident_bytes(), time.perf_counter()
    for _ in range(n_steps // 10_000):
        _, state = model.predict(rng.standard_normal(10_000), state, return_state=True)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "grown": resident_bytes() - before}


def stream_row(n_neurons: int, n_steps: int) -> Row:
    """A long stream, and reservoirpy's node with its readout on a part of it."""
    from reservoirpy.nodes import Reservoir, Ridge

    found = in_fresh_process(streamed, n_neurons=n_neurons, n_steps=n_steps)
    rng = np.random.default_rng(0)
    model: Any = Reservoir(n_neurons, lr=1.0, sr=0.9, seed=0) >> Ridge(ridge=1e-6)
    model.fit(rng.standard_normal((1000, 1)), rng.standard_normal((1000, 1)))
    part = n_steps // 20
    x = rng.standard_normal((part, 1))
    started = time.perf_counter()
    model.run(x)
    theirs = (time.perf_counter() - started) * n_steps / part
    ratio = theirs / found["seconds"]
    return Row(
        f"predict a stream of {n_steps:,} steps, N = {n_neurons}: reservoirpy's time over "
        "ours",
        ratio,
        "times",
        "≥ 1",
        ratio >= 1,
        {
            "ours_s": found["seconds"],
            "reservoirpy_s": theirs,
            "memory_grown_MiB": found["grown"] / 2**20,
        },
    )


def filters(n_neurons: int) -> list[Row]:
    """NARMA-10 and a non-linear channel by `SequenceRegressor`, drawn and solved."""
    from greenfold import SequenceRegressor
    from greenfold.datasets import channel_equalisation, narma

    tasks = {
        "NARMA-10": lambda seed: narma(8000, rng=seed),
        "channel": lambda seed: channel_equalisation(8000, noise=16.0, rng=seed),
    }
    rows = []
    for name, make in tasks.items():
        errors = []
        for seed in range(N_SEEDS):
            x, y = make(seed)
            models = [
                SequenceRegressor(n_neurons, input_weights=kind, random_state=seed)
                for kind in ("random", "solved")
            ]
            fitted = [model.fit(x[:3000], y[:3000]) for model in models]
            errors.append([np.sqrt(1 - one.score(x[3000:], y[3000:])) for one in fitted])
            print(f"{name}, N = {n_neurons}, seed {seed}: {np.round(errors[-1], 4)}")
        drawn, solved = np.array(errors).T
        ratio = float(solved.mean() / drawn.mean())
        rows.append(
            Row(
                f"{name}, N = {n_neurons}: NRMSE solved {solved.mean():.3f} over drawn "
                f"{drawn.mean():.3f}",
                ratio,
                "times",
                "≤ 0.65",
                ratio <= 0.65,
                {"drawn": drawn.round(4).tolist(), "solved": solved.round(4).tolist()},
            )
        )
    return rows


def run(rounds: int) -> Report:
    """Everything on the host."""
    from importlib.metadata import version

    rows = [gradient_row(rounds), fit_row(min(rounds, 3)), stream_row(100, STREAM)]
    rows.append(stream_row(1000, STREAM // 10))
    rows += [row for n in (50, 100) for row in filters(n)]
    notes = [
        f"reservoirpy {version('reservoirpy')}; one thread of BLAS; the stream of "
        "reservoirpy is timed on a twentieth and scaled",
        f"filters: defaults, 3000 samples to fit, 5000 to judge, {N_SEEDS} seeds; the "
        "channel has a noise of 16 dB",
    ]
    return Report("sequences: cost, and two filters", notes, rows)


def cuda(n_neurons: int = 1000, n_samples: int = 100_000) -> Report:
    """A gradient on a GPU, against the matrix products that it needs at least."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device.")
    problem, u = problem_of(n_neurons, n_samples, torch.zeros(1, device="cuda"))
    host, _ = problem_of(n_neurons, 2000)
    there, _ = problem_of(n_neurons, 2000, torch.zeros(1, device="cuda"))
    apart = [one.evaluate(u)[2] for one in (host, there)]
    error = float(np.abs(apart[0] - apart[1]).max() / np.abs(apart[0]).max())

    def seconds(work: Any, repeats: int = 5) -> float:
        taken = []
        for _ in range(repeats + 1):
            torch.cuda.synchronize()
            started = time.perf_counter()
            work()
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - started)
        return median(taken[1:])

    n_segments, n_steps = problem.task.X.shape[0], problem.task.n_steps
    W = torch.randn((n_neurons, n_neurons), dtype=torch.float64, device="cuda")
    Y = torch.randn((n_segments, n_neurons), dtype=torch.float64, device="cuda")

    def products() -> None:
        for _ in range(2 * n_steps):  # one per step forward, one back
            torch.mm(Y, W)
        rows = torch.empty((n_segments * 50, n_neurons), dtype=torch.float64, device="cuda")
        torch.mm(rows.T, rows)

    ours, least = seconds(lambda: problem.evaluate(u)), seconds(products)
    flops = 2.0 * n_segments * n_neurons**2 * (2 * n_steps + 50)
    row = Row(
        f"a gradient at N = {n_neurons}, {n_samples:,} steps: share of the matrix rate",
        100 * least / ours,
        "%",
        "",
        None,
        {
            "seconds": ours,
            "products_s": least,
            "TFLOP_per_s": flops / ours / 1e12,
            "difference_to_host": error,
            "device": torch.cuda.get_device_name(0),
        },
    )
    notes = [
        f"{n_segments} segments of {n_steps} steps, float64, torch {torch.__version__}"
    ]
    return Report("sequences on a GPU", notes, [row])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", action="store_true", required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report = cuda()
    report.show()
    if options.json:
        write_json(options.json, [report])
