"""Bands around forecasts, from the errors of closed loops on held-out blocks.

This is split conformal prediction, step by step ahead: loops start on blocks that their
readout has not seen, and the band is as wide as a quantile of their errors. The quantile
has the usual correction for finite samples (Lei et al., J. Am. Stat. Assoc. 113, 2018):
the ⌈(m + 1) · level⌉-th smallest of m errors. Loops that overlap have similar errors, so
the correction is that of loops that do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..._base import checks as check
from ..._base import model_files
from .choice import Block, DrivenPairs

#: Number of blocks held out in turn, and of loops started on each, at most.
_N_BLOCKS, _N_STARTS = 4, 50
#: Longest series kept for comparing the loops with, in samples; its end is kept.
_MOST_SAMPLES = 20_000
#: Runs closed loops with a readout, from states and inputs (n_steps, n_loops, n_inputs) of
#: which all but the first give known inputs alone; returns (n_steps, n_loops, n_channels).
Run: TypeAlias = Callable[
    [np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]], np.ndarray
]


@dataclass(frozen=True, eq=False)
class HeldOutLoops:
    """Starts of closed loops on held-out blocks, and what followed.

    Attributes
    ----------
    states : ndarray (n_loops, n_states)
        States at the start.
    begins, ends : ndarray of int (n_loops,)
        The loop predicts rows of ``truth`` from index ``begins`` on, until its block ends.
    folds : ndarray of int (n_loops,)
        Index of the readout of each loop, which was fitted without its block.
    inputs, truth : ndarray (n_samples, n_inputs) and (n_samples, n_channels)
        In units of the deviation. Row t of ``inputs`` leads to row t of ``truth``.
    readouts, intercepts : ndarray (n_folds, n_features, n_channels), (n_folds, n_channels)
    """

    states: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    folds: np.ndarray
    inputs: np.ndarray
    truth: np.ndarray
    readouts: np.ndarray
    intercepts: np.ndarray

    @classmethod
    def of(cls, run: DrivenPairs, ridge: float, unread: int = 0) -> HeldOutLoops:
        """Hold out blocks of driven sequences in turn, and fit the readout to the rest.

        The readout reads the states but the first ``unread`` entries.
        """
        lengths = np.array([len(one) for one in run.pairs.targets])
        first = np.maximum(lengths - _MOST_SAMPLES, max(run.skipped, 1))
        steps = np.maximum(lengths - first, 0)
        offsets = np.cumsum(lengths) - lengths
        shape = run.network.n_states - unread, run.pairs.targets[0].shape[1]
        starts = [np.empty((0, run.network.n_states))]
        begins, ends, folds = ([np.empty(0, dtype=int)] for _ in range(3))
        readouts, intercepts = [np.empty((0, *shape))], [np.empty((0, shape[1]))]
        for sequence, part in _blocks(first, lengths, steps):
            blocks = [Block(sequence, part)]
            if sum(one.sum() for one in run.weights_without(blocks)) < 2:
                continue
            at = np.linspace(part.start, part.stop - 1, _N_STARTS).astype(int)
            at = np.unique(at)
            starts.append(run.states[sequence][at - 1])
            begins.append(at + offsets[sequence])
            ends.append(np.full(len(at), part.stop + offsets[sequence]))
            folds.append(np.full(len(at), len(readouts) - 1))
            V, intercept = run.readouts(blocks, np.array([ridge]), slice(unread, None))
            readouts.append(V[:, unread:])
            intercepts.append(intercept)
        every = [np.concatenate(one) for one in (begins, ends, folds)]
        inputs, truth = map(np.concatenate, (run.pairs.inputs, run.pairs.targets))
        unused = int(min(every[0], default=len(truth)))
        return cls(
            np.concatenate(starts),
            every[0] - unused,
            every[1] - unused,
            every[2],
            inputs[unused:],
            truth[unused:],
            np.concatenate(readouts),
            np.concatenate(intercepts),
        )

    def fits(self, n_states: int, n_inputs: int, shape: tuple[int, int]) -> bool:
        """Return whether the parts fit together, and a readout of this shape."""
        n, n_loops = len(self.truth), len(self.begins)
        return (
            self.states.shape == (n_loops, n_states)
            and self.ends.shape == self.folds.shape == (n_loops,)
            and self.inputs.shape == (n, n_inputs)
            and self.truth.shape == (n, shape[1])
            and self.readouts.shape[1:] == shape
            and self.intercepts.shape == (len(self.readouts), shape[1])
            and bool((self.begins >= 0).all() and (self.begins < self.ends).all())
            and bool((self.ends <= n).all() and (self.folds >= 0).all())
            and bool((self.folds < len(self.readouts)).all())
        )

    def errors(self, run: Run, n_steps: int) -> np.ndarray:
        """Return errors (n_loops, n_steps, n_channels) of the loops, in deviations.

        They are NaN after the end of a block, and infinite after a divergence.
        """
        n_channels = self.truth.shape[1]
        found = np.full((len(self.begins), n_steps, n_channels), np.nan)
        for fold, readout in enumerate(zip(self.readouts, self.intercepts, strict=True)):
            own = np.flatnonzero(self.folds == fold)
            begins, ends = self.begins[own], self.ends[own]
            length = min(n_steps, int((ends - begins).max()))
            rows = np.minimum(begins + np.arange(length)[:, None], len(self.truth) - 1)
            made = run(self.states[own], self.inputs[rows], readout)
            error = np.abs(made - self.truth[rows])
            error[np.isnan(error)] = np.inf
            error[begins + np.arange(length)[:, None] >= ends] = np.nan
            found[own, :length] = error.transpose(1, 0, 2)
        return found

    def apart(self, n_steps: int) -> np.ndarray:
        """Return how many loops of 1, 2, …, n_steps steps do not overlap, (n_steps,)."""
        found = np.zeros(n_steps, dtype=int)
        for fold in range(len(self.readouts)):
            begins, ends = (one[self.folds == fold] for one in (self.begins, self.ends))
            for index in range(n_steps):
                own = begins[begins + index < ends]
                place = 0
                while place < len(own):
                    found[index] += 1
                    place = int(np.searchsorted(own, own[place] + index + 1))
        return found


def _blocks(first: np.ndarray, ends: np.ndarray, steps: np.ndarray) -> list[Block]:
    """Return blocks to hold out in turn: about four, none across two sequences."""
    counts = np.round(_N_BLOCKS * steps / max(steps.sum(), 1)).astype(int)
    counts = np.where(steps > 0, np.maximum(counts, 1), 0)
    if counts.sum() < 2 and steps.max() > 1:
        counts[int(np.argmax(steps))] = 2
    found = []
    for index, count in enumerate(counts):
        cuts = np.linspace(first[index], ends[index], count + 1).astype(int)
        pairs = itertools.pairwise(cuts)
        found += [Block(index, slice(int(a), int(b))) for a, b in pairs if b > a]
    return found


def half_widths(
    errors: np.ndarray, level: float, apart: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return half widths (n_steps, n_channels) of a band, and the steps they hold for.

    ``errors`` are those of `HeldOutLoops.errors`. Beyond the last step that enough loops
    reach, the width stays at its largest. Of the loops that reach a step, ``apart``
    (n_steps,) do not overlap: they alone correct the quantile for a finite sample.
    """
    reached = (~np.isnan(errors[..., 0])).sum(0)
    rank = np.ceil((reached + 1) * level - 1e-9).astype(int)
    n_steps = int(np.argmin(np.append(rank <= reached, False)))
    most = reached[0] / (reached[0] + 1)
    what = f"{reached[0]} held-out loops of the training series; got {level:g}"
    wanted = f"`level` must be at most {most:.3g}, because the band rests on {what}."
    check.require(n_steps, wanted)
    few = np.maximum(apart, 1)
    share = np.minimum(np.ceil((few + 1) * level - 1e-9) / few, 1)
    rank = np.ceil(reached * share - 1e-9).astype(int)
    ordered = np.sort(errors, axis=0)  # NaN is last
    widths = np.empty(errors.shape[1:])
    for index in range(n_steps):
        widths[index] = ordered[rank[index] - 1, index]
    widths[n_steps:] = widths[:n_steps].max(0)
    return widths, n_steps


_WHOLE = model_files.Numbers(None, dtype=np.int64)
HELD_OUT = model_files.Object(
    HeldOutLoops,
    states=model_files.Numbers(None, None),
    begins=_WHOLE,
    ends=_WHOLE,
    folds=_WHOLE,
    inputs=model_files.Numbers(None, None),
    truth=model_files.Numbers(None, None),
    readouts=model_files.Numbers(None, None, None),
    intercepts=model_files.Numbers(None, None),
)
