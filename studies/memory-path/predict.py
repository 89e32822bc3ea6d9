#!/usr/bin/env python3
"""Changes of the memory path against predictions that were written down before the first run.

    studies/memory-path/predict.py LOCKSTEP BINARIES [--gpu h200]

BINARIES is a folder with `memory_streams` and `pointer_chase`. Runs both as they are and with every change of
`predictions.csv`, and prints the ratio of cycles (without the floor of each launch) beside what was predicted.
Ends with 1 if a change goes the other way than predicted.
"""

import csv
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "validation"))

from harness import simulator
from harness.words import take

ARGUMENTS = {"memory_streams": ["2097152"], "pointer_chase": ["16384", "4000"]}
# Cycles of an empty kernel.
FLOOR = 3100
# A ratio so near to one is no change.
NOTHING = 0.02


def cycles(lockstep, binaries, program, gpu, settings):
    """Cycles of a program's launches, without their floors."""
    command = [str(pathlib.Path(binaries) / program), *ARGUMENTS[program]]
    run = simulator.run(lockstep, command, gpu, settings, ["--cold-caches"])
    return run.total("cycles") - FLOOR * len(run.kernels)


def quoted(setting):
    """A setting as the command line takes it: values with a unit are strings."""
    key, value = setting.split("=", 1)
    return f'{key}="{value}"' if " " in value else setting


def main():
    words, options = take(sys.argv[1:], {"--gpu": "h200"})
    if len(words) != 2:
        sys.exit(__doc__)
    lockstep, binaries = words
    gpu = options["--gpu"]
    before = {name: cycles(lockstep, binaries, name, gpu, []) for name in ARGUMENTS}
    print("change,least,most,obtained,verdict")
    wrong = 0
    with open(HERE / "predictions.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        settings = [quoted(setting) for setting in row["settings"].split(";")]
        program = row["program"]
        ratio = cycles(lockstep, binaries, program, gpu, settings) / before[program]
        least, most = float(row["least"]), float(row["most"])
        if least <= ratio <= most:
            verdict = "as predicted"
        elif (ratio < 1 - NOTHING and least >= 1) or (ratio > 1 + NOTHING and most <= 1):
            verdict, wrong = "other direction", wrong + 1
        else:
            verdict = "other amount"
        print(f"{row['change']},{least},{most},{ratio:.3f},{verdict}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
