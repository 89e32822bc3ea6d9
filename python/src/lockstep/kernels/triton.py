"""Kernels of Triton: compiled by Triton itself, in this process, for the simulated GPU.

Triton asks its driver which GPU there is. While it compiles, a driver that knows nothing but the target stands in
for it, under a device of its own, so that neither what Triton compiled for a real GPU nor its driver is touched.
"""

from __future__ import annotations

import contextlib
import inspect
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lockstep.errors import LockstepError
from lockstep.kernels.launch import Argument, Launch, Shape, Target, as_array, extent, is_array

#: How Triton's launcher lays numbers out, by their type in the signature.
_NUMBERS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d",
}  # fmt: skip

_WARP = 32


def knows(kernel: Any) -> bool:
    """Whether it comes from Triton."""
    return type(kernel).__module__.startswith("triton.")


def prepare(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any], shape: Shape, target: Target) -> Launch:
    """Compiles the kernel for these arguments."""
    if type(kernel).__name__ != "JITFunction":
        raise LockstepError(
            f"a {type(kernel).__name__} of Triton measures or chooses on a GPU; give the function below it (`.fn`) "
            "with the options of one configuration"
        )
    if shape.block is not None or shape.shared or shape.entry is not None:
        raise LockstepError("Triton decides block, shared memory and entry of a kernel by itself; leave them out")
    compiled = _compile(kernel, arguments, options, target)
    metadata = compiled.metadata
    _refuse(metadata)
    bound = _bound(kernel, arguments, options)
    grid = extent(shape.grid(bound) if callable(shape.grid) else shape.grid, "grid")
    block = (metadata.num_warps * _WARP, 1, 1)
    launch = Launch(compiled.asm["cubin"], metadata.name, grid, block, metadata.shared)
    for name, kind in compiled.src.signature.items():
        if kind != "constexpr":
            launch.arguments.append(_argument(launch, name, kind, bound[name]))
    blocks = grid[0] * grid[1] * grid[2]
    # Versions of Triton differ in how many of these their kernels have.
    for scratch in ("global_scratch_size", "profile_scratch_size"):
        launch.arguments.append({"scratch": blocks * (getattr(metadata, scratch, 0) or 0), "optional": True})
    return launch


def _compile(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any], target: Target) -> Any:
    stand_ins = [_StandIn(value) if is_array(value) else value for value in arguments]
    named = {name: _StandIn(value) if is_array(value) else value for name, value in options.items()}
    with _active(_Driver(target)):
        return kernel.warmup(*stand_ins, grid=(1,), **named)


def _refuse(metadata: Any) -> None:
    if getattr(metadata, "num_ctas", 1) != 1:
        raise LockstepError(
            f"the kernel wants clusters of {metadata.num_ctas} blocks, which are not launched from here"
        )
    if getattr(metadata, "launch_cooperative_grid", False):
        raise LockstepError("the kernel wants a cooperative grid, which is not launched from here")


def _bound(kernel: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(kernel.fn)
    bound = parameters.bind(
        *arguments, **{name: value for name, value in options.items() if name in parameters.parameters}
    )
    bound.apply_defaults()
    return dict(bound.arguments)


def _argument(launch: Launch, name: str, kind: Any, value: Any) -> Argument:
    if isinstance(kind, str) and kind.startswith("*") and is_array(value):
        return launch.buffer(value)
    if isinstance(kind, str) and kind in _NUMBERS:
        return {"bytes": struct.pack("<" + _NUMBERS[kind], value).hex()}
    raise LockstepError(f"`{name}` is a {kind} for Triton; arrays, integers and floating-point numbers can be given")


class _StandIn:
    """An array as Triton looks at it: its type, and an address that is aligned as allocations are."""

    def __init__(self, value: Any) -> None:
        self.dtype = as_array(value).dtype.name

    @staticmethod
    def data_ptr() -> int:
        """A multiple of everything."""
        return 0


class _Driver:
    """A driver of Triton that has a target and nothing else."""

    def __init__(self, target: Target) -> None:
        self._capability = target.major * 10 + target.minor

    def get_current_device(self) -> str:
        """A device under which Triton keeps what it compiles for this target."""
        return f"lockstep-{self._capability}"

    def get_current_stream(self, _device: str) -> int:
        """None."""
        return 0

    def get_current_target(self) -> Any:
        """What is compiled for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self._capability, _WARP)


@contextlib.contextmanager
def _active(driver: _Driver) -> Iterator[None]:
    from triton.runtime import driver as drivers

    # Asking for the active driver looks for a GPU, so it is taken as it lies.
    held = vars(drivers)
    before = held.get("_active", held.get("active"))
    drivers.set_active(driver)
    try:
        yield
    finally:
        drivers.set_active(before)
