#!/usr/bin/env python3
"""Builds every workload and runs it on the GPU of this machine; ends with a table and fails if any program fails.

    run_all.py [--size small|default|medium|large] [--arch sm_90] [--only REGEX] [--bin DIR]
               [--build-only | --run-only | --libraries]

With --libraries each program becomes a shared library for validation/runner.cu, of the same device code.

Environment: NVCC (default: nvcc on PATH, else the project's own), JOBS (parallel builds), RUN_JOBS (programs that
share the GPU), LIMIT (seconds for one program), LAUNCHER (words put before each program), DRIVER_FOLDER (where a
libcuda.so to link with is), OUT (a folder for workloads.csv and each program's output).
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "validation"))

from harness import project, tables, workloads

COLUMNS = ["program", "verdict", "exit_code", "seconds", "arguments", "line"]


def build_all(chosen, folder, options, environment):
    """Compiles the programs side by side; says of each that cannot be built why."""
    nvcc = project.nvcc(environment)
    with tempfile.TemporaryDirectory() as scratch:
        header = pathlib.Path(scratch) / "main.h"
        header.write_text('extern "C" int workload_main(int, char**);\n')

        def one(workload):
            driver = environment.get("DRIVER_FOLDER")
            said = workloads.build(nvcc, workload, options.arch, folder, options.libraries, header, driver)
            if said is not None:
                first = "\n".join(said.splitlines()[:5])
                print(f"cannot build {workload.name}:\n{first}", file=sys.stderr)

        with ThreadPoolExecutor(int(environment.get("JOBS") or os.cpu_count() or 1)) as pool:
            list(pool.map(one, chosen))


def judge(name, code, output):
    """(verdict, line) of a program that ended with this code; None is one that had to be stopped."""
    line, passed = workloads.verdict(name, output)
    line = line or (output.splitlines() or [""])[-1]
    if code is None:
        return "timeout", line
    return ("pass" if code == 0 and passed else "fail"), line


def run_one(workload, size, folder, limit, launcher):
    """A row of the table, and what the program printed."""
    words = workload.arguments(size) or ()
    program, begun = folder / workload.name, time.monotonic()
    code, output = 127, "not built\n"
    if os.access(program, os.X_OK):
        try:
            done = subprocess.run(
                [*launcher, str(program), *words],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=limit,
            )
            code, output = done.returncode, done.stdout
        except subprocess.TimeoutExpired as stopped:
            code, output = None, (stopped.stdout or b"").decode(errors="replace")
    verdict, line = judge(workload.name, code, output)
    shown = 124 if code is None else code
    return [workload.name, verdict, shown, f"{time.monotonic() - begun:.2f}", " ".join(words), line], output


def run_all(chosen, folder, options, environment):
    """Runs the programs; how many failed."""
    limit, launcher = float(environment.get("LIMIT") or 60), environment.get("LAUNCHER", "").split()
    with ThreadPoolExecutor(int(environment.get("RUN_JOBS") or 4)) as pool:
        done = list(pool.map(lambda workload: run_one(workload, options.size, folder, limit, launcher), chosen))
    for (name, verdict, _, seconds, _, line), _ in done:
        print(f"{name:<26} {verdict:<8} {seconds:>7}s  {line}")
    if environment.get("OUT"):
        out = pathlib.Path(environment["OUT"])
        (out / "workloads").mkdir(parents=True, exist_ok=True)
        tables.write(out / "workloads.csv", COLUMNS, [row for row, _ in done])
        for (name, *_), output in done:
            (out / "workloads" / f"{name}.txt").write_text(output)
    passed = sum(row[1] == "pass" for row, _ in done)
    print(f"{passed} passed, {len(done) - passed} failed")
    return len(done) - passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=workloads.SIZES, default="default")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--only", default=".", help="expression that a program's name must match")
    parser.add_argument("--bin", type=pathlib.Path, help="folder of the executables; without it they are not kept")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--build-only", action="store_true")
    what.add_argument("--run-only", action="store_true")
    what.add_argument("--libraries", action="store_true")
    options = parser.parse_args()
    chosen = [workload for workload in workloads.load() if re.search(options.only, workload.name)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.bin or pathlib.Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        if not options.run_only:
            build_all(chosen, folder, options, os.environ)
        if options.build_only or options.libraries:
            suffix = ".so" if options.libraries else ""
            missing = sum(not (folder / f"{workload.name}{suffix}").exists() for workload in chosen)
            print(f"{len(chosen)} programs for {options.arch} under {folder}, {missing} not built")
            sys.exit(1 if missing else 0)
        sys.exit(1 if run_all(chosen, folder, options, os.environ) else 0)


if __name__ == "__main__":
    main()
