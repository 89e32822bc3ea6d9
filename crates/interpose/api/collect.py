#!/usr/bin/env python3
"""Collects the names of entry points of CUDA and NVML into runtime.txt, driver.txt and nvml.txt.

Usage: collect.py 11=DIRECTORY 12=DIRECTORY 13=DIRECTORY

Each directory is an unpacked runtime of that major version (`include/` with the typedef
headers, `lib/` with libcudart.so.*; the newest one with nvml.h). Only names and version numbers
are taken: facts of the interface.
"""

import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

# What one name means in 13 is what another meant before: the revision became the plain name.
RENAMED_IN_13 = {
    "cudaGetDeviceProperties": "cudaGetDeviceProperties_v13",
    "cudaRuntimeGetVersion": "cudaRuntimeGetVersion_v13",
    "cudaFuncGetAttributes": "cudaFuncGetAttributes_v12",
    "cudaGraphAddDependencies": "cudaGraphAddDependencies_v2",
    "cudaGraphAddNode": "cudaGraphAddNode_v2",
    "cudaGraphGetEdges": "cudaGraphGetEdges_v2",
    "cudaGraphNodeGetDependencies": "cudaGraphNodeGetDependencies_v2",
    "cudaGraphNodeGetDependentNodes": "cudaGraphNodeGetDependentNodes_v2",
    "cudaGraphRemoveDependencies": "cudaGraphRemoveDependencies_v2",
    "cudaGraphAddKernelNode": "cudaGraphAddKernelNode_v13",
    "cudaGraphExecKernelNodeSetParams": "cudaGraphExecKernelNodeSetParams_v13",
    "cudaGraphKernelNodeSetParams": "cudaGraphKernelNodeSetParams_v13",
    "cudaLaunchKernel": "cudaLaunchKernel_v13",
    "cudaLaunchKernelExC": "cudaLaunchKernelExC_v13",
    "cudaLaunchKernelExC_ptsz": "cudaLaunchKernelExC_v13_ptsz",
    "cudaLaunchKernel_ptsz": "cudaLaunchKernel_v13_ptsz",
    "cudaMemAdvise": "cudaMemAdvise_v2",
    "cudaMemcpy3DBatchAsync": "cudaMemcpy3DBatchAsync_v2",
    "cudaMemcpy3DBatchAsync_ptsz": "cudaMemcpy3DBatchAsync_v2_ptsz",
    "cudaMemcpyBatchAsync": "cudaMemcpyBatchAsync_v2",
    "cudaMemcpyBatchAsync_ptsz": "cudaMemcpyBatchAsync_v2_ptsz",
    "cudaMemPrefetchAsync": "cudaMemPrefetchAsync_v2",
    "cudaMemPrefetchAsync_ptsz": "cudaMemPrefetchAsync_v2_ptsz",
    "cudaStreamGetCaptureInfo": "cudaStreamGetCaptureInfo_v3",
    "cudaStreamGetCaptureInfo_ptsz": "cudaStreamGetCaptureInfo_v3_ptsz",
    "cudaStreamUpdateCaptureDependencies": "cudaStreamUpdateCaptureDependencies_v2",
    "cudaStreamUpdateCaptureDependencies_ptsz": "cudaStreamUpdateCaptureDependencies_v2_ptsz",
    "cudaSignalExternalSemaphoresAsync": "cudaSignalExternalSemaphoresAsync_v2",
    "cudaSignalExternalSemaphoresAsync_ptsz": "cudaSignalExternalSemaphoresAsync_v2_ptsz",
    "cudaWaitExternalSemaphoresAsync": "cudaWaitExternalSemaphoresAsync_v2",
    "cudaWaitExternalSemaphoresAsync_ptsz": "cudaWaitExternalSemaphoresAsync_v2_ptsz",
}
RENAMED_IN_11 = {
    "cudaGraphInstantiate": "cudaGraphInstantiate_v11",
    "cudaGraphExecUpdate": "cudaGraphExecUpdate_v11",
}
RENAMED_IN_12 = {
    "cudaRuntimeGetVersion": "cudaRuntimeGetVersion_v12",
    "cudaFuncGetAttributes": "cudaFuncGetAttributes_v12",
}
RENAMED = {"11": RENAMED_IN_11, "12": RENAMED_IN_12, "13": RENAMED_IN_13}

