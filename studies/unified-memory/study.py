#!/usr/bin/env python3
"""Unified memory: the experiments of the UVM report and of UVMSmart.

    studies/unified-memory/study.py STUDY LOCKSTEP PROGRAM [--only a,b] [--size published]

PROGRAM is workloads/managed, built with nvcc. STUDY is one of

    prefetchers        figure 4: far faults and time of the kernels by prefetcher, beside the
                       published figures and a real H200
    shootdown          figures 5 and 6: hit rate of the TLBs and cycles, by entry and whole
    oversubscription   time and faults with 110, 125 and 150 % by evictor
    bulk-or-on-demand  section B.1: copies, replayable faults, faults that stall the SM
"""
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

BENCHMARKS = ["bfs", "hotspot", "pathfinder", "backprop", "srad", "nw", "fdtd"]
PREFETCHERS = ["none", "random", "sequential-local", "tree-uvmsmart"]
# Far faults and time over that without prefetcher, published (UVMSmart's logs and plots).
PUBLISHED_FAULTS = {
    "hotspot": [3072, 2137, 192, 36],
    "srad": [4099, 2823, 256, 48],
    "nw": [2057, 1441, 130, 26],
    "pathfinder": [9788, 6817, 617, 122],
    "fdtd": [4224, 3018, 277, 58],
    "bfs": [2491, 1725, 162, 53],
    "backprop": [6785, 4718, 460, 100],
}
PUBLISHED_TIMES = {
    "backprop": [1, 0.707, 0.0752, 0.0231],
    "bfs": [1, 0.706, 0.0763, 0.0329],
    "fdtd": [1, 0.728, 0.0759, 0.0246],
    "hotspot": [1, 0.708, 0.0736, 0.0236],
    "nw": [1, 0.714, 0.0770, 0.0282],
    "pathfinder": [1, 0.704, 0.0705, 0.0196],
    "srad": [1, 0.704, 0.0716, 0.0225],
}


class Run:
    """One simulated run."""

    def __init__(self, lockstep, words, gpu, settings=(), options=()):
        with tempfile.TemporaryDirectory() as folder:
            command = [lockstep, "run", "--gpu", gpu, "--frontend", "ptx", "--out", f"{folder}/run"]
            for setting in settings:
                command += ["--set", setting]
            command += [*options, "--", *words]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
            self.output = done.stdout
            path = pathlib.Path(folder) / "run"
            with open(path / "kernels.csv", newline="") as table:
                self.kernels = list(csv.DictReader(table))
            self.stats = {}
            with open(path / "stats.csv", newline="") as table:
                for row in csv.DictReader(table):
                    kind = row["component"].split("/")[1]
                    key = (kind, row["statistic"])
                    if row["value"].isdigit():
                        self.stats[key] = self.stats.get(key, 0) + int(row["value"])
            self.summary = json.loads((path / "summary.json").read_text())

    def microseconds(self):
        return sum(float(row["duration_ns"]) for row in self.kernels) / 1000

    def cycles(self):
        return sum(int(row["cycles"] or 0) for row in self.kernels)

    def gmmu(self, name):
        return self.stats.get(("gmmu", name), 0)

    def hit_rate(self):
        accesses = self.stats.get(("tlb", "accesses"), 0)
        return self.stats.get(("tlb", "hits"), 0) / max(accesses, 1)

    def checksum(self):
        return [line.split("checksum ")[1].split()[0] for line in self.output.splitlines() if "checksum" in line]


def prefetchers(lockstep, program, benchmarks, size):
    print("benchmark,prefetcher,far faults,published,kernels us,with faults us,normalised,published,deviation %")
    for name in benchmarks:
        base = None
        for index, policy in enumerate(PREFETCHERS):
            settings = [f"uvm.prefetch.policy={policy}", f"uvm.prefetch.oversubscribed={policy}"]
            run = Run(lockstep, [program, name, "managed", size], "gtx1080ti-uvmsmart", settings)
            faults = run.gmmu("far_faults")
            kernels = run.microseconds()
            total = kernels + 45 * faults
            base = base or total
            published = PUBLISHED_TIMES[name][index]
            normalised = total / base
            deviation = 100 * (normalised / published - 1)
            print(
                f"{name},{policy},{faults},{PUBLISHED_FAULTS[name][index]},{kernels:.0f},{total:.0f},"
                f"{normalised:.4f},{published},{deviation:+.1f}",
                flush=True,
            )


