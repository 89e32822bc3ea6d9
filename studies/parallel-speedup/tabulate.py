#!/usr/bin/env python3
"""Speed-up, efficiency and throughput from the runs that measure.sh noted.

    tabulate.py RUNS [--csv FILE] [--plot FILE]

Prints the tables, writes every run as CSV and the speed-ups as SVG. Fails if two runs of one program have
different digests.
"""
import argparse
import collections
import csv
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
# The seed's figure 5, read from its text: mean speed-up by threads.
PUBLISHED = {2: 1.72, 4: 2.64, 8: 3.95, 16: 5.83, 24: 7.08}
FULL = 132  # blocks that give every SM of an H200 one
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


def read(path):
    """Rows of the runs that ended well; the others are told."""
    for line in pathlib.Path(path).read_text().splitlines():
        key, *rest = line.split(" | ", 2)
        kind, threads, schedule, program = key.split(None, 3)
        if len(rest) < 2:
            sys.exit(f"{path}: `{key}` failed")
        launches, mean, most = rest[0].split()
        summary = json.loads(rest[1])
        host = summary["host"]
        row = {**host["work"], "kind": kind, "threads": int(threads), "schedule": schedule, "program": program.strip()}
        row |= {"launches": int(launches), "mean_blocks": float(mean), "most_blocks": int(most)}
        row |= {"seconds": host["seconds"], "simulating_seconds": host["simulating_seconds"]}
        row |= {"warp_instructions": summary["totals"]["inst_executed"], "digest": summary["digest"]}
        yield row


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def throughput(rows, blocks):
    """One run on many threads against as many independent runs of one thread, at the same place."""
    best = {}
    copies = collections.defaultdict(list)
    for row in rows:
        kind, _, place = row["kind"].partition("@")
        key = (place, row["program"], row["threads"])
        if kind == "many":
            copies[key].append(row["simulating_seconds"])
        else:
            best[key] = min(best.get(key, row["simulating_seconds"]), row["simulating_seconds"])
    shares = collections.defaultdict(list)
    print(f"\n{'independent runs of':<31} {'processors':>10} {'copies':>6} {'throughput':>10} {'one run':>8} {'share':>6}")
    for (place, program, count), seconds in copies.items():
        rate = sum(1 / s for s in seconds)
        alone = best.get((place, program, 1), best.get(("", program, 1), float("nan")))
        together = best.get((place, program, count))
        line = f"{program:<31} {place or 'all':>10} {count:>6} {rate * alone:>9.2f}x"
        if together:
            line += f" {alone / together:>7.2f}x {1 / together / rate:>6.0%}"
            shares[place, count].append((1 / together / rate, blocks[program][1] >= FULL))
        print(line)
    for (place, count), found in shares.items():
        full = [share for share, is_full in found if is_full]
        print(f"mean share of the throughput of {count} independent runs{' on ' + place if place else ''}: "
              f"{mean(share for share, _ in found):.0%} over {len(found)}, {mean(full):.0%} over {len(full)} with {FULL} blocks or more")


