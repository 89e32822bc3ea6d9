"""Branches and loops."""

from ..kernel import form


@form(weight=12, cost=10)
def value(kernel):
    type_ = kernel.pick_type()
    kernel.declare(type_, kernel.expression(type_))


@form(weight=3, cost=6)
def fold(kernel):
    variables = kernel.variables()
    kernel.fold_value(kernel.rng.choice(variables).name if variables else kernel.expression("u64", 1))


@form(weight=3, cost=6)
def assign(kernel):
    variables = [v for v in kernel.variables() if v.mutable]
    if variables:
        variable = kernel.rng.choice(variables)
        kernel.emit(f"{variable.name} = {kernel.expression(variable.type)};")


@form(weight=4, cost=10)
def branch(kernel):
    if kernel.frame.nesting > 3:
        return
    kind = kernel.rng.choice(("thread", "thread", "warp", "block", "launch"))
    with kernel.block(f"if ({kernel.condition(kind)})", kind):
        kernel.statements(kernel.rng.randrange(1, 5))
    if kernel.rng.random() < 0.5:
        with kernel.block("else", kind):
            kernel.statements(kernel.rng.randrange(1, 4))
