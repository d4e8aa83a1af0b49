"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from greenfold.datasets import synthetic_heartbeats, write_npz

pytest.importorskip("typer")

from typer.testing import CliRunner

from greenfold.classifier.model_file import load
from greenfold.cli.app import app

SMALL = ["--neurons", "15"]
COMMANDS = [
    ["demo"],
    ["fit"],
    ["predict"],
    ["evaluate"],
    ["reproduce"],
    ["data", "list"],
    ["data", "path"],
    ["data", "fetch"],
]
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands see an empty folder, no data and no cache of this machine."""
    monkeypatch.delenv("GREENFOLD_DATA", raising=False)
    monkeypatch.setenv("GREENFOLD_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def beats(tmp_path: Path) -> Path:
    """A small file of synthetic beats, two classes."""
    X, y = synthetic_heartbeats(60, n_steps=24, rng=3)
    write_npz(tmp_path / "beats.npz", X, np.where(y > 0, "normal", "ectopic"))
    return tmp_path / "beats.npz"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A data directory with one small set."""
    folder = tmp_path / "data" / "ucr" / "Tiny"
    folder.mkdir(parents=True)
    X, y = synthetic_heartbeats(60, n_steps=16, rng=4)
    for name, part in (("TRAIN", slice(40)), ("TEST", slice(40, 60))):
        lines = [
            "\t".join([str(label), *map(repr, map(float, one))])
            for one, label in zip(X[part], y[part], strict=True)
        ]
        (folder / f"Tiny_{name}.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


def invoke(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == code, (result.stdout, result.stderr)
    assert "Traceback" not in result.stderr
    return result


def spawn(*arguments: object, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "greenfold", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=ENVIRONMENT, **(pipes | options))


def one_sentence(text: str) -> None:
    assert text.startswith("greenfold: ")
    assert text.count("\n") == 1
    assert text.endswith((".\n", "?\n", "!\n"))


def test_fit_predict_round_trip(beats):
    fitted = json.loads(
        invoke("fit", beats, "--model", "m.gfm", "--holdout", 0.5, *SMALL, "--json").stdout
    )
    assert fitted["n_train"] + fitted["n_test"] == 60
    assert fitted["judged_on"] == "test"
    assert fitted["classes"] == ["ectopic", "normal"]
    assert fitted["soft_margin"] <= fitted["soft_margin_bound"]
    told = json.loads(invoke("predict", "m.gfm", beats, "--proba", "--json").stdout)
    assert len(told["predictions"]) == 60
    np.testing.assert_allclose(np.sum(told["probabilities"], axis=1), 1)
    assert told["accuracy"] > 0.7
    lines = invoke("predict", "m.gfm", beats).stdout.splitlines()
    assert lines == told["predictions"]
    classifier = load("m.gfm")
    assert lines == classifier.predict(np.load(beats)["X"].reshape(60, 24)).tolist()


def test_fit_prints_the_certificate_and_repeats_itself(beats):
    first = invoke("fit", beats, "--model", "a.gfm", "--seed", 5, *SMALL).stdout
    assert "upper bound" in first
    assert "training accuracy" in first
    invoke("fit", beats, "--model", "b.gfm", "--seed", 5, *SMALL)
    invoke("fit", beats, "--model", "c.gfm", "--seed", 6, *SMALL)
    a, b, c = (load(f"{name}.gfm").u_ for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)


@pytest.mark.parametrize("eta", ["10", "cv"])
def test_evaluate_compares_four(beats, eta):
    found = json.loads(
        invoke("evaluate", beats, *SMALL, "--eta", eta, "--alpha", 0.02, "--json").stdout
    )
    rows = found["rows"]
    assert [(row["projection"], row["order"]) for row in rows] == [
        ("random", 0),
        ("optimised", 0),
        ("random", 1),
        ("optimised", 1),
    ]
    assert rows[0]["soft_margin_bound"] is not None
    assert rows[3]["soft_margin_bound"] is None
    if eta == "10":
        assert rows[1]["proven_optimal"]
        assert rows[0]["soft_margin"] < rows[1]["soft_margin"]
        assert rows[0]["soft_margin_bound"] == rows[1]["soft_margin_bound"]
        assert rows[0]["accuracy_under_noise"] < rows[1]["accuracy_under_noise"]
    assert len(found["random_draws"]["accuracy"]) == 10


def test_the_table_fits_eighty_columns(beats, monkeypatch):
    from rich.console import Console

    import greenfold.cli.show as show

    monkeypatch.setattr(show, "console", lambda: Console(width=80))
    text = invoke("evaluate", beats, *SMALL, "--alpha", 0.02).stdout
    assert "…" not in text
    assert "non-linear" in text
    assert max(map(len, text.splitlines())) <= 80


def test_named_data_sets(archive):
    where = ["--data-dir", archive]
    listed = json.loads(invoke("data", "list", *where, "--json").stdout)
    assert [one["name"] for one in listed["datasets"]] == ["Tiny"]
    assert invoke("data", "path", "Tiny", *where).stdout.strip().endswith("Tiny")
    table = invoke("evaluate", "Tiny", *where, *SMALL, "--order", 0).stdout
    assert "optimised" in table
    assert "40 training and 20 test series" in table
    invoke("fit", "Tiny", "--model", "m.gfm", *where, *SMALL)
    for part, count in (("test", 20), ("train", 40), ("all", 60)):
        made = invoke("predict", "m.gfm", "Tiny", "--part", part, *where)
        assert len(made.stdout.splitlines()) == count
    wrong = invoke("fit", "Tinny", *where, code=1)
    one_sentence(wrong.stderr)
    assert "Tiny" in wrong.stderr
    one_sentence(invoke("fit", "Tiny", "--test", "x.ts", *where, code=2).stderr)


def test_a_report_is_written_where_it_was_asked_for(beats):
    made = invoke("evaluate", beats, *SMALL, "--order", 0, "--report", "page.html")
    assert str(Path("page.html").absolute()) in made.stdout
    assert Path("page.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command):
    text = invoke(*command, "--help").stdout
    assert "Example: greenfold" in text
    for option in ("--json", "--debug"):
        assert option in text
    assert ("--data-dir" in text) != (command == ["demo"])  # which brings its own


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["fitt"], "fitt"),
        (["fit"], "DATA"),
        (["fit", "x.ts", "--order", "many"], "--order"),
        (["fit", "x.ts", "--eta", "-1"], "--eta"),
        (["fit", "x.ts", "--tau", "slow"], "--tau"),
        (["fit", "x.ts", "--model", "no/such/folder/m"], "--model"),
        (["fit", "x.ts", "--report", "."], "--report"),
        (["predict", "m"], "DATA"),
        (["data", "fetch"], "NAME"),
        (["fit", "x.ts", "--colour"], "--colour"),
    ],
)
def test_wrong_usage_is_two_and_one_sentence(arguments, part):
    result = invoke(*arguments, code=2)
    one_sentence(result.stderr)
    assert part in result.stderr
    assert result.stdout == ""


