"""`greenfold predict` on users' data, and users' weights for `fit`."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from greenfold import Reservoir, ReservoirClassifier
from greenfold.apps.demo import demo_task
from greenfold.datasets import read_connectome, synthetic_heartbeats, write_npz
from greenfold.saving import load, save

from .conftest import ENVIRONMENT, SMALL, invoke, one_sentence

N_CASES, N_STEPS = 12, 24


def fitted(path: Path, X, y) -> Path:
    settings = {"n_neurons": 10, "eta": 10.0, "random_state": 0}
    save(ReservoirClassifier(**settings).fit(X, y), path)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """Fitted on beats of one channel, with the classes 1 and 2."""
    X, y = synthetic_heartbeats(60, n_steps=N_STEPS, rng=3)
    return fitted(tmp_path_factory.mktemp("model") / "m.gfm", X, np.where(y > 0, 1, 2))


@pytest.fixture(scope="module")
def pairs_model(tmp_path_factory) -> Path:
    """Fitted on beats of two channels."""
    X, y = synthetic_heartbeats(60, n_steps=N_STEPS, rng=3)
    cube = np.stack([X, X**2], axis=1)
    return fitted(tmp_path_factory.mktemp("model") / "m.gfm", cube, np.where(y > 0, 1, 2))


@pytest.fixture(scope="module")
def beats():
    X, y = synthetic_heartbeats(N_CASES, n_steps=N_STEPS, rng=8)
    return X, np.where(y > 0, 1, 2)


def refused(*arguments: object, code: int = 1, stdin: bytes | None = None) -> str:
    result = invoke(*arguments, code=code, stdin=stdin)
    assert result.stdout == ""
    assert result.stderr.startswith("greenfold: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def lines(rows, separator: str = ",") -> bytes:
    return "".join(separator.join(map(repr, row)) + "\n" for row in rows).encode()


def ts(X, y=None, mark: str | None = None) -> bytes:
    univariate = "true" if X.ndim == 2 else "false"
    head = f"@univariate {univariate}\n@classLabel " + (
        "false\n@data\n" if y is None else "true 1 2\n@data\n"
    )
    body = []
    for i, one in enumerate(X):
        channels = [",".join(map(repr, channel.tolist())) for channel in np.atleast_2d(one)]
        label = [] if y is None else [mark or str(y[i])]
        body.append(":".join([*channels, *label]) + "\n")
    return (head + "".join(body)).encode()


def arff(X, y=None, mark: str | None = None) -> bytes:
    many = X.ndim == 3
    head = ["@relation r", *(["@attribute c relational"] if many else [])]
    head += [f"@attribute a{i} numeric" for i in range(X.shape[-1])]
    head += (["@end c"] if many else []) + ([] if y is None else ["@attribute t {1,2}"])
    body = []
    for i, one in enumerate(X):
        channels = [",".join(map(repr, channel.tolist())) for channel in np.atleast_2d(one)]
        text = "'" + "\\n".join(channels) + "'" if many else channels[0]
        body.append(text + ("" if y is None else f",{mark or y[i]}"))
    return ("\n".join([*head, "@data", *body]) + "\n").encode()


def packed(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def twins(X, y) -> dict[str, tuple[bytes, list[bytes]]]:
    """For each suffix a labelled file, and the same series without labels."""
    npy = io.BytesIO()
    np.save(npy, X)
    npz = packed(X=X, y=y)
    found = {
        ".ts": (ts(X, y), [ts(X), ts(X, y, "?")]),
        ".arff": (arff(X, y), [arff(X), arff(X, y, "?")]),
        ".npz": (npz, [packed(X=X), packed(X=X, y=np.full(len(X), "?"))]),
        ".npy": (npz, [npy.getvalue()]),
    }
    if X.ndim == 2:
        full = np.column_stack([y, X])
        for suffix, separator in ((".csv", ","), (".tsv", "\t"), (".txt", "  ")):
            bare = lines(X.tolist(), separator)
            marked = b"".join(
                b"?" + separator.encode() + row for row in bare.splitlines(True)
            )
            count = separator.join(map(str, range(N_STEPS))).encode() + b"\n"
            names = separator.join(f"t{i}" for i in range(N_STEPS)).encode() + b"\n"
            found[suffix] = (
                lines(full.tolist(), separator),
                [bare, marked, count + bare, names + bare],
            )
    return found


SUFFIXES = [".ts", ".arff", ".npz", ".npy", ".csv", ".tsv", ".txt"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_labels_as_with_them(model, beats, suffix):
    full, bares = twins(*beats)[suffix]
    named = Path("full.npz" if suffix == ".npy" else f"full{suffix}")
    named.write_bytes(full)
    told = json.loads(invoke("predict", model, named, "--proba", "--json").stdout)
    assert told["labelled"]
    assert told["accuracy"] is not None
    expected = load(model).predict_proba(beats[0])
    np.testing.assert_array_equal(told["probabilities"], expected)
    # The first also compressed and from a pipe; the others differ in their content alone.
    Path(f"bare{suffix}.gz").write_bytes(gzip.compress(bares[0]))
    sources = [(f"bare{suffix}.gz", None, ()), ("-", bares[0], ("--format", suffix[1:]))]
    for number, bare in enumerate(bares):
        Path(f"bare{number}{suffix}").write_bytes(bare)
        sources.append((f"bare{number}{suffix}", None, ()))
    for data, stdin, options in sources:
        made = invoke("predict", model, data, *options, "--proba", "--json", stdin=stdin)
        found = json.loads(made.stdout)
        assert found["predictions"] == told["predictions"]
        assert found["probabilities"] == told["probabilities"]
        assert found["accuracy"] is None
        assert not found["labelled"]


@pytest.mark.parametrize("suffix", [".ts", ".arff", ".npz", ".npy"])
def test_several_channels_without_labels(pairs_model, beats, suffix):
    X = np.stack([beats[0], beats[0] ** 2], axis=1)
    for bare in twins(X, beats[1])[suffix][1]:
        Path(f"bare{suffix}").write_bytes(bare)
        found = json.loads(invoke("predict", pairs_model, f"bare{suffix}", "--json").stdout)
        assert found["predictions"] == load(pairs_model).predict(X).tolist()


def test_what_was_assumed_is_said(model, beats):
    X, y = beats
    Path("bare.csv").write_bytes(lines(X.tolist()))
    Path("full.csv").write_bytes(lines(np.column_stack([y, X]).tolist()))
    said = invoke("predict", model, "bare.csv").stderr
    assert "without labels, of 24 steps" in said
    assert "--labels" in said
    said = invoke("predict", model, "full.csv").stderr
    assert "with labels, of 24 steps" in said
    assert "--no-labels" in said
    assert invoke("predict", model, "full.csv", "--labels").stderr == ""
    assert invoke("predict", model, "bare.csv", "--no-labels").stderr == ""
    # Forced the wrong way, the series have the wrong length.
    assert "25 features" in refused("predict", model, "full.csv", "--no-labels")
    assert "12 different labels" in refused("predict", model, "bare.csv", "--labels")


def test_a_table_for_a_model_of_any_length(tmp_path):
    rng = np.random.default_rng(0)
    series = [rng.standard_normal(rng.integers(8, 14)) for _ in range(30)]
    y = np.arange(30) % 2
    for one, label in zip(series, y, strict=True):
        one += 2 * label
    fitted(tmp_path / "any.gfm", series, y)
    expected = load("any.gfm").predict(series[:4]).tolist()
    Path("bare.csv").write_bytes(lines(one.tolist() for one in series[:4]))
    full = ([int(label), *one] for label, one in zip(y, series[:4], strict=False))
    Path("full.csv").write_bytes(
        "".join(",".join(str(float(v)) for v in row) + "\n" for row in full).encode()
    )
    for name in ("bare.csv", "full.csv"):
        told = json.loads(invoke("predict", "any.gfm", name, "--trim", "--json").stdout)
        assert told["predictions"] == expected
        assert told["labelled"] == (name == "full.csv")
    Path("unclear.csv").write_text("5,0.5,0.25\n7,0.5,0.25\n")
    said = refused("predict", "any.gfm", "unclear.csv")
    assert "use --labels if it is, or --no-labels if not" in said


def test_some_labels(model, beats):
    X, y = beats
    write_npz("some.npz", X, ["?", *map(str, y[1:])])
    told = json.loads(invoke("predict", model, "some.npz", "--json").stdout)
    agree = load(model).predict(X)[1:] == y[1:]
    assert told["accuracy"] == pytest.approx(agree.mean())


def test_built_in_data():
    invoke("fit", "synthetic-heartbeats", "--model", "m.gfm", "-n", 10, "--eta", 10)
    for part, count in (("test", 1000), ("train", 200), ("all", 1200)):
        made = invoke("predict", "m.gfm", "synthetic-heartbeats", "--part", part, "--json")
        told = json.loads(made.stdout)
        assert len(told["predictions"]) == count
        drawn = demo_task()
        X = {"test": drawn.X_test, "train": drawn.X}.get(part)
        if X is not None:
            assert told["predictions"] == load("m.gfm").predict(X).tolist()
        assert told["accuracy"] is not None
    other = invoke("predict", "m.gfm", "synthetic-heartbeats", "--seed", 1, "--json").stdout
    first = invoke("predict", "m.gfm", "synthetic-heartbeats", "--json").stdout
    assert json.loads(other)["predictions"] != json.loads(first)["predictions"]


@pytest.mark.parametrize(
    ("form", "stdin", "part"),
    [
        ("csv", b"", "holds no series"),
        ("npz", b"", "cannot be read"),
        ("ts", b"", "@data"),
        ("csv", b"label,t0,t1\n", "no series below"),
        ("csv", gzip.compress(b"1,2,3\n")[:-6], "gzip"),
        ("csv", b"\xfa\xfe", "UTF-8"),
        ("csv", b"0.5,0.25\n", "2 features"),
        ("csv", b"normal" + b",0.5" * 23 + b"\n", "23 features"),
        ("ts", ts(np.zeros((2, 3, N_STEPS))), "3 channels"),
    ],
    ids=range(9),
)
def test_standard_input_that_is_wrong(model, form, stdin, part):
    said = invoke("predict", model, "-", "--format", form, code=1, stdin=stdin)
    assert said.stdout == ""
    assert part in said.stderr.splitlines()[-1]


def test_standard_input_needs_a_format(model):
    assert "--format" in refused("predict", model, "-", code=2)
    assert "xls" in refused("predict", model, "-", "--format", "xls", code=2)
    assert "only one" in refused("fit", "-", "--test", "-", "--format", "csv", code=2)


def test_fit_from_a_pipe_and_with_labels_of_their_own(beats):
    X, y = beats
    small = ("-n", 8, "--eta", 10, "--json")
    table = lines(np.column_stack([y, X]).tolist())
    first = json.loads(invoke("fit", "-", "--format", "csv", *small, stdin=table).stdout)
    assert first["data"] == "standard input"
    np.save("X.npy", X)
    np.save("y.npy", y)
    Path("y.csv").write_text("label\n" + "".join(f"{label}\n" for label in y))
    for labels in ("y.npy", "y.csv"):
        told = json.loads(invoke("fit", "X.npy", "--y", labels, *small).stdout)
        assert told["soft_margin"] == first["soft_margin"]
        assert told["classes"] == [1, 2]
    assert "give a file of labels with --y" in refused("fit", "X.npy")
    np.save("y.npy", y[1:])
    assert "11 labels for 12 series" in refused("fit", "X.npy", "--y", "y.npy")


@pytest.fixture
def weights() -> np.ndarray:
    return np.random.default_rng(2).standard_normal((8, 8)) * 0.2


def test_own_weights(beats, weights):
    from scipy import sparse

    write_npz("beats.npz", *beats)
    np.save("W.npy", weights)
    np.savez("W.npz", weights=weights, other=0)
    np.savetxt("W.csv", weights, delimiter=",", fmt="%.17g")
    Path("W.txt.gz").write_bytes(gzip.compress(lines(weights.tolist(), " ")))
    sparse.save_npz("sparse.npz", sparse.csr_array(weights))
    for name in ("W.npy", "W.npz", "W.csv", "W.txt.gz", "sparse.npz"):
        options = ("--weights", name, "--tau", 0.5, "--eta", 10, "--model", "m.gfm")
        options += ("--projection", "random")  # of which the weights know nothing
        invoke("fit", "beats.npz", *options)
        reservoir = load("m.gfm").reservoir_
        np.testing.assert_array_equal(reservoir.weights, weights)
        assert reservoir.tau == 0.5
    options = ("--weights", "W.npy", "--order", 0, "--eta", 10, "--json")
    rows = json.loads(invoke("evaluate", "beats.npz", *options).stdout)["rows"]
    assert len(rows) == 2


@pytest.mark.contract
def test_large_sparse_weights_stay_sparse(beats):
    from scipy import sparse

    write_npz("beats.npz", *beats)
    ring = sparse.eye_array(1200, k=1) * 0.5 + sparse.eye_array(1200, k=-1199) * 0.5
    sparse.save_npz("ring.npz", ring)
    options = "--weights", "ring.npz", "--projection", "random", "--model", "m.gfm"
    invoke("fit", "beats.npz", "--eta", 10, *options)
    assert sparse.issparse(load("m.gfm").reservoir_.weights)


def test_weights_that_are_wrong(beats, weights):
    write_npz("beats.npz", *beats)

    def said(matrix) -> str:
        np.save("W.npy", matrix)
        return refused("fit", "beats.npz", "--weights", "W.npy")

    assert "--weights must be a square matrix" in said(weights[:5])
    assert "is empty" in said(np.zeros((0, 0)))
    assert "--weights must be real" in said(weights + 1j)
    hole = weights.copy()
    hole[2, 3] = np.nan
    assert "nan at index (2, 3)" in said(hole)
    unstable = said(np.diag(np.full(4, 1.8)))
    assert "unstable" in unstable
    assert "multiply the weights by 0.5 " in unstable
    assert "allow_unstable" not in unstable
    Path("W.csv").write_text("0.1,0.2\n0.3\n")
    assert "changed from 2 to 1 at row 2" in refused(
        "fit", "beats.npz", "--weights", "W.csv"
    )
    Path("W.csv").write_text("0.1,x\n0.3,0.1\n")
    assert "'x' to float64 at row 0, column 2" in refused(
        "fit", "beats.npz", "--weights", "W.csv"
    )
    Path("W.npy").write_bytes(b"\x93NUMPY")
    assert "cannot be read" in refused("fit", "beats.npz", "--weights", "W.npy")
    assert "does not exist" in refused("fit", "beats.npz", "--weights", "absent.npy")
    assert "suffix" in refused("evaluate", "beats.npz", "--weights", "W.mat")
    np.save("W.npy", weights)
    for option in (("--neurons", 9), ("--g", 0.5)):
        clash = ("fit", "beats.npz", "--weights", "W.npy", *option)
        assert option[0] in refused(*clash, code=2)


def test_a_list_of_edges(beats):
    write_npz("beats.npz", *beats)
    rng = np.random.default_rng(0)
    i, j = rng.integers(12, size=(2, 60))
    count = rng.integers(1, 9, 60)
    kind = np.array(["ACH", "GABA"])[rng.integers(2, size=12)]
    rows = [f"n{a},n{b},{w},{kind[a]}" for a, b, w in zip(i, j, count, strict=True)]
    table = ["a,b,w,nt", *rows]
    Path("known.csv").write_text("\n".join(["pre,post,count,nt_type", *rows]) + "\n")
    Path("edges.csv.gz").write_bytes(gzip.compress("\n".join(table).encode()))
    memory = ("memory", "--delays", "0,2", "--draws", 1, "--json", "--weights")
    whole = json.loads(invoke(*memory, "known.csv").stdout)
    named = ("--columns", "a,b,w,nt")
    again = json.loads(invoke(*memory, "edges.csv.gz", *named).stdout)
    assert whole["neurons"] == len({*i, *j})
    assert again["solved"]["total"] == whole["solved"]["total"]
    # The command line scales the network to --g.
    other = json.loads(invoke(*memory, "known.csv", "--g", 0.3).stdout)
    assert other["solved"]["total"] != whole["solved"]["total"]
    made = Reservoir.from_graph(read_connectome("known.csv"), tau=0.5)
    options = ("--tau", 0.5, "--eta", 10, "--model", "m.gfm")
    invoke("fit", "beats.npz", "--weights", "known.csv", *options)
    kept = load("m.gfm").reservoir_.weights
    np.testing.assert_array_equal(kept.toarray(), made.weights.toarray())
    weights = ("fit", "beats.npz", "--weights")
    assert "name it with --columns" in refused(*weights, "edges.csv.gz")
    assert "correct --columns" in refused(*weights, "known.csv", "--columns", "a,b")
    assert "no sign for the value 'ACH'" not in refused(*weights, "absent.csv")
    assert "--inhibitory must name cells" in refused(
        *weights, "known.csv", "--inhibitory", "m1"
    )
    assert "--inhibitory must be a list of names, or a file" in refused(
        *weights, "known.csv", "--inhibitory", "absent.csv"
    )
    Path("cells.csv").write_text("name\nn0\n")
    assert "--cells does not list" in refused(*weights, "known.csv", "--cells", "cells.csv")
    Path("known.csv").write_text("pre,post,count\nA,B,many\n")
    assert "'many' in row 1" in refused(*weights, "known.csv")


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of Unix")
def test_a_model_through_links_and_pipes(beats):
    write_npz("beats.npz", *beats)
    command = ("fit", "beats.npz", "-n", 8, "--eta", 10, "--model")
    Path("link.gfm").symlink_to("real.gfm")
    invoke(*command, "link.gfm")
    assert Path("link.gfm").is_symlink()
    expected = load("real.gfm").predict(beats[0]).tolist()
    os.mkfifo("pipe.gfm")
    got = []
    reader = threading.Thread(
        target=lambda: got.append(Path("pipe.gfm").read_bytes()), daemon=True
    )
    reader.start()
    invoke(*command, "pipe.gfm")
    reader.join(10)
    assert stat.S_ISFIFO(os.stat("pipe.gfm").st_mode)
    Path("copy.gfm").write_bytes(got[0])
    assert load("copy.gfm").predict(beats[0]).tolist() == expected
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    assert "symbolic links" in refused(*command, "a", code=2)
    Path("astray").symlink_to("absent/model")
    assert "does not exist" in refused(*command, "astray", code=2)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_standard_output_is_no_place_for_a_model(beats, capfd):
    write_npz("beats.npz", *beats)
    Path("out").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    assert "standard output" in refused("fit", "beats.npz", "--model", "out", code=2)
    assert Path("out").is_symlink()
    assert capfd.readouterr().out == ""


@pytest.mark.contract
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc")
def test_standard_output_of_a_process_is_no_place_for_a_model(beats):
    write_npz("beats.npz", *beats)
    Path("out").symlink_to("/proc/self/fd/1")  # as /dev/stdout is
    done = subprocess.run(
        [sys.executable, "-m", "greenfold", "fit", "beats.npz", "--model", "out"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "standard output" in done.stderr
    assert Path("out").is_symlink()


#: A module that takes its time to be imported; what it makes of Ctrl-C is its affair.
SLOW = """
import time
print("begun", flush=True)
try:
    time.sleep(30)
