#!/usr/bin/env python3
"""Images of random programs, compiled one of several ways.

    compile.py DIR --way O3 [--arch sm_90] [--jobs 2] --out OUT [--pack FILE.tar.xz]

For every `p<S>.cu` in DIR whose manifest is beside it, OUT gets `p<S>.cubin` (or `p<S>.ptx`), the manifest and
a line in `list.txt` for the runner. The front end runs once for each program and virtual architecture: its PTX stays in
DIR/.ptx and serves every way that needs no front end of its own.

What does not compile is listed with its reason and counted, and does not stop the rest: the exit code is 1 then.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import tools


@dataclasses.dataclass(frozen=True)
class Way:
    """How a program becomes an image."""

    assembler: tuple = ()
    front: tuple = ()  # options of the front end; PTX is shared by ways where they are the same
    old: bool = False  # assembled by CUDA 12.9, as code older than OLDEST_FRONT always is
    is_ptx: bool = False  # the image is the PTX


WAYS = {
    "O3": Way(("-O3",)),
    "O2": Way(("-O2",)),
    "O1": Way(("-O1",)),
    "O0": Way(("-O0",)),
    "G": Way(("-g", "--dont-merge-basicblocks", "--return-at-end"), front=("-G",)),
    "lineinfo": Way(("--generate-line-info",), front=("-lineinfo",)),
    "maxreg32": Way(("-maxrregcount=32",)),
    "ptxas129": Way(old=True),
    "ptx": Way(is_ptx=True),
}

# The newest PTX that CUDA 12.9 assembles, and the oldest architecture that the front end of CUDA 13 compiles for.
OLD_PTX = "8.8"
OLDEST_FRONT = 75

# Above these a compiler is taken to hang.
SECONDS = 90


class Failed(Exception):
    """A compiler that refused a program, crashed or hung; its first words say why."""


def number(arch):
    """The number of an architecture, as 90 of sm_90a."""
    return int(re.sub(r"\D", "", arch))


def front_architecture(arch):
    return f"compute_{max(number(arch), OLDEST_FRONT)}{arch.removeprefix('sm_').lstrip('0123456789')}"


def call(command):
    words = [str(word) for word in command]
    # nvcc starts others, which would go on without it.
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True) as process:
        try:
            said, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise Failed(f"{pathlib.Path(command[0]).name}: no end after {SECONDS} s") from None
    if process.returncode:
        lines = [line for line in said.splitlines() if line.strip()]
        telling = [line for line in lines if re.search("error|fatal|signal|died", line)] or lines or ["no message"]
        raise Failed(f"{pathlib.Path(command[0]).name}: exit code {process.returncode}: {telling[0].strip()[:200]}")


def is_fresh(made, *origins):
    return made.exists() and all(made.stat().st_mtime >= origin.stat().st_mtime for origin in origins)


def ptx(source, way, arch):
    """The PTX of a program, made unless it is there."""
    made = source.parent / ".ptx" / (front_architecture(arch) + "".join(way.front)) / (source.stem + ".ptx")
    if not is_fresh(made, source, *tools.headers()):
        made.parent.mkdir(parents=True, exist_ok=True)
        part = made.with_suffix(".part")
        call([tools.nvcc(), "-std=c++17", "-w", f"-arch={front_architecture(arch)}", "-fmad=false", *way.front,
              "-I", tools.HERE / "include", "-ptx", source, "-o", part])
        part.rename(made)
    return made


def lowered(text, arch):
    """PTX as the older assembler takes it, for the architecture asked for."""
    text = re.sub(r"^\.version .*", f".version {OLD_PTX}", text, count=1, flags=re.M)
    text = text.replace(".volatile.local", ".local")
    return re.sub(r"^\.target sm_\w+", f".target {arch}", text, count=1, flags=re.M)


def image(source, way, arch, out):
    """Makes the image of one program in OUT."""
    text = ptx(source, way, arch)
    if way.is_ptx:
        made = out / (source.stem + ".ptx")
        made.write_text(lowered(text.read_text(), arch) if number(arch) < OLDEST_FRONT else text.read_text())
        return made
    made = out / (source.stem + ".cubin")
    if is_fresh(made, text):
        return made
    part = made.with_suffix(".part")
    assembler = tools.ptxas()
    old = way.old or number(arch) < OLDEST_FRONT
    if old:
        assembler = tools.ptxas129()
        text = part.with_suffix(".ptx129")
        text.write_text(lowered(ptx(source, way, arch).read_text(), arch))
    try:
        call([assembler, f"-arch={arch}", "-m64", "--fmad", "false", *way.assembler, text, "-o", part])
    finally:
        if old:
            text.unlink()
    part.rename(made)
    return made


def manifest(text, arch):
    """The lines of a manifest without the kernels that need a later architecture."""
    needs = [re.search(r" arch (\d+)", line) for line in text.splitlines()]
    return "".join(line + "\n" for line, need in zip(text.splitlines(), needs) if not need or int(need[1]) <= number(arch))


def compile_all(folder, way, arch, out, jobs=1):
    """The images made, by source, and the reasons of those that were not."""
    out.mkdir(parents=True, exist_ok=True)
    images, failures = {}, {}

    def one(source):
        made = image(source, WAYS[way], arch, out)
        (out / (source.stem + ".txt")).write_text(manifest(source.with_suffix(".txt").read_text(), arch))
        return made

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(one, source): source for source in tools.sources(folder)}
        for future in concurrent.futures.as_completed(futures):
            try:
                images[futures[future]] = future.result()
            except Failed as why:
                failures[futures[future]] = str(why)
    made = [images[source] for source in sorted(images, key=tools.number)]
    (out / "list.txt").write_text("".join(f"{made.name} {made.stem}.txt\n" for made in made))
    return images, failures


def pack(out, images, file):
    """One archive of what the runner needs, made by as many threads as there are cores."""
    names = [name for made in sorted(images.values()) for name in (made.name, made.stem + ".txt")]
    with open(file, "wb") as packed, subprocess.Popen(["tar", "cf", "-", "-C", out, *names, "list.txt"], stdout=subprocess.PIPE) as archive:
        subprocess.run(["xz", "-2", "-T0"], stdin=archive.stdout, stdout=packed, check=True)
    if archive.returncode:
        raise RuntimeError(f"tar: exit code {archive.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pack", type=pathlib.Path)
    options = parser.parse_args()
    if not tools.sources(options.folder):
        tools.stop(f"no programs in {options.folder}")
    start = time.monotonic()
    images, failures = compile_all(options.folder, options.way, options.arch, options.out, options.jobs)
    for source in sorted(failures, key=tools.number):
        print(f"{source.stem} {options.way} {options.arch}: {failures[source]}")
    print(f"{len(images)} compiled, {len(failures)} failed, {time.monotonic() - start:.1f} s")
    if options.pack:
        pack(options.out, images, options.pack)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
