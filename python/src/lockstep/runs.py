"""Runs of programs: starting one, and reading the folder that it left."""

from __future__ import annotations

import contextlib
import functools
import html
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lockstep import command
from lockstep.errors import LockstepError, RunFailed
from lockstep.reports import Report
from lockstep.tables import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

#: Whose names counters have: those of `kernels.csv`, or those of Nsight Compute where it has one.
Names = Literal["lockstep", "ncu"]

Word = str | os.PathLike[str]

#: Columns of `kernels.csv` that a notebook shows of a run.
_SHOWN = ("launch", "kernel", "grid", "block", "duration_ns", "cycles", "inst_executed", "achieved_occupancy")


class Run:
    """What a run left: a folder of `lockstep run`, `lockstep kernel` or `lockstep sample`, whole or not."""

    def __init__(self, folder: Word, stdout: str = "", stderr: str = "") -> None:
        # What is read later must not depend on where the process is then.
        self.folder = Path(folder).absolute()
        #: What the program printed, where `run` kept it.
        self.stdout = stdout
        #: What program and simulator complained about, where `run` kept it.
        self.stderr = stderr

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """Everything that `summary.json` says."""
        path = self.folder / "summary.json"
        try:
            found = json.loads(path.read_text())
        except OSError as error:
            raise LockstepError(f"{self.folder} is no run folder: {path.name}: {error.strerror}") from None
        except ValueError as error:
            raise LockstepError(f"{path}: {error}") from None
        if not isinstance(found, dict):
            raise LockstepError(f"{path} holds no object")
        return found

    @property
    def state(self) -> str:
        """`finished`, `failed`, `stopped`, or `running`."""
        return str(self.summary.get("state", "unknown"))

    @property
    def exit_code(self) -> int | None:
        """That of the program; None if it has not ended by itself."""
        return self._ending.get("exit_code")

    @property
    def problems(self) -> list[str]:
        """Why the run failed."""
        return list(self._ending.get("problems", []))

    @property
    def _ending(self) -> dict[str, Any]:
        return self.summary.get("ending") or {}

    @property
    def digest(self) -> str | None:
        """One hash of every statistic, kernel and byte of memory: equal for equal runs."""
        return self.summary.get("digest")

    @property
    def totals(self) -> dict[str, Any]:
        """Sums over all launches."""
        return dict(self.summary.get("totals", {}))

    @property
    def gpu(self) -> str:
        """The GPU that was simulated."""
        return str(self.summary.get("gpu", ""))

    @functools.cached_property
    def kernels(self) -> Table:
        """A row a launch, with the names of `kernels.csv`."""
        return self._table("kernels.csv")

    @functools.cached_property
    def statistics(self) -> Table:
        """Every statistic of every component."""
        return self._table("stats.csv")

    def counters(self, names: Names = "ncu") -> Table:
        """A row a launch, with the names that `ncu` has for counters."""
        if names == "lockstep":
            return self.kernels
        if names != "ncu":
            raise LockstepError(f"counters have the names of `ncu` or of `lockstep`, not of `{names}`")
        return Table.read(command.call(["export", self.folder, "--to", "csv", "--names", "ncu"]))

    def _table(self, name: str) -> Table:
        path = self.folder / name
        try:
            return Table.read(path.read_text())
        except OSError as error:
            raise LockstepError(f"{path}: {error.strerror}") from None

    def to_pandas(self, names: Names = "lockstep") -> pandas.DataFrame:
        """The launches as a data frame of pandas."""
        return self.counters(names).to_pandas()

    def to_polars(self, names: Names = "lockstep") -> polars.DataFrame:
        """The launches as a data frame of polars."""
        return self.counters(names).to_polars()

    def to_arrow(self, names: Names = "lockstep") -> pyarrow.Table:
        """The launches as a table of Arrow."""
        return self.counters(names).to_arrow()

    def report(self) -> Report:
        """Where the time went, what bounds each kernel, and what would help."""
        return Report(["report", self.folder])

    def plot(self, counter: str = "duration_ns", ax: Axes | None = None) -> Axes:
        """Bars of one counter, a bar a launch; `stalls` shows what the warps of each kernel waited for."""
        from lockstep import plots

        return plots.stalls(self.kernels, ax) if counter == "stalls" else plots.bars(self.kernels, counter, ax)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}): {self.state}, {self.totals.get('kernels', 0)} kernels on {self.gpu}"

    def _repr_html_(self) -> str:
        words = " ".join(str(word) for word in self.summary.get("command", []))
        facts = {"command": words, "GPU": self.gpu, "state": self.state, "digest": self.digest, "folder": self.folder}
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(str(fact))}</td></tr>" for name, fact in facts.items())
        launches = self.kernels.select([name for name in _SHOWN if name in self.kernels.columns])
        return f"<table>{rows}</table>{launches._repr_html_()}"


