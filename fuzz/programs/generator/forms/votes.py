"""Votes, matches, reductions: one answer for a set of lanes."""

from .. import lanes as together
from ..lanes import deed, number, predicate


@deed(weight=5)
def vote(kernel, lanes):
    """Any, all, ballot or whether they agree."""
    name = kernel.rng.choice(("__all_sync", "__any_sync", "__ballot_sync", "__ballot_sync", "vote_uniform"))
    kernel.declare("u32", f"{name}({lanes.mask}, {predicate(kernel)})")
    kernel.fold(kernel.frame.variables[-1].name)


@deed(weight=2)
def vote_of_all(kernel, lanes):
    """A vote whose answer everybody knows, or nearly."""
    kernel.fold(kernel.rng.choice((
        f"__ballot_sync({lanes.mask}, 1)", f"__ballot_sync({lanes.mask}, 0)", f"(u64)(__all_sync({lanes.mask}, 1) != 0)",
        f"(u64)(__any_sync({lanes.mask}, 0) != 0)", f"(u64)(__any_sync({lanes.mask}, lane_index() == {kernel.rng.randrange(32)}u) != 0)",
        f"vote_uniform({lanes.mask}, {kernel.rng.randrange(2)}u)")))


@deed(weight=2)
def rank(kernel, lanes):
    """A lane's place among those that voted yes."""
    votes = together.variable(kernel, "u32", f"__ballot_sync({lanes.mask}, {predicate(kernel)})")
    side = kernel.rng.choice(("lanes_below()", "lanes_from_here()"))
    kernel.declare("u32", f"(u32)__popc({votes} & {side})")


def key(kernel, type_):
    """A value that several lanes have."""
    rng = kernel.rng
    if rng.random() < 0.25:
        return f"({type_}){kernel.expression(type_, 1)}"
    if type_ in ("u64", "i64") and rng.random() < 0.5:
        return f"(({type_}){number(kernel, rng.randrange(1, 5))} << {rng.choice((0, 17, 32, 40))})"
    return f"({type_}){number(kernel, rng.randrange(1, 9))}"


@deed(weight=4, cost=40)
def match(kernel, lanes):
    """The lanes that have the same value; whether all have."""
    type_ = kernel.rng.choice(("u32", "i32", "u64", "i64"))
    if kernel.rng.random() < 0.6:
        kernel.declare("u32", f"__match_any_sync({lanes.mask}, {key(kernel, type_)})")
        kernel.fold(kernel.frame.variables[-1].name)
    else:
        wide = "_wide" if type_ in ("u64", "i64") else ""
        unsigned = "u64" if wide else "u32"
        value = key(kernel, unsigned) if kernel.rng.random() < 0.5 else kernel.immediate(unsigned)
        kernel.fold(f"match_all{wide}({lanes.mask}, {value})")


@deed(weight=4)
def reduce(kernel, lanes):
    """A sum, an end or a bitwise combination over the set."""
    name = kernel.rng.choice(("add", "add_signed", "min", "min_signed", "max", "max_signed", "and", "or", "xor"))
    type_ = "i32" if "signed" in name else "u32"
    kernel.declare(type_, f"reduce_{name}({lanes.mask}, {kernel.expression(type_, 1)})")
    kernel.fold_value(kernel.frame.variables[-1].name)


@deed(weight=1)
def elect(kernel, lanes):
    """One lane chosen; the set learns only that there is one, and what it said."""
    chosen = together.variable(kernel, "u32", f"one_elected({lanes.mask})")
    kernel.fold(f"(u64)__popc(__ballot_sync({lanes.mask}, {chosen}))")


@deed(weight=2, cost=60)
def classes(kernel, lanes):
    """The set takes its classes of equal values one after the other, all lanes going round together."""
    value = together.variable(kernel, "u32", number(kernel, kernel.rng.randrange(1, 5)))
    left = together.variable(kernel, "u32", lanes.there)
    with kernel.block(f"while ({left})", "always", trips=4):
        said = together.variable(kernel, "u32", f"__shfl_sync({lanes.mask}, {value}, __ffs({left}) - 1)")
        same = together.variable(kernel, "u32", f"__ballot_sync({lanes.mask}, {value} == {said})")
        kernel.fold(f"({said} + (u64){same})")
        kernel.emit(f"{left} &= ~{same};")


@deed(weight=3, cost=30)
def exchange(kernel, lanes):
    """Values passed through shared memory, ordered by meetings of the set."""
    type_ = kernel.rng.choice(("u32", "u64", "f32", "u8"))
    cells = kernel.shared(type_, kernel.threads)
    if cells is None:
        return
    thread = "thread" if kernel.frame.in_kernel else "thread_in_block()"
    kernel.emit(f"__syncwarp({lanes.mask});")
    kernel.emit(f"{cells}[{thread}] = {kernel.expression(type_, 1)};")
    kernel.emit(f"__syncwarp({lanes.mask});")
    kernel.declare(type_, f"{cells}[({thread} & ~31u) + nth_lane({lanes.there}, {kernel.expression('u32', 1)})]")
    kernel.fold_value(kernel.frame.variables[-1].name)
    kernel.emit(f"__syncwarp({lanes.mask});")
