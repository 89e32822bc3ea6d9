#!/usr/bin/env python3
"""Measures the workloads on a real GPU with Nsight Compute and writes one table a question.

    measure.py verify|cold|warm|traffic|pipes|stalls|floors ...  --libraries DIR --out DIR

DIR holds one shared library a program (`workloads/run_all.py --libraries --bin DIR`), whose device code is that of the executables that the
simulator runs; all of them run in one process (runner.cu), so that the profiler starts once a repetition. A table
has a row for each launch; a cell holds one value a repetition, separated by blanks. Clocks are left as found.
Needs Python 3.10, ncu, nvidia-smi and the runner, built by plain nvcc.

With --ranges DIR (libranges.so and ranges_plan, built from ranges.cpp) questions are asked of CUPTI's range profiler
instead of ncu: metrics are split into groups of one pass, and the programs run once for each group. Kernel names and
shapes are then those of cold.csv (--shapes), and the simulator is asked which names are one kernel (LOCKSTEP names it
if it is not built here).
"""

import argparse
import csv
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from harness import machine, project, protocol, tables, workloads
from harness.metrics import ONE_PASS, PIPES, SOURCES, STALLED, TRAFFIC

COLD, WARM = ["--cache-control", "all"], ["--cache-control", "none"]
# question -> metrics (a pattern is looked up on the machine), options, whether one pass must do
QUESTIONS = {
    "cold": (ONE_PASS, COLD, True),
    "warm": (ONE_PASS, WARM, True),
    "traffic": (TRAFFIC, COLD, False),
    "sources": (SOURCES, COLD, False),
    "pipes": (PIPES, COLD, False),
    "stalls": (STALLED, COLD, False),
}
# Runs of a program whose launches are not always the same ones, until they are those of the table.
ATTEMPTS = 12
# What a row says of a launch beside what was counted.
ABOUT = ["kernel", "grid", "block", "registers", "shared"]
LAUNCH = {"registers": "launch__registers_per_thread", "shared": "launch__shared_mem_per_block"}


def lines(arguments):
    """(label, library, arguments) of each program and size; sizes have libraries of their own, so that what a
    program leaves in its variables is not seen by its next run."""
    folder = pathlib.Path(arguments.libraries)
    programs = workloads.load()
    for size in arguments.sizes:
        for program in programs:
            words, label = program.arguments(size), f"{program.name}/{size}"
            library = folder / f"{program.name}.so"
            if words is None or not library.exists() or not re.search(arguments.only, label):
                continue
            own = folder / f"{program.name}.{size}.so"
            if not own.exists():
                shutil.copy(library, own)
            yield label, str(own), list(words)


def copies(wanted, count):
    """Every program `count` times, each with a library of its own, so that one start of the profiler serves them all."""
    for label, library, words in wanted:
        for copy in range(count):
            own = pathlib.Path(f"{library}.{copy}" if copy else library)
            if not own.exists():
                shutil.copy(library, own)
            yield f"{label}#{copy}", str(own), words


def by_copy(found, count):
    """A repetition for each copy of `copies`."""
    repetitions = [{} for _ in range(count)]
    for (label, launch), what in found.items():
        label, _, copy = label.partition("#")
        repetitions[int(copy or 0)][label, launch] = what
    return repetitions


def run(command, seconds=600):
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds)


def provenance(question, arguments, notes):
    version = run([arguments.ncu, "--version"]).stdout.strip().splitlines()[-1]
    return [
        f"command: measure.py {question} --sizes {' '.join(arguments.sizes)}",
        f"date: {machine.today()}",
        f"card ({machine.CARD_NOW}): {machine.card(machine.CARD_NOW)}",
        f"profiler: {version}; clocks left as found (--clock-control none)",
        *notes,
    ]


def known_metrics(arguments, cache=[]):
    if not cache:
        text = run([arguments.ncu, "--query-metrics", "--chip", "gh100"]).stdout
        cache += [line.split()[0] for line in text.splitlines() if re.match(r"[a-z0-9]+__", line)]
    return cache


def chosen(metrics, arguments):
    """The metrics that this machine has."""
    known = set(known_metrics(arguments))
    if isinstance(metrics, re.Pattern):
        found = {f"stall_{match.group(1)}": f"{name}.ratio" for name in sorted(known) if (match := metrics.fullmatch(name))}
        return found
    if "sm__cycles_elapsed" not in known:
        return metrics  # the list could not be read
    missing = [metric for metric in metrics.values() if metric.split(".")[0] not in known]
    if missing:
        print(f"not on this machine: {' '.join(missing)}", file=sys.stderr)
    return {name: metric for name, metric in metrics.items() if metric not in missing}


