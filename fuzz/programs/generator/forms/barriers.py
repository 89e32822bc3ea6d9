"""Barriers of a whole block: phases of shared memory, votes of the block, barriers after lanes have parted."""

from .. import lanes as together
from ..kernel import form
from ..lanes import number, predicate, spend, variable


def meet(kernel):
    """Writes a barrier that all threads of the block reach."""
    kernel.need("together")
    choice = kernel.rng.randrange(6)
    if choice < 3:
        kernel.emit("__syncthreads();")
    elif choice == 3:
        kernel.emit(f"meet_all({kernel.rng.randrange(16)});")
    elif choice == 4:
        kernel.emit(f"meet({kernel.rng.randrange(16)}, {32 * kernel.warps}u);")
    else:
        kernel.fold(vote(kernel))
    spend(kernel, 8)


def vote(kernel):
    """The text of a barrier that answers what the block's threads said."""
    kernel.need("together")
    name = kernel.rng.choice(("__syncthreads_count", "__syncthreads_and", "__syncthreads_or", "meet_count", "meet_and", "meet_or"))
    said = predicate(kernel)
    if name.startswith("meet"):
        return f"(u64){name}({kernel.rng.randrange(16)}, {32 * kernel.warps}u, {said})"
    if name == "__syncthreads_count":
        return f"(u64)__syncthreads_count({said})"
    return f"(u64)({name}({said}) != 0)"


def other(kernel, count):
    """The text of the number of some cell among `count`."""
    rng = kernel.rng
    return rng.choice((f"(thread + {rng.randrange(1, count + 1)}u) % {count}u", f"{count - 1}u - thread % {count}u",
                       f"({kernel.expression('u32', 1)}) % {count}u", f"(thread * {rng.choice((3, 5, 7, 33))}u) % {count}u"))


def apart(kernel):
    """Lets lanes part before a barrier that they then reach one after the other."""
    chance = kernel.rng.random()
    if chance < 0.25:
        with kernel.block(f"if ({predicate(kernel)})"):
            together.delay(kernel)
    elif chance < 0.4 and kernel.converged:
        together.code(kernel, together.everyone(kernel), depth=1)


@form(weight=4, needs="block", where="kernel", cost=40)
def phases(kernel):
    """Shared memory that is written, met about and read by others, once or some times."""
    rng = kernel.rng
    type_ = rng.choice(("u32", "u32", "u64", "f32", "u8", "u16", "i32", "f64"))
    cells = kernel.shared(type_, kernel.threads)
    if cells is None:
        return
    for _ in range(rng.choice((1, 1, 2, 3))):
        apart(kernel)
        kernel.emit(f"{cells}[thread] = {kernel.expression(type_, 1)};")
        meet(kernel)
        kernel.declare(type_, f"{cells}[{other(kernel, kernel.threads)}]")
        kernel.fold_value(kernel.frame.variables[-1].name)
        if rng.random() < 0.3:
            kernel.fold_value(f"{cells}[{other(kernel, kernel.threads)}]")
        apart(kernel)
        meet(kernel)
        spend(kernel, 20)


@form(weight=2, needs="block", where="kernel", cost=15)
def block_votes(kernel):
    kernel.fold(vote(kernel))


