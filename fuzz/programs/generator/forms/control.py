"""Branches, loops, switches, jumps and early returns."""

from ..kernel import form

KINDS = ("thread", "thread", "thread", "warp", "block", "launch")


@form(weight=14, cost=12)
def value(kernel):
    type_ = kernel.pick_type()
    kernel.declare(type_, kernel.expression(type_))


@form(weight=2, cost=8)
def uniform_value(kernel):
    kind = kernel.rng.choice(("warp", "block", "launch"))
    type_ = kernel.pick_type(("u32", "i32", "u64", "f32"))
    kernel.declare(type_, kernel.expression(type_, 2, uniform=kind), uniform=kind)


@form(weight=3, cost=6)
def fold(kernel):
    variables = kernel.variables()
    kernel.fold_value(kernel.rng.choice(variables).name if variables else kernel.expression("u64", 1))


@form(weight=5, cost=8)
def assign(kernel):
    variables = [v for v in kernel.variables() if v.mutable]
    if variables:
        variable = kernel.rng.choice(variables)
        kernel.emit(f"{variable.name} = {kernel.expression(variable.type)};")


@form(weight=2, cost=30)
def predicated_chain(kernel):
    """Short assignments under conditions: the compiler predicates or selects."""
    variables = [v for v in kernel.variables() if v.mutable]
    if not variables:
        return
    for _ in range(kernel.rng.randrange(2, 6)):
        variable = kernel.rng.choice(variables)
        with kernel.block(f"if ({kernel.condition('thread')})", "thread"):
            kernel.emit(f"{variable.name} = {kernel.expression(variable.type, 1)};")


@form(weight=6, cost=10)
def branch(kernel):
    rng = kernel.rng
    if kernel.frame.nesting > 4:
        return
    kind = rng.choice(KINDS)
    with kernel.block(f"if ({kernel.condition(kind)})", kind):
        kernel.statements(rng.randrange(1, 5), exits=True)
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        with kernel.block(f"else if ({kernel.condition(kind)})", kind):
            kernel.statements(rng.randrange(1, 4), exits=True)
    if rng.random() < 0.5:
        with kernel.block("else", kind):
            kernel.statements(rng.randrange(1, 4), exits=True)


def trips(kernel, kind):
    """How often a loop runs: the text of the bound and the most it can be."""
    rng = kernel.rng
    if rng.random() < 0.3 and kind != "thread":
        count = rng.randrange(1, 10)
        return f"{count}u", count, "launch"
    mask = rng.choice((1, 3, 3, 7, 7, 15))
    return f"({kernel.expression('u32', 1, uniform=kind)} & {mask}u)", mask, kind


@form(weight=5, cost=12)
def loop(kernel):
    rng = kernel.rng
    frame = kernel.frame
    if frame.nesting > 3 or frame.loops > 2:
        return
    kind = rng.choice(KINDS)
    bound, most, kind = trips(kernel, kind)
    if not kernel.room(most, 40):
        return
    inside = kind
    if kind != "thread" and rng.random() < 0.4:
        inside = "thread"  # lanes may leave it one by one
    counter = kernel.fresh("i")
    unroll = rng.choice(("", "", "", "#pragma unroll 1", "#pragma unroll 2", "#pragma unroll 4"))
    if unroll:
        kernel.emit(unroll)
    header = rng.choice((
        f"for (u32 {counter} = 0u; {counter} < {bound}; {counter} += 1u)",
        f"for (u32 {counter} = {bound}; {counter} != 0u; {counter} -= 1u)",
        f"for (u32 {counter} = 1u; {counter} < (1u << ({bound} & 7u)); {counter} <<= 1)",
        f"for (i32 {counter} = (i32){bound}; {counter} >= 0; {counter} -= {rng.randrange(1, 4)})",
    ))
    with kernel.block(header, inside, trips=most + 1, loop=True):
        number = kernel.fresh("v")
        kernel.declare("u32", f"(u32){counter}", uniform=kind if kind == inside else "thread", name=number, mutable=False)
        kernel.statements(rng.randrange(1, 6), exits=True)


