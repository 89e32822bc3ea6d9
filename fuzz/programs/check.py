#!/usr/bin/env python3
"""Programs held to recorded results, or fresh ones of which several ways must agree.

    check.py --golden FILE [--programs N] [--way functional:O3 ...]   recorded programs, the first N of FILE
    check.py --seed S --programs N [--way host --way functional:O3 ...]  fresh ones; the first way is what others must give

Ways are those of ways.py. Programs are written, compiled and run in batches; a line is printed for each kernel that
differs, and a line for each way. The exit code is 1 if any differs, or if nothing was compared. Recorded programs are
made by the generator that FILE names, or taken from the archive beside it (FILE with the suffix .tar.xz).
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

import compare
import tools
import ways

BATCH = 64


def header(golden):
    """What the first lines of a golden file say, by name."""
    lines = [line[2:].split(" ", 1) for line in pathlib.Path(golden).read_text().splitlines() if line.startswith("# ")]
    return {line[0]: line[-1] for line in lines}


def write(seeds, kernels, folder, jobs=1):
    """Writes the programs of these seeds."""

    def one(seed):
        command = [sys.executable, tools.HERE / "generate.py", "--seed", seed, "--kernels", kernels, "--out", folder]
        subprocess.run([str(word) for word in command], check=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, seeds))


def unpack(archive, seeds, folder):
    """Takes the programs of these seeds out of an archive."""
    wanted = {f"p{seed}{suffix}" for seed in seeds for suffix in (".cu", ".txt")}
    with tarfile.open(archive) as opened:
        for name in sorted(wanted):
            member = opened.extractfile(name)
            (folder / name).write_bytes(member.read())


def batches(seeds, size):
    return [seeds[start : start + size] for start in range(0, len(seeds), size)]


class Tally:
    """What was compared, by way."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)

    def compare(self, way, expected, found):
        """Counts, and prints what differs."""
        counts = self.counts[way]
        counts["kernels"] += len(expected.keys() & found.keys())
        counts["absent"] += len(expected.keys() - found.keys())
        for key in compare.differences(expected, found):
            error = compare.is_error(found[key]) or compare.is_error(expected[key])
            counts["errors" if error else "wrong values"] += 1
            print(f"{key[0]} {key[1]} {way}: {found[key]} instead of {expected[key]}", flush=True)

    def report(self):
        """Prints a line for each way; whether all agree."""
        agree = bool(self.counts)
        for way, counts in self.counts.items():
            print(f"{way}: {counts['kernels']} kernels, {counts['wrong values']} wrong values, {counts['errors']} errors, {counts['absent']} absent")
            agree &= counts["kernels"] > 0 and not counts["wrong values"] and not counts["errors"]
        return agree


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--kernels", type=int, default=16)
    parser.add_argument("--way", type=ways.is_way, action="append")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if (options.golden is None) == (options.seed is None or options.programs is None):
        parser.error("either --golden, or --seed with --programs")
    options.way = options.way or (["functional:O3"] if options.golden else ["functional:O3", "timing:O3", "functional:G", "functional:ptx"])
    return options


def main():
    options = parsed()
    golden, archive = {}, None
    if options.golden:
        golden = compare.read(options.golden)
        seeds = sorted({int(program[1:]) for program, _ in golden})[: options.programs]
        options.kernels = 1 + max(int(kernel[1:]) for _, kernel in golden)
        archive = options.golden.with_suffix(".tar.xz")
        if not archive.exists():
            archive = None
            if header(options.golden)["generator"] != tools.generator_digest():
                sys.exit(f"check.py: {options.golden} was recorded with another generator; record it again on a GPU, or check out its commit")
    else:
        seeds = list(range(options.seed, options.seed + options.programs))
    tally = Tally()
    for batch in batches(seeds, BATCH):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-programs-"))
        try:
            unpack(archive, batch, folder) if archive else write(batch, options.kernels, folder, options.jobs)
            names = {f"p{seed}" for seed in batch}
            expected = {key: value for key, value in golden.items() if key[0] in names}
            for way in options.way:
                lines, failures, said = ways.results(folder, way, folder / "out", arch=options.arch, jobs=options.jobs)
                for name, why in failures.items():
                    print(f"{name} {way}: {why}", flush=True)
                if not lines:
                    print(said, file=sys.stderr)
                found = compare.parse(lines)
                if not expected:
                    expected = found
                tally.compare(way, expected, found)
        finally:
            shutil.rmtree(folder)
    return 0 if tally.report() else 1


if __name__ == "__main__":
    sys.exit(main())
