"""A stream of batches gives what one fit gives."""

from __future__ import annotations

import numpy as np
import pytest

from .conftest import make


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_stream_gives_what_one_fit_gives(beats, three, classes, class_weight):
    X, y = beats[:2] if classes == 2 else three
    whole = make(eta=30.0, class_weight=class_weight).fit(X, y)
    stream = make(eta=30.0, class_weight=class_weight)
    order = np.argsort(y, kind="stable")  # the first batch holds one class only
    for part in np.array_split(order, 4):
        stream.partial_fit(X[part], y[part], classes=np.unique(y))
    np.testing.assert_allclose(
        stream.decision_function(X), whole.decision_function(X), rtol=1e-5, atol=1e-7
    )
    more = whole.partial_fit(X[:10], y[:10])  # goes on from the fit
    assert more._stream.counts.sum() == len(X) + 10


def test_a_stream_checks_its_labels(beats):
    X, y, _, _ = beats
    stream = make().partial_fit(X[:50], y[:50], classes=[-1, 1])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        make().partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same as on last call"):
        stream.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"not in classes: \[7\]"):
        stream.partial_fit(X[:1], [7])
    assert not hasattr(make(order=1), "partial_fit")
