"""Copies from global to shared memory that go on while threads work, in groups or counted by a gate."""

from .. import lanes as together
from ..kernel import form
from ..lanes import predicate, spend, variable

from .async_barriers import end, gates, make

TYPES = {4: "u32", 8: "u64", 16: "u64"}


def source(kernel, size):
    """The text of a pointer to `size` aligned bytes of the input, which differs from thread to thread."""
    count = kernel.input_bytes // size
    return f"input + {size}u * (({kernel.index_text()}) & {count - 1}u)"


def copy(kernel, size, to):
    if size == 16 and kernel.rng.random() < 0.4:
        many = kernel.rng.choice(("16u", "8u", "0u", "3u", f"({kernel.expression('u32', 1)} % 17u)"))
        return f"copy_later_part({to}, {source(kernel, 16)}, {many});"
    return f"copy_later_{size}({to}, {source(kernel, size)});"


def read(kernel, cells, size, place):
    """Folds the element at `place` of an array of this size's type."""
    if size == 16:
        kernel.fold(f"{cells}[2u * ({place})]")
        kernel.fold(f"{cells}[2u * ({place}) + 1u]")
    else:
        kernel.fold(f"{cells}[{place}]")


@form(weight=1, where="kernel", cost=60)
def own_copies(kernel):
    """Groups of copies that a thread makes for itself and waits for, the older ones first."""
    kernel.need("together")
    rng = kernel.rng
    size = rng.choice((4, 8, 16))
    groups = rng.randrange(1, 5)
    cells = kernel.shared(TYPES[size], kernel.threads * groups * (2 if size == 16 else 1), 16)
    if cells is None:
        return
    place = [f"{group * kernel.threads}u + thread" for group in range(groups)]
    scale = "2u * " if size == 16 else ""
    # What is there before may still be on its way to be read: it is ours alone.
    for group in range(groups):
        kernel.emit(copy(kernel, size, f"{cells} + {scale}({place[group]})"))
        kernel.emit("copies_commit();")
        if rng.random() < 0.2:
            kernel.emit("copies_commit();")
            kernel.emit("copies_wait<0>();")
    together.ordinary(kernel)
    for group in range(groups):
        pending = groups - 1 - group
        if rng.random() < 0.2:
            kernel.emit("copies_wait_all();")
        else:
            kernel.emit(f"copies_wait<{pending}>();")
        read(kernel, cells, size, place[group])


@form(weight=1, needs="block", where="kernel", cost=60)
def tile(kernel):
    """Copies that a block makes together; each thread then reads what others have copied."""
    kernel.need("together")
    rng = kernel.rng
    size = rng.choice((4, 8, 16))
    count = kernel.threads
    gate = gates(kernel, 1) if rng.random() < 0.4 else None
    cells = kernel.shared(TYPES[size], count * (2 if size == 16 else 1), 16)
    if cells is None:
        return
    scale = "2u * " if size == 16 else ""
    if gate:
        make(kernel, gate, count)
    statement = copy(kernel, size, f"{cells} + {scale}thread")
    if rng.random() < 0.3:
        chosen = variable(kernel, "bool", predicate(kernel))
        plain = f"{cells}[{scale}thread] = thread;" + (f" {cells}[2u * thread + 1u] = 0u;" if size == 16 else "")
        kernel.emit(f"if ({chosen}) {{ {statement} }} else {{ {plain} }}")
    else:
        kernel.emit(statement)
    other = f"(thread * {rng.randrange(1, 9)}u + {rng.randrange(99)}u) % {count}u"
    if gate:
        kernel.emit(f"gate_arrive_after_copies({gate});")
        together.ordinary(kernel)
        kernel.emit(f"gate_wait_parity({gate}, 0u);")
        read(kernel, cells, size, other)
        end(kernel, gate)
    else:
        kernel.emit(rng.choice(("copies_wait_all();", "copies_commit(); copies_wait<0>();")))
        kernel.emit("__syncthreads();")
        read(kernel, cells, size, other)
        kernel.emit("__syncthreads();")


@form(weight=1, needs="block", where="kernel", cost=150)
def stages(kernel):
    """A loop over tiles of the input, of which one or two are on their way while one is worked on."""
    kernel.need("together")
    rng = kernel.rng
    depth = rng.choice((2, 3))
    count = kernel.threads
    cells = kernel.shared("u32", count * depth, 16)
    if cells is None:
        return
    trips = rng.randrange(2, 6)
    step = kernel.fresh("i")
    stride = rng.randrange(1, 99)

    def fetch(number):
        kernel.emit(f"copy_later_4({cells} + ({number}) % {depth}u * {count}u + thread, input + 4u * ((thread + {stride}u * ({number})) & {kernel.input_bytes // 4 - 1}u));")

    for first in range(depth - 1):
        fetch(f"{first}u")
        kernel.emit("copies_commit();")
    with kernel.block(f"for (u32 {step} = 0; {step} < {trips}u; ++{step})", "always", trips=trips):
        kernel.emit(f"copies_wait<{depth - 2}>();")
        kernel.emit("__syncthreads();")
        with kernel.block(f"if ({step} + {depth - 1}u < {trips}u)", "always"):
            fetch(f"{step} + {depth - 1}u")
        # A group a round, though it be empty, keeps the count of what is under way.
        kernel.emit("copies_commit();")
        kernel.fold(f"{cells}[{step} % {depth}u * {count}u + (thread * {rng.randrange(1, 9)}u + {rng.randrange(64)}u) % {count}u]")
        spend(kernel, 30)
    kernel.emit("copies_wait_all();")
    kernel.emit("__syncthreads();")
