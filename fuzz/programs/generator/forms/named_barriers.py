"""Barriers that have numbers: some warps meet at one, others at another; those who announce need not wait."""

from .. import lanes as together
from ..kernel import form
from ..lanes import predicate, spend, variable


def meet(kernel):
    """A barrier of all, of a number that no party has: some may still be at theirs."""
    kernel.emit("__syncthreads();")
    spend(kernel, 8)


def numbers(kernel, count):
    return kernel.rng.sample(range(1, 16), count)


@form(weight=2, needs="block", where="kernel", cost=80)
def two_parties(kernel):
    """Two parties of warps, each with a barrier of its own and its own cells."""
    if kernel.warps < 2:
        return
    kernel.need("together")
    rng = kernel.rng
    cells = kernel.shared("u32", kernel.threads)
    if cells is None:
        return
    first = rng.randrange(1, kernel.warps)
    border = first * 32
    barriers = numbers(kernel, 2)
    variable_number = rng.random() < 0.4
    sides = [(0, border, first), (border, kernel.threads - border, kernel.warps - first)]
    if variable_number:
        number = variable(kernel, "u32", f"warp < {first}u ? {barriers[0]}u : {barriers[1]}u")
        size = variable(kernel, "u32", f"warp < {first}u ? {32 * sides[0][2]}u : {32 * sides[1][2]}u")
        start = variable(kernel, "u32", f"warp < {first}u ? 0u : {border}u")
        many = variable(kernel, "u32", f"warp < {first}u ? {border}u : {sides[1][1]}u")
        rounds = rng.randrange(1, 4)
        step = kernel.fresh("i")
        with kernel.block(f"for (u32 {step} = 0; {step} < {rounds}u + (warp < {first}u ? 0u : {rng.randrange(2)}u); ++{step})", "warp", trips=rounds):
            body(kernel, cells, start, many, number, size)
    else:
        for side, (start, many, warps) in enumerate(sides):
            with kernel.block(f"if (warp < {first}u)" if side == 0 else "else", "warp"):
                for _ in range(rng.randrange(1, 3)):
                    body(kernel, cells, f"{start}u", f"{many}u", f"{barriers[side]}", f"{32 * warps}u")
    meet(kernel)


def body(kernel, cells, start, many, number, size):
    """A phase of a party."""
    rng = kernel.rng
    kernel.emit(f"{cells}[thread] = {kernel.expression('u32', 1)};")
    apart = rng.random() < 0.3 and kernel.full_warps
    if apart:
        # Lanes of a warp come one after the other, or from two places.
        if rng.random() < 0.5:
            with kernel.block(f"if ({predicate(kernel)})"):
                together.delay(kernel)
                kernel.emit(f"meet_apart({number}, {size});")
            with kernel.block("else"):
                kernel.emit(f"meet_apart({number}, {size});")
        else:
            with kernel.block(f"if ({predicate(kernel)})"):
                together.delay(kernel)
            kernel.emit(f"meet_apart({number}, {size});")
    elif rng.random() < 0.3:
        name = rng.choice(("meet_count", "meet_and", "meet_or"))
        kernel.fold(f"(u64){name}({number}, {size}, {predicate(kernel)})")
    else:
        kernel.emit(f"meet({number}, {size});")
    kernel.fold(f"{cells}[{start} + (thread * {rng.randrange(1, 9)}u + {rng.randrange(64)}u) % {many}]")
    kernel.emit(f"meet({number}, {size});")
    spend(kernel, 30)


@form(weight=2, needs="block", where="kernel", cost=120)
def producers_and_consumers(kernel):
    """Warps that fill cells and announce it, and warps that wait, read, and announce that the cells are free."""
    if kernel.warps < 2:
        return
    kernel.need("together")
    rng = kernel.rng
    makers = rng.randrange(1, kernel.warps)
    count = min(makers * 32, kernel.threads)
    buffers = rng.choice((1, 1, 2, 3))
    cells = kernel.shared("u32", count * buffers)
    if cells is None:
        return
    all_ = 32 * kernel.warps
    barriers = numbers(kernel, 2 * buffers)
    full, free = barriers[:buffers], barriers[buffers:]
    rounds = rng.randrange(1, 4)
    apart = "_apart" if kernel.full_warps and rng.random() < 0.3 else ""
    # Each round goes through all buffers, so the numbers can be literals.
    step = kernel.fresh("i")
    with kernel.block(f"if (warp < {makers}u)", "warp"):
        with kernel.block(f"for (u32 {step} = 0; {step} < {rounds}u; ++{step})", "always", trips=rounds):
            for buffer in range(buffers):
                with kernel.block(f"if ({step} != 0u)", "always"):
                    kernel.emit(f"meet({free[buffer]}, {all_}u);")
                kernel.emit(f"{cells}[{buffer * count}u + thread] = {kernel.expression('u32', 1)} + {step};")
                if rng.random() < 0.3:
                    with kernel.block(f"if ({predicate(kernel)})"):
                        together.delay(kernel)
                kernel.emit("__threadfence_block();")
                kernel.emit(f"announce{apart}({full[buffer]}, {all_}u);")
                spend(kernel, 20)
    with kernel.block("else", "warp"):
        with kernel.block(f"for (u32 {step} = 0; {step} < {rounds}u; ++{step})", "always", trips=rounds):
            for buffer in range(buffers):
                kernel.emit(f"meet({full[buffer]}, {all_}u);")
                kernel.fold(f"{cells}[{buffer * count}u + (thread * {rng.randrange(1, 9)}u + {kernel.expression('u32', 1)}) % {count}u]")
                if rng.random() < 0.3:
                    with kernel.block(f"if ({predicate(kernel)})"):
                        together.delay(kernel)
                with kernel.block(f"if ({step} + 1u < {rounds}u)", "always"):
                    kernel.emit(f"announce{apart}({free[buffer]}, {all_}u);")
                spend(kernel, 20)
    meet(kernel)


@form(weight=1, needs="block", where="kernel", cost=60)
def chain_of_warps(kernel):
    """Warps that go one after the other: each waits for the one before and adds to what it left."""
    if not 2 <= kernel.warps <= 8:
        return
    kernel.need("together")
    total = kernel.shared("u32", 1)
    if total is None:
        return
    barriers = numbers(kernel, kernel.warps - 1)
    kernel.emit(f"if (thread == 0u) {total}[0] = {kernel.rng.getrandbits(16)}u;")
    meet(kernel)
    value = variable(kernel, "u32", kernel.expression("u32", 1))
    for turn in range(kernel.warps):
        with kernel.block(f"if (warp == {turn}u)", "warp"):
            if turn:
                kernel.emit(f"meet({barriers[turn - 1]}, 64u);")
            seen = variable(kernel, "u32", f"{total}[0]")
            kernel.emit("__syncwarp();")
            lead = variable(kernel, "u32", f"__shfl_sync(lanes, {value}, 0)")
            kernel.emit(f"if (lane == 0u) {total}[0] = {seen} * {kernel.rng.randrange(3, 99, 2)}u + {lead};")
            kernel.fold(seen)
            kernel.emit("__threadfence_block();")
            if turn + 1 < kernel.warps:
                kernel.emit("__syncwarp();")
                kernel.emit(f"announce({barriers[turn]}, 64u);")
    meet(kernel)
    kernel.fold(f"{total}[0]")
    meet(kernel)
