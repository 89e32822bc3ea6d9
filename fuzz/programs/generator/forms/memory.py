"""Arrays in local, shared and global memory, generic pointers, caches, bytes that are not aligned."""

from ..kernel import form

INTEGERS = ("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64")


def any_type(kernel):
    return kernel.rng.choice(INTEGERS)


def fill(kernel, name, type_, count, unit="{}"):
    """Writes every element of an array."""
    rng = kernel.rng
    if count <= 6 and rng.random() < 0.5:
        for number in range(count):
            kernel.emit(f"{name}[{unit.format(number)}] = {kernel.expression(type_, 1)};")
        return
    counter = kernel.fresh("i")
    seed = kernel.expression("u32", 1)
    kernel.emit(f"u32 {counter}_s = {seed};")
    with kernel.block(f"for (u32 {counter} = 0u; {counter} < {count}u; {counter} += 1u)", "always"):
        kernel.emit(f"{name}[{unit.format(counter)}] = to_{type_}({counter}_s * {rng.choice((1, 3, 77, 0x9E3779B1))}u + {counter});")


def use(kernel, name, type_, count, unit="{}"):
    """Reads and writes elements at places that differ from thread to thread, or not."""
    rng = kernel.rng
    for _ in range(rng.randrange(1, 5)):
        index = f"({kernel.expression('u32', 1)} % {count}u)" if rng.random() < 0.75 else str(rng.randrange(count))
        place = f"{name}[{unit.format(index)}]"
        if rng.random() < 0.45:
            kernel.emit(f"{place} = {kernel.expression(type_, 1)};")
        else:
            kernel.declare(type_, place)
    if rng.random() < 0.5:
        counter = kernel.fresh("i")
        with kernel.block(f"for (u32 {counter} = 0u; {counter} < {count}u; {counter} += {rng.randrange(1, 4)}u)", "always"):
            kernel.fold_value(f"{name}[{unit.format(counter)}]")


@form(weight=3, cost=150)
def local_array(kernel):
    rng = kernel.rng
    type_ = any_type(kernel)
    count = rng.choice((1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33))
    name = kernel.fresh("m")
    kernel.emit(f"{rng.choice(('', '', '', 'volatile '))}{type_} {name}[{count}];")
    fill(kernel, name, type_, count)
    use(kernel, name, type_, count)


@form(weight=2.5, where="kernel", cost=150)
def shared_array(kernel):
    """A part of shared memory for each thread, interleaved or not."""
    rng = kernel.rng
    type_ = any_type(kernel)
    count = rng.choice((1, 2, 3, 4, 5, 7, 8))
    name = kernel.shared(type_, count * kernel.threads)
    if not name:
        return
    unit = f"thread * {count}u + {{}}" if rng.random() < 0.5 else f"({{}}) * {kernel.threads}u + thread"
    fill(kernel, name, type_, count, unit)
    use(kernel, name, type_, count, unit)


@form(weight=2.5, where="kernel", cost=150)
def global_array(kernel):
    """A part of `memory` for each thread; the runner hashes what is left in it."""
    rng = kernel.rng
    type_ = any_type(kernel)
    count = rng.choice((1, 2, 3, 4, 5, 8, 11))
    size = 1 if type_[1:] == "8" else int(type_[1:]) // 8
    offset = kernel.memory(size * count * kernel.threads * kernel.blocks)
    name = kernel.fresh("m")
    qualifier = rng.choice(("", "", "volatile "))
    kernel.emit(f"{qualifier}{type_} *{name} = ({qualifier}{type_} *)(memory + {offset}u);")
    unit = f"global * {count}u + {{}}" if rng.random() < 0.5 else f"({{}}) * {kernel.threads * kernel.blocks}u + global"
    fill(kernel, name, type_, count, unit)
    use(kernel, name, type_, count, unit)
    if type_ in ("f32", "f64"):
        # What stays is hashed as bytes: NaNs of any bits must not.
        counter = kernel.fresh("i")
        with kernel.block(f"for (u32 {counter} = 0u; {counter} < {count}u; {counter} += 1u)", "always"):
            kernel.emit(f"{name}[{unit.format(counter)}] = canonical({name}[{unit.format(counter)}]);")


