"""How a reservoir classifier is fitted: from class moments, or from the series."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ..decisions import Clouds, Decision, decide
from ..diagnosis.eta import ETAS, FALLBACK, EtaChoice, cross_validate
from ..diagnosis.held_out import may_hold_out
from ..diagnosis.tau import best_held_out
from ..dynamics import Dynamics
from ..reservoir import Reservoir
from ..stimuli import Frame, Series, frame_with_series, frames_of
from ..unfolding import unfold
from . import parameters
from .heads import Head, Solved, read_out, share_input, solve_head
from .stream import ClassStream

#: Time constants that "auto" compares, relative to the duration: around the paper's 1/40,
#: from a network that sees the end of a series only to one that hardly forgets.
_TAUS = np.array([1 / 160, 1 / 80, 1 / 40, 1 / 20, 1 / 10])
#: η is chosen again when a stream has grown by this factor: that costs as much as a few
#: choices on the whole of it, and the last one has seen two thirds of the series.
_GROWTH = 1.5
#: Error allowed to a state of the integrated network, relative to the largest.
_STATE_ERROR = 1e-5


class ReservoirFitting(BaseEstimator):
    """The steps of a fit; parameters and attributes are `ReservoirClassifier`'s."""

    input_projection: Any
    order: int | str
    tau: Any
    duration: float
    eta: Any
    input_scaling: float | None
    threshold: str
    readout_noise: float
    certify: bool
    random_state: Any
    n_jobs: int | None
    classes_: np.ndarray
    n_features_in_: int
    n_channels_in_: int
    calibration_: float | None
    shared_bound_: float | None
    _any_length: bool
    _exponent: int
    _stream: ClassStream

    def _fit_series(self, series: Series, codes: np.ndarray, weights: np.ndarray) -> None:
        """Fit where the series themselves are needed."""
        totals = np.bincount(codes, weights, minlength=len(self.classes_))
        per_class = parameters.class_weights(self, self.classes_, totals)
        if self.order:
            weighted = weights * per_class[codes]
            frames = [
                frame_with_series(series, codes == c, weighted, self.input_scaling)
                for c in self.compared_
            ]
        else:
            frames = frames_of(
                series, codes, weights, per_class, self.compared_, self.input_scaling
            )
        self._choose(series, codes, weights, per_class)
        heads = self._solve(frames)
        Z = read_out(heads, lambda: self.unfolding_, series)
        self._settle(heads, Clouds.of(Z, codes, weights, per_class))

    def _fit_stream(
        self, series: Series, codes: np.ndarray, weights: np.ndarray, *, whole: bool
    ) -> None:
        """Add a batch to the stream and fit from the class moments.

        η and an automatic τ are chosen on the batch where it is the ``whole`` of the data,
        else on the sample of the stream, and chosen again as the stream grows.
        """
        self._stream.add(series, codes, weights)
        self._solve_stream((series, codes, weights) if whole else None)

    def _solve_stream(
        self, whole: tuple[Series, np.ndarray, np.ndarray] | None = None
    ) -> None:
        """Solve from what is known of the stream, and of ``whole``, where that is all."""
        stream = self._stream
        per_class = parameters.class_weights(self, self.classes_, stream.counts)
        series, codes, weights = stream.sampled() if whole is None else whole
        if stream.n_seen >= _GROWTH * stream.chosen_at and self._choose(
            series, codes, weights, per_class
        ):
            stream.chosen_at = stream.n_seen
        frames = [stream.frame(c, per_class, self.input_scaling) for c in self.compared_]
        heads = self._solve(frames)
        self._settle(heads, stream.clouds(heads, per_class))

    def _forget(self) -> None:
        """Drop what an earlier fit left and this one may not replace."""
        for name in ("_stream", "heads_", "reservoir_", "_unfolding_"):
            if hasattr(self, name):
                delattr(self, name)
        self.eta_scores_: EtaChoice | None = None
        self.shared_bound_ = None
        self.calibration_ = None

    @property
    def compared_(self) -> list[int]:
        """Index of the class that each head compares with the rest."""
        return [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))

    def _unit_exponent(self, values: np.ndarray) -> int:
        """Power of two that brings the series to order one, so that no square overflows."""
        largest = float(np.abs(values).max())
        if self.input_scaling is None or largest == 0:
            return 0
        return int(np.clip(np.frexp(largest)[1], -1000, 1000))

    def _in_unit(self, series: Series) -> Series:
        """Series in the internal unit; exact, because it is a power of two."""
        if self._exponent == 0:
            return series
        return replace(series, values=np.ldexp(series.values, -self._exponent))

    def _build(self) -> None:
        """Draw the network, and the input projection that is not solved for."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        self.reservoir_ = parameters.make_reservoir(self, rng)
        self._kept = parameters.keep_input(
            self, rng, self.reservoir_.n_neurons, self.n_channels_in_
        )
        self._fold_seed = int(rng.integers(2**31))

    def _begin_stream(self, series: Series) -> None:
        self._stream = ClassStream.empty(
            len(self.classes_), (series.n_channels, series.n_steps), self._fold_seed
        )

    def _choose(
        self, series: Series, codes: np.ndarray, weights: np.ndarray, per_class: np.ndarray
    ) -> bool:
        """Choose τ and η where they are to be chosen; whether there was enough to do so.

        The series that are held out for it calibrate the probabilities too, also where
        both are given.
        """
        self.eta_ = FALLBACK if self.eta == "cv" else float(self.eta)
        if not may_hold_out(series, codes):
            return False
        if self.tau == "auto":
            self._choose_tau(series, codes, weights, per_class)
        found = self._cross_validate(self.unfolding_, series, codes, weights, per_class)
        self.calibration_ = found.calibration
        if self.eta == "cv":
            self.eta_scores_, self.eta_ = found, found.best
        return True

    def _choose_tau(
        self, series: Series, codes: np.ndarray, weights: np.ndarray, per_class: np.ndarray
    ) -> None:
        """Keep the time constant of the best held-out score."""

        def score(reservoir: Reservoir) -> float:
            unfolding = self._unfold(reservoir)
            found = self._cross_validate(unfolding, series, codes, weights, per_class)
            return found.score.max()

        taus = self.duration * _TAUS
        self.reservoir_ = best_held_out(self.reservoir_, taus, score)
        if hasattr(self, "_unfolding_"):
            del self._unfolding_

    def _unfold(self, reservoir: Reservoir) -> Solved:
        n_steps = self.n_features_in_
        given: dict[str, Any] = {
            "n_steps": n_steps,
            "dt": self.duration / n_steps,
            "readout": parameters.readout_weights(self, n_steps),
        }
        if isinstance(self.order, int | np.integer):
            return unfold(reservoir, order=int(self.order), **given)
        if reservoir.gain.is_linear:
            return unfold(reservoir, **given)
        return Dynamics(reservoir, tol=_STATE_ERROR, **given)

    @property
    def unfolding_(self) -> Solved:
        """The unfolded network, or the integrated one for ``order="exact"``.

        Made again where a file or a pickle does not hold it.
        """
        if not hasattr(self, "_unfolding_"):
            self._unfolding_ = self._unfold(self.reservoir_)
        return self._unfolding_

    def _cross_validate(
        self,
        unfolding: Solved,
        series: Series,
        codes: np.ndarray,
        weights: np.ndarray,
        per_class: np.ndarray,
    ) -> EtaChoice:
        return cross_validate(
            unfolding.maps,
            series,
            codes,
            weights,
            per_class,
            u=self._kept,
            shared=self._shares,
            scaling=self.input_scaling,
            noise=float(self.readout_noise),
            threshold=self.threshold,
            seed=self._fold_seed,
            n_jobs=self.n_jobs,
            etas=ETAS if self.eta == "cv" else np.array([float(self.eta)]),
        )

    def _solve(self, frames: list[Frame]) -> list[Head]:
        """Projections of every comparison, in the internal unit."""
        jobs = (
            delayed(solve_head)(
                self.unfolding_,
                frame,
                self.eta_,
                self._kept,
                certify=bool(self.certify),
                seed=c,
            )
            for c, frame in zip(self.compared_, frames, strict=True)
        )
        found: Any = Parallel(self.n_jobs, prefer="threads")(jobs)
        self.shared_bound_ = None
        if self._shares:
            self.shared_bound_ = found[0].bound
            if len(found) > 1:
                system: Any = self.unfolding_  # of order 0 there is no other
                found, self.shared_bound_ = share_input(
                    system, frames, self.eta_, found, certify=bool(self.certify)
                )
        return found

    @property
    def _shares(self) -> bool:
        """Whether one input projection is solved for all classes together."""
        wish = self.input_projection
        return isinstance(wish, str) and wish == "shared"

    def _settle(self, heads: list[Head], clouds: Clouds) -> None:
        """Keep the heads in the units of the series as given, and decide."""
        decision = decide(clouds, noise=float(self.readout_noise), threshold=self.threshold)
        decision = replace(decision, sureness=self.calibration_)
        own = [
            replace(
                head,
                centre=np.ldexp(head.centre, self._exponent),
                scale=float(np.ldexp(head.scale, -self._exponent)),
            )
            for head in heads
        ]
        self._publish(own, decision)

    def _publish(self, heads: list[Head], decision: Decision) -> None:
        """Fitted attributes: plain for two classes, stacked for more."""
        self.heads_, self.decision_ = heads, decision
        one = len(self.classes_) == 2
        flat = self.n_channels_in_ == 1

        def gather(values: list[Any]) -> Any:
            return values[0] if one else np.stack(values)

        inputs = [h.u[:, 0] if flat else h.u for h in heads]
        self.u_ = inputs[0] if self._shares else gather(inputs)
        self.v_ = gather([h.v for h in heads])
        self.centre_ = gather([h.centre for h in heads])
        self.scale_ = gather([h.scale for h in heads])
        self.soft_margin_ = gather([h.soft_margin for h in heads])
        self.soft_margin_bound_ = gather([h.bound for h in heads])
        self.n_iter_ = gather([h.n_iter for h in heads])
        self.kernel_ = heads[0].kernel if one else [h.kernel for h in heads]
        self.validity_ = heads[0].validity if one else [h.validity for h in heads]
        self.coupling_ = decision.coupling
        self.threshold_ = float(decision.threshold[0]) if one else decision.threshold

    def __getstate__(self) -> dict[str, Any]:
        state: Any = dict(super().__getstate__())  # pyright: ignore[reportCallIssue, reportArgumentType]
        state.pop("_unfolding_", None)  # large, and quickly made again
        return state
