"""Code that a set of lanes runs together: who they are, what they may do, and how they part and meet.

A `Lanes` is a set for each warp. Every lane of it certainly runs the code being written, as often as the
others do, but in no order: an operation on `mask` is what brings them together. `code` writes such code;
each way to part (`@parting`) makes smaller sets and writes code for these. Forms in `forms/` register what
the lanes do (`@deed`) and say where such code begins.

Values that differ from lane to lane are taken from lanes that are in the set, so nothing depends on the order
in which lanes come.
"""

from dataclasses import dataclass

from .kernel import TYPES

DEEDS = []
PARTINGS = []


@dataclass(frozen=True)
class Lanes:
    mask: str  # what the operations are told
    there: str  # those which are there: `mask` without lanes that are no more or never were
    whole: bool = False  # all lanes that the warp has


def deed(weight=1, cost=12):
    """Registers what lanes may do together: a function of the kernel and the lanes."""

    def register(function):
        DEEDS.append((function, weight, cost))
        return function

    return register


def parting(weight=1, trips=1):
    """Registers a way to part: a function of the kernel, the lanes and the depth that is left."""

    def register(function):
        PARTINGS.append((function, weight, trips))
        return function

    return register


def everyone(kernel):
    """The lanes of a warp, in code that all of them reach."""
    kernel.need("together")
    if kernel.full_warps:
        return Lanes(kernel.rng.choice(("0xffffffffu", "0xffffffffu", "lanes")), "0xffffffffu", True)
    return Lanes(kernel.rng.choice(("0xffffffffu", "lanes", "lanes_of_warp()")), "lanes", True)


def spend(kernel, cost):
    kernel.work += kernel.frame.scale * cost * kernel.warps * kernel.blocks


def lane(kernel):
    """The text of a lane's number."""
    if kernel.frame.in_kernel and kernel.rng.random() < 0.6:
        return "lane"
    return "lane_index()"


def number(kernel, limit, depth=1):
    """The text of a number below `limit` that differs from lane to lane."""
    rng = kernel.rng
    choice = rng.randrange(5)
    if choice == 0:
        return f"({lane(kernel)} % {limit}u)"
    if choice == 1:
        return f"({lane(kernel)} * {rng.randrange(3, 32)}u / 7u % {limit}u)"
    if choice == 2:
        return f"((0x{rng.getrandbits(32):08x}u >> {lane(kernel)}) % {limit}u)"
    return f"({kernel.expression('u32', depth)} % {limit}u)"


def predicate(kernel):
    """The text of a condition that differs from lane to lane."""
    rng = kernel.rng
    choice = rng.randrange(4)
    if choice == 0:
        return f"((0x{rng.getrandbits(32):08x}u >> {lane(kernel)}) & 1u)"
    if choice == 1:
        return f"({number(kernel, rng.randrange(2, 9))} < {rng.randrange(1, 5)}u)"
    return f"({kernel.condition('thread')})"


def variable(kernel, type_, text, prefix="w"):
    """Writes a variable which expressions do not see, so that nothing assigns it."""
    name = kernel.fresh(prefix)
    kernel.emit(f"{type_} {name} = {text};")
    return name


def delay(kernel):
    """Makes lanes late, each by its own measure."""
    rng = kernel.rng
    choice = rng.randrange(3)
    if choice == 0:
        kernel.emit(f"sleep_for({number(kernel, rng.choice((2, 20, 100)))});")
        spend(kernel, 4)
    else:
        kernel.fold(f"dawdle({kernel.expression('u32', 0)}, {number(kernel, rng.choice((2, 4, 9)))})")
        spend(kernel, 25)


def ordinary(kernel):
    """A statement that concerns one lane alone."""
    rng = kernel.rng
    mutable = [v for v in kernel.variables() if v.mutable]
    if mutable and rng.random() < 0.3:
        chosen = rng.choice(mutable)
        kernel.emit(f"{chosen.name} = {kernel.expression(chosen.type)};")
    elif rng.random() < 0.5:
        type_ = kernel.pick_type()
        kernel.declare(type_, kernel.expression(type_))
    else:
        kernel.fold_value(kernel.expression(kernel.pick_type(), 2))
    spend(kernel, 10)


