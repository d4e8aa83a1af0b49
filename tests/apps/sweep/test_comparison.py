"""Comparison of accuracies, with published ones, and aeon's figures of them."""

from __future__ import annotations

import numpy as np
import pytest

from greenfold.apps.runner import Workers
from greenfold.apps.sweep import PUBLISHED, compare, draw, result_text, sweep, write_tables

ONE = Workers(1)
LEVELS = {"A": 0, "B": 1, "C": 2}
SETS = ["One", "Three", "Two", "Four"]


def write_result(folder, estimator, dataset, resample, n_right, n=20):
    labels = np.arange(n) % 2
    found = np.where(np.arange(n) < n_right, labels, 1 - labels)
    about = dataset, estimator, resample
    made = result_text(about, "", "{}", (1e-3, 1e-3), labels, np.eye(2)[found])
    path = folder / estimator / "Predictions" / dataset / f"testResample{resample}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made)


@pytest.fixture
def results(tmp_path):
    """Twenty series each; right are 12 + level + 2 · set, and one more in resample 1."""
    folder = tmp_path / "results"
    for label, level in LEVELS.items():
        for place, name in enumerate(SETS):
            for resample in (0, 1):
                write_result(folder, label, name, resample, 12 + level + place + resample)
    return folder


def test_means_and_ranks(results):
    made = compare(results, published=())
    assert made.estimators == ["A", "B", "C"]
    assert made.datasets == sorted(SETS)
    expected = [[(12.5 + i + SETS.index(d)) / 20 for i in range(3)] for d in sorted(SETS)]
    np.testing.assert_allclose(made.accuracy, expected, rtol=1e-12)
    assert made.mean_rank.tolist() == [3, 2, 1]
    assert made.basis == "4 data sets, mean of 2 resamples (0–1)"


def test_incomplete_sets_are_left_out_and_named(results):
    (results / "B" / "Predictions" / "Two" / "testResample1.csv").unlink()
    path = results / "A" / "Predictions" / "One" / "testResample0.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:2]))
    made = compare(results, published=())
    assert made.datasets == ["Four", "Three"]
    assert made.left_out == ["One", "Two"]
    assert "2 of 4 data sets" in made.basis
    assert "testResample0.csv" in made.notes[0]
    assert compare(results, published=(), estimators=["C"]).left_out == []


def test_without_a_common_set_or_results_there_is_a_sentence(results, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no results"):
        compare(tmp_path / "nothing")
    with pytest.raises(
        FileNotFoundError, match="no results of Z; it has results of A, B, C"
    ):
        compare(results, estimators=["Z"])
    write_result(results, "D", "Five", 0, 3)
    with pytest.raises(FileNotFoundError, match="no data set with results of all"):
        compare(results, published=())


@pytest.fixture
def reference(tmp_path):
    folder = tmp_path / "data" / "reference"
    folder.mkdir(parents=True)
    table = "dataset,n_train,ROCKET,HC2\nOne,5,0.6667,0.9\nTwo,5,0.7,\nOther,5,0.1,0.1\n"
    (folder / "ucr_default_split.csv").write_text(table)
    return tmp_path / "data"


def test_published_results_stand_beside(reference, tmp_path):
    folder = tmp_path / "own"
    for name in ("One", "Two"):
        write_result(folder, "A", name, 0, 20, n=30)
    made = compare(folder, published=["rocket"], data_dir=reference)
    assert made.estimators == ["A", "rocket (published)"]
    # 20 of 30 is 0.6667 in a table of four digits: a tie, not a win by rounding.
    np.testing.assert_array_equal(made.accuracy, [[0.6667, 0.6667], [0.6667, 0.7]])
    assert made.mean_rank.tolist() == [1.75, 1.25]
    both = compare(folder, published=["ROCKET", "HC2"], data_dir=reference)
    assert (both.datasets, both.left_out) == (["One"], ["Two"])
    assert both.own == ["A"]
    assert f"HC2{PUBLISHED}" in both.estimators


@pytest.mark.needs("aeon")
def test_an_unreachable_archive_is_a_note(results, monkeypatch):
    from aeon.benchmarking import results_loaders as loaders

    def unreachable(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(loaders.pd, "read_csv", unreachable)
    made = compare(results, published=["ROCKET", "HC2"])
    assert made.estimators == ["A", "B", "C"]
    (note,) = made.notes
    assert "ROCKET, HC2" in note
    assert "no route" in note
    (note,) = compare(results, published=["Nonesuch"]).notes
    assert "Unknown estimator name Nonesuch" in note


@pytest.mark.needs("aeon")
def test_the_archive_of_aeon_is_read_by_resample(results, monkeypatch):
    from aeon.benchmarking import results_loaders as loaders

    table = loaders.pd.DataFrame({"": SETS, 0: 0.5, 1: 0.7, 2: 0.0})
    monkeypatch.setattr(loaders.pd, "read_csv", lambda *_, **__: table)
    made = compare(results, published=["ROCKET"])
    assert made.estimators[-1] == "ROCKET (published)"
    np.testing.assert_allclose(made.accuracy[:, -1], 0.6, rtol=1e-12)


@pytest.mark.needs("aeon")
def test_aeon_reads_the_tables(results, tmp_path):
    """Judge: aeon's loader of results, with an estimator that it knows."""
    from aeon.benchmarking import results_loaders as loaders

    (results / "A").rename(results / "ROCKET")
    made = compare(results, published=(), estimators=["ROCKET"])
    write_tables(made, tmp_path / "out", results)
    found = loaders.get_estimator_results(
        ["ROCKET"], num_resamples=None, path=str(tmp_path / "out")
    )["ROCKET"]
    assert sorted(found) == made.datasets
    for name in SETS:
        assert found[name].tolist() == [(12 + SETS.index(name) + k) / 20 for k in (0, 1)]


@pytest.mark.needs("aeon", "seaborn")
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_figures_are_drawn(results, tmp_path, kind):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    made = compare(results, published=())
    names = [path.name for path in draw(made, tmp_path / "figures", kind)]
    pairs = ["A_B", "A_C", "B_C"]
    expected = ["critical_difference", *(f"scatter_{pair}" for pair in pairs)]
    assert names == [f"{name}.{kind}" for name in expected]
    assert all((tmp_path / "figures" / name).stat().st_size > 2000 for name in names)
    assert pyplot.get_fignums() == before


@pytest.mark.needs("aeon", "seaborn")
def test_equal_results_and_few_sets_can_be_drawn(tmp_path):
    for label in "ABC":
        for name in SETS:
            write_result(tmp_path / "same", label, name, 0, 15)
        write_result(tmp_path / "few", label, "One", 0, 15)
    assert len(draw(compare(tmp_path / "same", published=()), tmp_path / "f")) == 4
    assert len(draw(compare(tmp_path / "few", published=()), tmp_path / "f")) == 3


def test_a_sweep_can_be_compared(archive, own, tmp_path):
    names = ["own_estimators:Nearest", "nb=sklearn.naive_bayes:GaussianNB"]
    sweep(names, data_dir=archive, workers=ONE)
    made = compare(tmp_path / "results", published=())
    assert made.own == ["Nearest", "nb"]
    assert "3 data sets, the provided split" in str(made)
