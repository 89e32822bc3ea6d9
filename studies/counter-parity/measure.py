#!/usr/bin/env python3
"""Measures counters of a real GPU: our exact counts and series beside ncu's, attribution, and cost.

    measure.py OUT LOCKSTEP [PART...]      parts: parity series attribution graphs processes rates robustness overhead
                                              inference kernel_times

Needs nvcc, ncu and a GPU whose counters this user may read. LOCKSTEP is the `lockstep` command (LOCKSTEP_INJECTOR
names the injector if it is not beside it). Every step has a time limit; what fails is written down and the rest goes
on. Clocks are left alone. RUNS, GRAPH_RUNS, ROUNDS_RUNS, OVERHEAD_RUNS, LAUNCH_BOUND_RUNS,
INFERENCE_RUNS and KERNEL_TIMES_RUNS say how often; INFERENCE_PYTHON names a python3 that has PyTorch, if not this one.
"""

import datetime
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "validation"))

from harness import machine, metrics, project

HERE = pathlib.Path(__file__).resolve().parent
COUNTERS = project.ROOT / "configs" / "counters"
PROGRAMS = ["vector_add", "bfs", "steady", "contexts", "graph_turns", "rounds"]
SECONDS = 25  # that one sampled program may take
STOPPED = 124  # the exit code of a step that ran out of time


def repeat(name, usual):
    """1 to as many times as the environment says."""
    return range(1, int(os.environ.get(name) or usual) + 1)


class Bench:
    """Where programs are built and steps are taken and written down."""

    def __init__(self, out, lockstep):
        self.out, self.lockstep = pathlib.Path(out).resolve(), str(pathlib.Path(lockstep).resolve())
        self.bin = pathlib.Path(tempfile.gettempdir()) / "counter-parity"
        self.out.mkdir(parents=True, exist_ok=True)
        self.bin.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("LOCKSTEP_INJECTOR", str(pathlib.Path(self.lockstep).parent / "liblockstep_injector.so"))
        self.injected = {**os.environ, "CUDA_INJECTION64_PATH": os.environ["LOCKSTEP_INJECTOR"]}

    def program(self, name, *words):
        """A program of the study as words of a command line."""
        return [str(self.bin / name), *map(str, words)]

    def together(self, *programs):
        """Programs at once, as one command."""
        return ["bash", "-c", "".join(f"{' '.join(program)} & " for program in programs) + "wait"]

    def build(self):
        """Compiles what is missing, side by side."""
        nvcc, running = project.nvcc(), []
        wanted = [(name, name, ["-lcuda"]) for name in PROGRAMS]
        wanted.append(("vector_add_shared", "vector_add", ["--cudart", "shared"]))
        for name, source, options in wanted:
            if not (self.bin / name).exists():
                line = [nvcc, "-O3", "-arch=native", "-o", str(self.bin / name), str(HERE / "programs" / f"{source}.cu")]
                running.append(subprocess.Popen([*line, *options]))
        for process in running:
            process.wait()

    def begin(self, line, environment=None):
        """A process whose output goes to the log, in a group of its own with all that it starts."""
        with open(self.out / "log.txt", "ab") as log:
            return subprocess.Popen(line, stdout=log, stderr=log, env=environment, start_new_session=True)

    def finish(self, name, process, limit, begun):
        """Waits for a process, whose group is stopped after `limit` seconds, and writes its step down."""
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            code = STOPPED
        with open(self.out / "steps.csv", "a") as steps:
            steps.write(f"{name},{code},{(time.monotonic() - begun) * 1000:.0f} ms\n")
        return code

    def step(self, name, limit, line, environment=None):
        """One step: its name, its limit in seconds, its command."""
        begun = time.monotonic()
        return self.finish(name, self.begin(line, environment), limit, begun)

    def sample_line(self, name, options, program):
        return [self.lockstep, "sample", "--quiet", "--out", str(self.out / name), *options, *(["--", *program] if program else [])]

    def sample(self, name, options, program, limit=SECONDS):
        """A program under `lockstep sample`."""
        return self.step(name, limit, self.sample_line(name, options, program))

    def recorded(self, name, options, program):
        """The same, with everything that the reader learned, so that it can be divided again."""
        return self.sample(name, ["--recording", str(self.out / f"{name}.recording"), *options], program)


