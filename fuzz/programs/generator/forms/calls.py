"""Device functions: called by name, by pointer, by table, through virtual tables, and by themselves."""

from ..kernel import Variable, form

ATTRIBUTES = ("__device__ __noinline__",) * 5 + ("__device__ __forceinline__", "__device__", "static __device__ __noinline__")


def signature(kernel, least=1, most=6):
    types = [kernel.pick_type() for _ in range(kernel.rng.randrange(least, most + 1))]
    return [(type_, f"a{number}") for number, type_ in enumerate(types)]


def call_text(kernel, name, arguments):
    return f"{name}({', '.join(kernel.expression(type_, 1) for type_, _ in arguments)})"


def body(kernel, result, arguments, attributes=None, most=5, scale=1):
    """Writes a function and returns its name."""
    with kernel.function(result, arguments, attributes or kernel.rng.choice(ATTRIBUTES), scale=scale) as name:
        kernel.statements(kernel.rng.randrange(1, most + 1), exits=True)
        finish(kernel, result)
    return name


def finish(kernel, result):
    if result == "u64":
        for variable in kernel.variables()[:5]:
            kernel.fold_value(variable.name)
        kernel.emit("return h;")
    else:
        kernel.emit(f"return {kernel.expression(result, 2)};")


def deep(kernel):
    """Whether functions are nested enough already."""
    return kernel.frame.nesting > 5


def stack(kernel):
    kernel.limits["stack"] = 16384


@form(weight=4, cost=60)
def call(kernel):
    if deep(kernel):
        return
    rng = kernel.rng
    known = kernel.__dict__.setdefault("functions", [])
    if known and kernel.frame.in_kernel and rng.random() < 0.4:
        name, result, arguments = rng.choice(known)
    else:
        result = "u64" if rng.random() < 0.4 else kernel.pick_type()
        arguments = signature(kernel, 0, rng.choice((3, 3, 6, 14)))
        name = body(kernel, result, arguments)
        if kernel.frame.in_kernel:
            known.append((name, result, arguments))
    kernel.declare(result, call_text(kernel, name, arguments))


@form(weight=2, cost=80)
def call_by_pointer(kernel):
    """A table of functions in constant, global or local memory, or a choice of two."""
    if deep(kernel):
        return
    rng = kernel.rng
    stack(kernel)
    result = "u64" if rng.random() < 0.4 else kernel.pick_type()
    arguments = signature(kernel, 1, 4)
    names = [body(kernel, result, arguments, "__device__ __noinline__", 3) for _ in range(rng.randrange(2, 5))]
    type_ = kernel.fresh("t")
    kernel.top(f"typedef {result} (*{type_})({', '.join(t for t, _ in arguments)});")
    kind = rng.choice(("thread", "thread", "warp", "launch"))
    index = f"{kernel.expression('u32', 1, uniform=kind)} % {len(names)}u"
    where = rng.randrange(4)
    table = kernel.fresh("table")
    listed = ", ".join(names)
    if where == 0:
        kernel.top(f"__device__ {type_} {table}[{len(names)}] = {{{listed}}};")
    elif where == 1:
        kernel.top(f"__constant__ {type_} {table}[{len(names)}] = {{{listed}}};")
    elif where == 2:
        kernel.emit(f"{type_} {table}[{len(names)}] = {{{listed}}};")
    else:
        kernel.emit(f"{type_} {table}_one = {kernel.condition(kind)} ? {names[0]} : {names[1]};")
        kernel.declare(result, call_text(kernel, f"{table}_one", arguments))
        return
    kernel.declare(result, call_text(kernel, f"{table}[{index}]", arguments))


@form(weight=1.5, cost=150)
def recursion(kernel):
    """A function that calls itself, to a depth that differs from thread to thread."""
    if deep(kernel) or not kernel.room(6, 100):
        return
    rng = kernel.rng
    stack(kernel)
    result = "u64" if rng.random() < 0.5 else kernel.pick_type()
    arguments = [("u32", "depth")] + signature(kernel, 1, 3)
    twice = rng.random() < 0.25
    most = 3 if twice else rng.randrange(3, 8)
    with kernel.function(result, arguments, scale=8) as name:
        kernel.frame.variables = [v for v in kernel.frame.variables if v.name != "depth"]
        with kernel.block(f"if (depth == 0u{rng.choice(('', ' || ' + kernel.condition('thread')))})", "thread"):
            kernel.emit(f"return {kernel.expression(result, 1)};")
        kernel.statements(rng.randrange(1, 3))
        deeper = f"{name}(depth - 1u, {', '.join(kernel.expression(t, 1) for t, _ in arguments[1:])})"
        kernel.declare(result, deeper)
        if twice:
            with kernel.block(f"if ({kernel.condition('thread')})", "thread"):
                kernel.declare(result, deeper)
        kernel.statements(rng.randrange(0, 2))
        finish(kernel, result)
    kernel.declare(result, f"{name}({kernel.expression('u32', 1)} % {most}u, {', '.join(kernel.expression(t, 1) for t, _ in arguments[1:])})")


