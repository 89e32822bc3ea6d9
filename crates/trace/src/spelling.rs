//! What a trace says of an instruction that does not change from warp to warp, read off its text as
//! disassemblers print it.

use crate::line::{InstructionLine, WRITTEN_SOURCES};

/// The register that reads zero, by the number that tracers give it.
const ZERO_REGISTER: u8 = 255;

/// An instruction of a kernel: a line of a trace without lanes and addresses.
#[must_use]
pub fn read_spelling(pc: u64, text: &str) -> InstructionLine {
    let mut line = InstructionLine {
        pc,
        ..InstructionLine::default()
    };
    let text = text.trim();
    let text = match text.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest),
        None => text,
    };
    let (opcode, operands) = text.split_once(' ').unwrap_or((text, ""));
    line.opcode = opcode.trim_end_matches(';').into();
    for (position, operand) in Operands(operands).enumerate() {
        let operand = operand.trim_start_matches(['-', '~', '!', '|']);
        if let Some(base) = memory_base(operand) {
            line.sources.extend(base);
        } else if let Some(register) = register(operand) {
            match position {
                0 => line.destinations.push(register),
                _ => line.sources.push(register),
            }
        } else if let Some(value) = number(operand) {
            line.immediate = value;
        }
    }
    line.sources.truncate(WRITTEN_SOURCES);
    line
}

/// Operands between commas that are in no bracket.
struct Operands<'a>(&'a str);

impl<'a> Iterator for Operands<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        let mut depth = 0i32;
        let end = self.0.bytes().position(|byte| {
            depth += i32::from(b"[{(".contains(&byte)) - i32::from(b"]})".contains(&byte));
            byte == b',' && depth <= 0
        });
        let (operand, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, ""),
        };
        self.0 = rest;
        Some(operand.trim())
    }
}

/// The register of a memory operand, if it has one; none if it is no memory operand.
fn memory_base(operand: &str) -> Option<Option<u8>> {
    if !operand.ends_with(']') || operand.starts_with('c') || operand.starts_with("gdesc") {
        return None;
    }
    let (before, inner) = operand.trim_end_matches(']').rsplit_once('[')?;
    (before.is_empty() || before.ends_with(']')).then(|| register(inner))
}

/// `R4`, `R4.64`, `R4+0x10`, `RZ`.
fn register(operand: &str) -> Option<u8> {
    let rest = operand.strip_prefix('R')?;
    let end = rest.find(['.', '+', '|', '-']).unwrap_or(rest.len());
    match &rest[..end] {
        "Z" => Some(ZERO_REGISTER),
        digits => digits.parse().ok(),
    }
}

/// A whole number, which disassemblers print with `0x`; other numbers are floating point.
fn number(operand: &str) -> Option<i64> {
    let digits = operand.strip_prefix("0x")?;
    u64::from_str_radix(digits, 16).ok().map(|bits| bits as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let line = read_spelling(0x20, text);
        format!(
            "{} {:?} {:?} {}",
            line.opcode, line.destinations, line.sources, line.immediate
        )
    }

    #[test]
    fn registers_opcode_and_number_are_found() {
        for (text, expected) in [
            ("LDG.E.64 R2, desc[UR4][R4.64+0x10]", "LDG.E.64 [2] [4] 0"),
            ("@!P0 STG.E desc[UR4][R2.64], R5", "STG.E [] [2, 5] 0"),
            ("@P1 STS [R7+UR4], R6", "STS [] [7, 6] 0"),
            ("LDS.U.128 R4, [UR5]", "LDS.U.128 [4] [] 0"),
            ("IMAD.WIDE R2, R0, 0x4, R2.reuse", "IMAD.WIDE [2] [0, 2] 4"),
            (
                "IADD3 R1, P0, -R1, c[0x0][0x28], RZ",
                "IADD3 [1] [1, 255] 0",
            ),
            (
                "ISETP.GE.AND P0, PT, R0, c[0x0][0x17c], PT",
                "ISETP.GE.AND [] [0] 0",
            ),
            ("FFMA R5, |R4|, 1.5, -R3", "FFMA [5] [4, 3] 0"),
            (
                "LDGSTS.E.BYPASS.128 [R3], desc[UR6][R4.64]",
                "LDGSTS.E.BYPASS.128 [] [3, 4] 0",
            ),
            ("DEPBAR.LE SB0, 0x1", "DEPBAR.LE [] [] 1"),
            (
                "BAR.SYNC.DEFER_BLOCKING 0x0",
                "BAR.SYNC.DEFER_BLOCKING [] [] 0",
            ),
            ("EXIT", "EXIT [] [] 0"),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }
}
