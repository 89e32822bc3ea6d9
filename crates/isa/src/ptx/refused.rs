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
];
