"""Constant arrays of every size and shape: filled by the runner, or known to the compiler."""

from ..kernel import form
from .parameters import structure

TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64")


@form(weight=3, cost=30)
def array_of_values(kernel):
    """An array of 1 to 67 elements, read at uniform places and at places of each lane."""
    rng = kernel.rng
    type_ = rng.choice(TYPES)
    count = rng.randrange(1, 68)
    name = kernel.symbol(type_, count, rng.choice(("__constant__", "__constant__", "__constant__", "__device__")))
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choice(("thread", "thread", "warp", "block", "launch"))
        kernel.declare(type_, f"{name}[{kernel.expression('u32', 1, uniform=kind)} % {count}u]", uniform=kind)
    if rng.random() < 0.3 and kernel.room(count, 8):
        counter = kernel.fresh("i")
        with kernel.block(f"for (u32 {counter} = 0u; {counter} < {count}u; {counter} += 1u)", "always"):
            kernel.fold_value(f"{name}[{counter}]")


@form(weight=2, cost=30)
def array_of_structures(kernel):
    """Structures with odd tails."""
    rng = kernel.rng
    name, size, members = structure(kernel)
    count = rng.randrange(1, 20)
    array = kernel.fresh("c")
    kernel.top(f"{rng.choice(('__constant__', '__constant__', '__device__'))} {name} {array}[{count}];")
    kernel.program.symbols.append((array, size * count))
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choice(("thread", "thread", "warp", "launch"))
        member, type_, length = rng.choice(members)
        part = f"{member}[{kernel.expression('u32', 1, uniform=kind)} % {length}u]" if length else member
        kernel.declare(type_, f"{array}[{kernel.expression('u32', 1, uniform=kind)} % {count}u].{part}", uniform=kind)


@form(weight=2, cost=30)
def known_table(kernel):
    """A table that the compiler knows: at file scope, static or automatic."""
    rng = kernel.rng
    type_ = rng.choice(TYPES)
    count = rng.choice((2, 3, 4, 5, 8, 11, 16, 23))
    values = ", ".join(kernel.immediate(type_) for _ in range(count))
    if type_[0] == "f":
        values = ", ".join(rng.choice(("0.5", "-1.25", "3e8", "1e-7", "-0.0", "7.0", "65504.0", "0.1")) + ("f" if type_ == "f32" else "") for _ in range(count))
    name = kernel.fresh("c")
    where = rng.randrange(4)
    if where == 0:
        kernel.top(f"__constant__ const {type_} {name}[{count}] = {{{values}}};")
    elif where == 1:
        kernel.top(f"__device__ const {type_} {name}[{count}] = {{{values}}};")
    elif where == 2:
        kernel.top(f"__device__ {type_} {name}[{count}] = {{{values}}};")
    else:
        kernel.emit(f"const {type_} {name}[{count}] = {{{values}}};")
    kind = rng.choice(("thread", "thread", "warp", "launch"))
    kernel.declare(type_, f"{name}[{kernel.expression('u32', 1, uniform=kind)} % {count}u]", uniform=kind)


@form(weight=1.5, cost=40)
def table_of_words_as_bytes(kernel):
    """Constant words read as bytes and halves, at any place."""
    rng = kernel.rng
    count = rng.randrange(1, 40)
    name = kernel.symbol("u32", count)
    type_, size = rng.choice((("u8", 1), ("i8", 1), ("u16", 2), ("i16", 2)))
    kernel.declare(type_, f"((const {type_} *){name})[{kernel.expression('u32', 1)} % {count * 4 // size}u]" if size == 1 else
                   f"({type_})(((const u8 *){name})[{rng.randrange(count * 4 - 1)}] << {rng.randrange(9)})")


@form(weight=1.5, cost=40)
def pointer_to_constant(kernel):
    """A generic pointer that may lead to constant, global or local memory."""
    rng = kernel.rng
    type_ = rng.choice(("u32", "u64", "u16", "f32"))
    count = rng.randrange(1, 12)
    first = kernel.symbol(type_, count)
    second = kernel.symbol(type_, count, rng.choice(("__constant__", "__device__")))
    pointer = kernel.fresh("q")
    kernel.emit(f"const {type_} *{pointer} = {kernel.condition(rng.choice(('thread', 'warp', 'launch')))} ? {first} : {second};")
    kernel.declare(type_, f"{pointer}[{kernel.expression('u32', 1)} % {count}u]")
    if rng.random() < 0.5:
        with kernel.function(type_, [(f"const {type_} *", "q"), ("u32", "x")]) as function:
            kernel.emit(f"return q[{kernel.expression('u32', 1)} % {count}u];")
        kernel.declare(type_, f"{function}({pointer}, {kernel.expression('u32', 1)})")
