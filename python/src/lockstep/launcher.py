"""The process that `lockstep.profile` starts under `lockstep run`: one launch, through the driver API.

    lockstep run -- python launcher.py FOLDER

reads `launch.json`, `code` and `buffer-N` of a folder, launches the kernel, and writes the buffers back. It uses the
standard library alone and imports nothing of this package, so that any interpreter starts it quickly.
"""

from __future__ import annotations

import ctypes
import json
import pathlib
import struct
import sys
from typing import Any

#: CUfunction_attribute: dynamic shared memory that a launch may ask for.
MAX_DYNAMIC_SHARED_BYTES = 8

#: Dynamic shared memory that every kernel may have.
PLAIN_SHARED_BYTES = 48 * 1024

#: Sizes of integers and of floating-point numbers.
INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}
REALS = {2: "e", 4: "f", 8: "d"}

#: CUresult of a parameter that a kernel does not have.
INVALID_VALUE = 1


class Stop(Exception):
    """A sentence for the reader."""


class Driver:
    """The driver API, with refusals as sentences."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function and stops where it refuses."""
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise Stop(f"{name} answers {(text.value or b'?').decode()} ({code})")

    def address(self, name: str, *arguments: Any) -> ctypes.c_uint64:
        """What a function answers through its first argument."""
        answer = ctypes.c_uint64()
        self.call(name, ctypes.byref(answer), *arguments)
        return ctypes.c_uint64(answer.value)


def find_kernel(driver: Driver, module: ctypes.c_uint64, entry: str | None) -> tuple[str, ctypes.c_uint64]:
    """The kernel by its name, or the only one."""
    count = ctypes.c_uint()
    driver.call("cuModuleGetFunctionCount", ctypes.byref(count), module)
    functions = (ctypes.c_uint64 * count.value)()
    driver.call("cuModuleEnumerateFunctions", functions, count, module)
    names = {}
    for function in functions:
        name = ctypes.c_char_p()
        driver.call("cuFuncGetName", ctypes.byref(name), ctypes.c_uint64(function))
        names[(name.value or b"").decode()] = ctypes.c_uint64(function)
    if entry is None and len(names) == 1:
        return next(iter(names.items()))
    if entry is None or entry not in names:
        asked = "which kernel is meant" if entry is None else f"no kernel is called `{entry}`"
        raise Stop(f"{asked}; the code has: {', '.join(sorted(names)) or 'none'}; name one as `entry`")
    return entry, names[entry]


def parameter_sizes(driver: Driver, kernel: ctypes.c_uint64) -> list[int]:
    """Bytes of each parameter of a kernel."""
    sizes: list[int] = []
    while True:
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        code = driver.library.cuFuncGetParamInfo(
            kernel, ctypes.c_size_t(len(sizes)), ctypes.byref(offset), ctypes.byref(size)
        )
        if code == INVALID_VALUE:
            return sizes
        if code != 0:
            raise Stop(f"cuFuncGetParamInfo answers {code}")
        sizes.append(size.value)


def packed(place: int, argument: dict[str, Any], size: int, buffers: list[ctypes.c_uint64], driver: Driver) -> bytes:
    """The bytes of one argument."""
    if "buffer" in argument:
        data = struct.pack("<Q", buffers[argument["buffer"]].value)
    elif "scratch" in argument:
        needed = argument["scratch"]
        data = struct.pack("<Q", driver.address("cuMemAlloc_v2", ctypes.c_size_t(needed)).value if needed else 0)
    elif "bytes" in argument:
        data = bytes.fromhex(argument["bytes"])
    else:
        value = argument["integer"] if "integer" in argument else argument["real"]
        kinds = INTEGERS if "integer" in argument else REALS
        if size not in kinds:
            raise Stop(f"argument {place} is the number {value}, and the kernel has a parameter of {size} bytes there")
        data = number(place, value, size, kinds[size])
    if len(data) != size:
        raise Stop(f"argument {place} has {len(data)} bytes, and the kernel has a parameter of {size} bytes there")
    return data


def number(place: int, value: int | float, size: int, kind: str) -> bytes:
    """A number in so many bytes; integers may be signed or not."""
    for spelling in (kind, kind.upper()) if isinstance(value, int) else (kind,):
        try:
            return struct.pack("<" + spelling, value)
        except (struct.error, OverflowError):
            continue
    raise Stop(f"argument {place} is {value}, which {size} bytes do not hold")


def launch(folder: pathlib.Path) -> None:
    """Makes the launch that a folder describes."""
    described = json.loads((folder / "launch.json").read_text())
    driver = Driver()
    driver.call("cuInit", 0)
    device = ctypes.c_int()
    driver.call("cuDeviceGet", ctypes.byref(device), 0)
    context = driver.address("cuDevicePrimaryCtxRetain", device)
    driver.call("cuCtxSetCurrent", context)
    # PTX is a text, which ends with a zero.
    code = ctypes.create_string_buffer((folder / "code").read_bytes())
    module = driver.address("cuModuleLoadData", code)
    name, kernel = find_kernel(driver, module, described["entry"])

    buffers = []
    for place, buffer in enumerate(described["buffers"]):
        size = ctypes.c_size_t(buffer["bytes"])
        # An allocation of nothing is refused, and an empty array has no address to use.
        buffers.append(driver.address("cuMemAlloc_v2", size) if size.value else ctypes.c_uint64())
        if size.value:
            driver.call("cuMemcpyHtoD_v2", buffers[-1], (folder / f"buffer-{place}").read_bytes(), size)

    sizes = parameter_sizes(driver, kernel)
    arguments = described["arguments"]
    while len(arguments) > len(sizes) and arguments[-1].get("optional"):
        arguments.pop()
    if len(arguments) != len(sizes):
        raise Stop(f"`{name}` has {len(sizes)} parameters, and {len(arguments)} arguments were given")
    held = [
        ctypes.create_string_buffer(packed(place, argument, size, buffers, driver), size)
        for place, (argument, size) in enumerate(zip(arguments, sizes))
    ]
    addresses = (ctypes.c_void_p * max(len(held), 1))(*(ctypes.addressof(data) for data in held))
    shared = described["shared"]
    if shared > PLAIN_SHARED_BYTES:
        driver.call("cuFuncSetAttribute", kernel, MAX_DYNAMIC_SHARED_BYTES, ctypes.c_int(shared))
    shape = [ctypes.c_uint(number) for number in (*described["grid"], *described["block"], shared)]
    driver.call("cuLaunchKernel", kernel, *shape, None, addresses, None)
    driver.call("cuCtxSynchronize")

    for place, buffer in enumerate(described["buffers"]):
        if buffer["written"] and buffer["bytes"]:
            data = ctypes.create_string_buffer(buffer["bytes"])
            driver.call("cuMemcpyDtoH_v2", data, buffers[place], ctypes.c_size_t(buffer["bytes"]))
            (folder / f"buffer-{place}").write_bytes(data.raw)


if __name__ == "__main__":
    try:
        launch(pathlib.Path(sys.argv[1]))
    except Stop as stop:
        sys.exit(f"lockstep: {stop}")