@form(weight=3, cost=12)
def while_loop(kernel):
    rng = kernel.rng
    if kernel.frame.nesting > 3 or kernel.frame.loops > 2:
        return
    most = rng.choice((2, 4, 8, 12))
    if not kernel.room(most, 40):
        return
    counter = kernel.fresh("i")
    kernel.emit(f"u32 {counter} = 0u;")
    kind = rng.choice(KINDS)
    style = rng.randrange(3)
    header = {0: "do", 1: f"while ({counter} < {most}u && {kernel.condition(kind)})", 2: "while (true)"}[style]
    if style == 2:
        kind = "thread" if rng.random() < 0.6 else kind
    with kernel.block(header, kind, trips=most, loop=True):
        kernel.emit(f"{counter} += 1u;")
        if style == 2:
            with kernel.block(f"if ({counter} > {most}u || {kernel.condition(kind)})", kind):
                kernel.statements(rng.randrange(0, 2))
                kernel.emit("break;")
        kernel.statements(rng.randrange(1, 5), exits=True)
    if style == 0:
        kernel.frame.lines[-1] += f" while ({counter} < {most}u && {kernel.condition(kind)});"
    kernel.fold(counter)


@form(weight=4, cost=6)
def leave_loop(kernel):
    """A break or continue, under a condition or at the end of what is a block of its own."""
    rng = kernel.rng
    frame = kernel.frame
    if not frame.open_loops or not frame.exits or frame.open_loops[-1] is None:
        return
    kind = "thread" if not frame.open_loops[-1][0] else "warp" if not frame.open_loops[-1][1] else "block"
    if not kernel.may_leave_loop():
        return
    with kernel.block(f"if ({kernel.condition(kind)})", "always"):
        kernel.statements(rng.randrange(0, 3))
        kernel.emit(rng.choice(("break;", "break;", "continue;")))


@form(weight=1.5, cost=6)
def early_return(kernel):
    rng = kernel.rng
    frame = kernel.frame
    if not kernel.may_return():
        return
    kind = rng.choice(("thread", "warp", "block", "launch"))
    open_kind = "thread" if not frame.converged else "warp" if not frame.block_converged else "block"
    if frame.open_loops and kind == "thread" and open_kind != "thread":
        kind = open_kind
    if frame.open_loops and kind == "warp" and open_kind == "block":
        kind = open_kind
    # Rarely by single lanes in converged code: nothing collective can follow.
    if kind == "thread" and frame.converged and frame.in_kernel and rng.random() < 0.6:
        return
    with kernel.block(f"if ({kernel.condition(kind)})", kind):
        kernel.statements(rng.randrange(0, 3))
        kernel.leave()


@form(weight=3, cost=25)
def switch(kernel):
    rng = kernel.rng
    if kernel.frame.nesting > 3:
        return
    kind = rng.choice(KINDS)
    count = rng.choice((2, 3, 4, 5, 7, 9, 12, 17))
    dense = rng.random() < 0.65
    if dense:
        cases = list(range(count))
        selector = f"{kernel.expression('u32', 1, uniform=kind)} % {count + rng.randrange(3)}u"
        suffix = "u"
    else:
        cases = sorted(rng.sample(range(-200, 1000), count))
        table = ", ".join(map(str, cases))
        selector = kernel.fresh("x")
        kernel.emit(f"const i32 {selector}_t[{count}] = {{{table}}};")
        kernel.emit(f"i32 {selector} = {selector}_t[{kernel.expression('u32', 1, uniform=kind)} % {count}u];")
        suffix = ""
        rng.shuffle(cases)
        if count > 3:
            cases.pop()
    variables = [v for v in kernel.variables() if v.mutable]
    inner = kind if rng.random() < 0.5 else "thread"
    with kernel.block(f"switch ({selector})", inner):
        for case in cases:
            with kernel.block(f"case {case}{suffix}:", "always"):
                if variables and rng.random() < 0.6:
                    variable = rng.choice(variables)
                    kernel.emit(f"{variable.name} = {kernel.expression(variable.type, 1)};")
                else:
                    kernel.statements(1)
            if rng.random() < 0.8:
                kernel.emit("break;")
        if rng.random() < 0.6:
            with kernel.block("default:", "always"):
                kernel.statements(rng.randrange(1, 3))


