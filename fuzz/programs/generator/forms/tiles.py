"""Cooperative groups of fixed size and partitions of them: what the library makes of a block, a tile, a label."""

from .. import lanes as together
from ..kernel import form
from ..lanes import number, predicate, spend, variable

SPACE = "cooperative_groups"


def allowed(kernel):
    """Whether this program may include the library, which costs more to compile than the kernels do."""
    if "groups" not in kernel.program.needs:
        return False
    kernel.need("together")
    kernel.host = False
    return True


def member(kernel, group, size):
    """The text of the rank of some member: `size` is the text of how many there are."""
    return kernel.rng.choice((f"{group}.thread_rank() ^ 1u", "0u", f"{size} - 1u", f"{kernel.expression('u32', 1)}", number(kernel, 32)))


def act(kernel, group, fixed):
    """What a group does together. `fixed` is its size, a power of two, where all of it is there; 0 where it has the members it has."""
    rng = kernel.rng
    size = f"{fixed}u" if fixed else f"(u32){group}.size()"
    for _ in range(rng.randrange(1, 4)):
        choice = rng.randrange(9)
        type_ = rng.choice(("u32", "u32", "i32", "u64", "f32", "f64"))
        value = f"({type_}){kernel.expression(type_, 1)}"
        if choice == 0:
            kernel.fold_value(f"{group}.shfl({value}, ({member(kernel, group, size)}) % {size})")
        elif choice == 1 and fixed:
            kernel.fold_value(f"{group}.shfl_{rng.choice(('up', 'down'))}({value}, {rng.randrange(fixed)})")
        elif choice == 2 and fixed:
            kernel.fold_value(f"{group}.shfl_xor({value}, {rng.randrange(fixed)})")
        elif choice == 3:
            kernel.fold(f"(u64)({group}.{rng.choice(('any', 'all'))}({predicate(kernel)}) != 0)")
        elif choice == 4:
            kernel.fold(f"{group}.ballot({predicate(kernel)})")
        elif choice == 5:
            kernel.fold(f"{group}.match_any({number(kernel, rng.randrange(1, 5))})")
        elif choice == 6:
            same = variable(kernel, "int", "0")
            kernel.fold(f"{group}.match_all({number(kernel, rng.choice((1, 1, 2)))}, {same})")
            kernel.fold(f"(u64)({same} != 0)")
        elif choice == 7:
            kernel.emit(f"{group}.sync();")
        else:
            kernel.fold(f"(u64){group}.thread_rank() << 8 | (u64){group}.size()")
        spend(kernel, 15)
    if rng.random() < 0.35:
        operation = rng.choice(("plus", "less", "greater", "bit_and", "bit_or", "bit_xor"))
        type_ = rng.choice(("u32", "i32", "u64")) if operation != "plus" else rng.choice(("u32", "u64"))
        kernel.fold_value(f"{SPACE}::reduce({group}, ({type_}){kernel.expression(type_, 1)}, {SPACE}::{operation}<{type_}>())")
        spend(kernel, 60)
    if rng.random() < 0.25:
        kernel.fold_value(f"{SPACE}::{rng.choice(('inclusive', 'exclusive'))}_scan({group}, {kernel.expression('u32', 1)})")
        spend(kernel, 60)


@form(weight=2.5, needs="block", where="kernel", cost=100)
def tiles(kernel):
    """Tiles of 1 to 32 threads, and tiles of tiles."""
    if not allowed(kernel):
        return
    rng = kernel.rng
    sizes = [size for size in (1, 2, 4, 8, 16, 32) if kernel.threads % size == 0]
    size = rng.choice(sizes[-3:])
    block = variable(kernel, "auto", f"{SPACE}::this_thread_block()", "g")
    tile = variable(kernel, "auto", f"{SPACE}::tiled_partition<{size}>({block})", "g")
    kernel.fold(f"{tile}.meta_group_rank() + 100u * (u64){tile}.meta_group_size()")
    act(kernel, tile, size)
    if rng.random() < 0.5:
        with kernel.block(f"if ({tile}.meta_group_rank() % 2u == {rng.randrange(2)}u)", "thread"):
            if rng.random() < 0.4:
                together.delay(kernel)
            act(kernel, tile, size)
    if size > 2 and rng.random() < 0.5:
        small = rng.choice([s for s in sizes if s < size])
        inner = variable(kernel, "auto", f"{SPACE}::tiled_partition<{small}>({tile})", "g")
        act(kernel, inner, small)
    if rng.random() < 0.3:
        kernel.emit(f"{block}.sync();")