GARBLED = {
    "noise.ts": os.urandom(500),
    "empty.tsv": b"",
    "words.csv": b"a,b,c\nd,e,f\n",
    "cut.npz": b"PK\x03\x04" + b"\0" * 40,
    "script.arff": b"@data\n<script>alert(1)</script>,1\n",
    "hole.tsv": b"1\t0.5\tNaN\t0.5\n2\t0.1\t0.2\t0.3\n",
    "alone.tsv": b"1\t0.5\t0.6\n1\t0.1\t0.2\n",
    "ends.tsv": b"1\t1e400\t0.5\n2\t0.1\t0.2\n",
    "what.xyz": b"?",
    "strange\nname.ts": b"\xff\xfe",
}


@pytest.mark.parametrize("name", GARBLED, ids=repr)
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_garbled_data_give_one_sentence(tmp_path, name, command):
    (tmp_path / name).write_bytes(GARBLED[name])
    result = invoke(command, tmp_path / name, "--json", code=1)
    one_sentence(result.stderr)
    assert result.stdout == ""


def test_garbled_models_give_one_sentence(tmp_path, beats):
    (tmp_path / "noise").write_bytes(os.urandom(300))
    (tmp_path / "empty").write_bytes(b"")
    invoke("fit", beats, "--model", "good", *SMALL)
    (tmp_path / "cut").write_bytes((tmp_path / "good").read_bytes()[:-100])
    for name in ("noise", "empty", "cut", "absent", "."):
        result = invoke("predict", name, beats, "--json", code=1)
        one_sentence(result.stderr)
        assert result.stdout == ""
    X, y = synthetic_heartbeats(6, n_steps=7, rng=0)
    write_npz("short.npz", X, y)
    one_sentence(invoke("predict", "good", "short.npz", code=1).stderr)


def test_a_traceback_only_with_debug():
    result = CliRunner().invoke(app, ["fit", "absent.ts", "--debug"])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_an_unexpected_error_is_still_one_sentence(monkeypatch, beats):
    import greenfold.report.comparison as comparison

    monkeypatch.setattr(comparison, "compare", lambda *a, **k: {}["nothing"])
    result = invoke("fit", beats, code=1)
    one_sentence(result.stderr)
    assert "--debug" in result.stderr


