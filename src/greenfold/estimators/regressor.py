"""A regressor with a linear reservoir whose input projection is solved for the targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._base import checks as check
from .._base import model_files
from .._base.arrays import exponent
from .._base.model_files import refuse_file
from .._base.progress import tell, watched
from .._base.threads import with_few_threads
from ..devices.response import MeasuredResponse
from ..math.ridge import leave_one_out
from ..networks.gains import Gain
from ..networks.reservoir import Reservoir
from ..optimizers.convex import Convex
from ..optimizers.result import REGRESSION, RegressionProjections
from ..optimizers.run import optimize
from ..stimuli.regression import RegressionTask
from ..unfolding.unfolding import Unfolding, unfold
from .base import (
    FITTED_NETWORK,
    NetworkEstimator,
    SeriesRegressor,
    describe_fitted,
    rows_to_fit,
    rows_to_read,
    sizes_of,
)
from .parameters import POSITIVE, Idle, Rules, one_of
from .series import read_targets, read_values

#: Penalties to compare by leave-one-out, for states of inputs of unit power.
_RIDGES = np.geomspace(1e-8, 1e1, 19)
#: Number of rounds that solve for u, then choose the penalty.
_ROUNDS = 3


@dataclass(kw_only=True, eq=False, repr=False)
class ReservoirRegressor(SeriesRegressor, NetworkEstimator, kind="regressor"):
    """A regressor that predicts numbers from series and solves for the input projection.

    One input projection serves all targets, as on a device; a bound tells you how well any
    other projection could do. The fitted linear reservoir predicts with one kernel per
    target.

    Parameters
    ----------
    input_projection : {"solved", "random"} or array_like, default "solved"
        "solved" solves for u and "random" draws it. An array (n_neurons,) or (n_neurons,
        n_channels) is used as u, scaled to unit norm.
    n_neurons, g, tau, duration, reservoir
        As in `ReservoirClassifier`; the network is used at linear order. A MeasuredResponse
        gives one mask for all targets of a device.
    ridge : float or "loo", default "loo"
        Penalty on the readouts, for inputs of unit power; "loo" chooses it by
        leave-one-out.
    readout_noise : float, default 0.0
        Standard deviation of the noise on each state when it is read, for inputs of unit
        power. Its square is the smallest penalty.
    random_state : int, RandomState or None, default None
        Seed of the network and the starts.
    verbose : bool, default False
        Show the progress of a fit if stderr is a terminal.

    Attributes
    ----------
    reservoir_ : Reservoir or MeasuredResponse
    projections_ : RegressionProjections
        u, the bound, and the readouts V for targets in units of their deviation.
    kernel_ : ndarray (n_targets, n_channels · n_steps)
        Predictions are ``X.reshape(n, -1) @ kernel_.T + intercept_``.
    intercept_ : ndarray (n_targets,)
    ridge_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from greenfold import ReservoirRegressor
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, -3] - 0.5 * X[:, -5]
    >>> regressor = ReservoirRegressor(n_neurons=40, random_state=0).fit(X[:200], y[:200])
    >>> bool(regressor.score(X[200:], y[200:]) > 0.95)
    True
    """

    _last_fitted = "intercept_"
    _keeps_gain = "optimize(Dynamics(…), RegressionTask(…)) keeps it non-linear"
    _rules: ClassVar[Rules] = {
        **NetworkEstimator._rules,
        "ridge": (POSITIVE, one_of("loo")),
    }
    reservoir_: Reservoir | MeasuredResponse = field(init=False)
    projections_: RegressionProjections = field(init=False)
    kernel_: np.ndarray = field(init=False)
    intercept_: np.ndarray = field(init=False)
    ridge_: float = field(init=False)

    input_projection: str | ArrayLike = "solved"
    n_neurons: int = 100
    g: float = 0.9
    tau: float = 0.25
    duration: float = 10.0
    reservoir: Reservoir | MeasuredResponse | ArrayLike | None = None
    ridge: float | str = "loo"
    readout_noise: float = 0.0
    random_state: int | np.random.RandomState | None = None
    verbose: bool = False

    def _idle(self) -> list[Idle]:
        fixed = not isinstance(self.ridge, str)
        why = "with a given `ridge`, because it only limits the choice of a ridge"
        return [*super()._idle(), (fixed, why, ("readout_noise",))]

    @with_few_threads(rows_to_fit)
    @watched
    def fit(self, X: ArrayLike, y: ArrayLike) -> ReservoirRegressor:
        """Solve for the input projection and the readouts of targets ``y``.

        ``X`` is (n_cases, n_steps) or (n_cases, n_channels, n_steps), ``y`` (n_cases,) or
        (n_cases, n_targets).
        """
        self._check_parameters()
        with self._all_or_nothing():
            series = self._read(X, fitting=True)
            targets = read_targets(self, y, len(series))
            self._flat = targets.ndim == 1
            table = targets.reshape(len(targets), -1)
            # Scaling by powers of two is exact, and then no square overflows.
            size, own = exponent(series), exponent(table, 0)
            series, table = np.ldexp(series, -size), np.ldexp(table, -own)
            random = check_random_state(self.random_state)
            rng = np.random.default_rng(random.randint(2**31))
            self.reservoir_ = self._make_network(
                rng, float(self.tau), Gain.linear(), linear=True
            )
            drawn = self._fixed_input(rng, sizes_of(self.reservoir_)[0])
            unfolding = self.unfolding_
            mean, offset = series.mean(0), table.mean(0)
            unit = np.sqrt(((series - mean) ** 2).mean()) or 1.0
            deviation = table.std(0)
            deviation[deviation <= 1e-12 * np.abs(table).max(0)] = 1.0
            x, t = (series - mean) / unit, (table - offset) / deviation
            least = max(float(self.readout_noise) ** 2, 1e-12)
            ridge = max(1e-3 if isinstance(self.ridge, str) else float(self.ridge), least)

            def solved(ridge: float, certify: bool) -> RegressionProjections:
                task = RegressionTask.from_cases(x, t, ridge=ridge)
                if drawn is None:
                    method = Convex(gap=1e-3 if certify else np.inf)
                    found = optimize(unfolding, task, method=method, rng=rng)
                else:
                    found = optimize(unfolding, task, u=drawn)
                found.raise_if_interrupted()
                return found

            for _ in range(_ROUNDS if isinstance(self.ridge, str) else 0):
                u = solved(ridge, certify=False).u
                states = x.reshape(len(x), -1) @ unfolding.input_response(u)
                errors = leave_one_out(states, t, len(x) * _RIDGES)
                better = max(float(_RIDGES[int(np.argmin(errors))]), least)
                tell(f"penalty {better:.2g}")
                if np.isclose(better, ridge):
                    break
                ridge = better
            self.ridge_, self.projections_ = ridge, solved(ridge, certify=True)
            states = unfolding.input_response(self.projections_.u)
            kernel = (states @ self.projections_.V).T * (deviation[:, None] / unit)
            with np.errstate(over="ignore"):
                self.kernel_ = np.ldexp(kernel, (own - size)[:, None])
            largest = np.abs(self.kernel_).max(1)
            fits = (largest >= np.finfo(float).tiny) & np.isfinite(largest)
            apart = "X and y differ in size by more than floating point can hold"
            fits |= ~kernel.any(1)
            check.require(fits.all(), f"{apart}; rescale one of them.")
            self.intercept_ = np.ldexp(offset - kernel @ mean.ravel(), own)
        return self

    def _read(self, X: ArrayLike, *, fitting: bool) -> np.ndarray:
        """Read series of equal length, (n_cases, n_channels, n_steps)."""
        values = read_values(self, X, fitting=fitting)
        other = {one.shape[1] for one in values} - {self.n_features_in_}
        if other:
            wanted = f"{self.n_features_in_} features as input in every series"
            name = type(self).__name__
            got = f"X has {min(other)} features, but {name} is expecting"
            raise ValueError(f"{got} {wanted}.")
        return np.asarray(values)

    @property
    def unfolding_(self) -> Unfolding | MeasuredResponse:
        """The network unfolded for series of the fitted length, or the response."""
        if isinstance(self.reservoir_, MeasuredResponse):
            return self.reservoir_
        dt = self.duration / self.n_features_in_
        return unfold(self.reservoir_, n_steps=self.n_features_in_, dt=dt)

    @with_few_threads(rows_to_read)
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict targets (n_cases,) or (n_cases, n_targets) with the kernels."""
        check_is_fitted(self)
        series = self._read(X, fitting=False)
        with np.errstate(over="ignore", invalid="ignore"):  # reported below
            made = series.reshape(len(series), -1) @ self.kernel_.T + self.intercept_
        check.finite_result(made, np)
        return made[:, 0] if self._flat else made


def _check_whole(made: ReservoirRegressor) -> None:
    (n_inputs, n_outputs), n_targets = sizes_of(made.reservoir_), len(made.intercept_)
    if made._flat and n_targets != 1:
        refuse_file(f"it has {n_targets} targets, but declares one.")
    found = made.projections_
    sizes = found.V.shape, found.u.size
    if sizes != ((n_outputs, n_targets), n_inputs * made.n_channels_in_):
        refuse_file(
            f"its projections do not fit {n_inputs} inputs and {n_outputs} outputs."
        )


describe_fitted(
    ReservoirRegressor,
    _check_whole,
    reservoir_=FITTED_NETWORK,
    projections_=REGRESSION,
    ridge_=model_files.POSITIVE,
    _flat=model_files.FLAG,
    kernel_=model_files.Numbers("targets", ("channels", "steps")),
    intercept_=model_files.Numbers("targets"),
)
