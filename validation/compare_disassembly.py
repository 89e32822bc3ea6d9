#!/usr/bin/env python3
"""Compares our disassembly with nvdisasm's, instruction by instruction.

    compare_disassembly.py --architecture 90 [--nvdisasm PROGRAM] [--instructions N] [--show N] CUBIN-OR-FOLDER...

Cubins of a library come from `cuobjdump -xelf all`, those of our programs from `nvcc -cubin`. Of cubins in folders a
sample of N instructions is taken: libraries (the part of a file's name before its first dot) take turns, files are
chosen at random with a fixed seed, at most 60,000 instructions of each. Their code is handed to nvdisasm as raw words
(`--binary`), and both texts to the example `compare_disassembly` of lockstep-frontend, which prints shares and what
differs. For sm_70 an nvdisasm of CUDA 12.4 is needed (the wheel triton==3.1.0 on PyPI has one).
"""

import argparse
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);?\s*(?:/\*.*)?$")
# Architectures with instructions that only the name with a letter prints.
NAMES = {90: "SM90a"}
BATCH = 60_000
MOST_OF_ONE = 60_000


def sections(path):
    """Bytes of every section with code."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF":
        return
    (table,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    for index in range(count):
        _, kind, flags, _, offset, size = struct.unpack_from("<IIQQQQ", data, table + 64 * index)
        if kind == 1 and flags & 4 and size >= 16:
            yield data[offset : offset + size - size % 16]


def files(paths, architecture):
    """Cubins by library, shuffled alike in every run."""
    libraries = {}
    for path in map(pathlib.Path, paths):
        found = sorted(path.glob("*.cubin")) if path.is_dir() else [path]
        for file in found:
            other = re.search(r"\.(\d\d)\.cubin$", file.name)
            if not other or int(other.group(1)) == architecture or not path.is_dir():
                libraries.setdefault(file.name.split(".")[0], []).append(file)
    shuffled = random.Random(7)
    for names in libraries.values():
        shuffled.shuffle(names)
    return libraries


def chosen(arguments):
    """Code of the sample, section by section, and how much of each library."""
    libraries = files(arguments.inputs, arguments.architecture)
    quota = arguments.instructions // max(len(libraries), 1) if arguments.instructions else float("inf")
    taken = dict.fromkeys(libraries, 0)
    for library, names in libraries.items():
        for name in names:
            if taken[library] >= quota:
                break
            of_one = 0
            for code in sections(name):
                if quota != float("inf"):
                    code = code[: 16 * max(0, MOST_OF_ONE - of_one)]
                if code:
                    of_one += len(code) // 16
                    yield code
            taken[library] += of_one
    print(f"{sum(taken.values())} instructions of {len(taken)} libraries or programs", flush=True)


def texts(nvdisasm, architecture, code):
    """What nvdisasm prints for raw words, or None where it refuses them."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        name = NAMES.get(architecture, f"SM{architecture}")
        command = [nvdisasm, "--binary", name, "-ndf", file.name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    lines = [match.group(2).strip() for match in map(INSTRUCTION.match, done.stdout.splitlines()) if match]
    return lines if len(lines) == len(code) // 16 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+")
    parser.add_argument("--architecture", type=int, required=True)
    parser.add_argument("--nvdisasm")
    parser.add_argument("--instructions", type=int, default=0, help="size of the sample; 0 takes everything")
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--comparer", help="the example, if it is built already")
    arguments = parser.parse_args()
    own = sorted(ROOT.glob(".lockstep/venv/lib/python3*/site-packages/nvidia/cu13/bin/nvdisasm"))
    nvdisasm = arguments.nvdisasm or (str(own[0]) if own else "nvdisasm")
    refused = 0
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
        batch = b""

        def flush(batch):
            if not batch:
                return 0
            lines = texts(nvdisasm, arguments.architecture, batch)
            if lines is None:
                return len(batch) // 16
            for index, line in enumerate(lines):
                word = batch[16 * index : 16 * index + 16][::-1].hex()
                table.write(f"{arguments.architecture}\t{16 * index:x}\t{word}\t{line}\n")
            return 0

        for code in chosen(arguments):
            if len(batch) + len(code) > 16 * BATCH:
                refused += flush(batch)
                batch = b""
            batch += code
        refused += flush(batch)
        table.flush()
        if refused:
            print(f"nvdisasm refused code of {refused} instructions, which are not compared")
        command = ["cargo", "run", "--release", "-q", "-p", "lockstep-frontend", "--example", "compare_disassembly", "--"]
        command = [arguments.comparer] if arguments.comparer else command
        sys.exit(subprocess.run([*command, "--show", str(arguments.show), table.name], cwd=ROOT).returncode)


if __name__ == "__main__":
    main()