def profile(target, metrics, options, arguments):
    """Rows of the profiler, what the program printed, and the most passes that a launch took (0: it did not say)."""
    log = pathlib.Path(arguments.out) / "profile.log"
    asked = list(metrics.values()) + list(LAUNCH.values())
    command = [arguments.ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", *options]
    command += ["--metrics", ",".join(asked), "--log-file", str(log), *target]
    result = run(command)
    text = log.read_text() if log.exists() else ""
    text_lines = text.splitlines()
    start = next((index for index, line in enumerate(text_lines) if line.startswith('"ID"')), None)
    table = [line for line in text_lines[start or 0 :] if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO("\n".join(table))))[1:] if start is not None else []
    passes = max((int(n) for n in re.findall(r"- (\d+) pass", text + result.stdout + result.stderr)), default=0)
    if not rows:
        print("\n".join(text_lines[-5:]), result.stderr[-500:], file=sys.stderr)
    return rows, result.stdout, passes


def fitted(metrics, options, arguments):
    """As many of the metrics, in their order, as one pass takes."""
    metrics = dict(metrics)
    target = [str(arguments.floors)] + ["profile"] if arguments.floors else None
    while target and len(metrics) > 1:
        rows, _, passes = profile(target, metrics, [*options, "--launch-count", "1"], arguments)
        print(f"{len(metrics)} metrics: {passes} passes", flush=True)
        if rows and passes <= 1:
            break
        metrics.popitem()
    return metrics


def values_of(row, metrics):
    return {name: row[metric].replace(",", "") for name, metric in metrics.items()}


def groups_of(metrics, arguments):
    """The metrics in groups that take one pass each; what no pass can take is left out, with a word."""
    result = run([f"{arguments.ranges}/ranges_plan", "GH100", *metrics.values()])
    print(result.stderr, end="", file=sys.stderr)
    names = {metric: name for name, metric in metrics.items()}
    return [{names[metric]: metric for metric in line.split(",")} for line in result.stdout.split()]


def ranged(target, metrics, options, arguments):
    """What `profile` answers, from the range profiler: rows have no shapes, which come from another table."""
    path = pathlib.Path(arguments.out) / "ranges.tsv"
    path.unlink(missing_ok=True)
    settings = {"LD_PRELOAD": f"{arguments.ranges}/libranges.so", "RANGES_METRICS": ",".join(metrics.values()), "RANGES_OUT": str(path)}
    if options == COLD:
        settings["RANGES_COLD"] = "1"
    if arguments.own_ranges:
        settings["RANGES_OWN"] = "1"
    result = subprocess.run(target, capture_output=True, text=True, timeout=600, env={**os.environ, **settings})
    print("".join(f"{line}\n" for line in result.stderr.splitlines() if line.startswith("ranges:")), end="", file=sys.stderr)
    failed = set(re.findall(r"^RAN (\d+) \S+ 127", result.stdout, re.M))
    begun = iter([number for number in re.findall(r"^BEGIN (\d+)", result.stdout, re.M) if number not in failed])
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        _, name, *values = line.split("\t")
        if name == "flush":
            continue
        begins = "begin_program" in name
        row = {"Kernel Name": "begin_program" if begins else name, "Grid Size": next(begun) if begins else "", "Block Size": ""}
        rows.append(row | dict.fromkeys(LAUNCH.values(), "") | dict(zip(metrics.values(), values)))
    return rows, result.stdout, 1


def plain_names(names, known={}):
    """{name: plain name}; what was asked once is remembered."""
    known.update(protocol.kernel_names(set(names) - known.keys()))
    return known


def with_shapes(found, shapes):
    """The launches with the names and shapes of `shapes`, and the programs that launched other kernels this time.

    How often some programs launch depends on races (mst follows pointers until nothing changes)."""
    plain = plain_names([name for name, *_ in [*found.values(), *shapes.values()]])
    labels = {label for label, _ in found}
    wrong = {key[0] for key in shapes if key[0] in labels and key not in found}
    wrong |= {key[0] for key, (name, *_) in found.items() if key not in shapes or plain[shapes[key][0]] != plain[name]}
    return {key: (*shapes[key], what[-1]) for key, what in found.items() if key[0] not in wrong}, wrong


def one_group(wanted, group, options, arguments, broken, shapes):
    """One repetition of one group of metrics; programs that launched something else run again."""
    part, left = {}, wanted
    for _ in range(ATTEMPTS):
        found, _ = one_repetition(left, group, options, arguments, broken, ranged)
        right, wrong = with_shapes(found, shapes)
        part.update(right)
        left = [line for line in left if line[0] in wrong and line[0] not in broken]
        if not left:
            return part
    print(f"other launches than in {arguments.shapes}: {' '.join(line[0] for line in left)}", file=sys.stderr)
    return part


