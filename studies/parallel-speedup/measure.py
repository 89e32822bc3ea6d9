#!/usr/bin/env python3
"""Times simulations by 1 to 16 threads, and independent ones beside each other.

    measure.py LOCKSTEP PROGRAMS OUT [PLAN]

LOCKSTEP is the command, PROGRAMS the folder with the executables, OUT the folder for `runs.txt` and `machine.txt`.
PLAN is a file of lines

    scale PROGRAM ARGUMENTS                     every number of threads, both schedules
    one THREADS SCHEDULE PROGRAM ARGUMENTS      one run
    many COPIES PROGRAM ARGUMENTS               as many runs of one thread at the same time
    on PROCESSORS LINE                          one of these, on some processors only

Without it all programs of programs.txt are scaled and run in copies. Needs Python and `taskset` only, so that it runs
where nothing can be built. THREADS, SCHEDULES, GPU, REPEAT and LIMIT (seconds after which no further line is begun)
change what is done.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import machine, simulator

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 300  # that one run may take


def blocks(kernels):
    """Launches, mean blocks of a launch, most blocks of one."""
    counts = [math.prod(int(part) for part in row["grid"].split("x")) for row in kernels]
    return f"{len(counts)} {sum(counts) / max(len(counts), 1):.1f} {max(counts, default=0)}"


def note(key, run):
    """A line of runs.txt: what was run, the blocks of its launches, its summary without the configuration."""
    if run is None:
        return f"{key} | failed"
    summary = {name: value for name, value in run.summary.items() if name != "configuration"}
    return f"{key} | {blocks(run.kernels)} | {json.dumps(summary)}"


def plan_of(programs, threads):
    """The lines of a plan that scales every program and runs it in copies."""
    for line in programs.splitlines():
        if line.strip() and not line.startswith("#"):
            program = " ".join(line.split()[1:])
            yield f"scale {program}"
            yield f"many {max(threads)} {program}"


def expand(line, threads, schedules, repeat=1):
    """(kind, threads or copies, schedule, program and arguments, processors) of each run of a line of a plan."""
    kind, *words = line.split()
    place = ""
    if kind == "on":
        place, kind, *words = words
    if kind == "one":
        return [("one", int(words[0]), words[1], words[2:], place)] * repeat
    if kind == "many":
        return [("many", int(words[0]), "auto", words[1:], place)]
    if kind == "scale":
        # All others are compared with one thread: the better of two.
        single = [("one", 1, "auto", words, place)] * 2 if 1 in threads else []
        several = [("one", count, schedule, words, place) for count in threads if count > 1 for schedule in schedules]
        return [run for run in [*single, *several] for _ in range(repeat)]
    raise SystemExit(f"a line of a plan begins with scale, one, many or on, not `{kind}`: {line}")


class Bench:
    """Where runs are made and noted."""

    def __init__(self, lockstep, programs, out, gpu):
        self.lockstep, self.programs, self.gpu = lockstep, programs, gpu
        self.notes = open(out / "runs.txt", "w")

    def simulate(self, threads, schedule, words, place):
        """One run; None if it fails."""
        options = ["--quiet", "--mode", "timing", "--threads", str(threads), "--schedule", schedule]
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "run"
            line = simulator.command(self.lockstep, [self.programs / words[0], *words[1:]], self.gpu, (), options, folder)
            pinned = ["taskset", "-c", place] if place else []
            try:
                done = subprocess.run([*pinned, *line], capture_output=True, text=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                print(f"{' '.join(words)}: no end after {SECONDS} s")
                return None
            if done.returncode != 0:
                print("\n".join((done.stdout + done.stderr).splitlines()[-3:]))
            return simulator.read(folder) if (folder / "summary.json").exists() else None

    def make(self, kind, count, schedule, words, place):
        """One run, or as many as are asked for at once."""
        name = f"{kind}@{place}" if place else kind
        key = f"{name} {count} {schedule} {' '.join(words)}"
        if kind == "one":
            runs = [self.simulate(count, schedule, words, place)]
        else:
            with ThreadPoolExecutor(count) as pool:
                runs = list(pool.map(lambda _: self.simulate(1, schedule, words, place), range(count)))
        for run in runs:
            print(note(key, run), file=self.notes, flush=True)


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    lockstep, programs, out = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
    out.mkdir(parents=True, exist_ok=True)
    began, limit = time.monotonic(), float(os.environ.get("LIMIT") or 100_000)
    threads = [int(word) for word in os.environ.get("THREADS", "1 2 4 8 16").split()]
    schedules = os.environ.get("SCHEDULES", "static dynamic").split()
    about = [machine.today(), f"processors {os.cpu_count()}", machine.said(["lscpu"]), machine.said([str(lockstep), "--version"])]
    (out / "machine.txt").write_text("\n".join(about) + "\n")
    if len(sys.argv) == 5:
        plan = pathlib.Path(sys.argv[4]).read_text().splitlines()
    else:
        plan = plan_of((HERE / "programs.txt").read_text(), threads)
    lines = [line for line in plan if line.strip() and not line.startswith("#")]
    repeat = int(os.environ.get("REPEAT") or 1)
    runs = [(line, expand(line, threads, schedules, repeat)) for line in lines]
    bench = Bench(lockstep, programs, out, os.environ.get("GPU", "h200"))
    for line, wanted in runs:
        if time.monotonic() - began >= limit:
            print(f"no time left for: {line}")
            continue
        for run in wanted:
            bench.make(*run)


if __name__ == "__main__":
    main()
