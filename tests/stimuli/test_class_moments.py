"""Moments in one pass, for any batches and any offset of the series."""

import numpy as np
import pytest

from greenfold import SampleStimuli
from greenfold.math import class_moments as moments

from .conftest import split


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("class_weight", ["balanced", None])
@pytest.mark.parametrize("sizes", [[], [1, 2, 10], [1] * 29])
def test_stream_equals_memory(data, sizes, class_weight, offset):
    """One batch, several, and single series, each with one class only."""
    X, labels = data
    X = X + offset
    whole = SampleStimuli(X, labels, class_weight=class_weight)
    stream = SampleStimuli.from_batches(split(X, labels, sizes), class_weight=class_weight)
    # Adding the offset has rounded X to 1e8 · eps ≈ 1e-8 already. Both sides see the same
    # X, and the merge must not lose more than the sum over thirty cases of that.
    allowed = 1e-12 if offset == 0 else 1e-6
    assert stream.mu == pytest.approx(whole.mu, abs=allowed)
    assert stream.psi == pytest.approx(whole.psi, abs=allowed)
    assert stream.centre == pytest.approx(whole.centre, rel=1e-15, abs=1e-14)
    assert stream.scale == pytest.approx(whole.scale, rel=allowed)
    plain = SampleStimuli(data[0], labels, class_weight=class_weight)
    assert stream.psi == pytest.approx(plain.psi, abs=allowed)
    assert np.linalg.eigvalsh(stream.psi)[0] > 0


def test_stream_does_not_depend_on_the_order(data):
    X, labels = data
    by_class = np.argsort(labels, kind="stable")
    one = SampleStimuli.from_batches(split(X[by_class], labels[by_class], [9, 5]))
    backwards = by_class[::-1]
    other = SampleStimuli.from_batches(split(X[backwards], labels[backwards], [4, 20]))
    assert one.psi == pytest.approx(other.psi, rel=1e-12, abs=1e-13)
    assert one.classes.tolist() == other.classes.tolist() == ["sick", "well"]


def test_memory_is_bounded_inside_one_large_array(data, monkeypatch):
    """The in-memory route works in chunks too; here of seven cases."""
    from greenfold._base.arrays import batches

    X, labels = data
    whole = SampleStimuli(X, labels)
    monkeypatch.setattr(moments, "batches", lambda n, *_: batches(n, 1, 7))
    assert SampleStimuli(X, labels).psi == pytest.approx(whole.psi, abs=1e-13)


def test_far_classes_do_not_drown_the_spread_within_them(rng):
    """Class means at ±1e8: ψ is the covariance within the classes, of order one."""
    labels = np.repeat([1, -1], 20)
    noise = rng.standard_normal((40, 3))
    noise[:20] -= noise[:20].mean(0)
    noise[20:] -= noise[20:].mean(0)
    X = noise + 1e8 * labels[:, None]
    found = SampleStimuli(X, labels, normalize=None).psi
    # X itself is rounded to 1e-8.
    assert found == pytest.approx(noise.T @ noise / 40, abs=1e-6)
    assert np.linalg.eigvalsh(found)[0] > 0
