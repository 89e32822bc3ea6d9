"""Atomic operations: every kind, width, place and scope, by one or many threads, from anywhere.

What an operation answers goes into a thread's hash only where no other thread touches the cell; otherwise answers go
into sums, which do not depend on who came first.
"""

from ..kernel import form
from ..lanes import deed, number, predicate, spend, variable

# Operations whose outcome does not depend on their order, and the types they have.
COMMUTING = (
    ("Add", ("u32", "i32", "u64")), ("Sub", ("u32", "i32")), ("Min", ("u32", "i32", "u64", "i64")), ("Max", ("u32", "i32", "u64", "i64")),
    ("And", ("u32", "i32", "u64")), ("Or", ("u32", "i32", "u64")), ("Xor", ("u32", "i32", "u64")), ("Inc", ("u32",)), ("Dec", ("u32",)),
)
OTHERS = (("Exch", ("u32", "i32", "u64")), ("CAS", ("u32", "i32", "u64", "u16")))
BYTES = {"u16": 2, "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8}


def scope(kernel):
    return kernel.rng.choice(("", "", "", "_block", "_system"))


def operand(kernel, name, type_):
    if name in ("Inc", "Dec"):
        return f"{kernel.rng.choice((0, 1, 5, 30, 31, 1000))}u" if kernel.rng.random() < 0.7 else "0xffffffffu"
    if kernel.rng.random() < 0.3:
        return kernel.immediate(type_)
    return f"({type_}){kernel.expression(type_, 1)}"


def place(kernel, type_, count, of_launch=False):
    """Cells for a block or for the launch: the text of a pointer to the first and whether they are shared; None if there is no room."""
    size = BYTES[type_] * count
    if not of_launch and kernel.rng.random() < 0.4:
        cells = kernel.shared(type_, count, 16)
        return cells and (cells, True)
    if of_launch:
        return f"(({type_} *)(memory + {kernel.memory(size)}u))", False
    return f"(({type_} *){kernel.block_memory(size)})", False


def clear(kernel, cells, count, value="0"):
    """Sets cells of a block, before a barrier. They must not be of the launch."""
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = thread; {step} < {count}u; {step} += {kernel.threads}u)", "thread"):
        kernel.emit(f"{cells}[{step}] = {value};")
    kernel.emit("__syncthreads();")


@form(weight=2, where="kernel", cost=25)
def own_cell(kernel):
    """Operations of a thread on a cell of its own, whose answers count; after a plain write."""
    rng = kernel.rng
    type_ = rng.choice(("u32", "i32", "u64", "i64", "u16"))
    names = [name for name, types in COMMUTING + OTHERS if type_ in types]
    shared = kernel.shared(type_, kernel.threads, 16) if rng.random() < 0.4 else None
    cell = f"(&{shared}[thread])" if shared else f"(({type_} *){kernel.thread_memory(BYTES[type_])})"
    kind = rng.randrange(3)
    if kind == 0:
        cell = variable(kernel, f"{type_} *", cell)
    elif kind == 1 and not shared:
        # A pointer that is now one kind of memory and now another.
        other = kernel.shared(type_, kernel.threads, 16)
        if other:
            cell = variable(kernel, f"{type_} *", f"{predicate(kernel)} ? &{other}[thread] : {cell}")
    kernel.emit(f"*{cell} = {kernel.expression(type_, 1)};")
    for _ in range(rng.randrange(1, 4)):
        name = rng.choice(names)
        if name == "CAS":
            expected = rng.choice((f"*{cell}", f"({type_}){kernel.expression(type_, 0)}"))
            text = f"atomicCAS{'' if type_ == 'u16' else scope(kernel)}({cell}, {expected}, ({type_}){kernel.expression(type_, 1)})"
        else:
            text = f"atomic{name}{scope(kernel)}({cell}, {operand(kernel, name, type_)})"
        if rng.random() < 0.75:
            kernel.declare(type_, text)
            kernel.fold_value(kernel.frame.variables[-1].name)
        else:
            kernel.emit(text + ";")
    kernel.fold_value(f"*{cell}")


