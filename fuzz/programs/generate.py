#!/usr/bin/env python3
"""Writes random CUDA programs: `generate.py --seed S [--count N] [--kernels K] --out DIR`."""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from generator import forms, kernel  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=1, help="programs, of consecutive seeds")
    parser.add_argument("--kernels", type=int, default=16, help="kernels in a program")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    forms.load()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        source, manifest = kernel.write_program(seed, arguments.kernels)
        (arguments.out / f"p{seed}.cu").write_text(source)
        (arguments.out / f"p{seed}.txt").write_text(manifest)


if __name__ == "__main__":
    main()
