"""Tables: types of cells, forms, and what is said where a package lacks."""

import json
import sys

import pytest

import lockstep
from lockstep.tables import Table

TEXT = "launch,kernel,digest,cycles,share\n0,add,12,100,0.5\n1,mul|s,34,,1\n"


def test_columns_of_numbers_hold_numbers_and_those_of_names_hold_text():
    table = Table.read(TEXT)
    assert table.to_dict() == {
        "launch": [0, 1],
        "kernel": ["add", "mul|s"],
        "digest": ["12", "34"],
        "cycles": [100, None],
        "share": [0.5, 1.0],
    }


def test_rows_are_dictionaries():
    table = Table.read(TEXT)
    assert len(table) == 2
    assert table[1]["cycles"] is None
    assert [row["launch"] for row in table] == [0, 1]
    assert len(table[:1]) == 1


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(lockstep.LockstepError, match="no column is called `cycle`; there are: launch, kernel"):
        Table.read(TEXT).column("cycle")


def test_a_line_that_is_cut_off_is_an_error_with_its_number():
    with pytest.raises(lockstep.LockstepError, match="line 3 of the table has 1 cells, its first line 2"):
        Table.read("a,b\n1,2\n3\n")


def test_forms():
    table = Table.read(TEXT)
    assert table.to_markdown().splitlines()[3] == "| 1 | mul\\|s | 34 |  | 1.0 |"
    assert json.loads(table.to_json())[0]["kernel"] == "add"
    assert "<td>mul|s</td>" in table._repr_html_()
    assert table.transposed()[3] == {"counter": "cycles", "0": 100, "1": None}


def test_names_in_a_notebook_are_no_html():
    assert "&lt;script&gt;" in Table({"kernel": ["<script>"]})._repr_html_()


@pytest.mark.parametrize("package, method", [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")])
def test_a_package_that_is_not_installed_is_named(monkeypatch, package, method):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(lockstep.LockstepError, match=f"needs {package}, which is not installed"):
        getattr(Table.read(TEXT), method)()


@pytest.mark.parametrize("package, method", [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")])
def test_data_frames_have_all_rows_and_columns(package, method):
    pytest.importorskip(package)
    assert getattr(Table.read(TEXT), method)().shape == (2, 5)
