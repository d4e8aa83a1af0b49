"""Block Lanczos iteration, against decompositions of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.math.krylov import largest_eigenpairs, orthonormal


def spectrum(values, rng):
    """A symmetric matrix with these eigenvalues, and a product that counts its calls."""
    basis = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    matrix, calls = (basis * values) @ basis.T, list[int]()

    def product(block):
        calls.append(block.shape[1])
        return matrix @ block, block[:3] * 2.0

    return matrix, product, calls


@pytest.mark.parametrize("n", [3, 40, 200])
def test_the_largest_pairs(n, rng):
    """Ritz values are exact to the square of the residual, here 1e-12 of the largest."""
    values = np.linspace(0, 1, n) ** 4
    matrix, product, _ = spectrum(values, rng)
    start = rng.standard_normal((n, 2))
    found = largest_eigenpairs(product, start, 3, tol=1e-12)
    np.testing.assert_allclose(found.values, values[-3:], rtol=1e-7, atol=1e-15)
    assert found.values[-1] == pytest.approx(1.0, rel=1e-13)
    assert 1.0 - 1e-14 <= found.highest <= 1.0 + 2e-12
    image = matrix @ found.vectors[:, -1]
    np.testing.assert_allclose(image, found.vectors[:, -1], atol=2e-12)
    np.testing.assert_allclose(found.beside, 2 * found.vectors[:3], atol=1e-13)


def test_values_that_meet(rng):
    """The bound counts in the residual, and a block finds all of an eigenspace."""
    values = np.append(np.linspace(0, 0.9, 97), [1.0, 1.0, 1.0])
    _, product, _ = spectrum(values, rng)
    found = largest_eigenpairs(product, rng.standard_normal((100, 4)), 3, tol=1e-10)
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-9)


def test_it_is_never_below_and_stops_at_a_rise(rng):
    """What it has at every stop is no less than the largest eigenvalue."""
    values = np.linspace(0, 1, 300)
    matrix, product, calls = spectrum(values, rng)
    top = np.linalg.eigh(matrix)[1][:, -1:]
    # The start is near the leading vector, as in the loop that solves in a small space.
    start = np.hstack([top + 0.01 * rng.standard_normal((300, 1)), np.ones((300, 1))])
    for tol in (1e-1, 1e-3, 1e-6):
        assert largest_eigenpairs(product, start, 2, tol=tol).highest >= 1 - 1e-14
    calls.clear()
    found = largest_eigenpairs(product, start, 2, tol=1e-9, rise=1e-4)
    assert found.highest >= 1 - 1e-14
    few = len(calls)
    largest_eigenpairs(product, start, 2, tol=1e-9)
    assert few <= len(calls) / 4


def test_nothing_and_infinity(rng):
    zero = largest_eigenpairs(lambda x: (0 * x, x), rng.standard_normal((5, 2)), 2, tol=0.1)
    assert zero.highest == 0.0
    broken = lambda x: (x * np.inf, x)  # noqa: E731
    with np.errstate(invalid="ignore"):
        assert largest_eigenpairs(broken, np.ones((5, 1)), 1, tol=0.1).highest == np.inf


def test_orthonormal_columns_beyond_others(rng):
    old = orthonormal(rng.standard_normal((20, 3)))
    new = rng.standard_normal((20, 2))
    columns = np.hstack([new, new @ [[1.0], [2.0]], old @ rng.standard_normal((3, 1))])
    found = orthonormal(columns, old)
    assert found.shape == (20, 2)  # the others add nothing
    both = np.hstack([old, found])
    np.testing.assert_allclose(both.T @ both, np.eye(5), atol=1e-14)
    np.testing.assert_allclose(both @ (both.T @ new), new, atol=1e-13)
