"""The programs that images are made and run with: where they are, and the lists that go with folders of images."""

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parent.parent


class NotFound(Exception):
    """A tool that nothing names and no known folder has."""


@functools.cache
def toolkits():
    """Folders of CUDA toolkits, the newest first; packages of Python count."""
    folders = [pathlib.Path(value) for value in [os.environ.get("CUDA_HOME")] if value]
    # A worktree uses the environment of the first tree.
    roots = [PROJECT, main_tree()]
    for root in roots:
        packages = sorted((root / ".lockstep/venv/lib").glob("python3*/site-packages/nvidia"))
        folders += [package / name for package in packages for name in ("cu13", "cuda_nvcc")]
    folders.append(pathlib.Path("/usr/local/cuda"))
    return [folder for folder in folders if folder.is_dir()]


@functools.cache
def main_tree():
    """The tree whose `.git` holds all worktrees, or this one where git does not say."""
    answer = subprocess.run(["git", "-C", HERE, "rev-parse", "--path-format=absolute", "--git-common-dir"],
                            capture_output=True, text=True)
    return pathlib.Path(answer.stdout.strip()).parent if answer.returncode == 0 else PROJECT


@functools.cache
def nvcc():
    return named("NVCC") or within("bin/nvcc") or on_path("nvcc")


@functools.cache
def ptxas():
    """The assembler of the toolkit that nvcc belongs to."""
    return named("PTXAS") or pathlib.Path(nvcc()).parent / "ptxas"


@functools.cache
def ptxas129():
    """An assembler of CUDA 12.9, the last that knows sm_70."""
    found = named("PTXAS129")
    for folder in toolkits():
        candidate = folder / "bin/ptxas"
        if not found and candidate.exists() and "release 12.9" in output_of([candidate, "--version"]):
            found = candidate
    if not found:
        raise NotFound("no ptxas of CUDA 12.9; name it in PTXAS129")
    return found


def includes():
    """The folder of cuda.h."""
    for folder in [pathlib.Path(nvcc()).resolve().parent.parent, *toolkits()]:
        if (folder / "include/cuda.h").exists():
            return folder / "include"
    raise NotFound("no cuda.h; name a toolkit in CUDA_HOME")


def lockstep():
    found = named("LOCKSTEP")
    for root in [PROJECT, main_tree()]:
        if not found and (root / "target/release/lockstep").exists():
            found = root / "target/release/lockstep"
    return found or on_path("lockstep")


def named(variable):
    return os.environ.get(variable)


def within(path):
    return next((folder / path for folder in toolkits() if (folder / path).exists()), None)


def on_path(name):
    found = shutil.which(name)
    if not found:
        raise NotFound(f"no {name}")
    return found


def output_of(command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def runner(folder):
    """The runner, built in this folder unless it is there and newer than its source."""
    built = pathlib.Path(folder) / "runner"
    sources = [HERE / "runner.cpp", HERE / "include/manifest.h"]
    if not built.exists() or built.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        built.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-O2", "-std=c++17", "-I", includes(), sources[0], "-o", built, "-ldl"], check=True)
    return built


def headers():
    """What programs include on a GPU."""
    return sorted(file for file in (HERE / "include").iterdir() if file.suffix in (".cuh", ".inc"))


def generator_digest():
    """What names a generator: a digest of all that decides the bytes of programs and of their data."""
    files = [HERE / "generate.py", *(HERE / "generator").rglob("*.py"), *headers(), HERE / "include/manifest.h"]
    digest = hashlib.sha256()
    for file in sorted(file for file in files if file.exists()):
        text = file.read_bytes()
        digest.update(f"{file.relative_to(HERE)} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def number(path):
    """The seed in the name of a program's file, by which files are ordered."""
    return int(pathlib.Path(path).stem[1:])


def sources(folder):
    """The programs of a folder that have a manifest, by number."""
    found = sorted(pathlib.Path(folder).glob("p*.cu"), key=number)
    return [source for source in found if source.with_suffix(".txt").exists()]


def stop(why):
    print(why, file=sys.stderr)
    sys.exit(2)
