"""Recordings from files: what was written comes back, gaps are refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from greenfold.datasets import DataError, read_recording, read_sampled

HEADER = "time,drive_0,drive_1,state_0"


@pytest.fixture
def values(rng):
    table = rng.standard_normal((30, 4))
    table[:, 0] = 0.25 * np.arange(30)
    return table


def check(recording, values):
    np.testing.assert_allclose(recording.drive, values[:, 1:3], rtol=1e-15)
    np.testing.assert_allclose(recording.states, values[:, 3:], rtol=1e-15)
    assert recording.dt == pytest.approx(0.25)


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(tmp_path, values, delimiter, decimal):
    if delimiter == decimal:
        pytest.skip("not clear")
    path = tmp_path / "it.csv"
    lines = [delimiter.join(map(repr, row)) for row in values.tolist()]
    text = "\n".join(lines).replace(".", decimal)
    path.write_text(f"{HEADER.replace(',', delimiter)}\n{text}\n")
    recording = read_recording(path)
    check(recording, values)
    assert recording.drive_names == ("drive_0", "drive_1")


def test_npz(tmp_path, values):
    path = tmp_path / "it.npz"
    np.savez(path, drive=values[:, 1:3], states=values[:, 3], dt=0.25)
    check(read_recording(path), values)


@pytest.mark.needs("pyarrow")
def test_parquet(tmp_path, values):
    import pandas

    path = tmp_path / "it.parquet"
    pandas.DataFrame(values, columns=HEADER.split(",")).to_parquet(path)
    check(read_recording(path), values)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="cannot be read as .parquet"):
        read_recording(path)


def test_columns_by_name(tmp_path, values):
    path = tmp_path / "it.csv"
    np.savetxt(path, values, delimiter=",", header="t,laser,heater,photodiode", comments="")
    with pytest.raises(DataError, match="no column for `drive` among t, laser, heater"):
        read_recording(path)
    recording = read_recording(path, drive=["heater", "laser"], states=["photodiode"])
    np.testing.assert_allclose(recording.drive, values[:, [2, 1]])
    with pytest.raises(DataError, match="no column 'lens', asked for with `states`"):
        read_recording(path, drive=["laser"], states=["lens"])
    with pytest.raises(DataError, match="'laser' as both drive and state"):
        read_recording(path, drive=["laser"], states=["laser"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,u1,y1\n0,1,2\n1,2,3\n2,2,1\n5,1,2\n", r"gap in time after sample 2 \(t = 2: 3"),
        ("t,u1,y1\n0,1,2\n0,2,3\n0,1,2\n", "times that do not increase"),
        ("t,u1,y1\n0,1,2\n1,2\n", "2 values in line 3, .* cut the file there"),
        ("t,u1,y1\n0,1,2\n1,two,3\n", "'two' instead of a number in line 3, position 1"),
        ("0,1,2\n1,2,3\n", "begins with numbers"),
        ("u1,u1,y1\n1,2,3\n", "two columns named 'u1'"),
        ("u1,y1\n", "is empty"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = tmp_path / "it.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_recording(path)


def test_empty_fields_are_missing(tmp_path):
    path = tmp_path / "it.csv"
    path.write_text("u1,y1\n1,2\n,3\n2,2\n")
    assert np.isnan(read_recording(path).drive[1, 0])


def test_bad_npz(tmp_path, values):
    path = tmp_path / "it.npz"
    np.savez(path, drive=values[:, 1:3], states=values[:-1, 3])
    with pytest.raises(DataError, match="'states' of 29 samples .* one clock"):
        read_recording(path)
    np.savez(path, drive=values[:, 1:3], states=np.array(["a"]))
    with pytest.raises(DataError, match="holds <U1 in 'states', not numbers"):
        read_recording(path)
    np.savez(path, drive=values[:, 1:3], states=values[:, 3])
    path.write_bytes(path.read_bytes()[:-200])  # cut off
    with pytest.raises(DataError, match=r"write it again with numpy.savez\(path, drive="):
        read_recording(path)
    with pytest.raises(DataError, match="suffix '.wav'"):
        read_recording(tmp_path / "it.wav")


def test_a_series_is_every_column_but_the_time(tmp_path):
    path = tmp_path / "series.csv"
    path.write_text("time;a;b\n0;1;2\n0.5;3;4\n1.0;5;6\n")
    series = read_sampled(path)
    assert (series.names, series.dt) == (("a", "b"), 0.5)
    assert series.values.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert read_sampled(path, columns=["b"]).values.tolist() == [[2], [4], [6]]
    with pytest.raises(DataError, match="has no column 'c', asked for with `columns`"):
        read_sampled(path, columns=["c"])
    path.write_text("t\n3\n4\n")
    assert read_sampled(path).names == ("t",)
    path.write_text("day,x\nMonday,1\nTuesday,2\n")
    assert read_sampled(path).names == ("x",)
    path.write_text("y,x\n3.x,1\n2,2\n")
    with pytest.raises(DataError, match="'3.x' instead of a number in line 2"):
        read_sampled(path)  # numbers follow: a mistyped one, not a column of text
    np.savez(tmp_path / "it.npz", x=np.ones((4, 2)), dt=0.1)
    found = read_sampled(tmp_path / "it.npz")
    assert (found.values.shape, found.dt) == ((4, 2), 0.1)


def test_columns_by_pattern():
    content = b"a,x1,x2,in_1,in_2,x3\n" + b"\n".join([b"1,2,3,4,5,6"] * 3)
    found = read_recording(
        io.BytesIO(content), format="csv", drive=["in*"], states=["x3", "x*"]
    )
    assert found.drive_names == ("in_1", "in_2")
    assert found.state_names == ("x3", "x1", "x2")
    with pytest.raises(DataError, match=r"no column 'z\*', asked for with `states`"):
        read_recording(io.BytesIO(content), format="csv", drive="in*", states="z*")


@pytest.mark.parametrize(
    ("text", "names", "dt", "end"),
    [
        ("1\n2.5\n3\n", ("value",), None, 2),
        ("1700,5\n1701,11\n1702,16\n", ("column_2",), 1, 1702),
        ("5,1\n11,2\n16,1\n", ("column_1", "column_2"), None, 2),
        ("2020-01-01,5\n2020-01-02,6\n2020-01-03,8\n", ("column_2",), None, 2),
        ("YEAR,SUN SPOTS\n1700,5\n1701,11\n1702,9\n", ("SUN SPOTS",), 1, 1702),
        (",x,y\n0,1,2\n1,2,3\n2,3,5\n", ("x", "y"), 1, 2),
        ("0,1\n.1,.3\n.4,.5\n.9,.7\n", ("0", "1"), None, 2),
        ("year,v\n1,3\n1,4\n2,5\n", ("year", "v"), None, 2),
    ],
)
def test_a_series_needs_no_names(text, names, dt, end):
    series = read_sampled(io.BytesIO(text.encode()), format="csv")
    assert (series.names, series.dt, series.end) == (names, dt, end)


def test_the_time_of_a_series_may_be_named():
    text = b"s,x\n0,1\n2,3\n4,7\n"
    series = read_sampled(io.BytesIO(text), time="s", format="csv")
    assert (series.names, series.dt, series.end) == (("x",), 2, 4)
    with pytest.raises(DataError, match="has no column 'z', asked for with `time`"):
        read_sampled(io.BytesIO(text), time="z", format="csv")
    with pytest.raises(DataError, match="has times that do not increase"):
        read_sampled(io.BytesIO(b"s,x\n2,1\n1,3\n0,7\n"), time="s", format="csv")
    with pytest.raises(DataError, match="has 1 values in line 2, but the first line has 2"):
        read_sampled(io.BytesIO(b"1,2\n3\n4,5\n"), format="csv")


@pytest.mark.needs("pandas")
@pytest.mark.parametrize(
    ("start", "rule", "form"),
    [
        ("2019-12-31", "D", "%Y-%m-%d"),
        ("2020-02-28 21:00", "3h", "%Y-%m-%d %H:%M:%S"),
        ("2020-02-28 21:00", "90s", "%Y-%m-%dT%H:%M:%SZ"),
        ("2019-11-30", "ME", "%d.%m.%Y"),
        ("2019-11-01", "MS", "%b %Y"),
        ("2019-11-01", "MS", "%Y-%m"),
        ("2019-10-01", "QS", None),
        ("2020-01-02", "B", "%m/%d/%Y"),
        ("2020-01-02", "W", "%Y%m%d"),
        ("2016-02-29", "YE", "%d/%m/%Y"),
    ],
)
def test_dates_are_continued_as_pandas_does(start, rule, form):
    import pandas

    dates = pandas.date_range(start, periods=60, freq=rule)
    written = dates.strftime(form) if form else dates.to_period("Q").astype(str)
    lines = [f"{one};{i},5" for i, one in enumerate(written[:50])]
    text = "\n".join(["Date;x", *lines])
    series = read_sampled(io.BytesIO(text.encode()), format="csv")
    assert (series.names, series.notes) == (("x",), ())
    assert series.values[:, 0].tolist() == [i + 0.5 for i in range(50)]
    assert (series.times(np.arange(1, 11)) == dates[50:].to_numpy()).all()
    named = read_sampled(io.BytesIO(text.encode()), format="csv", time="Date")
    assert (named.times([-49, 0]) == dates[[0, 49]].to_numpy()).all()


def test_dates_without_a_rule_are_left_out_and_told():
    def read(column, **given):
        text = "\n".join(["when,x", *(f"{one},{i}" for i, one in enumerate(column))])
        return read_sampled(io.BytesIO(text.encode()), format="csv", **given)

    weekdays = np.busday_offset(np.datetime64("2024-01-01"), np.arange(60))
    closed = np.delete(weekdays, [10, 31])  # holidays
    assert read(closed).times([1, 2]).astype(str).tolist() == ["2024-03-25", "2024-03-26"]
    gap = read(["2024-01-01", "2024-01-02", "2024-01-09", "2024-01-10"])
    assert gap.notes == (
        "Left out column 'when', whose dates are not at regular distances (2024-01-09 "
        "follows 2024-01-02).",
    )
    assert gap.times([1, 2]).tolist() == [1, 2]
    with pytest.raises(DataError, match="follows 2024-01-02., so it cannot be the `t"):
        read(["2024-01-01", "2024-01-02", "2024-01-09", "2024-01-10"], time="when")
    assert read(["a", "b", "a"]).notes == ("Left out column 'when', which is text.",)
    with pytest.raises(DataError, match="dates out of order .*: sort the samples, the"):
        read(["2024-01-03", "2024-01-02", "2024-01-01"])
    with pytest.raises(DataError, match="order .2024-01-02 follows 2024-01-05.: sort"):
        read([f"2024-01-{day:02d}" for day in (1, 5, 2, 4, 3)])
    with pytest.raises(
        DataError, match="'date', asked for with `time`; its columns are wh"
    ):
        read(["2024-01-03", "2024-01-02", "2024-01-01"], time="date")


@pytest.mark.needs("pyarrow")
def test_dates_of_parquet(tmp_path):
    import pandas

    dates = pandas.date_range("2024-01-31", periods=5, freq="ME")
    table = pandas.DataFrame({"day": dates, "who": list("abcde"), "x": np.arange(5.0)})
    table.to_parquet(tmp_path / "it.parquet")
    series = read_sampled(tmp_path / "it.parquet")
    assert series.values[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert series.times([1]).astype(str).tolist() == ["2024-06-30"]
    assert series.notes == ("Left out column 'who', which is text.",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("v\n1,5\n-2\n,25\n", [[1.5], [-2], [0.25]]),
        ("t;v\n0;1,5\n1;2e-1\n2;-,5\n", [[1.5], [0.2], [-0.5]]),
        ("  1.5  2\n 3.5   4\n  9.5   6\n", [[1.5, 2], [3.5, 4], [9.5, 6]]),
        ("1,5 2\n3,5 4\n9,5 6\n", [[1.5, 2], [3.5, 4], [9.5, 6]]),
        ("a b\n1 2\n3 4\n", [[1, 2], [3, 4]]),
        ("0 1\n3 4\n4 4\n", [[0, 1], [3, 4], [4, 4]]),
    ],
)
def test_decimal_commas_and_blanks_between_numbers(text, values):
    found = read_sampled(io.BytesIO(text.encode()), format="csv")
    assert found.values.tolist() == values


def test_a_blank_line_of_one_column_is_a_missing_sample():
    found = read_sampled(io.BytesIO(b"x\n1\n2\n3\n\n\n"), format="csv")
    assert found.values.tolist() == [[1], [2], [3]]
    with pytest.raises(DataError, match="no value in column 'x' at sample 1 .* or cut the"):
        read_sampled(io.BytesIO(b"x\n1\n\n3\n"), format="csv")


def test_an_empty_column_is_left_out_and_told():
    text = b"x,y\n1,\n2,\n4,\n"
    found = read_sampled(io.BytesIO(text), format="csv")
    assert found.names == ("x",)
    assert found.notes == ("Left out column 'y', which is empty.",)
    with pytest.raises(DataError, match="no value in column 'y' at sample 0"):
        read_sampled(io.BytesIO(text), format="csv", columns=["y"])
    with pytest.raises(DataError, match="cut the file there, or name other `columns`"):
        read_sampled(io.BytesIO(b"x,y\n1,2\n2,\n4,3\n"), format="csv")


def written_by_another(path, values):
    """Write the table with the library of its format; return what that library reads."""
    columns = dict(zip(HEADER.split(","), values.T, strict=True))
    if path.suffix == ".npy":
        np.save(path, values[:, 1:])
        return np.load(path)
    if path.suffix == ".mat":
        from scipy.io import loadmat, savemat

        savemat(
            path, {"time": values[:, 0], "drive": values[:, 1:3], "state_0": values[:, 3]}
        )
        found = loadmat(path)
        return np.column_stack([found["drive"], found["state_0"].T])
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path, "w") as file:
            file["run/signals/time"], file["run/labels"] = values[:, 0], np.arange(3)
            file["run/signals/drive"] = values[:, 1:3].astype("f4").astype("f8")
            file["run/nodes/state"] = values[:, 3:, None]
            read: Any = file["run/signals/drive"]
            return np.column_stack([read[:], values[:, 3]])
    from nptdms import ChannelObject, TdmsFile, TdmsWriter

    step = {"wf_increment": 0.25}
    with TdmsWriter(path) as file:
        every = [
            ChannelObject("g", key, columns[key], step) for key in HEADER.split(",")[1:]
        ]
        file.write_segment(every)
    found = TdmsFile.read(path)
    return np.column_stack([found["g"][key][:] for key in HEADER.split(",")[1:]])


@pytest.mark.parametrize(
    "suffix",
    [
        ".npy",
        ".mat",
        pytest.param(".h5", marks=pytest.mark.needs("h5py")),
        pytest.param(".tdms", marks=pytest.mark.needs("nptdms")),
    ],
)
def test_other_formats_hold_what_another_reader_finds(tmp_path, values, suffix):
    path = tmp_path / f"it{suffix}"
    table = written_by_another(path, values)
    names: dict[str, Any] = {}
    if suffix == ".npy":
        names = {"drive": ["it_0", "it_1"], "states": ["it_2"]}
    found = read_recording(path, **names)
    np.testing.assert_array_equal(np.column_stack([found.drive, found.states]), table)
    assert found.dt == (None if suffix == ".npy" else pytest.approx(0.25))
    content = path.read_bytes()
    for cut in (content[: len(content) * 2 // 3], content[:100], b""):
        path.write_bytes(cut)
        with pytest.raises(DataError) as caught:
            read_recording(path, **names)
        assert "it" in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.needs("h5py")
def test_matlab_7_3_stores_columns_first_behind_a_header(tmp_path, values):
    import h5py

    path = tmp_path / "it.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["drive"], file["state_0"] = values[:, 1:3].T, values[:, 3:].T
        file["time"] = values[:, :1].T
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file")
    check(read_recording(path), values)


def test_the_channels_of_one_recording_may_be_in_several_files(tmp_path, values):
    first, second = tmp_path / "drive.npy", tmp_path / "state.npy"
    np.save(first, values[:, 1:3])
    np.save(second, values[:, 3])
    found = read_recording([first, second], states=["state"])
    np.testing.assert_array_equal(found.drive, values[:, 1:3])
    np.testing.assert_array_equal(found.states, values[:, 3:])
    np.save(second, values[:-2, 3])
    with pytest.raises(DataError, match=r"drive.npy, .*state.npy` holds 'state' of 28"):
        read_recording([first, second], states=["state"])
    with pytest.raises(DataError, match="'drive_0', and so has one of the other"):
        read_recording([first, first])
    np.save(first, np.zeros((3, 2, 2)))
    with pytest.raises(DataError, match=r"has the shape \(3, 2, 2\); it must be"):
        read_recording(first)


SCOPE = """Model,DPO4104B
Horizontal Units,s
Sample Interval,0.25

TIME,CH1,CH2,TRIG
s,V,V,V
0,0.5,1,0
0.25,1.5,2,5
0.5,2.5,3,5
0.75,3.5,4,0
1,4.5,5,5
1.25,5.5,6,0
"""


def test_the_settings_of_an_oscilloscope_are_skipped_and_its_trigger_samples():
    how: dict[str, Any] = {"format": "csv", "drive": ["CH1"], "states": ["CH2"]}
    found = read_recording(io.BytesIO(SCOPE.encode()), **how)
    assert found.drive.ravel().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert found.dt == pytest.approx(0.25)
    found = read_recording(io.BytesIO(SCOPE.encode()), trigger="TRIG", **how)
    assert found.states.ravel().tolist() == [2, 5]
    assert found.dt == pytest.approx(0.75)
    other: dict[str, Any] = how | {"drive": ["TRIG"], "trigger": "CH1"}
    with pytest.raises(DataError, match="trigger 'CH1' that rises only 1 times"):
        read_recording(io.BytesIO(SCOPE.encode()), **other)
    lost = SCOPE.replace("3.5,4,0", "3.5,four,0")
    with pytest.raises(DataError, match="'four' instead of a number in line 9"):
        read_recording(io.BytesIO(lost.encode()), **how)
