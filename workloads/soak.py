#!/usr/bin/env python3
"""Runs workloads under lockstep while random things go wrong, and checks what is left afterwards.

    soak.py --minutes N [--seed S] [--lockstep FILE] [--bin DIR] [--work DIR] [--only REGEX] [--jobs N]

Each run draws a program, options and one fault: a signal to the simulator or to the program, a kill of either, a disk
that is small or filled meanwhile, little memory, few descriptors, or none. Checked after each:

  - it ends within 10 s of the fault, and within its usual time and 20 s if the fault need not end it;
  - no process of it is left, no socket, and no segment in /dev/shm;
  - its folder can be read: summary.json says how it ended, tables have whole rows, and a full record can be replayed
    by `lockstep verify --record` as far as it goes;
  - the simulator has not failed by a fault of its own, and a run without a fault has passed.

`cargo xtask soak` builds what it needs. It runs elsewhere as well: it needs Python, the `lockstep` command with its
libraries beside it, and programs built for them (--bin). The seed is printed; the same seed draws the same runs, and the same moments as parts of a program's usual time.
Disks need the right to mount (root); memory limits need a control group that can be written, else `ulimit -d` is used.
"""

import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "validation"))

from harness import project, workloads

# Beyond the fault, as the project promises.
PATIENCE = 10
# A program that need not end by its fault has its usual time, so often, and a while.
SLOWER = 6
WHILE = 20
MARK = "LOCKSTEP_SOAK"
STATES = {"finished", "failed", "stopped"}
FAULTS = [
    "nothing",
    "interrupt",
    "terminate",
    "hang up",
    "twice",
    "kill simulator",
    "kill program",
    "end program",
    "pause program",
    "small disk",
    "filled disk",
    "little memory",
    "few descriptors",
]
# Where the end follows from the fault at once.
DEADLY = {"interrupt", "terminate", "hang up", "twice", "kill simulator", "kill program"}
SIGNALS = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "hang up": signal.SIGHUP, "twice": signal.SIGINT}


class Wrong(Exception):
    """Something that must not be."""


