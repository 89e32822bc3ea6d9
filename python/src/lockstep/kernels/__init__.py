"""Kernels as people have them, made ready for a launch: one file for each kind.

`prepare` asks the kinds in their order. A kind knows its kernels by the module of their type, so that nothing is
imported that the caller has not imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.errors import LockstepError
from lockstep.kernels import cuda_core, image, numba, triton
from lockstep.kernels.launch import Launch, Shape, Target

#: In the order in which they are asked.
KINDS = (triton, numba, cuda_core, image)


def prepare(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any], shape: Shape, target: Target) -> Launch:
    """Compiles what has to be compiled, without a GPU, and lays the arguments out as the kernel takes them."""
    for kind in KINDS:
        if kind.knows(kernel):
            launch: Launch = kind.prepare(kernel, arguments, options, shape, target)
            return launch
    raise LockstepError(
        f"a {type(kernel).__module__}.{type(kernel).__qualname__} is no kernel; there are kernels as the path or bytes "
        "of a cubin, as PTX text, of Triton, of numba, and as ObjectCode of cuda.core"
    )
