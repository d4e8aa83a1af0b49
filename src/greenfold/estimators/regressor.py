"""A linear reservoir whose input projection is solved for the targets, as a regressor."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state, validation
from sklearn.utils.validation import check_is_fitted, validate_data

from .._base import checks as check
from .._base.codec import Saved
from .._base.threads import rows_of_estimator, rows_to_read, with_few_threads
from ..networks.reservoir import Reservoir
from ..optimizers.regression import solve_regression
from ..optimizers.result import RegressionProjections
from ..stimuli.regression import RegressionTask
from ..unfolding.unfolding import Unfolding, unfold

#: Penalties compared by leaving one case out, for states of inputs of unit power.
_RIDGES = np.geomspace(1e-8, 1e1, 19)
#: Rounds of u and penalty, each solved for the other.
_ROUNDS = 3


class ReservoirRegressor(
    MultiOutputMixin, RegressorMixin, Saved, BaseEstimator, kind="regressor"
):
    """Predict numbers from series, by a linear reservoir with a solved input projection.

    One input projection serves all targets, as on a device, and comes with a bound on what
    any could reach. The fitted reservoir predicts as one kernel a target.

    Parameters
    ----------
    input_projection : {"optimal", "random"} or array_like, default "optimal"
        Solved for the targets, drawn, or given as (n_neurons,) or (n_neurons, n_channels).
    n_neurons : int, default 100
    g : float, default 0.9
        Scale of the random weights.
    tau : float, default 0.25
        Time constant.
    duration : float, default 10.0
        Time T that a series takes; a step lasts duration / n_steps.
    reservoir : Reservoir or array_like (n_neurons, n_neurons), optional
        Own network instead of a random one; its linear order is used.
    ridge : float or "loo", default "loo"
        Penalty on the readouts, for inputs of unit power; "loo" chooses it by leaving one
        case out.
    readout_noise : float, default 0.0
        Standard deviation of noise on every state as it is read, in the same unit. Its
        square is the least penalty.
    random_state : int, RandomState or None, default None
        Draws the network and the starts.

    Attributes
    ----------
    reservoir_ : Reservoir
    unfolding_ : Unfolding
    projections_ : RegressionProjections
        u, the readouts V for targets in units of their deviation, and the bound.
    kernel_ : ndarray (n_targets, n_channels · n_steps)
        Predictions are ``X.reshape(n, -1) @ kernel_.T + intercept_``.
    intercept_ : ndarray (n_targets,)
    ridge_ : float
    n_features_in_ : int
    n_channels_in_ : int

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

    reservoir_: Reservoir
    projections_: RegressionProjections
    kernel_: np.ndarray
    intercept_: np.ndarray
    ridge_: float
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        input_projection: Any = "optimal",
        n_neurons: int = 100,
        g: float = 0.9,
        tau: float = 0.25,
        duration: float = 10.0,
        reservoir: Any = None,
        ridge: float | str = "loo",
        readout_noise: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.input_projection = input_projection
        self.n_neurons = n_neurons
        self.g = g
        self.tau = tau
        self.duration = duration
        self.reservoir = reservoir
        self.ridge = ridge
        self.readout_noise = readout_noise
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    @with_few_threads(rows_of_estimator)
    def fit(self, X: Any, y: Any) -> ReservoirRegressor:
        """Solve for the input projection and the readouts.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps)
        y : array_like (n_cases,) or (n_cases, n_targets)

        Returns
        -------
        self
        """
        self._check_parameters()
        series, targets = self._read(X, y)
        self._flat = targets.ndim == 1
        table = targets.reshape(len(targets), -1)
        random = check_random_state(self.random_state)
        seed = np.random.default_rng(random.randint(2**31))
        n_channels = series.shape[1]
        self.reservoir_ = self._network(seed)
        unfolding = self.unfolding_
        mean, offset = series.mean(0), table.mean(0)
        unit = np.sqrt(((series - mean) ** 2).mean()) or 1.0
        deviation = table.std(0)
        deviation[deviation <= 1e-12 * np.abs(table).max(0)] = 1.0
        x, t = (series - mean) / unit, (table - offset) / deviation
        least = float(self.readout_noise) ** 2
        ridge = 1e-3 if isinstance(self.ridge, str) else float(self.ridge)
        ridge = max(ridge, least, 1e-12)
        drawn = None
        if isinstance(self.input_projection, str):
            if self.input_projection == "random":
                drawn = seed.standard_normal((self.reservoir_.n_neurons, n_channels))
        else:
            drawn = np.asarray(self.input_projection, dtype=np.float64)
        for _ in range(_ROUNDS if isinstance(self.ridge, str) else 0):
            u = _solve(unfolding, x, t, ridge, drawn, seed, certify=False).u
            chosen = max(_leave_one_out(unfolding, x, t, u), least, 1e-12)
            if np.isclose(chosen, ridge):
                break
            ridge = chosen
        found = _solve(unfolding, x, t, ridge, drawn, seed, certify=True)
        self.ridge_ = ridge
        self.projections_ = found
        states = unfolding.input_response(found.u)
        self.kernel_ = (states @ found.V).T * (deviation[:, None] / unit)
        self.intercept_ = offset - self.kernel_ @ mean.ravel()
        return self

    @property
    def unfolding_(self) -> Unfolding:
        """The network unfolded for series of the fitted length."""
        dt = self.duration / self.n_features_in_
        return unfold(self.reservoir_, n_steps=self.n_features_in_, dt=dt)

    def __sklearn_is_fitted__(self) -> bool:
        # The last that a fit sets.
        return hasattr(self, "intercept_")

    @with_few_threads(rows_to_read)
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, by the kernels.

        Parameters
        ----------
        X : array_like (n_cases, n_steps) or (n_cases, n_channels, n_steps)

        Returns
        -------
        ndarray (n_cases,) or (n_cases, n_targets)
        """
        check_is_fitted(self)
        series = self._read_series(X, reset=False)
        made = series.reshape(len(series), -1) @ self.kernel_.T + self.intercept_
        return made[:, 0] if self._flat else made

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, as scikit-learn defines it.

        Parameters
        ----------
        X : array
            As for ``predict``.
        y : array
            The true targets.
        sample_weight : array_like (n_cases,), optional

        Returns
        -------
        float
            One minus the squared error over the variance; 1 is best.
        """
        return super().score(X, y, sample_weight)

    def _network(self, rng: np.random.Generator) -> Reservoir:
        if self.reservoir is None:
            return Reservoir.random(
                int(self.n_neurons), g=self.g, tau=self.tau, max_draws=100, rng=rng
            )
        if isinstance(self.reservoir, Reservoir):
            return self.reservoir
        return Reservoir(self.reservoir, tau=self.tau)

    def _read_series(self, X: Any, *, reset: bool) -> np.ndarray:
        read: Any = validate_data
        made = read(self, X, reset=reset, dtype=np.float64, ensure_2d=False, allow_nd=True)
        return self._shaped(made, reset)

    def _read(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        read: Any = validate_data
        series, targets = read(
            self,
            X,
            y,
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
        )
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = validation.column_or_1d(targets, warn=True)
        return self._shaped(series, True), targets.astype(np.float64)

    def _shaped(self, series: np.ndarray, reset: bool) -> np.ndarray:
        if series.ndim not in (2, 3):
            raise ValueError(
                "Expected 2D array, got an array of shape "
                f"{series.shape} instead. Reshape your data either using "
                "array.reshape(-1, 1) if your data has a single feature or "
                "array.reshape(1, -1) if it contains a single sample; several channels "
                "have shape (n_cases, n_channels, n_steps)."
            )
        series = series[:, None] if series.ndim == 2 else series
        if reset:
            self.n_channels_in_, self.n_features_in_ = series.shape[1:]
        elif series.shape[1:] != (self.n_channels_in_, self.n_features_in_):
            raise ValueError(
                f"X has {series.shape[2]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input (in {self.n_channels_in_} "
                "channels)."
            )
        return series

    def _check_parameters(self) -> None:
        def refuse(name: str, wanted: str) -> None:
            raise ValueError(
                f"The {name!r} parameter of {type(self).__name__} must be {wanted}. Got "
                f"{getattr(self, name)!r} instead."
            )

        if isinstance(self.input_projection, str) and self.input_projection not in (
            "optimal",
            "random",
        ):
            refuse("input_projection", "'optimal', 'random' or an array")
        if not isinstance(self.n_neurons, Integral) or self.n_neurons < 1:
            refuse("n_neurons", "an int, at least 1")
        for name in ("g", "tau", "duration"):
            if not _positive(getattr(self, name)):
                refuse(name, "a positive number")
        if self.ridge != "loo" and not _positive(self.ridge):
            refuse("ridge", "a positive number or 'loo'")
        noise = self.readout_noise
        if not (isinstance(noise, Real) and float(noise) >= 0):
            refuse("readout_noise", "a number, at least 0")


def _positive(value: Any) -> bool:
    return (
        isinstance(value, Real)
        and not isinstance(value, bool)
        and 0 < float(value) < np.inf
    )


def _solve(
    unfolding: Unfolding,
    x: np.ndarray,
    t: np.ndarray,
    ridge: float,
    u: np.ndarray | None,
    rng: np.random.Generator,
    *,
    certify: bool,
) -> RegressionProjections:
    task = RegressionTask.from_cases(x, t, ridge=ridge)
    if u is not None:
        u = check.input_projection(u, unfolding.n_inputs, task.n_channels)
        u = u / np.linalg.norm(u)
    found = solve_regression(
        unfolding, task, u=u, n_starts=2, max_iter=300, tol=1e-3, rng=rng, certify=certify
    )
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return found


def _leave_one_out(
    unfolding: Unfolding, x: np.ndarray, t: np.ndarray, u: np.ndarray
) -> float:
    """The penalty of the smallest error when each case in turn is left out."""
    n = len(x)
    states = x.reshape(n, -1) @ unfolding.input_response(u)
    left, sizes, _ = np.linalg.svd(states - states.mean(0), full_matrices=False)
    along = left.T @ t
    errors = []
    for ridge in _RIDGES:
        share = sizes**2 / (sizes**2 + n * ridge)
        rest = t - left @ (share[:, None] * along)
        kept = 1 - (left**2) @ share - 1 / n
        errors.append((rest**2 / np.maximum(kept, 1e-12)[:, None] ** 2).sum())
    return float(_RIDGES[int(np.argmin(errors))])
