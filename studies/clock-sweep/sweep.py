#!/usr/bin/env python3
"""Clock sweep of the hydrodynamics mini-app (figure 5 of the SST-GPU report).

    studies/clock-sweep/sweep.py LOCKSTEP PROGRAM [ARGUMENTS...] [--gpu v100]

Runs PROGRAM at core clocks of 500, 1312 and 1800 MHz and memory clocks of 877, 1200 and 1600 MHz,
prints time on the device and speed-ups, and says whether the claims hold.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import simulator
from harness.claims import Claims
from harness.words import take

CORE_CLOCKS, MEMORY_CLOCKS = (500, 1312, 1800), (877, 1200, 1600)
CORE, MEMORY = 1312, 877  # MHz of the report's card


def device_time(lockstep, gpu, core, memory, program):
    """Nanoseconds in kernels."""
    settings = [f"device.clock={core} MHz", f"l2.clock={core} MHz", f"dram.clock={memory} MHz"]
    options = ["--threads", "1", "--frontend", "auto"]
    return simulator.run(lockstep, program, gpu, settings, options).nanoseconds()


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
    core = {clock: device_time(lockstep, gpu, clock, MEMORY, program) for clock in CORE_CLOCKS}
    memory = {clock: device_time(lockstep, gpu, CORE, clock, program) for clock in MEMORY_CLOCKS}
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