def meet(kernel, lanes):
    kernel.emit(f"__syncwarp({lanes.mask});")
    spend(kernel, 2)


def act(kernel, lanes):
    """One thing that the lanes do together."""
    function, _, cost = kernel.rng.choices(DEEDS, [weight for _, weight, _ in DEEDS])[0]
    spend(kernel, cost)
    function(kernel, lanes)


def code(kernel, lanes, depth=2, least=1):
    """Writes code for a set of lanes: what they do together and alone, and ways to part."""
    rng = kernel.rng
    act(kernel, lanes)
    for _ in range(rng.randrange(least, least + 3)):
        chance = rng.random()
        if chance < 0.35 and depth > 0:
            function, _, trips = rng.choices(PARTINGS, [weight for _, weight, _ in PARTINGS])[0]
            if kernel.room(trips, 60 * 2 ** depth):
                function(kernel, lanes, depth - 1)
                continue
        if chance < 0.5:
            ordinary(kernel)
        elif chance < 0.58:
            delay(kernel)
        elif chance < 0.63:
            meet(kernel, lanes)
        else:
            act(kernel, lanes)


# -- ways to part --------------------------------------------------------------------------------------------------


@parting(weight=5)
def branch(kernel, lanes, depth):
    """Two sides of a condition, whose masks are voted for before; perhaps both then meet from where they are."""
    rng = kernel.rng
    condition = variable(kernel, "bool", predicate(kernel))
    yes = variable(kernel, "u32", f"__ballot_sync({lanes.mask}, {condition})")
    no = f"({lanes.there} & ~{yes})"
    if rng.random() < 0.5:
        no = variable(kernel, "u32", no)
    meeting = rng.random() < 0.3
    with kernel.block(f"if ({condition})"):
        if rng.random() < 0.3:
            delay(kernel)
        code(kernel, Lanes(yes, yes), depth)
        if meeting:
            meet(kernel, lanes)
            ordinary(kernel)
    if meeting or rng.random() < 0.6:
        with kernel.block("else"):
            if rng.random() < 0.3:
                delay(kernel)
            code(kernel, Lanes(no, no), depth)
            if meeting:
                meet(kernel, lanes)


@parting(weight=3)
def branch_by_number(kernel, lanes, depth):
    """A condition on the lane's number alone: the masks are literals where all lanes are there."""
    rng = kernel.rng
    shape = rng.randrange(4)
    if shape == 0:
        first = rng.randrange(1, 32)
        pattern = (1 << first) - 1
        condition = f"{lane(kernel)} < {first}u"
    elif shape == 1:
        bit = rng.randrange(5)
        pattern = sum(1 << i for i in range(32) if i >> bit & 1)
        condition = f"({lane(kernel)} & {1 << bit}u) != 0u"
    elif shape == 2:
        one = rng.randrange(32)
        pattern = 1 << one
        condition = f"{lane(kernel)} == {one}u"
    else:
        pattern = rng.getrandbits(32) | 1 << rng.randrange(32)
        condition = f"(0x{pattern:08x}u >> {lane(kernel)}) & 1u"

    def part(pattern):
        literal = f"0x{pattern:08x}u"
        there = literal if lanes.there == "0xffffffffu" else f"({lanes.there} & {literal})"
        return Lanes(literal if lanes.whole else there, there)

    with kernel.block(f"if ({condition})"):
        code(kernel, part(pattern), depth)
    if rng.random() < 0.6:
        with kernel.block("else"):
            code(kernel, part(~pattern & 0xFFFFFFFF), depth)


