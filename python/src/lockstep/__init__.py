"""Lockstep from Python: run CUDA programs and single kernels on simulated NVIDIA GPUs, and read what they counted.

    import lockstep

    run = lockstep.run(["./vector_add", "163840"], gpu="h200")
    frame = run.to_pandas()          # a row a launch
    run.plot("cycles")

Everything is done by the `lockstep` command that the package carries, so that a notebook, a shell and a cluster
have the same answers; this package starts it and reads the folders that it leaves.
"""

from lockstep.command import version
from lockstep.errors import LockstepError, RunFailed
from lockstep.profiling import Profile, profile
from lockstep.reports import Report, compare
from lockstep.runs import Run, run
from lockstep.runs import open_run as open  # noqa: A001  `lockstep.open(folder)` is what one types
from lockstep.sweeps import Sweep, sweep
from lockstep.tables import Table

__all__ = [
    "LockstepError",
    "Profile",
    "Report",
    "Run",
    "RunFailed",
    "Sweep",
    "Table",
    "compare",
    "open",
    "profile",
    "run",
    "sweep",
    "version",
]
