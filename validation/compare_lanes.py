#!/usr/bin/env python3
"""Runs the kernels whose lanes part on a simulated GPU and compares every count with the real one's (decision 0007).

    compare_lanes.py --lockstep BINARY --binaries DIR [--gpu h200] [--only NAME]

DIR holds the executables of `microbench` (nvcc -O3 -std=c++17 -arch=sm_90 NAME.cu -o DIR/NAME). Launches that did not repeat
on hardware are left out. Prints for each kernel how many launches agree and which do not; exits 1 if a program fails.
"""

import argparse
import collections
import csv
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Table of hardware counts, and the runs whose launches it lists one after the other.
TABLES = {
    "divergence": ["divergence"],
    "reconvergence": ["reconvergence counts"],
    "recursion": [f"recursion counts {form}" for form in range(3)],
    "recursion_queens": [f"recursion counts {form} queens" for form in range(3)],
}


def hardware(path):
    """(kernel, set of counts over the repetitions) of each launch."""
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            repetitions = zip(row["inst_executed"].split(), row["thread_inst_executed"].split())
            yield row["kernel"], {(int(one), int(other)) for one, other in repetitions}


def simulated(lockstep, gpu, binaries, run):
    """Counts of each launch of a run."""
    program, *arguments = run.split()
    with tempfile.TemporaryDirectory() as folder:
        command = [lockstep, "run", "--quiet", "--gpu", gpu, "--mode", "functional", "--frontend", "sass", "--out", folder]
        subprocess.run([*command, "--", binaries / program, *arguments], check=True, stdout=subprocess.DEVNULL)
        with open(pathlib.Path(folder) / "kernels.csv", newline="") as file:
            return [(int(row["inst_executed"]), int(row["thread_inst_executed"])) for row in csv.DictReader(file)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--binaries", required=True, type=pathlib.Path)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--only", choices=TABLES, help="one table")
    arguments = parser.parse_args()
    for table in [arguments.only] if arguments.only else TABLES:
        measured = list(hardware(HERE / "hardware" / arguments.gpu / f"{table}.csv"))
        counts = []
        for run in TABLES[table]:
            counts += simulated(arguments.lockstep, arguments.gpu, arguments.binaries.resolve(), run)
        if len(counts) != len(measured):
            sys.exit(f"{table}: {len(counts)} launches simulated, {len(measured)} measured: build the programs anew")
        launches, equal, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(list)
        for (kernel, wanted), found in zip(measured, counts):
            name = kernel.split()[0] + kernel[kernel.find(" form"):] * (" form" in kernel)
            if len(wanted) > 1:
                continue
            launches[name] += 1
            if wanted == {found}:
                equal[name] += 1
            else:
                (instructions, lanes), = wanted
                wrong[name].append(f"{kernel} ({found[0] - instructions:+}, {found[1] - lanes:+})")
        print(f"{table}: {equal.total()} of {launches.total()}")
        for name, number in launches.items():
            print(f"  {name}: {equal[name]} of {number}")
            for line in wrong[name]:
                print(f"    {line}")


if __name__ == "__main__":
    main()
