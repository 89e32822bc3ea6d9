#!/usr/bin/env python3
"""Runs the scenarios around kernels on a simulated GPU and compares their times with the real one's.

    compare_scenarios.py --lockstep BINARY --program FILE [--gpu h200] [--only TEXT] [--write TABLE]

FILE is microbench/scenarios.cu built by nvcc for sm_90. Only rows that hardware timed by events are compared: the host of
a simulated GPU is the one that simulates, and its own clock says nothing of it. A row is right within the range of
hardware's repetitions, and by the protocol's rule its error is nothing then: with more than half of the rows inside,
that median is 0 and says little. So the median of the plain distances from hardware's medians is printed first.
Prints the rows, both medians, and the share of rows within a quarter of hardware or inside its range.
"""

import argparse
import csv
import io
import statistics
import sys

from harness import project, protocol, simulator, tables

NEAR = 0.25


def pairs(measured, simulated):
    """(scenario and parameter, simulated, hardware's repetitions) of rows that both have, in hardware's order."""
    own = {(row["scenario"], row["parameter"]): float(row["median_us"]) for row in simulated if row["clock"] == "device"}
    for row in measured:
        key = row["scenario"], row["parameter"]
        if row["clock"] == "device" and key in own:
            yield " ".join(key), own[key], [float(row[name]) for name in ["low_us", "median_us", "high_us"]]


def near(row):
    """Whether a row counts as right."""
    return row["inside"] or abs(row["error"]) <= NEAR


def simulate(arguments):
    """The table that the program prints on a simulated GPU."""
    words = [arguments.program, "1", *([arguments.only] if arguments.only else [])]
    output = simulator.run(arguments.lockstep, words, arguments.gpu, options=["--quiet"]).output
    lines = [line for line in output.splitlines() if line.count(",") == 6]
    return list(csv.DictReader(io.StringIO("\n".join(lines))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--only", help="scenarios in whose name this is found")
    parser.add_argument("--write", help="table of rows")
    arguments = parser.parse_args()
    measured = tables.rows(project.HARDWARE / arguments.gpu / "scenarios.csv")
    figures = protocol.errors(pairs(measured, simulate(arguments)), arguments.lockstep)
    rows, errors = figures["rows"], figures["errors"]
    if not rows:
        sys.exit("no scenario was both measured and simulated")
    lines = [[row["name"], row["hardware"], row["least"], row["most"], row["simulated"], f"{100 * (row['simulated'] / row['hardware'] - 1):+.1f}"] for row in rows]
    for row, (name, hardware, _, _, simulated, error) in zip(rows, lines):
        print(f"{' ' if near(row) else '*'} {name:<60} {hardware:10.2f} {simulated:10.2f} {error:>7} %")
    right, inside = sum(map(near, rows)), sum(row["inside"] for row in rows)
    plain = statistics.median(abs(row["simulated"] / row["hardware"] - 1) for row in rows)
    print(f"{len(rows)} scenarios, median distance from hardware's median {100 * plain:.1f} %, {right} near ({100 * right / len(rows):.0f} %)")
    print(f"with nothing counted inside the range of repetitions ({inside} scenarios): median {100 * errors['median']:.1f} %, mean {100 * errors['mean']:.1f} %")
    if arguments.write:
        tables.write(arguments.write, ["scenario", "hardware_us", "low_us", "high_us", "simulated_us", "error_percent"], lines)


if __name__ == "__main__":
    main()
