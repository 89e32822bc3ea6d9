"""Memory that threads ask for while they run: from the heap, by `new`, and on the stack."""

from ..kernel import form
from ..lanes import number, variable

# Bytes that a kernel of these may have of the heap at once.
HEAP = 8 << 20


def may_ask(kernel, size):
    """Whether all threads together may have so much, however often this runs."""
    asked = getattr(kernel, "asked", 0) + (size + 128) * kernel.threads * kernel.blocks
    if asked > HEAP // 4:
        return False
    kernel.asked = asked
    kernel.limits["heap"] = HEAP
    return True


@form(weight=0.7, where="kernel", cost=120)
def heap(kernel):
    """An array of each thread from the heap: filled, read in another order, given back."""
    rng = kernel.rng
    count = rng.choice((1, 3, 8, 17, 40))
    if not may_ask(kernel, 8 * count):
        return
    type_ = rng.choice(("u32", "u64", "u8", "u16"))
    many = variable(kernel, "u32", f"{number(kernel, count)} + 1u")
    if rng.random() < 0.5:
        cells, end = variable(kernel, f"{type_} *", f"({type_} *)malloc({many} * sizeof({type_}))"), "free({});"
    else:
        cells, end = variable(kernel, f"{type_} *", f"new {type_}[{many}]"), "delete[] {};"
    with kernel.block(f"if ({cells} != nullptr)"):
        step = kernel.fresh("i")
        with kernel.block(f"for (u32 {step} = 0; {step} < {many}; ++{step})", "thread", trips=count):
            kernel.emit(f"{cells}[{step}] = ({type_})({kernel.expression('u32', 1)} + {step} * {rng.randrange(1, 99)}u);")
        kernel.fold(f"{cells}[{kernel.expression('u32', 1)} % {many}]")
        with kernel.block(f"for (u32 {step} = {many}; {step}-- != 0u; )", "thread", trips=count):
            kernel.fold(f"{cells}[{step}]")
        kernel.emit(end.format(cells))
    with kernel.block("else"):
        kernel.fold("0xdeadull")


@form(weight=0.5, where="kernel", cost=150)
def chain_on_the_heap(kernel):
    """A list of each thread, as long as it likes, built, walked and given back."""
    rng = kernel.rng
    longest = rng.randrange(2, 7)
    if not may_ask(kernel, 64 * longest):
        return
    node = kernel.fresh("Node")
    kernel.top(f"struct {node}")
    kernel.top("{")
    kernel.top(f"    {node} *next;")
    kernel.top(f"    {rng.choice(('u32', 'u64', 'u16'))} value;")
    kernel.top("};")
    kernel.top("")
    first = variable(kernel, f"{node} *", "nullptr")
    step, now = kernel.fresh("i"), kernel.fresh("w")
    ask, give_back = rng.choice(((f"new {node}", "delete {};"), (f"({node} *)malloc(sizeof({node}))", "free({});")))
    long = variable(kernel, "u32", number(kernel, longest))
    with kernel.block(f"for (u32 {step} = 0; {step} < {long}; ++{step})", "thread", trips=longest):
        kernel.emit(f"{node} *{now} = {ask};")
        kernel.emit(f"if ({now} == nullptr) break;")
        kernel.emit(f"{now}->value = {kernel.expression('u32', 1)} + {step};")
        kernel.emit(f"{now}->next = {first};")
        kernel.emit(f"{first} = {now};")
    with kernel.block(f"while ({first} != nullptr)", "thread", trips=longest):
        kernel.fold(f"{first}->value")
        kernel.emit(f"{node} *{now} = {first}->next;")
        kernel.emit(give_back.format(first))
        kernel.emit(f"{first} = {now};")


@form(weight=0.5, needs="block", where="kernel", cost=120)
def handed_on(kernel):
    """Memory that one thread asks for and others write, read and give back."""
    kernel.need("together")
    rng = kernel.rng
    if not may_ask(kernel, 16) or kernel.shared_bytes > 30000:
        return
    box = kernel.fresh("s")
    kernel.shared_bytes += 8 * kernel.threads + 16
    alone = rng.random() < 0.5
    kernel.frame.declarations.append(f"    __shared__ u32 *{box}[{1 if alone else kernel.threads}];")
    if alone:
        kernel.emit(f"if (thread == {rng.randrange(kernel.threads)}u) {box}[0] = (u32 *)malloc({4 * kernel.threads}u);")
        kernel.emit("__syncthreads();")
        cells = variable(kernel, "u32 *", f"{box}[0]")
        kernel.emit(f"if ({cells} != nullptr) {cells}[thread] = {kernel.expression('u32', 1)};")
        kernel.emit("__syncthreads();")
        kernel.fold(f"{cells} != nullptr ? {cells}[(thread + {rng.randrange(40)}u) % {kernel.threads}u] : 1u")
        kernel.emit("__syncthreads();")
        kernel.emit(f"if (thread == {rng.randrange(kernel.threads)}u) free({cells});")
    else:
        mine = variable(kernel, "u32 *", "(u32 *)malloc(4u)")
        kernel.emit(f"if ({mine} != nullptr) *{mine} = {kernel.expression('u32', 1)};")
        kernel.emit(f"{box}[thread] = {mine};")
        kernel.emit("__syncthreads();")
        other = variable(kernel, "u32 *", f"{box}[(thread + {rng.randrange(40)}u) % {kernel.threads}u]")
        kernel.fold(f"{other} != nullptr ? *{other} : 1u")
        kernel.emit(f"free({other});")
    kernel.emit("__syncthreads();")


@form(weight=0.3, where="kernel", cost=100)
def stack(kernel):
    """An array on the stack whose size each lane decides."""
    rng = kernel.rng
    if kernel.frame.scale > 1 or kernel.frame.loops or getattr(kernel, "stacked", 0) > 2:
        return
    kernel.stacked = getattr(kernel, "stacked", 0) + 1
    kernel.limits["stack"] = 16384
    count = rng.choice((2, 9, 20, 64))
    many = variable(kernel, "u32", f"{number(kernel, count)} + 1u")
    type_ = rng.choice(("u32", "u64", "u8"))
    cells = variable(kernel, f"{type_} *", f"({type_} *)alloca({many} * sizeof({type_}))")
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = 0; {step} < {many}; ++{step})", "thread", trips=count):
        kernel.emit(f"{cells}[{step}] = ({type_})({kernel.expression('u32', 1)} ^ {step} * {rng.randrange(1, 99)}u);")
    for _ in range(rng.randrange(1, 4)):
        kernel.fold(f"{cells}[{kernel.expression('u32', 1)} % {many}]")
