//! `lines.csv`: what was issued and waited for, by instruction.

use lockstep_counters::{STALLS, stalls};
use std::io;

/// One instruction that was issued at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineRow {
    /// Mangled name of the function that it is of.
    pub function: String,
    /// Where it is in that function: bytes for machine code, instructions for PTX.
    pub offset: u64,
    /// Its text.
    pub instruction: String,
    /// The source file, if it is known.
    pub file: String,
    /// The line there, from 1; 0 if it is not known.
    pub line: u32,
    /// `file:line` of the call that the compiler put the line in the place of, if it did.
    pub inlined_at: String,
    /// Times that a warp issued it.
    pub issued: u64,
    /// Cycles of warps before they issued it, by what they did.
    pub stalls: [u64; STALLS],
}

/// The table.
pub(super) fn to_csv(rows: &[LineRow]) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let which = [
        "function",
        "offset",
        "instruction",
        "file",
        "line",
        "inlined_at",
        "issued",
    ];
    writer.write_record(which.into_iter().chain(stalls().map(|one| one.name)))?;
    for row in rows {
        let line = match row.line {
            0 => String::new(),
            line => line.to_string(),
        };
        let fields = [
            row.function.clone(),
            row.offset.to_string(),
            row.instruction.clone(),
            row.file.clone(),
            line,
            row.inlined_at.clone(),
            row.issued.to_string(),
        ];
        let stalls = row.stalls.iter().map(u64::to_string);
        writer.write_record(fields.into_iter().chain(stalls))?;
    }
    writer.into_inner().map_err(|error| error.into_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_field_for_every_column() {
        let row = LineRow {
            function: "f".into(),
            offset: 32,
            instruction: "IADD3 R1, R2, R3".into(),
            issued: 4,
            ..LineRow::default()
        };
        let text = String::from_utf8(to_csv(&[row]).unwrap()).unwrap();
        let mut lines = text.lines();
        let head = lines.next().unwrap();
        assert!(
            head.starts_with("function,offset,instruction,file,line,inlined_at,issued,stalled_")
        );
        assert_eq!(
            lines.next().unwrap(),
            format!("f,32,\"IADD3 R1, R2, R3\",,,,4{}", ",0".repeat(STALLS))
        );
    }
}
