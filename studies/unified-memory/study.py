#!/usr/bin/env python3
"""Unified memory: the experiments of the UVM report and of UVMSmart.

    studies/unified-memory/study.py STUDY LOCKSTEP PROGRAM [--only a,b] [--size SIZE] [--jobs N]
                                    [--out FOLDER]

PROGRAM is workloads/managed, built with nvcc. STUDY is one of

    prefetchers        figure 4: far faults and time of the kernels by prefetcher, beside the
                       published figures
    order              the same on the report's machine with its inputs: time falls from none to
                       random to sequential-local to tree
    correlation        figure 4: time of the kernels by prefetcher, beside a real H200
    touches            first touches, touches of whole regions and prefetches, beside what several
                       real H200s took; PROGRAM is validation/uvm/uvm_probe.cu
    shootdown          figures 5 and 6: hit rate of the TLBs and cycles, by entry and whole
    oversubscription   results, faults and time with 110, 125 and 150 % by evictor
    bulk-or-on-demand  section B.1: copies, replayable faults, faults that stall the SM, each with
                       and without jumps over time in which nothing happens

Each writes STUDY.csv into FOLDER (default: data beside this file) and says what it shows.
"""

import csv
import math
import pathlib
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import project, protocol, simulator, tables
from harness.words import take

HERE = pathlib.Path(__file__).resolve().parent
H200 = project.HARDWARE / "h200"
HARDWARE = H200 / "uvm_workloads.csv"
# What the probe printed on real machines, in the order in which it was run. Up to the third it read
# where to touch while the clock ran, and up to the fifth a fence waited for what it had noted before:
# they say nothing of touches, and of writes, that have no fault.
MACHINES = [
    "uvm_probe_fast_host",
    "uvm_probe_slow_host",
    "uvm_probe_beside_batches",
    "uvm_probe_address_by_parameter",
    "uvm_probe_60_first_touches",
    "uvm_probe_after_notes_arrive",
]
READS_ALIKE, WRITES_ALIKE = MACHINES[3:], MACHINES[5:]
BENCHMARKS = ["bfs", "hotspot", "pathfinder", "backprop", "srad", "nw", "fdtd"]
# The UVM report's own.
REPORT = ["bfs", "hotspot", "pathfinder", "backprop", "srad"]
PREFETCHERS = ["none", "random", "sequential-local", "tree-uvmsmart"]
EVICTORS = ["lru-4k", "random-4k", "sequential-local", "tree", "lru-2m", "lfu-2m", "driver"]
# Far faults, published (UVMSmart's logs and plots).
PUBLISHED_FAULTS = {
    "hotspot": [3072, 2137, 192, 36],
    "srad": [4099, 2823, 256, 48],
    "nw": [2057, 1441, 130, 26],
    "pathfinder": [9788, 6817, 617, 122],
    "fdtd": [4224, 3018, 277, 58],
    "bfs": [2491, 1725, 162, 53],
    "backprop": [6785, 4718, 460, 100],
}
# Time with faults over that without prefetcher, published.
PUBLISHED_TIMES = {
    "backprop": [1, 0.707, 0.0752, 0.0231],
    "bfs": [1, 0.706, 0.0763, 0.0329],
    "fdtd": [1, 0.728, 0.0759, 0.0246],
    "hotspot": [1, 0.708, 0.0736, 0.0236],
    "nw": [1, 0.714, 0.0770, 0.0282],
    "pathfinder": [1, 0.704, 0.0705, 0.0196],
    "srad": [1, 0.704, 0.0716, 0.0225],
}
SERVICE_MICROSECONDS = 45
# With the report's inputs these have no allocation above two blocks (128 KiB): the largest of each.
TWO_BLOCKS = {"bfs": "24,576 edges, 96 KiB", "pathfinder": "19 rows of 1,000, 75 KiB"}
# The report's simulator is UVMSmart. Where the file of its machine says nothing, it is as in
# `gtx1080ti-uvmsmart`: what was written comes back whenever the host waits for the device, any
# number of misses may be under way, one walk begins a cycle and takes 100 in all, hops included.
REPORT_SIMULATOR = [
    "uvm.host-access=sync-flush",
    "uvm.tlb.mshrs=65536",
    "uvm.walk.walks-per-cycle=1",
    "uvm.walk.hop-latency=16 cycles",
    "uvm.walk.latency=68 cycles",
]


