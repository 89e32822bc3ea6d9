"""Counted barriers in shared memory: threads arrive and wait apart, in phases, and some leave."""

from .. import lanes as together
from ..kernel import form
from ..lanes import predicate, spend, variable


def gates(kernel, count):
    """Gates that nobody has used; their name."""
    kernel.need("together")
    return kernel.shared("u64", count, 8)


def make(kernel, gate, expected):
    """Makes a gate and lets the block know."""
    kernel.emit(f"if (thread == {kernel.rng.choice((0, kernel.threads - 1))}u) gate_make({gate}, {expected}u);")
    kernel.emit("__syncthreads();")


def end(kernel, gate):
    """Ends a gate that everybody has passed, so that this code may run again."""
    kernel.emit("__syncthreads();")
    kernel.emit(f"if (thread == 0u) gate_end({gate});")
    kernel.emit("__syncthreads();")


@form(weight=1.5, needs="block", where="kernel", cost=120)
def arrive_and_wait(kernel):
    """A phase of shared memory, or some, about a gate: between arriving and waiting each thread does other work."""
    rng = kernel.rng
    gate = gates(kernel, 1)
    cells = gate and kernel.shared("u32", kernel.threads * 2)
    if not cells:
        return
    count = kernel.threads
    twice = rng.random() < 0.3
    make(kernel, gate, count * (2 if twice else 1))
    by_parity = rng.random() < 0.5
    rounds = rng.randrange(1, 4)
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = 0; {step} < {rounds}u; ++{step})", "always", trips=rounds):
        # Two halves take turns, so that one gate in a round is enough.
        now = variable(kernel, "u32", f"({step} & 1u) * {count}u")
        kernel.emit(f"{cells}[{now} + thread] = {kernel.expression('u32', 1)};")
        shape = rng.randrange(3)
        if shape == 0:
            with kernel.block(f"if ({predicate(kernel)})"):
                together.delay(kernel)
        arrive = f"gate_arrive({gate}, {2 if twice else 1}u)"
        if by_parity:
            kernel.emit(arrive + ";")
            together.ordinary(kernel)
            kernel.emit(f"gate_wait_parity({gate}, {step} & 1u);")
        else:
            state = variable(kernel, "u64", arrive)
            together.ordinary(kernel)
            if rng.random() < 0.5:
                kernel.emit(f"gate_wait({gate}, {state});")
            else:
                kernel.emit(f"while (!gate_passed({gate}, {state})) sleep_for({rng.choice((0, 20, 100))}u);")
        kernel.fold(f"{cells}[{now} + (thread * {rng.randrange(1, 9)}u + {rng.randrange(99)}u) % {count}u]")
        spend(kernel, 40)
    end(kernel, gate)


@form(weight=1, needs="block", where="kernel", cost=120)
def leave(kernel):
    """Threads that leave a gate: later phases do not wait for them."""
    rng = kernel.rng
    if kernel.threads < 2:
        return
    gate = gates(kernel, 1)
    total = gate and kernel.shared("u32", 4)
    if not total:
        return
    make(kernel, gate, kernel.threads)
    kernel.emit(f"if (thread < 4u) {total}[thread] = 0u;")
    kernel.emit("__syncthreads();")
    stays = rng.choice((f"thread >= {rng.randrange(1, kernel.threads)}u", f"(thread & 1u) == {rng.randrange(2)}u",
                        f"thread == {rng.randrange(kernel.threads)}u"))
    kernel.emit(f"atomicAdd(&{total}[0], {kernel.expression('u32', 1)});")
    # ptxas may compute a plain address in one uniform register on both sides, though the branch parts a warp.
    gate = variable(kernel, "u64 *", f"(u64 *)unknown((u64){gate})")
    with kernel.block(f"if ({stays})"):
        for phase in range(rng.randrange(2, 4)):
            kernel.emit(f"gate_arrive({gate}, 1u);")
            if phase == 1:
                together.delay(kernel)
            kernel.emit(f"gate_wait_parity({gate}, {phase & 1}u);")
            kernel.fold(f"*(volatile u32 *)&{total}[{phase}]")
            kernel.emit(f"atomicAdd(&{total}[{phase + 1}], {kernel.expression('u32', 1)});")
    with kernel.block("else"):
        if rng.random() < 0.4:
            together.delay(kernel)
        kernel.emit(f"gate_arrive_and_leave({gate});")
    end(kernel, gate)


@form(weight=1, needs="block", where="kernel", cost=150)
def makers_and_users(kernel):
    """Threads that fill cells and others that read them, by two gates for each of some buffers."""
    rng = kernel.rng
    if kernel.threads < 4:
        return
    makers = rng.choice((kernel.threads // 2, kernel.threads // 4, min(32, kernel.threads // 2), 1)) or 1
    users = kernel.threads - makers
    buffers = rng.choice((1, 2, 2, 3))
    gate = gates(kernel, 2 * buffers)
    cells = gate and kernel.shared("u32", buffers * makers)
    if not cells:
        return
    for buffer in range(buffers):
        kernel.emit(f"if (thread == 0u) gate_make({gate} + {buffer}u, {makers}u);")
        kernel.emit(f"if (thread == 0u) gate_make({gate} + {buffers + buffer}u, {users}u);")
    kernel.emit("__syncthreads();")
    rounds = rng.randrange(1, 6)
    step, buffer, turn = kernel.fresh("i"), kernel.fresh("w"), kernel.fresh("w")
    loop = f"for (u32 {step} = 0; {step} < {rounds}u; ++{step})"
    with kernel.block(f"if (thread < {makers}u)"):
        with kernel.block(loop, "thread", trips=rounds):
            kernel.emit(f"u32 {buffer} = {step} % {buffers}u;")
            kernel.emit(f"u32 {turn} = {step} / {buffers}u;")
            # The first time round, all buffers are free: the phase before the first counts as over.
            kernel.emit(f"gate_wait_parity({gate} + {buffers}u + {buffer}, ({turn} & 1u) ^ 1u);")
            kernel.emit(f"{cells}[{buffer} * {makers}u + thread] = {kernel.expression('u32', 1)} * ({step} + 1u);")
            kernel.emit(f"gate_arrive({gate} + {buffer}, 1u);")
    with kernel.block("else"):
        with kernel.block(loop, "thread", trips=rounds):
            kernel.emit(f"u32 {buffer} = {step} % {buffers}u;")
            kernel.emit(f"u32 {turn} = {step} / {buffers}u;")
            kernel.emit(f"gate_wait_parity({gate} + {buffer}, {turn} & 1u);")
            kernel.fold(f"{cells}[{buffer} * {makers}u + (thread * {rng.randrange(1, 9)}u + {step}) % {makers}u]")
            if rng.random() < 0.3:
                together.delay(kernel)
            kernel.emit(f"gate_arrive({gate} + {buffers}u + {buffer}, 1u);")
    kernel.emit("__syncthreads();")
    for buffer in range(2 * buffers):
        kernel.emit(f"if (thread == 0u) gate_end({gate} + {buffer}u);")
    kernel.emit("__syncthreads();")
