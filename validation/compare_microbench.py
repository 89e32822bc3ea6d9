#!/usr/bin/env python3
"""Runs a microbenchmark on a simulated GPU and compares the counts of its launches with those of the real one.

    compare_microbench.py --lockstep BINARY --hardware CSV [--gpu h200] [--out DIR] -- PROGRAM [ARGUMENT ...]

The table names launches in order, with the counts of each repetition (validation/hardware/h200/divergence.csv and
reconvergence.csv). Launches that do not repeat are left out. Exits 1 if fewer than --at-least agree (default: all).
"""

import argparse
import collections
import csv
import pathlib
import subprocess
import sys

COUNTERS = ["inst_executed", "thread_inst_executed"]


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--hardware", required=True)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--out", default="lockstep-out/microbench")
    parser.add_argument("--at-least", type=int)
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    command = [arguments.lockstep, "run", "--gpu", arguments.gpu, "--frontend", "sass", "--mode", "functional"]
    subprocess.run(command + ["--out", str(out), "--"] + arguments.program, stdout=subprocess.DEVNULL, timeout=600, check=True)
    simulated = rows(out / "kernels.csv")
    total, equal = collections.Counter(), collections.Counter()
    for wanted, got in zip(rows(arguments.hardware), simulated, strict=True):
        repetitions = [wanted[counter].split() for counter in COUNTERS]
        if any(len(set(values)) > 1 for values in repetitions):
            continue
        name = wanted["kernel"].split()[0]
        total[name] += 1
        if all(values[0] == got[counter] for values, counter in zip(repetitions, COUNTERS)):
            equal[name] += 1
        else:
            print(f"{wanted['kernel']}: hardware {[values[0] for values in repetitions]}, "
                  f"simulated {[got[counter] for counter in COUNTERS]}")
    for name in total:
        print(f"{equal[name]:4} of {total[name]:4} {name}")
    agree, launches = sum(equal.values()), sum(total.values())
    print(f"{agree} of {launches} launches agree")
    sys.exit(agree < (launches if arguments.at_least is None else arguments.at_least))


if __name__ == "__main__":
    main()
