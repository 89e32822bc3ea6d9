//! Gives the instructions of a module the source lines that they come from.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_isa::{Module, module::SourceLine, sass::word::WORD_BYTES};

use super::lines;

/// Numbers of source lines: file, line, and the call that it was put in the place of.
pub(super) type KnownLines = BTreeMap<(Arc<str>, u32, Option<(Arc<str>, u32)>), u32>;

/// Gives the instructions of a section, from `start` on, the lines that they come from.
pub(super) fn name_lines(
    rows: &[lines::Row],
    start: u32,
    known: &mut KnownLines,
    module: &mut Module,
) {
    if rows.is_empty() {
        return;
    }
    if module.lines.is_empty() {
        module.lines.push(SourceLine::default());
    }
    for index in start as usize..module.code.len() {
        let address = (index as u64 - u64::from(start)) * WORD_BYTES;
        let Some(row) = lines::at(rows, address) else {
            continue;
        };
        let number = *known
            .entry((row.file.clone(), row.line, row.inlined_at.clone()))
            .or_insert_with(|| {
                let call = row.inlined_at.as_ref();
                let inlined_at = call.map(|(file, line)| format!("{file}:{line}"));
                module.lines.push(SourceLine {
                    file: row.file.to_string(),
                    line: row.line,
                    inlined_at: inlined_at.unwrap_or_default(),
                });
                module.lines.len() as u32 - 1
            });
        module.code[index].scheduling.line = number;
    }
}