class Run:
    """One simulated run, as this study reads it."""

    def __init__(self, lockstep, words, gpu, settings=(), options=()):
        options = ["--record", "none", "--threads", "1", *options]
        self.run = simulator.run(lockstep, words, gpu, settings, options)
        self.output, self.summary = self.run.output, self.run.summary

    def microseconds(self):
        return self.run.nanoseconds() / 1000

    def cycles(self):
        return self.run.total("cycles")

    def gmmu(self, name):
        return self.run.statistic(name, "gmmu")

    def with_service(self):
        """Time with what serving faults would have taken, as UVMSmart adds it."""
        return self.microseconds() + SERVICE_MICROSECONDS * self.gmmu("far_faults")

    def hit_rate(self):
        return 100 * self.run.statistic("hits", "tlb") / max(self.run.statistic("accesses", "tlb"), 1)

    def measured(self):
        """What the program says that its kernels took, the last time."""
        return after("kernels_us ", self.output)[-1]

    def checksum(self):
        return [text.split()[0] for text in after("checksum ", self.output, str)]


def after(word, output, kind=float):
    """What stands behind a word in each line that has it."""
    return [kind(line.split(word)[1]) for line in output.splitlines() if word in line]


class Study:
    """What a study is made with, and the table that it writes."""

    def __init__(self, name, lockstep, program, benchmarks, size, jobs, out):
        self.lockstep, self.program = lockstep, program
        self.benchmarks, self.size, self.jobs = benchmarks, size, jobs
        self.path = pathlib.Path(out) / f"{name}.csv"
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def run(self, name, memory, size, gpu, settings=(), options=()):
        return Run(self.lockstep, [self.program, name, memory, size], gpu, settings, options)

    def table(self, columns, cases, row):
        """Writes a row a case, as `row` makes it; cases run side by side."""
        rows = []
        with open(self.path, "w", newline="") as file, ThreadPoolExecutor(self.jobs) as pool:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for made in pool.map(lambda case: row(*case), cases):
                writer.writerow(made)
                file.flush()
                print(",".join(str(value) for value in made), flush=True)
                rows.append(dict(zip(columns, made)))
        return rows


def policy(name):
    return [f"uvm.prefetch.policy={name}", f"uvm.prefetch.oversubscribed={name}"]


def within(value, wanted):
    return f"{100 * (value / wanted - 1):+.1f}" if wanted else ""


def prefetchers(study):
    size = study.size or "published"

    def row(name, prefetcher):
        run = study.run(name, "managed", size, "gtx1080ti-uvmsmart", policy(prefetcher), ["--frontend", "ptx"])
        counts = [run.gmmu("far_faults"), run.gmmu("refaults")]
        return [name, prefetcher, *counts, f"{run.microseconds():.1f}", f"{run.with_service():.1f}"]

    cases = [(name, prefetcher) for name in study.benchmarks for prefetcher in PREFETCHERS]
    columns = ["benchmark", "prefetcher", "far_faults", "of_them_again", "kernels_us", "with_faults_us"]
    rows = study.table(columns, cases, row)
    full = []
    for row in rows:
        name, index = row["benchmark"], PREFETCHERS.index(row["prefetcher"])
        base = next(r for r in rows if r["benchmark"] == name and r["prefetcher"] == "none")
        share = float(row["with_faults_us"]) / float(base["with_faults_us"])
        faults, times = PUBLISHED_FAULTS[name][index], PUBLISHED_TIMES[name][index]
        full.append([*row.values(), faults, within(row["far_faults"], faults), f"{share:.4f}", times, within(share, times)])
    more = ["published_faults", "faults_off_percent", "normalised", "published_normalised", "time_off_percent"]
    tables.write(study.path, [*columns, *more], full)
    beyond = [f"{row[0]} {row[1]} {row[-1]} %" for row in full if abs(float(row[-1])) > 15]
    print(f"times beyond 15 %: {', '.join(beyond) or 'none'}")


