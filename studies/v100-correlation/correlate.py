#!/usr/bin/env python3
"""Vector addition, LU decomposition and hydrodynamics on the simulated V100 (table 3 of the SST-GPU report).

    studies/v100-correlation/correlate.py LOCKSTEP FOLDER [PROGRAM...]

FOLDER holds the built workloads with PTX, and `lu_products` (`nvcc -O3 -arch=sm_75 lu_products.cu -o FOLDER/lu_products`).
Prints cycles on `v100-sst` and `v100` beside the report's V100 and its model, with machine code that is assembled for
the V100 and with the PTX as it is; the share of time of the three longest kernels of each program and their
instruction mix. The report's figures were taken with nvprof, which empties no cache, so neither do we.
"""

import pathlib
import sys
from collections import defaultdict

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import protocol, simulator

# Program, arguments, cycles of the report's V100, of its model.
PROGRAMS = [
    ("vector_add", [], 5271, 5751),
    ("lu_products", ["256"], 494519, 605685),
    ("lu_decomposition", ["256"], 494519, 605685),
    ("hydrodynamics", ["22", "50"], 12454750, 11896477),
]
FRONT_ENDS = [("machine code", ["--frontend", "sass", "--assemble"]), ("PTX", ["--frontend", "ptx"])]
MIX = ["fp32", "fp64", "integer", "control", "load_store", "other", "inactive"]


def simulate(lockstep, gpu, front_end, program, arguments):
    """One run of a program."""
    # The report's copies do not pass L2, which the only kernel of an addition sees.
    cold = ["--cold-caches"] if program.endswith("vector_add") else []
    return simulator.run(lockstep, [program, *arguments], gpu, options=["--threads", "1", *front_end, *cold])


def longest_kernels(rows, count=3):
    """(kernel, share of the time, instruction mix) of those that take longest."""
    times = defaultdict(float)
    for row in rows:
        times[row["kernel"]] += float(row["cycles"])
    for kernel, time in sorted(times.items(), key=lambda item: -item[1])[:count]:
        mix = next(row for row in rows if row["kernel"] == kernel)
        yield kernel, time / sum(times.values()), {key: float(mix[key]) for key in MIX if mix.get(key)}


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
                run = simulate(lockstep, gpu, options, f"{folder}/{name}", arguments)
                cycles = run.total("cycles")
                pairs = [("ours", cycles, hardware), ("published", model, hardware)]
                errors = [f"{100 * row['error']:.1f}" for row in protocol.errors(pairs, lockstep)["rows"]]
                print(",".join(map(str, [name, front_end, gpu, cycles, hardware, model, *errors])), flush=True)
            for kernel, share, mix in longest_kernels(run.kernels):
                shares = " ".join(f"{key} {value:.0f}" for key, value in mix.items())
                print(f"  {kernel}: {100 * share:.0f} % of the time; {shares}", flush=True)


if __name__ == "__main__":
    main()
