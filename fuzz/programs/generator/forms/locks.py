"""Locks: taken by threads, warps or blocks, spinning or by ticket. What they guard does not depend on who came first."""

from .. import lanes as together
from ..kernel import form
from ..lanes import predicate, variable


def guarded(kernel, cells):
    """What only one does at a time: several plain words that belong together."""
    value = kernel.expression("u32", 1)
    rng = kernel.rng
    amount = variable(kernel, "u32", value)
    kernel.emit(f"{cells}[0] = {cells}[0] + {amount};")
    if rng.random() < 0.7:
        kernel.emit(f"{cells}[1] = {cells}[1] ^ {amount} * {rng.randrange(3, 99, 2)}u;")
    if rng.random() < 0.5:
        kernel.emit(f"{cells}[2] = {cells}[2] + 1u;")
    if rng.random() < 0.4:
        kernel.emit(f"if ({amount} > {cells}[3]) {cells}[3] = {amount};")


def release(kernel, statement):
    """Writes what another lane of this warp may wait for.

    A compiler may move the meeting of a warp's lanes at the next barrier before a plain write that precedes it, and then
    who waits for the write never comes. Not so out of a loop, which ends after one round but for all it can know.
    """
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = 0; {step} <= ((u32)(u64)output & 1u); ++{step})", "thread"):
        kernel.emit(statement)


def few(kernel):
    """Whether so few threads want the lock that they are soon through."""
    return kernel.frame.scale * kernel.threads * kernel.blocks <= 128


def fence(kernel):
    return kernel.rng.choice(("__threadfence();", "__threadfence();", "__threadfence_system();"))


def words(kernel):
    """Six words of the launch: two for the lock and four that it guards; pointers to both."""
    offset = kernel.memory(32)
    return (variable(kernel, "u32 *", f"(u32 *)(memory + {offset}u)"),
            variable(kernel, "volatile u32 *", f"(volatile u32 *)(memory + {offset + 8}u)"))


@form(weight=0.8, where="kernel", cost=60)
def lock_of_threads(kernel):
    """A lock that lanes of a warp take one after the other, in one of the ways that people write it."""
    if not few(kernel):
        return
    kernel.need("together")
    rng = kernel.rng
    lock, cells = words(kernel)
    shape = rng.randrange(4)
    if shape == 0:
        wait = rng.choice(("", " sleep_for(20u);"))
        kernel.emit(f"while (atomicCAS({lock}, 0u, 1u) != 0u) {{{wait} }}")
        kernel.emit(fence(kernel))
        guarded(kernel, cells)
        kernel.emit(fence(kernel))
        release(kernel, f"atomicExch({lock}, 0u);")
    elif shape == 1:
        done = variable(kernel, "bool", "false")
        with kernel.block(f"while (!{done})", "thread"):
            with kernel.block(f"if (atomicCAS({lock}, 0u, 1u) == 0u)", "thread"):
                kernel.emit(fence(kernel))
                guarded(kernel, cells)
                kernel.emit(fence(kernel))
                kernel.emit(f"atomicExch({lock}, 0u);")
                kernel.emit(f"{done} = true;")
    elif shape == 2:
        with kernel.block("for (;;)", "thread"):
            with kernel.block(f"if (atomicExch({lock}, 1u) == 0u)", "thread"):
                kernel.emit(fence(kernel))
                guarded(kernel, cells)
                kernel.emit(fence(kernel))
                release(kernel, f"*(volatile u32 *){lock} = 0u;")
                kernel.emit("break;")
    else:
        # A ticket says whose turn it is.
        ticket = variable(kernel, "u32", f"atomicAdd({lock}, 1u)")
        kernel.emit(f"while (*(volatile u32 *)({lock} + 1) != {ticket}) {{ {rng.choice(('', 'sleep_for(10u); '))}}}")
        kernel.emit(fence(kernel))
        guarded(kernel, cells)
        kernel.emit(fence(kernel))
        release(kernel, f"atomicAdd({lock} + 1, 1u);")


@form(weight=0.6, where="kernel", cost=60)
def lock_of_some(kernel):
    """A lock that only some lanes want; the others go on to what follows."""
    if not few(kernel):
        return
    with kernel.block(f"if ({predicate(kernel)})"):
        lock_of_threads(kernel)


