#!/usr/bin/env python3
"""Results of random programs on the GPU of this machine, batch by batch, for compare.py --record.

    record.py --seed 1 --programs 640 --way O3 [--way G ...] --out DIR [--seconds 300] [--compiler-seconds 40] [--images]

DIR gets `O3.txt` and so on, to which each batch is appended as soon as it has run: what was recorded stays if the
machine goes. A compiler that has not ended after --compiler-seconds counts as failed. No batch starts after --seconds.
With --images, DIR also gets what was compiled, as `O3-1.tar.xz` for the batch that begins with seed 1.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import check
import compile as compiling
import tools

BATCH = 32


def run(runner, listed, seconds):
    """What the programs of a list print on the GPU, as far as they come."""
    try:
        done = subprocess.run([runner, listed], capture_output=True, text=True, timeout=seconds)
        return done.stdout
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--programs", type=int, required=True)
    parser.add_argument("--kernels", type=int, default=16)
    parser.add_argument("--way", choices=compiling.WAYS, action="append", required=True)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--compiler-seconds", type=float, default=40)
    parser.add_argument("--images", action="store_true")
    options = parser.parse_args()
    compiling.SECONDS = options.compiler_seconds
    options.out.mkdir(parents=True, exist_ok=True)
    runner, start, kernels = tools.runner(options.out), time.monotonic(), 0
    seeds = list(range(options.seed, options.seed + options.programs))
    for batch in check.batches(seeds, BATCH):
        if time.monotonic() - start > options.seconds:
            print(f"no time is left for seeds {batch[0]} to {seeds[-1]}", flush=True)
            break
        folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-programs-"))
        try:
            check.write(batch, options.kernels, folder, os.cpu_count())
            for way in options.way:
                made = folder / way
                images, failures = compiling.compile_all(folder, way, options.arch, made, os.cpu_count())
                for source, why in failures.items():
                    print(f"{source.stem} {way}: {why}", flush=True)
                lines = run(runner, made / "list.txt", 60)
                with open(options.out / f"{way}.txt", "a") as results:
                    results.write(lines)
                kernels += lines.count("\n")
                if options.images:
                    compiling.pack(made, images, options.out / f"{way}-{batch[0]}.tar.xz")
        finally:
            shutil.rmtree(folder)
        print(f"seeds {batch[0]} to {batch[-1]}: {kernels} results, {time.monotonic() - start:.0f} s", flush=True)
    return 0 if kernels else 1


if __name__ == "__main__":
    sys.exit(main())