class Run:
    """One run with one fault."""

    def __init__(self, soak, number, draw):
        self.soak, self.number = soak, number
        self.mark = f"{soak.seed}-{number}-{os.getpid()}"
        self.workload = draw.choice(soak.programs)
        self.fault = draw.choice(FAULTS)
        self.mode = draw.choice(["functional", "functional", "timing"])
        self.record = draw.choice(["none", "calls", "full", "full"])
        self.threads = draw.choice([1, 2, 4])
        self.scale = draw.choice(["small", "default"])
        # Of its usual time: before it begins, in its middle, and just after its end.
        self.at = draw.uniform(0, 1.1) * soak.usual(self, unknown=0.5)
        self.size = draw.choice([1, 4, 9, 10, 12, 16]) << 20
        self.memory = draw.choice([40, 90, 120, 160, 240, 400]) << 20
        self.files = draw.randint(8, 40)
        self.folder = soak.work / f"run-{number}"
        self.out = self.folder / "out"
        self.disk = None
        self.group = None

    def __str__(self):
        words = f"{self.number}: {self.workload.name} {self.scale} {self.mode} record={self.record} threads={self.threads}"
        return f"{words} fault={self.fault!r} at={self.at:.2f}"

    def perform(self):
        """Runs and checks; what it came to, in a word."""
        (self.folder / "sockets").mkdir(parents=True)
        self.prepare()
        try:
            code, said = self.run()
            self.check(code, said)
            return f"exit {code}"
        finally:
            self.clear()

    def prepare(self):
        if self.fault in ("small disk", "filled disk"):
            self.disk = self.folder / "disk"
            self.disk.mkdir()
            size = self.size if self.fault == "small disk" else 24 << 20
            line = ["mount", "-t", "tmpfs", "-o", f"size={size}", "soak", str(self.disk)]
            if subprocess.run(line, capture_output=True).returncode != 0:
                self.disk, self.fault = None, "nothing"
            else:
                self.out = self.disk / "out"
        if self.fault == "little memory" and self.soak.groups:
            self.group = self.soak.groups / f"soak-{self.mark}"
            self.group.mkdir()
            (self.group / "memory.limit_in_bytes").write_text(str(self.memory))

    def limits(self):
        """In the child, before it becomes the simulator."""
        # Shells let what they start in the background ignore interrupts.
        for kind in SIGNALS.values():
            signal.signal(kind, signal.SIG_DFL)
        if self.fault == "few descriptors":
            resource.setrlimit(resource.RLIMIT_NOFILE, (self.files, self.files))
        if self.group:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        elif self.fault == "little memory":
            resource.setrlimit(resource.RLIMIT_DATA, (self.memory, self.memory))

    def run(self):
        line = [str(self.soak.lockstep), "run", "--quiet", "--mode", self.mode, "--record", self.record]
        line += ["--threads", str(self.threads), "--out", str(self.out), "--"]
        line += [str(self.soak.bin / self.workload.name), *self.workload.arguments(self.scale)]
        environment = {**os.environ, MARK: self.mark, "XDG_RUNTIME_DIR": str(self.folder / "sockets")}
        with open(self.folder / "said", "wb") as said:
            child = subprocess.Popen(
                line,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=self.limits,
            )
        began = time.monotonic()
        limit = SLOWER * self.soak.usual(self, unknown=30.0) + WHILE
        try:
            child.wait(self.at)
        except subprocess.TimeoutExpired:
            self.strike(child)
            limit = PATIENCE if self.fault in DEADLY else limit
        try:
            code = child.wait(limit)
        except subprocess.TimeoutExpired:
            self.kill_all()
            child.wait()
            raise Wrong(f"still running {limit:.0f} s after the fault") from None
        if self.fault == "nothing" and code == 0:
            self.soak.learn(self, time.monotonic() - began)
        return code, (self.folder / "said").read_text(errors="replace")

    def strike(self, child):
        """Lets the fault happen."""
        if self.fault in SIGNALS:
            os.kill(child.pid, SIGNALS[self.fault])
            if self.fault == "twice":
                time.sleep(0.05)
                if child.poll() is None:
                    os.kill(child.pid, signal.SIGINT)
        elif self.fault == "kill simulator":
            os.kill(child.pid, signal.SIGKILL)
        elif self.fault in ("kill program", "end program", "pause program"):
            self.strike_program(child)
        elif self.fault == "filled disk":
            self.fill()

    def strike_program(self, child):
        kind = {"kill program": signal.SIGKILL, "end program": signal.SIGTERM, "pause program": signal.SIGSTOP}
        for process, name in self.processes():
            if process != child.pid and not name.startswith("lockstep"):
                try:
                    os.kill(process, kind[self.fault])
                    if self.fault == "pause program":
                        time.sleep(1)
                        os.kill(process, signal.SIGCONT)
                except ProcessLookupError:
                    pass

    def fill(self):
        try:
            with open(self.disk / "others", "wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 16))
        except OSError:
            pass

    def processes(self):
        """(number, name) of every process of this run."""
        found = []
        mark = f"{MARK}={self.mark}".encode()
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    if ") Z " not in (entry / "stat").read_text():
                        found.append((int(entry.name), (entry / "comm").read_text().strip()))
            except OSError:
                continue
        return found

    def kill_all(self):
        for process, _ in self.processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def check(self, code, said):
        if "panicked" in said or "fault of the simulator" in said or code == 101:
            raise Wrong("the simulator failed by a fault of its own")
        if self.fault in ("nothing", "pause program") and code != 0:
            raise Wrong(f"exit {code} without a fault")
        self.eventually(lambda: not self.processes(), lambda: f"left running: {self.processes()}")
        sockets = self.folder / "sockets"
        self.eventually(lambda: not any(sockets.iterdir()), lambda: f"left: {list(sockets.iterdir())}")
        segments = {name for name in os.listdir("/dev/shm") if "lockstep" in name} if os.path.isdir("/dev/shm") else set()
        if segments - self.soak.segments:
            raise Wrong(f"segments left: {segments - self.soak.segments}")
        if not self.out.exists():
            if code < 0 and self.fault in DEADLY:
                # Before it could hear anything.
                return
            if code == 0 or "lockstep: " not in said:
                raise Wrong(f"exit {code} without a folder and without a sentence")
            return
        self.check_folder(code, said)

    def check_folder(self, code, said):
        path = self.out / "summary.json"
        if not path.exists():
            # Nothing was ever written: there was no room from the beginning.
            if code == 74 or "lockstep: " in said or self.fault in ("kill simulator", "twice", "little memory"):
                return
            raise Wrong(f"exit {code} without summary.json")
        try:
            summary = json.loads(path.read_text())
        except ValueError as error:
            raise Wrong(f"summary.json: {error}") from None
        if summary.get("state") not in STATES:
            self.eventually(
                lambda: json.loads(path.read_text()).get("state") in STATES,
                lambda: f"summary.json says {summary.get('state')!r}",
            )
        if code == 0 and summary["state"] != "finished":
            raise Wrong(f"exit 0, and {summary['state']}")
        for name in ("kernels.csv", "stats.csv"):
            self.check_table(self.out / name)
        left = {entry.name for entry in self.out.iterdir() if entry.name.startswith(".")}
        if left and code in (0, 130, 143, 129) and self.fault != "twice":
            raise Wrong(f"drafts left: {left}")
        record = self.out / "calls.record"
        if self.record == "full" and record.exists() and self.number % 4 == 0:
            self.replay(record, summary)

    def check_table(self, path):
        if not path.exists():
            return
        with open(path, newline="") as file:
            widths = {len(row) for row in csv.reader(file)}
        if len(widths) != 1:
            raise Wrong(f"{path.name} has rows of {sorted(widths)} columns")

    def replay(self, record, summary):
        line = [str(self.soak.lockstep), "verify", "--quick", "--mode", self.mode, "--record", str(record)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, cwd=self.folder)
        text = done.stdout + done.stderr
        whole = summary["state"] == "finished"
        short = "ends early" in text or "failed to fill whole buffer" in text
        stopped = not whole and ("the program was answered" in text or "DIFFERENT" in text)
        if done.returncode != 0 and not short and not stopped:
            raise Wrong(f"the record cannot be replayed: {text[-600:]}")
        if "panicked" in text:
            raise Wrong(f"the replay failed by a fault of its own: {text[-600:]}")

    def eventually(self, holds, sentence):
        for _ in range(60):
            if holds():
                return
            time.sleep(0.05)
        raise Wrong(sentence())

    def clear(self):
        self.kill_all()
        if self.disk:
            subprocess.run(["umount", "-l", str(self.disk)], capture_output=True)
        if self.group:
            for _ in range(40):
                try:
                    self.group.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)