def one_repetition(wanted, metrics, options, arguments, broken, profile=profile):
    """{(label, launch): (kernel, grid, block, registers, shared, values)}, and the most passes."""
    found, most = {}, 0
    left = [line for line in wanted if line[0] not in broken]
    while left:
        listing = pathlib.Path(arguments.out) / "programs.list"
        listing.write_text("".join(f"{label} {library} {' '.join(words)}\n" for label, library, words in left))
        rows, printed, passes = profile([arguments.runner, str(listing)], metrics, options, arguments)
        most = max(most, passes)
        ended = {label: int(code) for _, label, code in re.findall(r"^RAN (\d+) (\S+) (\d+)", printed, re.M)}
        begun = re.findall(r"^BEGIN \d+ (\S+)", printed, re.M)
        current, launch = None, 0
        for row in rows:
            grid = row["Grid Size"]
            if row["Kernel Name"].startswith("begin_program"):
                current, launch = left[int(re.findall(r"\d+", grid)[0]) - 1][0], 0
                continue
            about = (row["Kernel Name"], grid, row["Block Size"], *(values_of(row, LAUNCH).values()))
            found[current, launch] = (*about, values_of(row, metrics))
            launch += 1
        for label, code in ended.items():
            if code != 0:
                print(f"{label}: exit code {code}", file=sys.stderr)
                broken.add(label)
        # What was running when the process ended without a word is left out, and the rest goes on.
        position = next((i for i, line in enumerate(left) if line[0] not in ended), len(left))
        if position < len(left):
            print(f"{left[position][0]}: ended the process ({len(begun)} begun)", file=sys.stderr)
            broken.add(left[position][0])
        left = left[position + 1 :]
    return found, most


def write(path, head, columns, repetitions):
    """Cells of all repetitions; a launch that not every repetition has keeps the values it has."""
    order, about, cells = [], {}, {}
    for repetition in repetitions:
        for key, (*what, values) in repetition.items():
            if key not in about:
                order.append(key)
                about[key] = what
            for name, value in values.items():
                cells.setdefault((key, name), []).append(value)
    lines = []
    for key in order:
        row = [" ".join(cells.get((key, name), [])) for name in columns]
        lines.append([*key[0].split("/"), key[1], *about[key], *row])
    tables.write(path, ["program", "size", "launch", *ABOUT, *columns], lines, head)


def read_table(path):
    """The repetitions of a table, as `write` takes them."""
    repetitions = []
    for row in tables.rows(path):
        key = (f"{row.pop('program')}/{row.pop('size')}", int(row.pop("launch")))
        about = [row.pop(name) for name in ABOUT]
        cells = {name: tables.repetitions(cell, str) for name, cell in row.items()}
        for index in range(max(map(len, cells.values()), default=0)):
            while len(repetitions) <= index:
                repetitions.append({})
            values = {name: cell[index] for name, cell in cells.items() if index < len(cell)}
            repetitions[index][key] = (*about, values)
    return repetitions


def ask(question, arguments, deadline):
    metrics, options, single = QUESTIONS[question]
    metrics = chosen(metrics, arguments)
    if arguments.ranges:
        groups = groups_of(metrics, arguments)
        metrics = {name: metric for group in groups for name, metric in group.items()}
        shapes = {key: what for table in [read_table(pathlib.Path(arguments.shapes))] for key, (*what, _) in table[0].items()}
    elif single:
        metrics = fitted(metrics, options, arguments)
    path = pathlib.Path(arguments.out) / f"{question}.csv"
    repetitions = read_table(path) if arguments.extend and path.exists() else []
    asked_of = "ncu"
    if arguments.ranges:
        asked_of = f"range profiler{', own ranges' * arguments.own_ranges}, {len(groups)} groups of metrics, a run for each"
        options_told = "256 MiB read before each launch" if options == COLD else "caches as the program left them"
    else:
        options_told = " ".join(options)
    wanted, broken, most, longest = list(lines(arguments)), set(), 0, 0
    for repetition in range(arguments.repetitions):
        begin = time.monotonic()
        if arguments.places:
            os.environ["RUNNER_PLACE"] = str(len(repetitions) + 1)
        if begin + longest > deadline:
            print(f"{question}: {len(repetitions)} repetitions, no time for more", file=sys.stderr)
            break
        if arguments.ranges:
            found, passes = {}, 1
            for group in groups:
                part = one_group(wanted, group, options, arguments, broken, shapes)
                for key, (*about, values) in part.items():
                    found.setdefault(key, (*about, {}))[-1].update(values)
        else:
            found, passes = one_repetition(copies(wanted, arguments.copies), metrics, options, arguments, broken)
        repetitions += by_copy(found, arguments.copies)
        most = max(most, passes)
        longest = max(longest, time.monotonic() - begin)
        notes = [
            f"{asked_of}; "
            f"options: {options_told}{', memory elsewhere in each repetition' * arguments.places}; passes of a launch: at most {most}; repetitions: {len(repetitions)}",
            f"metrics: {' '.join(f'{name}={metric}' for name, metric in metrics.items())}",
            f"left out: {' '.join(sorted(broken)) or 'nothing'}",
        ]
        write(path, provenance(question, arguments, notes), list(metrics), repetitions)
        print(f"{question} {repetition}: {len(found)} launches, {time.monotonic() - begin:.1f} s", flush=True)
    return len(broken)