def shootdown(lockstep, program, benchmarks, size):
    print("benchmark,hit rate by entry,whole,points,cycles by entry,whole,change %")
    points, changes = [], []
    for name in benchmarks:
        runs = [
            Run(
                lockstep,
                [program, name, "managed", size],
                "gtx1080ti-uvmsmart",
                [f"uvm.tlb.shootdown={scope}", "uvm.tlb.shootdown-on=map", "uvm.fault.service=serial"],
            )
            for scope in ["entry", "whole"]
        ]
        rates = [100 * run.hit_rate() for run in runs]
        cycles = [run.cycles() for run in runs]
        change = 100 * (cycles[1] / cycles[0] - 1)
        points.append(rates[0] - rates[1])
        changes.append(abs(change))
        print(
            f"{name},{rates[0]:.1f},{rates[1]:.1f},{points[-1]:.1f},{cycles[0]},{cycles[1]},{change:+.2f}",
            flush=True,
        )
    print(f"mean: {statistics.mean(points):.1f} points (published 11), cycles {statistics.mean(changes):.2f} %")


def oversubscription(lockstep, program, benchmarks, size):
    evictors = ["lru-4k", "random-4k", "sequential-local", "tree", "lru-2m", "lfu-2m", "driver"]
    print("benchmark,percent,evictor,prefetcher,checksum right,faults,evicted pages,thrashed pages,with faults us")
    for name in benchmarks:
        right = Run(lockstep, [program, name, "copy", size], "gtx1080ti-uvmsmart", [], ["--mode", "functional"])
        for percent in [110, 125, 150]:
            for evictor in evictors:
                prefetcher = {"lru-4k": "none", "random-4k": "random", "sequential-local": "sequential-local"}
                policy = prefetcher.get(evictor, "tree-uvmsmart")
                settings = [
                    f"uvm.oversubscription={percent}",
                    f"uvm.evict.policy={evictor}",
                    f"uvm.prefetch.oversubscribed={policy}",
                ]
                run = Run(lockstep, [program, name, "managed", size], "gtx1080ti-uvmsmart", settings)
                total = run.microseconds() + 45 * run.gmmu("far_faults")
                same = run.checksum() == right.checksum()
                print(
                    f"{name},{percent},{evictor},{policy},{same},{run.gmmu('far_faults')},"
                    f"{run.gmmu('evicted')},{run.gmmu('thrashed')},{total:.0f}",
                    flush=True,
                )


def bulk_or_on_demand(lockstep, program, benchmarks, size):
    print("benchmark,way,kernels us,far faults,host s,digest")
    ways = [
        ("bulk copy", "copy", [], []),
        ("replayable", "managed", ["uvm.fault.mode=replayable"], []),
        ("stall the SM", "managed", ["uvm.fault.mode=stall-sm"], []),
    ]
    for name in benchmarks:
        for way, mode, settings, options in ways:
            settings = [*settings, "uvm.fault.service=serial", "uvm.prefetch.policy=none"]
            run = Run(lockstep, [program, name, mode, size], "gtx1080ti-uvmsmart", settings, options)
            wall = run.summary["host"]["simulating_seconds"]
            print(
                f"{name},{way},{run.microseconds():.0f},{run.gmmu('far_faults')},{wall:.2f},{run.summary['digest'][:16]}",
                flush=True,
            )


STUDIES = {
    "prefetchers": prefetchers,
    "shootdown": shootdown,
    "oversubscription": oversubscription,
    "bulk-or-on-demand": bulk_or_on_demand,
}


def main():
    words = sys.argv[1:]
    chosen = {"--only": ",".join(BENCHMARKS), "--size": "published"}
    for option in chosen:
        if option in words:
            at = words.index(option)
            chosen[option] = words[at + 1]
            del words[at : at + 2]
    if len(words) != 3 or words[0] not in STUDIES:
        sys.exit(__doc__)
    STUDIES[words[0]](words[1], words[2], chosen["--only"].split(","), chosen["--size"])


main()
