#!/usr/bin/env python3
"""Measures a random tenth of the committed table again and says whether it still holds.

    recheck.py --libraries DIR --runner FILE [--hardware DIR] [--seed N] [--share 0.1] [--repetitions 3]
    recheck.py --measured CSV      the same with a table that measure.py wrote elsewhere; needs no GPU

Instruction counts of launches that repeat (`lockstep figures repeating`; name the simulator in LOCKSTEP if it is not
built here) must be the same. Cycles of a launch agree when the new median lies in the old spread, widened by 10 % or
400 cycles, whichever is more; nineteen of twenty launches must agree. The seed is printed, so that a choice can be
made again.
"""

import argparse
import os
import pathlib
import random
import re
import statistics
import sys

import measure
from harness import metrics, project, protocol, tables

MARGIN, CYCLES, MUST_AGREE = 0.10, 400.0, 0.95  # two machines of one kind differ by this much


def by_launch(path):
    """{(label, launch): row} of a table."""
    return {(f"{row['program']}/{row['size']}", int(row["launch"])): row for row in tables.rows(path)}


def agrees(old, new):
    """Whether new cycles are what the old ones let expect."""
    margin = max(CYCLES, MARGIN * statistics.median(old))
    return min(old) - margin <= statistics.median(new) <= max(old) + margin


def measured(arguments, chosen, counters):
    """{(label, launch): values of each repetition} of the chosen cases, and the labels that failed."""
    if not arguments.libraries or not arguments.runner:
        sys.exit("recheck.py: name --libraries and --runner, or a table with --measured")
    arguments.sizes, arguments.floors = ["default", "medium", "large"], None
    arguments.only = "^(" + "|".join(re.escape(label) for label in chosen) + ")$"
    wanted, broken, new = list(measure.lines(arguments)), set(), {}
    asked = {name: metrics.ONE_PASS[name] for name in ["cycles", *counters]}
    for _ in range(arguments.repetitions):
        found, _ = measure.one_repetition(wanted, asked, measure.COLD, arguments, broken)
        for key, (*_, values) in found.items():
            new.setdefault(key, []).append(values)
    return new, broken


def taken(path, chosen):
    """The same out of a table."""
    new = {}
    for repetition in measure.read_table(path):
        for key, (*_, values) in repetition.items():
            if key[0] in chosen:
                new.setdefault(key, []).append(values)
    return new, set()


def compare(old, new, exact):
    """(counts that differ, cycles that are outside), launch by launch."""
    different, outside = [], []
    for key, again in sorted(new.items()):
        for name, before in exact.get(key, {}).items():
            if any(float(values[name]) != before for values in again):
                different.append((key, name, before, again[0][name]))
        cycles, now = tables.repetitions(old[key]["cycles"]), [float(values["cycles"]) for values in again]
        if not agrees(cycles, now):
            outside.append((key, statistics.median(cycles), statistics.median(now)))
    return different, outside


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries")
    parser.add_argument("--runner")
    parser.add_argument("--measured", type=pathlib.Path, help="a table of cold cycles that was taken already")
    parser.add_argument("--hardware", type=pathlib.Path, default=project.HARDWARE / "h200")
    parser.add_argument("--ncu", default=project.ncu())
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    old = by_launch(arguments.hardware / "cold.csv")
    repeating = protocol.repeating(arguments.hardware)
    exact = {(f"{program}/{size}", launch): counts for (program, size, launch), counts in repeating.items()}
    counters = sorted({name for counts in exact.values() for name in counts})
    cases = sorted({label for label, _ in old})
    chosen = set(random.Random(arguments.seed).sample(cases, max(1, round(len(cases) * arguments.share))))
    print(f"seed {arguments.seed}: {len(chosen)} of {len(cases)} cases: {' '.join(sorted(chosen))}")

    new, broken = taken(arguments.measured, chosen) if arguments.measured else measured(arguments, chosen, counters)
    missing = [key for key in old if key[0] in chosen and key not in new]
    different, outside = compare(old, new, exact)
    for (label, launch), name, before, after in different:
        print(f"DIFFERENT {label} launch {launch} {name}: {before}, now {after}")
    for (label, launch), before, after in outside:
        print(f"outside   {label} launch {launch} cycles: {before:.0f}, now {after:.0f}")
    for label, launch in missing:
        print(f"MISSING   {label} launch {launch}")
    share = 1.0 - len(outside) / max(1, len(new))
    held = not different and not missing and not broken and share >= MUST_AGREE
    print(f"{len(new)} launches: {len(different)} counts differ, cycles of {share:.1%} agree: {'holds' if held else 'DOES NOT HOLD'}")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
