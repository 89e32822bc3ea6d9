#!/usr/bin/env python3
"""Runs programs split over several ranks and compares their digests with that of one process.

    compare_ranks.py --lockstep BINARY --binaries DIR --out CSV [--gpu h200] [--jobs N] [--seconds N] [--only NAME ...]
                     [--launcher COMMAND]

DIR holds the executables of `workloads` (`cargo xtask test` leaves some in .lockstep/workloads/static, `cargo xtask validate` all in .lockstep/bin/sm_90). Every program runs at its
default size with 1, 2 and 4 ranks of 1 and 2 threads each; one with several GPUs with as many as it needs. With a
launcher, such as "mpirun --allow-run-as-root --oversubscribe -n", ranks are those that MPI starts, and the simulator
must have been built with that feature. A run that is refused says why in its cell. Exits 1 if two digests of a program
differ or a run fails otherwise.
"""

import argparse
import concurrent.futures
import pathlib
import shlex
import subprocess
import sys
import tempfile

from harness import machine, simulator, tables, workloads

SPLITS = [(ranks, threads) for ranks in [1, 2, 4] for threads in [1, 2]]
# How a run that ranks cannot do begins to say so.
REFUSED = "--ranks: "
# GPUs that a program may need.
MOST_GPUS = 8


def programs(binaries, only):
    """(name, GPUs) of every program that was built."""
    for workload in workloads.load(most_gpus=MOST_GPUS):
        if (binaries / workload.name).exists() and (not only or workload.name in only):
            yield workload.name, workload.gpus


def run_split(arguments, name, gpus, ranks, threads):
    """The digest of a run, or why there is none."""
    options = ["--quiet", "--threads", str(threads), "--gpus", str(gpus)]
    launcher = shlex.split(arguments.launcher) + [str(ranks)] if arguments.launcher and ranks > 1 else []
    if ranks > 1:
        options += ["--ranks", "mpi" if launcher else str(ranks)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "run"
        program = [arguments.binaries / name]
        line = launcher + simulator.command(arguments.lockstep, program, arguments.gpu, options=options, out=folder)
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=arguments.seconds)
        except subprocess.TimeoutExpired:
            return f"no end within {arguments.seconds} s"
        refused = [said for said in done.stderr.splitlines() if REFUSED in said]
        if refused:
            return "refused: " + refused[0].split(REFUSED)[1]
        if done.returncode != 0:
            return f"ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}"
        return simulator.read(folder).summary["digest"]


def verdict(digests):
    """`equal`, `refused` or `DIFFERENT`, of the cells of a program."""
    refused = [digest for digest in digests if digest.startswith("refused")]
    kept = set(digests) - set(refused)
    if len(kept) != 1 or " " in next(iter(kept)):
        return "DIFFERENT"
    return "refused" if refused else "equal"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--seconds", type=int, default=120, help="that a run may take")
    parser.add_argument("--only", nargs="*", help="these programs")
    parser.add_argument("--launcher", help="what starts ranks of MPI; their number follows")
    arguments = parser.parse_args()
    rows, wrong = [], 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        started = [
            (name, gpus, [pool.submit(run_split, arguments, name, gpus, *split) for split in SPLITS])
            for name, gpus in programs(arguments.binaries, arguments.only)
        ]
        for name, gpus, runs in started:
            digests = [run.result() for run in runs]
            rows.append([name, gpus, verdict(digests), *digests])
            wrong += verdict(digests) == "DIFFERENT"
            print(name, verdict(digests), flush=True)
    columns = ["program", "gpus", "verdict", *[f"{ranks} ranks of {threads}" for ranks, threads in SPLITS]]
    head = [f"digests by ranks and threads, GPU {arguments.gpu}, {machine.today()}"]
    tables.write(arguments.out, columns, rows, head)
    equal = sum(row[2] == "equal" for row in rows)
    print(f"{equal} of {len(rows)} programs have one digest, {len(rows) - equal - wrong} are refused, {wrong} are wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