# Entry points of releases before 11 that old programs still carry.
BEFORE_11 = ["cudaConfigureCall", "cudaSetupArgument", "cudaLaunch", "cudaLaunch_ptsz"]


def runtime_names(directory):
    names = set()
    for library in directory.glob("lib/libcudart.so.*"):
        text = subprocess.run(
            ["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True
        ).stdout
        names |= {line.split()[2].split("@")[0] for line in text.splitlines()}
    return {name for name in names if re.match(r"_*cuda", name)}


def driver_versions(directory):
    """(name, suffix) -> versions, from the typedefs `PFN_<name>_v<version><suffix>`."""
    found = {}
    pattern = re.compile(r"\*?PFN_(cu\w+?)_v(\d+)(_pt[sd][sz])?\)")
    for header in directory.glob("include/cuda*Typedefs.h"):
        for name, version, suffix in pattern.findall(header.read_text()):
            found.setdefault((name, suffix), set()).add(int(version))
    return found


def declared_abi_names(directory):
    """Names with an ABI suffix that cuda.h declares, which the typedefs may lack."""
    text = "".join(h.read_text(errors="replace") for h in directory.glob("include/cuda*.h"))
    pattern = re.compile(r"CUDAAPI\s+\*?(cu[A-Z]\w*)\s*\(")
    return set(pattern.findall(text))


def nvml_names(directory):
    """Functions that nvml.h declares, the older revisions included."""
    text = "".join(h.read_text(errors="replace") for h in directory.glob("include/nvml.h"))
    return set(re.findall(r"DECLDIR\s+(?:char\s*\*\s*)?(nvml[A-Z]\w*)\s*\(", text))


def main():
    directories = dict(argument.split("=", 1) for argument in sys.argv[1:])
    directories = {major: pathlib.Path(path) for major, path in directories.items()}

    runtime = {}
    for major, directory in sorted(directories.items()):
        for name in runtime_names(directory):
            target = RENAMED.get(major, {}).get(name)
            runtime.setdefault(name, []).append(f"{major}={target}" if target else major)
    for name in BEFORE_11:
        runtime.setdefault(name, ["11"])
    lines = [f"{name} {' '.join(majors)}" for name, majors in sorted(runtime.items())]
    (HERE / "runtime.txt").write_text(
        "# Entry points of the runtime API: name, then the major versions that have it.\n"
        "# `13=x` means that in 13 the name stands for what we call x.\n" + "\n".join(lines) + "\n"
    )

    versions = {}
    declared = set()
    for directory in directories.values():
        declared |= declared_abi_names(directory)
        for key, found in driver_versions(directory).items():
            versions.setdefault(key, set()).update(found)
    rows = {}
    known = set()
    for (name, suffix), found in versions.items():
        for version in found:
            rows.setdefault(name, []).append((version, suffix))
    for name, row in rows.items():
        plain = sorted(version for version, suffix in row if not suffix)
        for version, suffix in row:
            index = max(sum(1 for other in plain if other <= version), 1)
            known.add(name + (f"_v{index}" if index > 1 else "") + suffix)
    lines = []
    for name, row in sorted(rows.items()):
        words = [f"{version}{suffix}" for version, suffix in sorted(row)]
        lines.append(f"{name} {' '.join(words)}")
    lines += [f"{name} -" for name in sorted(declared - known)]
    (HERE / "driver.txt").write_text(
        "# Entry points of the driver API: base name, then the versions in which its ABI\n"
        "# revisions appeared, in order: the first is the plain name, the i-th `_v<i>`. A version\n"
        "# with `_ptsz` or `_ptds` is the variant for the per-thread default stream. `-` marks an\n"
        "# exported name that cuGetProcAddress does not know.\n" + "\n".join(lines) + "\n"
    )

    names = set()
    for directory in directories.values():
        names |= nvml_names(directory)
    (HERE / "nvml.txt").write_text(
        "# Entry points of NVML (libnvidia-ml.so.1), every name that its header of CUDA 13.4 declares.\n"
        "# Those that no chapter of src/nvml defines answer \"not supported\".\n"
        + "".join(f"{name}\n" for name in sorted(names))
    )


main()
