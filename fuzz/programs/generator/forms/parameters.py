"""Parameters by value: scalars, and structures of odd sizes whose arrays are indexed."""

from ..kernel import form
from ..types import TYPES

NAMES = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64")


def structure(kernel, most=5):
    """Writes a structure: its name, its size, and its members as (name, type, length or 0)."""
    rng = kernel.rng
    name = kernel.fresh("S")
    members = []
    offset, align = 0, 1
    kernel.top(f"struct {name}")
    kernel.top("{")
    for number in range(rng.randrange(1, most + 1)):
        type_ = rng.choice(NAMES + ("u8", "u8", "u16"))
        size = TYPES[type_].bytes
        length = rng.choice((0, 0, 1, 2, 3, 5, 7, 9, 17))
        offset = -(-offset // size) * size + size * max(length, 1)
        align = max(align, size)
        members.append((f"m{number}", type_, length))
        kernel.top(f"    {type_} m{number}{f'[{length}]' if length else ''};")
    kernel.top("};")
    size = -(-offset // align) * align
    kernel.top(f"static_assert(sizeof({name}) == {size}, \"size\");")
    return name, size, members


@form(weight=2, where="kernel", cost=20)
def scalar(kernel):
    if len(kernel.parameters) > 12:
        return
    type_ = kernel.rng.choice(NAMES)
    name = kernel.parameter(type_, TYPES[type_].bytes)
    kernel.declare(type_, name, uniform="launch", mutable=False)


@form(weight=3, where="kernel", cost=50)
def by_value(kernel):
    """A structure as a parameter: read at known and at computed places, passed on, changed."""
    rng = kernel.rng
    if len(kernel.parameters) > 12:
        return
    type_name, size, members = structure(kernel)
    if sum(s for _, _, s in kernel.parameters) + size > 3800:
        return
    constant = rng.random() < 0.4
    name = kernel.parameter(f"const __grid_constant__ {type_name}" if constant else type_name, size)

    def read(uniform):
        member, type_, length = rng.choice(members)
        part = f"{member}[{kernel.expression('u32', 1, uniform=uniform)} % {length}u]" if length else member
        return type_, f"{name}.{part}"

    for _ in range(rng.randrange(1, 5)):
        kind = rng.choice(("thread", "thread", "warp", "launch"))
        type_, text = read(kind)
        kernel.declare(type_, text, uniform=kind)
    if rng.random() < 0.4:
        member, type_, length = rng.choice(members)
        how, access, given = rng.choice((("&", "s.", ""), ("*", "s->", "&"), ("", "s.", "")))
        with kernel.function(type_, [(f"const {type_name} {how}", "s"), ("u32", "x")]) as function:
            kernel.statements(1)
            index = f"[{kernel.expression('u32', 1)} % {length}u]" if length else ""
            kernel.emit(f"return {access}{member}{index};")
        kernel.declare(type_, f"{function}({given}{name}, {kernel.expression('u32', 1)})")
    if not constant and rng.random() < 0.4:
        member, type_, length = rng.choice(members)
        place = f"{name}.{member}[{kernel.expression('u32', 1)} % {length}u]" if length else f"{name}.{member}"
        kernel.emit(f"{place} = {kernel.expression(type_, 1)};")
        type_, text = read("thread")
        kernel.declare(type_, text)
