#!/usr/bin/env python3
"""Runs microbench/core.cu on a simulated GPU and sets every figure beside those of the real one.

    microbench_table.py --lockstep BINARY --core EXECUTABLE [--parts lat,thr,...] [--out TABLE] [--keep FOLDER]

Hardware figures are those of `hardware/GPU/core.csv` and `core_again.csv`; where they differ, an error inside their
spread counts as zero. Bandwidths are simulated in a shorter form (the parts of PARTS), and compared with hardware
measured in the same form where there is one. Every row of core.csv is in the table; what was not simulated has an
empty cell. Parts that --keep holds already are not run again. Exits 1 if a row is beyond its bound.
"""

import argparse
import csv
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

# Name of a part, arguments of core, form in which it differs from the hardware's.
PARTS = [
    ("lat", ["lat"], ""),
    ("thr", ["thr"], ""),
    ("lds", ["lds"], ""),
    ("ldg", ["ldg"], ""),
    ("mem", ["mem", "0", "61440"], ""),
    ("mem-large", ["mem", "131072", "33554432"], ""),
    ("atom", ["atom"], ""),
    ("launch", ["launch", "20"], "20 launches"),
    ("bw-4", ["bw", "256", "4", "24"], "bw 256 4 24"),
    ("bw-16", ["bw", "256", "16", "12"], "bw 256 16 12"),
    ("bw-24", ["bw", "256", "24", "8"], "bw 256 24 8"),
    ("bw-32", ["bw", "256", "32", "6"], "bw 256 32 6"),
    ("bw-48", ["bw", "256", "48", "4"], "bw 256 48 4"),
    ("bw-2048", ["bw", "256", "-1", "1"], "bw 256 -1 1"),
]


def read(path):
    """Figures by (form, name, parameter), in order; a line `# core ...` says which form follows."""
    figures, form = {}, ""
    with open(path) as lines:
        for line in lines:
            if line.startswith("# core "):
                form = line[len("# core "):].strip()
            if line.startswith("#") or line.startswith("name,"):
                continue
            name, rest = line.rstrip().split(",", 1)
            parameter, value, _unit = rest.rsplit(",", 2)
            figures.setdefault((form, name, parameter), []).append(float(value))
    return figures


def hardware(gpu):
    """All values of each row of core.csv, by form; the form of the table itself is empty."""
    folder = HERE / "hardware" / gpu
    first = {(name, parameter): values for (_form, name, parameter), values in read(folder / "core.csv").items()}
    again = read(folder / "core_again.csv")
    return first, again


def simulate(arguments, part, words):
    kept = pathlib.Path(arguments.keep) / f"{part}.csv"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = [arguments.lockstep, "run", "--gpu", arguments.gpu, "--frontend", "sass", "--threads", "1"]
        command += ["--out", str(kept.parent / "run"), "--", arguments.core, *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        kept.write_text(done.stdout)
    return {(name, parameter): values[-1] for (_form, name, parameter), values in read(kept).items()}


def bound(name, parameter):
    """Percent: chases that straddle the halves of L2 may be off by more."""
    if name == "load_latency":
        kilobytes = int(parameter.split("footprint=")[1].split("KB")[0])
        if 8 << 10 <= kilobytes <= 60 << 10:
            return 15
    return 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--core", required=True)
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--parts", default=",".join(part for part, _, _ in PARTS))
    parser.add_argument("--keep", default="lockstep-out/microbench")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    first, again = hardware(arguments.gpu)
    simulated = {}
    for part, words, form in PARTS:
        if part in arguments.parts.split(","):
            for row, value in simulate(arguments, part, words).items():
                simulated[row] = (value, form)
    out = csv.writer(open(arguments.out, "w", newline="") if arguments.out else sys.stdout)
    out.writerow(["name", "parameter", "hardware", "least", "most", "simulated", "error_percent", "bound_percent", "form"])
    beyond = missing = 0
    for row, values in first.items():
        value, form = simulated.get(row, (None, ""))
        # The same form if it was measured, else all there are.
        same = again.get((form, *row), []) if form.startswith("bw") else []
        spread = same or values + [v for (_form, *key), more in again.items() if tuple(key) == row for v in more if not _form.startswith("bw")]
        least, most = min(spread), max(spread)
        reference = same[0] if same else values[0]
        cells = [row[0], row[1], f"{reference:.4f}", f"{least:.4f}", f"{most:.4f}"]
        if value is None:
            missing += 1
            out.writerow([*cells, "", "", bound(*row), form])
            continue
        nearest = min(max(value, least), most)
        error = 100 * (value - nearest) / reference
        beyond += abs(error) > bound(*row)
        out.writerow([*cells, f"{value:.4f}", f"{error:+.1f}", bound(*row), form])
    print(f"{len(first)} rows, {beyond} beyond their bound, {missing} not simulated", file=sys.stderr)
    sys.exit(1 if beyond else 0)


if __name__ == "__main__":
    main()
