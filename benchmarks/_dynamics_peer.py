"""The same network in torchdiffeq: dopri5, with autograd and with its adjoint.

torchdiffeq has two ways to handle input that jumps: one call per step of the stimulus, or
one call for all with ``jump_t``. Both are tried with several tolerances on the judged
series; the setting with the fewest evaluations counts among those whose error is at most
ten times ours. The difference of its gradient is reported too: with ``jump_t`` that of its
adjoint was off by 9 %.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._dynamics_problem import TAU, Setting

TOLERANCES = (1e-6, 1e-7, 1e-8)


@dataclass(frozen=True)
class Way:
    """A way of running torchdiffeq, and its result without gradients."""

    one_call: bool
    rtol: float
    error: float
    seconds: float
    evaluations: int

    @property
    def name(self) -> str:
        return f"{'jump_t' if self.one_call else 'one call per step'}, rtol {self.rtol:g}"


class Peer:
    """The network in torchdiffeq's form."""

    def __init__(self, setting: Setting) -> None:
        import torch

        self._torch = torch
        torch.set_num_threads(1)
        self._dt, self._K = setting.dt, setting.X.shape[2]
        self._X = torch.asarray(setting.X[:, 0]).T.contiguous()
        self._W = torch.asarray(setting.weights).T.contiguous()
        self._u = torch.asarray(setting.u[:, 0].copy())
        self._cotangent = torch.asarray(setting.cotangent)
        self._jumps = torch.arange(1, self._K, dtype=torch.float64) * self._dt

    def _network(self, u: Any, step: int | None, counter: list[int]) -> Any:
        torch, X, W, jumps = self._torch, self._X, self._W, self._jumps

        class Network(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.u = u

            def forward(self, t: Any, y: Any) -> Any:
                counter[0] += 1
                at = int(torch.searchsorted(jumps, t, right=True)) if step is None else step
                drive = X[at, : len(y), None] * self.u - y
                return torch.addmm(drive, torch.tanh(y), W) / TAU

        return Network()

    def _solve(
        self,
        one_call: bool,
        rtol: float,
        u: Any,
        solver: Any,
        n_cases: int | None = None,
        counter: list[int] | None = None,
    ) -> Any:
        torch, counter = self._torch, counter or [0]
        n_cases = n_cases or self._X.shape[1]
        y = torch.zeros((n_cases, len(self._W)), dtype=torch.float64)
        options: dict[str, Any] = {"method": "dopri5", "rtol": rtol, "atol": rtol}
        if one_call:
            span = torch.asarray([0.0, self._K * self._dt], dtype=torch.float64)
            network = self._network(u, None, counter)
            return solver(network, y, span, options={"jump_t": self._jumps}, **options)[-1]
        span = torch.asarray([0.0, self._dt], dtype=torch.float64)
        for step in range(self._K):
            y = solver(self._network(u, step, counter), y, span, **options)[-1]
        return y

    def ways(self, truth: np.ndarray) -> list[Way]:
        """Run every setting forward on the series with known true states."""
        from torchdiffeq import odeint  # pyright: ignore[reportMissingImports]

        found = []
        for one_call in (False, True):
            for rtol in TOLERANCES:
                counter = [0]
                start = time.perf_counter()
                with self._torch.no_grad():
                    u = self._torch.nn.Parameter(self._u)
                    y = self._solve(one_call, rtol, u, odeint, len(truth), counter)
                seconds = time.perf_counter() - start
                error = float(np.abs(y.numpy() - truth).max())
                found.append(Way(one_call, rtol, error, seconds, counter[0]))
        return found

    def gradient(self, way: Way, *, adjoint: bool) -> np.ndarray:
        """∂(cotangent · states)/∂u."""
        import torchdiffeq  # pyright: ignore[reportMissingImports]

        solver = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint
        u = self._torch.nn.Parameter(self._u.clone())
        y = self._solve(way.one_call, way.rtol, u, solver)
        (y * self._cotangent).sum().backward()
        assert u.grad is not None
        return u.grad.numpy()
