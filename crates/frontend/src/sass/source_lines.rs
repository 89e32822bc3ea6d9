//! Gives the instructions of a module the source lines that they come from.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_isa::{module::SourceLine, sass::word::WORD_BYTES};

use super::{code::Text, lines};

/// Numbers of source lines: file, line, and the call that it was put in the place of.
pub(super) type KnownLines = BTreeMap<(Arc<str>, u32, Option<(Arc<str>, u32)>), u32>;

/// The lines that the instructions of a section come from, as numbers: each from an instruction on. Lines that no
/// section before had are added to `lines`.
pub(super) fn name_lines(
    rows: &[lines::Row],
    text: Text,
    known: &mut KnownLines,
    lines: &mut Vec<SourceLine>,
) -> Vec<(u32, u32)> {
    let mut named = Vec::new();
    if rows.is_empty() {
        return named;
    }
    if lines.is_empty() {
        lines.push(SourceLine::default());
    }
    for offset in 0..text.length {
        let Some(row) = lines::at(rows, u64::from(offset) * WORD_BYTES) else {
            continue;
        };
        let number = *known
            .entry((row.file.clone(), row.line, row.inlined_at.clone()))
            .or_insert_with(|| {
                let call = row.inlined_at.as_ref();
                let inlined_at = call.map(|(file, line)| format!("{file}:{line}"));
                lines.push(SourceLine {
                    file: row.file.to_string(),
                    line: row.line,
                    inlined_at: inlined_at.unwrap_or_default(),
                });
                lines.len() as u32 - 1
            });
        if named.last().is_none_or(|(_, last)| *last != number) {
            named.push((text.start + offset, number));
        }
    }
    named
}
