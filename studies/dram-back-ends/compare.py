#!/usr/bin/env python3
"""What the model of memory does to one program (section C.2 of the SST-GPU report).

    studies/dram-back-ends/compare.py LOCKSTEP PROGRAM [ARGUMENTS...] [--gpu v100-sst]

Runs PROGRAM with every DRAM back end and prints cycles, bytes and row hits.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import simulator
from harness.words import take

BACK_ENDS = ["fixed", "simple", "timing", "timing-in-order"]


def row(back_end, run):
    """What one run shows."""
    hits, misses = run.statistic("row_hits"), run.statistic("row_misses")
    share = 100 * hits / max(hits + misses, 1)
    counts = [run.total(counter) for counter in ["cycles", "dram_bytes_read", "dram_bytes_written"]]
    return [back_end, *counts, f"{share:.0f}"]


def main():
    words, options = take(sys.argv[1:], {"--gpu": "v100-sst"})
    if len(words) < 2:
        sys.exit(__doc__)
    lockstep, program = words[0], words[1:]
    print("back end,cycles,bytes read,bytes written,row hits in percent")
    for back_end in BACK_ENDS:
        # The report's copies do not pass L2: kernels begin with empty caches.
        run = simulator.run(lockstep, program, options["--gpu"], [f"dram.back-end={back_end}"], ["--cold-caches"])
        print(",".join(map(str, row(back_end, run))), flush=True)


if __name__ == "__main__":
    main()
