"""What `cuda.core` compiled or linked: an `ObjectCode`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.errors import LockstepError
from lockstep.kernels import image
from lockstep.kernels.launch import Launch, Shape, Target

#: Kinds of code that the driver loads.
_LOADED = ("cubin", "ptx", "fatbin")


def knows(kernel: Any) -> bool:
    """Whether it comes from `cuda.core`."""
    return type(kernel).__module__.startswith("cuda.core")


def prepare(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any], shape: Shape, _target: Target) -> Launch:
    """The bytes that the object holds."""
    if type(kernel).__name__ != "ObjectCode":
        raise LockstepError(
            f"a {type(kernel).__name__} of cuda.core belongs to the process that loaded it; give the ObjectCode that "
            "`Program.compile` or `Linker.link` answered, and the name of the kernel as `entry`"
        )
    if kernel.code_type not in _LOADED:
        raise LockstepError(
            f"the ObjectCode holds {kernel.code_type}, which no driver loads; compile or link it to one of "
            f"{', '.join(_LOADED)}"
        )
    return image.of_code(image.code_of(kernel.code), arguments, options, shape)
