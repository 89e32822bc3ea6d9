#!/usr/bin/env python3
"""The first values in which two ways differ, by thread and line of source.

    locate.py p3.cu k4 functional:O3 host [--arch sm_90] [--threads 4]

Every thread of the kernel writes down its hash after each line that changes it. Only the kernel's own lines count. The
notes change the code around them, so a fault of a compiler or of one encoding can go away: then nothing is found, and
reduce.py has to find the place.
"""

import argparse
import pathlib
import re
import sys
import tempfile

import tools
import ways

# Hashes that a thread can note.
NOTES = 250

NOTE = """
INLINE void note_hash(unsigned char *memory, u32 thread, u64 line, u64 hash)
{{
    u64 *notes = (u64 *)(memory + {start}) + (u64)thread * {words};
    u64 count = notes[0];
    if (count < {most})
    {{
        notes[2 * count + 1] = line;
        notes[2 * count + 2] = hash;
        notes[0] = count + 1;
    }}
}}
"""


def noted(source, manifest, kernel):
    """The program with that kernel alone, its notes behind its memory; where they start, in words."""
    line = next(line for line in manifest.splitlines() if line.split()[0] == kernel)
    words = line.split()
    memory, threads = (int(words[words.index(field) + 1]) for field in ("memory", "output"))
    start = -(-memory // 256) * 256
    each = 2 * NOTES + 2
    words[words.index("memory") + 1] = str(start + threads * each * 8)
    lines, inside = [], False
    for number, text in enumerate(source.splitlines(), 1):
        inside = (inside or re.search(rf"__global__.*\b{kernel}\(", text)) and not (inside and text == "}")
        lines.append(text)
        if inside and re.match(r"\s*h = mix\(h, .*\);$", text):
            # One statement: the line may be all that an `if` has.
            indent = re.match(r"\s*", text)[0]
            lines[-1] = f"{indent}{{ {text.strip()} note_hash(memory, global, {number}, h); }}"
        if text == '#include "program.cuh"':
            lines.append(NOTE.format(start=start, words=each, most=NOTES))
    symbols = [line for line in manifest.splitlines() if line.startswith("symbol ")]
    return "\n".join(lines) + "\n", "\n".join([*symbols, " ".join(words)]) + "\n", start // 8, each, threads


def notes(lines, start, each):
    """The notes of each thread: pairs of a line and a hash."""
    threads = {}
    for line in lines:
        words = line.split()
        if len(words) == 5 and words[2] == "memory" and int(words[3]) >= start:
            thread, place = divmod(int(words[3]) - start, each)
            threads.setdefault(thread, {})[place] = int(words[4], 16)
    return {thread: [(found.get(2 * n + 1, 0), found.get(2 * n + 2, 0)) for n in range(found.get(0, 0))] for thread, found in threads.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("kernel")
    parser.add_argument("ways", nargs=2, type=ways.is_way)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--gpu")
    parser.add_argument("--threads", type=int, default=4, help="threads to list")
    options = parser.parse_args()
    text = options.source.read_text()
    source, manifest, start, each, count = noted(text, options.source.with_suffix(".txt").read_text(), options.kernel)
    tables = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / options.source.name).write_text(source)
        (folder / options.source.with_suffix(".txt").name).write_text(manifest)
        for way in options.ways:
            only = f"{options.source.stem}:{options.kernel}"
            lines, failures, said = ways.results(folder, way, folder / "out", options.gpu, options.arch, only=only, dump=True)
            tables.append(notes(lines, start, each))
            if failures or not lines:
                tools.stop(f"{way}: {failures or said}")
    found = 0
    for thread in range(count):
        one, other = (table.get(thread, []) for table in tables)
        pairs = list(zip(one, other))
        place = next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))
        if place == len(one) == len(other):
            continue
        found += 1
        if found <= options.threads:
            said = [f"line {line}: {text.splitlines()[line - 1].strip()} -> {value:016x}" if line else "nothing" for line, value in (*(n[place] if place < len(n) else (0, 0) for n in (one, other)),)]
            print(f"thread {thread}, note {place}:\n  {options.ways[0]} {said[0]}\n  {options.ways[1]} {said[1]}")
    print(f"{found} of {count} threads differ")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
