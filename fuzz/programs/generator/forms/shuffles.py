"""Shuffles: values taken from other lanes of a set."""

from .. import lanes as together
from ..kernel import form
from ..lanes import deed, exchanged_types, number

WIDTHS = (32, 32, 32, 16, 8, 4, 2, 1)


@deed(weight=8)
def shuffle(kernel, lanes):
    """A shuffle of any kind, by a literal or a variable distance, in segments of any width."""
    rng = kernel.rng
    type_ = rng.choice(exchanged_types(kernel))
    kind = rng.choice(("up", "down", "xor", "index", "index"))
    value = kernel.expression(type_, 1)
    by = str(rng.randrange(32)) + "u" if rng.random() < 0.5 else number(kernel, 32)
    if kind == "index" and rng.random() < 0.5:
        by = f"nth_lane({lanes.there}, {kernel.expression('u32', 1)})"
    width = 32 if "nth_lane" in by else rng.choice(WIDTHS)
    kernel.declare(type_, f"shuffle_{kind}({lanes.mask}, {lanes.there}, ({type_}){value}, {by}, {width}u)")
    kernel.fold_value(kernel.frame.variables[-1].name)


@deed(weight=3)
def shuffle_bounded(kernel, lanes):
    """A shuffle with bounds and segments that no intrinsic has, and with its predicate."""
    rng = kernel.rng
    kind = rng.choice(("up", "down", "xor", "index"))
    bounds = f"0x{rng.getrandbits(5) << 8 | rng.getrandbits(5):x}u" if rng.random() < 0.7 else f"({kernel.expression('u32', 1)} & 0x1f1fu)"
    by = str(rng.randrange(32)) + "u" if rng.random() < 0.5 else number(kernel, 32)
    kernel.fold(f"shuffle_{kind}_bounded({lanes.mask}, {lanes.there}, {kernel.expression('u32', 1)}, {by}, {bounds})")


@deed(weight=2, cost=60)
def scan(kernel, lanes):
    """A running sum over the lanes before this one, in steps that double."""
    name = together.variable(kernel, "u32", kernel.expression("u32", 1))
    step = kernel.fresh("i")
    got = kernel.fresh("w")
    start = kernel.rng.choice((1, 1, 2, 4))
    with kernel.block(f"for (u32 {step} = {start}; {step} < 32u; {step} *= 2u)", "always", trips=5):
        kernel.emit(f"u32 {got} = shuffle_up({lanes.mask}, {lanes.there}, {name}, {step}, 32u);")
        kernel.emit(f"if (lane_index() >= {step}) {name} += {got};")
    kernel.fold(name)


@deed(weight=2, cost=60)
def butterfly(kernel, lanes):
    """A sum over all lanes by exchange with ever nearer ones."""
    type_ = kernel.rng.choice(("u32", "u64", "i64"))
    unsigned = "u32" if type_ == "u32" else "u64"
    name = together.variable(kernel, unsigned, f"({unsigned}){kernel.expression(type_, 1)}")
    step = kernel.fresh("i")
    with kernel.block(f"for (u32 {step} = {kernel.rng.choice((16, 16, 8, 4))}u; {step}; {step} /= 2u)", "always", trips=5):
        kernel.emit(f"{name} {kernel.rng.choice(('+=', '^=', '+='))} shuffle_xor({lanes.mask}, {lanes.there}, {name}, {step}, 32u);")
    kernel.fold(name)


@deed(weight=2, cost=100)
def sort_step(kernel, lanes):
    """A few steps of a bitonic sort."""
    rng = kernel.rng
    name = together.variable(kernel, "u32", kernel.expression("u32", 1))
    size = rng.choice((2, 4, 8))
    reach = kernel.fresh("i")
    other = kernel.fresh("w")
    keep = kernel.fresh("w")
    with kernel.block(f"for (u32 {reach} = {size}u; {reach}; {reach} /= 2u)", "always", trips=4):
        kernel.emit(f"u32 {other} = shuffle_xor({lanes.mask}, {lanes.there}, {name}, {reach}, 32u);")
        kernel.emit(f"bool {keep} = ((lane_index() & {reach}) != 0u) == ((lane_index() & {2 * size}u) != 0u);")
        kernel.emit(f"{name} = {keep} ? min({name}, {other}) : max({name}, {other});")
    kernel.fold(name)


@deed(weight=2, cost=40)
def broadcast_in_turn(kernel, lanes):
    """Some lanes of the set tell the others their value, one after the other."""
    value = together.variable(kernel, "u32", kernel.expression("u32", 1))
    left = together.variable(kernel, "u32", lanes.there)
    turns = kernel.rng.randrange(1, 5)
    turn = kernel.fresh("i")
    with kernel.block(f"for (u32 {turn} = 0; {turn} < {turns}u && {left}; ++{turn})", "always", trips=turns):
        kernel.fold(f"__shfl_sync({lanes.mask}, {value}, __ffs({left}) - 1)")
        kernel.emit(f"{left} &= {left} - 1u;")


@form(weight=4, needs="warp", where="kernel", cost=30)
def lanes_together(kernel):
    """What all lanes of a warp do together."""
    together.code(kernel, together.everyone(kernel), depth=0)


@form(weight=5, needs="warp", where="kernel", cost=120)
def lanes_that_part(kernel):
    """What the lanes of a warp do together, in sets that part and meet."""
    together.code(kernel, together.everyone(kernel), depth=kernel.rng.choice((1, 2, 2, 3)))


@form(weight=0.6, needs="warp", where="kernel", cost=60)
def lanes_that_leave(kernel):
    """Some lanes end for good; the others go on together, under masks that may still name those."""
    rng = kernel.rng
    if kernel.frame.nesting or kernel.frame.loops:
        return
    everyone = together.everyone(kernel)
    leaves = together.variable(kernel, "bool", together.predicate(kernel))
    stay = together.variable(kernel, "u32", f"__ballot_sync({everyone.mask}, !{leaves})")
    with kernel.block(f"if ({leaves})"):
        kernel.emit("output[global] = h;")
        kernel.emit("return;")
    kernel.lanes_exit("thread")
    together.code(kernel, together.Lanes(rng.choice((everyone.mask, stay)), stay), depth=1)