def plot(path, threads, series):
    """One line for each of `series`, as SVG."""
    width, height, margin = 640, 400, 50
    top = max(threads)
    x = lambda value: margin + (width - 2 * margin) * value / top
    y = lambda value: height - margin - (height - 2 * margin) * value / top
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for count in threads:
        parts.append(f'<line x1="{x(0)}" y1="{y(count)}" x2="{x(top)}" y2="{y(count)}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(count)}" y="{height - margin + 18}" text-anchor="middle">{count}</text>')
        parts.append(f'<text x="{margin - 8}" y="{y(count) + 4}" text-anchor="end">{count}x</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 10}" text-anchor="middle">threads</text>')
    colours = ["#999", "#c33", "#36c", "#393", "#a50", "#639"]
    for index, (name, points) in enumerate(series.items()):
        points = [(count, value) for count, value in sorted(points.items()) if count <= top]
        line = " ".join(f"{x(count):.1f},{y(value):.1f}" for count, value in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colours[index % 6]}" stroke-width="2"/>')
        parts.append(f'<text x="{margin + 12}" y="{margin + 16 * index}" fill="{colours[index % 6]}">{name}</text>')
    pathlib.Path(path).write_text("\n".join(parts + ["</svg>"]) + "\n")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("runs")
    arguments.add_argument("--csv")
    arguments.add_argument("--plot")
    options = arguments.parse_args()
    rows = list(read(options.runs))
    seeds = names()
    digests = collections.defaultdict(set)
    for row in rows:
        digests[row["program"]].add(row["digest"])
    time = {}  # the best of what was repeated
    for row in rows:
        if row["kind"] == "one":
            key = (row["program"], row["threads"], row["schedule"])
            time[key] = min(time.get(key, row["simulating_seconds"]), row["simulating_seconds"])
    one = {program: seconds for (program, threads, _), seconds in time.items() if threads == 1}
    counts = sorted({threads for _, threads, _ in time})
    schedules = sorted({schedule for _, threads, schedule in time if threads > 1})
    blocks = {r["program"]: (r["mean_blocks"], r["most_blocks"]) for r in rows}

    # A program counts as filling the GPU by its largest launches.
    speed = {key: one[key[0]] / seconds for key, seconds in time.items() if key[0] in one}
    head = [f"{count} {schedule}" for count in counts if count > 1 for schedule in schedules]
    print(f"{'seed':<11} {'program':<31} {'blocks':>12} {'1 thread':>9} " + " ".join(f"{h:>10}" for h in head))
    for program in one:
        cells = [speed.get((program, count, s)) for count in counts if count > 1 for s in schedules]
        cells = " ".join(f"{cell:>9.2f}x" if cell else f"{'-':>10}" for cell in cells)
        average, most = blocks[program]
        print(f"{seeds.get(program, ''):<11} {program:<31} {f'{average:.0f} ({most})':>12} {one[program]:>7.2f} s {cells}")
    series = {"ideal": {count: count for count in counts}, "published (mean of 19)": {1: 1.0, **PUBLISHED}}
    for schedule in schedules:
        for what, chosen in (("all", one), (f"{FULL} blocks or more", [p for p in one if blocks[p][1] >= FULL])):
            measured = {c: [speed[p, c, schedule] for p in chosen if (p, c, schedule) in speed] for c in counts if c > 1}
            means = {c: mean(values) for c, values in measured.items() if values}
            series[f"{schedule}, {what} ({len(chosen)})"] = {1: 1.0, **means}
            if means:
                print(f"mean speed-up, {schedule}, {what} ({len(chosen)}): " + ", ".join(f"{v:.2f}x on {c}" for c, v in means.items()))
    found = lambda program, count: [speed[program, count, s] for s in schedules if (program, count, s) in speed]
    best = {c: mean(max(found(p, c)) for p in one if found(p, c)) for c in counts if c > 1}
    print("mean of the better schedule: " + ", ".join(f"{v:.2f}x on {c}" for c, v in best.items()))

    throughput(rows, blocks)

    most = max(counts)
    print(f"\nwhere the threads' time goes on {most} threads, in percent of wall time inside the engine times threads:")
    print(f"{'program':<31} {'schedule':<9} {'working':>8} {'imbalance':>9} {'meeting':>8} {'commit':>7} {'alone':>6} {'serial':>7} {'partitions':>10} {'threads':>8} {'us/epoch':>9} {'more work':>9}")
    alone = {row["program"]: row["engine_seconds"] for row in rows if row["kind"] == "one" and row["threads"] == 1}
    shown = {(r["program"], r["schedule"]): r for r in rows if r["kind"] == "one" and r["threads"] == most > 1}
    for row in shown.values():
        whole = row["engine_seconds"] * most
        share = lambda value: 100 * value / whole
        print(
            f"{row['program']:<31} {row['schedule']:<9} {share(row['busy_thread_seconds']):>7.1f}% {share(row['imbalance_thread_seconds']):>8.1f}% "
            f"{share(row['meeting_thread_seconds']):>7.1f}% {share(row['commit_seconds'] * most):>6.1f}% {share(row['alone_seconds'] * most):>5.1f}% "
            f"{share(row['serial_seconds'] * most):>6.1f}% {row['mean_partitions']:>10.1f} {row['mean_threads']:>8.1f} "
            f"{1e6 * row['engine_seconds'] / max(row['epochs'], 1):>9.1f} "
            f"{(row['busy_thread_seconds'] + row['alone_seconds']) / alone.get(row['program'], float('nan')):>8.2f}x"
        )
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    if options.plot:
        plot(options.plot, counts, series)
    several = [program for program, found in digests.items() if len(found) > 1]
    if several:
        sys.exit(f"different digests: {', '.join(several)}")
    print(f"\n{len(rows)} runs of {len(digests)} programs, one digest each")


if __name__ == "__main__":
    main()
