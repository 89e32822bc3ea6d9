"""NCCL's own machine code between simulated GPUs: every collective in one process and in several.

The programs are `nccl_collectives.cu`, `nccl_processes.cu` and `nccl_nodes.cu` beside this. A run takes minutes, nearly
all of them before the first kernel.
"""

import functools
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile

from checks import Checks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import project  # noqa: E402

check = Checks("nvidia-nccl-cu13")
HERE = pathlib.Path(__file__).resolve().parent
NCCL = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "nccl"
#: What NCCL finds on a real node and not here; see docs/book/several_gpus.md.
SETTINGS = {
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_CGA_CLUSTER_SIZE": "0",
}
COLLECTIVES = 7
KIBIBYTE = 256  # floats


@functools.cache
def program(name):
    """Compiles a program once."""
    built = pathlib.Path(os.environ["TMPDIR"]) / name
    line = [project.nvcc(), "-arch=sm_90", f"-I{NCCL}/include", str(HERE / f"{name}.cu"), "-o", str(built)]
    line += [f"-L{NCCL}/lib", "-l:libnccl.so.2", "-Xlinker", f"-rpath,{NCCL}/lib"]
    subprocess.run(line, check=True)
    return str(built)


def run(gpus, name, *arguments, nodes=1):
    """Runs a program on so many GPUs of each node: what passed, why the run depends on the host, and its digest."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        line = [project.simulator(), "run", "--quiet", "--frontend", "sass", "--mode", "functional", "--record", "none"]
        line += ["--gpus", str(gpus), "--nodes", str(nodes), "--out", str(out)]
        line += ["--", program(name), *map(str, arguments)]
        done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **SETTINGS})
        ended = f"{arguments}: ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
        assert done.returncode == 0, ended
        summary = json.loads((out / "summary.json").read_text())
    passed = [line for line in done.stdout.splitlines() if line.startswith("PASS")]
    host = summary["host"]
    words = " ".join(map(str, arguments))
    told = f"{name} {words}: {host['seconds']:.0f} s, {host['peak_memory'] / 2**30:.1f} GiB"
    print(told, file=sys.stderr, flush=True)
    return passed, summary["depends_on_host"], summary["digest"]


@check
def every_collective_of_one_process():
    # Its threads wait for each other over sockets with short time-outs: such a run may depend on the host, and says so.
    passed, _, _ = run(2, "nccl_collectives", "one", 2, KIBIBYTE)
    assert len(passed) == COLLECTIVES, passed


@check
def every_collective_of_two_processes():
    passed, dependences, _ = run(2, "nccl_collectives", "processes", 2, KIBIBYTE)
    assert len(passed) == 2 * COLLECTIVES, passed
    assert not dependences, dependences


@check
def four_processes_have_one_digest():
    digests = set()
    for _ in range(2):
        passed, dependences, digest = run(4, "nccl_processes", 4, KIBIBYTE)
        assert len(passed) == 4, passed
        assert not dependences, dependences
        digests.add(digest)
    assert len(digests) == 1, digests


@check
def two_nodes_over_sockets():
    # Threads of NCCL look at memory that kernels write: the run depends on the host, and says so.
    passed, _, _ = run(1, "nccl_nodes", 2, 1, KIBIBYTE, nodes=2)
    assert len(passed) == 2, passed


check.run()
