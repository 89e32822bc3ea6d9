#!/usr/bin/env python3
"""The seed's figure 6: the time of one simulation with its SMs in 1, 2, 4 and 8 groups, a thread each, five times.

    measure.py LOCKSTEP ACCUMULATE OUT        OUT gets groups.csv

Build ACCUMULATE with `nvcc -O3 -std=c++17 accumulate.cu`. GROUPS_TRIED and ACCUMULATIONS change what is run.
"""

import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import simulator, tables

COLUMNS = ["groups", "repetition", "seconds", "simulating_seconds", "cycles", "digest"]
REPETITIONS = 5


def row(groups, repetition, summary):
    """What one run's summary says."""
    host = summary["host"]
    return [groups, repetition, host["seconds"], host["simulating_seconds"], summary["totals"]["cycles"], summary["digest"]]


def said(rows):
    """The times of each number of groups, and how many digests there are."""
    for groups in sorted({row[0] for row in rows}):
        seconds = [row[2] for row in rows if row[0] == groups]
        yield f"{groups} groups: mean {statistics.mean(seconds):.2f} s, least {min(seconds):.2f} s, most {max(seconds):.2f} s"
    yield f"{len({row[5] for row in rows})} digest(s)"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    lockstep, program, out = sys.argv[1], os.path.abspath(sys.argv[2]), pathlib.Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    tried = [int(word) for word in os.environ.get("GROUPS_TRIED", "1 2 4 8").split()]
    rows = []
    for groups in tried:
        for repetition in range(1, REPETITIONS + 1):
            options = ["--quiet", "--mode", "timing", "--threads", str(groups), "--schedule", "static"]
            words = [program, "84", os.environ.get("ACCUMULATIONS", "2000")]
            rows.append(row(groups, repetition, simulator.run(lockstep, words, "v100", options=options).summary))
            tables.write(out / "groups.csv", COLUMNS, rows)
    print("\n".join(said(rows)))


if __name__ == "__main__":
    main()