@form(weight=2.5, where="kernel", cost=20)
def common_cells(kernel):
    """Operations of all threads of the launch on few cells, or of a lane set, each cell with one kind of operation."""
    rng = kernel.rng
    name, types = rng.choice(COMMUTING)
    type_ = rng.choice(types)
    count = rng.choice((1, 1, 3, 8, 64))
    cells, _ = place(kernel, type_, count, of_launch=True)
    # Answers add up to the same, whoever comes first, if each takes the same step.
    sums = f"(u64 *)(memory + {kernel.memory(8)}u)" if name in ("Add", "Sub", "Inc", "Dec") and rng.random() < 0.5 else None
    step = f"({type_}){rng.choice((1, 3, 13, 1000))}u"
    for _ in range(rng.randrange(1, 3)):
        value = step if sums or name in ("Inc", "Dec") else operand(kernel, name, type_)
        where = f"&{cells}[{number(kernel, count)}]" if count > 1 else cells
        text = f"atomic{name}{rng.choice(('', '', '_system'))}({where}, {value})"
        kernel.emit(f"atomicAdd({sums}, (u64){text});" if sums else f"{text};")


@form(weight=1.5, needs="block", where="kernel", cost=60)
def cells_of_a_block(kernel):
    """Cells that a block sets, works on in any order and reads after a barrier."""
    rng = kernel.rng
    name, types = rng.choice(COMMUTING)
    type_ = rng.choice(types)
    count = rng.choice((1, 2, 5, 32))
    found = place(kernel, type_, count)
    if not found:
        return
    cells, shared = found
    cells = variable(kernel, f"{type_} *", cells) if not shared or rng.random() < 0.5 else cells
    clear(kernel, cells, count, kernel.immediate(type_))
    fixed = f"{rng.choice((1, 5, 30))}u"
    for _ in range(rng.randrange(1, 4)):
        value = fixed if name in ("Inc", "Dec") else operand(kernel, name, type_)
        statement = f"atomic{name}{scope(kernel)}(&{cells}[{number(kernel, count)}], {value});"
        if rng.random() < 0.5:
            with kernel.block(f"if ({predicate(kernel)})"):
                kernel.emit(statement)
        else:
            kernel.emit(statement)
    kernel.emit("__syncthreads();")
    kernel.fold_value(f"{cells}[{number(kernel, count)}]")
    kernel.emit("__syncthreads();")


@form(weight=1.5, where="kernel", cost=30)
def exact_sums(kernel):
    """Sums of floats that are exact in any order: small whole numbers and quarters."""
    rng = kernel.rng
    type_ = rng.choice(("f32", "f32", "f64"))
    if kernel.frame.scale * kernel.threads * kernel.blocks > 1 << 14:
        return
    count = rng.choice((1, 2, 7))
    cells, _ = place(kernel, type_, count, of_launch=True)
    unit = rng.choice(("0.25", "1.0", "0.5", "8.0")) + ("f" if type_ == "f32" else "")
    for _ in range(rng.randrange(1, 3)):
        value = f"(({type_})(1u + ({kernel.expression('u32', 1)} & 255u)) * {unit})"
        kernel.emit(f"atomicAdd{rng.choice(('', '', '_system'))}(&{cells}[{number(kernel, count)}], {value});")


@form(weight=1, needs="block", where="kernel", cost=60)
def exact_sums_of_a_block(kernel):
    """The same in shared memory, or in what a generic pointer names; halves in pairs where the program has them."""
    rng = kernel.rng
    types = ["f32", "f64"] + [t for t in ("f16x2", "bf16x2") if kernel.allows(t)]
    type_ = rng.choice(types)
    if type_ in ("f32", "f64"):
        found = place(kernel, type_, 4)
        if not found:
            return
        cells = variable(kernel, f"{type_} *", found[0])
        clear(kernel, cells, 4)
        value = f"({type_})({kernel.expression('u32', 1)} & 63u)"
        kernel.emit(f"atomicAdd{scope(kernel)}(&{cells}[{number(kernel, 4)}], {value});")
        kernel.emit("__syncthreads();")
        kernel.fold_value(f"{cells}[{number(kernel, 4)}]")
        kernel.emit("__syncthreads();")
        return
    # At most 2 for each of 128 threads, so that bfloat16 holds the sums too.
    cells = f"(({type_} *){kernel.block_memory(16)})" if rng.random() < 0.5 else kernel.shared(type_, 4, 16)
    if cells is None:
        return
    cells = variable(kernel, f"{type_} *", cells)
    clear(kernel, cells, 4, f"as_{type_}(0u)")
    one, two = ("0x3c00", "0x4000") if type_ == "f16x2" else ("0x3f80", "0x4000")
    low = f"({predicate(kernel)} ? {one}u : 0u)"
    high = f"({predicate(kernel)} ? {one}u : {two if kernel.threads <= 128 else one}u)"
    kernel.emit(f"atomicAdd(&{cells}[{number(kernel, 4)}], as_{type_}({high} << 16 | {low}));")
    kernel.emit("__syncthreads();")
    kernel.fold_value(f"{cells}[{number(kernel, 4)}]")
    kernel.emit("__syncthreads();")


