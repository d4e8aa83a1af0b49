"""A system that is known by its measured response alone.

Of a device made of light, memristors or cells nobody has the weights, but its response to a
pulse at each input can be recorded. The linear problem needs nothing else:
`MeasuredResponse` has the maps of `greenfold.systems`, so that it stands wherever an
unfolding of order 0 does, the certificate included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._base import checks as check
from .._base import codec
from .._base.arrays import like, namespace
from .._base.printing import Shown
from ..systems import MatrixSum
from ..unfolding.kernel import Kernel


@dataclass(frozen=True, eq=False, repr=False)
class FitReport(Shown):
    """How well a response is known that was fitted to recordings.

    Attributes
    ----------
    n_lags : int
        Lags of the fitted filter, chosen by cross-validation; longer ones are zero in G.
    ridge : float
        Ridge penalty, relative to the mean power of the drive, chosen likewise.
    linearity : float
        Share of the held-out variance of the outputs that the filter explains, weighted by
        their variance. What is missing is noise, non-linearity, or memory beyond
        ``n_lags``.
    linearity_per_output : ndarray (n_outputs,)
    n_samples : int
        Samples that were fitted, of all recordings.
    whole : ndarray (n_steps, n_outputs, n_inputs)
        The response fitted with all lags of the stimuli: noisier than G where G has fewer,
        but without the error of leaving them out.
    influence : ndarray (n_blocks, n_steps, n_outputs, n_inputs)
        Change of ``whole`` with the weight of each stretch of the recordings, from which
        replicates are drawn.
    """

    n_lags: int
    ridge: float
    linearity: float
    linearity_per_output: np.ndarray
    n_samples: int
    whole: np.ndarray
    influence: np.ndarray

    def _facts(self) -> dict[str, Any]:
        facts = {"linearity": self.linearity, "lags": self.n_lags, "ridge": self.ridge}
        return {**facts, "samples": self.n_samples}

    def replicates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """``whole`` as other recordings might give it, by the multiplier bootstrap."""
        draws = rng.standard_normal((n, len(self.influence)))
        return self.whole + np.tensordot(draws, self.influence, axes=1)

    def shortened(self, G: np.ndarray) -> np.ndarray:
        """A response without the lags that were not chosen."""
        made = np.array(G)
        made[..., : max(0, made.shape[-3] - self.n_lags), :, :] = 0.0
        return made

    @property
    def standard_error(self) -> np.ndarray:
        """Standard error of every entry of G, (n_steps, n_outputs, n_inputs)."""
        return np.sqrt(np.einsum("bnoi,bnoi->noi", self.influence, self.influence))


@dataclass(frozen=True, eq=False, repr=False)
class MeasuredResponse(Shown, codec.Saved, kind="response"):
    """A linear system given by the array G of its responses to pulses.

    Stands in place of an `Unfolding` in `optimize`, `choose_eta`, `margin_over_angle` and
    wherever else a linear system is asked for. The numbers of inputs, outputs and steps are
    independent of each other.

    Parameters
    ----------
    G : array_like (n_steps, n_outputs, n_inputs)
        Entry [n, o, i]: output o at the readout after a unit pulse at input i during step
        n. The last step is the one before the readout.
    dt : float
        Length of a step, in the unit of time of the user.

    Attributes
    ----------
    fitted : FitReport or None
        What is known of the errors, where the response was fitted to recordings.

    Examples
    --------
    >>> from greenfold import GaussianStimuli, MeasuredResponse, Reservoir, optimize, unfold
    >>> network = unfold(Reservoir.random(20, rng=3), n_steps=10, dt=1.0)
    >>> device = MeasuredResponse(network.greens1()[:, :5], dt=1.0)  # five outputs are read
    >>> stimuli = GaussianStimuli.random(10, strength=1.0, rng=4)
    >>> best = optimize(device, stimuli)
    >>> best.u.shape, best.v.shape, best.status
    ((20,), (5,), 'certified')
    """

    G: np.ndarray
    dt: float = 1.0
    fitted: FitReport | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        G = check.host_array(self.G, "G", ndim=(3,))
        G.flags.writeable = False
        object.__setattr__(self, "G", G)
        object.__setattr__(self, "dt", check.positive(self.dt, "dt"))

    @classmethod
    def fit(
        cls,
        drive: Any,
        states: Any,
        *,
        n_steps: int,
        dt: float = 1.0,
        n_lags: int | Sequence[int] | None = None,
        ridge: float | Sequence[float] | None = None,
        n_blocks: int = 40,
    ) -> MeasuredResponse:
        """Estimate the response from recordings of a device under random drive.

        Ridge regression of each output on the last samples of all inputs (a finite impulse
        response). The number of lags and the penalty are cross-validated over stretches of
        time, in which the linearity is judged too.

        Parameters
        ----------
        drive : array_like (n_samples, n_inputs), or a list of such
            What was fed in, one sample a step; independent random signals at the inputs.
            Constant parts are removed.
        states : array_like (n_samples, n_outputs), or a list of such
            The outputs at the end of each step.
        n_steps : int
            Steps of the stimuli that will be classified.
        dt : float
            Length of a step.
        n_lags : int or list of int, optional
            Lags of the filter, or those to choose from; by default a quarter, half, once
            and twice ``n_steps``, as far as the recordings carry them.
        ridge : float or list of float, optional
            Penalty, or those to choose from, relative to the mean power of the drive;
            by default ten from 10⁻⁸ to 10.
        n_blocks : int
            Stretches of time from which the errors are estimated. They should be longer
            than the memory of the noise.

        Returns
        -------
        MeasuredResponse
            With ``fitted``.

        Raises
        ------
        DataError
            Where the recordings cannot tell the response; the sentence says what to record.

        Examples
        --------
        >>> import numpy as np
        >>> from greenfold import MeasuredResponse
        >>> rng = np.random.default_rng(0)
        >>> drive = rng.standard_normal((4000, 2))
        >>> states = np.zeros((4000, 1))
        >>> for t in range(1, 4000):
        ...     states[t] = 0.5 * states[t - 1] + drive[t] @ [1.0, -1.0]
        >>> device = MeasuredResponse.fit(drive, states, n_steps=3)
        >>> device.G[:, 0].round(2)  # 0.5², 0.5, 1
        array([[ 0.25, -0.25],
               [ 0.5 , -0.5 ],
               [ 1.  , -1.  ]])
        """
        from .fitting import fit_response

        G, report = fit_response(
            drive, states, n_steps=n_steps, n_lags=n_lags, ridge=ridge, n_blocks=n_blocks
        )
        return cls(G, dt, fitted=report)

    def _facts(self) -> dict[str, Any]:
        sizes = dict(zip(("steps", "outputs", "inputs"), self.G.shape, strict=True))
        known = {} if self.fitted is None else {"linearity": self.fitted.linearity}
        return {**sizes, "dt": self.dt, **known}

    # The maps of a linear system; arguments are not checked, optimisers call them often.

    #: A linear system: all there is are its maps.
    is_linear = True
    #: Of the states as polynomials of the stimulus.
    degree = 1

    @property
    def n_steps(self) -> int:
        """Steps of the stimuli."""
        return self.G.shape[0]

    @property
    def n_outputs(self) -> int:
        """Entries of the readout."""
        return self.G.shape[1]

    @property
    def n_inputs(self) -> int:
        """Rows of the input projection."""
        return self.G.shape[2]

    @property
    def duration(self) -> float:
        """T = KΔ."""
        return self.n_steps * self.dt

    @property
    def maps(self) -> MeasuredResponse:
        """The system itself."""
        return self

    def input_response(self, u: Any) -> np.ndarray:
        """Rᵤ, (n_channels · n_steps, n_outputs), for u (n_inputs,) or with channels."""
        u = np.asarray(u, dtype=np.float64).reshape(self.n_inputs, -1)
        n, o, i = self.G.shape
        response = (self.G.reshape(n * o, i) @ u).reshape(n, o, -1)
        return np.ascontiguousarray(response.transpose(2, 0, 1)).reshape(-1, o)

    def readout_response(self, v: Any) -> np.ndarray:
        """L_v, (n_steps, n_inputs), or with a further axis for several readouts."""
        v = np.asarray(v, dtype=np.float64)
        made = np.tensordot(self.G, v, axes=((1,), (0,)))
        return np.ascontiguousarray(made)

    def response_sum(self, d: np.ndarray) -> MatrixSum:
        """G(d) = Σ_n d_n G_n for weights d (n_channels, n_steps)."""
        return MatrixSum(np.tensordot(d, self.G, axes=1).transpose(1, 0, 2))

    # As every system.

    def _inputs(self, X: Any, u: Any) -> tuple[Any, np.ndarray]:
        X = check.stimuli(X, self.n_steps)
        return X, check.input_projection(u, self.n_inputs, X.shape[1])

    def states(self, X: Any, u: Any) -> Any:
        """Outputs at the readout.

        Parameters
        ----------
        X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
            Any array namespace; the result lives where ``X`` does.
        u : array_like (n_inputs,) or (n_inputs, n_channels)

        Returns
        -------
        array (n_cases, n_outputs)
        """
        X, projection = self._inputs(X, u)
        xp = namespace(X)
        flat = xp.reshape(check.finite_batch(X, xp), (X.shape[0], -1))
        return flat @ like(self.input_response(projection), X)

    def pullback(self, X: Any, u: Any, cotangent: Any, v: Any = None) -> Any:
        """Gradient with respect to the projections; see `Unfolding.pullback`."""
        X, projection = self._inputs(X, u)
        flat = check.host_array(X, "X").reshape(X.shape[0], -1)
        readout = None if v is None else check.readout_vector(v, self.n_outputs)
        wanted = (len(flat),) if readout is not None else (len(flat), self.n_outputs)
        bar = check.host_array(cotangent, "cotangent")
        fits = bar.shape == wanted
        check.must(fits, "cotangent", f"have shape {wanted}", f"shape {bar.shape}")
        states_bar = bar if readout is None else bar[:, None] * readout
        # ∂L/∂R by step and output, carried through G.
        R_bar = (flat.T @ states_bar).reshape(projection.shape[1], self.n_steps, -1)
        u_bar = np.einsum("cno,noi->ic", R_bar, self.G).reshape(np.shape(u))
        if readout is None:
            return u_bar
        return u_bar, (flat @ self.input_response(projection)).T @ bar

    def kernels(self, u: Any, v: Any) -> Kernel:
        """The predictor a_(c,n) = vᵀ G_n u_c of one pair of projections.

        Parameters
        ----------
        u : array_like (n_inputs,) or (n_inputs, n_channels)
        v : array_like (n_outputs,)
        """
        projection = check.input_projection(u, self.n_inputs)
        readout = check.readout_vector(v, self.n_outputs)
        return Kernel(np.ascontiguousarray((self.readout_response(readout) @ projection).T))

    def with_readout(self, readout: float) -> MeasuredResponse:
        """The same device read earlier, at the end of a step; the later steps are zero.

        Parameters
        ----------
        readout : float
            In (0, T], a multiple of dt.
        """
        steps = check.positive(readout, "readout") / self.dt
        n_read = round(steps)
        fits = 1 <= n_read <= self.n_steps and abs(steps - n_read) <= 1e-6 * max(steps, 1)
        wanted = (
            f"be a multiple of dt = {self.dt:g} up to {self.duration:g}, as a recording"
        )
        check.must(fits, "readout", f"{wanted} knows no times in between", repr(readout))
        G = np.zeros_like(self.G)
        G[:n_read] = self.G[self.n_steps - n_read :]
        return MeasuredResponse(G, self.dt)

    def replicates(
        self, n: int, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Responses as other recordings of the same length might have given them.

        Parameters
        ----------
        n : int
        rng : numpy Generator, int or None

        Returns
        -------
        ndarray (n, n_steps, n_outputs, n_inputs)
            With errors drawn by the block multiplier bootstrap.
        """
        if self.fitted is None:
            raise ValueError(
                "`replicates` needs a response that was fitted; this one was given as an "
                "array, without errors: use MeasuredResponse.fit."
            )
        made = self.fitted.replicates(check.count(n, "n"), check.generator(rng))
        return self.fitted.shortened(made)


_SHAPE = ("steps", "outputs", "inputs")
_REPORT = codec.Object(
    FitReport,
    linearity_per_output=codec.Numbers("outputs"),
    whole=codec.Numbers(*_SHAPE),
    influence=codec.Numbers(None, *_SHAPE),
)
codec.describe(
    "response", MeasuredResponse, G=codec.Numbers(*_SHAPE), fitted=codec.Maybe(_REPORT)
)
