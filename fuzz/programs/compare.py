#!/usr/bin/env python3
"""Comparison of results, and the golden files that keep them.

    compare.py A B ...                lists the kernels in which B, ... differ from A; the exit code is 1 if any does
    compare.py --record RESULTS --out GOLDEN [--gpu "H200" --cuda 13.3 --date 2027-01-31 --commit 0123abcd]

A, B are what the runner or judge.py printed, or golden files. A kernel that only one of two files holds counts as
absent, not as a difference: the host skips some, and a program that did not compile has no results.

A golden file has header lines (`# generator DIGEST` and what was given) and a line for each program with the first
32 bits of the digest of each kernel in order, `e719` for an error of that number, `ehang`, `ecrash`, or `-`.
"""

import argparse
import pathlib
import re
import sys

import tools

# So many hexadecimal digits of a kernel's digest are kept.
DIGITS = 8


def read(path):
    """Results of a file by program and kernel: a digest of 8 or 16 digits, or `e` and the error."""
    return parse(pathlib.Path(path).read_text().splitlines())


def parse(lines):
    """The same of lines."""
    results = {}
    for line in lines:
        words = line.split()
        if len(words) == 3 and re.fullmatch("[0-9a-f]{16}", words[2]):
            results[words[0], words[1]] = words[2]
        elif len(words) == 4 and words[2] == "error":
            results[words[0], words[1]] = "e" + words[3]
        elif len(words) > 1 and re.fullmatch(r"p\d+", words[0]) and not re.fullmatch(r"k\d+", words[1]):
            results.update({(words[0], f"k{index}"): word for index, word in enumerate(words[1:]) if word != "-"})
    return results


def same(one, other):
    """Whether two results are one, at the digits that both have."""
    if is_error(one) or is_error(other) or len(one) == len(other):
        return one == other
    return one[:DIGITS] == other[:DIGITS]


def is_error(result):
    return len(result) not in (DIGITS, 16)


def order(key):
    return tuple(int(name[1:]) for name in key)


def differences(first, second):
    """The kernels of both that differ."""
    return [key for key in sorted(first.keys() & second.keys(), key=order) if not same(first[key], second[key])]


def report(names, tables):
    """What differs from the first table, as lines; whether anything does."""
    lines, differs = [], False
    first = tables[0]
    for name, table in zip(names[1:], tables[1:]):
        found = differences(first, table)
        both = first.keys() & table.keys()
        errors = [key for key in found if is_error(table[key]) or is_error(first[key])]
        lines += [f"{key[0]} {key[1]} {first[key]} {table[key]} {name}" for key in found]
        absent = len(first.keys() ^ table.keys())
        lines.append(f"{name}: {len(both)} kernels compared, {len(found) - len(errors)} wrong values, {len(errors)} errors, {absent} absent from one")
        differs |= bool(found) or not both
    return lines, differs


def golden(results, header):
    """The text of a golden file."""
    lines = [f"# {name} {value}" for name, value in header if value]
    programs = {}
    for (program, kernel), result in results.items():
        programs.setdefault(program, {})[int(kernel[1:])] = result if is_error(result) else result[:DIGITS]
    for program in sorted(programs, key=lambda name: int(name[1:])):
        kernels = programs[program]
        lines.append(" ".join([program, *(kernels.get(index, "-") for index in range(max(kernels) + 1))]))
    return "\n".join(lines) + "\n"


def spans(numbers):
    """Numbers as text, runs shortened: `1-4 7`."""
    runs = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    for name in ("gpu", "cuda", "date", "commit"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    tables = [read(path) for path in options.results]
    if options.record:
        merged = {key: result for table in tables for key, result in table.items()}
        if not merged or not options.out:
            tools.stop("no results, or no --out")
        header = [("generator", tools.generator_digest()), ("seeds", spans({int(program[1:]) for program, _ in merged}))]
        header += [(name, getattr(options, name)) for name in ("gpu", "cuda", "date", "commit")]
        options.out.write_text(golden(merged, header))
        return 0
    if len(tables) < 2:
        tools.stop("two files or more are compared")
    lines, differs = report(options.results, tables)
    print("\n".join(lines))
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
