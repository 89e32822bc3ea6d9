//! Opcodes that parse and cannot run: the sentence that stops a run names them.

/// Opcodes and the rest of the sentence that begins with the instruction.
pub const REFUSED: &[(&str, &str)] = &[
    ("istypep", "asks about a texture, which is not modelled"),
    (
        "clusterlaunchcontrol",
        "cancels clusters that wait, which Hopper cannot",
    ),
    (
        "tcgen05",
        "is Blackwell's matrix unit, which is not modelled",
    ),
    (
        "alloca",
        "allocates on the stack at run time, which is not modelled",
    ),
    (
        "stacksave",
        "works on a stack at run time, which is not modelled",
    ),
    (
        "stackrestore",
        "works on a stack at run time, which is not modelled",
    ),
];
