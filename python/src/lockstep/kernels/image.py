"""Device code itself: the path or the bytes of a cubin, a fat binary or PTX, or PTX text."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lockstep.errors import LockstepError
from lockstep.kernels.launch import Argument, Launch, Shape, Target, extent, is_array


def knows(kernel: Any) -> bool:
    """Whether it is such code."""
    return isinstance(kernel, (str, bytes, bytearray, memoryview, os.PathLike))


def prepare(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any], shape: Shape, _target: Target) -> Launch:
    """The code with the arguments of its kernel, which the driver finds by its entry."""
    return of_code(code_of(kernel), arguments, options, shape)


def of_code(code: bytes, arguments: Sequence[Any], options: Mapping[str, Any], shape: Shape) -> Launch:
    """A launch of a kernel in some code."""
    if options:
        raise LockstepError(f"`{next(iter(options))}` is no option of a kernel of this kind")
    launch = Launch(code, shape.entry, extent(shape.grid, "grid"), extent(shape.block, "block"), shape.shared)
    launch.arguments = [argument(launch, value) for value in arguments]
    return launch


def argument(launch: Launch, value: Any) -> Argument:
    """One argument: arrays go as addresses, numbers of Python take the size that the kernel's parameter has."""
    if value is None:
        return {"bytes": bytes(8).hex()}
    if isinstance(value, bool):
        return {"integer": int(value)}
    if isinstance(value, int):
        return {"integer": value}
    if isinstance(value, float):
        return {"real": value}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, (ctypes.Structure, ctypes._SimpleCData)):
        return {"bytes": bytes(value).hex()}
    if is_array(value):
        return launch.buffer(value)
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        return {"bytes": value.tobytes().hex()}
    raise LockstepError(
        f"an argument of type {type(value).__name__} cannot go to a kernel; there are arrays and numbers of numpy, "
        "numbers of Python, values of ctypes, bytes, and None for a null pointer"
    )


def code_of(kernel: Any) -> bytes:
    """The bytes of code that is given as text, as bytes or as a path."""
    if isinstance(kernel, str) and ".version" in kernel and ".entry" in kernel:
        return kernel.encode()
    if isinstance(kernel, (bytes, bytearray, memoryview)):
        return bytes(kernel)
    path = Path(kernel)
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        shown = str(path)[:60]
        raise LockstepError(f"`{shown}` is neither PTX text nor a file that can be read: {error}") from None