@form(weight=2, needs="block", where="kernel", cost=150)
def partitions(kernel):
    """A tile parted by a label or by a condition, each part acting on its own."""
    sizes = [size for size in (4, 8, 16, 32) if kernel.threads % size == 0]
    if not sizes or not allowed(kernel):
        return
    rng = kernel.rng
    size = rng.choice(sizes)
    block = variable(kernel, "auto", f"{SPACE}::this_thread_block()", "g")
    tile = variable(kernel, "auto", f"{SPACE}::tiled_partition<{size}>({block})", "g")
    if rng.random() < 0.5:
        part = variable(kernel, "auto", f"{SPACE}::labeled_partition({tile}, {number(kernel, rng.randrange(1, 5))})", "g")
        act(kernel, part, 0)
    else:
        said = variable(kernel, "bool", predicate(kernel))
        part = variable(kernel, "auto", f"{SPACE}::binary_partition({tile}, {said})", "g")
        if rng.random() < 0.5:
            with kernel.block(f"if ({said})", "thread"):
                act(kernel, part, 0)
            with kernel.block("else", "thread"):
                act(kernel, part, 0)
        else:
            act(kernel, part, 0)
    kernel.emit(f"{tile}.sync();")
    act(kernel, tile, size)


@form(weight=1, needs="block", where="kernel", cost=100)
def block_group(kernel):
    """The block as a group: its barrier, in two halves or apart, and copies that it makes."""
    if not allowed(kernel):
        return
    rng = kernel.rng
    cells = kernel.shared("u32", kernel.threads)
    if cells is None:
        return
    block = variable(kernel, "auto", f"{SPACE}::this_thread_block()", "g")
    kernel.emit(f"{cells}[{block}.thread_rank()] = {kernel.expression('u32', 1)};")
    shape = rng.randrange(3)
    if shape == 0:
        token = variable(kernel, "auto", f"{block}.barrier_arrive()", "g")
        together.ordinary(kernel)
        kernel.emit(f"{block}.barrier_wait(static_cast<decltype({token}) &&>({token}));")
    elif shape == 1 and kernel.full_warps:
        with kernel.block(f"if ({predicate(kernel)})", "thread"):
            together.delay(kernel)
            kernel.emit(f"{block}.sync();")
        with kernel.block("else", "thread"):
            kernel.emit(f"{block}.sync();")
    else:
        kernel.emit(f"{SPACE}::sync({block});")
    kernel.fold(f"{cells}[({block}.thread_rank() * {rng.randrange(1, 9)}u + {rng.randrange(99)}u) % {block}.size()]")
    kernel.emit(f"{block}.sync();")


@form(weight=0.8, needs="block", where="kernel", cost=120)
def grid(kernel):
    """All blocks of the launch meet, and read what others have left."""
    if not allowed(kernel) or kernel.frame.nesting:
        return
    rng = kernel.rng
    kernel.cooperative = True
    count = kernel.threads * kernel.blocks
    group = variable(kernel, "auto", f"{SPACE}::this_grid()", "g")
    cells = variable(kernel, "volatile u32 *", f"(volatile u32 *)(memory + {kernel.memory(4 * count)}u)")
    for _ in range(rng.randrange(1, 4)):
        kernel.emit(f"{cells}[global] = {kernel.expression('u32', 1)};")
        kernel.emit(f"{group}.sync();")
        kernel.fold(f"{cells}[(global * {rng.randrange(1, 9)}u + {rng.randrange(999)}u) % {count}u]")
        kernel.emit(f"{group}.sync();")
        spend(kernel, 60)
