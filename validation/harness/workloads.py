"""The programs of workloads/workloads.toml: their arguments, how they are built, what they say of themselves."""

import re
import subprocess
from dataclasses import dataclass

from . import project

try:
    import tomllib
except ImportError:  # before Python 3.11, where pip has one of its own
    from pip._vendor import tomli as tomllib

SIZES = ["small", "default", "medium", "large"]
# As `cargo xtask` builds them, so that hardware and simulator run the same device code.
OPTIONS = ["-O3", "-std=c++17"]


@dataclass(frozen=True)
class Workload:
    """One program."""

    name: str
    source: str
    architecture: str
    relocatable: bool
    links: tuple
    sizes: dict
    gpus: int = 1

    def arguments(self, size):
        """What it is called with at a size; at the default size nothing, None where it has no such size."""
        return () if size == "default" else self.sizes.get(size)


def load(path=project.ROOT / "workloads" / "workloads.toml", most_gpus=1):
    """All of them that need no more GPUs, in the order of the table."""
    with open(path, "rb") as file:
        table = tomllib.load(file)["program"]
    return [
        Workload(
            name=entry["name"],
            source=entry["source"],
            architecture=entry["architecture"],
            relocatable=entry.get("relocatable", False),
            links=tuple(entry.get("links", ())),
            sizes={size: tuple(entry[size]) for size in SIZES if size in entry},
            gpus=entry.get("gpus", 1),
        )
        for entry in table
        if entry.get("gpus", 1) <= most_gpus
    ]


def target(asked, needed):
    """The architecture to build for: a program may need more than was asked for, and the GPU then decides."""
    number = lambda name: int(re.search(r"\d+", name).group())
    return needed if number(needed) > number(asked) or needed == f"{asked}a" else asked


def architecture_options(name):
    """What only one architecture has (`sm_90a`) is compiled for it alone: nvcc's `-arch` adds a general one."""
    if not name.endswith("a"):
        return [f"-arch={name}"]
    number = name.removeprefix("sm_")
    return ["-gencode", f"arch=compute_{number},code=[sm_{number},compute_{number}]"]


def verdict(name, output):
    """The last line with a verdict, and whether it is in the program's favour."""
    lines = [line for line in output.splitlines() if line.startswith(("PASS ", "FAIL "))]
    last = lines[-1] if lines else ""
    return last, last.startswith(f"PASS {name} ")


def build_command(nvcc, workload, asked, folder, library=False, header=None, driver_folder=None):
    """The compiler's command line; a library has the same device code as the executable (validation/runner.cu)."""
    suffix = ".so" if library else ""
    source = project.ROOT / "workloads" / workload.source
    line = [nvcc, *OPTIONS, *architecture_options(target(asked, workload.architecture)), str(source)]
    line += ["-o", str(folder / f"{workload.name}{suffix}")]
    if workload.relocatable:
        line.append("-rdc=true")
    if library:
        return [*line, "-shared", "-Xcompiler", "-fPIC", "-include", str(header), "-Dmain=workload_main"]
    if driver_folder:
        line.append(f"-L{driver_folder}")
    return [*line, *(f"-l{name}" for name in workload.links)]


def build(nvcc, workload, asked, folder, library=False, header=None, driver_folder=None):
    """Compiles one; what the compiler said if it cannot be done, else None."""
    line = build_command(nvcc, workload, asked, folder, library, header, driver_folder)
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    if workload.links and not library:
        # Where the toolkit has no stub of the driver's library, link with the driver itself.
        plain = build_command(nvcc, workload, asked, folder)[: -len(workload.links)]
        if subprocess.run([*plain, "-Xlinker", "-l:libcuda.so.1"], capture_output=True).returncode == 0:
            return None
    return done.stdout + done.stderr