@form(weight=1.5, cost=20)
def jump_ahead(kernel):
    """A goto over code, also out of nested blocks."""
    rng = kernel.rng
    if kernel.frame.nesting > 3:
        return
    label = kernel.fresh("L")
    kind = rng.choice(KINDS)
    with kernel.block("", "thread" if kind == "thread" else kind):
        for _ in range(rng.randrange(1, 3)):
            if rng.random() < 0.5:
                # Code between is in braces of its own: a jump must not pass a declaration.
                with kernel.block(f"if ({kernel.condition(kind)})", "always"):
                    kernel.statements(rng.randrange(0, 2))
                    kernel.emit(f"goto {label};")
            else:
                with kernel.block(f"if ({kernel.condition(kind)})", "always"):
                    with kernel.block(f"if ({kernel.condition(kind)})", "always"):
                        kernel.emit(f"goto {label};")
                    kernel.statements(rng.randrange(0, 2))
            with kernel.block("", "always"):
                kernel.statements(rng.randrange(1, 3))
    kernel.emit(f"{label}: ;")


@form(weight=1, cost=40)
def jump_into_loop(kernel):
    """A loop with two entries, made of gotos."""
    rng = kernel.rng
    if kernel.frame.nesting > 3 or kernel.frame.loops > 1 or not kernel.room(4, 60):
        return
    head = kernel.fresh("L")
    counter = kernel.fresh("i")
    kernel.emit(f"u32 {counter} = 0u;")
    with kernel.block(f"if ({kernel.condition('thread')})", "thread"):
        kernel.emit(f"goto {head}_middle;")
    kernel.emit(f"{head}_top: ;")
    with kernel.block("", "thread", trips=4):
        kernel.statements(rng.randrange(1, 3))
    kernel.emit(f"{head}_middle: ;")
    with kernel.block("", "thread", trips=4):
        kernel.statements(rng.randrange(1, 3))
    with kernel.block(f"if (++{counter} < {rng.randrange(2, 5)}u)", "thread"):
        kernel.emit(f"goto {head}_top;")
    if rng.random() < 0.5:
        with kernel.block(f"if ({counter} < 6u && {kernel.condition('thread')})", "thread"):
            kernel.emit(f"goto {head}_middle;")
    kernel.fold(counter)


@form(weight=0.7, cost=150)
def many_live_values(kernel):
    """More values alive at once than registers: some are spilled."""
    rng = kernel.rng
    count = rng.choice((20, 40, 60, 90))
    type_ = kernel.pick_type(("u32", "f32", "u64"))
    names = []
    for _ in range(count):
        names.append(kernel.declare(type_, kernel.expression(type_, 1)))
    if rng.random() < 0.5:
        kernel.statements(2)
    else:
        counter = kernel.fresh("i")
        with kernel.block(f"for (u32 {counter} = 0u; {counter} < {rng.randrange(2, 4)}u; {counter} += 1u)", "thread", trips=3, loop=True):
            for name in rng.sample(names, min(count, 20)):
                kernel.emit(f"{name} = {kernel.expression(type_, 1)};")
    rng.shuffle(names)
    for name in names:
        kernel.fold_value(name)
    # They are one statement's: the code after it sees only a few.
    keep = set(names[:3])
    kernel.frame.variables[:] = [v for v in kernel.frame.variables if v.name in keep or v.name not in names]
