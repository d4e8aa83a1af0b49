"""Arguments of stimuli that would have no effect are refused."""

import numpy as np
import pytest

from greenfold import SampleStimuli

X = np.random.default_rng(0).standard_normal((8, 5))
LABELS = np.tile([-1, 1], 4)
ALONE = X[LABELS > 0], np.ones(4)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SampleStimuli(X, LABELS, normalize=None, length=5.0), "length"),
        (lambda: SampleStimuli(*ALONE, classes=[-1, 1], length=5.0), "length"),
        (
            lambda: SampleStimuli.from_batches([(X, LABELS)], normalize=None, length=1.0),
            "length",
        ),
        (
            lambda: SampleStimuli.merge(
                [SampleStimuli(X, LABELS)], normalize=None, length=2.0
            ),
            "length",
        ),
    ],
)
def test_an_argument_without_effect_is_refused(make, name):
    with pytest.raises(ValueError, match=f"`{name}` has no effect .*; leave it out"):
        make()
