"""Where things are: the repository, the simulator, the CUDA toolkit."""

import os
import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
HARDWARE = ROOT / "validation" / "hardware"


class NotFound(SystemExit):
    """A tool that is not there; ends a script with one line that says what to do."""


def simulator(given=None):
    """The `lockstep` command: the one given, that of LOCKSTEP, the one built here, or that on PATH."""
    if given:
        path = pathlib.Path(given)
        if not path.is_file():
            raise NotFound(f"no simulator at {path}; build one with `cargo build --release`")
        return str(path.resolve())
    built = ROOT / "target" / "release" / "lockstep"
    candidates = [os.environ.get("LOCKSTEP"), str(built) if built.is_file() else None, shutil.which("lockstep")]
    for candidate in filter(None, candidates):
        return candidate
    raise NotFound("no simulator found; build it with `cargo build --release` or name it in LOCKSTEP")


def toolkit_program(name):
    """A program of the project's own CUDA toolkit, which `cargo xtask` fetches; None where it is not there."""
    found = sorted(ROOT.glob(f".lockstep/venv/lib/python3*/site-packages/nvidia/cu*/bin/{name}"))
    return str(found[0]) if found else None


def nvcc(environment=os.environ):
    """The CUDA compiler: that of NVCC, on PATH, or the project's own."""
    found = environment.get("NVCC") or shutil.which("nvcc") or toolkit_program("nvcc")
    if not found:
        raise NotFound("no nvcc found; put it on PATH or name it in NVCC")
    return found


def ncu():
    """Nsight Compute, on PATH or where its package puts it."""
    return shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