@form(weight=2, needs="block", where="kernel", cost=120)
def phases_in_a_loop(kernel):
    """A loop of phases over one array, as long as the block likes; two arrays take turns, or two barriers stand in a round."""
    rng = kernel.rng
    trips = rng.randrange(2, 6)
    if not kernel.room(trips, 40):
        return
    count = kernel.threads
    turns = rng.random() < 0.5
    cells = kernel.shared("u32", count * (2 if turns else 1))
    if cells is None:
        return
    rounds = f"{trips}u" if rng.random() < 0.5 else f"({kernel.expression('u32', 1, uniform='block')}) % {trips + 1}u"
    rounds = variable(kernel, "u32", rounds)
    kernel.emit(f"{cells}[thread] = {kernel.expression('u32', 1)};")
    if turns:
        kernel.emit(f"{cells}[thread + {count}u] = thread;")
    meet(kernel)
    step = kernel.fresh("i")
    got = kernel.fresh("w")
    with kernel.block(f"for (u32 {step} = 0; {step} < {rounds}; ++{step})", "always", trips=trips):
        if turns:
            now = variable(kernel, "u32", f"({step} & 1u) * {count}u")
            then = f"{count}u - {now}"
            kernel.emit(f"u32 {got} = {cells}[{now} + {other(kernel, count)}];")
            kernel.emit(f"{cells}[{then} + thread] = {got} * {rng.randrange(3, 99, 2)}u + {kernel.expression('u32', 1)};")
            apart(kernel)
            meet(kernel)
        else:
            kernel.emit(f"u32 {got} = {cells}[{other(kernel, count)}];")
            apart(kernel)
            meet(kernel)
            kernel.emit(f"{cells}[thread] = {got} ^ {kernel.expression('u32', 1)};")
            meet(kernel)
        kernel.fold(got)
    meet(kernel)
    kernel.fold(f"{cells}[{other(kernel, count)}]")


@form(weight=1.5, needs="block", where="kernel", cost=100)
def tree(kernel):
    """A sum over the block in halves, with a barrier outside the branch of those who add."""
    kernel.need("together")
    rng = kernel.rng
    type_ = rng.choice(("u32", "u64"))
    cells = kernel.shared(type_, kernel.threads)
    if cells is None:
        return
    top = 1
    while top < kernel.threads:
        top *= 2
    kernel.emit(f"{cells}[thread] = {kernel.expression(type_, 1)};")
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = {top // 2}u; {step}; {step} >>= 1)", "always", trips=8):
        meet(kernel)
        with kernel.block(f"if (thread < {step} && thread + {step} < {kernel.threads}u)"):
            kernel.emit(f"{cells}[thread] {rng.choice(('+=', '^='))} {cells}[thread + {step}];")
            if rng.random() < 0.3:
                together.delay(kernel)
    meet(kernel)
    kernel.fold(f"{cells}[0]")
    meet(kernel)


@form(weight=1, needs="block", where="kernel", cost=60)
def phase_in_a_function(kernel):
    """A function that the whole block calls and in which it meets."""
    kernel.need("together")
    rng = kernel.rng
    cells = kernel.fresh("cells")
    with kernel.function("u32", (("u32", "given_value"), ("u32 *", cells))) as name:
        kernel.emit(f"{cells}[thread_in_block()] = given_value;")
        if rng.random() < 0.5:
            with kernel.block(f"if ({predicate(kernel)})"):
                together.delay(kernel)
        kernel.emit("__syncthreads();")
        got = variable(kernel, "u32", f"{cells}[(thread_in_block() * {rng.randrange(1, 9)}u + {rng.randrange(9)}u) % {kernel.threads}u]")
        kernel.fold(got)
        kernel.emit("__syncthreads();")
        kernel.emit(f"return {got} ^ (u32)h;")
    shared = kernel.shared("u32", kernel.threads)
    if shared is None:
        return
    for _ in range(rng.randrange(1, 3)):
        kernel.declare("u32", f"{name}({kernel.expression('u32', 1)}, {shared})")
        kernel.fold(kernel.frame.variables[-1].name)


@form(weight=1, needs="block", where="kernel", cost=40)
def histogram(kernel):
    """Cells that the block clears, counts in and reads."""
    kernel.need("together")
    rng = kernel.rng
    count = rng.choice((1, 4, 7, 16, 40))
    cells = kernel.shared("u32", count)
    if cells is None:
        return
    with kernel.block(f"if (thread < {min(count, kernel.threads)}u)"):
        for first in range(0, count, kernel.threads):
            kernel.emit(f"{'' if first + kernel.threads <= count else f'if (thread + {first}u < {count}u) '}{cells}[thread + {first}u] = 0;")
    meet(kernel)
    kernel.emit(f"atomicAdd(&{cells}[{number(kernel, count)}], {rng.choice(('1u', 'thread', kernel.expression('u32', 1)))});")
    meet(kernel)
    kernel.fold(f"{cells}[{other(kernel, count)}]")
    meet(kernel)