@form(weight=0.7, cost=150)
def mutual_recursion(kernel):
    if deep(kernel) or not kernel.room(6, 100):
        return
    stack(kernel)
    first, second = kernel.fresh("f"), kernel.fresh("f")
    kernel.top(f"__device__ __noinline__ u32 {second}(u32 depth, u32 x);")
    for name, other in ((first, second), (second, first)):
        with kernel.function("u32", [("u32", "depth"), ("u32", "x")], name=name, scale=4):
            kernel.frame.variables = [v for v in kernel.frame.variables if v.name != "depth"]
            kernel.statements(kernel.rng.randrange(1, 3))
            with kernel.block("if (depth != 0u)", "thread"):
                kernel.emit(f"x ^= {other}(depth - 1u, {kernel.expression('u32', 1)});")
            kernel.emit("return x + (u32)h;")
    kernel.declare("u32", f"{first}({kernel.expression('u32', 1)} % {kernel.rng.randrange(2, 7)}u, {kernel.expression('u32', 1)})")


@form(weight=1.5, cost=100)
def virtual_call(kernel):
    """Objects built in local memory and called through their base."""
    if deep(kernel):
        return
    rng = kernel.rng
    stack(kernel)
    base = kernel.fresh("Base")
    field = kernel.pick_type(("u32", "u64", "f32", "i32"))
    kernel.top(f"struct {base}")
    kernel.top("{")
    kernel.top(f"    {field} value;")
    kernel.top(f"    __device__ {base}({field} v) : value(v) {{}}")
    kernel.top("    __device__ virtual u64 get(u32 x) = 0;")
    kernel.top("    __device__ virtual u32 more(u64 x) { return (u32)(x >> 7) + (u32)bits(value); }")
    kernel.top("};")
    derived = []
    for _ in range(rng.randrange(2, 4)):
        inner = body(kernel, "u64", [("u32", "x"), (field, "v")], "__device__ __noinline__", 2)
        name = kernel.fresh("Derived")
        derived.append(name)
        kernel.top(f"struct {name} : {base}")
        kernel.top("{")
        kernel.top("    u32 extra;")
        kernel.top(f"    __device__ {name}({field} v, u32 e) : {base}(v), extra(e) {{}}")
        kernel.top(f"    __device__ __noinline__ u64 get(u32 x) override {{ extra += x; return {inner}(x ^ extra, value); }}")
        if rng.random() < 0.5:
            kernel.top(f"    __device__ __noinline__ u32 more(u64 x) override {{ return extra * {rng.randrange(3, 99)}u + (u32)get((u32)x); }}")
        kernel.top("};")
    objects = []
    for name in derived:
        thing = kernel.fresh("o")
        objects.append(thing)
        kernel.emit(f"{name} {thing}({kernel.expression(field, 1)}, {kernel.expression('u32', 1)});")
    pointers = kernel.fresh("o")
    kind = rng.choice(("thread", "thread", "warp", "launch"))
    kernel.emit(f"{base} *{pointers}[{len(objects)}] = {{{', '.join('&' + thing for thing in objects)}}};")
    kernel.declare("u64", f"{pointers}[{kernel.expression('u32', 1, uniform=kind)} % {len(objects)}u]->get({kernel.expression('u32', 1)})")
    if rng.random() < 0.6:
        kernel.declare("u32", f"{pointers}[{kernel.expression('u32', 1, uniform=kind)} % {len(objects)}u]->more({kernel.expression('u64', 1)})")


@form(weight=1.5, cost=80)
def structures(kernel):
    """Structures as arguments and results, of odd sizes, and references."""
    if deep(kernel):
        return
    rng = kernel.rng
    name = kernel.fresh("S")
    fields = [(kernel.pick_type(), f"m{number}") for number in range(rng.choice((1, 2, 3, 4, 6, 9)))]
    kernel.top(f"struct {name}")
    kernel.top("{")
    for type_, member in fields:
        kernel.top(f"    {type_} {member};")
    kernel.top("};")
    arguments = [(name, "s"), (kernel.pick_type(), "a0")]
    with kernel.function(name, arguments) as function:
        for type_, member in fields:
            kernel.frame.variables.append(Variable(f"s.{member}", type_, "thread", True))
        kernel.frame.result = ""
        kernel.statements(rng.randrange(1, 4))
        kernel.emit(f"s.{fields[0][1]} = {kernel.expression(fields[0][0], 1)};")
        kernel.emit("return s;")
    thing = kernel.fresh("o")
    kernel.emit(f"{name} {thing};")
    for type_, member in fields:
        kernel.emit(f"{thing}.{member} = {kernel.expression(type_, 1)};")
    kernel.emit(f"{thing} = {function}({thing}, {kernel.expression(arguments[1][0], 1)});")
    for type_, member in fields:
        kernel.declare(type_, f"{thing}.{member}")
    if rng.random() < 0.5:
        with kernel.function("void", [(f"{name} *", "s"), ("u32 &", "r")]) as function:
            kernel.frame.result = ""
            kernel.frame.variables.append(Variable("r", "u32", "thread", True))
            kernel.statements(rng.randrange(1, 3))
            kernel.emit(f"s->{fields[-1][1]} = {kernel.expression(fields[-1][0], 1)};")
            kernel.emit("r += (u32)h;")
        number = kernel.declare("u32", kernel.expression("u32", 1))
        kernel.emit(f"{function}(&{thing}, {number});")
        kernel.fold_value(f"{thing}.{fields[-1][1]}")
