#!/usr/bin/env python3
"""What a simulation costs against the number of GPUs, alone and with memory that all of them reach.

    measure.py LOCKSTEP EVERY_GPU OUT [--gpus 1,2,4,8] [--threads 1,16] [--size 256] [--launches 4] [--repeat 2]

OUT gets gpus.csv. Build EVERY_GPU with `nvcc -O3 -std=c++17 -arch=sm_90 every_gpu.cu`. Of repeated runs the quickest
counts.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import simulator, tables
from harness.words import take

COLUMNS = ["gpus", "memory", "threads", "seconds", "processor_seconds", "peak_memory_mib", "warp_instructions", "digest"]
WAYS = {"apart": [], "shared": ["pinned"]}


def row(gpus, memory, threads, summary):
    """What one run's summary says."""
    host = summary["host"]
    figures = [f"{host['seconds']:.3f}", f"{host['processor_seconds']:.3f}", round(host["peak_memory"] / 2**20)]
    return [gpus, memory, threads, *figures, summary["totals"]["inst_executed"], summary["digest"]]


def said(rows):
    """Seconds against one GPU and against one thread, and whether digests are one for any number of threads."""
    seconds = {tuple(row[:3]): float(row[3]) for row in rows}
    for (gpus, memory, threads), taken in seconds.items():
        one_gpu = seconds.get((1, memory, threads))
        one_thread = seconds.get((gpus, memory, 1))
        yield (
            f"{gpus} GPUs, memory {memory}, {threads} threads: {taken:.2f} s"
            + (f", {taken / one_gpu:.2f} times one GPU" if one_gpu else "")
            + (f", {one_thread / taken:.2f} times faster than one thread" if one_thread else "")
        )
    for gpus, memory in sorted({tuple(row[:2]) for row in rows}):
        digests = {row[-1] for row in rows if tuple(row[:2]) == (gpus, memory)}
        if len(digests) > 1:
            yield f"{gpus} GPUs, memory {memory}: {len(digests)} digests"


def main():
    choices = {"--gpus": "1,2,4,8", "--threads": "1,16", "--size": "256", "--launches": "4", "--repeat": "2"}
    words, options = take(sys.argv[1:], choices)
    if len(words) != 3:
        sys.exit(__doc__)
    lockstep, program, out = words[0], pathlib.Path(words[1]).resolve(), pathlib.Path(words[2])
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for threads in map(int, options["--threads"].split(",")):
        for memory, more in WAYS.items():
            for gpus in map(int, options["--gpus"].split(",")):
                call = [program, options["--size"], options["--launches"], *more]
                given = ["--quiet", "--record", "none", "--gpus", str(gpus), "--threads", str(threads)]
                runs = [simulator.run(lockstep, call, "h200", options=given) for _ in range(int(options["--repeat"]))]
                best = min(runs, key=lambda run: run.summary["host"]["seconds"])
                rows.append(row(gpus, memory, threads, best.summary))
                tables.write(out / "gpus.csv", COLUMNS, rows)
    print("\n".join(said(rows)))


if __name__ == "__main__":
    main()