@form(weight=0.8, needs="warp", where="kernel", cost=80)
def lock_of_warps(kernel):
    """A lock that a lane takes for its warp; all lanes then work on what it guards."""
    if kernel.frame.scale * kernel.warps * kernel.blocks > 64:
        return
    kernel.need("together")
    rng = kernel.rng
    offset = kernel.memory(16 + 128)
    lock = variable(kernel, "u32 *", f"(u32 *)(memory + {offset}u)")
    cells = variable(kernel, "volatile u32 *", f"(volatile u32 *)(memory + {offset + 16}u)")
    taker = rng.choice(("lane == 0u", "lane == (u32)__ffs(lanes) - 1u", "lane == 31u - (u32)__clz(lanes)"))
    with kernel.block(f"if ({taker})"):
        kernel.emit(f"while (atomicCAS({lock}, 0u, 1u) != 0u) {{ }}")
        kernel.emit("__threadfence();")
    kernel.emit("__syncwarp(lanes);")
    kernel.emit(f"{cells}[lane] = {cells}[lane] + {kernel.expression('u32', 1)};")
    kernel.emit("__threadfence();")
    kernel.emit("__syncwarp(lanes);")
    with kernel.block(f"if ({taker})"):
        kernel.emit(f"atomicExch({lock}, 0u);")


@form(weight=0.8, needs="block", where="kernel", cost=80)
def lock_of_blocks(kernel):
    """A lock that a thread takes for its block, between barriers."""
    kernel.need("together")
    offset = kernel.memory(16 + 4 * kernel.threads)
    lock = variable(kernel, "u32 *", f"(u32 *)(memory + {offset}u)")
    cells = variable(kernel, "volatile u32 *", f"(volatile u32 *)(memory + {offset + 16}u)")
    taker = kernel.rng.choice(("thread == 0u", f"thread == {kernel.threads - 1}u"))
    with kernel.block(f"if ({taker})"):
        kernel.emit(f"while (atomicCAS({lock}, 0u, 1u) != 0u) {{ sleep_for(50u); }}")
        kernel.emit("__threadfence();")
    kernel.emit("__syncthreads();")
    kernel.emit(f"{cells}[thread] = {cells}[thread] + {kernel.expression('u32', 1)};")
    kernel.emit("__threadfence();")
    kernel.emit("__syncthreads();")
    with kernel.block(f"if ({taker})"):
        kernel.emit(f"atomicExch({lock}, 0u);")


@form(weight=0.8, needs="block", where="kernel", cost=60)
def messages(kernel):
    """A thread leaves words and raises a flag; another waits for the flag and reads them. They may be lanes of one warp."""
    if kernel.threads < 2:
        return
    kernel.need("together")
    rng = kernel.rng
    words_ = rng.randrange(1, 4)
    places = kernel.threads
    cells = variable(kernel, "volatile u32 *", f"(volatile u32 *){kernel.block_memory(4 * places * words_)}")
    flags = kernel.shared("u32", places) if rng.random() < 0.6 else None
    if flags is None:
        flags = variable(kernel, "u32 *", f"(u32 *){kernel.block_memory(4 * places)}")
    fence_ = rng.choice(("__threadfence();", "__threadfence_block();"))
    kernel.emit(f"{flags}[thread] = 0u;")
    kernel.emit("__syncthreads();")
    # All wait for a thread further on, or all but the last for the next one: a chain with an end.
    chain = rng.random() < 0.5
    raised = kernel.rng.choice((f"*(volatile u32 *)&{flags}[thread] = 1u;", f"atomicExch(&{flags}[thread], 1u);"))

    def leave(value):
        for word in range(words_):
            kernel.emit(f"{cells}[thread * {words_}u + {word}u] = {value} + {rng.randrange(99)}u;")
        kernel.emit(fence_)
        release(kernel, raised)

    if chain:
        got = variable(kernel, "u32", kernel.expression("u32", 1))
        with kernel.block(f"if (thread + 1u < {places}u)"):
            kernel.emit(f"while (*(volatile u32 *)&{flags}[thread + 1u] == 0u) {{ }}")
            kernel.emit(fence_)
            kernel.emit(f"{got} = {got} * 5u + {cells}[(thread + 1u) * {words_}u];")
        leave(got)
        kernel.fold(got)
    else:
        source = variable(kernel, "u32", f"(thread + {rng.randrange(1, places)}u) % {places}u")
        if rng.random() < 0.4:
            with kernel.block(f"if ({predicate(kernel)})"):
                together.delay(kernel)
        leave(kernel.expression("u32", 1))
        kernel.emit(f"while (*(volatile u32 *)&{flags}[{source}] == 0u) {{ }}")
        kernel.emit(fence_)
        for word in range(words_):
            kernel.fold(f"{cells}[{source} * {words_}u + {word}u]")
    kernel.emit("__syncthreads();")
