"""One gradient through the true dynamics: matrix products, memory, and torchdiffeq.

A gradient is `Walk(..., keep=True).pullback(...)`: the states of all series, and the
adjoint of a cotangent. Its N×N products are counted where they are made, and timed as bare
calls of the same shapes in the same rounds.

``python -m benchmarks.dynamics cuda`` measures a large network on a CUDA device instead and
writes docs/_benchmarks/dynamics-cuda.json.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ._dynamics_peer import Peer
from ._dynamics_problem import TAU, Setting, gradient, setting
from ._measure import (
    MIB,
    Report,
    Row,
    alternating_seconds,
    in_fresh_process,
    median_seconds,
    resident_bytes,
    write_json,
)

N_NEURONS, N_CASES, N_STEPS = 100, 354, 140
#: Number of series whose true states are computed, to know the error.
N_JUDGED = 24
#: A fit to convergence: series and steps.
FIT_CASES, FIT_STEPS = 200, 40
CUDA_NEURONS, CUDA_CASES, CUDA_STEPS = 1000, 10_000, 140
#: Side of the square matrices whose product gives the rate of the device.
CUDA_SQUARE = 8192
CUDA_JSON = Path(__file__).parents[1] / "docs" / "_benchmarks" / "dynamics-cuda.json"


def _bare_products(problem: Setting, X: Any, cotangent: Any) -> tuple[Callable, float]:
    """The products of one gradient alone, on the matrices it uses."""
    from greenfold._base.arrays import namespace

    products, rows = problem.products(X, cotangent)
    xp = namespace(X)
    step = problem.plan.on(X, X.dtype).step
    names = ("P", "E", "Q2", "E", "Q3", "R", "S")
    matrices = [getattr(step, name) for name in names]
    matrices += [xp.matrix_transpose(matrix) for matrix in matrices]  # the way back
    batch = cotangent[: round(rows), :]
    out = xp.empty_like(batch)
    calls = round(products / batch.shape[0])

    def work() -> None:
        for _, matrix in zip(range(calls), cycle(matrices), strict=False):
            xp.matmul(batch, matrix, out=out)

    return work, products


def cost_row(problem: Setting, library: str, rounds: int) -> Row:
    """A gradient in NumPy or PyTorch against its products."""
    X, cotangent = problem.X, problem.cotangent
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        X, cotangent = torch.asarray(X), torch.asarray(cotangent)
    bare, products = _bare_products(problem, X, cotangent)
    times = alternating_seconds(
        {
            "gradient": (lambda: gradient(problem.plan, X, problem.u, cotangent), 1),
            "products": (bare, 1),
        },
        rounds,
    )
    ratios = [g / p for g, p in zip(times["gradient"], times["products"], strict=True)]
    target = library == "numpy"
    return Row(
        f"one gradient over its matrix products, {library}",
        median(ratios),
        "×",
        "target ≤ 2.5×" if target else "",
        median(ratios) <= 2.5 if target else None,
        {
            "gradient_ms": 1e3 * median(times["gradient"]),
            "products_ms": 1e3 * median(times["products"]),
            "products_per_case_and_step": products / (N_CASES * N_STEPS),
            "gflop": 2e-9 * N_NEURONS**2 * products,
            "lowest": min(ratios),
            "highest": max(ratios),
        },
    )


def one_gradient() -> dict[str, Any]:
    """A gradient in a separate process, for its memory."""
    problem = setting(N_NEURONS, N_CASES, N_STEPS)
    before = resident_bytes()
    gradient(problem.plan, problem.X, problem.u, problem.cotangent)
    return {"before_bytes": before}


def memory_row() -> Row:
    found = in_fresh_process(one_gradient)
    peak = found["peak_bytes"]
    return Row(
        "one gradient, memory of the process",
        peak / MIB,
        "MiB peak",
        "target ≤ 300 MiB",
        peak <= 300 * MIB,
        {"before_mib": found["before_bytes"] / MIB},
    )


def peer_rows(problem: Setting, rounds: int) -> tuple[list[Row], list[str]]:
    """The gradient by torchdiffeq, at the same accuracy."""
    from greenfold import Gain, Reservoir, simulate
    from greenfold.unfolding.walk import Walk

    network = Reservoir(problem.weights, TAU, Gain.tanh())
    judged = problem.X[:N_JUDGED]
    truth = np.asarray(simulate(network, judged, problem.u, problem.dt, rtol=1e-12))
    error = float(np.abs(Walk(problem.plan, judged, problem.u).states - truth).max())
    peer = Peer(problem)
    ways = peer.ways(truth)
    # By evaluations: a single timing says little on a busy machine.
    way = min((w for w in ways if w.error <= 10 * error), key=lambda w: w.evaluations)
    found: dict[str, np.ndarray] = {}

    def ours() -> None:
        whole = gradient(problem.plan, problem.X, problem.u, problem.cotangent)
        found["ours"] = whole[:, 0]

    def theirs(kind: str) -> None:
        found[kind] = peer.gradient(way, adjoint=kind == "adjoint")

    times = alternating_seconds(
        {
            "ours": (ours, 1),
            "autograd": (lambda: theirs("autograd"), 1),
            "adjoint": (lambda: theirs("adjoint"), 1),
        },
        min(rounds, 3),
    )
    rows = []
    for kind in ("autograd", "adjoint"):
        ratios = [p / o for p, o in zip(times[kind], times["ours"], strict=True)]
        differs = np.abs(found[kind] - found["ours"]).max() / np.abs(found["ours"]).max()
        rows.append(
            Row(
                f"ours, against torchdiffeq, {kind}",
                median(ratios),
                "× faster",
                "target ≥ 3×",
                median(ratios) >= 3,
                {
                    "ours_s": median(times["ours"]),
                    "torchdiffeq_s": median(times[kind]),
                    "lowest": min(ratios),
                    "highest": max(ratios),
                    "its_gradient_differs_by": float(differs),
                },
            )
        )
    notes = [
        f"error of the states of {N_JUDGED} series against DOP853: ours {error:.1e}; "
        f"torchdiffeq {version('torchdiffeq')} counts with {way.name}, {way.error:.1e}",
        *(
            f"    tried {w.name}: error {w.error:.1e}, {w.seconds:.2f} s forward, "
            f"{w.evaluations} evaluations"
            for w in ways
        ),
    ]
    return rows, notes


def fit_row() -> Row:
    """A tanh network fitted to convergence from one start, against order 1 of its series.

    In processor time: a fit is too long to repeat, and other load does not count there.
    """
    from greenfold import Ascent, Dynamics, Gain, Reservoir, SampleStimuli, optimize, unfold

    rng = np.random.default_rng(0)
    X = rng.standard_normal((FIT_CASES, FIT_STEPS)).cumsum(axis=1) / np.sqrt(FIT_STEPS)
    labels = np.repeat([-1, 1], FIT_CASES // 2)
    X[labels > 0] += np.sin(np.linspace(0, 3, FIT_STEPS))
    stimuli = SampleStimuli(X, labels)
    network = Reservoir.random(N_NEURONS, 0.9, TAU, Gain.tanh(), rng=0)
    given: dict[str, Any] = {"n_steps": FIT_STEPS, "dt": 10.0 / FIT_STEPS}
    systems = {
        "dynamics": Dynamics(network, **given),
        "order_1": unfold(network, order=1, **given),
    }
    seconds, found = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, system in systems.items():
            before = time.process_time()
            found[name] = optimize(system, stimuli, method=Ascent(n_starts=1))
            seconds[name] = time.process_time() - before
    ratio = seconds["order_1"] / seconds["dynamics"]
    return Row(
        f"fit of {FIT_CASES} series × {FIT_STEPS}: Dynamics against order 1",
        ratio,
        "× faster",
        "",
        None,
        {
            **{f"{name}_s": value for name, value in seconds.items()},
            **{f"{name}_evaluations": one.n_iter for name, one in found.items()},
            "soft_margin": found["dynamics"].soft_margin,
        },
    )


def run(rounds: int) -> Report:
    """All rows of this benchmark."""
    problem = setting(N_NEURONS, N_CASES, N_STEPS)
    peers, notes = peer_rows(problem, rounds)
    notes = [
        f"tanh, N = {N_NEURONS}, {N_CASES} series × {N_STEPS} steps of "
        f"{problem.dt / TAU:.2f} τ, one step per stimulus step, float64, one thread",
        *notes,
    ]
    costs = [cost_row(problem, library, rounds) for library in ("numpy", "torch")]
    return Report("dynamics", notes, [*costs, memory_row(), *peers, fit_row()])


def cuda_row(problem: Setting, precision: str, rounds: int) -> Row:
    """A gradient on the current CUDA device, as a share of its matrix rate."""
    import torch

    dtype = getattr(torch, precision)
    X = torch.asarray(problem.X, dtype=dtype, device="cuda")
    cotangent = torch.asarray(problem.cotangent, dtype=dtype, device="cuda")
    square = torch.ones((CUDA_SQUARE, CUDA_SQUARE), dtype=dtype, device="cuda")

    def seconds(work: Callable[[], Any]) -> float:
        def synchronised() -> None:
            work()
            torch.cuda.synchronize()

        return median_seconds(synchronised, rounds)

    torch.cuda.reset_peak_memory_stats()
    taken = seconds(lambda: gradient(problem.plan, X, problem.u, cotangent))
    peak = torch.cuda.max_memory_allocated()
    bare, products = _bare_products(problem, X, cotangent)
    products_taken = seconds(bare)
    flops = 2.0 * CUDA_NEURONS**2 * products
    rate = 2.0 * CUDA_SQUARE**3 / seconds(lambda: square @ square)
    share = flops / taken / rate
    aimed = precision == "float64"
    return Row(
        f"one gradient, {precision}: share of the matrix rate",
        100 * share,
        "%",
        "aim ≥ 50 %" if aimed else "",
        share >= 0.5 if aimed else None,
        {
            "gradient_s": taken,
            "its_products_s": products_taken,
            "over_its_products": taken / products_taken,
            "products_per_case_and_step": products / (CUDA_CASES * CUDA_STEPS),
            "tflop": flops / 1e12,
            "tflop_per_s": flops / taken / 1e12,
            "matrix_rate_tflop_per_s": rate / 1e12,
            "peak_mib": peak / MIB,
        },
    )


def run_cuda(rounds: int = 5) -> Report:
    """A large network on a CUDA device."""
    import torch

    problem = setting(CUDA_NEURONS, CUDA_CASES, CUDA_STEPS)
    notes = [
        f"tanh, N = {CUDA_NEURONS}, {CUDA_CASES} series × {CUDA_STEPS} steps of "
        f"{problem.dt / TAU:.2f} τ on {torch.cuda.get_device_name()}, "
        f"PyTorch {torch.__version__}",
        f"matrix rate: product of two square matrices of side {CUDA_SQUARE} in the same "
        "precision; float32 as PyTorch does it by default, without TF32",
    ]
    rows = [cuda_row(problem, precision, rounds) for precision in ("float64", "float32")]
    return Report("dynamics: cuda", notes, rows)


if __name__ == "__main__":
    if sys.argv[1:] != ["cuda"]:
        sys.exit(
            "say `python -m benchmarks.dynamics cuda` or `python -m benchmarks dynamics`"
        )
    report = run_cuda()
    report.show()
    write_json(CUDA_JSON, [report])
