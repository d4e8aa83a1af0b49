"""`greenfold forecast`, from a file to a table, a CSV, a model and a page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from greenfold import load
from greenfold.cli.forecast import _digits

from .conftest import invoke

FEW = ["--neurons", "15", "--steps", "20"]


@pytest.fixture(scope="module")
def values():
    # Not chaotic, where another rounding would be another series, hard for few neurons.
    t = 0.05 * np.arange(400)
    return np.column_stack(
        [np.sin(2 * t) + np.cos(3.3 * t), np.cos(2 * t), np.sin(3.3 * t)]
    )


@pytest.fixture
def sensor(tmp_path, values):
    """A CSV file with a time column."""
    path = tmp_path / "sensor.csv"
    time = 0.05 * np.arange(400)[:, None]
    np.savetxt(
        path, np.hstack([time, values]), delimiter=",", header="time,x,y,z", comments=""
    )
    return path


def test_everything_it_writes(sensor, tmp_path):
    paths = {name: tmp_path / f"it.{name}" for name in ("csv", "gfm", "html")}
    done = invoke(
        "forecast", sensor, *FEW,
        "--out", paths["csv"], "--model", paths["gfm"], "--report", paths["html"],
    )  # fmt: skip
    for row in ("forecaster: ", "drawn weights", "ridge on delays", "last value"):
        assert row in done.stdout
    told = " ".join(done.stdout.split())
    assert "deviations (standard deviations of the first 300 samples" in told
    assert "The 90 % band contains" in done.stdout
    assert "What follows the 400 samples, with a 90 % band:\n  20: x" in done.stdout
    lines = paths["csv"].read_text().splitlines()
    assert lines[0].startswith("time,x,y,z,x_lower")
    assert len(lines) == 21
    assert float(lines[1].split(",")[0]) == pytest.approx(400 * 0.05)  # time goes on
    model = load(paths["gfm"])
    first = [float(one) for one in lines[1].split(",")[1:4]]
    assert model.forecast(1)[0] == pytest.approx(first, rel=1e-12)
    page = paths["html"].read_text()
    assert "Forecast of sensor.csv" in page
    assert page.count("<figure") == 7
    assert "ridge on delays</td>" in page


def test_json_and_columns(sensor):
    done = invoke("forecast", sensor, *FEW, "--columns", "z,x", "--json")
    record = json.loads(done.stdout)
    assert record["channels"] == ["z", "x"]
    assert np.shape(record["forecast"]) == (20, 2)
    table = record["backtest"]
    assert min(table["origins"]) == 300
    assert np.shape(table["errors"]["forecaster"]) == (10, 20)
    assert set(table["median_errors"]) >= {"forecaster", "drawn weights", "last value"}
    assert "residual" not in done.stdout


def test_what_is_wrong_is_said_in_one_line(sensor, tmp_path):
    gone = invoke("forecast", tmp_path / "gone.csv", *FEW, code=1)
    assert "gone.csv" in gone.stderr
    column = invoke("forecast", sensor, *FEW, "--columns", "w", code=1)
    assert "has no column 'w'" in column.stderr
    (tmp_path / "nan.csv").write_text("a\n" + "1\n2\n" * 20 + "nan\n")
    missing = invoke("forecast", tmp_path / "nan.csv", *FEW, code=1)
    assert "has no value in column 'a' at sample 40" in missing.stderr
    (tmp_path / "short.csv").write_text("a\n1\n2\n3\n")
    short = invoke("forecast", tmp_path / "short.csv", *FEW, code=1)
    assert "`series` must have at least 20 samples" in short.stderr
    built_in = invoke("forecast", "lorenz", *FEW, "--columns", "x", code=2)
    assert "--columns is for files; lorenz is built in" in built_in.stderr
    for one in (gone, column, missing, short, built_in):
        assert one.stderr.count("\n") == 1


def test_dates_are_skipped_and_files_kept_apart(sensor, tmp_path):
    lines = sensor.read_text().splitlines()
    dated = tmp_path / "dated.csv"
    rows = [f"2024-01-01 00:00:{i % 60:02d};{one}" for i, one in enumerate(lines[1:])]
    dated.write_text("\n".join(["date;" + lines[0], *rows]).replace(",", ";"))
    record = json.loads(invoke("forecast", dated, *FEW, "--json").stdout)
    assert record["channels"] == ["x", "y", "z"]
    content = sensor.read_bytes()
    for option in ("--out", "--model"):
        done = invoke("forecast", sensor, *FEW, option, sensor, code=2)
        assert "are the same file" in done.stderr
    assert sensor.read_bytes() == content


def test_one_column_of_numbers_is_enough(tmp_path):
    path = tmp_path / "numbers.csv"
    rng = np.random.default_rng(0)
    wave = 50 + 40 * np.sin(np.arange(200) * np.pi / 6) + rng.standard_normal(200)
    np.savetxt(path, wave)
    done = invoke("forecast", path, "--neurons", 10)
    assert "last season (12 steps)" in done.stdout
    assert "  step 1: value " in done.stdout
    years = np.column_stack([1700 + np.arange(200), wave])
    np.savetxt(path, years, delimiter=",", header="YEAR,ACTIVITY", comments="")
    done = invoke(
        "forecast", path, "--neurons", 10, "--origins", 3, "--out", path.with_name("f.csv")
    )
    assert (
        "(standard deviations of the first 150 samples, to which all were fitted), of 3 "
        "forecasts of 20 steps." in " ".join(done.stdout.split())
    )
    assert "  1900: ACTIVITY " in done.stdout
    lines = path.with_name("f.csv").read_text().splitlines()
    assert lines[0] == "time,ACTIVITY,ACTIVITY_lower,ACTIVITY_upper"
    assert len(lines) == 21
    named = invoke("forecast", path, "--neurons", 10, "--time", "ACTIVITY", code=1)
    assert "has times that do not increase" in named.stderr


def test_dates_go_on_and_a_constant_column_changes_no_error(tmp_path):
    days = np.arange(np.datetime64("2024-01-01"), np.datetime64("2024-04-01"))
    wave = np.sin(0.5 * np.arange(91)) + 0.1 * np.cos(np.arange(91) ** 2)
    alone = [f"{day},{one:.6f}" for day, one in zip(days, wave, strict=True)]
    records = {}
    for name, header, end in (("one", "date,x", ""), ("two", "date,x,station", ",7")):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([header, *(line + end for line in alone)]))
        given = ["forecast", path, "--neurons", 8, "--steps", 3]
        records[name] = json.loads(invoke(*given, "--json").stdout)
    one, two = records["one"], records["two"]
    assert two["backtest"] == one["backtest"]
    assert two["chosen"] == one["chosen"]
    assert two["channels"] == ["x"]
    assert "Left out column 'station', which does not vary." in two["notes"]
    assert one["times"] == ["2024-04-01", "2024-04-02", "2024-04-03"]
    done = invoke(*given, "--out", tmp_path / "f.csv", "--report", tmp_path / "f.html")
    assert "  2024-04-01: x " in done.stdout
    lines = (tmp_path / "f.csv").read_text().splitlines()
    assert lines[0] == "date,x,x_lower,x_upper"
    assert lines[3].startswith("2024-04-03,")
    assert "<!-- 2024-Apr -->" in (tmp_path / "f.html").read_text()  # on the axis


def test_digits_resolve_what_varies():
    """A counter that varies by one in a billion, a plain channel, and a constant one."""
    t = np.arange(50.0)
    values = np.column_stack([1e9 + np.sin(t), 1e300 * np.sin(t), np.full(50, 2.0)])
    digits = _digits(values)
    # A thousandth of the deviation of 0.7 is seen at the third place behind the point.
    assert digits == [13, 4, 15]
    assert f"{values[1, 0]:.{digits[0]}g}" == "1000000000.841"


def test_many_channels_are_not_all_printed(tmp_path):
    t = np.arange(60)[:, None]
    np.savetxt(tmp_path / "field.csv", np.sin(0.3 * t + np.arange(7)), delimiter=",")
    shown = invoke("forecast", tmp_path / "field.csv", "--neurons", 8, "--steps", 1).stdout
    (line,) = (one for one in shown.splitlines() if one.startswith("  step 1:"))
    assert line.endswith("and 3 more channels")
    assert line.count(" to ") == 4
