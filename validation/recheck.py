#!/usr/bin/env python3
"""Measures a random tenth of the committed table again and says whether it still holds.

    recheck.py --libraries DIR --runner FILE [--hardware DIR] [--seed N] [--share 0.1] [--repetitions 3]
    recheck.py --measured CSV      the same with a table that measure.py wrote elsewhere; needs no GPU

Instruction counts of launches that repeat (cold and warm: see compare_counts.py) must be the same. Cycles of a launch agree when the new median lies in
the old spread, widened by 10 % or 400 cycles, whichever is more; nineteen of twenty launches must agree.
The seed is printed, so that a choice can be made again.
"""

import argparse
import csv
import os
import pathlib
import random
import re
import statistics
import sys

import measure

EXACT = ["inst_executed", "thread_inst_executed", "warps_launched"]
MARGIN, CYCLES, MUST_AGREE = 0.10, 400.0, 0.95  # two machines of one kind differ by this much


def table(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            yield (f"{row['program']}/{row['size']}", int(row["launch"])), row


def agrees(old, new):
    margin = max(CYCLES, MARGIN * statistics.median(old))
    return min(old) - margin <= statistics.median(new) <= max(old) + margin


def measured(arguments, chosen):
    """{(label, launch): values of each repetition} of the chosen cases, and the labels that failed."""
    if not arguments.libraries or not arguments.runner:
        sys.exit("recheck.py: name --libraries and --runner, or a table with --measured")
    arguments.sizes, arguments.floors = ["default", "medium", "large"], None
    arguments.only = "^(" + "|".join(re.escape(label) for label in chosen) + ")$"
    wanted, broken, new = list(measure.lines(arguments)), set(), {}
    metrics = {name: measure.ONE_PASS[name] for name in ["cycles", *EXACT]}
    for _ in range(arguments.repetitions):
        found, _ = measure.one_repetition(wanted, metrics, measure.COLD, arguments, broken)
        for key, (*_, values) in found.items():
            new.setdefault(key, []).append(values)
    return new, broken


def taken(arguments, chosen):
    """The same out of a table."""
    new = {}
    for repetition in measure.read_table(arguments.measured):
        for key, (*_, values) in repetition.items():
            if key[0] in chosen:
                new.setdefault(key, []).append(values)
    return new, set()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries")
    parser.add_argument("--runner")
    parser.add_argument("--measured", type=pathlib.Path, help="a table of cold cycles that was taken already")
    parser.add_argument("--hardware", default=measure.ROOT / "validation/hardware/h200")
    parser.add_argument("--ncu", default=measure.shutil.which("ncu") or "/usr/local/cuda/bin/ncu")
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    old = dict(table(pathlib.Path(arguments.hardware) / "cold.csv"))
    warm = dict(table(pathlib.Path(arguments.hardware) / "warm.csv"))
    cases = sorted({label for label, _ in old})
    chosen = set(random.Random(arguments.seed).sample(cases, max(1, round(len(cases) * arguments.share))))
    print(f"seed {arguments.seed}: {len(chosen)} of {len(cases)} cases: {' '.join(sorted(chosen))}")

    new, broken = taken(arguments, chosen) if arguments.measured else measured(arguments, chosen)
    missing = [key for key in old if key[0] in chosen and key not in new]
    different, outside = [], []
    for key, again in sorted(new.items()):
        for name in EXACT:
            before = {float(value) for value in (old[key][name] + " " + warm[key][name]).split()}
            if len(before) == 1 and any(float(values[name]) not in before for values in again):
                different.append((key, name, before.pop(), again[0][name]))
        cycles = [float(value) for value in old[key]["cycles"].split()]
        now = [float(values["cycles"]) for values in again]
        if not agrees(cycles, now):
            outside.append((key, statistics.median(cycles), statistics.median(now)))
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
