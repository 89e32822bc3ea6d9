#!/usr/bin/env python3
"""Totals of sampled runs beside those of full ones.

    studies/sampling/sample.py LOCKSTEP PROGRAMS [--seed 0] [--out obtained.csv] [--only NAME,...] [--threads 1]

Runs every program of the table below, built into the folder PROGRAMS, four times: in full detail, functionally,
sampled, and sampled with the functional run as its plan. Writes a row for each sampled run, prints the table, and
says whether the claims hold.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness.claims import Claims
from harness.words import take

# Programs of a thousand launches or more, and others of ten or more.
MANY = {
    "hydrodynamics": ["22", "50"],
    "conjugate_gradient": ["64", "330"],
    "hotspot": ["64", "2000"],
    "tiny_launches": ["1200"],
}
TENS = {
    "bfs": ["4096", "6"],
    "bitonic_sort": ["4096"],
    "lu_decomposition": ["128"],
    "stencil_2d": ["256", "30"],
    "stencil_3d": ["34", "20"],
    "srad": ["128", "10"],
    "sssp": ["2048", "6"],
    "mst": ["1024", "4096"],
    "pagerank": ["4096", "8", "12"],
    "pathfinder": ["20000", "400"],
    "needleman_wunsch": ["256"],
    "molecular_dynamics": ["4", "20"],
    "kmeans": ["10000", "10"],
    "graph_colouring": ["4096", "4"],
    "level_solves": ["1024", "9"],
    "radix_sort": ["16384"],
}
COLUMNS = ("program", "plan", "launches", "detailed_launches", "fewer_inst", "full_cycles", "cycles", "error_percent",
           "half_width_percent", "inside", "seconds_full", "seconds_functional", "seconds_sampled")


def run(lockstep, folder, options, command):
    """Summary of one run, and the processor seconds of its simulation."""
    out = pathlib.Path(folder, f"run-{time.monotonic_ns()}")
    words = [lockstep, "run", "--quiet", "--record", "none", "--out", str(out), *options, "--", *command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    summary = json.loads(pathlib.Path(out, "summary.json").read_text(encoding="utf-8"))
    return out, summary, summary["host"]["processor_seconds"]


def rows_of(lockstep, programs, name, arguments, seed, threads):
    """The rows of one program."""
    command = [str(pathlib.Path(programs, name)), *arguments]
    common = ["--threads", threads]
    with tempfile.TemporaryDirectory() as folder:
        _, full, full_seconds = run(lockstep, folder, common, command)
        plan, _, functional_seconds = run(lockstep, folder, [*common, "--detail", "functional"], command)
        for planned in (False, True):
            options = [*common, "--detail", "sampled", "--sampling-seed", str(seed)]
            options += ["--plan", str(plan)] if planned else []
            _, sampled, seconds = run(lockstep, folder, options, command)
            told, cycles = sampled["sampling"], full["totals"]["cycles"]
            error = told["cycles"] / cycles - 1
            yield dict(zip(COLUMNS, (
                " ".join([name, *arguments]), "yes" if planned else "no", full["totals"]["kernels"],
                told["detailed_launches"], f"{told['fewer_inst']:.1f}", cycles, told["cycles"], f"{100 * error:.3f}",
                f"{told['half_width_percent']:.3f}",
                "yes" if abs(told["cycles"] - cycles) <= told["cycles_half_width"] else "no",
                f"{full_seconds:.1f}", f"{functional_seconds:.1f}", f"{seconds:.1f}")))


def claims(rows):
    """(sentence, whether it holds, value) of all rows."""
    errors = [abs(float(row["error_percent"])) for row in rows]
    inside = sum(row["inside"] == "yes" for row in rows)
    many = [row for row in rows if row["program"].split()[0] in MANY]
    planned = [float(row["fewer_inst"]) for row in many if row["plan"] == "yes"]
    yield "the mean error of totals is at most 2 %", sum(errors) <= 2 * len(errors), f"{sum(errors) / len(errors):.2f} %"
    yield "nine totals of ten are inside their interval", inside >= 0.9 * len(rows), f"{inside} of {len(rows)}"
    if many:
        worst = max(abs(float(row["error_percent"])) for row in many)
        yield "programs of a thousand launches are within 2 %", worst <= 2, f"{worst:.2f} %"
        least = min(planned)
        yield "with a plan they take 50 times fewer instructions", least >= 50, f"{least:.1f} times"


def main():
    options = {"--seed": "0", "--threads": "1", "--out": None, "--only": None}
    words, options = take(sys.argv[1:], options)
    seed, threads = int(options["--seed"]), options["--threads"]
    out, only = options["--out"], options["--only"]
    if len(words) != 2:
        sys.exit(__doc__)
    lockstep, programs = words
    chosen = {**MANY, **TENS}
    if only:
        chosen = {name: chosen[name] for name in only.split(",")}
    rows = []
    for name, arguments in chosen.items():
        for row in rows_of(lockstep, programs, name, arguments, seed, threads):
            print(", ".join(f"{column} {row[column]}" for column in COLUMNS), flush=True)
            rows.append(row)
    if out:
        with open(out, "w", newline="", encoding="utf-8") as table:
            writer = csv.DictWriter(table, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    checked = Claims()
    for sentence, holds, value in claims(rows):
        checked.claim(holds, f"{sentence}: {value}")
    checked.end()


if __name__ == "__main__":
    main()