def open_run(folder: Word) -> Run:
    """The run that left a folder."""
    found = Run(folder)
    _ = found.summary  # that it is none is said here, and not when it is first used
    return found


def run(
    program: Sequence[Word],
    *,
    gpu: Word = "h200",
    set: Mapping[str, object] | None = None,  # noqa: A002  as the option of the command is called
    mode: Literal["timing", "functional"] = "timing",
    frontend: Literal["auto", "sass", "ptx"] = "auto",
    threads: int | None = None,
    gpus: int = 1,
    cold_caches: bool = False,
    check: bool = True,
    out: Word | None = None,
    name: str | None = None,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    echo: bool = False,
) -> Run:
    """Runs a CUDA program on a simulated GPU.

    `program` is the program with its arguments, `set` changes settings of the GPU, `options` are further ones of
    `lockstep run`, and `environment` adds variables to ours. Results go to the folder `out`, or to a new one under
    `lockstep-out` with the program's name or another `name`. What the program prints is kept in the answer, or goes
    where our own output goes with `echo`. A program that ends with another exit code than 0 raises `RunFailed`,
    unless `check` is false.
    """
    words = [program] if isinstance(program, (str, os.PathLike)) else list(program)
    if not words:
        raise LockstepError("there is no program to run")
    if mode not in ("timing", "functional"):
        raise LockstepError(f"the mode is `timing` or `functional`, not `{mode}`")
    folder = Path(out) if out is not None else new_folder(name or Path(words[0]).name)
    call = ["run", "--quiet", "--gpu", gpu, "--mode", mode, "--frontend", frontend, "--gpus", str(gpus)]
    call += ["--threads", str(threads)] if threads is not None else []
    call += ["--cold-caches"] if cold_caches else []
    call += command.settings(set)
    call += [*options, "--out", folder, "--", *words]
    done = command.start(call, {**os.environ, **environment} if environment else None, echo)
    found = Run(folder, done.stdout, done.stderr)
    # Without a summary nothing began, and what was wrong stands in the complaint alone.
    if not (folder / "summary.json").is_file():
        if out is None:
            _forget(folder)
        raise LockstepError(command.complaint(done.stderr) or f"`lockstep run` ended with {done.returncode}")
    if check and done.returncode != 0:
        why = "\n".join(found.problems) or command.complaint(done.stderr)
        raise RunFailed(f"{words[0]} ended with {done.returncode}{': ' if why else ''}{why}", found)
    return found


def new_folder(name: str) -> Path:
    """A new folder for results under `lockstep-out`, as the command names them; only its owner can read it."""
    parent = Path("lockstep-out")
    parent.mkdir(exist_ok=True)
    for number in itertools.count(1):
        folder = parent / f"{name}-{number}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("numbers do not end")


def _forget(folder: Path) -> None:
    # If something is in it, it is not ours to remove.
    with contextlib.suppress(OSError):
        folder.rmdir()
