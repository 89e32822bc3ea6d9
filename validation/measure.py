#!/usr/bin/env python3
"""Measures the workloads on a real GPU with Nsight Compute and writes one CSV a question.

    measure.py verify  --binaries DIR --out DIR     every program verifies itself
    measure.py counts  --binaries DIR --out DIR     instruction counts, five repetitions
    measure.py cycles  --binaries DIR --out DIR     elapsed cycles in a pass of their own, cold and natural warm

DIR holds one executable a program (built by `cargo xtask validate --build`), so that hardware and
simulator run the same machine code. The list of programs and their arguments is workloads/workloads.toml.
Clocks are left as found and recorded beside the data. Needs Python 3.11, ncu, nvidia-smi; nothing else.
"""

import argparse
import csv
import datetime
import io
import os
import pathlib
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent

COUNTS = {
    "inst_executed": "smsp__inst_executed.sum",
    "thread_inst_executed": "smsp__thread_inst_executed.sum",
    "warps_launched": "smsp__warps_launched.sum",
    "inst_issued": "smsp__inst_issued.sum",
}
CYCLES = {
    "cycles": "sm__cycles_elapsed.max",
    "duration_ns": "gpu__time_duration.sum",
}
REPETITIONS = 5
SECONDS_A_PROGRAM = 60


def programs(size):
    table = tomllib.loads((ROOT / "workloads" / "workloads.toml").read_text())
    for entry in table["program"]:
        arguments = entry.get(size, [])
        yield entry["name"], [str(argument) for argument in arguments]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_A_PROGRAM * 4, **options)


def provenance(arguments):
    query = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem"
    card = run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]).stdout.strip()
    version = run(["ncu", "--version"]).stdout.strip().splitlines()[-1]
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return [
        f"# command: measure.py {arguments.question} --size {arguments.size}",
        f"# date: {date}",
        f"# card ({query}): {card}",
        f"# profiler: {version}; clocks left as found (--clock-control none)",
    ]


def profile(binary, program_arguments, metrics, options):
    """Rows of one profiled run: (launch, kernel, grid, block, {name: value})."""
    command = ["ncu", "--csv", "--page", "raw", "--clock-control", "none", *options]
    command += ["--metrics", ",".join(metrics.values()), "--print-units", "base", str(binary), *program_arguments]
    result = run(command)
    lines = result.stdout.splitlines()
    start = next((index for index, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise RuntimeError(f"{binary.name}: no profile; {' '.join(lines[-3:])} {result.stderr[-300:]}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))[1:]  # the second line holds units
    for launch, row in enumerate(rows):
        values = {name: row[metric].replace(",", "") for name, metric in metrics.items()}
        yield launch, row["Kernel Name"], row["Grid Size"], row["Block Size"], values


def write_profiles(arguments, file_name, metrics, variants):
    """Repetitions are the outer loop, so that a run cut short has whole repetitions of everything."""
    broken = set()
    start = time.monotonic()
    path = pathlib.Path(arguments.out) / file_name
    with path.open("w", newline="") as file:
        file.write("\n".join(provenance(arguments)) + "\n")
        writer = csv.writer(file)
        writer.writerow(["program", "variant", "repetition", "launch", "kernel", "grid", "block", *metrics])
        for repetition in range(arguments.repetitions):
            for variant, options in variants.items():
                for name, program_arguments in programs(arguments.size):
                    binary = pathlib.Path(arguments.binaries) / name
                    if not binary.exists() or name in broken:
                        continue
                    if time.monotonic() - start > arguments.seconds:
                        print(f"stopped after {arguments.seconds} s in repetition {repetition}", file=sys.stderr)
                        return len(broken)
                    try:
                        for launch, kernel, grid, block, values in profile(binary, program_arguments, metrics, options):
                            writer.writerow([name, variant, repetition, launch, kernel, grid, block, *values.values()])
                    except (RuntimeError, subprocess.TimeoutExpired, KeyError) as error:
                        broken.add(name)
                        print(f"{name} {variant}: {error}", file=sys.stderr)
                file.flush()
                print(f"repetition {repetition} {variant}: {time.monotonic() - start:.0f} s", flush=True)
    return len(broken)


def verify(arguments):
    failures = 0
    path = pathlib.Path(arguments.out) / "verify.csv"
    with path.open("w", newline="") as file:
        file.write("\n".join(provenance(arguments)) + "\n")
        writer = csv.writer(file)
        writer.writerow(["program", "exit", "last_line"])
        for name, program_arguments in programs(arguments.size):
            binary = pathlib.Path(arguments.binaries) / name
            if not binary.exists():
                print(f"SKIP {name}: not built")
                continue
            try:
                result = run([str(binary), *program_arguments], cwd=arguments.binaries)
                code, last = result.returncode, (result.stdout.strip().splitlines() or [""])[-1]
            except subprocess.TimeoutExpired:
                code, last = 124, f"no end after {SECONDS_A_PROGRAM * 4} s"
            failures += code != 0
            writer.writerow([name, code, last])
            print(f"{'ok  ' if code == 0 else 'FAIL'} {name}: {last}", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=["verify", "counts", "cycles"])
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--size", default="default", help="which arguments of workloads.toml: small, default, large")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--seconds", type=int, default=3600, help="stop between programs after this time")
    arguments = parser.parse_args()
    if arguments.question == "verify":
        failures = verify(arguments)
    elif arguments.question == "counts":
        failures = write_profiles(arguments, "counts.csv", COUNTS, {"counts": []})
    else:
        cold = ["--cache-control", "all"]
        warm = ["--cache-control", "none", "--replay-mode", "application"]
        failures = write_profiles(arguments, "cycles.csv", CYCLES, {"cold": cold, "warm": warm})
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
