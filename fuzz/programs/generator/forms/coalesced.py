"""Groups of the lanes that happen to run together: only what does not depend on who they are is kept."""

from .. import lanes as together
from ..kernel import form
from ..lanes import number, predicate, variable

from .tiles import SPACE, act, allowed


@form(weight=1, where="kernel", cost=80)
def shared_addition(kernel):
    """One addition for those who are there, however many: all places together are certain."""
    if not allowed(kernel):
        return
    rng = kernel.rng
    cell = f"(u32 *)(memory + {kernel.memory(16)}u)"
    total = f"(u64 *)(memory + {kernel.memory(16)}u)"
    group, base = kernel.fresh("g"), kernel.fresh("w")
    with kernel.block(f"if ({predicate(kernel)})"):
        if rng.random() < 0.4:
            together.delay(kernel)
        kernel.emit(f"auto {group} = {SPACE}::coalesced_threads();")
        kernel.emit(f"u32 {base} = 0u;")
        kernel.emit(f"if ({group}.thread_rank() == 0u) {base} = atomicAdd({cell}, (u32){group}.size());")
        kernel.emit(f"{base} = {group}.shfl({base}, 0) + (u32){group}.thread_rank();")
        kernel.emit(f"atomicAdd({total}, (u64){base} + 1u);")


@form(weight=1, where="kernel", cost=80)
def whoever(kernel):
    """Sums over whoever is there, which their first member adds to a sum over all."""
    if not allowed(kernel):
        return
    rng = kernel.rng
    group = variable(kernel, "auto", f"{SPACE}::coalesced_threads()", "g")
    cell = f"(u32 *)(memory + {kernel.memory(16)}u)"
    value = kernel.expression("u32", 1)
    if rng.random() < 0.5:
        kernel.declare("u32", f"{SPACE}::reduce({group}, (u32)({value}), {SPACE}::plus<u32>())", name=kernel.fresh("w"))
        name = kernel.frame.variables.pop().name
        kernel.emit(f"if ({group}.thread_rank() == 0u) atomicAdd({cell}, {name});")
    else:
        part = variable(kernel, "auto", f"{SPACE}::labeled_partition({group}, {number(kernel, 3)})", "g")
        kernel.emit(f"atomicAdd({cell}, {part}.thread_rank() == 0u ? (u32){part}.size() : 0u);")
    kernel.emit(f"{group}.sync();")


@form(weight=1.5, needs="warp", where="kernel", cost=150)
def met_before(kernel):
    """Parts of a warp made by a vote that all lanes take, as groups within a branch that all of a part enter."""
    if not allowed(kernel) or not kernel.full_warps:
        return
    said = variable(kernel, "bool", predicate(kernel))
    warp = variable(kernel, "auto", f"{SPACE}::tiled_partition<32>({SPACE}::this_thread_block())", "g")
    part = variable(kernel, "auto", f"{SPACE}::binary_partition({warp}, {said})", "g")
    with kernel.block(f"if ({said})"):
        together.delay(kernel)
        act(kernel, part, 0)
    act(kernel, warp, 32)