@form(weight=1, where="kernel", cost=60)
def retried(kernel):
    """An operation that no instruction has, retried until nobody came between."""
    rng = kernel.rng
    if kernel.frame.scale * kernel.threads * kernel.blocks > 256:
        return
    type_ = rng.choice(("u32", "u64", "u32", "u16"))
    cell = f"(({type_} *)(memory + {kernel.memory(16)}u))"
    value = variable(kernel, type_, f"({type_}){kernel.expression(type_, 1)}")
    old, seen = kernel.fresh("w"), kernel.fresh("w")
    change = rng.choice((f"{old} + {value}", f"({type_})(({old} + 1u) * ({value} | 1u) - 1u)", f"{old} ^ {value}", f"({old} > {value} ? {old} : {value})"))
    kernel.emit(f"{type_} {old} = *(volatile {type_} *){cell};")
    with kernel.block("for (;;)", "thread", trips=2):
        kernel.emit(f"{type_} {seen} = atomicCAS({cell}, {old}, ({type_})({change}));")
        kernel.emit(f"if ({seen} == {old}) break;")
        kernel.emit(f"{old} = {seen};")
    spend(kernel, 400)


@form(weight=1, needs="block", where="kernel", cost=60)
def passed_on(kernel):
    """Values put in a cell and taken out of it: what went in comes out once, or stays."""
    rng = kernel.rng
    type_ = rng.choice(("u32", "u64"))
    found = place(kernel, type_, 1)
    total = kernel.shared("u64", 1)
    if not found or total is None:
        return
    cell, shared = found
    kernel.emit(f"if (thread == 0u) {total}[0] = 0;")
    clear(kernel, cell, 1)
    answer = variable(kernel, type_, f"atomicExch{scope(kernel)}({cell}, ({type_}){kernel.expression(type_, 1)})")
    kernel.emit(f"atomicAdd({total}, (u64){answer});")
    kernel.emit("__syncthreads();")
    kernel.emit(f"if (thread == 0u) {total}[0] += (u64)*(volatile {type_} *){cell};")
    kernel.emit(f"if (thread == 0u) *(volatile {type_} *){cell} = 0;")
    kernel.emit("__syncthreads();")
    kernel.fold(f"{total}[0]")
    kernel.emit("__syncthreads();")


PTX_TYPES = {"add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
             "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64")}


