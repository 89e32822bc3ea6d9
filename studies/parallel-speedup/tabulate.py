#!/usr/bin/env python3
"""Speed-up, efficiency and throughput from the runs that measure.py noted.

    tabulate.py RUNS [--csv FILE] [--plot FILE]

RUNS is `runs.txt`, or a table that --csv wrote. Prints the tables, writes every run as CSV and the speed-ups as SVG.
Fails if two runs of one program have different digests.
"""

import argparse
import collections
import csv
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import tables
from speedup_plot import svg

HERE = pathlib.Path(__file__).resolve().parent
# The seed's figure 5, read from its text: mean speed-up by threads.
PUBLISHED = {2: 1.72, 4: 2.64, 8: 3.95, 16: 5.83, 24: 7.08}
FULL = 132  # blocks that give every SM of an H200 one
WHOLE = "threads launches most_blocks warp_instructions epochs alone_epochs".split()
WORDS = "kind schedule program digest".split()
COLUMNS = (
    "kind threads schedule program launches mean_blocks most_blocks seconds simulating_seconds warp_instructions "
    "mean_threads mean_partitions epochs alone_epochs engine_seconds alone_seconds shared_seconds commit_seconds "
    "serial_seconds busy_thread_seconds imbalance_thread_seconds meeting_thread_seconds digest"
).split()


def names():
    """The seed's names by program and arguments."""
    lines = (HERE / "programs.txt").read_text().splitlines()
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {" ".join(program.split()): seed for seed, program in pairs}


def parse(line):
    """The row of one noted run; a run that failed ends the script."""
    key, *rest = line.split(" | ", 2)
    kind, threads, schedule, program = key.split(None, 3)
    if len(rest) < 2:
        raise SystemExit(f"`{key}` failed")
    launches, mean_blocks, most = rest[0].split()
    summary = json.loads(rest[1])
    host = summary["host"]
    row = {**host["work"], "kind": kind, "threads": int(threads), "schedule": schedule, "program": program.strip()}
    row |= {"launches": int(launches), "mean_blocks": float(mean_blocks), "most_blocks": int(most)}
    row |= {"seconds": host["seconds"], "simulating_seconds": host["simulating_seconds"]}
    return row | {"warp_instructions": summary["totals"]["inst_executed"], "digest": summary["digest"]}


def read(path):
    """Rows of all runs, from what was noted or from the table that was made of it."""
    if str(path).endswith(".csv"):
        kind = lambda name: str if name in WORDS else int if name in WHOLE else float
        return [{name: kind(name)(cell) for name, cell in row.items()} for row in tables.rows(path)]
    return [parse(line) for line in pathlib.Path(path).read_text().splitlines()]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


class Runs:
    """The runs of one table: the best time of each way, and what follows."""

    def __init__(self, rows):
        self.rows = rows
        self.time = {}  # the best of what was repeated
        for row in rows:
            if row["kind"] == "one":
                key = (row["program"], row["threads"], row["schedule"])
                self.time[key] = min(self.time.get(key, row["simulating_seconds"]), row["simulating_seconds"])
        self.one = {program: seconds for (program, threads, _), seconds in self.time.items() if threads == 1}
        self.counts = sorted({threads for _, threads, _ in self.time})
        self.schedules = sorted({schedule for _, threads, schedule in self.time if threads > 1})
        self.blocks = {row["program"]: (row["mean_blocks"], row["most_blocks"]) for row in rows}
        self.speed = {key: self.one[key[0]] / seconds for key, seconds in self.time.items() if key[0] in self.one}

    def several(self):
        """Numbers of threads above one."""
        return [count for count in self.counts if count > 1]

    def is_full(self, program):
        """Whether a program fills the GPU, by its largest launches."""
        return self.blocks[program][1] >= FULL

    def means(self, schedule, programs):
        """Mean speed-up by threads."""
        found = {c: [self.speed[p, c, schedule] for p in programs if (p, c, schedule) in self.speed] for c in self.several()}
        return {count: mean(values) for count, values in found.items() if values}

    def better_schedule(self):
        """Mean speed-up by threads, each program with the schedule that suits it."""
        found = lambda program, count: [self.speed[program, count, s] for s in self.schedules if (program, count, s) in self.speed]
        return {c: mean(max(found(p, c)) for p in self.one if found(p, c)) for c in self.several()}

    def throughput(self):
        """(place, program, copies, throughput of independent runs, speed-up of one run, share), against one thread.

        Without a run on as many threads the last two are None."""
        best, copies = {}, collections.defaultdict(list)
        for row in self.rows:
            kind, _, place = row["kind"].partition("@")
            key = (place, row["program"], row["threads"])
            if kind == "many":
                copies[key].append(row["simulating_seconds"])
            else:
                best[key] = min(best.get(key, row["simulating_seconds"]), row["simulating_seconds"])
        for (place, program, count), seconds in copies.items():
            rate = sum(1 / each for each in seconds)
            alone = best.get((place, program, 1), best.get(("", program, 1), float("nan")))
            together = best.get((place, program, count))
            one_run = (alone / together, 1 / together / rate) if together else (None, None)
            yield (place, program, count, rate * alone, *one_run)

    def several_digests(self):
        """Programs that did not always compute the same."""
        found = collections.defaultdict(set)
        for row in self.rows:
            found[row["program"]].add(row["digest"])
        return [program for program, digests in found.items() if len(digests) > 1]