except BaseException as error:
    {reaction}
"""


@pytest.mark.parametrize(
    ("module", "command", "reaction"),
    [
        ("typer", "demo", "raise ImportError('broken') from error"),
        pytest.param("typer", "demo", "raise", marks=pytest.mark.contract),
        pytest.param("scipy", "fit", "raise", marks=pytest.mark.contract),
        pytest.param(
            *("scipy", "fit", "raise ImportError('broken') from error"),
            marks=pytest.mark.contract,
        ),
    ],
)
def test_interrupt_during_import(tmp_path, module, command, reaction):
    (tmp_path / f"{module}.py").write_text(SLOW.format(reaction=reaction))
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    with subprocess.Popen(
        [sys.executable, "-m", "greenfold", command, "synthetic-heartbeats"],
        env=ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert said == "greenfold: interrupted.\n"
    assert process.returncode == 130


def labelled(n_cases: int = 24, n_steps: int = 12) -> tuple[np.ndarray, np.ndarray]:
    X, y = synthetic_heartbeats(n_cases, n_steps=n_steps, rng=3)
    return X, np.where(y > 0, 1, 2)


def test_labels_in_the_last_column():
    """Numbers there must be pointed out; words are recognised."""
    X, y = labelled()
    np.savetxt("last.csv", np.column_stack([X, y]), delimiter=",")
    result = invoke("fit", "last.csv", *SMALL, code=1)
    one_sentence(result.stderr)
    assert (
        "24 series with 24 different labels, taken from the first column" in result.stderr
    )
    assert "--label-column" in result.stderr
    for column in ("last", "12"):
        told = invoke("fit", "last.csv", *SMALL, "--label-column", column).stdout
        assert "2 classes (1, 2)" in told
    refused = invoke("fit", "last.csv", "--label-column", "laser", code=1).stderr
    one_sentence(refused)
    assert "'laser'" in refused
    words = [",".join([*map(str, x), f"c{k}"]) for x, k in zip(X, y, strict=True)]
    Path("words.csv").write_text("\n".join(words))
    assert "2 classes (c1, c2)" in invoke("fit", "words.csv", *SMALL).stdout
    Path("named.csv").write_text("\n".join([",".join([*"abcdefghijkl", "kind"]), *words]))
    told = invoke("fit", "named.csv", *SMALL, "--label-column", "kind").stdout
    assert "2 classes (c1, c2)" in told
    names = ",".join([*(f"t{i}" for i in range(12)), "kind"])
    Path("steps.csv").write_text("\n".join([names, *words]))
    refused = invoke("fit", "steps.csv", *SMALL, code=1).stderr
    one_sentence(refused)
    assert "name it with --label-column" in refused


@pytest.mark.filterwarnings("default:.* do not change over time")
def test_a_column_of_numbers_taken_as_labels_is_named():
    """Rounded series with labels at the end look like series with labels in front."""
    X, y = labelled()
    np.savetxt("round.csv", np.column_stack([np.sign(X), y]), delimiter=",", fmt="%d")
    told = invoke("fit", "round.csv", *SMALL)
    # Several fits warn of the same series.
    assert told.stderr.count("2 of 18 training series in X do not change") == 1
    assert "Took the first column of round.csv as labels, 2 classes: -1 (" in told.stdout
    assert "--label-column" in told.stdout
    told = invoke("fit", "round.csv", *SMALL, "--label-column", "last")
    assert "as labels" not in told.stdout
    words = [",".join([f"c{k}", *map(str, x)]) for x, k in zip(X, y, strict=True)]
    Path("words.csv").write_text("\n".join(words))
    told = invoke("fit", "words.csv", *SMALL).stdout
    assert "2 classes: c1 (12), c2 (12)" in told
    json.loads(invoke("fit", "words.csv", *SMALL, "--json").stdout)


def test_a_table_of_one_sample_per_line_and_its_options():
    X, y = labelled()
    rows = [
        f"{10 * t};k{k};c{label};{value}".replace(".", ",")
        for k, (one, label) in enumerate(zip(X, y, strict=True))
        for t, value in enumerate(one)
    ]
    Path("long.csv").write_bytes("\n".join(["t;who;class;v", *rows]).encode("utf-16"))
    refused = invoke("fit", "long.csv", *SMALL, code=1).stderr
    one_sentence(refused)
    assert "--series-column" in refused
    columns = ["--series-column", "who"]
    refused = invoke("fit", "long.csv", *SMALL, *columns, code=1).stderr
    one_sentence(refused)
    assert "--decimal ," in refused
    told = invoke("fit", "long.csv", *SMALL, *columns, "--decimal", ",").stdout
    assert "one sample per line, 24 series of 1 channel and 12 steps" in told
    assert "2 classes (c1, c2)" in told
    refused = invoke("fit", "long.csv", *SMALL, "--drop", "t,who,what", code=1).stderr
    assert "no column 'what' to leave out" in refused


def test_semicolons_are_read_and_decimal_commas_named():
    X, y = labelled()
    lines = [";".join([str(k), *map(str, x)]) for x, k in zip(X, y, strict=True)]
    Path("points.csv").write_text("\n".join(lines))
    assert (
        "18 training and 6 test series of up to 12 steps"
        in invoke("fit", "points.csv", *SMALL).stdout
    )
    Path("commas.csv").write_text("\n".join(lines).replace(".", ","))
    refused = invoke("fit", "commas.csv", *SMALL, code=1).stderr
    one_sentence(refused)
    assert "decimal points in place of commas" in refused


def three_classes() -> None:
    X, y = labelled(60)
    y[::3] = 3
    np.savetxt("three.csv", np.column_stack([y, X]), delimiter=",")


def test_classes_are_chosen_alike_in_every_command():
    three_classes()
    few = ["--classes", "1,2"]
    told = json.loads(
        invoke("fit", "three.csv", *SMALL, *few, "-m", "m.gfm", "--json").stdout
    )
    assert (told["data"], told["classes"]) == ("three.csv, classes 1 and 2", [1, 2])
    assert told["n_train"] + told["n_test"] == 40
    scored = json.loads(invoke("score", "m.gfm", "three.csv", *few, "--json").stdout)
    assert scored["n_series"] == 40
    compared = ["evaluate", "three.csv", *SMALL, "--order", "0", *few, "--json"]
    record = json.loads(invoke(*compared).stdout)
    assert record["n_train"] + record["n_test"] == 40
    every = json.loads(invoke("fit", "three.csv", *SMALL, "--json").stdout)
    assert "means over 3 comparisons" in every["notes"][0]
    one = json.loads(invoke("fit", "three.csv", *SMALL, "--classes", "3", "--json").stdout)
    assert one["classes"] == ["3", "not 3"]
    refused = invoke("fit", "three.csv", "--classes", "1,9", code=1).stderr
    one_sentence(refused)
    assert "no class '9'; --classes may name 1, 2, 3" in refused


def test_control_characters_of_labels_do_not_reach_the_terminal():
    X, y = labelled()
    names = np.where(y == 1, "\x1b[31mred", "plain")
    lines = [",".join([name, *map(str, x)]) for x, name in zip(X, names, strict=True)]
    Path("red.csv").write_text("\n".join(lines))
    told = invoke("fit", "red.csv", *SMALL, "-m", "m.gfm").stdout
    for command in ("score", "predict"):
        told += invoke(command, "m.gfm", "red.csv").stdout
    assert "\x1b" not in told
    assert "\\x1b[31mred" in told


def test_what_unpacks_to_far_too_much_is_refused_at_once():
    Path("bomb.csv.gz").write_bytes(gzip.compress(b"0" * (2**26 + 1), 1))
    refused = invoke("fit", "bomb.csv.gz", code=1).stderr
    one_sentence(refused)
    assert "unpacks to more than 64 MiB" in refused


def test_what_is_read_is_not_written_over():
    X, y = labelled()
    rows = [",".join([f"c{k}", *map(str, x)]) for x, k in zip(X, y, strict=True)]
    path = Path("beats.csv")
    path.write_text("\n".join(rows))
    Path("link.csv").symlink_to(path)
    content = path.read_bytes()
    for command, option in (
        ("fit", "--model"),
        ("fit", "--report"),
        ("evaluate", "--report"),
        ("explore", "--out"),
    ):
        for name in ("beats.csv", "link.csv"):
            refused = invoke(command, "beats.csv", option, name, code=2).stderr
            one_sentence(refused)
            assert f"{option} and DATA" in refused
            assert "are the same file" in refused
    refused = invoke("fit", "beats.csv", "--model", "page.x", "--report", "page.x", code=2)
    assert "--report and --model are the same file" in refused.stderr
    given = "other.csv", "--test", "beats.csv", "--model", "beats.csv"
    assert "--model and --test are the same" in invoke("fit", *given, code=2).stderr
    assert path.read_bytes() == content


def test_options_with_names_may_be_repeated():
    X, y = synthetic_heartbeats(24, n_steps=12, rng=0)
    rows = [
        ",".join([f"c{label > 0:d}", *map(str, one), "", "3"])
        for label, one in zip(y, X, strict=True)
    ]
    Path("wide.csv").write_text("\n".join(rows))
    empty = invoke("fit", "wide.csv", *SMALL, code=1).stderr
    assert "leave out this position of every series with --drop" in empty
    for dropped in (("--drop", "13,14"), ("--drop", "13", "--drop", "14")):
        assert "up to 12 steps" in invoke("fit", "wide.csv", *SMALL, *dropped).stdout
