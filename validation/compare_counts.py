#!/usr/bin/env python3
"""Runs the workloads on a simulated GPU and compares its counts with those measured on the real one.

    compare_counts.py --lockstep BINARY --binaries DIR [--hardware DIR] [--gpu h200] [--sizes default medium large]
                      [--out DIR] [--only REGEX]

Only launches that repeat are compared: a launch repeats when its counts are the same in every repetition, cold and
warm (as `lockstep correlate` has it). What differs between cold and warm depends on time. Exits 1 if a count differs or a program does not verify.
"""

import argparse
import collections
import csv
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTERS = ["inst_executed", "thread_inst_executed", "warps_launched"]


def hardware(folder):
    """(size, program) -> launch -> (kernel, [counts of each repetition, cold and warm])"""
    found = collections.defaultdict(dict)
    for table in ["cold.csv", "warm.csv"]:
        with open(pathlib.Path(folder) / table, newline="") as file:
            for row in csv.DictReader(line for line in file if not line.startswith("#")):
                columns = [[int(float(value)) for value in row[counter].split()] for counter in COUNTERS]
                program = found[row["size"], row["program"]]
                program.setdefault(int(row["launch"]), (row["kernel"], []))[1].extend(zip(*columns))
    return found


def repeats(counts):
    """Whether a launch did the same every time; five times are needed to say so."""
    return len(counts) >= 5 and len(set(counts)) == 1


def arguments_of_sizes():
    """(size, program) -> what the program is called with; at the default size with nothing."""
    with open(ROOT / "workloads/workloads.toml", "rb") as file:
        workloads = tomllib.load(file)["program"]
    return {(size, work["name"]): work.get(size, []) for work in workloads for size in ["default", "medium", "large"]}


def simulated(arguments, program, given, folder):
    command = [arguments.lockstep, "run", "--gpu", arguments.gpu, "--frontend", "sass", "--mode", "functional"]
    command += ["--assemble"]
    command += ["--out", str(folder), "--", str(pathlib.Path(arguments.binaries) / program), *given]
    result = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds)
    verdict = next((line for line in result.stdout.splitlines() if line.startswith(("PASS", "FAIL"))), "")
    with open(folder / "kernels.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    counts = [tuple(int(float(row[counter] or -1)) for counter in COUNTERS) for row in rows]
    errors = [line for line in result.stderr.splitlines() if line.startswith("lockstep:")]
    return result.returncode, verdict, counts, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--hardware", default=ROOT / "validation/hardware/h200", help="folder of cold.csv and warm.csv")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--sizes", nargs="+", default=["default", "medium", "large"])
    parser.add_argument("--out", default=ROOT / "lockstep-out/counts")
    parser.add_argument("--only", default=".")
    parser.add_argument("--seconds", type=int, default=300)
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    bad = 0
    with open(out / "counts.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["program", "size", "verified", "launches", "repeating", "equal", "first_difference"])
        given = arguments_of_sizes()
        for (size, program), launches in hardware(arguments.hardware).items():
            if not re.search(arguments.only, program) or size not in arguments.sizes:
                continue
            folder = out / f"{program}-{size}"
            try:
                code, verdict, counts, errors = simulated(arguments, program, given[size, program], folder)
            except (subprocess.TimeoutExpired, OSError) as error:
                code, verdict, counts, errors = 1, f"no result: {type(error).__name__}", [], []
            repeating = {n: c[0] for n, (_, c) in launches.items() if repeats(c)}
            equal, first = 0, ""
            for launch, wanted in sorted(repeating.items()):
                got = counts[launch] if launch < len(counts) else None
                if got == wanted:
                    equal += 1
                elif not first:
                    first = f"launch {launch} {launches[launch][0]}: hardware {wanted}, simulated {got}"
            verified = code == 0 and verdict.startswith("PASS")
            bad += not verified or equal != len(repeating)
            first = first or (errors[0] if errors else "")
            writer.writerow([program, size, verified, len(launches), len(repeating), equal, first])
            file.flush()
            mark = "ok  " if verified and equal == len(repeating) else "BAD "
            print(f"{mark} {program} {size}: {equal} of {len(repeating)} equal ({len(launches)} launches) {first}"[:300], flush=True)
    print(f"{bad} programs differ")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
