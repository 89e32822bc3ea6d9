#!/usr/bin/env python3
"""Do design changes rank in simulation as they do on hardware?

    studies/ranking/rank.py LOCKSTEP PROGRAM [--hardware TABLE] [--at-least SHARE] [--reuse FOLDER] [--write TABLE]

PROGRAM is ranking.cu or further.cu built by nvcc for sm_90. Runs it on the simulated GPU with emptied caches, and
compares with the table of the same name under validation/hardware/h200 (ranking.csv, ranking_further.csv). A pair of
variants of one question counts if hardware tells it apart: medians of five repetitions differ by 3 % or more, and the
repetitions do not overlap. All such pairs count; the script fails below 90 %, or the share that is asked for.
"""

import argparse
import itertools
import pathlib
import sys
from dataclasses import dataclass

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import project, protocol, simulator, tables

HARDWARE = project.HARDWARE / "h200" / "ranking.csv"
LEAST = 0.03
WANTED = 0.90


@dataclass(frozen=True)
class Variant:
    """One variant of a question, in cycles."""

    question: str
    name: str
    median: float
    least: float
    most: float
    simulated: float


def variants(measured, cycles, lockstep):
    """The rows of hardware's table with the simulated cycles of the same launches."""
    if len(cycles) != len(measured):
        raise SystemExit(f"{len(cycles)} launches in simulation, {len(measured)} on hardware")
    pairs = [(row["variant"], value, tables.repetitions(row["cycles"])) for row, value in zip(measured, cycles)]
    figures = protocol.errors(pairs, lockstep)["rows"]
    return [
        Variant(row["question"], row["variant"], one["hardware"], one["least"], one["most"], one["simulated"])
        for row, one in zip(measured, figures)
    ]


def told_apart(one, other):
    """Whether hardware tells two variants apart."""
    far = abs(one.median - other.median) / min(one.median, other.median) >= LEAST
    return far and (one.least > other.most or other.least > one.most)


def ranked(group):
    """The pairs of a question that hardware tells apart, each with whether simulation has the same order."""
    for one, other in itertools.combinations(group, 2):
        if told_apart(one, other):
            yield one, other, (one.median > other.median) == (one.simulated > other.simulated)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lockstep")
    parser.add_argument("program")
    parser.add_argument("--hardware", default=HARDWARE, help="measurements of that program")
    parser.add_argument("--at-least", type=float, default=WANTED, help="share of pairs in the right order")
    parser.add_argument("--reuse", help="a run folder that is there already")
    parser.add_argument("--write", help="table of variants")
    arguments = parser.parse_args()
    if arguments.reuse:
        run = simulator.read(arguments.reuse)
    else:
        run = simulator.run(arguments.lockstep, [arguments.program], "h200", options=["--cold-caches"])
    cycles = [float(row["cycles"]) for row in run.kernels]
    found = variants(tables.rows(arguments.hardware), cycles, arguments.lockstep)
    if arguments.write:
        lines = [
            [v.question, v.name, f"{v.median:.0f}", f"{v.simulated:.0f}", f"{100 * (v.simulated / v.median - 1):+.1f}"]
            for v in found
        ]
        tables.write(arguments.write, ["question", "variant", "hardware", "simulated", "error_percent"], lines)
    pairs = right = 0
    print("question,pairs,right order")
    for question, group in itertools.groupby(found, key=lambda variant: variant.question):
        counted = list(ranked(list(group)))
        good = sum(same for *_, same in counted)
        for a, b, same in counted:
            if not same:
                print(f"  {question}: {a.name} and {b.name}: hardware {a.median:.0f}, {b.median:.0f}; simulated {a.simulated:.0f}, {b.simulated:.0f}")
        print(f"{question},{len(counted)},{good}")
        pairs, right = pairs + len(counted), right + good
    print(f"all,{pairs},{right}: {100 * right / pairs:.1f} %")
    if right < arguments.at_least * pairs:
        sys.exit(f"fewer than {100 * arguments.at_least:.0f} % of the pairs are in the right order")


if __name__ == "__main__":
    main()
