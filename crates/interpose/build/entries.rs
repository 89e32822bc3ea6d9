//! The core's entries: for each function of the tables its name, its address, and a stub.
//!
//! A stub is a weak definition of `lockstep_<name>`. Where a chapter of `src/` defines that
//! symbol, the linker takes the chapter's; where none does, the stub stays, records that
//! the program called something that we lack, and answers 801. So a function is implemented
//! by writing it, and nothing else needs to know. Stubs of NVML answer that the GPU does not
//! support what was asked, as a real one does for much of it, and record nothing.

use crate::table::Table;
use crate::{compile, write};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Writes and assembles the entries.
pub fn build(table: &Table, output: &Path) -> Result<PathBuf, String> {
    let source = output.join("entries.s");
    let object = output.join("entries.o");
    write(&source, &assembly(table))?;
    compile(&[
        "-c",
        &source.display().to_string(),
        "-o",
        &object.display().to_string(),
    ])?;
    Ok(object)
}

fn assembly(table: &Table) -> String {
    let mut text = String::from(".text\n");
    for (number, name) in table.entries.iter().enumerate() {
        let answer = if name.starts_with("cuda") || name.starts_with("__cuda") {
            "lockstep_unsupported_runtime"
        } else if name.starts_with("nvml") {
            "lockstep_unsupported_nvml"
        } else {
            "lockstep_unsupported_driver"
        };
        let _ = write!(
            text,
            ".balign 16\nstub_{number}:\n  endbr64\n  leaq name_{number}(%rip), %rdi\n  \
             jmp {answer}@PLT\n.weak lockstep_{name}\n.set lockstep_{name}, stub_{number}\n"
        );
    }
    text.push_str(".section .rodata.lockstep,\"a\"\n");
    for (number, name) in table.entries.iter().enumerate() {
        let _ = writeln!(text, "name_{number}: .asciz \"{name}\"");
    }
    text.push_str(".section .data.rel.ro.lockstep,\"aw\"\n.balign 8\n");
    text.push_str(".globl lockstep_entries\n.hidden lockstep_entries\nlockstep_entries:\n");
    for (number, name) in table.entries.iter().enumerate() {
        let _ = writeln!(
            text,
            "  .quad lockstep_{name}, stub_{number}, name_{number}"
        );
    }
    text.push_str(".section .note.GNU-stack,\"\",@progbits\n");
    text
}
