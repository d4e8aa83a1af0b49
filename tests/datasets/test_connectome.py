"""Lists of edges, against pandas; and what is wrong with a file, in one sentence."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from greenfold import Reservoir
from greenfold.datasets import DataError, read_connectome
from greenfold.datasets.connectome import is_edge_list

from .conftest import one_sentence

#: Neighbouring 64-bit numbers, which float64 cannot tell apart.
IDS = [720575940596125868, 720575940596125869, 720575940596125870]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def edges(tmp_path):
    """A list of edges of each format, and the same edges as a table of pandas."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    ids = 720575940596125868 + np.arange(40)
    i, j = rng.integers(40, size=(2, 500))
    transmitter = np.array(["ACH", "GABA", "GLUT", "DA"])[rng.integers(4, size=40)]
    columns = {"pre_root_id": ids[i], "post_root_id": ids[j], "neuropil": "ME_R"}
    columns |= {"syn_count": rng.integers(1, 30, 500), "nt_type": transmitter[i]}
    return pandas.DataFrame(columns)


def of_pandas(table):
    """Return W by name as pandas sums it, signed by transmitter."""
    signs = table.nt_type.map({"ACH": 1, "DA": 1, "GABA": -1, "GLUT": -1})
    table = table.assign(w=table.syn_count * signs)
    made = table.pivot_table(
        index="post_root_id", columns="pre_root_id", values="w", aggfunc="sum"
    )
    names = sorted({*table.pre_root_id, *table.post_root_id})
    return names, made.reindex(index=names, columns=names).fillna(0).to_numpy()


@pytest.mark.needs("pandas")
@pytest.mark.parametrize("form", [".csv", ".tsv", ".csv.gz"])
def test_text_is_read_as_pandas_reads_it(edges, tmp_path, form):
    path = tmp_path / f"edges{form}"
    edges.to_csv(path, index=False, sep="\t" if form == ".tsv" else ",")
    found = read_connectome(path)
    names, W = of_pandas(edges)
    assert found.names.tolist() == list(map(str, names))
    np.testing.assert_array_equal(found.weights.toarray(), W)
    assert found.n_rows == 500
    np.testing.assert_array_equal(found.inhibitory, (W <= 0).all(0) & (W < 0).any(0))


@pytest.mark.needs("pandas")
@pytest.mark.needs("pyarrow")
@pytest.mark.parametrize("kind", ["int64", "uint64", "str", "category"])
def test_parquet_is_read_as_pandas_reads_it(edges, tmp_path, kind):
    names, W = of_pandas(edges)
    ends = dict.fromkeys(["pre_root_id", "post_root_id"], kind)
    edges.astype(ends).astype({"nt_type": "category"}).to_parquet(tmp_path / "e.parquet")
    found = read_connectome(tmp_path / "e.parquet")
    assert found.names.tolist() == list(map(str, names))
    np.testing.assert_array_equal(found.weights.toarray(), W)


@pytest.mark.needs("pandas")
@pytest.mark.needs("pyarrow")
def test_the_file_of_shiu_is_read_by_itself(tmp_path):
    pandas = pytest.importorskip("pandas")
    pre, post = [IDS[0], IDS[0], IDS[1]], [IDS[1], IDS[2], IDS[0]]
    columns = {"Presynaptic_ID": pre, "Postsynaptic_ID": post}
    columns |= {"Presynaptic_Index": [0, 0, 1], "Postsynaptic_Index": [1, 2, 0]}
    columns |= {"Connectivity": [3, 4, 5], "Excitatory": [1, 1, -1]}
    columns["Excitatory x Connectivity"] = [3, 4, -5]
    pandas.DataFrame(columns).to_parquet(tmp_path / "fly.parquet")
    listing = write(
        tmp_path / "cells.csv", "," + "Completed\n" + "\n".join(f"{i},True" for i in IDS)
    )
    W = [[0, -5, 0], [3, 0, 0], [4, 0, 0]]
    ways: list[dict[str, Any]] = [{}, {"weight": "Excitatory x Connectivity"}]
    ways.append({"cells": listing})
    for more in ways:
        found = read_connectome(tmp_path / "fly.parquet", **more)
        assert found.names.tolist() == list(map(str, IDS))
        assert found.weights.toarray().tolist() == W
        assert found.inhibitory.tolist() == [False, True, False]
    by_index: dict[str, Any] = {
        "source": "Presynaptic_Index",
        "target": "Postsynaptic_Index",
    }
    found = read_connectome(tmp_path / "fly.parquet", **by_index)
    assert found.names.tolist() == ["0", "1", "2"]


@pytest.mark.needs("data")
def test_the_worm_is_read_by_itself(real_data):
    path = real_data / "connectome" / "celegans_hermaphrodite_edges.csv"
    worm = read_connectome(path)
    assert (len(worm.names), worm.n_rows) == (448, 7379)
    assert "AVAL" in worm.names  # blanks around the names are gone
    place = {name: i for i, name in enumerate(worm.names)}
    lines = path.read_text().splitlines()
    one = [line for line in lines if line.split(",")[0].strip() == "I1L"]
    to_i2l = sum(float(x.split(",")[2]) for x in one if x.split(",")[1].strip() == "I2L")
    assert worm.weights[place["I2L"], place["I1L"]] == to_i2l
    assert "cells=448" in repr(worm)


