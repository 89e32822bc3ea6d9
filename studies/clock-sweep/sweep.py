#!/usr/bin/env python3
"""Clock sweep of the hydrodynamics mini-app (figure 5 of the SST-GPU report).

    studies/clock-sweep/sweep.py LOCKSTEP PROGRAM [ARGUMENTS...] [--gpu v100]

Runs PROGRAM at core clocks of 500, 1312 and 1800 MHz and memory clocks of 877, 1200 and 1600 MHz,
prints time on the device and speed-ups, and says whether the claims hold.
"""
import csv
import subprocess
import sys
import tempfile


def device_time(lockstep, gpu, core, memory, program):
    """Nanoseconds in kernels."""
    with tempfile.TemporaryDirectory() as folder:
        command = [lockstep, "run", "--gpu", gpu, "--threads", "1", "--frontend", "auto", "--out", f"{folder}/run"]
        command += ["--set", f"device.clock={core} MHz", "--set", f"l2.clock={core} MHz"]
        command += ["--set", f"dram.clock={memory} MHz", "--", *program]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(f"{folder}/run/kernels.csv", newline="") as table:
            return sum(float(row["duration_ns"]) for row in csv.DictReader(table))


def main():
    words = sys.argv[1:]
    gpu = "v100"
    if "--gpu" in words:
        at = words.index("--gpu")
        gpu = words[at + 1]
        del words[at : at + 2]
    if len(words) < 2:
        sys.exit(__doc__)
    lockstep, program = words[0], words[1:]
    core = {clock: device_time(lockstep, gpu, clock, 877, program) for clock in (500, 1312, 1800)}
    memory = {clock: device_time(lockstep, gpu, 1312, clock, program) for clock in (877, 1200, 1600)}
    for clock, time in core.items():
        print(f"core {clock:5d} MHz, memory   877 MHz: {time / 1e3:10.1f} us, {core[1312] / time:.2f}x")
    for clock, time in memory.items():
        print(f"core  1312 MHz, memory {clock:5d} MHz: {time / 1e3:10.1f} us, {memory[877] / time:.3f}x")
    slow, fast = core[500] / core[1312], core[1312] / core[1800]
    claims = [
        ("500 to 1312 MHz gives 2.3x to 2.6x (published 2.5x)", 2.3 <= slow <= 2.6 and slow < 1312 / 500, slow),
        ("1312 to 1800 MHz gives 1.2x to 1.36x (published 1.3x)", 1.2 <= fast <= 1.36 and fast < 1800 / 1312, fast),
        ("the memory clock gives at most 1.05x (published 1.04x)", memory[877] / memory[1600] <= 1.05, memory[877] / memory[1600]),
    ]
    for sentence, holds, value in claims:
        print(f"{'holds' if holds else 'FAILS'}: {sentence}: {value:.3f}x")
    sys.exit(0 if all(holds for _, holds, _ in claims) else 1)


main()