EXACT, MILLISECOND = ["--exact"], ["--interval", "1 ms"]


def about_machine():
    """What measurements were made with."""
    query = f"{machine.CARD_NOW},uuid"
    with_log = [datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), f"{query}: {machine.card(query)}"]
    with_log += machine.said(["nvcc", "--version"]).splitlines()[-2:] + machine.said(["ncu", "--version"]).splitlines()[-1:]
    with_log += machine.said(["grep", "RmProfiling", "/proc/driver/nvidia/params"]).splitlines()
    return "\n".join([*with_log, machine.said(["uname", "-r"])]) + "\n"


def alone(bench):
    """What each program of several at once does when it is alone."""
    if (bench.out / "alone-steady" / "summary.json").exists():
        return
    for name, *words in [("vector_add", 200000000, 20000000, 2), ("bfs", 1000000, 8, 2), ("steady", 20000, 20, 0)]:
        bench.sample(f"alone-{name}", EXACT, bench.program(name, *words))


def few(bench):
    """Three programs at once, each as long as alone."""
    return bench.together(
        bench.program("vector_add", 200000000, 20000000, 2), bench.program("bfs", 1000000, 8, 2), bench.program("steady", 20000, 20, 0)
    )


def many(bench):
    """Three programs at once for seconds."""
    return bench.together(
        bench.program("vector_add", 200000000, 20000000, 40), bench.program("bfs", 1000000, 8, 20), bench.program("steady", 20000, 12000, 0.1)
    )


def parity(bench):
    asked = ",".join(metrics.EVENTS.values())
    for run in repeat("RUNS", 3):
        for name in ["vector_add", "bfs"]:
            bench.sample(f"exact-{name}-{run}", EXACT, bench.program(name))
            line = ["ncu", "--clock-control", "none", "--cache-control", "none", "--metrics", asked, "--csv", *bench.program(name)]
            with open(bench.out / f"ncu-{name}-{run}.csv", "wb") as table, open(bench.out / "log.txt", "ab") as log:
                try:
                    subprocess.run(line, stdout=table, stderr=log, timeout=60)
                except (OSError, subprocess.TimeoutExpired) as error:
                    log.write(f"{error}\n".encode())


def series(bench):
    for run in repeat("RUNS", 3):
        for name in ["vector_add", "bfs"]:
            for interval in ["10 ms", "1 ms"]:
                folder = f"series-{name}-{interval.replace(' ', '')}-{run}"
                bench.sample(folder, ["--interval", interval], bench.program(name))


def attribution(bench):
    bench.sample("shared-sampled", MILLISECOND, bench.program("vector_add_shared"))
    bench.sample("shared-exact", EXACT, bench.program("vector_add_shared", 100000000))
    bench.sample("contexts-exact", EXACT, bench.program("contexts", 4, 40), 40)
    alone(bench)
    for run in repeat("RUNS", 3):
        bench.recorded(f"contexts-sampled-{run}", MILLISECOND, bench.program("contexts", 4, 2000))
        bench.recorded(f"threads-sampled-{run}", MILLISECOND, bench.program("contexts", 4, 2000, 20000, "one"))
        bench.recorded(f"processes-1ms-{run}", MILLISECOND, many(bench))
    # Busy for longer than an image of counters lasts.
    bench.sample("busy", MILLISECOND, bench.program("steady", 20000, 80000, 0))
    fine = (COUNTERS / "fine.toml").read_text().replace('"1 ms"', '"100 us"')
    (bench.bin / "clocks.toml").write_text(f'timeline = "kernels"\n{fine}')
    bench.sample("clocks", ["--metadata", str(bench.bin / "clocks.toml")], bench.program("vector_add", 500000000))


def graphs(bench):
    bench.sample("graph-turns", EXACT, bench.program("graph_turns"))
    for run in repeat("GRAPH_RUNS", 20):
        bench.sample(f"graphs-exact-{run}", EXACT, bench.program("contexts", 4, 8), 30)
    for run in repeat("ROUNDS_RUNS", 4):
        bench.sample(f"rounds-exact-{run}", EXACT, bench.program("rounds", 3, 2), 40)


