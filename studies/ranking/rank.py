#!/usr/bin/env python3
"""Do design changes rank in simulation as they do on hardware?

    studies/ranking/rank.py LOCKSTEP PROGRAM [--reuse FOLDER] [--write TABLE]

PROGRAM is ranking.cu built by nvcc for sm_90. Runs it on the simulated GPU with emptied caches, and compares with
validation/hardware/h200/ranking.csv. A pair of variants of one question counts if hardware tells it apart: medians of
five repetitions differ by 3 % or more, and the repetitions do not overlap. All such pairs count; the script fails
below 90 %.
"""

import argparse
import csv
import itertools
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HARDWARE = ROOT / "validation" / "hardware" / "h200" / "ranking.csv"
LEAST = 0.03
WANTED = 0.90


def measured():
    with HARDWARE.open() as table:
        rows = csv.DictReader(line for line in table if not line.startswith("#"))
        return [(row["question"], row["variant"], [float(value) for value in row["cycles"].split()]) for row in rows]


def simulated(lockstep, program, folder):
    command = [lockstep, "run", "--gpu", "h200", "--cold-caches", "--out", folder, "--", program]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def cycles_of(folder):
    with open(f"{folder}/kernels.csv", newline="") as table:
        return [float(row["cycles"]) for row in csv.DictReader(table)]


def told_apart(one, other):
    a, b = statistics.median(one), statistics.median(other)
    return abs(a - b) / min(a, b) >= LEAST and (min(one) > max(other) or min(other) > max(one))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep")
    parser.add_argument("program")
    parser.add_argument("--reuse", help="a run folder that is there already")
    parser.add_argument("--write", help="table of variants")
    arguments = parser.parse_args()
    hardware = measured()
    if arguments.reuse:
        cycles = cycles_of(arguments.reuse)
    else:
        with tempfile.TemporaryDirectory() as folder:
            simulated(arguments.lockstep, arguments.program, f"{folder}/run")
            cycles = cycles_of(f"{folder}/run")
    if len(cycles) != len(hardware):
        sys.exit(f"{len(cycles)} launches in simulation, {len(hardware)} on hardware")
    variants = [(*row, value) for row, value in zip(hardware, cycles)]
    if arguments.write:
        with open(arguments.write, "w", newline="") as table:
            writer = csv.writer(table, lineterminator="\n")
            writer.writerow(["question", "variant", "hardware", "simulated", "error_percent"])
            for question, variant, real, value in variants:
                median = statistics.median(real)
                writer.writerow([question, variant, f"{median:.0f}", f"{value:.0f}", f"{100 * (value / median - 1):+.1f}"])
    pairs = right = 0
    print("question,pairs,right order")
    for question, group in itertools.groupby(variants, key=lambda row: row[0]):
        group = list(group)
        counted = [(a, b) for a, b in itertools.combinations(group, 2) if told_apart(a[2], b[2])]
        good = 0
        for a, b in counted:
            real, own = statistics.median(a[2]) > statistics.median(b[2]), a[3] > b[3]
            good += real == own
            if real != own:
                print(f"  {question}: {a[1]} and {b[1]}: hardware {statistics.median(a[2]):.0f}, {statistics.median(b[2]):.0f}; simulated {a[3]:.0f}, {b[3]:.0f}")
        print(f"{question},{len(counted)},{good}")
        pairs, right = pairs + len(counted), right + good
    print(f"all,{pairs},{right}: {100 * right / pairs:.1f} %")
    if right < WANTED * pairs:
        sys.exit(f"fewer than {100 * WANTED:.0f} % of the pairs are in the right order")


main()
