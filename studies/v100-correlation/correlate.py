#!/usr/bin/env python3
"""Vector addition, LU decomposition and hydrodynamics on the simulated V100 (table 3 of the SST-GPU report).

    studies/v100-correlation/correlate.py LOCKSTEP FOLDER [PROGRAM...]

FOLDER holds the built workloads with PTX, and `lu_products` (`nvcc -O3 -arch=sm_75 lu_products.cu -o FOLDER/lu_products`).
Prints cycles on `v100-sst` and `v100` beside the report's V100 and its model, with machine code that is assembled for
the V100 and with the PTX as it is; the share of time of the three longest kernels of each program and their
instruction mix. The report's figures were taken with nvprof, which empties no cache, so neither do we.
"""
import csv
import subprocess
import sys
import tempfile
from collections import defaultdict

# Program, arguments, cycles of the report's V100, of its model.
PROGRAMS = [
    ("vector_add", [], 5271, 5751),
    ("lu_products", ["256"], 494519, 605685),
    ("lu_decomposition", ["256"], 494519, 605685),
    ("hydrodynamics", ["22", "50"], 12454750, 11896477),
]
FRONT_ENDS = [("machine code", ["--frontend", "sass", "--assemble"]), ("PTX", ["--frontend", "ptx"])]
MIX = ["fp32", "fp64", "integer", "control", "load_store", "other", "inactive"]


def run(lockstep, gpu, front_end, program, arguments):
    with tempfile.TemporaryDirectory() as folder:
        # The report's copies do not pass L2, which the only kernel of an addition sees.
        cold = ["--cold-caches"] if program.endswith("vector_add") else []
        options = ["--gpu", gpu, "--threads", "1", *front_end, *cold, "--out", f"{folder}/run"]
        command = [lockstep, "run", *options, "--", program, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{folder}/run/kernels.csv", newline="") as table:
            return list(csv.DictReader(table))


def say_kernels(rows):
    """The three longest kernels: share of time and instruction mix."""
    times = defaultdict(float)
    for row in rows:
        times[row["kernel"]] += float(row["cycles"])
    for kernel, time in sorted(times.items(), key=lambda item: -item[1])[:3]:
        mix = next(row for row in rows if row["kernel"] == kernel)
        shares = " ".join(f"{key} {float(mix[key]):.0f}" for key in MIX if mix.get(key))
        print(f"  {kernel}: {100 * time / sum(times.values()):.0f} % of the time; {shares}", flush=True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    lockstep, folder, *only = sys.argv[1:]
    print("program,front end,gpu,cycles,V100 (published),its model (published),error in percent,published error in percent")
    for name, arguments, hardware, model in PROGRAMS:
        if only and name not in only:
            continue
        for front_end, options in FRONT_ENDS:
            for gpu in ("v100-sst", "v100"):
                rows = run(lockstep, gpu, options, f"{folder}/{name}", arguments)
                cycles = sum(int(row["cycles"]) for row in rows)
                error = 100 * abs(cycles - hardware) / hardware
                published = 100 * abs(model - hardware) / hardware
                print(f"{name},{front_end},{gpu},{cycles},{hardware},{model},{error:.1f},{published:.1f}", flush=True)
            say_kernels(rows)


main()