def test_signs_of_cells(tmp_path):
    rows = "pre,post,weight,nt_type\nA,B,3,ACH\nA,C,1,GABA\nB,A,2,gaba\nC,A,4,\n"
    path = write(tmp_path / "e.csv", rows)
    known = {"ACH": 1, "GABA": -1, "": -1}
    found = read_connectome(path, transmitters=known)
    # Dale's law: the sign of most of the synapses of a cell.
    assert found.weights.toarray().tolist() == [[0, -2, -4], [3, 0, 0], [1, 0, 0]]
    assert found.n_overruled == 1
    for name in ("neurotransmitter", "Transmitter"):
        known = "pre,post,weight," + name + "\nA,B,3,ACH\nB,A,2,gaba\n"
        found = read_connectome(write(tmp_path / f"{name}.csv", known))
        assert found.inhibitory.tolist() == [False, True]
    with pytest.raises(DataError, match="no sign for the value '' in its column `nt_type`"):
        read_connectome(path)
    plain = read_connectome(path, sign=None)
    assert plain.weights.toarray().tolist() == [[0, 2, 4], [3, 0, 0], [1, 0, 0]]
    assert not plain.inhibitory.any()
    named = read_connectome(path, inhibitory=["B"])
    assert named.weights.toarray().tolist() == [[0, -2, 4], [3, 0, 0], [1, 0, 0]]
    listed = write(tmp_path / "listed.csv", "B\n")  # without a name above
    for those in (["B*"], listed, str(listed)):
        again = read_connectome(path, inhibitory=those)
        assert again.weights.toarray().tolist() == named.weights.toarray().tolist()
    assert read_connectome(path, inhibitory=["?"]).inhibitory.all()
    write(listed, "cell,why\nB,GABA\n")
    again = read_connectome(path, inhibitory=listed)
    assert again.weights.toarray().tolist() == named.weights.toarray().tolist()
    counted = read_connectome(path, weight=None, sign=None)
    assert counted.weights.sum() == 4
    pairs = write(tmp_path / "pairs.csv", "pre,post\nA,B\nB,A\nA,B\n")
    assert read_connectome(pairs).weights.toarray().tolist() == [[0, 1], [2, 0]]


def test_weights_with_signs_of_their_own_keep_them(tmp_path):
    path = write(tmp_path / "e.csv", "pre,post,weight,sign\nA,B,-3,1\nB,A,2,1\n")
    found = read_connectome(path)
    assert found.weights.toarray().tolist() == [[0, 2], [-3, 0]]
    ways: list[dict[str, Any]] = [{"sign": "sign"}, {"inhibitory": ["A"]}]
    for more in ways:
        with pytest.raises(DataError, match=f"leave `{next(iter(more))}` out"):
            read_connectome(path, **more)


def test_the_order_of_cells(tmp_path):
    path = write(tmp_path / "e.csv", "from to count\n10 9 1\n9 100 1\n")
    assert read_connectome(path).names.tolist() == ["9", "10", "100"]
    cells = ["100", "7", "9", "10"]
    listed = read_connectome(path, cells=cells)
    assert listed.names.tolist() == cells
    assert listed.weights.shape == (4, 4)
    assert listed.weights[2, 3] == 1


def test_a_network_of_named_cells(tmp_path):
    path = write(tmp_path / "e.csv", "pre,post,count\nA,B,2\nB,A,2\nC,A,1\nB,C,3\n")
    connectome = read_connectome(path)
    whole = Reservoir.from_graph(connectome, spectral_radius=0.5)
    assert np.abs(np.linalg.eigvals(whole.weights.toarray())).max() == pytest.approx(0.5)
    part = Reservoir.from_graph(
        connectome, spectral_radius=None, nodes=["B", "C"], inhibitory=["B"]
    )
    assert part.weights.toarray().tolist() == [[0, 0], [-3, 0]]
    with pytest.raises(ValueError, match="`nodes` must name cells"):
        Reservoir.from_graph(connectome, nodes=["D"])
    with pytest.raises(ValueError, match="`weight` has no effect for a connectome"):
        Reservoir.from_graph(connectome, weight="w")