def order(study):
    size = study.size or "seed"

    def row(name, prefetcher):
        settings = [*policy(prefetcher), "uvm.fault.service=serial", *REPORT_SIMULATOR]
        run = study.run(name, "managed", size, "v100-sst", settings, ["--frontend", "ptx"])
        return [name, prefetcher, run.gmmu("far_faults"), f"{run.microseconds():.1f}"]

    cases = [(name, prefetcher) for name in study.benchmarks for prefetcher in PREFETCHERS]
    rows = study.table(["benchmark", "prefetcher", "far_faults", "kernels_us"], cases, row)
    say_order(study.benchmarks, rows)


def say_order(benchmarks, rows):
    """Says for each program and for all whether time falls from prefetcher to prefetcher. It may
    never rise. Where no allocation has more than two blocks, the tree brings what sequential-local
    brings: one block of two is not more than half. These tie; others must not."""
    times = {(row["benchmark"], row["prefetcher"]): float(row["kernels_us"]) for row in rows}
    faults = {(row["benchmark"], row["prefetcher"]): row["far_faults"] for row in rows}
    steps = list(zip(PREFETCHERS, PREFETCHERS[1:]))
    falls = []
    for name in benchmarks:
        line = f"{times[name, PREFETCHERS[0]]:.1f} us"
        for before, after in steps:
            a, b = times[name, before], times[name, after]
            if a < b:
                raise SystemExit(f"{name}: time rises from {before} to {after}")
            if a == b and (name not in TWO_BLOCKS or faults[name, before] != faults[name, after]):
                raise SystemExit(f"{name}: {before} and {after} tie")
            line += f" {'>' if a > b else '='} {b:.1f}"
        ties = [f"{a} and {b} ({faults[name, b]} faults each)" for a, b in steps if times[name, a] == times[name, b]]
        why = f", as no allocation has more than two blocks (the largest: {TWO_BLOCKS[name]})" if ties else ""
        print(f"{name}: {line}: " + (f"ties at {', '.join(ties)}{why}" if ties else "falls at each step"))
        if not ties:
            falls.append(name)
    print(f"falls at each step: {len(falls)} of {len(benchmarks)} ({', '.join(falls)}); never rises")
    sums = [sum(times[name, prefetcher] for name in benchmarks) for prefetcher in PREFETCHERS]
    means = [statistics.geometric_mean(times[name, prefetcher] for name in benchmarks) for prefetcher in PREFETCHERS]
    for what, values in [("sum of all", sums), ("geometric mean of all", means)]:
        strictly = all(a > b for a, b in zip(values, values[1:]))
        said = " > ".join(f"{value:.0f}" for value in values) if strictly else values
        print(f"{what}: {said} us, {'falls at each step' if strictly else 'DOES NOT FALL at each step'}")
        if not strictly and benchmarks == BENCHMARKS:
            raise SystemExit(f"the {what} does not fall")


def correlation(study):
    """Time of the kernels on the H200's configuration, by prefetcher, beside a real one: what the
    program itself measures with events, the second time in one process as the real ones are."""
    sizes = study.size.split(",") if study.size else ["seed", "published", "small", "tiny"]
    real = {(r["benchmark"], r["size"]): float(r["median_us"]) for r in tables.rows(HARDWARE) if r["memory"] == "managed"}

    def row(name, size, prefetcher):
        words = [study.program, name, "managed", size, "2"]
        run = Run(study.lockstep, words, "h200", policy(prefetcher))
        return [name, size, prefetcher, run.gmmu("far_faults"), f"{run.measured():.1f}", real.get((name, size), "")]

    names = ["none", "random", "sequential-local", "tree-driver"]
    cases = [(name, size, prefetcher) for size in sizes for name in study.benchmarks for prefetcher in names]
    columns = ["benchmark", "size", "prefetcher", "far_faults_of_two", "kernels_us", "h200_us"]
    rows = study.table(columns, cases, row)
    for prefetcher in names:
        chosen = [r for r in rows if r["prefetcher"] == prefetcher]
        print(f"{prefetcher}: {agreement(chosen, study.lockstep)}")


