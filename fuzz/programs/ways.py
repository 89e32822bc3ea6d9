#!/usr/bin/env python3
"""Ways to get the results of programs: where they run and how they were compiled.

    ways.py DIR --way functional:O3 [--way timing:G --way host ...] --out OUT [--gpu h200] [--arch sm_90]

A way is `functional:WAY` or `timing:WAY` (the simulator, with a way of compile.py), `checked:WAY` (functional, with the
simulator's checks for races and reads of memory that nobody wrote) or `host` (judge.py). OUT gets `functional-O3.txt`
and so on, one line a kernel, for compare.py.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

import compile as compiling
import tools

MODES = ("functional", "timing", "checked")
# GPUs to run code of an architecture on, with further options.
GPUS = {"sm_70": "v100", "sm_75": "rtx2060", "sm_80": "a100", "sm_86": "rtx3080ti", "sm_89": "rtx3080ti --set device.compute-capability=8.9", "sm_90": "h200"}


def is_way(text):
    mode, _, compiled = text.partition(":")
    if text != "host" and (mode not in MODES or compiled not in compiling.WAYS):
        raise argparse.ArgumentTypeError(f"`{text}` is not `host` or one of {', '.join(MODES)} with one of {', '.join(compiling.WAYS)}, as functional:O3")
    return text


def simulate(listed, mode, is_ptx, gpu, only=None, limit=60, dump=False):
    """What the runner prints for a list of images under the simulator, and all that was said.

    A kernel that hangs keeps the simulated GPU. So the rest runs in another simulation.
    """
    command = [tools.lockstep(), "run", "--quiet", "--gpu", *gpu.split(), "--record", "none", "--threads", "1"]
    command += ["--mode", "timing" if mode == "timing" else "functional", "--frontend", "ptx" if is_ptx else "sass"]
    if mode == "checked":
        command += ["--check", "memory,initialised,race,barriers"]
    words = ["--limit", str(limit), *(["--dump"] if dump else []), *(["--only", only] if only else [])]
    lines, said, after = [], "", []
    while True:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, open(f"{folder}/said", "w+") as errors:
            whole = [*command, "--out", f"{folder}/run", "--", tools.runner(tools.PROJECT / "target/fuzz"), *words, *after, pathlib.Path(listed).resolve()]
            hang = None
            with subprocess.Popen([str(word) for word in whole], stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder, start_new_session=True) as process:
                for line in process.stdout:
                    if re.match(r"p\d+ k\d+ ", line):
                        lines.append(line.rstrip("\n"))
                    else:
                        said += line
                    if line.endswith("error hang\n"):
                        hang = line.split()[:2]
                        os.killpg(process.pid, signal.SIGKILL)
                        break
            errors.seek(0)
            said += errors.read()
        if not hang:
            return lines, said
        after = ["--after", ":".join(hang)]


def results(folder, way, out, gpu=None, arch="sm_90", only=None, jobs=1, limit=60, dump=False):
    """The lines of one way for all programs of a folder, what could not be compiled, and all that was printed."""
    if way == "host":
        import judge
        return judge.judge(folder, out / "host", only=only, jobs=jobs, limit=limit, dump=dump)
    mode, _, compiled = way.partition(":")
    images = out / f"{arch}-{compiled}"
    _, failures = compiling.compile_all(folder, compiled, arch, images, jobs)
    lines, said = simulate(images / "list.txt", mode, compiling.WAYS[compiled].is_ptx, gpu or GPUS.get(arch, "h200"), only, limit, dump)
    return lines, {source.stem: why for source, why in failures.items()}, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--way", type=is_way, action="append", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--gpu")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60)
    options = parser.parse_args()
    for way in options.way:
        lines, failures, said = results(options.folder, way, options.out, options.gpu, options.arch, options.only, options.jobs, options.limit)
        file = options.out / (way.replace(":", "-") + ".txt")
        file.write_text("".join(line + "\n" for line in lines))
        for name, why in failures.items():
            print(f"{name} {way}: {why}")
        print(f"{file}: {len(lines)} kernels")
        if not lines:
            print(said, file=sys.stderr)


if __name__ == "__main__":
    main()
