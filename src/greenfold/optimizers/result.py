"""Results of `optimize`, for classification and regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from .._base import model_files
from .._base.printing import Shown
from ..validity import Validity
from .linear import Outcome

#: Amplification above which the message names it as the cause of rounding errors.
_AMPLIFIED = 1e3
#: Largest gap of a result that is "certified", whatever the tolerance of the search.
CERTIFIED = 1e-4
#: The meaning of each status, in words.
MESSAGES = {
    "certified": "proven optimal",
    "bounded": "this is the best pair found",
    "unresolved": "rounding errors make the upper bound loose; this is the best pair found",
    "improved": "no change of one entry improves this mask",
    "exhaustive": "the best of all that the device allows",
    "rounded": "this is the best pair found with so few bits",
    "converged": "converged: no step improves the soft margin",
    "solved": "the readout is optimal for the given input projection",
    "max_iterations": "stopped at the limit of iterations, before convergence",
    "interrupted": "interrupted; this is the best solution found so far",
}

#: The meaning of two statuses if u was not solved for.
_OF_READOUTS = {
    "exhaustive": "the best readout that the device allows for this input projection",
    "rounded": "this is the best readout found with so few bits for this input projection",
}


#: Values, the function that computes them, or None.
Drawn: TypeAlias = "np.ndarray | Callable[[], np.ndarray] | None"


class _Drawn(model_files.Maybe):
    """Values that are computed before they are saved."""

    def pack(self, value: Drawn, name: str, arrays: model_files.Arrays) -> Any:
        return super().pack(value() if callable(value) else value, name, arrays)


class Result(Outcome, Shown, model_files.Saved):
    """A result with the value reached and, if known, a proven bound on it."""

    upper_bound: float | None
    #: The attribute that the bound applies to.
    _attained: ClassVar[str]
    #: What a few random u reach: values, or a function that computes them when they are
    #: first asked for.
    drawn: Drawn

    @cached_property
    def _values(self) -> np.ndarray | None:
        return self.drawn() if callable(self.drawn) else self.drawn

    def __getstate__(self) -> dict[str, Any]:
        # The function holds the problem, which is neither saved nor pickled.
        return {**vars(self), "drawn": vars(self).get("_values")}

    @property
    def message(self) -> str:
        """The status in words."""
        if self.status == "bounded" and self.gap is not None:
            return f"within {100 * self.gap:.2g} % of the best possible"
        return MESSAGES[self.status]

    @property
    def gap(self) -> float | None:
        """Relative distance of the value to the upper bound; None without a bound."""
        if self.upper_bound is None:
            return None
        return relative_gap(self.upper_bound, getattr(self, self._attained))

    @property
    def share(self) -> float | None:
        """κ or gain over the upper bound; None if that is unknown or not positive."""
        if self.upper_bound is None or self.upper_bound <= 0:
            return None
        return getattr(self, self._attained) / self.upper_bound


@dataclass(frozen=True, eq=False, repr=False)
class Projections(Result, kind="projections"):
    """A pair of input and readout projections with its soft margin.

    Attributes
    ----------
    u : ndarray (n_neurons,) or (n_neurons, n_channels)
        Input projection of unit (Frobenius) norm.
    v : ndarray (n_neurons,)
        Readout of unit norm.
    soft_margin, separation, variance, eta : float
        κ = separation − variance at η (paper, equation 6, `soft_margin_approx_Gaussian`).
    upper_bound, gap : float or None
        No unit u and v have a soft margin above the upper bound. The gap is the distance
        between soft margin and bound, divided by the larger of their absolute values. Both
        are None if the method gives no bound.
    method, status, message : str
        The method that found the pair, and how the search ended, as a keyword and in words.
    n_iter : int
        Number of iterations of the method, for its best start.
    history : ndarray (n_entries, 2)
        Separation and variance of the best pair so far, at the beginning and after each
        round or evaluation of the best start. With `Dynamics`, the history of its last
        ascent, on all series.
    starts : ndarray (n_starts,)
        Soft margin that each start reached.
    wall_time : float
        Time of the call, in seconds.
    validity : Validity or None
        How far you can trust the perturbation expansion at this pair, if the system has
        one.
    fresh_margin, fresh_error : float or None
        κ of this pair on stimuli that were not used in the fit, and its standard error, if
        the fit drew samples of Gaussian classes, as for `Dynamics`. They are −∞ and NaN if
        the network diverges after one of these stimuli.
    step_error : float or None
        Largest error of a state of an integrated network, relative to the largest state.
    growth : float or None
        Amplification of the input by the linear network, if the method computed it. It is
        about 1 for the paper's networks, and many orders of magnitude larger for strongly
        non-normal networks.
    mask : str or None
        The kind of mask; None for a free u.
    noise_cost : dict or None
        Part of ``variance`` due to each noise of a device: "input", "state" and "readout".
    random_margins : ndarray (15,) or (3,) or None
        Soft margins of random u, each with its best readout, to compare with; three with
        more than 500 outputs. They are computed when you first read or print them, for
        linear systems; None otherwise. ``drawn`` holds them, or what computes them.
    """

    u: np.ndarray
    v: np.ndarray
    soft_margin: float
    separation: float
    variance: float
    eta: float
    upper_bound: float | None
    method: str
    status: str
    n_iter: int
    history: np.ndarray = field(repr=False)
    starts: np.ndarray = field(repr=False)
    wall_time: float = field(repr=False)
    validity: Validity | None = None
    growth: float | None = None
    fresh_margin: float | None = None
    fresh_error: float | None = None
    step_error: float | None = None
    mask: str | None = None
    noise_cost: dict[str, float] | None = None
    drawn: Drawn = field(default=None, repr=False, compare=False)

    _attained = "soft_margin"

    @property
    def random_margins(self) -> np.ndarray | None:
        """Soft margins of random u, each with its best readout."""
        return self._values

    @property
    def message(self) -> str:
        """The status in words."""
        if self.status == "unresolved" and (self.growth or 0.0) > _AMPLIFIED:
            why = f"the network amplifies its input {self.growth:.1e} times"
            return f"{why}, so {super().message}"
        if self.method in ("given", "random") and self.status in _OF_READOUTS:
            return _OF_READOUTS[self.status]
        if self.status == "bounded" and self.method == "convex" and self.mask is None:
            return f'{super().message}; method="exact" can close the gap, but takes longer'
        return super().message

    def _facts(self) -> dict[str, Any]:
        facts = {"soft_margin": self.soft_margin, "upper_bound": self.upper_bound}
        facts |= {"eta": self.eta, "u": self.u.shape, "v": self.v.shape}
        facts |= {"method": self.method, "status": self.status}
        if self.mask is not None:
            facts |= {"mask": self.mask, "share": self.share}
        if self.validity is not None:
            facts["trustworthy"] = self.validity.trustworthy
        return facts

    def __str__(self) -> str:
        terms = f"separation {self.separation:.6g} − variance term {self.variance:.6g}"
        lines = [f"soft margin {self.soft_margin:.6g} = {terms}  (η = {self.eta:g})"]
        if self.upper_bound is not None:
            lines.append(f"upper bound {self.upper_bound:.6g}, relative gap {self.gap:.2g}")
        if self.random_margins is not None:
            middle, most = np.median(self.random_margins), self.random_margins.max()
            kind = "u" if self.mask is None else "masks"
            beside = f"{len(self.random_margins)} random {kind}: median {middle:.6g}, best"
            times = f"; this is {self.soft_margin / middle:.2g} times the median"
            lines.append(f"{beside} {most:.6g}{times if middle > 0 else ''}")
        if self.mask is not None and self.share is not None:
            lines.append(f"mask ({self.mask}): {100 * self.share:.1f} % of the upper bound")
        if self.noise_cost:
            costs = ", ".join(f"{k} {cost:.3g}" for k, cost in self.noise_cost.items())
            lines.append(f"part of the variance term due to noise: {costs}")
        count = f"{self.n_iter} iteration{'s' * (self.n_iter != 1)}"
        lines.append(f'{self.message} (method "{self.method}", {count})')
        if self.fresh_margin is not None:
            fresh = f"{self.fresh_margin:.6g} ± {self.fresh_error:.2g}"
            lines.append(f"soft margin on fresh stimuli {fresh}")
        if self.step_error is not None:
            lines.append(f"integration error {self.step_error:.1g} of the largest state")
        if self.validity is not None:
            lines.append(str(self.validity))
        return "\n".join(lines)


model_files.describe(
    "projections",
    Projections,
    u=model_files.Numbers(ndim=(1, 2)),
    v=model_files.Numbers(None),
    status=model_files.one_of(MESSAGES),
    history=model_files.Numbers(None, 2),
    starts=model_files.Numbers(None),
    validity=model_files.Maybe(model_files.Object(Validity)),
    noise_cost=model_files.Maybe(model_files.BY_NAME),
    drawn=_Drawn(model_files.Numbers(None)),
)


@dataclass(frozen=True, eq=False, repr=False)
class RegressionProjections(Result, kind="regression"):
    """An input projection and readouts of a regression, with their loss.

    Attributes
    ----------
    u : ndarray (n_inputs,) or (n_inputs, n_channels)
        Input projection of unit norm.
    V : ndarray (n_outputs, n_targets)
        Readouts.
    gain, upper_bound, gap : float
        The gain J is the reduction of the targets' variance, minus λ‖V‖². No u and V have a
        gain above the upper bound. Bound and gap are None for a non-linear system.
    loss, loss_bound : float
        The mean squared error summed over the targets, plus λ‖V‖², and a lower bound on it.
    r2 : ndarray (n_targets,)
        Explained share of the variance of each target, under readout noise of variance λ.
    status, wall_time
        As in `Projections`.
    mask, share : str or None, float or None
        The kind of mask, None for a free u; and the gain over the upper bound, which holds
        for all unit u.
    random_losses : ndarray (15,) or (3,) or None
        Losses of random u or masks, each with its best readouts; see
        `Projections.random_margins`.
    starts : ndarray
        Gain that each start reached.
    """

    u: np.ndarray
    V: np.ndarray
    gain: float
    upper_bound: float | None
    loss: float
    r2: np.ndarray
    status: str
    starts: np.ndarray = field(repr=False)
    wall_time: float = field(repr=False)
    mask: str | None = None
    drawn: Drawn = field(default=None, repr=False, compare=False)

    _attained = "gain"

    @property
    def loss_bound(self) -> float | None:
        """Lower bound on the loss of any u and V."""
        if self.upper_bound is None:
            return None
        return self.loss + self.gain - self.upper_bound

    @property
    def random_losses(self) -> np.ndarray | None:
        """Losses of random u, each with its best readouts."""
        return self._values

    def _facts(self) -> dict[str, Any]:
        facts = {"gain": self.gain, "upper_bound": self.upper_bound, "loss": self.loss}
        return facts | {"u": self.u.shape, "V": self.V.shape, "status": self.status}

    def __str__(self) -> str:
        explained = ", ".join(f"{share:.4g}" for share in self.r2)
        lines = [f"loss {self.loss:.6g}, R² {explained}"]
        if self.upper_bound is not None:
            lines.append(
                f"lower bound on the loss {self.loss_bound:.6g} "
                f"(gain {self.gain:.6g}, at most {self.upper_bound:.6g})"
            )
        if self.random_losses is not None:
            middle, least = np.median(self.random_losses), self.random_losses.min()
            kind = "u" if self.mask is None else "masks"
            beside = f"{len(self.random_losses)} random {kind}: median loss {middle:.6g}"
            lines.append(f"{beside}, best {least:.6g}")
        if self.mask is not None and self.share is not None:
            share = f"{100 * self.share:.1f} % of the upper bound on the gain"
            lines.append(f"mask ({self.mask}): {share}")
        return "\n".join([*lines, self.message])


REGRESSION = model_files.describe(
    "regression",
    RegressionProjections,
    u=model_files.Numbers(ndim=(1, 2)),
    V=model_files.Numbers("outputs", "targets"),
    gain=model_files.NUMBER,
    upper_bound=model_files.Maybe(model_files.NUMBER),
    loss=model_files.NUMBER,
    # The R² of a constant target is NaN.
    r2=model_files.Numbers("targets", finite=False),
    status=model_files.one_of(MESSAGES),
    starts=model_files.Numbers(None),
    wall_time=model_files.NUMBER,
    drawn=_Drawn(model_files.Numbers(None)),
)


def proven(status: str, bound: float | None, value: float) -> str:
    """Return the status that the gap allows: "certified" needs one of 1e-4 at most."""
    loose = bound is None or relative_gap(bound, value) > CERTIFIED
    return "bounded" if status == "certified" and loose else status


def relative_gap(bound: float, value: float) -> float:
    """Return (bound − value) over the larger of their absolute values; never negative."""
    size = max(abs(bound), abs(value))
    return max(bound - value, 0.0) / size if size > 0 else 0.0
