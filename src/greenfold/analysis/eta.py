"""Choose η by cross-validation, with the projections solved in every fold.

`choose_eta` takes a system and its series; `ReservoirClassifier` uses the same
`cross_validate`, on the same grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .._base import checks as check
from .._base.arrays import BATCH_BYTES, AnyArray
from .._base.printing import Shown
from .._base.progress import AsPart, display, watched
from .._base.threads import with_few_threads
from ..math.decisions import fit_slope, judge_held_out, with_heavy_tails
from ..optimizers.linear import LinearProblem, ascend
from ..optimizers.shared import SharedProblem
from ..stimuli.base import ClassWeight, Series
from ..stimuli.frame import Frame, frames_of
from ..stimuli.samples import SampleStimuli
from ..systems import LinearSystem, System, rows_of

#: Two values per decade. At the smallest η, only the distance of the class means counts; at
#: the largest η, only their spread does.
ETAS = np.geomspace(0.1, 1e6, 15)
N_FOLDS = 5
#: The η to use if no series can be held out.
FALLBACK = 10.0
#: With few series, one deal of the folds leaves the choice to chance. Folds are dealt again
#: until this many series are judged, but at most this often, for a choice and for
#: calibration alone. More than three deals changed the accuracy on twelve data sets only
#: within its error.
_JUDGED = 300
_DEALS, _DEALS_ALONE = 3, 10
#: Scores that differ by less than this, a hundredth of their range, count as equal. One
#: standard error would be wider and lost 3 % on the smallest of twelve data sets.
_EQUAL = 0.03
#: Total number of series in all folds, if u is solved in each fold. A fit to few series
#: says little about a fit to all series, so few series need many folds.
_SOLVED = 500
#: Accuracy on few series is coarse, so many η tie. The margin in log-odds tells them apart,
#: until it saturates. Its weight and scale were chosen on twelve data sets of the archive
#: with a dozen splits each, on which they cost nothing on average.
_MARGIN_SHARE = 4.0
_MARGIN_SCALE = 4.0
#: Largest number of evaluations of the ascent in a fold, and the relative change of κ at
#: which it stops. The spread over the folds is far wider.
_ROUGH = {"max_iter": 30, "tol": 1e-3}


class _Fold(NamedTuple):
    """Scores of the held-out series of one fold, by η."""

    accuracy: np.ndarray
    #: Indices of these series, and the score of each series, (n_etas, n_cases).
    cases: np.ndarray
    judged: np.ndarray
    log_odds: np.ndarray
    codes: np.ndarray
    weights: np.ndarray
    seen: np.ndarray


class _Trained(NamedTuple):
    """A class compared with the rest on the training series of a fold."""

    c: int
    frame: Frame
    problem: LinearProblem
    u: Any


@dataclass(frozen=True, eq=False)
class Folds:
    """Labelled series for cross-validation of a system, with the options of the scoring.

    ``codes`` are the classes 0, 1, …. ``weights`` are the weights of single series, and
    ``class_weights`` are factors on them. Equal values of ``seed`` make results comparable.
    A given input projection ``u`` is kept; otherwise, u is the leading vector of each
    class, or one vector for all classes if ``shared``. ``scaling`` is the target of ‖μ‖,
    ``noise`` is the standard deviation of the readout noise, and ``n_jobs`` is the number
    of threads over folds.
    """

    system: LinearSystem
    series: Series
    codes: np.ndarray
    weights: np.ndarray
    class_weights: np.ndarray
    seed: Any
    u: np.ndarray | None = None
    shared: bool = False
    scaling: float | None = 1.0
    noise: float = 0.0
    threshold: str = "trained"
    n_jobs: int | None = None

    @cached_property
    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the index of each series among the distinct ones, and their classes.

        Distinct series are numbered by their values, and classes by their series, so the
        numbers do not depend on names, order or unit.
        """
        rows, codes = self.series.values.reshape(len(self.codes), -1), self.codes
        place = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        members = [np.sort(place[codes == c]).tolist() for c in range(codes.max() + 1)]
        rank = np.argsort(sorted(range(len(members)), key=members.__getitem__))
        unique, group = np.unique(place * len(rank) + rank[codes], return_inverse=True)
        return group.ravel(), unique % len(rank)

    @property
    def n_distinct(self) -> int:
        """Return the number of distinct series."""
        return len(self._distinct[1])

    @property
    def can_hold_out(self) -> bool:
        """Return whether two classes have training and held-out series."""
        return bool((np.bincount(self._distinct[1]) >= 2).sum() >= 2)

    def assign(self, n_folds: int, deal: int = 0) -> np.ndarray:
        """Return the fold of each series; each class is spread over all folds.

        Copies of a series stay in one fold, so that no series is judged by its own copy: a
        weight of two counts like two copies. The order of series and the names of classes
        do not matter.
        """
        group, kind = self._distinct
        order = np.random.default_rng([self.seed, deal]).permutation(len(kind))
        order = order[np.argsort(kind[order], kind="stable")]
        fold = np.empty(len(kind), dtype=int)
        fold[order] = np.arange(len(kind)) % min(n_folds, len(kind))
        return fold[group]

    def run(self, etas: np.ndarray, n_folds: int, *, solved: bool) -> list[_Fold]:
        """Return all folds that can be scored, over several deals if there are few series.

        With ``solved``, u is ascended for the one η in ``etas``, as in the final fit, and
        one deal suffices. Otherwise u is the leading singular vector, which serves all η.
        """
        from joblib import Parallel, delayed

        most = _DEALS if len(etas) > 1 else _DEALS_ALONE
        n_deals = 1 if solved else int(np.clip(_JUDGED // self.n_distinct, 1, most))
        deals = [self.assign(n_folds, deal) for deal in range(n_deals)]
        sides = [fold == k for fold in deals for k in range(fold.max() + 1)]

        def judge(held_out: np.ndarray) -> _Fold | None:
            found = self._judge(held_out, etas, solved)
            bar.advance()
            return found

        text = "calibrating" if solved else "choosing η"
        with display() as shown, shown.bar(f"{text} on folds", len(sides)) as bar:
            done: Any = Parallel(self.n_jobs, prefer="threads")(
                map(delayed(AsPart(judge)), sides)
            )
        return [found for found in done if found]

    def choose(self, done: list[_Fold]) -> tuple[np.ndarray, int]:
        """Return the score of each η, averaged with its neighbours, and the best index.

        Values of η half a decade apart do about equally well, so a peak at a single value
        is chance. The choice is the first η that is about as good as the best: a small η
        uses the class means alone and is more robust than a large η, which uses their
        scatter.
        """
        # The accuracy on a class of n series is known to 1/√n, so classes of equal weight
        # count in proportion to √n. Otherwise, the two series of a rare class would decide
        # η by chance.
        each = self.weights * np.sqrt(self.class_weights[self.codes])
        weight = sum(each[fold.cases].sum() for fold in done)
        alone = sum(fold.judged @ each[fold.cases] for fold in done) / weight
        padded = np.pad(alone, 1, mode="edge")
        score = (padded[:-2] + 2 * alone + padded[2:]) / 4
        return score, int(np.argmax(score >= score.max() - _EQUAL))

    def _judge(self, held_out: np.ndarray, etas: np.ndarray, solved: bool) -> _Fold | None:
        """Return the scores of the held-out series of one fold."""
        codes, per_class, train = self.codes, self.class_weights, ~held_out
        n_classes = len(per_class)
        seen = np.bincount(codes[train], minlength=n_classes) > 0
        held_out = held_out & seen[codes]
        if seen.sum() < 2 or not held_out.any():
            return None
        # Compare the second of two classes, or each of several classes, with the rest.
        compared = np.flatnonzero(seen) if n_classes > 2 else np.array([1])
        Z = np.zeros((len(etas), len(codes), n_classes if n_classes > 2 else 1))
        for c, frame, problem, u in self._train(train, compared):
            if solved and frame.stimuli.mu.any():
                found = ascend(problem.at(float(etas[0])), u, **_ROUGH)
                found.raise_if_interrupted()
                u = found.u
            kernels = problem.kernels(u, etas)
            moved = self.series.moved(frame.centre, frame.scale)
            Z[:, :, c % Z.shape[2]] = (moved.reshape(len(codes), -1) @ kernels).T
        answers, training = codes[held_out], (codes[train], self.weights[train], per_class)
        w_out = self.weights[held_out] * per_class[answers]
        correct, margin, odds = judge_held_out(
            Z[:, train], training, Z[:, held_out], answers, self.noise, self.threshold
        )
        judged = correct + _MARGIN_SHARE * np.tanh(margin / _MARGIN_SCALE)
        n_copies = odds.shape[1] // len(answers)
        share = np.tile(w_out, n_copies) / n_copies
        cases, repeated = np.flatnonzero(held_out), np.tile(answers, n_copies)
        accuracy = correct @ w_out / w_out.sum()
        return _Fold(accuracy, cases, judged, odds, repeated, share, seen)

    def _train(self, train: np.ndarray, compared: np.ndarray) -> list[_Trained]:
        """Return the comparisons of one fold, with a given, a shared or the leading u.

        They do not depend on η, so they are kept for the next call if memory allows.
        """
        key = train.tobytes()
        if key in self._kept:
            return self._kept[key]
        given = self.codes[train], self.weights[train], self.class_weights
        frames = frames_of(self.series[train], *given, compared.tolist(), self.scaling)
        u, found = self.u, []
        if u is None and self.shared and len(frames) > 1:
            parts = (LinearProblem(self.system, frame.stimuli, 1.0) for frame in frames)
            u = SharedProblem(tuple(parts)).stacked_atom()
        for c, frame in zip(compared.tolist(), frames, strict=True):
            problem = LinearProblem(self.system, frame.stimuli, 1.0)
            start = problem.best_atom(frame.stimuli.mu)[1] if u is None else u
            found.append(_Trained(c, frame, problem, start))
        # Bytes of ψ, its root and the basis of the root.
        size = 24 * len(frames) * self.series.values[0].size ** 2
        if size * (len(self._kept) + 1) <= BATCH_BYTES:
            self._kept[key] = found
        return found

    @cached_property
    def _kept(self) -> dict[bytes, list[_Trained]]:
        return {}


@dataclass(frozen=True, eq=False, repr=False)
class EtaChoice(Shown):
    """The result of a cross-validation over η.

    Attributes
    ----------
    etas : ndarray (n_etas,)
    accuracy : ndarray (n_etas, n_folds)
        Held-out accuracy, with readout noise if it was given.
    score : ndarray (n_etas,)
        The score to maximise: mean accuracy, plus the mean of 4 tanh(m/4) of the
        margins m in log-odds, both averaged with the two neighbouring η. A class counts
        with the square root of its weight.
    best : float
        The smallest η whose score is within 0.03 of the highest.
    overlap : ndarray (n_etas, n_etas) or None
        Cosine between the readouts of any two η, if you gave a u; near one if η hardly
        matters.
    calibration : float
        Factor on the log-odds (see `with_heavy_tails`) that calibrates the probabilities of
        held-out series at the best η.
    """

    etas: np.ndarray
    accuracy: np.ndarray
    score: np.ndarray
    best: float
    overlap: np.ndarray | None = None
    calibration: float = 1.0

    def _facts(self) -> dict[str, Any]:
        row = self.accuracy[np.argmin(np.abs(np.log(self.etas / self.best)))]
        facts = {"best": self.best, "accuracy": float(row.mean()), "folds": len(row)}
        facts["compared"] = (
            f"{len(self.etas)} values from {self.etas[0]:.4g} to {self.etas[-1]:.4g}"
        )
        return {**facts, "note": self.note} if self.note else facts

    @property
    def note(self) -> str:
        """Return advice if the best η is at an end of its grid, else an empty string."""
        if len(self.etas) < 2 or not np.isfinite(self.score).all():
            return ""
        if self.best == self.etas[-1]:
            return "the largest η compared: a larger η, or more series, may do better"
        # If the scores are equal from the smallest η on, η does not matter there.
        if self.best == self.etas[0] and self.score[0] > self.score[1]:
            return "the smallest η compared: only the distance of the class means counts"
        return ""


@with_few_threads(rows_of)
@watched
def choose_eta(
    system: System,
    X: AnyArray,
    labels: ArrayLike,
    u: ArrayLike | None = None,
    etas: ArrayLike | None = None,
    *,
    n_folds: int = N_FOLDS,
    threshold: str = "trained",
    noise: float = 0.0,
    class_weight: ClassWeight = "balanced",
    rng: np.random.Generator | int | None = None,
) -> EtaChoice:
    """Choose η by cross-validated accuracy (paper, "Prerequisites").

    Parameters
    ----------
    system : System
        A system such as an `Unfolding`; only its linear order is used.
    X : array (n_cases, n_steps) or (n_cases, n_channels, n_steps)
    labels : array_like (n_cases,)
        Two classes.
    u : array_like (n_inputs,) or (n_inputs, n_channels), optional
        Input projection to keep; by default the leading singular vector of G(μ) in each
        fold, as in `ReservoirClassifier`.
    etas : array_like, optional
        Values of η to compare; by default, 15 from 0.1 to 10⁶ on a logarithmic scale.
    n_folds : int
    threshold : {"trained", "origin"}
        Position of the decision plane along v; the paper uses "origin".
    noise : float
        Standard deviation of readout noise.
    class_weight : {"balanced", None} or dict
        As in `SampleStimuli`.
    rng : numpy Generator, int or None
        Shuffles the folds.
    """
    grid = ETAS if etas is None else np.sort(check.host_array(etas, "etas", ndim=(1,)))
    check.must(grid[0] > 0, "etas", "be positive", f"{grid[0]:g}")
    known = threshold in ("trained", "origin")
    check.must(known, "threshold", "be 'trained' or 'origin'", repr(threshold))
    stimuli = SampleStimuli(X, labels, class_weight=class_weight)
    codes = (np.asarray(stimuli.signs) > 0).astype(int)
    counts = np.bincount(codes)
    if counts.min() < check.count(n_folds, "n_folds", minimum=2):
        raise ValueError(
            f"`n_folds` = {n_folds} needs that many series per class; the smaller class "
            f"has {counts.min()}."
        )
    stimuli.match(system)
    if u is not None:
        u = check.input_projection(u, system.n_inputs, stimuli.n_channels)
    values = check.host_array(X, "X", ndim=(2, 3)).reshape(-1, *stimuli.centre.shape)
    folds = Folds(
        system.maps,
        Series(values),
        codes,
        np.ones(len(codes)),
        stimuli.class_share * len(codes) / counts,
        check.generator(rng).integers(2**31),
        u=u,
        noise=float(check.host_array(noise, "noise", ndim=(0,))),
        threshold=threshold,
    )
    found = cross_validate(folds, grid, n_folds)
    if u is None:
        return found
    readouts = LinearProblem(system.maps, stimuli, 1.0).readouts(u, grid)
    return replace(found, overlap=readouts @ readouts.T)


def cross_validate(
    folds: Folds, etas: np.ndarray = ETAS, n_folds: int = N_FOLDS
) -> EtaChoice:
    """Choose η by held-out accuracy, for any number of classes.

    In each fold the input projection is the leading singular vector of G(μ), which is
    optimal for small η and costs one decomposition; one more gives the optimal readouts for
    the whole grid of η. At the best η, u is then solved in each fold, so that the
    probabilities are calibrated for the final kind of fit.
    """
    kept, alone = folds.u is not None or folds.shared, len(etas) == 1
    many = int(np.clip(_SOLVED / folds.n_distinct, N_FOLDS, 10))
    solved = alone and not kept
    done = folds.run(etas, many if solved else n_folds, solved=solved)
    if not done:
        nothing = np.full((len(etas), 1), np.nan)
        return EtaChoice(etas, nothing, nothing[:, 0], FALLBACK)
    accuracy = np.stack([found.accuracy for found in done], axis=1)
    score, best = folds.choose(done)
    at = best
    if not kept and not alone:
        done, at = folds.run(etas[best : best + 1], many, solved=True), 0
    slope = fit_slope(
        with_heavy_tails(np.concatenate([found.log_odds[at] for found in done])),
        np.concatenate([found.codes for found in done]),
        np.concatenate([found.weights for found in done]),
        np.concatenate([np.tile(found.seen, (len(found.codes), 1)) for found in done]),
    )
    return EtaChoice(etas, accuracy, score, float(etas[best]), calibration=slope)
