"""One class against the rest: its coordinates and moments there."""

import numpy as np
import pytest

from greenfold import SampleStimuli
from greenfold.math.class_moments import ClassMoments
from greenfold.stimuli import Frame, Series
from greenfold.stimuli.frame import frame_of_classes, frame_with_series, frames_of

from .conftest import weighted_moments


def frame_of(series, positive, weights, scaling) -> Frame:
    """Frame of one class against the rest, every class with its own weight."""
    (frame,) = frames_of(series, positive.astype(int), weights, np.ones(2), [1], scaling)
    return frame


@pytest.mark.parametrize("scaling", [1.0, 0.3])
def test_of_two_classes_it_is_that_of_sample_stimuli(data, scaling):
    X, labels = data
    stimuli = SampleStimuli(X, labels, class_weight=None, length=scaling)
    frame = frame_with_series(Series(X), labels == "well", np.ones(30), scaling)
    assert frame.centre == pytest.approx(stimuli.centre, rel=1e-13)
    assert frame.scale == pytest.approx(stimuli.scale, rel=1e-13)
    assert frame.stimuli.mu == pytest.approx(stimuli.mu, abs=1e-13)
    assert frame.stimuli.psi == pytest.approx(stimuli.psi, abs=1e-13)
    kept = frame.stimuli
    assert isinstance(kept, SampleStimuli)
    assert kept.series == pytest.approx(stimuli.series, abs=1e-13)
    assert kept.case_weights == pytest.approx(stimuli.case_weights, abs=1e-15)
    assert kept.labelled_second_moment == pytest.approx(
        stimuli.labelled_second_moment, abs=1e-13
    )


def test_weights_are_those_of_numpy(data, rng):
    X, labels = data
    weights = rng.uniform(0, 2, 30)
    frame = frame_of(Series(X), labels == "well", weights, None)
    moved = X - frame.centre
    mu, psi = weighted_moments(moved, np.where(labels == "well", 1, -1), weights)
    assert frame.scale == 1
    assert frame.stimuli.mu == pytest.approx(mu, abs=1e-13)
    assert frame.stimuli.psi == pytest.approx(psi, abs=1e-13)
    assert frame.share.sum() == pytest.approx(1)


def test_from_moments_it_is_the_same(data):
    X, labels = data
    sides = [X[labels == name].reshape(-1, 8) for name in ("sick", "well")]
    moments = [
        ClassMoments(len(side), side.mean(0), len(side) * np.cov(side.T, bias=True))
        for side in sides
    ]
    made = frame_of_classes(moments, 1, np.ones(2), (2, 4), 1.0)
    direct = frame_of(Series(X), labels == "well", np.ones(30), 1.0)
    assert made.centre == pytest.approx(direct.centre, rel=1e-13)
    assert made.scale == pytest.approx(direct.scale, rel=1e-13)
    assert made.stimuli.psi == pytest.approx(direct.stimuli.psi, abs=1e-12)


def test_the_centre_counts_only_series_that_have_begun(data):
    """A series that starts later says nothing of the steps before, and enters as zero."""
    X, labels = data
    well = labels == "well"
    starts = np.arange(30) % 3
    present = np.arange(4) >= starts[:, None]
    late = Series(np.where(present[:, None], X, 0.0), present)
    frame = frame_with_series(late, well, np.ones(30), None)
    for step in range(4):
        begun = present[:, step]
        means = [X[begun & side, :, step].mean(0) for side in (well, ~well)]
        assert frame.centre[:, step] == pytest.approx(np.mean(means, axis=0), rel=1e-13)
    assert isinstance(frame.stimuli, SampleStimuli)
    expected = np.where(present[:, None], X - frame.centre, 0.0)
    assert frame.stimuli.series == pytest.approx(expected, abs=1e-14)
    mu, psi = weighted_moments(expected, np.where(well, 1, -1), None)
    assert frame.stimuli.mu == pytest.approx(mu, abs=1e-13)
    assert frame.stimuli.psi == pytest.approx(psi, abs=1e-13)


def test_means_that_coincide_leave_the_scale_to_the_spread(rng):
    X = rng.standard_normal((6, 1, 3))
    twice = np.concatenate([X, X])
    frame = frame_of(Series(twice), np.arange(12) < 6, np.ones(12), 2.0)
    spread = np.sqrt(2 * np.trace(np.cov(X[:, 0].T, bias=True)))
    assert frame.scale == pytest.approx(2.0 / spread, rel=1e-12)
    assert frame.stimuli.mu == pytest.approx(0, abs=1e-14)
