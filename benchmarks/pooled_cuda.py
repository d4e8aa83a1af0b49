"""Features of many series on a GPU: ``python -m benchmarks.pooled_cuda``.

Needs PyTorch with CUDA. Prints the time, compared with writing and reading every readout
value once and with the matrix products alone, both measured in the same run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from greenfold.estimators.pooled import ReservoirFeatures
from greenfold.estimators.series import SeriesByLength

from ._measure import Report, Row, write_json

#: Number of series whose features are computed together.
CHUNK = 10_000


def cuda(n_cases: int = 100_000, n_steps: int = 500) -> Report:
    """Features of many series on a GPU: time, and share of the device's peak."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device.")
    properties = torch.cuda.get_device_properties(0)
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((n_cases, n_steps), generator=generator, device="cuda")
    features = ReservoirFeatures(random_state=0).fit(X[:1000])
    made = features.map_
    host = X[:64].cpu().numpy()
    wanted = features.transform(host)
    near = np.abs(features.transform(X[:64]).cpu().numpy() - wanted) < 1e-3

    def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
        taken = []
        for _ in range(repeats + 1):
            torch.cuda.synchronize()
            start = time.perf_counter()
            work()
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - start)
        return median(taken[1:])

    sums = torch.zeros(1, device="cuda")

    def all_features() -> None:
        # All features together would take 30 GB; they are computed and summed.
        for first in range(0, n_cases, CHUNK):
            values = X[first : first + CHUNK, None, :]
            part = SeriesByLength([(np.arange(len(values)), values)], len(values), 1)
            for scale in range(len(made.widths)):
                sums.add_(made.blocks(part, scale).sum())

    torch.cuda.reset_peak_memory_stats()
    taken = seconds(all_features, 2)
    peak = torch.cuda.max_memory_allocated()
    reads = [(-(-n_steps // one.stride), one) for one in made.bank.scales]
    values = n_cases * sum(3 * k * one.n_readouts for k, one in reads)
    flops = n_cases * sum(
        2 * k * 2 * len(one.decay_times) * (one.n_readouts + one.stride) for k, one in reads
    )
    # The peak of the device: a copy, and products of the same shape.
    block = torch.empty(2**29, device="cuda")
    bandwidth = 2 * 4 * 2**29 / seconds(block.clone)
    del block
    a, b = torch.randn((2**20, 64), device="cuda"), torch.randn((64, 88), device="cuda")
    rate = 2 * 2**20 * 64 * 88 / seconds(lambda: a @ b)
    start = time.perf_counter()
    features.transform(np.asarray(host[:64]))
    on_host = (time.perf_counter() - start) / 64 * n_cases
    detail = {
        "device": properties.name,
        "memory_GiB": round(properties.total_memory / 2**30),
        "seconds": taken,
        "readings": values,
        "ns_a_reading": 1e9 * taken / values,
        "bandwidth_TB_s": bandwidth / 1e12,
        # Written once and read once: the least that a single fused kernel would need.
        "share_of_memory_limit": 2 * 4 * values / bandwidth / taken,
        "product_TFLOP_s": rate / 1e12,
        "share_of_matrix_limit": flops / rate / taken,
        "peak_GiB": peak / 2**30,
        "one_host_thread_s": on_host,
        "equal_to_host": f"{100 * near.mean():.3f}%",
    }
    row = Row(f"features of {n_cases} × {n_steps} on CUDA", taken, "s", "", None, detail)
    return Report("pooled, CUDA", [f"PyTorch {torch.__version__}"], [row])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pooled_cuda")
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the numbers")
    options = parser.parse_args()
    found = cuda(options.cases, options.steps)
    found.show()
    if options.json:
        write_json(options.json, [found])
