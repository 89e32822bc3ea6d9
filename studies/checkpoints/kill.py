#!/usr/bin/env python3
"""A run that is killed at random moments and resumed has the answer of one that was not.

    studies/checkpoints/kill.py LOCKSTEP [--kills 20] [--seed 0] [--every 200ms] [--options "..."] -- PROGRAM [ARGUMENTS...]

Runs PROGRAM once without checkpoints. Then runs it with checkpoints, kills it at moments drawn from the seed and
resumes it each time, with 1, 2 or 4 threads, until it ends; and again from the start, until there were as many kills
as asked for. Compares digest and output. With `--options "--detail sampled"` runs are sampled.
"""

import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness.claims import Claims
from harness.words import take

THREADS = ("1", "2", "4")


def digest(folder):
    """The digest of a run that ended."""
    summary = json.loads(pathlib.Path(folder, "summary.json").read_text(encoding="utf-8"))
    return summary["digest"] if summary["state"] == "finished" else None


def end(process):
    """Kills the simulator as a batch system does, with all it has started, and waits until it is gone."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def killed_or_done(words, folder, limit):
    """Starts a run and kills it after `limit` seconds, or as soon as there is a checkpoint then; whether it was killed."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    state = pathlib.Path(folder, "checkpoint.state")
    begin = time.monotonic()
    while process.poll() is None:
        if time.monotonic() - begin >= limit and state.exists():
            end(process)
            return True
        time.sleep(0.005)
    if process.returncode != 0:
        sys.exit(f"{shlex.join(words)}: exit code {process.returncode}\n{process.stderr.read().decode()}")
    return False


def one_run(lockstep, folder, every, options, program, chance, span, kills):
    """One run from its start to its end, killed at most `kills` times; how often it was killed."""
    words = [lockstep, "run", "--quiet", "--record", "none", "--checkpoint-every", every, "--out", str(folder)]
    words += [*options, "--threads", chance.choice(THREADS), "--", *program]
    killed = 0
    while killed_or_done(words, folder, chance.uniform(0, span) if killed < kills else float("inf")):
        killed += 1
        words = [lockstep, "resume", str(folder), "--quiet", "--threads", chance.choice(THREADS)]
    return killed


def main():
    words, program = sys.argv[1:], []
    if "--" in words:
        at = words.index("--")
        words, program = words[:at], words[at + 1 :]
    words, options = take(words, {"--kills": "20", "--seed": "0", "--every": "200ms", "--options": ""})
    if len(words) != 1 or not program:
        sys.exit(__doc__)
    (lockstep,), more = words, shlex.split(options["--options"])
    kills, chance = int(options["--kills"]), random.Random(int(options["--seed"]))
    claims, done = Claims(), 0
    with tempfile.TemporaryDirectory() as place:
        whole = pathlib.Path(place, "whole")
        words = [lockstep, "run", "--quiet", "--record", "none", "--out", str(whole), *more, "--", *program]
        begin = time.monotonic()
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        span, expected = time.monotonic() - begin, digest(whole)
        print(f"one run takes {span:.1f} s, digest {expected}", flush=True)
        number = 0
        while done < kills:
            folder = pathlib.Path(place, f"killed-{number}")
            killed = one_run(lockstep, folder, options["--every"], more, program, chance, span, kills - done)
            found = digest(folder)
            claims.claim(found == expected, f"run {number}, killed {killed} times, ends with digest {found}")
            done += killed
            number += 1
    print(f"{done} kills in {number} runs")
    claims.end()


if __name__ == "__main__":
    main()
