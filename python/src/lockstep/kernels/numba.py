"""Kernels of numba: compiled by numba's own public compiler, in this process, for the simulated GPU.

As numba's launcher does, an array goes as its header: two unused pointers, its number of elements, their size, the
address, its shape and its strides. Where `cuda.core` is there (numba-cuda brings it), code is linked to a cubin by the
library that numba links with; otherwise PTX is launched.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.errors import LockstepError
from lockstep.kernels import image
from lockstep.kernels.launch import Argument, Launch, Shape, Target, as_array

#: Options of `@cuda.jit` that its compiler takes as well.
_HANDED_ON = ("lineinfo", "fastmath", "opt", "launch_bounds")

#: Options that change what is linked or checked, and cannot be followed.
_REFUSED = ("debug", "link")


def knows(kernel: Any) -> bool:
    """Whether it comes from numba."""
    return type(kernel).__module__.startswith(("numba.", "numba_cuda."))


def prepare(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any], shape: Shape, target: Target) -> Launch:
    """Compiles the kernel for these arguments."""
    if not hasattr(kernel, "py_func") or not hasattr(kernel, "targetoptions"):
        raise LockstepError(
            f"a {type(kernel).__name__} of numba is no kernel; give the function that `@cuda.jit` made, and grid and "
            "block by name"
        )
    for name in _REFUSED:
        if kernel.targetoptions.get(name):
            raise LockstepError(f"the kernel was made with `{name}` of `@cuda.jit`, which cannot be followed from here")
    kinds = tuple(kernel.typeof_pyval(value) for value in arguments)
    launch = image.of_code(_compile(kernel, kinds, target), (), options, shape)
    for kind, value in zip(kinds, arguments):
        launch.arguments += _flattened(launch, kind, value)
    return launch


def _compile(kernel: Any, kinds: tuple[Any, ...], target: Target) -> bytes:
    from numba import cuda

    linker = _linker()
    optimised = linker is not None and bool(kernel.targetoptions.get("lto"))
    wanted = {name: kernel.targetoptions[name] for name in _HANDED_ON if kernel.targetoptions.get(name) is not None}
    known = inspect.signature(cuda.compile).parameters
    code, _ = cuda.compile(
        kernel.py_func,
        kinds,
        device=False,
        abi="numba",
        cc=(target.major, target.minor),
        output="ltoir" if optimised else "ptx",
        **{name: value for name, value in wanted.items() if name in known},
    )
    code = code.encode() if isinstance(code, str) else code
    if linker is None:
        return code
    # As numba: what only this architecture has is allowed where there is such a thing.
    architecture = f"sm_{target.major}{target.minor}{'a' if target.major >= 9 else ''}"
    source = linker.ObjectCode.from_ltoir(code) if optimised else linker.ObjectCode.from_ptx(code)
    registers = kernel.targetoptions.get("max_registers") or None
    settings = linker.LinkerOptions(
        arch=architecture, link_time_optimization=optimised or None, max_register_count=registers
    )
    return bytes(linker.Linker(source, options=settings).link("cubin").code)


def _linker() -> Any:
    try:
        import cuda.core
    except ImportError:
        return None
    return cuda.core if hasattr(cuda.core, "Linker") else getattr(cuda.core, "experimental", None)


def _flattened(launch: Launch, kind: Any, value: Any) -> list[Argument]:
    from numba import types

    if isinstance(kind, types.Array):
        array = as_array(value)
        words = [0, 0, array.size, array.itemsize, launch.buffer(value), *array.shape, *array.strides]
        return [word if isinstance(word, dict) else {"bytes": struct.pack("<q", word).hex()} for word in words]
    if isinstance(kind, types.BaseTuple):
        return [part for inner, held in zip(kind, value) for part in _flattened(launch, inner, held)]
    if isinstance(kind, (types.Integer, types.Float, types.Boolean)):
        import numpy

        name = "bool" if isinstance(kind, types.Boolean) else str(kind)
        return [{"bytes": numpy.dtype(name).type(value).tobytes().hex()}]
    if isinstance(kind, types.Complex):
        half = "<f" if str(kind) == "complex64" else "<d"
        return [{"bytes": struct.pack(half, part).hex()} for part in (value.real, value.imag)]
    raise LockstepError(f"an argument is a {kind} for numba; arrays, numbers and tuples of them can be given")