def processes(bench):
    """Counted exactly, several at once: each must count what it counts alone."""
    alone(bench)
    for run in repeat("RUNS", 3):
        bench.sample(f"processes-exact-{run}", EXACT, few(bench), 60)


def rates(bench):
    """Sampled, with what an exact run has told of the kernels."""
    if not (bench.out / "processes-exact-1").exists():
        bench.sample("processes-exact-1", EXACT, few(bench), 60)
    if not (bench.out / "contexts-exact").exists():
        bench.sample("contexts-exact", EXACT, bench.program("contexts", 4, 40), 40)
    for run in repeat("RUNS", 3):
        told = lambda name: [*MILLISECOND, "--rates", str(bench.out / name)]
        bench.recorded(f"contexts-rates-{run}", told("contexts-exact"), bench.program("contexts", 4, 2000))
        bench.recorded(f"processes-rates-{run}", told("processes-exact-1"), many(bench))


def robustness(bench):
    bench.sample("sixteen", ["--interval", "10 ms"], bench.together(*[bench.program("steady", 2000, 3000, 0.1)] * 16), 40)
    # The program is killed: what it published is stored.
    bench.sample("killed-program", MILLISECOND, ["timeout", "-s", "KILL", "2", *bench.program("steady", 30000, 1000000)])
    # The reader is killed: another one continues.
    reader = bench.begin(bench.sample_line("killed-reader", MILLISECOND, bench.program("steady", 30000, 30000)))
    time.sleep(1.5)
    reader.send_signal(signal.SIGKILL)
    reader.wait()
    segments = f"/dev/shm/lockstep-{os.getuid()}/run-{reader.pid}"
    time.sleep(3)
    bench.sample("second-reader", [*MILLISECOND, "--attach", segments], [], 20)
    bench.begin(["ls", "-l", segments]).wait()
    # The daemon owns the counters, every program publishes its time line.
    daemon = bench.begin([bench.lockstep, "sampled", "--seconds", "7"])
    time.sleep(1.5)
    begun = time.monotonic()
    at_once = {
        "all-reader": bench.begin(bench.sample_line("all", ["--all", "--seconds", "5"], [])),
        "all-one": bench.begin(bench.program("vector_add", 200000000), bench.injected),
        "all-two": bench.begin(bench.program("steady", 30000, 8000), bench.injected),
    }
    for name, process in at_once.items():
        bench.finish(name, process, 12, begun)
    bench.finish("all-daemon", daemon, 12, begun)
    # An ordinary user.
    own = pathlib.Path(tempfile.gettempdir()) / "ordinary"
    line = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", f"HOME={tempfile.gettempdir()}"]
    line += [f"LOCKSTEP_INJECTOR={os.environ['LOCKSTEP_INJECTOR']}", bench.lockstep, "sample", "--quiet", "--out", str(own)]
    bench.step("ordinary-user", 20, [*line, "--", *bench.program("vector_add", 100000000)])
    if (own / "summary.json").exists():
        shutil.copy(own / "summary.json", bench.out / "ordinary-user.json")


# How overhead is measured: the name of each arm in the table, with the options of `lockstep sample`.
ARMS = {
    "none": None,
    "10 ms": ["--interval", "10 ms"],
    "1 ms": ["--interval", "1 ms"],
    "10 ms no kernels": ["--interval", "10 ms", "--no-kernels"],
    "1 ms no kernels": ["--interval", "1 ms", "--no-kernels"],
}


def time_one(bench, name, interval, run, line):
    """A row of overhead.csv: how long one run takes, by its own clock and by ours."""
    begun, folder = time.monotonic(), bench.bin / "overhead"
    if ARMS[interval]:
        line = [bench.lockstep, "sample", "--quiet", "--out", str(folder), *ARMS[interval], "--", *line]
    with open(bench.out / "log.txt", "ab") as log:
        try:
            said = subprocess.run(line, stdout=subprocess.PIPE, stderr=log, text=True, timeout=40).stdout.split()
        except subprocess.TimeoutExpired:
            said = []
    wall = time.monotonic() - begun
    if (folder / "summary.json").exists():
        shutil.copy(folder / "summary.json", bench.out / f"overhead-{name}-{interval.replace(' ', '')}.json")
    shutil.rmtree(folder, ignore_errors=True)
    seconds, microseconds = said[3:5] if len(said) >= 5 else ("", "")
    return f"{name},{interval},{run},{seconds},{microseconds},{wall:g}\n"


