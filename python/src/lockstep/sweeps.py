"""Sweeps: many points of one description, through `lockstep sweep`."""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep import command
from lockstep.errors import LockstepError
from lockstep.runs import Run, new_folder
from lockstep.tables import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

Word = str | os.PathLike[str]


class Sweep:
    """What a sweep left: one table, pictures, and a run folder for each different point."""

    def __init__(self, folder: Word) -> None:
        # What is read later must not depend on where the process is then.
        self.folder = Path(folder).absolute()

    @functools.cached_property
    def points(self) -> Table:
        """A row a point: what it is, how it ended, every total of its run, and whether it is on the front."""
        path = self.folder / "sweep.csv"
        try:
            return Table.read(path.read_text())
        except OSError as error:
            raise LockstepError(f"{self.folder} holds no sweep: {path.name}: {error.strerror}") from None

    @property
    def failed(self) -> list[str]:
        """Why points failed, a sentence for each."""
        return [f"point {row['point']}: {row['reason']}" for row in self.points if row["state"] != "finished"]

    def run(self, point: int) -> Run:
        """The run of a point by its number."""
        for row in self.points:
            if row["point"] == point:
                return Run(self.folder / "points" / str(row["run"]))
        raise LockstepError(f"{self.folder} has no point {point}, but {len(self.points)} others")

    def to_pandas(self) -> pandas.DataFrame:
        """The points as a data frame of pandas."""
        return self.points.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The points as a data frame of polars."""
        return self.points.to_polars()

    def to_arrow(self) -> pyarrow.Table:
        """The points as a table of Arrow."""
        return self.points.to_arrow()

    def plot(self, x: str, y: str = "kernel_ns", ax: Axes | None = None) -> Axes:
        """One column of the table over another."""
        from lockstep import plots

        return plots.line(self.points, x, y, ax)

    def __repr__(self) -> str:
        return f"Sweep({str(self.folder)!r}): {len(self.points)} points, {len(self.failed)} not finished"

    def _repr_html_(self) -> str:
        return self.points._repr_html_()


def sweep(
    file: Word | None = None,
    *,
    program: Word | None = None,
    arguments: str | Sequence[str] = (),
    gpu: Word = "h200",
    set: Mapping[str, object] | None = None,  # noqa: A002  as the table of the file is called
    grid: Mapping[str, Sequence[object]] | None = None,
    lists: Sequence[Mapping[str, Sequence[object]]] = (),
    pareto: Mapping[str, Sequence[str]] | None = None,
    options: str = "",
    workers: int | None = None,
    out: Word | None = None,
    resume: bool = False,
    slurm: bool = False,
    launcher: str | None = None,
    check: bool = True,
    echo: bool = False,
) -> Sweep:
    """Simulates every point of a sweep file, or of a description that is given here.

    `grid` has every combination of its values, each of `lists` keys that change together; both take keys of a GPU
    file, and `gpu`, `program`, `arguments` and `options`. `resume` goes on with the folder `out`. A point that fails
    raises, unless `check` is false; the others are simulated all the same.
    """
    described_here = program is not None or "program" in (grid or {})
    if (file is not None) == described_here:
        raise LockstepError("a sweep has a file, or a program with a `grid` or `lists`; give one of them")
    if resume and out is None:
        raise LockstepError("which sweep goes on? `out` names its folder")
    folder = Path(out) if out is not None else new_folder("sweep")
    call: list[Word] = ["--out", folder]
    call += ["--workers", str(workers)] if workers is not None else []
    call += ["--resume"] if resume else []
    call += ["--slurm"] if slurm else []
    call += ["--launcher", launcher] if launcher is not None else []
    with tempfile.TemporaryDirectory(prefix="lockstep-sweep-") as place:
        if file is None:
            file = Path(place, "sweep.toml")
            described = {"gpu": str(gpu), "arguments": arguments if isinstance(arguments, str) else list(arguments)}
            described |= {"program": _absolute(program)} if program is not None else {}
            described |= {"options": options} if options else {}
            tables = {"set": set or {}, "grid": grid or {}, "pareto": pareto or {}}
            file.write_text(_toml(described, tables, lists))
        done = command.start(["sweep", file, *call], None, echo)
    if not (folder / "sweep.csv").is_file():
        raise LockstepError(command.complaint(done.stderr) or f"`lockstep sweep` ended with {done.returncode}")
    found = Sweep(folder)
    if check and done.returncode != 0:
        raise LockstepError("\n".join(found.failed) or command.complaint(done.stderr))
    return found


def _absolute(program: Word) -> str:
    """As the command would find it; its points may start elsewhere."""
    return os.path.abspath(shutil.which(program) or program)


def _toml(
    described: Mapping[str, object],
    tables: Mapping[str, Mapping[str, object]],
    lists: Sequence[Mapping[str, Sequence[object]]],
) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in described.items()]
    for heading, table in [
        *((f"[{name}]", table) for name, table in tables.items()),
        *(("[[list]]", x) for x in lists),
    ]:
        if table:
            lines += [heading, *(f"{_text(key)} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, os.PathLike)):
        return _text(os.fspath(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(_value(inner) for inner in value) + "]"


def _text(text: str) -> str:
    # What JSON writes of a text is a text of TOML, but for the one character that TOML wants escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