def test_pipes_stay_clean(beats):
    with spawn("evaluate", beats, *SMALL, "--order", 0, "--json") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == ""
    assert json.loads(out)["rows"]
    assert "\x1b" not in out


def test_a_reader_that_leaves_early(beats):
    invoke("fit", beats, "--model", "m.gfm", *SMALL)
    with spawn("predict", "m.gfm", beats) as process:
        assert process.stdout
        process.stdout.close()  # before anything was written
        assert process.stderr
        said = process.stderr.read()
        process.wait(60)
    assert said == ""
    assert process.returncode in (0, 1)


def test_progress_on_a_terminal(beats):
    ours, theirs = pty.openpty()
    with spawn("evaluate", beats, *SMALL, "--order", 0, "--json", stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the other side is gone
            pass
        assert process.stdout
        out = process.stdout.read()
    os.close(ours)
    assert b"ETA" in shown
    assert b"fitting" in shown
    assert json.loads(out)["rows"]


#: Runs the command line with one function replaced; the new one tells when it is called.
WATCHED = """
import sys, time
import greenfold._files as files
import greenfold.optimizers.run as run
from greenfold.cli import main

def watch(module, name, pause, call=1):
    real, calls = getattr(module, name), []
    def told(*arguments, **options):
        calls.append(name)
        if len(calls) == call:
            print("begun", flush=True)
            time.sleep(pause)
        return real(*arguments, **options)
    setattr(module, name, told)

{watch}
main(sys.argv[1:])
"""


def watched(watch: str, *arguments: object) -> subprocess.Popen:
    command = [sys.executable, "-c", WATCHED.format(watch=watch), *map(str, arguments)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True
    )
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    return process


def test_interrupt_ends_with_130_and_writes_nothing(beats):
    # From its second start on, `optimize` answers Ctrl-C with the best result so far and
    # goes on; the command must end all the same.
    with watched(
        "watch(run, 'ascend', 5.0, call=2)",
        *("fit", beats, "--order", 1, "--model", "m.gfm", *SMALL),
    ) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err == "greenfold: interrupted.\n"
    assert not Path("m.gfm").exists()


def test_kill_while_the_model_is_written(beats):
    invoke("fit", beats, "--model", "m.gfm", "--seed", 1, *SMALL)
    before = Path("m.gfm").read_bytes()
    command = ("fit", beats, "--model", "m.gfm", "--seed", 2, *SMALL)
    with watched("watch(files.os, 'replace', 60)", *command) as process:
        process.kill()
    assert Path("m.gfm").read_bytes() == before
    assert load("m.gfm").random_state == 1


def test_kill_at_any_time(beats):
    invoke("fit", beats, "--model", "m.gfm", "--seed", 1, *SMALL)
    command = ("fit", beats, "--model", "m.gfm", "--seed", 2, *SMALL)
    for pause in (0.0, 0.01, 0.05):
        with watched("watch(run.convex, 'solve', 0)", *command, "--certify") as process:
            try:
                process.wait(pause)
            except subprocess.TimeoutExpired:
                process.kill()
        assert load("m.gfm").random_state in (1, 2)


def test_completion():
    words = {"_GREENFOLD_COMPLETE": "complete_bash", "COMP_WORDS": "greenfold ev"}
    done = subprocess.run(
        [sys.executable, "-m", "greenfold"],
        env=ENVIRONMENT | words | {"COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "evaluate" in done.stdout


def test_the_library_does_not_need_the_extras():
    code = (
        "import sys, greenfold, greenfold.report\n"
        "extras = {'typer', 'rich', 'matplotlib', 'jinja2'} & set(sys.modules)\n"
        "assert not extras, extras\n"
        "sys.modules['typer'] = None\n"
        "from greenfold.cli import main\n"
        "main(['demo'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    one_sentence(done.stderr)
    assert "greenfold[cli]" in done.stderr


def test_advice_is_given_in_options(tmp_path):
    """Of a file with gaps: what can be done here, not what Python could."""
    rows: list[list[object]] = [[i % 2, *range(i, i + 6)] for i in range(8)]
    gap, padded = tmp_path / "gap.tsv", tmp_path / "padded.tsv"
    rows[3][3] = "NaN"
    gap.write_text("\n".join("\t".join(map(str, row)) for row in rows) + "\n")
    rows[3][3:] = ["NaN"] * 4
    padded.write_text("\n".join("\t".join(map(str, row)) for row in rows) + "\n")
    assert "fill them, or leave the series out" in spoken("fit", gap)
    assert "give --trim if the series have unequal lengths" in spoken("fit", padded)


def spoken(*arguments: object) -> str:
    """What a command says on stderr when it refuses the data."""
    process = spawn(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    return said if isinstance(said, str) else said.decode()