class Soak:
    """All runs, and what they have in common."""

    def __init__(self, options):
        self.seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
        self.lockstep = pathlib.Path(options.lockstep).resolve()
        self.bin = pathlib.Path(options.bin).resolve()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-soak-", dir=options.work))
        chosen = re.compile(options.only)
        known = [one for one in workloads.load() if chosen.search(one.name)]
        self.programs = [one for one in known if (self.bin / one.name).exists() and one.arguments("small") is not None]
        if not self.programs:
            sys.exit(f"soak: no program of workloads.toml is in {self.bin}")
        groups = pathlib.Path("/sys/fs/cgroup/memory")
        writable = (groups / "memory.limit_in_bytes").exists() and os.access(groups, os.W_OK)
        self.groups = groups if writable else None
        shared = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else []
        self.segments = {name for name in shared if "lockstep" in name}
        self.times = {}
        self.lock = threading.Lock()
        self.outcomes = collections.Counter()
        self.failures = []

    def usual(self, run, unknown):
        """How long a program takes, once one has ended."""
        return self.times.get((run.workload.name, run.scale, run.mode), unknown)

    def learn(self, run, seconds):
        with self.lock:
            key = (run.workload.name, run.scale, run.mode)
            self.times[key] = max(seconds, self.times.get(key, 0.0))

    def one(self, number):
        # Each run has its own numbers: jobs do not change what is drawn.
        run = Run(self, number, random.Random(f"{self.seed}/{number}"))
        try:
            outcome = run.perform()
        except Wrong as wrong:
            with self.lock:
                self.failures.append(f"{run}: {wrong}")
            print(f"WRONG {run}: {wrong} ({run.folder})", flush=True)
            return
        with self.lock:
            self.outcomes[f"{run.fault}: {outcome}"] += 1
        shutil.rmtree(run.folder, ignore_errors=True)

    def run(self, minutes, jobs):
        print(f"soak: seed {self.seed}, {len(self.programs)} programs, {minutes} minutes, in {self.work}", flush=True)
        end = time.monotonic() + 60 * minutes
        number = 0
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            waiting = set()
            while time.monotonic() < end:
                waiting.add(pool.submit(self.one, number))
                number += 1
                if len(waiting) >= jobs:
                    done, waiting = concurrent.futures.wait(waiting, return_when="FIRST_COMPLETED")
                    for future in done:
                        future.result()
            for future in waiting:
                future.result()
        for outcome, count in sorted(self.outcomes.items()):
            print(f"{count:6} {outcome}")
        print(f"soak: seed {self.seed}: {number} runs, {len(self.failures)} wrong")
        if not self.failures:
            shutil.rmtree(self.work, ignore_errors=True)
        return 1 if self.failures else 0


def main():
    release = project.ROOT / "target" / "release" / "lockstep"
    built = project.ROOT / ".lockstep" / "workloads" / "static"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--lockstep", default=release)
    parser.add_argument("--bin", default=built)
    parser.add_argument("--work", help="a folder for what goes wrong; default the temporary one")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    return Soak(options).run(options.minutes, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
