#!/usr/bin/env python3
"""What the model of memory does to one program (section C.2 of the SST-GPU report).

    studies/dram-back-ends/compare.py LOCKSTEP PROGRAM [ARGUMENTS...] [--gpu v100-sst]

Runs PROGRAM with every DRAM back end and prints cycles, bytes and row hits.
"""
import csv
import subprocess
import sys
import tempfile

BACK_ENDS = ["fixed", "simple", "timing", "timing-in-order"]


def main():
    words = sys.argv[1:]
    gpu = "v100-sst"
    if "--gpu" in words:
        at = words.index("--gpu")
        gpu = words[at + 1]
        del words[at : at + 2]
    if len(words) < 2:
        sys.exit(__doc__)
    lockstep, program = words[0], words[1:]
    print("back end,cycles,bytes read,bytes written,row hits in percent")
    for back_end in BACK_ENDS:
        with tempfile.TemporaryDirectory() as folder:
            # The report's copies do not pass L2: kernels begin with empty caches.
            command = [lockstep, "run", "--gpu", gpu, "--cold-caches", "--out", f"{folder}/run"]
            command += ["--set", f"dram.back-end={back_end}", "--", *program]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(f"{folder}/run/kernels.csv", newline="") as table:
                rows = list(csv.DictReader(table))
            with open(f"{folder}/run/stats.csv", newline="") as table:
                stats = list(csv.DictReader(table))
        total = lambda key: sum(int(row[key] or 0) for row in rows)
        count = lambda name: sum(int(row["value"]) for row in stats if row["statistic"] == name)
        hits, misses = count("row_hits"), count("row_misses")
        share = 100 * hits / max(hits + misses, 1)
        print(f"{back_end},{total('cycles')},{total('dram_bytes_read')},{total('dram_bytes_written')},{share:.0f}")


main()
