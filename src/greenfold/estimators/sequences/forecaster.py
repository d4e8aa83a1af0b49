"""Closed-loop forecasts: a network that runs on its own predictions."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..._base import checks as check
from ..._base import model_files
from ..._base.model_files import refuse_file
from ..._base.progress import watched
from ..._base.threads import with_few_threads
from ...stimuli.sequences import check_sequences
from ...systems import Divergence
from ..base import describe_fitted
from .attractor import ATTRACTOR, SHORTEST, Attractor, lyapunov_exponents
from .backtest import DRAWN, LAST, OWN, Backtest, simple_forecasts
from .bands import HELD_OUT, HeldOutLoops, half_widths
from .base import (
    FIELDS,
    Scale,
    SequenceEstimator,
    check_channels,
    check_whole,
    column_names,
    has_one_axis,
    is_several,
)
from .choice import SHARE, WORST, Block, Candidate, DrivenPairs, HeldOut, Pairs
from .frames import Frame, is_pandas

#: Number of closed loops to start on a held-out block, and their largest length.
_N_STARTS, _LONGEST = 16, 300
#: A closed loop has diverged beyond this many times the largest deviation in training.
_DIVERGED = 10.0
#: A fit keeps no loop that leaves this many times the largest deviation.
_NEAR = 3.0
#: Longest forecast that `score` makes by default, and fewest samples of a backtest, and
#: steps of a loop that must stay near.
_SCORED, _LEAST = 100, 20


class DivergenceWarning(UserWarning):
    """A closed loop left the range of the training series."""


class ReservoirForecaster(SequenceEstimator, kind="forecaster"):
    """A closed-loop forecaster of series, with solved input weights.

    A network learns to predict the next sample, then runs on its own predictions. A fit
    chooses as that of `SequenceRegressor` does, but by closed loops: of drawn weights, of
    points on the way of seven solves, with the spectral radius free and held, and of ridge
    regression on delays. ``chosen_`` says what it kept.

    Series have shape (n_samples, n_channels), or (n_samples,) for one channel. The
    estimator centres and scales them internally. After a DataFrame or Series of pandas,
    forecasts are of the same type and continue its index. A saved model does not keep the
    index; pass it a ``context``.

    Parameters
    ----------
    n_neurons, input_weights, spectral_radius, leak, input_scale, bias_scale, reservoir, dt
        As in `SequenceRegressor`, but the leak is 0.5 by default.
    ridge, washout, see_input, max_iter, random_state, verbose
        As in `SequenceRegressor`.

    Attributes
    ----------
    chosen_, driven_, input_weights_, readout_, intercept_, ridge_, washout_, state_
        As in `SequenceRegressor`. So are ``residual_`` and ``projections_``.

    Examples
    --------
    >>> from greenfold import ReservoirForecaster
    >>> from greenfold.datasets import lorenz
    >>> series = lorenz(2000, rng=0)
    >>> model = ReservoirForecaster(n_neurons=50, random_state=0).fit(series[:1500])
    >>> model.forecast(100).shape
    (100, 3)
    """

    _argument: ClassVar[str] = "series"
    _ahead: ClassVar[int] = 1
    # Series to forecast are smooth.
    _default_leak: ClassVar[float] = 0.5
    n_channels_in_: int
    #: Largest deviation in training, and the last learnt sample.
    _largest: float
    _last: np.ndarray
    #: Closed loops on held-out blocks, for the width of bands.
    _held_out: HeldOutLoops
    #: The distribution of the training series.
    _attractor: Attractor
    #: The last learnt row, if the series came from pandas.
    _frame: Frame | None = None

    @with_few_threads(lambda self: self.n_neurons)
    @watched
    def fit(self, series: ArrayLike, exog: ArrayLike | None = None) -> Self:
        """Solve for the input weights, and fit the readout to the next sample.

        Parameters
        ----------
        series : array_like or list of array_like
        exog : array_like (n_samples,) or (n_samples, n_extra), or list of these, optional
            Known inputs; row t belongs to sample t, and helps to predict it.
        """
        self._check_parameters()
        frames = _frames(series)
        found = check_sequences(series, "series")
        shortest = min(map(len, found))
        check.must(shortest >= 3, "series", "have at least 3 samples per series", shortest)
        with self._all_or_nothing():
            self._flat, self._names = has_one_axis(series), column_names(series)
            self._x_scale = self._y_scale = Scale.of(found, "series")
            self.n_channels_in_ = found[0].shape[1]
            if exog is not None:
                known = Scale.of(check_sequences(exog, "exog"), "exog")
                self._x_scale = self._y_scale.joined(known)
            pairs = self._next_samples(found, exog)
            self._largest = max(float(np.abs(one).max()) for one in pairs.targets)
            run, latest = self._fit(pairs)
            self._last, self._frame = pairs.targets[latest][-1].copy(), frames[latest]
            self._held_out = HeldOutLoops.of(run, self.ridge_, self._first)
            self._attractor = Attractor.of(pairs.targets)
        return self

    def _next_samples(self, series: list[np.ndarray], exog: ArrayLike | None) -> Pairs:
        """Return inputs and targets in units of their deviation.

        An input is a sample with the exog of the next sample; a target is the next sample.
        """
        z = [self._y_scale.down(one) for one in series]
        extra = self._checked_exog(exog, [len(one) for one in series])
        inputs = [np.hstack([a[:-1], b[1:]]) for a, b in zip(z, extra, strict=True)]
        return Pairs.of(inputs, [one[1:] for one in z])

    def _checked_exog(self, exog: ArrayLike | None, lengths: list[int]) -> list[np.ndarray]:
        """Return known inputs (n_samples, n_extra) in units of their deviation."""
        scale = self._x_scale.after(self.n_channels_in_)
        if not len(scale.mean):
            check.must(exog is None, "exog", "be None, as in fit", "an array")
            return [np.empty((n, 0)) for n in lengths]
        rows = " and ".join(map(str, lengths))
        if exog is None:
            raise ValueError(f"`exog` must have {rows} rows, because fit had it; got None.")
        found = check_channels(exog, "exog", len(scale.mean))
        got = [len(one) for one in found]
        check.must(got == lengths, "exog", f"have {rows} rows", " and ".join(map(str, got)))
        return [scale.down(one) for one in found]

    def partial_fit(self, series: ArrayLike, exog: ArrayLike | None = None) -> Self:
        """Fit the readout to additional series; the input weights do not change.

        If the model is not fitted yet, this is the same as ``fit``.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(series, exog)
        frames = _frames(series)
        found = self._checked(series, "series", self.n_channels_in_)
        pairs = self._next_samples(found, exog)
        latest = self._add(pairs)
        self._last, self._frame = pairs.targets[latest][-1].copy(), frames[latest]
        return self

    def update(
        self, series: ArrayLike, exog: ArrayLike | None = None, *, forgetting: float = 1.0
    ) -> Any:
        """Learn the next samples step by step, like `SequenceRegressor.update`.

        ``forecast`` then starts after the last of these samples. ``exog`` holds their known
        inputs. The result is the prediction for each sample, made before it was learnt.
        """
        check_is_fitted(self)
        frame = Frame.of(series, "series")
        z = self._one(series, "series")
        x = np.hstack(
            [np.vstack([self._last, z[:-1]]), *self._checked_exog(exog, [len(z)])]
        )
        made = self._shown(self._update(Pairs.of([x], [z]), forgetting))
        self._last = z[-1].copy()
        if frame is not None:
            self._frame = frame.end
            return frame.wrap(made)
        self._frame = self._frame and self._frame.later(len(z))
        return made

    def _one(self, value: ArrayLike, name: str) -> np.ndarray:
        """Return one series (n_samples, n_channels) in units of its deviation."""
        found = self._checked(value, name, self.n_channels_in_)
        check.must(len(found) == 1, name, "be one series", f"{len(found)} of them")
        return self._y_scale.down(found[0])

    def forecast(
        self, n_steps: int, context: ArrayLike | None = None, exog: ArrayLike | None = None
    ) -> Any:
        """Return a forecast: run the network on its own predictions.

        Parameters
        ----------
        n_steps : int
        context : array_like, optional
            At least ``washout_`` samples that precede the forecast. By default, the
            forecast starts after the last learnt sample.
        exog : array_like (n_steps, …), optional
            Known inputs of the forecast steps, if ``fit`` had ``exog``. With a context, the
            inputs of its samples come first: (n_samples + n_steps, …).

        Returns
        -------
        ndarray (n_steps,) or (n_steps, n_channels), or DataFrame or Series
            Of pandas if the samples before it were, with their index continued. If the loop
            leaves ten times the range of the training series, the forecast is NaN from
            there on, and a `DivergenceWarning` is issued; so it is for a forecast of at
            least 1000 steps that no longer has the distribution of the series.
        """
        made = self._shown(self._closed(n_steps, context, exog))
        frame = self._before(context)
        return made if frame is None else frame.continued(made)

    def _before(self, context: ArrayLike | None) -> Frame | None:
        """Return the last row before a forecast, if it came from pandas."""
        return self._frame if context is None else Frame.of(context, "context")

    def lyapunov_exponents(
        self,
        n: int = 1,
        context: ArrayLike | None = None,
        *,
        n_steps: int = 10_000,
        dt: float = 1.0,
    ) -> np.ndarray:
        """Return the n largest Lyapunov exponents of the closed loop, in falling order.

        They say how fast small differences grow (the first is positive if the loop is
        chaotic), and are those of the system if the loop has learnt it and the network
        forgets faster: the rate at which it forgets is an exponent too. Tangents follow
        the loop with the exact derivative of each step, and are orthogonalised after it
        (Benettin et al., Meccanica 15, 1980). A tenth of the steps comes before, for the
        tangents to align.

        Parameters
        ----------
        n : int
            At most the number of neurons, plus one per channel of the inputs seen.
        context : array_like, optional
            Samples before the loop; see ``forecast``.
        n_steps : int
        dt : float
            Time between samples, for exponents per unit of time instead of per step.

        Returns
        -------
        ndarray (n,)
            NaN with a `DivergenceWarning` if the loop diverges.
        """
        check_is_fitted(self)
        n, n_steps = check.count(n, "n"), check.count(n_steps, "n_steps")
        n_states = self.driven_.n_states
        check.must(n <= n_states, "n", f"be at most {n_states}, one per state", n)
        dt = check.positive(dt, "dt")
        known = len(self._x_scale.mean) - self.n_channels_in_
        what = "needs a closed loop without known inputs, but fit had `exog`"
        check.require(not known, f"`lyapunov_exponents` {what}.")
        state, x, _ = self._begin(1, context, None)
        limit = _DIVERGED * self._largest
        try:
            found = lyapunov_exponents(
                self.driven_, self.readout_, self.intercept_, state, x, n, n_steps, limit
            )
        except Divergence as error:
            what = f"the closed loop diverged at step {error.step + 1}, so it has no "
            what += "Lyapunov exponents; use more neurons or a larger `ridge`."
            warnings.warn(what, DivergenceWarning, stacklevel=2)
            return np.full(n, np.nan)
        return found / dt

    def forecast_band(
        self,
        n_steps: int,
        context: ArrayLike | None = None,
        exog: ArrayLike | None = None,
        *,
        level: float = 0.9,
    ) -> tuple[Any, Any]:
        """Return lower and upper bounds of the next samples, shaped like a ``forecast``.

        The band has the forecast in its middle. At every step and for every channel, it is
        as wide as the errors of closed loops that started on blocks of the training series
        which their readout had not seen (split conformal prediction, by horizon). At each
        step, a sample lies in the band with a probability of at least ``level`` if the
        error of this forecast and those of the held-out loops are exchangeable. So the
        series must be stationary, and as predictable where the forecast begins as on
        average over the training series. This is approximate for two reasons: loops that
        start close together are alike, and the input weights have seen the blocks.

        Held-out loops are at most a block long, about a quarter of the training series.
        Beyond the last step that enough of them reach, the width stays at its largest, and
        a `UserWarning` names the step. ``partial_fit`` and ``update`` do not change the
        width.
        """
        level = check.positive(level, "level")
        check.must(level < 1, "level", "be below 1", level)
        made = self._closed(n_steps, context, exog)
        widths, n_held = self._half_widths(len(made), level)
        if n_held < len(made):
            what = f"the held-out loops that set the width of the band reach {n_held} of "
            what += f"{len(made)} steps; beyond, the width stays the same, which has no "
            what += "guarantee. Fit a longer series for a longer band."
            warnings.warn(what, UserWarning, stacklevel=2)
        ends = self._shown(made - widths), self._shown(made + widths)
        frame = self._before(context)
        if frame is None:
            return ends
        lower, upper = map(frame.continued, ends)
        return lower, upper

    def _half_widths(self, n_steps: int, level: float) -> tuple[np.ndarray, int]:
        """Return half widths (n_steps, n_channels) and the steps they hold for."""
        held = self._held_out
        errors = held.errors(self._run, n_steps)
        return half_widths(errors, level, held.apart(n_steps))

    def score(
        self,
        series: ArrayLike,
        exog: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        n_origins: int = 20,
    ) -> float:
        """Return the skill of forecasts within a series, between 0 and 1; 1 is best.

        Closed loops start at origins spread over the series, after a washout, and see only
        what precedes them. The skill of each step ahead is 1 − error² / variance, with the
        mean over the origins and the variance of the training series, but at least 0: to
        forecast the mean has no skill. The score is its mean over the steps, so it is the
        share of the horizon for which forecasts are good. Squared errors count at most 2
        variances, the mean for an unrelated sample, and so does a diverged loop.

        For an honest score, pass samples that the fit has not seen. `GridSearchCV` does,
        with ``cv=TimeSeriesSplit()`` or any other split into contiguous parts.

        Parameters
        ----------
        series : array_like
        exog : array_like, optional
            Known inputs, one row per sample, if ``fit`` had ``exog``.
        horizon : int, optional
            Number of steps to forecast; by default, half of the samples after the washout,
            at most 100.
        n_origins : int
            Number of forecasts, if the series is long enough.
        """
        check_is_fitted(self)
        z = self._one(series, "series")
        (extra,) = self._checked_exog(exog, [len(z)])
        left, least = len(z) - max(self.washout_, 1), max(self.washout_, 1) + 2
        wanted = f"have at least {least} samples, two more than the memory of the network"
        check.must(left >= 2, "series", wanted, len(z))
        if horizon is None:
            horizon = min(left // 2, _SCORED)
        else:
            horizon = check.count(horizon, "horizon")
            wanted = f"be at most {left}, the number of samples after the washout"
            check.must(horizon <= left, "horizon", wanted, horizon)
        n_origins = check.count(n_origins, "n_origins")
        origins = _spread_out(len(z) - left, len(z) - horizon, n_origins)
        made = self._from_origins(z, extra, origins, horizon)
        truth = z[origins + np.arange(horizon)[:, None]]
        error = ((made - truth) ** 2).mean(2)
        error = np.minimum(np.where(np.isnan(error), 2, error), 2)
        return float(np.maximum(1 - error.mean(1), 0).mean())

    def backtest(
        self,
        series: ArrayLike,
        horizon: int,
        n_origins: int = 10,
        exog: ArrayLike | None = None,
    ) -> Backtest:
        """Return forecasts of held-out samples and their errors, beside simple forecasts.

        A clone is fitted once, to the samples before the first origin; this forecaster does
        not change and need not be fitted. The origins are spread over the last quarter of
        the series, or over a longer part if the horizon needs it, at most the last half.
        Compare with the same network with random input weights, ridge regression on delays
        with its number and penalty chosen on held-out blocks, the last value, the last
        season, and the mean. The simple forecasts do not see ``exog``.

        Parameters
        ----------
        series : array_like
        horizon : int
            Number of steps of each forecast.
        n_origins : int
            Number of forecasts.
        exog : array_like, optional
            Known inputs, one row per sample.

        Returns
        -------
        Backtest
            Prints as a table with a sentence that says which forecast is best.

        Examples
        --------
        >>> from greenfold import ReservoirForecaster
        >>> from greenfold.datasets import mackey_glass
        >>> model = ReservoirForecaster(20, input_weights="random", random_state=0)
        >>> table = model.backtest(mackey_glass(600, rng=0), horizon=20)
        >>> sorted(table.medians)
        ['forecaster', 'last season', 'last value', 'mean', 'ridge on delays']
        """
        found = check_sequences(series, "series")
        check.must(len(found) == 1, "series", "be one series", f"{len(found)} of them")
        values, horizon = found[0], check.count(horizon, "horizon")
        n = len(values)
        check.must(n >= _LEAST, "series", f"have at least {_LEAST} samples", n)
        wanted = f"be at most {n // 2}, half of the series"
        check.must(horizon <= n // 2, "horizon", wanted, horizon)
        first = n - max(n // 4, min(2 * horizon, n // 2))
        origins = _spread_out(first, n - horizon, check.count(n_origins, "n_origins"))
        known = None
        if exog is not None:
            (known,) = check_sequences(exog, "exog")
            check.must(len(known) == n, "exog", f"have {n} rows", len(known))

        def forecasts_of(
            weights: str | ArrayLike,
        ) -> tuple[ReservoirForecaster, np.ndarray]:
            model: Any = clone(self)
            if weights is not self.input_weights:  # drawn ones take no evaluations
                model.set_params(input_weights=weights, max_iter=type(self)().max_iter)
            model.fit(values[:first], None if known is None else known[:first])
            z = model._y_scale.down(values)
            made = model._from_origins(
                z, *model._checked_exog(known, [n]), origins, horizon
            )
            return model, model._y_scale.up(made).swapaxes(0, 1)

        model, made = forecasts_of(self.input_weights)
        forecasts, widths, used = {OWN: made}, None, {OWN: model.chosen_.kept}
        if not (isinstance(self.input_weights, str) and self.input_weights == "random"):
            drawn, forecasts[DRAWN] = forecasts_of("random")
            used[DRAWN] = drawn.chosen_.kept
        spread = model._y_scale.deviation
        with suppress(ValueError):  # too few held-out loops
            widths = model._half_widths(horizon, 0.9)[0] * spread
        seen = values[:first]
        varies = np.ptp(seen, axis=0) > 1e-12 * np.abs(seen).max(0)
        spread = np.where(varies, spread, np.nan)
        simple, season = simple_forecasts(values, origins, horizon)
        truth = values[origins[:, None] + np.arange(horizon)]
        index, columns = getattr(series, "index", None), getattr(series, "columns", None)
        labels = (index, columns) if is_pandas(series) else (None, None)
        made = forecasts | simple
        return Backtest(origins, truth, made, spread, widths, season, used, *labels)

    def _from_origins(
        self, z: np.ndarray, extra: np.ndarray, origins: np.ndarray, n_steps: int
    ) -> np.ndarray:
        """Return predictions (n_steps, n_origins, n_channels) of z from origins on.

        ``z`` and ``extra`` are in units of their deviation.
        """
        x = np.hstack([z[:-1], extra[1:]])
        rest = self.driven_.rest()
        states = np.vstack([rest, self.driven_.run(x[: origins.max() - 1], rest)])
        rows = np.minimum(origins - 1 + np.arange(n_steps)[:, None], len(x) - 1)
        return self._run(states[origins - 1], x[rows])

    def _begin(
        self, n_steps: int, context: ArrayLike | None, exog: ArrayLike | None
    ) -> tuple[np.ndarray, ...]:
        """Return the initial state and sample, and known inputs (n_steps, n_extra)."""
        if context is None:
            return self.state_, self._last, *self._checked_exog(exog, [n_steps])
        seen, least = self._one(context, "context"), max(self.washout_, 1)
        wanted = f"have at least {least} samples, the memory of the network"
        check.must(len(seen) >= least, "context", wanted, len(seen))
        (extra,) = self._checked_exog(exog, [len(seen) + n_steps])
        before = np.hstack([seen[:-1], extra[1 : len(seen)]])
        rest = self.driven_.rest()
        state = self.driven_.run(before, rest)[-1] if len(before) else rest
        return state, seen[-1], extra[len(seen) :]

    def _closed(
        self, n_steps: int, context: ArrayLike | None, exog: ArrayLike | None
    ) -> np.ndarray:
        """Return predictions (n_steps, n_channels), NaN after divergence."""
        check_is_fitted(self)
        n_steps = check.count(n_steps, "n_steps")
        state, sample, extra = self._begin(n_steps, context, exog)
        inputs = np.zeros((n_steps, 1, len(sample) + extra.shape[1]))
        inputs[0, 0, : len(sample)] = sample
        inputs[:, 0, len(sample) :] = extra
        made = self._run(state[None], inputs)[:, 0]
        lost = np.isnan(made[:, 0])
        if lost.any():
            what = "the closed loop left the range of the training series at step "
            what += (
                f"{np.argmax(lost) + 1} of {n_steps}; it is NaN from there on. Check the "
            )
            what += "units of `context`, or use more neurons, a larger `ridge` or "
            what += "another `random_state`."
            warnings.warn(what, DivergenceWarning, stacklevel=3)
        elif n_steps >= SHORTEST and (why := self._attractor.complaint(made)):
            what = f"the closed loop left the attractor: in the second half of {n_steps} "
            what += f"steps, {why}. Use more neurons, a larger `ridge` or another "
            what += "`random_state`."
            warnings.warn(what, DivergenceWarning, stacklevel=3)
        return made

    def _run(
        self,
        states: np.ndarray,
        inputs: np.ndarray,
        readout: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Run closed loops and return predictions (n_steps, n_loops, n_channels).

        ``states`` (n_loops, n_states) come before the inputs (n_steps, n_loops, n_inputs).
        Of the inputs, the first row counts, and the known inputs of the other rows. After a
        loop has diverged, its predictions are NaN.
        """
        n_steps, n_loops, n_inputs = inputs.shape
        n_channels = self.n_channels_in_
        limit, readout = _DIVERGED * self._largest, readout or self._readout
        found = np.full((n_steps, n_loops, n_channels), np.nan)
        alive, x = np.arange(n_loops), inputs[0]
        for index in range(n_steps):
            states, made = self._step(states, x, readout)
            if not np.abs(made).max() <= limit:
                good = (np.abs(made) <= limit).all(1)
                alive, states, made = alive[good], states[good], made[good]
                if not len(alive):
                    break
            found[index, alive] = x = made
            if n_inputs > n_channels and index + 1 < n_steps:
                x = np.hstack([made, inputs[index + 1, alive, n_channels:]])
        return found

    @property
    def _readout(self) -> tuple[np.ndarray, np.ndarray]:
        return self.readout_, self.intercept_

    def _step(
        self, states: np.ndarray, x: np.ndarray, readout: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the states after the inputs x, and the predictions from there."""
        states = self.driven_.advance(states, x)
        return states, states[:, self._first :] @ readout[0] + readout[1]

    def _judge(self, run: DrivenPairs, held_out: list[HeldOut]) -> list[np.ndarray]:
        """Return squared errors of closed loops that start on held-out blocks.

        They are means over the channels, (n_readouts, n_starts, n_steps) for each block. A
        loop that has diverged stays at the largest error. All loops run together.
        """
        driven, pairs, n_channels = run.network, run.pairs, self.n_channels_in_
        x, y = map(np.concatenate, (pairs.inputs, pairs.targets))
        offsets = np.cumsum([0, *map(len, pairs.inputs)])
        starts = [_starts(block) for block, _, _ in held_out]
        # A block with fewer starts repeats its last one.
        most, longest = max(len(one) for one, _ in starts), max(n for _, n in starts)
        begins = np.stack([np.pad(s, (0, most - len(s)), "edge") for s, _ in starts])
        sequences = [block.sequence for block, _, _ in held_out]
        V = np.stack([one for _, one, _ in held_out])
        intercepts = np.stack([one for _, _, one in held_out])[:, :, None]
        states = np.stack(
            [run.states[k][one] for k, one in zip(sequences, begins, strict=True)]
        )
        states = np.repeat(states[:, None], V.shape[1], axis=1)
        begins += offsets[sequences][:, None]
        found = np.full((longest, *states.shape[:3]), WORST)
        lost = np.zeros(states.shape[:3], dtype=bool)
        for step in range(longest):
            made = np.clip(states @ V + intercepts, -1e6, 1e6)
            # Beyond the end of a shorter block, errors are not used.
            rows = np.minimum(begins + step, len(y) - 1)
            error = ((made - y[rows][:, None]) ** 2).mean(3)
            lost |= error > WORST
            found[step] = np.where(lost, WORST, error)
            if lost.all() or step + 1 == longest:
                break
            ahead = x[np.minimum(rows + 1, len(x) - 1), n_channels:][:, None]
            extra = np.broadcast_to(ahead, (*made.shape[:3], ahead.shape[3]))
            now = np.concatenate([made, extra], axis=3).reshape(lost.size, -1)
            flat = driven.advance(states.reshape(lost.size, -1), now)
            states = flat.reshape(states.shape)
        return [
            found[:n_steps, i, :, : len(one)].transpose(1, 2, 0)
            for i, (one, n_steps) in enumerate(starts)
        ]

    def _stays(self, run: DrivenPairs, best: Candidate) -> bool:
        """Return whether closed loops from all over the longest series stay near its range.

        Their readout is fitted to all series. Near interpolation, a few more samples to fit
        can make a loop unstable. Loops are as long as the unseen samples, or 20 steps, or
        until they had no more skill there.
        """
        reads, pairs = slice(self._first, None), run.pairs
        V, intercepts = run.readouts([], np.array([best.ridge]), reads)
        index = int(np.argmax([len(one) for one in pairs.inputs]))
        x, n = pairs.inputs[index], len(pairs.inputs[index])
        n_steps, lost = min(max(int(SHARE * n), 1), _LONGEST), best.errors.mean(0) >= 1
        if lost.any():
            n_steps = min(n_steps, max(int(np.argmax(lost)) + 1, _LEAST))
        begins = np.linspace(min(run.skipped + 1, n - 1), n - 1, _N_STARTS).astype(int)
        rows = np.minimum(begins + np.arange(n_steps)[:, None], n - 1)
        made = self._run(
            run.states[index][begins - 1], x[rows], (V[0, reads], intercepts[0])
        )
        return bool(np.abs(made).max() <= _NEAR * self._largest)  # NaN does not

    def _simple(self, pairs: Pairs, block: Block) -> dict[str, np.ndarray]:
        """Return squared errors of the last value on a held-out block."""
        x, y = pairs.inputs[block.sequence], pairs.targets[block.sequence]
        begins, n_steps = _starts(block)
        truth = y[begins[:, None] + np.arange(n_steps)]
        last = x[begins, None, : y.shape[1]]
        return {LAST: np.minimum(((last - truth) ** 2).mean(2), WORST)[None]}


def _starts(block: Block) -> tuple[np.ndarray, int]:
    """Return where closed loops start on a block, and their length."""
    start, stop = block.steps.start, block.steps.stop
    length = min(max((stop - start) // 2, 1), _LONGEST)
    return np.unique(np.linspace(start, stop - length, _N_STARTS).astype(int)), length


def _frames(series: ArrayLike) -> list[Frame | None]:
    """Return the end of each series, if it came from pandas."""
    found = [
        Frame.of(one, "series") for one in (series if is_several(series) else [series])
    ]
    return [one and one.end for one in found]


def _spread_out(first: int, last: int, n: int) -> np.ndarray:
    """Return at most n different integers from first to last."""
    return np.unique(np.linspace(first, last, n).astype(int))


def _check_whole(made: ReservoirForecaster) -> None:
    """Refuse inconsistent parts of a file."""
    check_whole(made)
    shape = made.driven_.n_states, len(made._x_scale.mean), made.readout_.shape
    n = made.n_channels_in_
    if not (
        made._held_out.fits(*shape) and made._last.shape == made.intercept_.shape == (n,)
    ):
        refuse_file("its parts do not fit its held-out loops.")


describe_fitted(
    ReservoirForecaster,
    _check_whole,
    **FIELDS,
    n_channels_in_=model_files.COUNT,
    _largest=model_files.POSITIVE,
    _last=model_files.Numbers(None),
    _held_out=HELD_OUT,
    _attractor=ATTRACTOR,
)