HEAD = "pre,post,weight\n"
WRONG = {
    "x,y,z\nA,B,1\n": "has the columns x, y, z, of which none is known as the source",
    "pre,post,power\nA,B,1\n": "none is known as the weight",
    f"{HEAD}A,B,nan\n": "'nan' in row 1",
    f"{HEAD}A,B,1\nB,A,\n": "'' in row 2",
    f"{HEAD}A,B,inf\n": "'inf' in row 1",
    f"{HEAD}A,B,many\n": "'many' in row 1",
    f"{HEAD}A,B,1_0\n": "'1_0' in row 1",
    HEAD: "holds no edges",
    "": "is empty",
    f"{HEAD}A,B\n": "has 2 fields in row 1",
    f"{HEAD},B,1\n": "an edge without a name in its column `pre`",
    f"{HEAD}7.20575940596e+17,B,1\n": "a number that has lost digits",
    "1,2,3\n2,1,1\n": "'1' in its first line, which must name its columns",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_table_is_one_sentence(tmp_path, text):
    path = write(tmp_path / "e.csv", text)
    with pytest.raises(DataError) as error:
        read_connectome(path)
    assert WRONG[text] in str(error.value)
    assert one_sentence(str(error.value))


def test_wrong_arguments(tmp_path):
    path = write(tmp_path / "e.csv", f"{HEAD}A,B,1\nB,A,2\n")
    wrong: dict[str, tuple[Any, str]] = {
        "source": ("power", "no 'power': correct `source`"),
        "target": ("pre", "twice"),
        "cells": (["A"], "the cell 'B', which `cells` does not list"),
        "inhibitory": (["C"], "`inhibitory` must name cells"),
        "transmitters": ({"ACH": 1}, "`transmitters` has no effect"),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(ValueError, match=".") as error:
            read_connectome(path, **{name: value})
        assert message in str(error.value), name
        assert one_sentence(str(error.value))
    no_names: dict[str, Any] = {"cells": 10**9, "inhibitory": 7}
    for name, value in no_names.items():
        with pytest.raises(TypeError, match=f"`{name}` must be a list of names"):
            read_connectome(path, **{name: value})
    for name in no_names:
        no_file = f"^`{name}` must be a list of names, or a file .*; got 'nofile'"
        with pytest.raises(ValueError, match=no_file):
            read_connectome(path, **dict[str, Any]({name: "nofile"}))
    with pytest.raises(ValueError, match="'A' twice"):
        read_connectome(path, cells=["A", "B", "A"])
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_connectome(tmp_path / "absent.csv")
    with pytest.raises(DataError, match=r"suffix '\.mat'"):
        read_connectome(write(tmp_path / "e.mat", ""))


def test_a_wrong_index_allocates_nothing(tmp_path):
    path = write(tmp_path / "e.csv", f"{HEAD}0,1,1\n1,999999999,1\n")
    tracemalloc.start()
    found = read_connectome(path)
    with pytest.raises(DataError, match="'999999999', which `cells` does not list"):
        read_connectome(path, cells=range(3))
    # Buffers of text take a few megabytes; 10⁹ row pointers would take gigabytes.
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()
    assert found.weights.shape == (3, 3)


@pytest.mark.needs("pandas")
@pytest.mark.needs("pyarrow")
def test_damaged_parquet_is_one_sentence(edges, tmp_path):
    path = tmp_path / "e.parquet"
    edges.to_parquet(path)
    whole = path.read_bytes()
    for size in (0, 3, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError) as error:
            read_connectome(path)
        assert one_sentence(str(error.value)), size
    rounded = edges.astype({"pre_root_id": "float64"})
    rounded.to_parquet(path)
    with pytest.raises(DataError, match="as double, which rounds large numbers"):
        read_connectome(path)
    edges.astype({"syn_count": "str"}).to_parquet(path)
    with pytest.raises(DataError, match="`syn_count` as large_string, where numbers"):
        read_connectome(path)
    edges.astype({"syn_count": "float64"}).assign(syn_count=np.nan).to_parquet(path)
    with pytest.raises(DataError, match="in row 1 "):
        read_connectome(path)


def test_truncated_gzip_is_one_sentence(tmp_path):
    rows = "".join(f"A{i},B{i},1\n" for i in range(2000))
    packed = gzip.compress((HEAD + rows).encode())
    (tmp_path / "e.csv.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(DataError, match="cannot be read as gzip") as error:
        read_connectome(tmp_path / "e.csv.gz")
    assert one_sentence(str(error.value))


def test_a_matrix_is_no_list_of_edges(tmp_path):
    assert is_edge_list(write(tmp_path / "e.csv", f"{HEAD}A,B,1\n"))
    assert not is_edge_list(write(tmp_path / "W.csv", "0.5,0\n0,0.5\n"))
    assert not is_edge_list(write(tmp_path / "W.txt", "0.5 0\n0 0.5\n"))
    assert not is_edge_list(tmp_path / "absent.csv")
    assert not is_edge_list(tmp_path / "W.npy")


def test_the_strongest_cells_have_names(tmp_path):
    path = write(tmp_path / "edges.csv", "pre,post,count\nA,B,3\nB,C,1\nC,A,2\n")
    cells = read_connectome(path)
    assert cells.strongest([0.1, -0.7, 0.3], 2) == [("B", -0.7), ("C", 0.3)]
    assert cells.strongest(np.array([[3.0, 4.0], [0, 1], [0, 0]]), 1) == [("A", 5.0)]
    assert cells.strongest([[0.1], [-0.7], [0.3]], 1) == [("B", -0.7)]
    assert len(cells.strongest(np.ones(3))) == 3
    with pytest.raises(ValueError, match="`weights` must have one row for each of the 3"):
        cells.strongest(np.ones(4))
    with pytest.raises(ValueError, match="`k`"):
        cells.strongest(np.ones(3), 0)
