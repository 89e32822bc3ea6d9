//! Opcodes that parse and cannot run: the sentence that stops a run names them.

/// Opcodes and the rest of the sentence that begins with the instruction.
pub const REFUSED: &[(&str, &str)] = &[
    ("tex", "reads a texture, which is not modelled"),
    ("tld4", "reads a texture, which is not modelled"),
    ("txq", "asks about a texture, which is not modelled"),
    ("suld", "reads a surface, which is not modelled"),
    ("sust", "writes a surface, which is not modelled"),
    ("sured", "reduces to a surface, which is not modelled"),
    ("suq", "asks about a surface, which is not modelled"),
    ("istypep", "asks about a texture, which is not modelled"),
    (
        "multimem",
        "works on several GPUs at once, which is not modelled",
    ),
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
