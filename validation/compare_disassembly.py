#!/usr/bin/env python3
"""Compares our disassembly with nvdisasm's, instruction by instruction, on openly licensed machine code.

    compare_disassembly.py --architecture 90 [--nvdisasm PROGRAM] [--instructions N] [--show N] SOURCE...

A SOURCE is `workloads` (or `workloads=DIR`: built executables), `triton`, a .cu file, or a wheel of the list that
--list prints with its licences; everything else is refused (corpus.py). Wheels come from `pip download --no-deps`.
Of the sources a sample of N instructions is taken: libraries and programs take turns, cubins are chosen at random with
a fixed seed, at most 60,000 instructions of each. Their code is handed to nvdisasm as raw words (`--binary`), and both
texts to the example `compare_disassembly` of lockstep-frontend, which prints shares and what differs. For sm_70 an
nvdisasm of CUDA 12.4 is needed (the wheel triton==3.1.0 on PyPI has one).
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile

import corpus
from harness import project

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);?\s*(?:/\*.*)?$")
# Architectures with instructions that only the name with a letter prints.
NAMES = {90: "SM90a"}
BATCH = 60_000
MOST_OF_ONE = 60_000


def sample(libraries, instructions):
    """Code of the sample, section by section; 0 instructions take everything."""
    quota = instructions // max(len(libraries), 1) if instructions else None
    shuffled, taken = random.Random(7), 0
    for files in libraries.values():
        files, of_library = list(files), 0
        shuffled.shuffle(files)
        for file in files:
            if quota is not None and of_library >= quota:
                break
            of_one = 0
            for code in corpus.code(file.read_bytes()):
                if quota is not None:
                    code = code[: 16 * max(0, min(MOST_OF_ONE, quota - of_library) - of_one)]
                if code:
                    of_one += len(code) // 16
                    yield code
            of_library += of_one
        taken += of_library
    print(f"{taken} instructions of {len(libraries)} libraries or programs", flush=True)


def batches(sections):
    """The sections in pieces that one call of nvdisasm takes."""
    batch = b""
    for code in sections:
        if batch and len(batch) + len(code) > 16 * BATCH:
            yield batch
            batch = b""
        batch += code
    if batch:
        yield batch


def lines_of(listing):
    """The instructions of nvdisasm's listing."""
    return [match.group(2).strip() for match in map(INSTRUCTION.match, listing.splitlines()) if match]


def disassembled(nvdisasm, architecture, code):
    """What nvdisasm prints for raw words, or None where it refuses them."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(code)
        file.flush()
        command = [nvdisasm, "--binary", NAMES.get(architecture, f"SM{architecture}"), "-ndf", file.name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    lines = lines_of(done.stdout)
    return lines if len(lines) == len(code) // 16 else None


def compare(arguments, table):
    """Fills the table of words and texts that the example reads, and calls it; its exit code."""
    nvdisasm = arguments.nvdisasm or project.toolkit_program("nvdisasm") or "nvdisasm"
    refused = 0
    with tempfile.TemporaryDirectory() as scratch:
        libraries = corpus.read(arguments.sources, arguments.architecture, scratch)
        for batch in batches(sample(libraries, arguments.instructions)):
            lines = disassembled(nvdisasm, arguments.architecture, batch)
            if lines is None:
                refused += len(batch) // 16
                continue
            for index, line in enumerate(lines):
                word = batch[16 * index : 16 * index + 16][::-1].hex()
                table.write(f"{arguments.architecture}\t{16 * index:x}\t{word}\t{line}\n")
    table.flush()
    if refused:
        print(f"nvdisasm refused code of {refused} instructions, which are not compared")
    command = ["cargo", "run", "--release", "-q", "-p", "lockstep-frontend", "--example", "compare_disassembly", "--"]
    command = [arguments.comparer] if arguments.comparer else command
    return subprocess.run([*command, "--show", str(arguments.show), table.name], cwd=project.ROOT).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SOURCE")
    parser.add_argument("--architecture", type=int)
    parser.add_argument("--nvdisasm")
    parser.add_argument("--instructions", type=int, default=0, help="size of the sample; 0 takes everything")
    parser.add_argument("--show", type=int, default=3)
    parser.add_argument("--comparer", help="the example, if it is built already")
    parser.add_argument("--list", action="store_true", help="print what may be read, with its licence")
    arguments = parser.parse_args()
    if arguments.list:
        print(corpus.described())
        return
    if not arguments.sources or arguments.architecture is None:
        parser.error("name --architecture and a source; see --list")
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as table:
        sys.exit(compare(arguments, table))


if __name__ == "__main__":
    main()
