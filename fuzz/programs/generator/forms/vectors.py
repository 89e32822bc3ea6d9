"""Vectors of two to four elements, loaded and stored as one."""

from ..kernel import form

# The element in words of CUDA, ours, and its size.
ELEMENTS = (("char", "i8", 1), ("uchar", "u8", 1), ("short", "i16", 2), ("ushort", "u16", 2), ("int", "i32", 4), ("uint", "u32", 4),
            ("float", "f32", 4), ("longlong", "i64", 8), ("ulonglong", "u64", 8), ("double", "f64", 8))


@form(weight=4, where="kernel", cost=60)
def vector(kernel):
    rng = kernel.rng
    word, type_, size = rng.choice(ELEMENTS)
    width = rng.choice((2, 2, 3, 4, 4) if size < 8 else (2,))
    vector_type = f"{word}{width}"
    name = kernel.fresh("w")
    count = kernel.input_bytes // (size * width)
    members = "xyzw"[:width]
    index = f"({kernel.expression('u32', 1)} % {count}u)"
    how = rng.randrange(4)
    if how == 0:
        kernel.emit(f"{vector_type} {name} = as_const<{vector_type}>(input)[{index}];")
    elif how == 1 and width != 3:
        kernel.emit(f"{vector_type} {name} = {rng.choice(('__ldg', '__ldcg', '__ldcs'))}(as_const<{vector_type}>(input) + {index});")
    elif how == 2:
        constant = kernel.fresh("c")
        length = rng.randrange(1, 9)
        kernel.top(f"__constant__ {vector_type} {constant}[{length}];")
        kernel.program.symbols.append((constant, size * width * length))
        kernel.emit(f"{vector_type} {name} = {constant}[{kernel.expression('u32', 1)} % {length}u];")
    else:
        kernel.emit(f"{vector_type} {name} = make_{vector_type}({', '.join(kernel.expression(type_, 1) for _ in members)});")
    for member in members:
        if rng.random() < 0.6:
            kernel.declare(type_, f"{name}.{member}")
    if rng.random() < 0.7:
        for member in rng.sample(members, rng.randrange(1, width + 1)):
            kernel.emit(f"{name}.{member} = {kernel.expression(type_, 1)};")
        if type_[0] == "f":
            for member in members:
                kernel.emit(f"{name}.{member} = canonical({name}.{member});")
        where = rng.randrange(3)
        if where == 0:
            offset = kernel.memory(size * width * kernel.threads * kernel.blocks)
            place = f"(({vector_type} *)(memory + {offset}u))[global]"
        elif where == 1:
            shared = kernel.shared(f"{vector_type}", kernel.threads)
            if not shared:
                return
            place = f"{shared}[thread]"
        else:
            local = kernel.fresh("m")
            kernel.emit(f"{vector_type} {local}[3];")
            kernel.emit(f"{local}[0] = {name};")
            kernel.emit(f"{local}[1] = {name};")
            kernel.emit(f"{local}[2] = {name};")
            place = f"{local}[{kernel.expression('u32', 1)} % 3u]"
        kernel.emit(f"{place} = {name};")
        kernel.declare(type_, f"{place}.{rng.choice(members)}")
