#!/usr/bin/env python3
"""Runs a program's CUDA calls inside SST and compares with `lockstep run`: cycles, every statistic, digest, values.

Ends with 0 if all agree, 1 if something does not, and 77 with a sentence if something that it needs is missing.
"""

import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MISSING = 77
# What a run says at its end.
LINE = re.compile(r"^(\S+): (\d+) kernels, (\d+) cycles, values as recorded, digest ([0-9a-f]{64})$", re.M)
# A load of vector addition and the store behind it wait for memory at least once each.
SLOW, FAST = "1300ns", "300ns"


class Missing(Exception):
    """Something that the check needs is not there."""


def program_of_sst(name):
    """A command of SST, from SST_HOME or PATH."""
    home = os.environ.get("SST_HOME")
    found = shutil.which(name, path=str(Path(home) / "bin") if home else None)
    if not found:
        raise Missing(f"`{name}` was not found: put the bin folder of SST on PATH, or name its installation in SST_HOME")
    return found


def run(command, **options):
    """Runs a command and returns what it printed; its failure is ours."""
    done = subprocess.run(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise AssertionError(f"{words}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def build(given, folder):
    """Builds the element library; its folder."""
    words = [f"BUILD={folder / 'build'}", f"EMBED={given.embed.resolve()}"]
    run(["make", "-C", HERE, *words, f"SST_CONFIG={program_of_sst('sst-config')}"])
    return folder / "build"


def record(given, folder):
    """Runs the program under `lockstep run`: digest, cycles of its kernels, statistics."""
    out = folder / "run"
    command = [given.lockstep, "run", "--record", "full", "--threads", "1", "--gpu", given.gpu, "--out", out, "--"]
    run(command + given.program)
    with open(out / "kernels.csv", newline="") as file:
        cycles = [int(row["cycles"]) for row in csv.DictReader(file)]
    digest = json.loads((out / "summary.json").read_text())["digest"]
    return out / "calls.record", len(cycles), sum(cycles), digest, statistics(out / "stats.csv")


def statistics(path):
    """Every statistic of every part of the GPU."""
    with open(path, newline="") as file:
        return {(row["component"], row["statistic"]): row["value"] for row in csv.DictReader(file)}


def launchers():
    """How SST itself can run: one thread, two, and two ranks if it was built with MPI."""
    sst = program_of_sst("sst")
    found = {"one thread": [sst], "two threads": [sst, "-n", "2"]}
    mpirun = shutil.which("mpirun")
    if run([program_of_sst("sst-config"), "--MPICXX"]).strip() and mpirun:
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        found["two ranks"] = [mpirun, *as_root, "-n", "2", "--oversubscribe", sst]
    else:
        print("two ranks: skipped, SST was built without MPI or there is no mpirun")
    return found


class Inside:
    """Runs of one record inside SST."""

    def __init__(self, given, library, calls, folder):
        self.given, self.library, self.calls, self.folder = given, library, calls, folder

    def node(self, launcher, *options):
        """Runs the example; kernels, cycles and digest of each GPU, statistics of SST and of the first GPU."""
        files = self.folder / "sst.csv", self.folder / "gpu.csv"
        for file in self.folder.glob("*.csv"):
            file.unlink()
        said = run(
            launcher
            + [f"--add-lib-path={self.library}", HERE / "examples" / "node.py", "--", "--record", self.calls]
            + ["--gpu", self.given.gpu, "--statistics", files[0], "--gpu-statistics", files[1], *options]
        )
        ends = sorted((name, int(kernels), int(cycles), digest) for name, kernels, cycles, digest in LINE.findall(said))
        assert ends, said
        # Each rank writes a file of its own.
        rows = set()
        for file in self.folder.glob("sst*.csv"):
            with open(file, newline="") as lines:
                for row in csv.DictReader(lines, skipinitialspace=True):
                    row.pop("Rank", None)
                    rows.add(tuple(row.items()))
        return ends, sorted(rows), statistics(files[1])


def memories(wanted):
    """What may be behind the L1 caches, each with the options to run it with."""
    found = {"own": [[]], "flat": [["--latency", FAST], ["--latency", SLOW]], "hierarchy": [[]]}
    if "standardInterface" not in run([program_of_sst("sst-info"), "memHierarchy"]):
        print("memHierarchy: skipped, this SST does not have it")
        del found["hierarchy"]
    return {memory: choices for memory, choices in found.items() if memory in wanted}


def compare(given, library, folder):
    """All comparisons; raises where one fails."""
    calls, kernels, cycles, digest, counted = record(given, folder)
    print(f"lockstep run: {kernels} kernels, {cycles} cycles, digest {digest[:12]}", flush=True)
    inside = Inside(given, library, calls, folder)
    ways = {name: launcher for name, launcher in launchers().items() if name in given.ways}
    assert ways, f"SST cannot run in any of these ways: {', '.join(given.ways)}"
    first_way = next(iter(ways))
    obtained = {}
    for memory, choices in memories(given.memories).items():
        for choice in choices:
            found = {}
            for groups in given.sm_groups:
                # One way is enough for the others.
                for name in ways if groups == given.sm_groups[0] else [first_way]:
                    options = ["--memory", memory, "--sm-groups", groups, *choice]
                    began = time.monotonic()
                    found[f"{name}, {groups} SM groups"] = inside.node(ways[name], *options)
                    if given.times:
                        print(f"  {name}, {groups} SM groups: {time.monotonic() - began:.0f} s", flush=True)
            first = next(iter(found.values()))
            for name, other in found.items():
                assert other == first, f"memory {memory} {choice}: {name} differs:\n{other[0]}\n{first[0]}"
            ((_, *end),) = first[0]
            obtained[memory, *choice] = end
            what = f"{end[0]} kernels, {end[1]} cycles, digest {end[2][:12]}"
            print(f"memory {' '.join([memory, *choice])}: {what} in {len(found)} ways", flush=True)
            if memory == "own":
                assert end == [kernels, cycles, digest], f"{end} is not what `lockstep run` has"
                assert first[2] == counted, "the statistics are not those of `lockstep run`"
    if "flat" in given.memories:
        # A GHz or more, and two accesses behind each other.
        slower = obtained["flat", "--latency", SLOW][1] - obtained["flat", "--latency", FAST][1]
        assert slower > 2 * 1000 * kernels, f"a memory that takes 1000 ns more costs {slower} cycles"
    if given.two_nodes:
        several, _, _ = inside.node(ways.get("two threads", ways[first_way]), "--nodes", "2")
        assert [end[1:] for end in several] == [(kernels, cycles, digest)] * 2, several
        print(f"two nodes: {several[0][2]} cycles each")


def some_of(*known):
    """Reads a list with commas of known words."""

    def read(text):
        unknown = [word for word in text.split(",") if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"`{unknown[0]}` is none of: {', '.join(known)}")
        return text.split(",")

    return {"type": read, "default": list(known), "metavar": ",".join(known)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lockstep", default=ROOT / "target/release/lockstep", type=Path)
    parser.add_argument("--embed", default=ROOT / "target/release", type=Path, help="where liblockstep_embed.so is")
    parser.add_argument("--library", type=Path, help="folder of a liblockstep.so that is built already")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--memories", **some_of("own", "flat", "hierarchy"))
    parser.add_argument("--ways", **some_of("one thread", "two threads", "two ranks"))
    parser.add_argument("--sm-groups", **some_of("1", "2", "4"))
    parser.add_argument("--no-two-nodes", dest="two_nodes", action="store_false", help="run one node only")
    parser.add_argument("--times", action="store_true", help="say how long each run took")
    parser.add_argument("program", nargs="*", default=[ROOT / ".lockstep/bin/sm_90/vector_add", "8192"])
    given = parser.parse_args()
    try:
        program_of_sst("sst")
        for needed, made in (
            (given.lockstep, "cargo build --release"),
            (given.embed / "liblockstep_embed.so", "cargo build --release --package lockstep-embed"),
            (Path(given.program[0]), "cargo xtask demo"),
        ):
            if not needed.exists():
                raise Missing(f"{needed} is not there; {made} makes it")
    except Missing as missing:
        print(f"skipped: {missing}")
        return MISSING
    with tempfile.TemporaryDirectory(prefix="lockstep-sst-") as folder:
        folder = Path(folder)
        try:
            library = given.library or build(given, folder)
            compare(given, library, folder)
        except AssertionError as error:
            print(f"failed: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
