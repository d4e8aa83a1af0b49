"""Every option has an effect on the given problem, or is refused in one sentence."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from greenfold import EchoStateNetwork, Reservoir

from .conftest import SMALL, invoke, one_sentence

IDLE = [
    # A data set has its own labels and test series.
    ("fit", "synthetic-heartbeats", "--y", "y.txt"),
    ("fit", "synthetic-heartbeats", "--test", "beats.npz"),
    ("fit", "synthetic-heartbeats", "--holdout", "0.5"),
    ("fit", "synthetic-heartbeats", "--label-column", "0"),
    ("fit", "synthetic-heartbeats", "--data-dir", "."),
    ("fit", "synthetic-heartbeats", "--trim"),
    ("evaluate", "synthetic-heartbeats", "--holdout", "0.5"),
    ("predict", "m.gfm", "synthetic-heartbeats", "--labels"),
    ("predict", "m.gfm", "synthetic-heartbeats", "--no-labels"),
    ("score", "m.gfm", "synthetic-heartbeats", "--y", "y.txt"),
    # A file is one part, and holds its labels once.
    ("fit", "beats.npz", "--data-dir", "."),
    ("fit", "beats.npz", "--test", "beats.npz", "--holdout", "0.5"),
    ("fit", "table.csv", "--y", "y.txt", "--label-column", "0"),
    ("predict", "m.gfm", "table.csv", "--no-labels", "--label-column", "0"),
    ("predict", "m.gfm", "beats.npz", "--part", "train"),
    ("score", "m.gfm", "beats.npz", "--part", "train"),
    ("predict", "m.gfm", "beats.npz", "--seed", "1"),
    ("score", "m.gfm", "beats.npz", "--seed", "1"),
    # With two classes, the accuracy under noise has a closed form.
    ("score", "m.gfm", "beats.npz", "--noise", "0.1", "--seed", "1"),
    # A network from a file has its own size and spread.
    ("fit", "beats.npz", "--weights", "w.npy", "--neurons", "9"),
    ("fit", "beats.npz", "--weights", "w.npy", "--g", "0.5"),
    ("evaluate", "beats.npz", "--weights", "w.npy", "--neurons", "9"),
    ("memory", "--weights", "w.npy", "--g", "0.5"),
    ("explore", "beats.npz", "--weights", "w.npy", "--g", "0.5"),
    # Only a list of edges has columns and names of cells, and one source of signs.
    ("fit", "beats.npz", "--columns", "pre,post"),
    ("memory", "--inhibitory", "A"),
    ("evaluate", "beats.npz", "--weights", "w.npy", "--columns", "pre,post"),
    ("memory", "--weights", "w.npy", "--inhibitory", "A"),
    ("fit", "beats.npz", "--weights", "w.npy", "--cells", "table.csv"),
    ("memory", "--weights", "edges.csv", "--neurons", "9"),
    ("memory", "--weights", "edges.csv", "--inhibitory", "A", "--columns", "a,b,w,s"),
    # A linear network has no α, and only a solved projection can be certified.
    ("fit", "beats.npz", "--alpha", "0.1"),
    ("evaluate", "beats.npz", "--order", "0", "--alpha", "0.1"),
    ("fit", "beats.npz", "--order", "1", "--certify"),
    ("fit", "beats.npz", "--projection", "random", "--certify"),
    *(
        ("fit", "beats.npz", "--classifier", "pooled", *option)
        for option in (
            ["--projection", "shared"],
            ["--certify"],
            ["--neurons", "9"],
            ["--g", "0.5"],
            ["--weights", "w.npy"],
            ["--order", "1"],
            ["--alpha", "0.1"],
            ["--tau", "1"],
            ["--duration", "5"],
            ["--eta", "1"],
            ["--noise", "0.1"],
        )
    ),
    ("demo", "--orders", "--report", "page.html"),
    ("demo", "--orders", "--seed", "1"),
    # The explorer: a model has its own network and may have its own series.
    ("explore", "m.gfm", "--neurons", "9"),
    ("explore", "m.gfm", "--g", "0.5"),
    ("explore", "m.gfm", "--tau", "1"),
    ("explore", "m.gfm", "--weights", "w.npy"),
    ("explore", "m.gfm", "--duration", "5"),
    ("explore", "echo.gfm", "--duration", "5"),
    ("explore", "network.gfm", "--tau", "1"),
    ("explore", "m.gfm", "--y", "y.txt"),
    ("explore", "m.gfm", "--test", "beats.npz"),
    ("explore", "m.gfm", "--trim"),
    ("explore", "m.gfm", "--data-dir", "."),
    ("explore", "m.gfm", "--label-column", "0"),
    ("forecast", "lorenz", "--columns", "x"),
    ("forecast", "lorenz", "--format", "csv"),
    # Without an estimator nothing runs; without --compare nothing is compared.
    *(
        ("sweep", "--compare", *option)
        for option in (
            ["Coffee"],
            ["--resamples", "2"],
            ["--device", "cuda"],
            ["--seed", "1"],
            ["--jobs", "2"],
            ["--dask", "tcp://h:1"],
            ["--redo"],
            ["--published", "none", "--data-dir", "."],
        )
    ),
    ("sweep", "-e", "QUANT", "--comparison", "there"),
    ("sweep", "-e", "QUANT", "--published", "ROCKET"),
    ("sweep", "-e", "QUANT", "--figures", "png"),
    ("sweep", "-e", "QUANT", "--dask", "tcp://h:1", "--jobs", "2"),
    ("study", "Coffee", "--dask", "tcp://h:1", "--jobs", "2"),
    ("study", "--preset", "architectures", "--neurons", "5"),
    ("study", "Coffee:1,2", "--classes", "1,2"),
    ("study", "Coffee", "--figures", "none", "-a", "cycle", "--seeds", "3"),
    ("study", "Coffee", "--figures", "none", "-a", "legendre", "--g", "0.5"),
    ("study", "Coffee", "--figures", "none", "--order", "1"),
    ("reproduce", "fig1", "--redraw", "--quick"),
    ("reproduce", "fig1", "--redraw", "--jobs", "1"),
    ("reproduce", "fig4", "--redraw", "--data-dir", "."),
    ("reproduce", "fig1", "--data-dir", "."),
]


@pytest.fixture
def files(beats, fitted_beats, tmp_path):
    """Models, weights, labels and a table, next to the file of beats."""
    shutil.copy(fitted_beats, tmp_path / "m.gfm")
    EchoStateNetwork.random(20, rng=0).save(tmp_path / "echo.gfm")
    Reservoir.random(5, rng=0).save(tmp_path / "network.gfm")
    np.save(tmp_path / "w.npy", np.zeros((5, 5)))
    (tmp_path / "y.txt").write_text("a\nb\n" * 30)
    rows = [f"{i % 2},{i},{i * i},1.5" for i in range(60)]
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "edges.csv").write_text("a,b,w,s\nA,B,1,1\nB,A,2,-1\n")


@pytest.mark.parametrize("arguments", IDLE, ids=" ".join)
def test_an_option_without_effect_is_refused(files, arguments):
    result = invoke(*arguments, code=2)
    one_sentence(result.stderr)
    named = [one.replace("--no-", "--") for one in arguments if one.startswith("--")]
    assert any(one in result.stderr for one in (*named, "DATA")), result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("fit", "beats.npz", *SMALL), ("--order", "1", "--alpha", "0.01")),
        (("fit", "beats.npz", *SMALL), ("--certify",)),
        (("score", "m.gfm", "beats.npz"), ("--noise", "0.1")),
        (("score", "m.gfm", "synthetic-heartbeats"), ("--part", "train")),
        (("fit", "table.csv", *SMALL), ("--label-column", "0")),
    ],
    ids=" ".join,
)
def test_the_same_option_is_accepted_where_it_has_one(files, command, option):
    if "synthetic-heartbeats" in command:  # of another length than the model
        assert "--part" not in invoke(*command, *option, code=1).stderr
    else:
        invoke(*command, *option)


def test_the_seed_draws_noise_for_three_classes(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{i % 3}," + ",".join(map(str, rng.normal(i % 3, 1, 5))) for i in range(60)]
    (tmp_path / "three.csv").write_text("\n".join(lines) + "\n")
    invoke("fit", "three.csv", "--label-column", "0", "--model", "three.gfm", *SMALL)
    score = "score", "three.gfm", "three.csv", "--noise", "1", "--json", "--seed"
    assert len({invoke(*score, seed).stdout for seed in ("1", "2")}) == 2