def agreement(rows, lockstep):
    """How well times of the kernels agree with hardware's, by the figures of the protocol and by correlation."""
    pairs = [(f"{row['benchmark']} {row['size']}", float(row["kernels_us"]), row["h200_us"]) for row in rows]
    figures = protocol.errors(pairs, lockstep)
    ours, theirs = [row["simulated"] for row in figures["rows"]], [row["hardware"] for row in figures["rows"]]
    plain, of_logarithms = statistics.correlation(ours, theirs), statistics.correlation(*map(logarithms, (ours, theirs)))
    mean, factor = figures["errors"]["mean"], 1 + figures["log_error"]
    return f"r {plain:.3f}, of logarithms {of_logarithms:.3f}, mean error {100 * mean:.0f} %, mean factor {factor:.2f}"


def logarithms(values):
    return [math.log(value) for value in values]


def measured_touches():
    """{(name, parameter): {machine: [least, median, most]}} of what the probe printed on real machines."""
    measured = {}
    for machine in MACHINES:
        for row in tables.rows(H200 / f"{machine}.csv"):
            values = [float(row[what]) for what in ["minimum", "median", "maximum"]]
            measured.setdefault((row["name"], row["parameter"]), {})[machine] = values
    return measured


def comparable(name, machines):
    """The machines whose probe measured what the present one does: a touch without a fault is short, and what
    earlier probes did beside it counts."""
    if name.startswith("first_touch") and all(values[0] < 1000 for values in machines.values()):
        alike = WRITES_ALIKE if "_write_" in name else READS_ALIKE
        return {machine: machines[machine] for machine in alike}
    return machines


def touches(study):
    """The probe on the H200's configuration beside the least and the most of all machines."""
    measured = measured_touches()
    run = Run(study.lockstep, [study.program, "1"], "h200")
    said = list(csv.DictReader(line for line in run.output.splitlines() if line.count(",") == 4))
    # What the host takes for its own touches is the time of the machine that simulates.
    said = [row for row in said if (row["name"], row["parameter"]) in measured and row["name"] != "host_touch"]
    machines = [comparable(row["name"], measured[row["name"], row["parameter"]]) for row in said]
    pairs = [(row["name"], row["value"], sum(found.values(), [])) for row, found in zip(said, machines)]
    rows = []
    for row, found, figure in zip(said, machines, protocol.errors(pairs, study.lockstep)["rows"]):
        ranges = [" ".join(f"{value:g}" for value in found.get(name, [])) for name in MACHINES]
        about = [row["name"], row["parameter"], row["unit"], row["value"]]
        within = "yes" if figure["inside"] else "no"
        rows.append([*about, f"{figure['least']:g}", f"{figure['most']:g}", within, *ranges])
    tables.write(study.path, ["name", "parameter", "unit", "simulated", "least", "most", "within", *MACHINES], rows)
    for row in rows:
        if row[6] == "no":
            print(f"outside: {row[0]}, {row[1]}: {row[3]} {row[2]}, measured {row[4]} to {row[5]}")
    print(f"{sum(row[6] == 'yes' for row in rows)} of {len(rows)} within what was measured")


def shootdown(study):
    size = study.size or "seed"

    def row(name):
        runs = [
            study.run(
                name,
                "managed",
                size,
                "v100-sst",
                [f"uvm.tlb.shootdown={scope}", "uvm.tlb.shootdown-on=map", *REPORT_SIMULATOR],
                ["--frontend", "ptx"],
            )
            for scope in ["entry", "whole"]
        ]
        rates = [run.hit_rate() for run in runs]
        cycles = [run.cycles() for run in runs]
        change = 100 * (cycles[1] / cycles[0] - 1)
        return [name, *(f"{r:.2f}" for r in rates), f"{rates[0] - rates[1]:.2f}", *cycles, f"{change:+.2f}"]

    columns = ["benchmark", "entry_hit_rate", "whole_hit_rate", "points", "entry_cycles", "whole_cycles", "cycles_change_percent"]
    rows = study.table(columns, [(name,) for name in study.benchmarks], row)
    for what, names in [("of the report's programs", REPORT), ("of all programs", BENCHMARKS)]:
        chosen = [r for r in rows if r["benchmark"] in names]
        if chosen:
            points = statistics.mean(float(r["points"]) for r in chosen)
            changes = statistics.mean(abs(float(r["cycles_change_percent"])) for r in chosen)
            print(f"mean {what}: {points:.1f} points (published 11), cycles {changes:.2f} %")


