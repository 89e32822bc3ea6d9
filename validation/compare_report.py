#!/usr/bin/env python3
"""Holds what `lockstep report` says to a real GPU, and what it promises to the simulator itself.

    compare_report.py hardware --binaries DIR [--lockstep BINARY] [--gpu h200] [--only NAME]
    compare_report.py promises --binaries DIR [--lockstep BINARY] [--gpu h200] [--only NAME]

DIR has the programs, built by nvcc for the GPU's architecture (`workloads/run_all.py --build-only`).

`hardware` sets stall reasons, traffic and roofline of kernels beside Nsight Compute's figures in `validation/hardware`:
a kernel's launches are summed on both sides, caches are emptied before each. `promises` takes every limit for which a
report names settings that remove it, runs the program with them, and compares how much faster the kernel became with
what the report said. Kernels with less than a tenth of a program's time are left out.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile

from harness import project, simulator, tables, workloads

# Programs and sizes: streams, products, stencils, scans, sparse algebra, reductions.
HARDWARE = [("vector_add", "medium"), ("matrix_multiply", "medium"), ("stencil_2d", "medium"), ("prefix_sum", "medium"), ("transpose", "medium"), ("tree_reduction", "medium")]
PROMISES = [("vector_add", "medium"), ("memory_streams", "medium"), ("dgemm", "medium"), ("stencil_2d", "default"), ("tiny_launches", "default"), ("black_scholes", "default")]
LEAST_SHARE = 0.1
# A promise is kept if the kernel is faster by a factor that is within a quarter of the promised one.
NEAR = 0.25
TRAFFIC = ["l1_sectors", "l2_sectors_of_sms", "dram_bytes_read"]
# Traffic is relative to the measured value or to this share of what moves between SMs and L2 (validation.md).
FOOTPRINT = 0.05


def identifier(name):
    """The name of a kernel without type, parameters and template arguments."""
    return re.split(r"[<(]", name.removeprefix("void "))[0].split()[-1]


def reports(arguments, name, size, settings=()):
    """What the report says of the kernels of a program, by name."""
    words = [pathlib.Path(arguments.binaries) / name, *arguments.known[name].arguments(size)]
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "run"
        simulator.run(arguments.lockstep, words, arguments.gpu, settings, ["--quiet", "--cold-caches"], out)
        line = [str(arguments.lockstep), "report", str(out), "--format", "json"]
        text = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    return {kernel["symbol"]: kernel for kernel in json.loads(text)["runs"][0]["kernels"]}


def measured(gpu, table, name, size):
    """Rows of a program in a table of hardware, with the median of every repeated cell."""
    for row in tables.rows(project.HARDWARE / gpu / f"{table}.csv"):
        if (row["program"], row["size"]) == (name, size):
            plain = {"kernel": identifier(row["kernel"]), "launch": row["launch"]}
            for key, cell in row.items():
                if key not in plain and re.fullmatch(r"[-0-9. e]+", cell or ""):
                    plain[key] = statistics.median(tables.repetitions(cell))
            yield plain


def sums(rows, columns):
    """Columns summed over the launches of each kernel."""
    found = {}
    for row in rows:
        own = found.setdefault(row["kernel"], dict.fromkeys(columns, 0.0))
        for column in columns:
            own[column] += row.get(column, 0.0)
    return found


def shares(values):
    """Values as parts of their sum."""
    whole = sum(values.values())
    return {name: value / whole for name, value in values.items()} if whole else {}


def stalls(gpu, name, size):
    """What warps did in their cycles on hardware, by kernel: cycles per issue, times instructions issued."""
    issued = {row["launch"]: row["inst_issued"] for row in measured(gpu, "cold", name, size)}
    found = {}
    for row in measured(gpu, "stalls", name, size):
        own = found.setdefault(row["kernel"], {})
        for key, value in row.items():
            if key.startswith("stall_"):
                reason = key.removeprefix("stall_")
                own[reason] = own.get(reason, 0.0) + value * issued[row["launch"]]
    return {kernel: shares(values) for kernel, values in found.items()}


def hardware(arguments):
    """The table of stalls, traffic and roofline."""
    lines = []
    for name, size in arguments.programs:
        waits = stalls(arguments.gpu, name, size)
        traffic = sums(measured(arguments.gpu, "traffic", name, size), TRAFFIC)
        counts = sums(measured(arguments.gpu, "cold", name, size), ["cycles", "inst_executed"])
        kernels = reports(arguments, name, size).values()
        names = [identifier(kernel["full_name"]) for kernel in kernels]
        for kernel, own in zip(kernels, names):
            # Instances of one template have one name on hardware, and are left out.
            if kernel["time_share"] < LEAST_SHARE or own not in waits or names.count(own) > 1:
                continue
            simulated, real = {one["name"]: one["share"] for one in kernel["stalls"]}, waits[own]
            apart = sum(abs(simulated.get(reason, 0.0) - real.get(reason, 0.0)) for reason in {*simulated, *real}) / 2
            top = max(real, key=real.get)
            least = FOOTPRINT * 32 * traffic[own]["l2_sectors_of_sms"]
            errors = []
            for column in TRAFFIC:
                floor = least if column.endswith("read") else 1.0
                errors.append((kernel["counters"][column] - traffic[own][column]) / max(traffic[own][column], floor))
            intensity = kernel["roofline"]["inst_per_l2_byte"] / (counts[own]["inst_executed"] / (32 * traffic[own]["l2_sectors_of_sms"])) - 1
            rate = kernel["counters"]["inst_executed"] / kernel["counters"]["cycles"] / (counts[own]["inst_executed"] / counts[own]["cycles"]) - 1
            lines.append([f"`{name}`, {size}", f"`{own}`", f"{top.replace('_', ' ')} {100 * real[top]:.0f} %", f"{100 * simulated.get(top, 0.0):.0f} %", f"{100 * apart:.0f} %",
                          *[f"{100 * error:+.1f} %" for error in [*errors, intensity, rate]]])
            print(*lines[-1], sep="  ", flush=True)
    head = ["program", "kernel", "first reason on hardware", "the same in the report", "stalls apart", "L1 sectors", "L2 sectors", "DRAM read", "inst/B of L2", "inst a cycle"]
    print("\n" + tables.markdown(head, lines))


def promises(arguments):
    """The table of limits that were removed."""
    lines, kept = [], 0
    for name, size in arguments.programs:
        known = {}
        for symbol, kernel in reports(arguments, name, size).items():
            if kernel["time_share"] < LEAST_SHARE:
                continue
            for advice in kernel["advice"]:
                if not advice["settings"] or not advice["speed_up"]:
                    continue
                settings = tuple(advice["settings"])
                if settings not in known:
                    known[settings] = reports(arguments, name, size, settings)
                obtained = kernel["counters"]["cycles"] / known[settings][symbol]["counters"]["cycles"]
                ratio = obtained / advice["speed_up"]
                kept += abs(ratio - 1) <= NEAR
                lines.append([f"`{name}`, {size}", f"`{kernel['name']}`", advice["limit"], f"{advice['speed_up']:.2f}", f"{obtained:.2f}", f"{ratio:.2f}"])
                print(*lines[-1], sep="  ", flush=True)
    print("\n" + tables.markdown(["program", "kernel", "limit", "promised at most", "obtained", "obtained / promised"], lines))
    print(f"\n{kept} of {len(lines)} within a quarter")
    return kept == len(lines) and bool(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=["hardware", "promises"])
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--lockstep")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--only", help="this program alone")
    arguments = parser.parse_args()
    arguments.lockstep = project.simulator(arguments.lockstep)
    arguments.known = {workload.name: workload for workload in workloads.load()}
    programs = HARDWARE if arguments.question == "hardware" else PROMISES
    arguments.programs = [one for one in programs if arguments.only in (None, one[0])]
    if arguments.question == "hardware":
        hardware(arguments)
    elif not promises(arguments):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