def floors(arguments, deadline):
    """Empty kernels, cold and warm: the cycles of each launch."""
    metrics = fitted({name: ONE_PASS[name] for name in ["cycles", "duration_ns", "active_cycles"]}, WARM, arguments)
    repetitions = []
    for _ in range(arguments.repetitions):
        if time.monotonic() > deadline:
            break
        found = {}
        for state, options in [("cold", COLD), ("warm", WARM)]:
            rows, _, _ = profile([str(arguments.floors), "profile"], metrics, options, arguments)
            for launch, row in enumerate(rows):
                about = (row["Kernel Name"], row["Grid Size"], row["Block Size"], *(values_of(row, LAUNCH).values()))
                found[f"empty/{state}", launch] = (*about, values_of(row, metrics))
        repetitions.append(found)
        head = provenance("floors", arguments, [f"size says whether caches were emptied; repetitions: {len(repetitions)}"])
        write(pathlib.Path(arguments.out) / "launch_floors.csv", head, list(metrics), repetitions)
    return 0 if repetitions else 1


def verify(arguments):
    """Each program in a run of the runner without a profiler."""
    wanted, failures, left = list(lines(arguments)), 0, list(lines(arguments))
    verdicts = {}
    while left:
        listing = pathlib.Path(arguments.out) / "programs.list"
        listing.write_text("".join(f"{label} {library} {' '.join(words)}\n" for label, library, words in left))
        printed = run([arguments.runner, str(listing)]).stdout
        current, last = None, ""
        for line in printed.splitlines():
            if line.startswith("BEGIN "):
                current, last = line.split()[2], ""
            elif line.startswith("RAN "):
                verdicts[current] = (int(line.split()[3]), last)
            elif line.startswith(("PASS", "FAIL")):
                last = line
        position = next((i for i, line in enumerate(left) if line[0] not in verdicts), len(left))
        if position < len(left):
            verdicts[left[position][0]] = (134, "ended the process")
        left = left[position + 1 :]
    rows = []
    for label, _, words in wanted:
        code, last = verdicts[label]
        failures += code != 0
        rows.append([*label.split("/"), " ".join(words), code, last])
        if code != 0:
            print(f"FAIL {label}: {code} {last}")
    columns = ["program", "size", "arguments", "exit", "last_line"]
    tables.write(pathlib.Path(arguments.out) / "verify.csv", columns, rows, provenance("verify", arguments, []))
    print(f"verify: {len(wanted)} runs, {failures} failed", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", choices=["verify", "floors", *QUESTIONS])
    parser.add_argument("--libraries", required=True)
    parser.add_argument("--runner", required=True, help="the runner, built from runner.cu")
    parser.add_argument("--floors", help="the executable of microbench/launch_floor.cu")
    parser.add_argument("--ncu", default=project.ncu())
    parser.add_argument("--ranges", help="folder of libranges.so and ranges_plan: use the range profiler, not ncu")
    parser.add_argument("--own-ranges", action="store_true", help="begin and end ranges ourselves: cheaper, for counts and their ratios (pipes, stalls)")
    parser.add_argument("--shapes", default=project.HARDWARE / "h200" / "cold.csv", help="table with the shapes of launches")
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--sizes", nargs="+", default=["default", "medium"])
    parser.add_argument("--only", default=".", help="expression that `program/size` must match")
    parser.add_argument("--extend", action="store_true", help="add repetitions to the tables that are there")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--places", action="store_true", help="the memory of programs lies elsewhere in each repetition")
    parser.add_argument("--copies", type=int, default=1, help="repetitions that share one start of ncu")
    parser.add_argument("--seconds", type=int, default=3600, help="begin no repetition that would end later")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.seconds
    failures = 0
    for question in arguments.questions:
        if question == "verify":
            failures += verify(arguments)
        elif question == "floors":
            failures += floors(arguments, deadline)
        else:
            failures += ask(question, arguments, deadline)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
