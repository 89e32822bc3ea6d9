"""The machine code that disassembly is compared on: openly licensed binaries, and what we compile ourselves.

Nothing here is part of the repository: wheels are fetched by the user's own command (`pip download --no-deps NAME`).
NVIDIA's closed libraries (cuBLAS, cuDNN, cuFFT, ...) are not read, also where an open wheel carries a copy of one.
"""

import email.parser
import fnmatch
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass

from harness import project, workloads


class Refused(SystemExit):
    """Something that may not be read, or that is not what it should be."""


@dataclass(frozen=True)
class Wheel:
    """A wheel whose own kernels may be read."""

    licence: str
    # What its metadata must say of its licence, in any case of letters.
    says: str
    # The files of it that hold its own kernels, and nothing of others.
    members: tuple
    # Requirements without which it carries or links closed libraries itself.
    requires: str = ""
    # Words of which its licence file must have one; then the file decides and not the metadata.
    file_says: tuple = ()


# Words that only the texts of open licences have.
OPEN_TEXTS = ("Redistribution and use in source and binary forms", "Apache License")

# Distribution -> what may be read of it.
WHEELS = {
    # NCCL is BSD or Apache-2.0, as its wheels' licence files say; the field of their metadata that calls them
    # proprietary is that of all wheels of its publisher. The file is the licence, so the file decides.
    "nvidia-nccl-cu12": Wheel("BSD-3-Clause", "bsd", ("nvidia/nccl/lib/libnccl.so*",), file_says=OPEN_TEXTS),
    "nvidia-nccl-cu13": Wheel("BSD-3-Clause", "bsd", ("nvidia/nccl/lib/libnccl.so*",), file_says=OPEN_TEXTS),
    # With cuBLAS as a requirement, PyTorch links NVIDIA's libraries and does not contain them.
    "torch": Wheel("BSD-3-Clause", "bsd", ("torch/lib/libtorch_cuda*.so",), "nvidia-cublas"),
    # Its kernels are its own and CUB's; one library for each CUDA version, of which one is enough.
    "bitsandbytes": Wheel("MIT", "mit", ("bitsandbytes/libbitsandbytes_cuda126.so",)),
}
# Kinds of sources that are compiled here, and the licence of what they contain.
COMPILED = {
    "workloads": "MIT OR Apache-2.0: executables of workloads.toml",
    "triton": "MIT OR Apache-2.0, compiled by Triton (MIT): workloads/triton_*/cubin.cuh",
    "source": "a .cu file that nvcc compiles here: ours, CUTLASS (BSD-3-Clause), CUB (Apache-2.0 WITH LLVM-exception)",
}


def described():
    """What may be read, as lines for the help."""
    lines = [f"  {name:<18} {text}" for name, text in COMPILED.items()]
    lines += [f"  {name + '*.whl':<18} {wheel.licence}: {', '.join(wheel.members)}" for name, wheel in WHEELS.items()]
    return "\n".join(lines)


def normal(name):
    """A distribution's name in its normal form."""
    return re.sub(r"[-_.]+", "-", name).lower()


def checked(metadata, licence_file=""):
    """(distribution, entry of WHEELS) of a wheel's METADATA and licence texts; refuses what is not openly licensed."""
    head = email.parser.Parser().parsestr(metadata, headersonly=True)
    name = normal(head.get("Name", ""))
    if name not in WHEELS:
        raise Refused(f"`{name}` is not in the list of openly licensed wheels: {', '.join(WHEELS)}")
    wheel = WHEELS[name]
    licences = [head.get("License-Expression", ""), head.get("License", ""), *head.get_all("Classifier", [])]
    closed = [text for text in licences if "proprietary" in text.lower()]
    if wheel.file_says:
        words = " ".join(licence_file.split())
        if not any(text in words for text in wheel.file_says):
            raise Refused(f"`{name}` should be {wheel.licence}, and its licence file does not say so. It is not read")
    elif closed or not any(re.search(rf"\b{wheel.says}\b", text, re.IGNORECASE) for text in licences):
        said = "; ".join(filter(None, closed or licences[:2])) or "nothing"
        raise Refused(f"`{name}` should be {wheel.licence}, and its metadata say: {said}. It is not read")
    required = [normal(text) for text in head.get_all("Requires-Dist", [])]
    if wheel.requires and not any(text.startswith(wheel.requires) for text in required):
        raise Refused(f"this `{name}` does not require {wheel.requires}: closed libraries may be inside it")
    return name, wheel