def oversubscription(study):
    size = study.size or "small"
    beside = {"lru-4k": "none", "random-4k": "random", "sequential-local": "sequential-local"}
    gpu = "gtx1080ti-uvmsmart"
    functional = ["--mode", "functional", "--frontend", "ptx"]
    right = {name: study.run(name, "copy", size, gpu, [], functional).checksum() for name in study.benchmarks}
    if not all(right.values()):
        raise SystemExit("a run printed no checksum")

    def row(name, percent, evictor):
        prefetcher = beside.get(evictor, "tree-uvmsmart")
        settings = [
            f"uvm.oversubscription={percent}",
            f"uvm.evict.policy={evictor}",
            f"uvm.prefetch.oversubscribed={prefetcher}",
        ]
        run = study.run(name, "managed", size, gpu, settings, ["--frontend", "ptx"])
        same = "yes" if run.checksum() == right[name] else "no"
        counts = [run.gmmu(count) for count in ["far_faults", "evicted", "thrashed"]]
        return [name, percent, evictor, prefetcher, same, *counts, f"{run.with_service():.0f}"]

    cases = [(name, percent, evictor) for name in study.benchmarks for percent in [100, 110, 125, 150] for evictor in EVICTORS if percent > 100 or evictor == "tree"]
    columns = ["benchmark", "percent", "evictor", "prefetcher_when_full", "results_right", "far_faults", "evicted_pages", "thrashed_pages", "with_faults_us"]
    rows = study.table(columns, cases, row)
    wrong = [r for r in rows if r["results_right"] != "yes"]
    idle = [r for r in rows if r["percent"] > 100 and r["evicted_pages"] == 0]
    print(f"{len(rows)} runs complete, {len(wrong)} with wrong results, {len(idle)} oversubscribed ones without evictions")


def bulk_or_on_demand(study):
    # Without jumps the larger sizes take minutes.
    size = study.size or "tiny"
    ways = [
        ("bulk copy", "copy", []),
        ("replayable", "managed", ["uvm.fault.mode=replayable"]),
        ("stall the SM", "managed", ["uvm.fault.mode=stall-sm"]),
    ]

    def row(name, prefetcher, way, memory, settings, jumps):
        settings = [*settings, "uvm.fault.service=serial", *policy(prefetcher)]
        options = ["--frontend", "ptx", *([] if jumps else ["--no-jumps"])]
        run = study.run(name, memory, size, "h200", settings, options)
        wall = run.summary["host"]["simulating_seconds"]
        digest = run.summary["digest"][:16]
        return [name, prefetcher, way, "yes" if jumps else "no", f"{run.microseconds():.1f}", run.gmmu("far_faults"), f"{wall:.2f}", digest]

    cases = [(name, prefetcher, *way, jumps) for name in study.benchmarks for prefetcher in ["none", "tree"] for way in ways for jumps in [True, False]]
    columns = ["benchmark", "prefetcher", "way", "jumps", "kernels_us", "far_faults", "host_s", "digest"]
    rows = study.table(columns, cases, row)
    for with_jumps, without in zip(rows[::2], rows[1::2]):
        same = with_jumps["digest"] == without["digest"]
        gain = float(without["host_s"]) / max(float(with_jumps["host_s"]), 1e-9)
        print(f"{with_jumps['benchmark']}, {with_jumps['prefetcher']}, {with_jumps['way']}: {gain:.1f}x, digests {'equal' if same else 'DIFFER'}")


STUDIES = {
    "prefetchers": prefetchers,
    "order": order,
    "correlation": correlation,
    "touches": touches,
    "shootdown": shootdown,
    "oversubscription": oversubscription,
    "bulk-or-on-demand": bulk_or_on_demand,
}


def main():
    known = {"--only": ",".join(BENCHMARKS), "--size": "", "--jobs": "1", "--out": str(HERE / "data")}
    words, chosen = take(sys.argv[1:], known)
    if len(words) != 3 or words[0] not in STUDIES:
        sys.exit(__doc__)
    names = chosen["--only"].split(",")
    study = Study(*words, names, chosen["--size"], int(chosen["--jobs"]), chosen["--out"])
    STUDIES[words[0]](study)


if __name__ == "__main__":
    main()
