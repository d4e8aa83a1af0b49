"""Pooled features against their definition, one value at a time, for every engine."""

from __future__ import annotations

import importlib
from itertools import groupby

import numpy as np
import pytest

from greenfold._base.arrays import to_host
from greenfold.estimators.pooled import draw_bank
from greenfold.estimators.pooled.feature_map import (
    GROUP,
    KINDS,
    N_ROWS,
    ROW_WEIGHTS,
    FeatureMap,
    LinearHead,
    fit_map,
)
from greenfold.estimators.series import SeriesByLength

from ...conftest import LIBRARIES

ENGINES = ["array", pytest.param("numba", marks=pytest.mark.needs("numba"))]


def fitted(n_steps, engine, n_readouts=24, n_cases=12, n_channels=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_cases, n_channels, n_steps)).cumsum(axis=2)
    bank = draw_bank(n_steps, n_channels, rng, n_scales=3, n_readouts=n_readouts)
    series = SeriesByLength([(np.arange(n_cases), X)], n_cases, n_channels)
    return fit_map(bank, series, rng, scaling="set", engine=engine), series


def by_definition(z: np.ndarray, thresholds: np.ndarray, rivals: np.ndarray) -> dict:
    """Features of one reading (n_reads,) among the readings of its group (8, n_reads)."""
    K = len(z)
    quarters = np.split(np.arange(K), [K * q // 4 for q in (1, 2, 3)])
    halves = [np.concatenate(quarters[:2]), np.concatenate(quarters[2:])]
    found = {kind: [] for kind in KINDS}
    for t in thresholds:
        above = z > t
        found["above"].append(above.mean())
        found["level"].append(z[above].mean() if above.any() else t)
        when = (np.flatnonzero(above) + 0.5) / K
        found["position"].append(when.mean() if above.any() else 0.5)
        runs = [len(list(run)) for up, run in groupby(above) if up]
        found["stretch"].append(max(runs, default=0) / K)
        found["stretches"].append(np.sqrt(np.mean(runs) / K) if runs else 0.0)
    for name, parts in (("halves", halves), ("quarters", quarters)):
        found[name] = [
            (z[part] > t).mean() if len(part) else 0.0 for part in parts for t in thresholds
        ]
    found["max"], found["min"] = [z.max()], [z.min()]
    found["rms"] = [np.sqrt((z**2).mean())]
    for name, best in (("largest", rivals.max(0)), ("smallest", rivals.min(0))):
        found[name] = [np.sqrt((np.abs(z) * (z == best)).mean())]
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_steps", [1, 2, 3, 7, 40, 300])
@pytest.mark.parametrize("n_readouts", [16, 24, 152])
def test_tables_hold_what_their_kinds_say(engine, n_steps, n_readouts):
    made, series = fitted(n_steps, engine, n_readouts, n_cases=4)
    x = made.standardise(series.groups[0][1])
    rng = np.random.default_rng(1)
    for scale in range(3):
        # Readings in the same precision, by the same route: what is judged is the pooling.
        Z = to_host(made.readings(x, scale))
        tables = to_host(made.pool(x, scale))
        n, n_signals, _, D = Z.shape
        assert tables.shape == (n, N_ROWS, n_signals * D)
        for _ in range(12):
            i, s, d = (int(rng.integers(m)) for m in (n, n_signals, D))
            rivals = Z[i, s][:, d % (D // GROUP) :: D // GROUP].T
            assert len(rivals) == GROUP
            column = s * D + d
            wanted = by_definition(Z[i, s, :, d], made.thresholds[scale][:, column], rivals)
            for kind, rows in KINDS.items():
                # Sums of up to 300 values in single precision.
                np.testing.assert_allclose(
                    tables[i, rows, column],
                    wanted[kind],
                    rtol=3e-5,
                    atol=1e-5,
                    err_msg=kind,
                )


@pytest.mark.parametrize("engine", ENGINES)
def test_thresholds_are_quantiles_of_training_readings(engine):
    made, series = fitted(80, engine, n_readouts=64, n_cases=200)
    x = made.standardise(series.groups[0][1])
    shares = []
    for scale in range(3):
        low, middle, high = made.thresholds[scale]
        assert (low <= middle).all()
        assert (middle <= high).all()
        shares.append(made.pool(x, scale)[:, KINDS["above"]].mean(axis=0))
    # The proportions of three sorted uniform numbers: means 1/4, 1/2, 3/4, deviation
    # below 0.23 each; 576 readings, partly dependent.
    found = 1 - np.concatenate(shares, axis=1).mean(axis=1)
    np.testing.assert_allclose(found, [0.25, 0.5, 0.75], atol=4 * 0.23 / np.sqrt(576))


def assert_same_pooling(one, values, other, foreign, scale):
    """Hold the features of two routes against each other, knowing the readings of both.

    Readings differ by rounding. A feature may differ by more only where rounding puts a
    reading on the other side of its threshold, or makes a rival the best of its group.
    """
    x, y = one.standardise(values), other.standardise(foreign)
    Z, Y = to_host(one.readings(x, scale)), to_host(other.readings(y, scale))
    tables = to_host(one.pool(x, scale)).copy(), to_host(other.pool(y, scale)).copy()
    n, _, K, D = Z.shape
    reservoir = one.bank.scales[scale]
    # A reading sums products with the states of all neurons, and a state sums the input
    # over the memory of its mode. The roundings add up like a random walk; four deviations.
    # Each difference doubles them.
    memory = min(K, reservoir.decay_times.max() / reservoir.stride)
    terms = len(reservoir.readouts) + memory + len(reservoir.drive)
    eps = np.finfo(np.float32).eps
    rounding = 4 * np.sqrt(terms) * eps * np.abs(Z[:, 0]).max()
    for signal in range(3):
        assert np.abs(Z[:, signal] - Y[:, signal]).max() <= 2**signal * rounding

    def columns(found):
        """(n, 3, …, D) as (n, …, 3 D), the order of the columns."""
        return np.moveaxis(found, 1, -2).reshape(n, *found.shape[2:-1], 3 * D)

    def best(found, choose):
        rivals = found.reshape(n, 3, K, GROUP, D // GROUP)
        return columns((rivals == choose(rivals, axis=3, keepdims=True)).reshape(Z.shape))

    own, others = columns(Z), columns(Y)
    same = np.ones((n, N_ROWS, 3 * D), bool)
    for t, threshold in enumerate(one.thresholds[scale]):
        sides = ((own > threshold) == (others > threshold)).all(axis=1)
        for kind in KINDS:
            if kind not in ("max", "min", "rms", "largest", "smallest"):
                same[:, KINDS[kind]][:, t::3] = sides[:, None]
    for kind, choose in (("largest", np.max), ("smallest", np.min)):
        same[:, KINDS[kind]] = (best(Z, choose) == best(Y, choose)).all(axis=1)[:, None]
    for table in tables:  # back to the mean of |z|: the root of a small one rounds by more
        table[:, KINDS["largest"].start :] **= 2
    # Means of K values, summed in single precision, of second differences at most.
    allowed = 4 * np.sqrt(K) * eps * (1 + np.abs(tables[0])) + 4 * rounding
    assert (np.abs(tables[0] - tables[1]) <= allowed)[same].all()
    return same


@pytest.mark.needs("numba")
@pytest.mark.parametrize("n_steps", [5, 130, 700])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_both_routes_give_the_same_features(n_steps, n_channels):
    made, series = fitted(n_steps, "numba", n_channels=n_channels)
    other = FeatureMap(made.bank, made.thresholds, made.mean, made.deviation, "array")
    values = series.groups[0][1]
    for scale in range(3):
        same = assert_same_pooling(made, values, other, values, scale)
        # Rounding is below 1e-4 of the spread of readings, so it decides about few of them.
        assert all(same[:, rows].mean() > 0.9 for rows in KINDS.values())


@pytest.mark.parametrize("library", LIBRARIES)
def test_arrays_of_other_libraries_stay_where_they_are(library):
    xp = importlib.import_module(library)
    made, series = fitted(60, "array")
    values = series.groups[0][1]
    moved = xp.asarray(values)
    foreign = SeriesByLength([(np.arange(12), moved)], 12, 1)
    for scale in range(3):
        found = made.blocks(foreign, scale)
        assert type(found) is type(moved)
        assert found.dtype == xp.float32
        tables = to_host(made.pool(made.standardise(moved), scale))
        np.testing.assert_array_equal(to_host(found), tables.reshape(12, -1))
        assert_same_pooling(made, values, made, moved, scale)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_series_has_the_same_features_in_every_batch(engine):
    made, series = fitted(50, engine)
    values = series.groups[0][1]
    for scale in range(3):
        whole = made.blocks(series, scale)
        for i in (0, 7):
            alone = SeriesByLength([(np.arange(1), values[i : i + 1])], 1, 1)
            np.testing.assert_array_equal(made.blocks(alone, scale)[0], whole[i])


@pytest.mark.needs("numba")
def test_threads_change_nothing():
    made, series = fitted(50, "numba")
    for scale in range(3):
        np.testing.assert_array_equal(
            made.blocks(series, scale, n_jobs=3), made.blocks(series, scale)
        )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_targets", [1, 3, 4, 6])
def test_scores_are_the_product_of_features_and_coefficients(engine, n_targets, rng):
    made, series = fitted(50, engine)
    blocks = [made.blocks(series, scale) for scale in range(3)]
    means = [block.mean(axis=0) for block in blocks]
    W = [rng.standard_normal((w, n_targets)).astype(np.float32) for w in made.widths]
    wanted = sum(
        (b - m).astype(np.float64) @ w for b, m, w in zip(blocks, means, W, strict=True)
    )
    size = np.sqrt(sum(made.widths))  # a sum of so many products of order one
    head = LinearHead(means, W, np.zeros(W[0].shape[1]))
    found = made.scores(series, head)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * size)
    np.testing.assert_array_equal(made.scores(series, head, n_jobs=2), found)


def test_memory_does_not_grow_with_the_number_of_series(monkeypatch):
    made, series = fitted(50, "array")
    whole = made.blocks(series, 1)
    monkeypatch.setattr("greenfold.estimators.pooled.feature_map._HOST_BYTES", 10**5)
    sizes = []
    original = FeatureMap.pool

    def pool(self, x, scale, n_jobs=None):
        sizes.append(len(x))
        return original(self, x, scale, n_jobs)

    monkeypatch.setattr(FeatureMap, "pool", pool)
    np.testing.assert_array_equal(made.blocks(series, 1), whole)
    assert max(sizes) == 1
    assert sum(sizes) == 12


def test_every_row_has_a_kind_and_a_weight():
    rows = np.concatenate([np.arange(N_ROWS)[where] for where in KINDS.values()])
    np.testing.assert_array_equal(rows, np.arange(N_ROWS))
    assert ROW_WEIGHTS.shape == (N_ROWS,)
    assert (ROW_WEIGHTS > 0).all()
