"""Sequence regression: every step of one sequence predicts that step of another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..._base import checks as check
from ..._base import model_files
from ..._base.progress import watched
from ..._base.threads import with_few_threads
from ...stimuli.sequences import check_sequences, check_targets
from ..base import describe_fitted, r_squared
from .base import (
    FIELDS,
    Scale,
    SequenceEstimator,
    check_whole,
    column_names,
    has_one_axis,
    is_several,
)
from .choice import Block, DrivenPairs, HeldOut, Pairs
from .frames import Frame

#: Number of parts of a held-out block, for the scatter of errors.
_N_PARTS = 16


class SequenceRegressor(RegressorMixin, SequenceEstimator, kind="sequence_regressor"):
    """A regressor that maps one sequence to another, with solved input weights.

    The input sequence drives a network, and ridge regression reads its states at every
    step. Input weights are usually drawn at random. Here, quasi-Newton steps through the
    network itself lower the error on blocks that the readout has not seen, with respect to
    input weights, bias, penalty and spectral radius. The last fifth of the steps is seen by
    none of this. There, points on the way are compared with drawn weights and with ridge
    regression on the last inputs. The simplest that is as good as the best is kept, and its
    readout is fitted to all steps; ``chosen_`` says which. For a linear network, the
    optimum comes with a certificate (``projections_``).

    Sequences have shape (n_samples, n_channels), or (n_samples,) for one channel. A list is
    fitted as several sequences, each starting at rest. The estimator centres and scales
    sequences internally. Predictions for a DataFrame or Series of pandas keep its index.

    Parameters
    ----------
    n_neurons : int
    input_weights : {"solved", "random"} or array_like (n_neurons, n_channels)
        "solved" chooses between solved and drawn weights. "random" draws them, as is usual
        practice, for comparison. An array may have one more column, the bias.
    spectral_radius, leak : float
        Parameters of the drawn echo state network, which has ten connections per neuron.
        The solve starts from this spectral radius, and may change it. The leak is 1 by
        default.
    input_scale, bias_scale : float
        Input weights are drawn from ±input_scale / √n_channels, so that the drive of a
        neuron does not depend on the number of channels, and the bias from ±bias_scale.
        Solved weights have the norm of the drawn weights.
    reservoir : Reservoir or EchoStateNetwork, optional
        Your own network, instead of ``n_neurons``, ``spectral_radius`` and ``leak``.
    dt : float
        Time between samples in the unit of ``reservoir.tau``, for networks in continuous
        time.
    ridge : float or "auto"
        Penalty on the readout, in the squared unit of the states; "auto" chooses it.
    washout : int or "auto"
        Number of samples at the start of each sequence that are not fitted. "auto" measures
        how long the network remembers its start.
    see_input : bool, int or "auto"
        Number of last inputs that the readout sees as well as the states. "auto" compares
        none, a few and a season (`season_length` of the inputs), and also a readout of the
        last inputs alone.
    max_iter : int
        Maximum number of evaluations on the best path of the solve. All seven paths take a
        sixteenth of them, and two a quarter: the spectral radius is held, from five draws
        of the weights, or free, from two values.
    random_state : int, RandomState or None
    verbose : bool, default False
        Show the progress of a fit, with its current error, if stderr is a terminal.

    Attributes
    ----------
    chosen_ : Choice
        What was chosen, and errors on the last fifth of the steps. Prints as one line.
    driven_ : DrivenNetwork
        The network with its input weights.
    input_weights_ : ndarray (n_neurons, n_channels + 1)
        For inputs in units of their deviation; the last column is the bias.
    readout_, intercept_ : ndarray (n_features, n_targets) and (n_targets,)
        Both for targets in units of their deviation. The features are the states, then the
        channels of the last inputs that the readout sees, the latest first.
    ridge_, washout_
        The penalty and the washout.
    state_ : ndarray (n_states,)
        The state at the end of the last sequence learnt: the neurons, then the last inputs.
    residual_ : ndarray (n_targets,)
        Root mean squared error in training, in units of the deviation.
    projections_ : RegressionProjections
        The solution with its bound, if the network is linear and its weights were solved.

    Examples
    --------
    >>> from greenfold import SequenceRegressor
    >>> from greenfold.datasets import narma
    >>> x, y = narma(1500, rng=1)
    >>> model = SequenceRegressor(n_neurons=50, random_state=0).fit(x[:1000], y[:1000])
    >>> bool(model.score(x[1000:], y[1000:]) > 0.8)
    True
    """

    _argument: ClassVar[str] = "x"
    # The input of a filter often varies fast.
    _default_leak: ClassVar[float] = 1.0
    n_features_in_: int
    #: Columns and name of the fitted targets, if they came from pandas.
    _target_names: tuple[Any, Any] = (None, None)

    @with_few_threads(lambda self: self.n_neurons)
    @watched
    def fit(
        self, x: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Solve for the input weights, and fit the readout to ``y`` at each step's end.

        Parameters
        ----------
        x, y : array_like, or lists of array_like
        sample_weight : array_like (n_samples,), or list of array_like, optional
            Weight ≥ 0 of the squared error at each step, in the solve, in what is
            chosen and in the readout. A weight of 0 acts like NaN in ``y``. A weight of 2
            on all of a sequence acts like passing it twice, but other blocks are held out.
        """
        self._check_parameters()
        inputs = check_sequences(x, "x")
        pairs = Pairs(inputs, *check_targets(y, inputs, sample_weight))
        some = any(one.any() for one in pairs.weights)
        check.must(some, "y", "hold targets with a weight above 0", "none")
        with self._all_or_nothing():
            # All inputs drive the network, whatever the weights of their steps.
            shares = [np.full(len(one), one.mean()) for one in pairs.weights]
            self._x_scale = Scale.of(inputs, "x", shares)
            self._y_scale = Scale.of(pairs.targets, "y", pairs.weights)
            self.n_features_in_ = inputs[0].shape[1]
            self._flat = has_one_axis(y)
            self._names = column_names(x)
            first: Any = y[0] if is_several(y) else y
            self._target_names = (
                getattr(first, "columns", None),
                getattr(first, "name", None),
            )
            self._fit(self._in_units(pairs))
        return self

    def _in_units(self, pairs: Pairs) -> Pairs:
        """Return inputs and targets in units of their deviation."""
        x = [self._x_scale.down(one) for one in pairs.inputs]
        return Pairs(x, [self._y_scale.down(one) for one in pairs.targets], pairs.weights)

    def _judge(self, run: DrivenPairs, held_out: list[HeldOut]) -> list[np.ndarray]:
        """Return mean squared errors in parts of held-out blocks, (n_readouts, n, 1)."""
        return [
            _in_parts(run.errors(*one), run.pairs.weights[one[0].sequence][one[0].steps])
            for one in held_out
        ]

    def _simple(self, pairs: Pairs, block: Block) -> dict[str, np.ndarray]:
        """Return the mean squared targets, the errors of their mean, in parts."""
        index, steps = block
        y, weights = pairs.targets[index][steps], pairs.weights[index][steps]
        return {"mean": _in_parts((y**2).mean(1)[None], weights)}

    def _checked_pairs(
        self, x: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Pairs:
        inputs = self._checked(x, "x", self.n_features_in_)
        targets, weights = check_targets(y, inputs, sample_weight)
        width = len(self.intercept_)
        got, wanted = targets[0].shape[1], f"have {width} column(s), as in fit"
        check.must(got == width, "y", wanted, got)
        return self._in_units(Pairs(inputs, targets, weights))

    def partial_fit(
        self, x: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the readout to additional sequences; the input weights do not change.

        If the model is not fitted yet, this is the same as ``fit``.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(x, y, sample_weight)
        self._add(self._checked_pairs(x, y, sample_weight))
        return self

    def update(
        self,
        x: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        forgetting: float = 1.0,
    ) -> np.ndarray:
        """Learn one sequence step by step, continuing from ``state_``.

        This is recursive least squares: after each step, the readout is the ridge solution
        of all steps so far, with the fitted penalty. Each step multiplies the weight of
        earlier steps by ``forgetting``, in (0, 1]. A step with NaN in ``y`` is predicted
        but not learnt.

        Returns
        -------
        ndarray, shaped like ``y``
            The prediction for each step, made before the step was learnt.
        """
        check_is_fitted(self)
        pairs = self._checked_pairs(x, y, sample_weight)
        n = len(pairs.inputs)
        check.must(n == 1, "x", "be one sequence", f"{n} of them")
        return self._shown(self._update(pairs, forgetting))

    def predict(
        self,
        x: ArrayLike,
        state: ArrayLike | None = None,
        *,
        return_state: bool = False,
        mark_washout: bool = False,
    ) -> Any:
        """Predict the targets at every step.

        At rest, the network does not know what came before. Predictions within the first
        ``washout_`` steps are therefore worse than those that ``score`` counts.

        Parameters
        ----------
        x : array_like or list of array_like
        state : array_like (n_states,), optional
            Start from this state, if ``x`` is one sequence. The default is rest.
        return_state : bool
            Also return the final state (n_states,), to continue from it.
        mark_washout : bool
            Return NaN instead of predictions for the first ``washout_`` steps of each
            sequence.
        """
        check_is_fitted(self)
        inputs = self._checked(x, "x", self.n_features_in_)
        several = is_several(x)
        if several:
            alone = state is None and not return_state
            check.must(alone, "x", "be one sequence to start from a state", "a list")
        start = self.driven_.rest()
        if state is not None:
            check.without_effect(mark_washout, "mark_washout", "after a `state`")
            shape, start = start.shape, check.host_array(state, "state", ndim=(1,))
            fits, wanted = start.shape == shape, f"have shape {shape}"
            check.must(fits, "state", wanted, f"shape {start.shape}")
        found = [self._stream(self._x_scale.down(one), start) for one in inputs]
        if mark_washout:
            for values, _ in found:
                values[: self.washout_] = np.nan
        made = [
            self._labelled(self._shown(values), one)
            for (values, _), one in zip(found, x if several else [x], strict=True)
        ]
        if several:
            return made
        return (made[0], found[0][1]) if return_state else made[0]

    def _labelled(self, made: np.ndarray, x: ArrayLike) -> Any:
        """Return predictions with the index of ``x`` if it is of pandas."""
        frame = Frame.of(x, "x")
        if frame is None:
            return made
        columns, name = self._target_names
        if columns is None and not self._flat:
            columns = range(made.shape[1])
        return replace(frame, columns=columns, name=name).wrap(made)

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return R² of the predictions after the washout of each sequence; 1 is best.

        The arguments are as in ``fit``.
        """
        check_is_fitted(self)
        inputs, after = check_sequences(X, "X"), slice(self.washout_, None)
        made = [one.reshape(len(one), -1) for one in self.predict(inputs)]
        known = check_targets(y, inputs, sample_weight)
        predicted, truth, weights = (
            np.concatenate([one[after] for one in part]) for part in (made, *known)
        )
        wanted = f"longer than the washout of {self.washout_} samples to be scored"
        check.require(len(truth) > 1, f"`X` must be {wanted}; pass a longer sequence.")
        some = weights > 0
        wanted = f"hold at least two targets after the washout of {self.washout_} samples"
        check.must(some.sum() > 1, "y", wanted, int(some.sum()))
        return r_squared(truth[some], predicted[some], weights[some])


def _in_parts(errors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weighted means of errors (n, n_steps) in contiguous parts, (n, n_parts, 1)."""
    known = np.flatnonzero(weights)
    parts = np.array_split(known, min(_N_PARTS, len(known)))
    means = [errors[:, one] @ weights[one] / weights[one].sum() for one in parts]
    return np.stack(means, axis=1)[:, :, None]


describe_fitted(SequenceRegressor, check_whole, **FIELDS, n_features_in_=model_files.COUNT)