def overhead_table(bench):
    """The table of run times, which several parts add to."""
    path = bench.out / "overhead.csv"
    if not path.exists():
        path.write_text("program,interval,run,seconds,microseconds,wall\n")
    return open(path, "a")


def overhead(bench):
    with overhead_table(bench) as table:
        bound = len(repeat("LAUNCH_BOUND_RUNS", 10))
        for run in repeat("OVERHEAD_RUNS", 20):
            for interval in ARMS:
                table.write(time_one(bench, "kernels-of-69us", interval, run, bench.program("steady", 30000, 8000, 0.2)))
                if run <= bound:
                    table.write(time_one(bench, "launch-bound", interval, run, bench.program("steady", 100, 60000, 0.2)))
                table.flush()


def inference(bench):
    """An inference loop of PyTorch that replays CUDA graphs."""
    python = os.environ.get("INFERENCE_PYTHON") or sys.executable
    line = [python, str(HERE / "programs" / "inference.py"), "2000", "0.3"]
    with overhead_table(bench) as table:
        for run in repeat("INFERENCE_RUNS", 10):
            for interval in ARMS:
                table.write(time_one(bench, "inference-with-graphs", interval, run, line))
                table.flush()


# The report's Figure 3-1 had eight nodes with a GPU each; here ranks share one.
RANKS = [1, 4, 16]


def kernel_times(bench):
    """The report's Figure 3-1: the time of each kernel of a hydrodynamics code of edge 22 and 50 iterations."""
    program, library, folder = bench.bin / "hydrodynamics", bench.bin / "libkernel_times.so", bench.bin / "times"
    nvcc = [project.nvcc(), "-O3", "-arch=native", "--cudart", "shared"]
    source = project.ROOT / "workloads" / "hydrodynamics" / "hydrodynamics.cu"
    subprocess.run([*nvcc, "-I", str(project.ROOT / "workloads"), "-o", str(program), str(source)], check=True)
    times = HERE / "programs" / "kernel_times.cu"
    subprocess.run([*nvcc, "-shared", "-Xcompiler", "-fPIC", "-o", str(library), str(times)], check=True)
    with open(bench.out / "kernel-times.csv", "w") as table:
        table.write("ranks,interval,run,rank,kernel,launches,microseconds\n")
        for run in repeat("KERNEL_TIMES_RUNS", 5):
            for ranks, interval in [(ranks, interval) for ranks in RANKS for interval in ["none", "10 ms", "1 ms"]]:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                ones = [["env", f"KERNEL_TIMES={folder}/{rank}", f"LD_PRELOAD={library}", str(program), "22", "50"] for rank in range(ranks)]
                line, name = bench.together(*ones), f"times-{ranks}-{interval.replace(' ', '')}-{run}"
                code = bench.sample(name, ARMS[interval], line, 60) if ARMS[interval] else bench.step(name, 60, line)
                if code != 0:
                    continue
                for path in sorted(folder.iterdir()):
                    for row in path.read_text().splitlines():
                        table.write(f"{ranks},{interval},{run},{path.name},{row}\n")
                table.flush()


PARTS = {part.__name__: part for part in [parity, series, attribution, graphs, processes, rates, robustness, overhead, inference, kernel_times]}


def main():
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= PARTS.keys():
        sys.exit(__doc__)
    bench = Bench(*sys.argv[1:3])
    bench.build()
    (bench.out / "machine.txt").write_text(about_machine())
    # If the first sampled program does not end well, nothing after it is worth the time.
    if bench.sample("canary", MILLISECOND, bench.program("vector_add", 100000000)) != 0:
        sys.exit("the canary failed: see log.txt")
    for part in sys.argv[3:] or PARTS:
        PARTS[part](bench)
    with open(bench.out / "machine.txt", "a") as about:
        about.write(f"{machine.CARD_NOW}: {machine.card(machine.CARD_NOW)}\n")
    print((bench.out / "steps.csv").read_text(), end="")


if __name__ == "__main__":
    main()
