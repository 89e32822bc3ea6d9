#!/usr/bin/env python3
"""Runs the kernels whose lanes diverge on a simulated GPU and compares every count with the real one's (decision 0007).

    compare_lanes.py --lockstep BINARY --binaries DIR [--gpu h200] [--only NAME]
    compare_lanes.py --lockstep BINARY --hardware CSV [--gpu h200] [--at-least N] -- PROGRAM [ARGUMENT ...]

DIR holds the executables of `microbench` (nvcc -O3 -std=c++17 -arch=sm_90 NAME.cu -o DIR/NAME). The second form compares
one program with one table, which names its launches in order. Launches whose counts differ between repetitions on
hardware are left out. Prints for each kernel how many launches agree and which do not. Exits 1 if a program fails or,
with a table, if fewer than --at-least launches agree (default: all).
"""

import argparse
import collections
import pathlib
import sys

from harness import project, protocol, simulator, tables

COUNTERS = ["inst_executed", "thread_inst_executed"]
# Table of hardware counts, and the runs whose launches it lists one after the other.
TABLES = {
    "divergence": ["divergence"],
    "reconvergence": ["reconvergence counts"],
    "recursion": [f"recursion counts {form}" for form in range(3)],
    "recursion_queens": [f"recursion counts {form} queens" for form in range(3)],
}


def group_of(kernel):
    """Kernels are counted together by their name, and by their form where they have one."""
    return kernel.split()[0] + kernel[kernel.find(" form") :] * (" form" in kernel)


def compare(measured, kernels, lockstep=None):
    """[(kernel, {counter: simulated - hardware})] of the launches that repeat; nothing differs where all are 0."""
    if len(measured) != len(kernels):
        raise SystemExit(f"{len(kernels)} launches simulated, {len(measured)} measured: build the programs anew")
    pairs = [
        (counter, own[counter], tables.repetitions(row[counter], int))
        for row, own in zip(measured, kernels)
        for counter in COUNTERS
    ]
    figures = protocol.errors(pairs, lockstep)["rows"]
    for index, row in enumerate(measured):
        own = figures[len(COUNTERS) * index : len(COUNTERS) * (index + 1)]
        if all(figure["repeats"] for figure in own):
            yield row["kernel"], {figure["name"]: int(figure["simulated"] - figure["hardware"]) for figure in own}


def report(title, compared):
    """Prints how many launches of each kernel agree, and which do not; (agreeing, all)."""
    launches, equal, wrong = collections.Counter(), collections.Counter(), collections.defaultdict(list)
    for kernel, differences in compared:
        name = group_of(kernel)
        launches[name] += 1
        if any(differences.values()):
            wrong[name].append(f"{kernel} ({', '.join(f'{value:+}' for value in differences.values())})")
        else:
            equal[name] += 1
    print(f"{title}: {equal.total()} of {launches.total()}")
    for name, number in launches.items():
        print(f"  {name}: {equal[name]} of {number}")
        for line in wrong[name]:
            print(f"    {line}")
    return equal.total(), launches.total()


def simulate(arguments, words):
    """The launches of a program, counted without time."""
    options = ["--quiet", "--mode", "functional", "--frontend", "sass"]
    return simulator.run(arguments.lockstep, words, arguments.gpu, options=options).kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--binaries", type=pathlib.Path)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--only", choices=TABLES, help="one table")
    parser.add_argument("--hardware", help="a table of one program")
    parser.add_argument("--at-least", type=int)
    parser.add_argument("program", nargs="*")
    arguments = parser.parse_args()
    if bool(arguments.program) != bool(arguments.hardware) or bool(arguments.program) == bool(arguments.binaries):
        parser.error("name --binaries, or --hardware and a program")
    if arguments.program:
        compared = compare(tables.rows(arguments.hardware), simulate(arguments, arguments.program), arguments.lockstep)
        agree, launches = report(arguments.program[0], compared)
        sys.exit(agree < (launches if arguments.at_least is None else arguments.at_least))
    for table in [arguments.only] if arguments.only else TABLES:
        kernels = []
        for run in TABLES[table]:
            program, *words = run.split()
            kernels += simulate(arguments, [arguments.binaries.resolve() / program, *words])
        measured = tables.rows(project.HARDWARE / arguments.gpu / f"{table}.csv")
        report(table, compare(measured, kernels, arguments.lockstep))


if __name__ == "__main__":
    main()
