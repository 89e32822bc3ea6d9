#!/usr/bin/env python3
"""Runs every microbenchmark of a folder and prints one table; each is cut off after LIMIT seconds (60).

    run_microbench.py DIR > microbench.csv

DIR holds the executables: nvcc -O3 -std=c++17 -arch=sm_90 microbench/NAME.cu -o DIR/NAME
"""

import os
import pathlib
import subprocess
import sys
import time

from harness import machine

BENCHMARKS = (
    "exchange small_caches atomics l2 dram translation copies launch_floor tensor reductions spread calls contention "
    "first_touch bursts"
).split()


def lines(benchmark, output):
    """What a benchmark printed, as rows of the table."""
    return [f"{benchmark},{line}" for line in output.splitlines()]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder, limit = pathlib.Path(sys.argv[1]), float(os.environ.get("LIMIT") or 60)
    print("# command: run_microbench.py")
    print(f"# date: {machine.today()}")
    print(f"# card ({machine.CARD}): {machine.card()}")
    print("benchmark,name,parameter,value,unit", flush=True)
    for benchmark in BENCHMARKS:
        begun = time.monotonic()
        try:
            done = subprocess.run([str(folder / benchmark)], stdout=subprocess.PIPE, text=True, timeout=limit)
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as stopped:
            code, output = 124, (stopped.stdout or b"").decode(errors="replace")
        except OSError as error:
            code, output = error.strerror, ""
        print("".join(f"{line}\n" for line in lines(benchmark, output)), end="", flush=True)
        print(f"{benchmark}: exit {code} after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    print(f"# clocks afterwards ({machine.CARD}): {machine.card()}")


if __name__ == "__main__":
    main()