@parting(weight=3)
def groups_of_equals(kernel, lanes, depth):
    """Disjoint sets in one code: lanes of equal value, each set with its own mask."""
    key = number(kernel, kernel.rng.randrange(1, 7))
    group = variable(kernel, "u32", f"__match_any_sync({lanes.mask}, {key})")
    with kernel.block("", "thread"):
        code(kernel, Lanes(group, group), depth)


@parting(weight=3)
def groups_of_neighbours(kernel, lanes, depth):
    """Disjoint sets in one code: runs of 1 to 16 lanes."""
    size = kernel.rng.choice((1, 2, 4, 8, 16))
    run = f"(0x{(1 << size) - 1:x}u << ({lane(kernel)} & {32 - size}u))"
    group = variable(kernel, "u32", f"{run} & {lanes.there}")
    with kernel.block("", "thread"):
        code(kernel, Lanes(group, group), depth)


@parting(weight=3)
def groups_apart(kernel, lanes, depth):
    """Disjoint sets, each going round a loop as often as it likes."""
    rng = kernel.rng
    group = variable(kernel, "u32", f"__match_any_sync({lanes.mask}, {number(kernel, rng.randrange(2, 5))})")
    rounds = rng.choice((f"(u32)__popc({group}) % 4u", f"(u32)__ffs({group}) % 4u"))
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = 0; {step} < {rounds}; ++{step})", "thread", trips=3):
        kernel.fold(step)
        code(kernel, Lanes(group, group), depth)


@parting(weight=4, trips=3)
def shrinking_loop(kernel, lanes, depth):
    """A loop that each lane leaves in its own time; those that stay vote on who they are."""
    rng = kernel.rng
    rounds = variable(kernel, "u32", number(kernel, rng.randrange(2, 6)))
    now = variable(kernel, "u32", lanes.there)
    stays = kernel.fresh("w")
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = 0; ; ++{step})", "thread", trips=4):
        kernel.emit(f"bool {stays} = {step} < {rounds};")
        kernel.emit(f"{now} = __ballot_sync({now}, {stays});")
        kernel.emit(f"if (!{stays}) break;")
        kernel.fold(step)
        code(kernel, Lanes(now, now), depth)


@parting(weight=2, trips=3)
def pruned_loop(kernel, lanes, depth):
    """A loop round which all lanes go, where some skip the rest of a round."""
    rng = kernel.rng
    step = kernel.fresh("i")
    kept = kernel.fresh("w")
    with kernel.block(f"for (u32 {step} = 0; {step} < {rng.randrange(1, 4)}u; ++{step})", "thread", trips=3):
        kernel.emit(f"bool {kept} = {predicate(kernel)};")
        keep = variable(kernel, "u32", f"__ballot_sync({lanes.mask}, {kept})")
        with kernel.block(f"if (!{kept})"):
            skip = f"({lanes.there} & ~{keep})"
            act(kernel, Lanes(skip, skip))
            kernel.emit("continue;")
        code(kernel, Lanes(keep, keep), depth)


@parting(weight=3)
def cases(kernel, lanes, depth):
    """A switch whose cases are sets of equals; some fall through to the next and meet it."""
    rng = kernel.rng
    count = rng.randrange(2, 6)
    key = variable(kernel, "u32", number(kernel, count))
    falls = [rng.random() < 0.2 for _ in range(count)]
    falls[-1] = False
    same = variable(kernel, "u32", f"__match_any_sync({lanes.mask}, {key})")
    sets = []
    for case in range(count):
        name = same
        first = case
        while first and falls[first - 1]:
            first -= 1
        if first < case:
            name = variable(kernel, "u32", f"__ballot_sync({lanes.mask}, {key} >= {first}u && {key} <= {case}u)")
        sets.append(name)
    with kernel.block(f"switch ({key})"):
        for case in range(count):
            with kernel.block(f"case {case}u:" if case < count - 1 else "default:"):
                if rng.random() < 0.85:
                    code(kernel, Lanes(sets[case], sets[case]), max(0, depth - 1))
                else:
                    ordinary(kernel)
            if not falls[case]:
                kernel.emit("break;")