def of_wheel(path, scratch):
    """(library, file) of each file of a wheel that may be read."""
    with zipfile.ZipFile(path) as archive:
        about = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        if not about:
            raise Refused(f"{path}: a wheel has a file METADATA, and this has none")
        texts = [name for name in archive.namelist() if re.search(r"\.dist-info/(.*/)?LICEN[CS]E[^/]*$", name, re.I)]
        licence_file = "\n".join(archive.read(name).decode(errors="replace") for name in texts)
        name, wheel = checked(archive.read(about[0]).decode(errors="replace"), licence_file)
        chosen = [member for member in archive.namelist() if any(fnmatch.fnmatch(member, of) for of in wheel.members)]
        if not chosen:
            raise Refused(f"{path}: no file of {', '.join(wheel.members)} is in it")
        for member in chosen:
            yield name, pathlib.Path(archive.extract(member, scratch))


def of_header(text):
    """The bytes of a cubin that workloads/triton/compile.py wrote as C++ text."""
    inside = re.search(r"CUBIN\[\]\s*=\s*\{([0-9,\s]*)\}", text)
    return bytes(int(number) for number in re.findall(r"\d+", inside.group(1))) if inside else b""


def cubins(file, architecture, scratch):
    """The cubins of an architecture in a file that carries fat binaries."""
    program = project.toolkit_program("cuobjdump") or shutil.which("cuobjdump")
    if not program:
        raise Refused("no cuobjdump found; `cargo xtask test --only workloads` fetches one")
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    # sm_90a is an architecture of its own there.
    for name in [f"sm_{architecture}", f"sm_{architecture}a"]:
        subprocess.run([program, "-arch", name, "-xelf", "all", str(file)], cwd=folder, capture_output=True)
    return sorted(folder.glob("*.cubin"))


def of_source(path, architecture, scratch):
    """The cubin of a source that is compiled here."""
    target = pathlib.Path(tempfile.mkdtemp(dir=scratch)) / f"{path.stem}.cubin"
    line = [project.nvcc(), *workloads.OPTIONS, f"-arch=sm_{architecture}", "-cubin", "-o", str(target), str(path)]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        raise Refused(f"{path} cannot be compiled:\n{done.stderr[-500:]}")
    return target


def read(sources, architecture, scratch):
    """{library or program: [cubin, ...]} of the sources, each `workloads[=DIR]`, `triton`, a .cu file or a wheel."""
    found = {}
    for source in sources:
        kind, _, folder = str(source).partition("=")
        path = pathlib.Path(source)
        if kind == "workloads":
            folder = pathlib.Path(folder or project.ROOT / f".lockstep/bin/sm_{architecture}")
            for workload in workloads.load():
                if (folder / workload.name).exists():
                    found[workload.name] = cubins(folder / workload.name, architecture, scratch)
        elif kind == "triton":
            for header in sorted(project.ROOT.glob("workloads/triton_*/cubin.cuh")):
                target = pathlib.Path(scratch) / f"{header.parent.name}.cubin"
                target.write_bytes(of_header(header.read_text()))
                found[header.parent.name] = [target]
        elif path.suffix == ".cu":
            found[path.stem] = [of_source(path, architecture, scratch)]
        elif path.suffix == ".whl":
            for name, file in of_wheel(path, scratch):
                found.setdefault(name, []).extend(cubins(file, architecture, scratch))
        else:
            raise Refused(f"`{source}` is not a source that may be read; there are:\n{described()}")
    return found


def code(data):
    """Bytes of every section of a cubin that holds code; whole instructions of 16 bytes."""
    if data[:4] != b"\x7fELF" or len(data) < 0x40:
        return
    (table,), (count,) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<H", data, 0x3C)
    for index in range(count):
        at = table + 64 * index
        if at + 64 > len(data):
            return
        _, kind, flags, _, offset, size = struct.unpack_from("<IIQQQQ", data, at)
        if kind == 1 and flags & 4 and size >= 16:
            yield data[offset : offset + size - size % 16]
