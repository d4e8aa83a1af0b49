"""Every command explains itself, and every error is one sentence with a code."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from greenfold._base.messages import Argument, ArgumentError, ArgumentTypeError, Refusal

from .conftest import ENVIRONMENT, invoke, one_sentence

COMMANDS = [
    ["demo"],
    ["fit"],
    ["predict"],
    ["score"],
    ["show"],
    ["evaluate"],
    ["forecast"],
    ["mask"],
    ["memory"],
    ["sweep"],
    ["study"],
    ["explore"],
    ["reproduce"],
    ["data", "list"],
    ["data", "path"],
    ["data", "fetch"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(command, monkeypatch):
    """And is wrapped once: lines end where the terminal does, not as the source does."""
    monkeypatch.setenv("COLUMNS", "80")
    text = invoke(*command, "--help").stdout
    assert "Example: greenfold" in text
    for option in ("--json", "--debug"):
        assert option in text
    # The demo brings its own data, memory is one of white noise, others have a file.
    alone = ["demo"], ["memory"], ["forecast"], ["show"]
    assert ("--data-dir" in text) != (command in alone)
    lines = text.split("╭")[0].splitlines()
    for line, following in pairwise(one.strip() for one in lines):
        if line and following and not line.startswith("Usage"):
            assert len(line) + 1 + len(following.split()[0]) > 76, (line, following)


def test_reproduce_names_its_figures_and_takes_no_seed():
    text = invoke("reproduce", "--help").stdout
    for name in ("fig1", "table1", "supplement", "beyond", "--redraw"):
        assert name in text
    assert "--seed" not in text


def test_numbers_and_ranges_in_words():
    from greenfold.cli.options import ranges

    assert ranges("0-3,7") == [0, 1, 2, 3, 7]
    assert ranges("3, 1-1") == [1, 3]
    for text in ("", "a", "1-", "-1", "1;2"):
        with pytest.raises(ValueError, match="invalid literal"):
            ranges(text)


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
        (["sweep"], "--compare"),
        (["sweep", "--compare", "Coffee"], "-e"),
        (["sweep", "-e", "X", "--resamples", "some"], "--resamples must be"),
        (["sweep", "-e", "X", "--jobs", "0"], "--jobs"),
        (["sweep", "-e", "X", "--jobs", "2", "--dask", "tcp://h:1"], "--dask"),
        (["sweep", "--compare", "--figures", "gif"], "--figures"),
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


def test_a_traceback_only_with_debug():
    from typer.testing import CliRunner

    from greenfold.cli.app import app

    result = CliRunner().invoke(app, ["fit", "absent.ts", "--debug"])
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_an_unexpected_error_is_still_one_sentence(monkeypatch, beats):
    import greenfold.apps.report.comparison as comparison

    monkeypatch.setattr(comparison, "compare", lambda *a, **k: {}["nothing"])
    result = invoke("fit", beats, code=1)
    one_sentence(result.stderr)
    assert "--debug" in result.stderr


COMPLETION = {
    "_GREENFOLD_COMPLETE": "complete_bash",
    "COMP_WORDS": "greenfold ev",
    "COMP_CWORD": "1",
}


def test_completion(monkeypatch, capsys):
    from greenfold.cli import main

    for name, value in COMPLETION.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["evaluate"]


@pytest.mark.contract
def test_completion_as_a_shell_asks_for_it():
    done = subprocess.run(
        [sys.executable, "-m", "greenfold"],
        env=ENVIRONMENT | COMPLETION,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "evaluate" in done.stdout


def test_advice_is_given_in_options(tmp_path):
    """For a file with gaps: advice in options of the command, not in Python."""
    rows: list[list[object]] = [[i % 2, *range(i, i + 6)] for i in range(8)]
    gap, padded = tmp_path / "gap.tsv", tmp_path / "padded.tsv"
    rows[3][3] = "NaN"
    gap.write_text("\n".join("\t".join(map(str, row)) for row in rows) + "\n")
    rows[3][3:] = ["NaN"] * 4
    padded.write_text("\n".join("\t".join(map(str, row)) for row in rows) + "\n")
    said = [invoke("fit", path, code=1).stderr for path in (gap, padded)]
    assert "fill them or leave the series out." in said[0]
    assert "or use --trim if the series have unequal lengths." in said[1]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (Refusal("use ", Argument("order", "exact"), "."), "use --order exact"),
        (Refusal("use ", Argument("readout", "mean"), "."), "use readout='mean'"),
        (Refusal("scale it", (", or use ", Argument("readout", "mean")), "."), "scale it"),
        (
            Refusal("cut it", (", or use ", Argument("missing", "trim")), "."),
            "cut it, or use --trim",
        ),
        (ArgumentError("eta", "be positive", -1), "--eta must be positive; got -1"),
        (ArgumentTypeError("eta", "be one number"), "--eta must be one number"),
        (
            ArgumentError("tau", "be positive", 0),
            "`tau` must be positive; got 0",
        ),  # not typed
        (ArgumentError("n_neurons", "be even", 15), "--neurons must be even; got 15"),
        (Refusal("name them with ", Argument("weights"), "."), "name them with --weights"),
        (Refusal("name them with ", Argument("names"), "."), "name them with `names`"),
        (Refusal("use fewer ", Argument("n_neurons"), "."), "use fewer --neurons"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_arguments_in_errors_are_options(monkeypatch, beats, said, told):
    import greenfold.apps.report.comparison as comparison

    def refuse(*_, **__):
        raise said

    monkeypatch.setattr(comparison, "compare", refuse)
    result = invoke("fit", beats, "--eta", 3, "-n", 15, code=1)
    assert result.stderr == f"greenfold: {told}.\n"


@pytest.mark.parametrize(
    ("part", "command"),
    [
        ("jinja2", ["fit", "absent.csv", "--report", "page.html"]),
        ("matplotlib", ["evaluate", "absent.csv", "--report", "page.html"]),
        ("jinja2", ["mask", "absent.csv", "absent.csv", "--report", "page.html"]),
        ("jinja2", ["demo"]),
        ("jinja2", ["explore", "absent.csv"]),
        ("matplotlib", ["reproduce", "fig1"]),
        ("matplotlib", ["study", "Absent"]),
        ("matplotlib", ["sweep", "-e", "Absent", "--compare"]),
    ],
)
def test_a_missing_part_is_told_before_the_work(monkeypatch, part, command):
    monkeypatch.setitem(sys.modules, part, None)
    result = invoke(*command, code=1)
    one_sentence(result.stderr)
    assert f"needs {part}" in result.stderr


def test_no_command_takes_many_parameters():
    """Options are in groups; a long list would be a group without a name."""
    import inspect

    from greenfold.cli import app

    for command in app.app.registered_commands:
        assert command.callback is not None
        own = inspect.unwrap(command.callback)
        assert len(own.__code__.co_varnames[: own.__code__.co_argcount]) <= 15, own


def test_every_option_is_described():
    """The help of an option is a line in the docstring of its group or command."""
    from typer.main import get_command

    from greenfold.cli import app

    below = [get_command(app.app)]
    while below:
        command = below.pop()
        below += getattr(command, "commands", {}).values()
        for option in command.params:
            described = getattr(option, "hidden", False) or getattr(option, "help", "")
            assert described, (command.name, option.name)
            assert " : " not in (command.help or "")


@pytest.mark.parametrize(
    ("command", "name", "default"),
    [
        ("fit", "neurons", 100),
        ("explore", "neurons", 12),
        ("memory", "neurons", 100),
        ("fit", "eta", "cv"),
        ("evaluate", "eta", "10"),
        ("evaluate", "noise", 0.1),
        ("score", "noise", 0.0),
        ("fit", "holdout", 0.25),
        ("evaluate", "holdout", 0.25),
    ],
)
def test_a_group_has_the_defaults_of_its_command(command, name, default):
    from typer.main import get_command

    from greenfold.cli.app import app

    group: Any = get_command(app)
    (option,) = (one for one in group.commands[command].params if one.name == name)
    assert option.default == default


def test_no_command_has_more_than_fifteen_parameters():
    """Options that go together are one object."""
    from greenfold.cli.app import _OWN

    for one in _OWN:
        assert len(inspect.signature(one.__wrapped__).parameters) <= 15, one.__name__


def parameters() -> dict[str, dict[str, Any]]:
    """Those of each command, by their names."""
    from typer.main import get_command

    from greenfold.cli.app import app

    group: Any = get_command(app)
    return {k: {one.name: one for one in each.params} for k, each in group.commands.items()}


@pytest.mark.parametrize("option", ["g", "seed", "neurons", "eta", "noise", "classes"])
def test_an_option_has_one_default_or_says_why(option):
    found = {name: one[option] for name, one in parameters().items() if option in one}
    usual = found["fit"]
    assert len(found) > 2
    for name, one in found.items():
        if name in ("sweep", "study"):  # lists, whose default the help says
            assert one.default is None
        elif one.default != usual.default:
            assert one.help != usual.help, name


def test_what_matters_of_fit_fits_a_screen(monkeypatch):
    """The help up to the end of the first panel of options, on 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERMINAL_WIDTH", "80")
    text = invoke("fit", "--help").stdout
    first = text.partition("Options ─")[2].partition("╰")[0]
    for option in ("model", "report", "classes", "test", "eta", "noise", "seed"):
        assert f"--{option} " in first
    assert text.partition("╭─ Data")[0].count("\n") <= 60
