"""Tables of counters: columns with names, and the forms in which others want them.

A table needs the standard library only; pandas, polars and pyarrow are imported when they are asked for.
"""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.errors import LockstepError, missing

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: A number, a text, or nothing where the run does not know the figure.
Cell = int | float | str | None

#: Rows that a notebook shows.
_SHOWN = 20

#: Columns of names and hashes, which are text even if all of their characters are digits.
_TEXT = frozenset({"kernel", "symbol", "digest", "run", "folder", "program"})

#: Numbers as the command writes them.
_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Table(Sequence[dict[str, Cell]]):
    """A row for each launch, statistic or point; rows are dictionaries by column."""

    def __init__(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        self._columns = {name: list(cells) for name, cells in columns.items()}
        lengths = {len(cells) for cells in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of a table have one length, not {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0

    @classmethod
    def read(cls, text: str) -> Table:
        """From CSV with a line of names. A column whose cells are all numbers holds numbers."""
        rows = list(csv.reader(io.StringIO(text)))
        if not rows:
            return cls({})
        names, body = rows[0], rows[1:]
        for number, row in enumerate(body, start=2):
            if len(row) != len(names):
                raise LockstepError(f"line {number} of the table has {len(row)} cells, its first line {len(names)}")
        return cls({name: _typed(name, [row[place] for row in body]) for place, name in enumerate(names)})

    @property
    def columns(self) -> list[str]:
        """Names, in their order."""
        return list(self._columns)

    def column(self, name: str) -> list[Cell]:
        """The cells of one column."""
        if name not in self._columns:
            raise LockstepError(f"no column is called `{name}`; there are: {', '.join(self._columns)}")
        return list(self._columns[name])

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Table({name: cells[index] for name, cells in self._columns.items()})
        return {name: cells[index] for name, cells in self._columns.items()}

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return (self[place] for place in range(self._length))

    def select(self, names: Sequence[str]) -> Table:
        """Only these columns."""
        return Table({name: self.column(name) for name in names})

    def to_dict(self) -> dict[str, list[Cell]]:
        """Cells by column."""
        return {name: list(cells) for name, cells in self._columns.items()}

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas."""
        frame: pandas.DataFrame = _package("pandas").DataFrame(self._columns)
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame of polars."""
        frame: polars.DataFrame = _package("polars").DataFrame(self._columns, strict=False)
        return frame

    def to_arrow(self) -> pyarrow.Table:
        """A table of Arrow."""
        table: pyarrow.Table = _package("pyarrow").table(self._columns)
        return table

    def to_json(self) -> str:
        """A list of rows."""
        return json.dumps(list(self), indent=2)

    def to_markdown(self) -> str:
        """A table of Markdown."""
        lines = [self.columns, ["---"] * len(self._columns), *([_shown(cell) for cell in row.values()] for row in self)]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)

    def transposed(self) -> Table:
        """A row for each column, for tables with few rows and many columns."""
        columns: dict[str, list[Cell]] = {"counter": list(self._columns)}
        for place in range(self._length):
            columns[str(place)] = [cells[place] for cells in self._columns.values()]
        return Table(columns)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(cell))}</td>" for cell in row.values()) + "</tr>"
            for row in self[:_SHOWN]
        )
        more = f"<p>{self._length - _SHOWN} more rows</p>" if self._length > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"Table of {self._length} rows: {', '.join(self._columns)}"


def _typed(name: str, cells: list[str]) -> list[Cell]:
    if name not in _TEXT:
        if all(_INTEGER.fullmatch(cell) for cell in cells if cell):
            return [int(cell) if cell else None for cell in cells]
        if all(_DECIMAL.fullmatch(cell) for cell in cells if cell):
            return [float(cell) if cell else None for cell in cells]
    return [cell or None for cell in cells]


def _shown(cell: Cell) -> str:
    return "" if cell is None else str(cell)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise missing(name, f"a table of {name}") from None
