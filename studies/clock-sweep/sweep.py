#!/usr/bin/env python3
"""Clock sweep of the hydrodynamics mini-app (figure 5 of the SST-GPU report).

    studies/clock-sweep/sweep.py LOCKSTEP PROGRAM [ARGUMENTS...] [--gpu v100]

Runs PROGRAM at core clocks of 500, 1312 and 1800 MHz and memory clocks of 877, 1200 and 1600 MHz,
prints time on the device and speed-ups, and says whether the claims hold.
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness.claims import Claims
from harness.words import take

CORE_CLOCKS, MEMORY_CLOCKS = (500, 1312, 1800), (877, 1200, 1600)
CORE, MEMORY = 1312, 877  # MHz of the report's card


def sweep_file(gpu, program):
    """The sweep: core clocks at one memory clock, and memory clocks at one core clock."""
    words = json.dumps  # TOML writes words and lists of them as JSON does
    core = words([f"{clock} MHz" for clock in CORE_CLOCKS])
    memory = words([f"{clock} MHz" for clock in MEMORY_CLOCKS])
    return "\n".join([
        f"gpu = {words(gpu)}",
        f"program = {words(program[0])}",
        f"arguments = {words(program[1:])}",
        'options = "--threads 1 --frontend auto"',
        "[set]",
        f'device.clock = "{CORE} MHz"',
        f'l2.clock = "{CORE} MHz"',
        f'dram.clock = "{MEMORY} MHz"',
        "[[part]]",
        f"list = [{{ device.clock = {core}, l2.clock = {core} }}]",
        "[[part]]",
        f"grid = {{ dram.clock = {memory} }}",
        "",
    ])


def device_times(lockstep, gpu, program):
    """Nanoseconds in kernels, of every point in order."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "clocks.toml")
        file.write_text(sweep_file(gpu, program), encoding="utf-8")
        out = pathlib.Path(folder, "out")
        subprocess.run([lockstep, "sweep", str(file), "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        with open(out / "sweep.csv", newline="", encoding="utf-8") as table:
            return [float(row["kernel_ns"]) for row in csv.DictReader(table)]


def claims(core, memory):
    """(sentence, whether it holds, value) of times by core clock and by memory clock."""
    slow, fast = core[500] / core[1312], core[1312] / core[1800]
    gain = memory[877] / memory[1600]
    return [
        ("500 to 1312 MHz gives 2.3x to 2.6x (published 2.5x)", 2.3 <= slow <= 2.6 and slow < 1312 / 500, slow),
        ("1312 to 1800 MHz gives 1.2x to 1.36x (published 1.3x)", 1.2 <= fast <= 1.36 and fast < 1800 / 1312, fast),
        ("the memory clock gives at most 1.05x (published 1.04x)", gain <= 1.05, gain),
    ]


def main():
    words, options = take(sys.argv[1:], {"--gpu": "v100"})
    if len(words) < 2:
        sys.exit(__doc__)
    lockstep, program, gpu = words[0], words[1:], options["--gpu"]
    times = device_times(lockstep, gpu, program)
    core = dict(zip(CORE_CLOCKS, times))
    memory = dict(zip(MEMORY_CLOCKS, times[len(CORE_CLOCKS):]))
    for clock, time in core.items():
        print(f"core {clock:5d} MHz, memory   877 MHz: {time / 1e3:10.1f} us, {core[CORE] / time:.2f}x")
    for clock, time in memory.items():
        print(f"core  1312 MHz, memory {clock:5d} MHz: {time / 1e3:10.1f} us, {memory[MEMORY] / time:.3f}x")
    said = Claims()
    for sentence, holds, value in claims(core, memory):
        said.claim(holds, f"{sentence}: {value:.3f}x")
    said.end()


if __name__ == "__main__":
    main()
