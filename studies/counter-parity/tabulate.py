#!/usr/bin/env python3
"""Turns what measure.py measured into the tables of the study.

    tabulate.py MEASURED TABLES

Writes CSV files into TABLES, prints them as Markdown, and exits with 1 if a claim of the study does
not hold. The simulator is asked which names are one kernel (LOCKSTEP names it if it is not built here).
"""

import csv
import glob
import json
import math
import os
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import protocol, tables as written
from harness.claims import Claims
from harness.metrics import EVENTS

SAMPLED = ["inst_executed", "active_cycles", "inst_issued", "warps_launched"]
# Two-sided 95 % points of Student's distribution.
STUDENT = {4: 2.776, 5: 2.571, 9: 2.262, 19: 2.093, 38: 2.024}
# The report's own mode, Tables 3-1 and 3-2: what it published as sampled over profiled. A GH100 cannot sample
# `thread_inst_executed`; its threads whose predicate is true stand for it.
PUBLISHED = {
    "vector_add": {"inst_executed": 1, "active_cycles": 1.00005, "inst_issued": 1, "thread_inst_executed": 1, "warps_launched": 1},
    "bfs": {"inst_executed": 1, "active_cycles": 1.01894, "inst_issued": 1, "thread_inst_executed": 1, "warps_launched": 1},
}
STANDS_FOR = {"thread_inst_executed": "thread_inst_executed_pred_on"}
# What is one program of several at once.
PROGRAMS = {"vector_add": ["fill", "vectorAdd"], "bfs": ["expand", "advance"], "steady": ["steady"]}

said = Claims()
claim, mean = said.claim, statistics.mean


def base_names(kernels, known={}):
    """{name: plain name}: `_Z9vectorAddPKfS0_Pfi`, `vectorAdd(const float *, ...)` and `vectorAdd` are one kernel.
    What was asked once is remembered."""
    known.update(protocol.kernel_names(set(kernels) - known.keys()))
    return known


