#!/usr/bin/env python3
"""What checkpoints cost: runs with and without, in turn.

    studies/checkpoints/cost.py LOCKSTEP [--pairs 3] [--every 60s,5s] [--threads 1] -- PROGRAM [ARGUMENTS...]

Prints processor seconds (user and system, of the simulator and its program) of every run, and the medians' ratio.
"""

import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness.words import take


def processor_seconds(words):
    """Processor time of a command and all it has started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    words, program = sys.argv[1:], []
    if "--" in words:
        at = words.index("--")
        words, program = words[:at], words[at + 1 :]
    words, options = take(words, {"--pairs": "3", "--every": "60s,5s", "--threads": "1"})
    if len(words) != 1 or not program:
        sys.exit(__doc__)
    ways = {"none": []}
    ways.update({every: ["--checkpoint-every", every] for every in options["--every"].split(",")})
    taken = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as place:
        for pair in range(int(options["--pairs"])):
            for way, more in ways.items():
                out = str(pathlib.Path(place, f"{way}-{pair}"))
                command = [words[0], "run", "--quiet", "--record", "none", "--threads", options["--threads"]]
                taken[way].append(processor_seconds([*command, *more, "--out", out, "--", *program]))
                print(f"{way}: {taken[way][-1]:.2f} s", flush=True)
    plain = statistics.median(taken["none"])
    for way in list(ways)[1:]:
        print(f"a checkpoint every {way}: {100 * (statistics.median(taken[way]) / plain - 1):+.1f} %")


if __name__ == "__main__":
    main()