@form(weight=2.5, where="kernel", cost=150)
def generic_pointer(kernel):
    """A pointer that leads to local, shared or global memory, as a condition has it."""
    rng = kernel.rng
    type_ = rng.choice(("u8", "u16", "u32", "u32", "i32", "u64"))
    count = rng.choice((1, 3, 4, 6, 8))
    size = int(type_[1:]) // 8
    local = kernel.fresh("m")
    kernel.emit(f"{type_} {local}[{count}];")
    fill(kernel, local, type_, count)
    choices = [f"&{local}[0]"]
    shared = kernel.shared(type_, count * kernel.threads)
    if shared:
        unit = f"thread * {count}u + {{}}"
        fill(kernel, shared, type_, count, unit)
        choices.append(f"&{shared}[thread * {count}u]")
    offset = kernel.memory(size * count * kernel.threads * kernel.blocks)
    choices.append(f"(({type_} *)(memory + {offset}u) + global * {count}u)")
    rng.shuffle(choices)
    pointer = kernel.fresh("q")
    kind = rng.choice(("thread", "thread", "warp", "launch"))
    text = choices[0]
    for other in choices[1:]:
        text = f"({kernel.condition(kind)} ? {text} : {other})"
    kernel.emit(f"{type_} *{pointer} = {text};")
    use(kernel, pointer, type_, count)
    kernel.fold_value(f"{local}[{rng.randrange(count)}]")
    if rng.random() < 0.4:
        with kernel.function("u64", [(f"{type_} *", "q"), ("u32", "x")]) as function:
            use(kernel, "q", type_, count)
            kernel.emit("return h;")
        kernel.declare("u64", f"{function}({pointer}, {kernel.expression('u32', 1)})")


@form(weight=2, where="kernel", cost=60)
def cached(kernel):
    """Loads and stores that name a cache policy or an order."""
    rng = kernel.rng
    type_ = rng.choice(("u16", "u32", "u64"))
    size = int(type_[1:]) // 8
    count = rng.randrange(1, 5)
    offset = kernel.memory(size * count * kernel.threads * kernel.blocks)
    pointer = kernel.fresh("q")
    kernel.emit(f"{type_} *{pointer} = ({type_} *)(memory + {offset}u) + global * {count}u;")
    for number in range(count):
        how = rng.choice(("wb", "cg", "cs", "wt", "volatile", "relaxed", "release"))
        kernel.emit(f"op_st_{how}_{type_}({pointer} + {number}, {kernel.expression(type_, 1)});")
    for _ in range(rng.randrange(1, 4)):
        how = rng.choice(("ca", "cg", "cs", "lu", "cv", "volatile", "relaxed", "acquire"))
        kernel.declare(type_, f"op_ld_{how}_{type_}({pointer} + {kernel.expression('u32', 1)} % {count}u)")


@form(weight=2, where="kernel", cost=40)
def read_only(kernel):
    """Loads of the input through the read-only cache and by cache hints."""
    rng = kernel.rng
    type_ = rng.choice(("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"))
    size = int(type_[1:]) // 8
    count = kernel.input_bytes // size
    how = rng.choice(("__ldg", "__ldg", "__ldcg", "__ldca", "__ldcs", "__ldlu", "__ldcv"))
    kernel.declare(type_, f"{how}(as_const<{type_}>(input) + (({kernel.index_text()}) & {count - 1}u))")


@form(weight=1.5, where="kernel", cost=60)
def unaligned(kernel):
    """Values put together from bytes at any place, and the other way."""
    rng = kernel.rng
    type_ = rng.choice(("u16", "u32", "u64", "i32"))
    size = int(type_[1:]) // 8
    start = f"({kernel.expression('u32', 1)} % {kernel.input_bytes - 16}u)"
    place = kernel.fresh("x")
    kernel.emit(f"u32 {place} = {start};")
    bits = "u64" if size == 8 else "u32"
    order = range(size) if rng.random() < 0.5 else range(size - 1, -1, -1)
    parts = " | ".join(f"({bits})input[{place} + {number}u] << {8 * shift}" for number, shift in zip(range(size), order))
    name = kernel.declare(type_, f"({type_})({parts})")
    if rng.random() < 0.6:
        own = kernel.thread_memory(size + rng.randrange(0, 4))
        for number in range(size):
            kernel.emit(f"{own}[{number}] = (u8)((u64){name} >> {8 * number});")


@form(weight=1.5, cost=60)
def bit_fields(kernel):
    rng = kernel.rng
    name = kernel.fresh("B")
    members = []
    kernel.top(f"struct {name}")
    kernel.top("{")
    for number in range(rng.randrange(2, 7)):
        type_ = rng.choice(("u32", "i32", "u32", "u64", "i64"))
        width = rng.randrange(1, 33 if type_[1:] == "32" else 60)
        members.append((f"b{number}", type_))
        kernel.top(f"    {type_} b{number} : {width};")
    kernel.top("};")
    thing = kernel.fresh("o")
    kernel.emit(f"{name} {thing};")
    for member, type_ in members:
        kernel.emit(f"{thing}.{member} = {kernel.expression('u64' if type_[1:] == '64' else 'u32', 1)};")
    for member, type_ in members:
        kernel.declare(type_, f"{thing}.{member}")
    member, type_ = rng.choice(members)
    kernel.emit(f"{thing}.{member} ^= {kernel.expression('u32', 1)};")
    kernel.fold(f"(u64)(i64){thing}.{member}")