def read_ncu(path):
    """Sums of every event by kernel, and the number of launches."""
    sums, launches = {}, {}
    with open(path, newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    rows = list(csv.DictReader(lines))
    plain, events = base_names(row["Kernel Name"] for row in rows), {metric: name for name, metric in EVENTS.items()}
    for row in rows:
        kernel, event = plain[row["Kernel Name"]], events.get(row["Metric Name"])
        if event is None:
            continue
        value = float(row["Metric Value"].replace(",", ""))
        sums.setdefault(kernel, {}).setdefault(event, 0)
        sums[kernel][event] += value
        if event == "warps_launched":
            launches[kernel] = launches.get(kernel, 0) + 1
    return sums, launches


def read_totals(folder):
    """Sums of every event by kernel from a run folder, and the number of launches."""
    with open(os.path.join(folder, "summary.json")) as file:
        summary = json.load(file)
    sums, launches, plain = {}, {}, base_names(total["kernel"] for total in summary["totals"])
    for total in summary["totals"]:
        kernel = plain[total["kernel"]]
        launches[kernel] = launches.get(kernel, 0) + total["launches"]
        for event, value in total["counters"].items():
            sums.setdefault(kernel, {}).setdefault(event, 0)
            sums[kernel][event] += value
    return sums, launches, summary


def averaged(many, kernels, event):
    return mean([sum(run.get(kernel, {}).get(event, 0) for kernel in kernels) for run in many])


def write(folder, name, header, rows):
    """Writes a table, and prints it as Markdown."""
    written.write(os.path.join(folder, name), header, rows)
    print(f"\n{name}\n{written.markdown(header, rows)}\n")


def parity(measured, tables):
    exact_by_program = {}
    for program, kernels, table in [
        ("vector_add", ["vectorAdd"], "table-3-1-vector-add.csv"),
        ("vector_add", ["fill", "vectorAdd"], "vector-add-with-fill.csv"),
        ("bfs", ["expand", "advance"], "table-3-2-bfs.csv"),
    ]:
        ours = [read_totals(folder)[0] for folder in sorted(glob.glob(f"{measured}/exact-{program}-*"))]
        theirs = [read_ncu(path)[0] for path in sorted(glob.glob(f"{measured}/ncu-{program}-*.csv"))]
        if not ours or not theirs:
            claim(False, f"{program} was measured by both")
            continue
        rows = []
        for event in EVENTS:
            a, b = averaged(ours, kernels, event), averaged(theirs, kernels, event)
            ratio = a / b if b else math.nan
            rows.append([event, f"{ratio:.5f}", f"{a:.0f}", f"{b:.0f}"])
            if event == "active_cycles":
                claim(abs(ratio - 1) <= 0.02, f"{table}: active_cycles within 2 % of ncu ({ratio:.5f})")
            elif event == "inst_issued":
                claim(abs(ratio - 1) <= 0.0005, f"{table}: inst_issued equals ncu's to three places ({ratio:.5f})")
            else:
                same = all(sum(run.get(kernel, {}).get(event, 0) for kernel in kernels) == b for run in ours)
                claim(same, f"{table}: {event} equals ncu's in every run")
        write(tables, table, ["event", "ratio", "lockstep exact", "ncu"], rows)
        exact_by_program[program] = ours
    return exact_by_program


def own_mode(measured, tables):
    """The report's two tables as it made them: sums of a series, the mean of many runs, over the profiler's counts."""
    rows = []
    for program, events in PUBLISHED.items():
        theirs = [read_ncu(path)[0] for path in sorted(glob.glob(f"{measured}/ncu-{program}-*.csv"))]
        for interval in ["10ms", "1ms"]:
            runs = [read_totals(folder)[0] for folder in sorted(glob.glob(f"{measured}/series-{program}-{interval}-*"))]
            if not runs or not theirs:
                continue
            for event, published in events.items():
                sampled = STANDS_FOR.get(event, event)
                profiled = averaged(theirs, list(theirs[0]), event)
                sums = [sum(kernel.get(sampled, 0) for kernel in run.values()) for run in runs]
                rows.append([program, interval, event, sampled, len(runs), published, f"{mean(sums) / profiled:.5f}",
                             f"{mean(sums):.0f}", f"{profiled:.0f}"])
    if rows:
        write(tables, "tables-3-1-and-3-2-sampled.csv",
              ["program", "interval", "event", "sampled as", "runs", "published ratio", "our ratio", "series", "ncu"], rows)


def series(measured, tables, exact):
    rows = []
    for program in ["vector_add", "bfs"]:
        for interval in ["10ms", "1ms"]:
            runs = [read_totals(folder)[0] for folder in sorted(glob.glob(f"{measured}/series-{program}-{interval}-*"))]
            if not runs or program not in exact:
                claim(False, f"series of {program} at {interval} were measured")
                continue
            for event in SAMPLED:
                wanted = averaged(exact[program], list(exact[program][0]), event)
                sums = [sum(kernel.get(event, 0) for kernel in run.values()) for run in runs]
                ratios = [value / wanted for value in sums]
                rows.append([program, interval, event, f"{mean(ratios):.5f}", f"{min(ratios):.5f}", f"{max(ratios):.5f}",
                             f"{mean(sums):.0f}", f"{wanted:.0f}"])
                claim(all(abs(ratio - 1) <= 0.02 for ratio in ratios),
                      f"series of {program} at {interval}: {event} within 2 % of exact in every run ({mean(ratios):.5f})")
    write(tables, "series-against-exact.csv",
          ["program", "interval", "event", "ratio", "least", "most", "series", "exact"], rows)


def contexts_expected(contexts, launches):
    """What programs/contexts.cu launches: (kernel, launches, warps) of each context."""
    count = launches // 2 + launches // 4 + launches // 8 * 2
    names = ["first", "second", "third", "fourth"]
    return [(names[i % 4], count, count * 33 * (i + 1) * 4) for i in range(contexts)]


def folders(measured, run):
    """Folders of a run that was made once or several times, by number."""
    found = glob.glob(f"{measured}/{run}") + glob.glob(f"{measured}/{run}-[0-9]*")
    found = [folder for folder in found if os.path.exists(f"{folder}/summary.json")]
    claim(found, f"{run} was measured")
    return sorted(found, key=lambda folder: [int(part) for part in folder.split("-") if part.isdigit()])


def exact_contexts(folder, launches, rows):
    """Four contexts with graphs, counted exactly; counts of a warp of each kernel."""
    run = os.path.basename(folder)
    sums, counted, summary = read_totals(folder)
    for kernel, expected, warps in contexts_expected(4, launches):
        ratio = sums.get(kernel, {}).get("warps_launched", 0) / warps
        claim(counted.get(kernel, 0) == expected, f"{run}: all {expected} launches of {kernel} are there")
        claim(ratio == 1, f"{run}: warps of {kernel} ({ratio:.5f})")
        rows.append([run, kernel, expected, counted.get(kernel, 0), f"{ratio:.5f}", "", ""])
    return {kernel: {event: value / sums[kernel]["warps_launched"] for event, value in sums[kernel].items()}
            for kernel in sums if sums[kernel].get("warps_launched")}


def contexts(measured, rows):
    """Contexts and threads at once, against what each kernel does per warp when it is counted alone."""
    truth = None
    for folder in folders(measured, "contexts-exact"):
        truth = exact_contexts(folder, 40, rows)
    runs = [*folders(measured, "contexts-sampled"), *folders(measured, "threads-sampled"), *folders(measured, "contexts-rates")]
    for folder in runs:
        run, launches = os.path.basename(folder), 2000
        # What an exact run has told need not be learned.
        bound = 0.005 if "rates" in run else 0.05
        sums, counted, summary = read_totals(folder)
        places, plain = {}, base_names(total["kernel"] for total in summary["totals"])
        for total in summary["totals"]:
            places.setdefault(plain[total["kernel"]], set()).add((total["context"], total["stream"]))
        whole = sum(other.get("inst_executed", 0) for other in sums.values())
        for kernel, expected, warps in contexts_expected(4, launches):
            got = sums.get(kernel, {})
            ratio = got.get("warps_launched", 0) / warps
            claim(counted.get(kernel, 0) == expected, f"{run}: all {expected} launches of {kernel} are there")
            claim(abs(ratio - 1) <= 0.02, f"{run}: warps of {kernel} ({ratio:.5f})")
            claim(len(places.get(kernel, ())) == 1, f"{run}: {kernel} is in one context and stream")
            wanted = truth[kernel]["inst_executed"] * warps if truth else math.nan
            error = (got.get("inst_executed", 0) - wanted) / max(whole, 1)
            claim(abs(error) <= bound, f"{run}: instructions of {kernel} to {bound * 100:g} % of the GPU's ({error * 100:+.2f} %)")
            rows.append([run, kernel, expected, counted.get(kernel, 0), f"{ratio:.5f}", f"{got.get('inst_executed', 0) / wanted:.5f}", f"{error * 100:+.2f} %"])


def warps_of(row):
    """Warps of a launch."""
    volume = lambda text: math.prod(int(part) for part in text.split("x"))
    return volume(row["grid"]) * -(-volume(row["block"]) // 32)


def processes(measured, rows):
    """Processes at once, against what each does per warp alone; bounded by the whole GPU's count."""
    for folder in [*folders(measured, "processes-1ms"), *folders(measured, "processes-rates")]:
        run = os.path.basename(folder)
        bound = 0.005 if "rates" in run else 0.05
        sums, counted, summary = read_totals(folder)
        whole = sum(kernel.get("inst_executed", 0) for kernel in sums.values())
        launched, plain = {}, base_names(total["kernel"] for total in summary["totals"])
        for row in written.rows(f"{folder}/kernels.csv"):
            kernel = base_names([row["kernel"]])[row["kernel"]]
            launched[kernel] = launched.get(kernel, 0) + warps_of(row)
        for program, kernels in PROGRAMS.items():
            counted_alone = f"{measured}/alone-{program}"
            if not os.path.exists(counted_alone):
                counted_alone = f"{measured}/processes-exact-1"
            alone, _, _ = read_totals(counted_alone)
            owners = {total["process"] for total in summary["totals"] if plain[total["kernel"]] in kernels}
            wanted = sum(alone[kernel]["inst_executed"] / alone[kernel]["warps_launched"] * launched.get(kernel, 0)
                         for kernel in kernels)
            got = sum(sums.get(kernel, {}).get("inst_executed", 0) for kernel in kernels)
            warps = sum(sums.get(kernel, {}).get("warps_launched", 0) for kernel in kernels)
            ratio = warps / max(sum(launched.get(kernel, 0) for kernel in kernels), 1)
            error = (got - wanted) / whole
            rows.append([run, program, "", sum(counted.get(kernel, 0) for kernel in kernels), f"{ratio:.5f}",
                         f"{got / wanted:.5f}", f"{error * 100:+.2f} %"])
            claim(abs(ratio - 1) <= 0.04, f"{run}: warps of {program} ({ratio:.5f})")
            claim(abs(error) <= bound, f"{run}: instructions of {program} to {bound * 100:g} % of the GPU's ({error * 100:+.2f} %)")
            claim(len(owners) == 1, f"{run}: {program} is one process")


def graphs(measured, rows):
    """Graphs in exact mode: no kernel of any launch may lack its counts."""
    for folder in folders(measured, "graphs-exact"):
        exact_contexts(folder, 8, rows)
    for folder in folders(measured, "graph-turns"):
        sums, counted, _ = read_totals(folder)
        for kernel, launches in [("plain", 6), ("node", 12)]:
            ratio = sums.get(kernel, {}).get("warps_launched", 0) / (launches * 132)
            claim(counted.get(kernel, 0) == launches and ratio == 1, f"graph-turns: {kernel} ({ratio:.5f})")
            rows.append(["graph-turns", kernel, launches, counted.get(kernel, 0), f"{ratio:.5f}", "", ""])


def rounds(measured, rows):
    """Contexts that come and go beside graphs, in exact mode; the program checks its own sums."""
    for folder in folders(measured, "rounds-exact"):
        run = os.path.basename(folder)
        sums, counted, summary = read_totals(folder)
        claim(summary["exit_code"] == 0, f"{run}: the program found its sums right")
        for kernel, launches in [("plain", 12), ("even", 24), ("odd", 12)]:
            ratio = sums.get(kernel, {}).get("warps_launched", 0) / (launches * 132)
            claim(counted.get(kernel, 0) == launches and ratio == 1, f"{run}: {kernel} ({ratio:.5f})")
            rows.append([run, kernel, launches, counted.get(kernel, 0), f"{ratio:.5f}", "", ""])


def exact_processes(measured, rows):
    """Processes at once in exact mode: each counts what it counts alone."""
    for folder in folders(measured, "processes-exact"):
        run = os.path.basename(folder)
        sums, counted, summary = read_totals(folder)
        plain = base_names(total["kernel"] for total in summary["totals"])
        claim(all(total["exact"] for total in summary["totals"]), f"{run}: every count is exact")
        for program, kernels in PROGRAMS.items():
            alone, launched, _ = read_totals(f"{measured}/alone-{program}")
            owners = {total["process"] for total in summary["totals"] if plain[total["kernel"]] in kernels}
            claim(len(owners) == 1, f"{run}: {program} is one process")
            whole = lambda of, event: sum(of.get(kernel, {}).get(event, 0) for kernel in kernels)
            for event in ["inst_executed", "thread_inst_executed", "warps_launched"]:
                claim(whole(sums, event) == whole(alone, event), f"{run}: {event} of {program} as alone")
            rows.append([run, program, sum(launched[kernel] for kernel in kernels), sum(counted.get(kernel, 0) for kernel in kernels),
                         f"{whole(sums, 'warps_launched') / whole(alone, 'warps_launched'):.5f}",
                         f"{whole(sums, 'inst_executed') / whole(alone, 'inst_executed'):.5f}", ""])


def busy(measured, rows):
    """A GPU that is busy for longer than an image of counters lasts."""
    for folder in folders(measured, "busy"):
        sums, counted, summary = read_totals(folder)
        alone, _, _ = read_totals(f"{measured}/alone-steady")
        each = alone["steady"]["inst_executed"] / alone["steady"]["warps_launched"]
        ratio = sums["steady"]["inst_executed"] / (each * counted["steady"] * 132 * 4)
        missing = sum(gaps["nanoseconds"] for gaps in summary["gaps"].values())
        sampled = sum(gaps["sampled_nanoseconds"] for gaps in summary["gaps"].values())
        told = f"{missing / 1e6:.1f} ms of {(missing + sampled) / 1e6:.0f} ms without samples"
        claim(abs(ratio - 1) <= 0.02, f"busy: the series adds up ({ratio:.5f}; {told})")
        claim(missing <= 0.01 * sampled, f"busy: {told}, at most 1 %")
        rows.append(["busy", "steady", counted["steady"], counted["steady"], "", f"{ratio:.5f}", told])


def attribution(measured, tables):
    rows = []
    contexts(measured, rows)
    processes(measured, rows)
    graphs(measured, rows)
    rounds(measured, rows)
    exact_processes(measured, rows)
    busy(measured, rows)
    for run in ["shared-sampled", "shared-exact", "sixteen", "killed-program", "second-reader", "all"]:
        if os.path.exists(f"{measured}/{run}/summary.json"):
            _, counted, summary = read_totals(f"{measured}/{run}")
            rows.append([run, "all", "", sum(counted.values()), "", "", ""])
            claim(summary["lost"] == 0 and sum(counted.values()) > 0, f"{run}: read without loss")
            if run == "sixteen":
                claim(len(summary["processes"]) >= 16, "sixteen: all processes were read")
    if rows:
        write(tables, "attribution.csv", ["run", "kernel or program", "launches made", "launches read", "warps ratio", "instructions ratio", "error of all instructions"], rows)


def slowdown(base, with_it):
    """How much slower runs are, and half of the interval that holds it with 95 %, both in percent."""
    error = math.sqrt(statistics.variance(base) / len(base) + statistics.variance(with_it) / len(with_it))
    student = STUDENT.get(min(len(base), len(with_it)) - 1, 2.1)
    return (mean(with_it) / mean(base) - 1) * 100, student * error / mean(base) * 100


def overhead(measured, tables):
    path = f"{measured}/overhead.csv"
    if not os.path.exists(path):
        return
    seconds, walls = {}, {}
    for row in written.rows(path):
        if row["seconds"]:
            seconds.setdefault((row["program"], row["interval"]), []).append(float(row["seconds"]))
            walls.setdefault((row["program"], row["interval"]), []).append(float(row["wall"]))
    rows = []
    for program in sorted({program for program, _ in seconds}):
        base = seconds[program, "none"]
        for interval in [one for of, one in seconds if of == program and one != "none"]:
            with_it = seconds[program, interval]
            slower, half = slowdown(base, with_it)
            medians = (statistics.median(with_it) / statistics.median(base) - 1) * 100
            start = mean(walls[program, interval]) - mean(walls[program, "none"])
            rows.append([program, interval, len(with_it), f"{mean(base):.5f}", f"{mean(with_it):.5f}",
                         f"{slower:+.3f} %", f"{slower - half:+.3f} %", f"{slower + half:+.3f} %",
                         f"{medians:+.3f} %", f"{start:.2f}"])
            if interval.endswith("no kernels"):
                claim(slower <= 2, f"{program} at {interval}: at most 2 % slower ({slower:+.3f} %, 95 % up to {slower + half:+.3f} %)")
            elif program.startswith("kernels"):
                claim(slower + half <= 0.2, f"{program} at {interval}: at most 0.2 % slower ({slower:+.3f} %, 95 % up to {slower + half:+.3f} %)")
    write(tables, "overhead.csv",
          ["program", "interval", "runs", "without (s)", "with (s)", "slower", "95 % from", "to", "by medians", "start and end (s)"],
          rows)


def kernel_times(measured, tables):
    """The report's Figure 3-1: the time of each kernel with the sampler, as a ratio to that without."""
    path = f"{measured}/kernel-times.csv"
    if not os.path.exists(path):
        return
    times = {}
    for row in written.rows(path):
        key = int(row["ranks"]), row["interval"], row["kernel"]
        times.setdefault(key, []).append(float(row["microseconds"]))
    plain = base_names({kernel for _, _, kernel in times})
    rows = []
    for ranks in sorted({ranks for ranks, _, _ in times}):
        for interval in ["10 ms", "1 ms"]:
            kernels = [kernel for of, when, kernel in times if (of, when) == (ranks, interval)]
            medians = [[statistics.median(times[ranks, when, kernel]) for kernel in kernels] for when in ["none", interval]]
            for kernel, base, with_it in zip(kernels, *medians):
                rows.append([ranks, interval, plain[kernel], len(times[ranks, interval, kernel]), f"{base:.3f}", f"{with_it:.3f}", f"{with_it / base:.4f}"])
            base, with_it = map(sum, medians)
            rows.append([ranks, interval, "all", "", f"{base:.3f}", f"{with_it:.3f}", f"{with_it / base:.4f}"])
            claim(with_it / base <= 1.02, f"kernels of {ranks} ranks at {interval}: at most 2 % slower in all ({with_it / base:.4f})")
    header = ["ranks", "interval", "kernel", "runs", "without (us)", "with (us)", "ratio"]
    written.write(os.path.join(tables, "figure-3-1.csv"), header, rows)
    print(f"\nfigure-3-1.csv, sums\n{written.markdown(header, [row for row in rows if row[2] == 'all'])}\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    measured, tables = sys.argv[1:3]
    os.makedirs(tables, exist_ok=True)
    exact = parity(measured, tables)
    series(measured, tables, exact)
    own_mode(measured, tables)
    attribution(measured, tables)
    overhead(measured, tables)
    kernel_times(measured, tables)
    print(f"\n{len(said.failures)} claims fail")
    for sentence in said.failures:
        print("  " + sentence)
    said.end()


if __name__ == "__main__":
    main()