def say_speed(runs):
    """Speed-up of every program, and means; the lines of the plot."""
    ways = [(count, schedule) for count in runs.several() for schedule in runs.schedules]
    seeds = names()
    print(f"{'seed':<11} {'program':<31} {'blocks':>12} {'1 thread':>9} " + " ".join(f"{f'{c} {s}':>10}" for c, s in ways))
    for program in runs.one:
        cells = [runs.speed.get((program, *way)) for way in ways]
        cells = " ".join(f"{cell:>9.2f}x" if cell else f"{'-':>10}" for cell in cells)
        average, most = runs.blocks[program]
        print(f"{seeds.get(program, ''):<11} {program:<31} {f'{average:.0f} ({most})':>12} {runs.one[program]:>7.2f} s {cells}")
    series = {"ideal": {count: count for count in runs.counts}, "published (mean of 19)": {1: 1.0, **PUBLISHED}}
    for schedule in runs.schedules:
        full = [program for program in runs.one if runs.is_full(program)]
        for what, chosen in (("all", list(runs.one)), (f"{FULL} blocks or more", full)):
            means = runs.means(schedule, chosen)
            series[f"{schedule}, {what} ({len(chosen)})"] = {1: 1.0, **means}
            if means:
                told = ", ".join(f"{value:.2f}x on {count}" for count, value in means.items())
                print(f"mean speed-up, {schedule}, {what} ({len(chosen)}): {told}")
    told = ", ".join(f"{value:.2f}x on {count}" for count, value in runs.better_schedule().items())
    print(f"mean of the better schedule: {told}")
    return series


def say_throughput(runs):
    """One run on many threads against as many independent runs of one thread, at the same place."""
    shares = collections.defaultdict(list)
    print(f"\n{'independent runs of':<31} {'processors':>10} {'copies':>6} {'throughput':>10} {'one run':>8} {'share':>6}")
    for place, program, count, rate, speed, share in runs.throughput():
        line = f"{program:<31} {place or 'all':>10} {count:>6} {rate:>9.2f}x"
        if share is not None:
            line += f" {speed:>7.2f}x {share:>6.0%}"
            shares[place, count].append((share, runs.is_full(program)))
        print(line)
    for (place, count), found in shares.items():
        full = [share for share, is_full in found if is_full]
        print(
            f"mean share of the throughput of {count} independent runs{' on ' + place if place else ''}: "
            f"{mean(share for share, _ in found):.0%} over {len(found)}, {mean(full):.0%} over {len(full)} with {FULL} blocks or more"
        )


def say_time(runs):
    """Where the time of the most threads goes."""
    most = max(runs.counts)
    print(f"\nwhere the threads' time goes on {most} threads, in percent of wall time inside the engine times threads:")
    head = [f"{'program':<31} {'schedule':<9} {'working':>8} {'imbalance':>9} {'meeting':>8} {'commit':>7} {'alone':>6}"]
    head.append(f"{'serial':>7} {'partitions':>10} {'threads':>8} {'us/epoch':>9} {'more work':>9}")
    print(" ".join(head))
    ones = [row for row in runs.rows if row["kind"] == "one"]
    alone = {row["program"]: row["engine_seconds"] for row in ones if row["threads"] == 1}
    shown = {(row["program"], row["schedule"]): row for row in ones if row["threads"] == most > 1}
    for row in shown.values():
        share = lambda name, times: 100 * row[name] * times / (row["engine_seconds"] * most)
        work = row["busy_thread_seconds"] + row["alone_seconds"]
        cells = [f"{row['program']:<31} {row['schedule']:<9} {share('busy_thread_seconds', 1):>7.1f}%"]
        cells.append(f"{share('imbalance_thread_seconds', 1):>8.1f}% {share('meeting_thread_seconds', 1):>7.1f}%")
        cells.append(f"{share('commit_seconds', most):>6.1f}% {share('alone_seconds', most):>5.1f}%")
        cells.append(f"{share('serial_seconds', most):>6.1f}% {row['mean_partitions']:>10.1f} {row['mean_threads']:>8.1f}")
        cells.append(f"{1e6 * row['engine_seconds'] / max(row['epochs'], 1):>9.1f}")
        cells.append(f"{work / alone.get(row['program'], float('nan')):>8.2f}x")
        print(" ".join(cells))


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("runs")
    arguments.add_argument("--csv")
    arguments.add_argument("--plot")
    options = arguments.parse_args()
    runs = Runs(read(options.runs))
    series = say_speed(runs)
    say_throughput(runs)
    say_time(runs)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(runs.rows)
    if options.plot:
        pathlib.Path(options.plot).write_text(svg(runs.counts, series))
    if runs.several_digests():
        sys.exit(f"different digests: {', '.join(runs.several_digests())}")
    print(f"\n{len(runs.rows)} runs of {len(runs.blocks)} programs, one digest each")


if __name__ == "__main__":
    main()
