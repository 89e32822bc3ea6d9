"""One run of `lockstep run`, and what it left behind."""

import csv
import json
import pathlib
import subprocess
import tempfile
from dataclasses import dataclass, field


class Failed(SystemExit):
    """A run that did not end well; ends a script with the command and what was said."""


@dataclass
class Run:
    """What a run said and wrote."""

    output: str = ""
    kernels: list = field(default_factory=list)
    summary: dict = field(default_factory=dict)
    statistics: list = field(default_factory=list)

    def total(self, counter):
        """The sum of a counter over all launches; a launch that does not know it counts nothing."""
        return sum(int(row[counter] or 0) for row in self.kernels)

    def nanoseconds(self):
        """Time inside kernels."""
        return sum(float(row["duration_ns"]) for row in self.kernels)

    def statistic(self, name, kind=None):
        """The sum of a statistic over components, of one kind if it is given."""
        return sum(
            int(row["value"])
            for row in self.statistics
            if row["statistic"] == name and row["value"].isdigit() and kind in (None, kind_of(row["component"]))
        )


def kind_of(component):
    """`gmmu` of `gpu0/gmmu/...`."""
    parts = component.split("/")
    return parts[1] if len(parts) > 1 else ""


def read(folder, output=""):
    """What is in the folder of a run."""
    folder = pathlib.Path(folder)

    def table(name):
        path = folder / name
        if not path.exists():
            return []
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    summary = folder / "summary.json"
    return Run(
        output=output,
        kernels=table("kernels.csv"),
        summary=json.loads(summary.read_text()) if summary.exists() else {},
        statistics=table("stats.csv"),
    )


def command(lockstep, words, gpu, settings=(), options=(), out=None):
    """The command line of a run."""
    line = [str(lockstep), "run", "--gpu", gpu]
    for setting in settings:
        line += ["--set", setting]
    line += [*options, *(["--out", str(out), "--overwrite"] if out else []), "--", *map(str, words)]
    return line


def run(lockstep, words, gpu, settings=(), options=(), out=None, seconds=None):
    """Runs a program (`words`: executable and arguments) to its end; without `out` its folder is kept nowhere."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(out) if out else pathlib.Path(scratch) / "run"
        line = command(lockstep, words, gpu, settings, options, folder)
        done = subprocess.run(line, capture_output=True, text=True, timeout=seconds)
        if done.returncode != 0:
            raise Failed(f"{' '.join(line)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return read(folder, done.stdout)
