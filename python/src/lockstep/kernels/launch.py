"""One launch as the process that makes it takes it: code, shape, buffers and arguments.

A `Launch` is written into a folder as `launch.json` with files beside it; `lockstep.launcher` reads it under
`lockstep run`, and writes buffers back into their files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lockstep.errors import LockstepError, missing

#: Blocks or threads: a number, up to three of them, or what Triton makes of its parameters.
Extent = int | Sequence[int]

#: As the C ABI has an argument: a buffer's number, bytes, or a number whose size the kernel knows.
Argument = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """What the caller said of a launch."""

    grid: Extent | Callable[[dict[str, Any]], Extent] | None
    block: Extent | None
    shared: int
    entry: str | None


@dataclass(frozen=True)
class Target:
    """The GPU that code is compiled for."""

    major: int
    minor: int


@dataclass
class Launch:
    """A kernel with everything that it needs."""

    code: bytes
    entry: str | None
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: list[Argument] = field(default_factory=list)
    buffers: list[Any] = field(default_factory=list)

    def buffer(self, value: Any) -> Argument:
        """An array as the address of a copy on the device. One array is one buffer, however often it is given."""
        array = as_array(value)
        begin, end = _range(array)
        for number, other in enumerate(self.buffers):
            if other is array or _range(other) == (begin, end):
                return {"buffer": number}
            if begin < _range(other)[1] and _range(other)[0] < end:
                raise LockstepError(
                    "two arguments are different parts of one array, and would be apart on the device; copy one of them"
                )
        self.buffers.append(array)
        return {"buffer": len(self.buffers) - 1}

    def write(self, folder: Path) -> None:
        """Leaves everything in a folder."""
        (folder / "code").write_bytes(self.code)
        for number, array in enumerate(self.buffers):
            (folder / f"buffer-{number}").write_bytes(array.tobytes(order="A"))
        described = {
            "entry": self.entry,
            "grid": self.grid,
            "block": self.block,
            "shared": self.shared,
            "arguments": self.arguments,
            "buffers": [{"bytes": array.nbytes, "written": bool(array.flags.writeable)} for array in self.buffers],
        }
        (folder / "launch.json").write_text(json.dumps(described))

    def read_back(self, folder: Path) -> None:
        """Puts what the kernel left in its buffers into the arrays of the caller."""
        numpy = _numpy()
        for number, array in enumerate(self.buffers):
            if array.flags.writeable:
                found = numpy.fromfile(folder / f"buffer-{number}", dtype=array.dtype)
                order = "C" if array.flags.c_contiguous else "F"
                array[...] = found.reshape(array.shape, order=order)


def as_array(value: Any) -> Any:
    """An array of numpy over the memory of a value: numpy's own, or a tensor of the host."""
    try:
        array = _numpy().asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise LockstepError(f"an argument of type {type(value).__name__} is no array of numpy: {error}") from None
    if array.dtype.hasobject:
        raise LockstepError(f"an argument of type {type(value).__name__} holds objects of Python, not numbers")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise LockstepError("an array has gaps between its elements; numpy.ascontiguousarray makes a copy without")
    return array


def is_array(value: Any) -> bool:
    """Whether a value has elements in memory of the host."""
    scalar = hasattr(value, "dtype") and getattr(value, "shape", None) == () and not hasattr(value, "data_ptr")
    return (hasattr(value, "__array__") or hasattr(value, "__array_interface__")) and not scalar


def extent(value: Any, what: str) -> tuple[int, int, int]:
    """Three numbers of a grid or block."""
    given = (value,) if isinstance(value, int) else tuple(value or ())
    if not 1 <= len(given) <= 3 or not all(isinstance(number, int) and number > 0 for number in given):
        raise LockstepError(f"the {what} is {value!r}; it is one to three numbers above 0, such as {what}=(4, 2)")
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


def _range(array: Any) -> tuple[int, int]:
    begin = array.__array_interface__["data"][0]
    return begin, begin + array.nbytes


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise missing("numpy", "an array as an argument of a kernel") from None
    return numpy