@form(weight=1.5, where="kernel", cost=25)
def written_as_ptx(kernel):
    """Operations with an order of memory and a scope that only PTX names, as atom and as red."""
    kernel.need("together")
    rng = kernel.rng
    name = rng.choice(tuple(PTX_TYPES))
    ptx = rng.choice(PTX_TYPES[name])
    type_ = {"u32": "u32", "s32": "i32", "b32": "u32", "u64": "u64", "s64": "i64", "b64": "u64"}[ptx]
    wide = type_.endswith("64")
    order = rng.choice(("relaxed", "release", "acquire", "acq_rel"))
    reach = rng.choice(("cta", "gpu", "sys"))
    instruction = kernel.fresh("ptx")
    space = rng.choice((".global", ""))
    answers = rng.random() < 0.6
    asm = f"atom.{order}.{reach}{space}.{name}.{ptx} %0, [%1], %2;"
    letter = "l" if wide else "r"
    if not answers:
        order = rng.choice(("relaxed", "release"))
        asm = f"red.{order}.{reach}{space}.{name}.{ptx} [%0], %1;"
    host = {"add": "was + value", "min": "value < was ? value : was", "max": "value > was ? value : was",
            "and": "was & value", "or": "was | value", "xor": "was ^ value"}[name]
    unsigned = "u64" if wide else "u32"
    sum_ = f"({type_})(({unsigned})was + ({unsigned})value)" if name == "add" else host
    kernel.top(f"static __device__ __forceinline__ {type_} {instruction}({type_} *cell, {type_} value)")
    kernel.top("{")
    kernel.top("#ifdef LOCKSTEP_HOST")
    kernel.top(f"    {type_} was = *cell;")
    kernel.top(f"    *cell = {sum_};")
    kernel.top("    return was;")
    kernel.top("#else")
    if answers:
        kernel.top(f"    {type_} was;")
        kernel.top(f'    asm volatile("{asm}" : "={letter}"(was) : "l"(cell), "{letter}"(value) : "memory");')
        kernel.top("    return was;")
    else:
        kernel.top(f'    asm volatile("{asm}" ::"l"(cell), "{letter}"(value) : "memory");')
        kernel.top("    return 0;")
    kernel.top("#endif")
    kernel.top("}")
    kernel.top("")
    if rng.random() < 0.5 and answers:
        cell = variable(kernel, f"{type_} *", f"({type_} *){kernel.thread_memory(BYTES[type_])}")
        kernel.emit(f"*{cell} = {kernel.expression(type_, 1)};")
        kernel.declare(type_, f"{instruction}({cell}, {kernel.expression(type_, 1)})")
        kernel.fold_value(kernel.frame.variables[-1].name)
        kernel.fold_value(f"*{cell}")
    elif reach != "cta":
        kernel.emit(f"{instruction}(({type_} *)(memory + {kernel.memory(16)}u), {kernel.expression(type_, 1)});")
    else:
        kernel.emit(f"{instruction}(({type_} *){kernel.block_memory(16)}, {kernel.expression(type_, 1)});")


@deed(weight=2, cost=40)
def gathered(kernel, lanes):
    """One addition for the set, made by its first lane; the others learn their share of the answer."""
    if not kernel.frame.in_kernel:
        return
    cell = f"(u32 *)(memory + {kernel.memory(16)}u)"
    first = variable(kernel, "u32", f"(u32)__ffs({lanes.there}) - 1u")
    base = variable(kernel, "u32", "0u")
    with kernel.block(f"if (lane_index() == {first})"):
        kernel.emit(f"{base} = atomicAdd({cell}, (u32)__popc({lanes.there}));")
    place_ = variable(kernel, "u32", f"__shfl_sync({lanes.mask}, {base}, (int){first}) + (u32)__popc({lanes.there} & lanes_below())")
    # Places are given once each: their sum and their number are certain.
    kernel.emit(f"atomicAdd((u64 *)(memory + {kernel.memory(16)}u), (u64){place_} + 1u);")


@deed(weight=2, cost=20)
def counted(kernel, lanes):
    """An addition by each lane of the set to a cell that many share."""
    if not kernel.frame.in_kernel:
        return
    rng = kernel.rng
    name = rng.choice(("atomicAdd", "atomicXor", "atomicMax", "atomicOr"))
    count = rng.choice((1, 4, 32))
    kernel.emit(f"{name}((u32 *)(memory + {kernel.memory(4 * count)}u) + {number(kernel, count)}, {kernel.expression('u32', 1)});")


@form(weight=0.7, needs="block", where="kernel", cost=50)
def fences(kernel):
    """Fences of every scope between a write and a barrier."""
    rng = kernel.rng
    cells = variable(kernel, "u32 *", f"(u32 *){kernel.block_memory(4 * kernel.threads)}")
    kernel.emit(f"*(volatile u32 *)&{cells}[thread] = {kernel.expression('u32', 1)};")
    kernel.emit(rng.choice(("__threadfence();", "__threadfence_block();", "__threadfence_system();")))
    kernel.emit("__syncthreads();")
    kernel.fold(f"*(volatile u32 *)&{cells}[(thread + {rng.randrange(40)}u) % {kernel.threads}u]")
    kernel.emit("__syncthreads();")