def may_call(kernel):
    return kernel.frame.in_kernel or kernel.frame.nesting < 6


def function(kernel, depth):
    """A function for a set of lanes, which answers a hash of what it did; its name."""
    with kernel.function("u64", (("u32", "mask"), ("u32", "there"), ("u32", "given_value"), ("u64", "given_hash")),
                         attributes=kernel.rng.choice(("__device__ __noinline__", "__device__ __noinline__", "__device__"))) as name:
        kernel.fold("given_hash")
        code(kernel, Lanes("mask", "there"), depth)
        kernel.emit("return h;")
    return name


@parting(weight=3)
def call(kernel, lanes, depth):
    """A call of a function that the lanes run together."""
    if not may_call(kernel):
        return
    name = function(kernel, depth)
    kernel.declare("u64", f"{name}({lanes.mask}, {lanes.there}, {kernel.expression('u32', 1)}, h)")
    kernel.fold(kernel.frame.variables[-1].name)


@parting(weight=2)
def call_by_pointer(kernel, lanes, depth):
    """Calls through a table, where each set of equals calls its own function."""
    if not may_call(kernel):
        return
    rng = kernel.rng
    names = [function(kernel, 0) for _ in range(rng.randrange(2, 4))]
    table = kernel.fresh("t")
    kernel.top(f"typedef u64 (*{table}_kind)(u32, u32, u32, u64);")
    space = rng.choice(("__device__", "__constant__"))
    kernel.top(f"{space} {table}_kind {table}[{len(names)}] = {{{', '.join(names)}}};")
    key = variable(kernel, "u32", number(kernel, len(names)))
    group = variable(kernel, "u32", f"__match_any_sync({lanes.mask}, {key})")
    kernel.declare("u64", f"{table}[{key}]({group}, {group}, {kernel.expression('u32', 1)}, h)")
    kernel.emit(f"rejoin({lanes.mask});")
    kernel.fold(kernel.frame.variables[-1].name)


@parting(weight=2, trips=4)
def descend(kernel, lanes, depth):
    """A recursion as deep as each lane likes; those that go on vote on who they are, and on the way back they meet the others."""
    if not may_call(kernel):
        return
    rng = kernel.rng
    name = kernel.fresh("f")
    kernel.top(f"__device__ __noinline__ u64 {name}(u32 mask, u32 there, u32 steps, u64 given_hash);")
    with kernel.function("u64", (("u32", "mask"), ("u32", "there"), ("u32", "steps"), ("u64", "given_hash")), name=name, scale=3):
        kernel.fold("given_hash + steps")
        here = Lanes("mask", "there")
        code(kernel, here, 0)
        deeper = variable(kernel, "u32", "__ballot_sync(mask, steps != 0u)")
        with kernel.block("if (steps != 0u)"):
            if rng.random() < 0.3:
                delay(kernel)
            kernel.fold(f"{name}({deeper}, {deeper}, steps - 1u, h)")
            if rng.random() < 0.3:
                act(kernel, Lanes(deeper, deeper))
        code(kernel, here, 0)
        kernel.emit("return h;")
    kernel.limits["stack"] = 16384
    kernel.fold(f"{name}({lanes.mask}, {lanes.there}, {number(kernel, rng.randrange(2, 5))}, h)")
    kernel.emit(f"rejoin({lanes.mask});")


@parting(weight=2)
def in_any_order(kernel, lanes, depth):
    """Lanes that come late, each by its own measure, and meet in what follows."""
    with kernel.block(f"if ({predicate(kernel)})"):
        delay(kernel)
        if kernel.rng.random() < 0.5:
            with kernel.block(f"if ({predicate(kernel)})"):
                delay(kernel)
    act(kernel, lanes)


def exchanged_types(kernel):
    names = ["u32", "i32", "u64", "i64", "f32", "f64"]
    names += [n for n in ("f16x2", "f16", "bf16x2", "bf16") if n in TYPES and kernel.allows(n)]
    return names
