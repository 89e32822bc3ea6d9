//! The notation of spellings: [`Pattern`] reads it and matches the parts of an opcode.

use crate::semantics::{
    Modifiers,
    compare::{Boolean, Comparison},
    soft::Rounding,
};

/// Groups that a spelling can name with `@`.
pub const GROUPS: &[(&str, &[&str])] = &[
    ("rnd", &["rn", "rz", "rm", "rp"]),
    ("whole", &["rni", "rzi", "rmi", "rpi"]),
    (
        "cmp",
        &["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"],
    ),
    (
        "fcmp",
        &[
            "eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num",
            "nan",
        ],
    ),
    ("bool", &["and", "or", "xor"]),
];

/// What a modifier, wherever it stands, means in [`crate::Instruction::modifiers`]. Those that
/// are not here choose a row instead.
#[must_use]
pub fn modifier_bits(modifier: &str) -> u64 {
    use Comparison as Is;
    let compare = Modifiers::comparison_bits;
    let round = Modifiers::rounding_bits;
    match modifier {
        "rz" => round(Rounding::Zero),
        "rm" => round(Rounding::Down),
        "rp" => round(Rounding::Up),
        "rni" => Modifiers::WHOLE,
        "rzi" => Modifiers::WHOLE | round(Rounding::Zero),
        "rmi" => Modifiers::WHOLE | round(Rounding::Down),
        "rpi" => Modifiers::WHOLE | round(Rounding::Up),
        "rna" => round(Rounding::NearestAway),
        "ftz" => Modifiers::FLUSH,
        "sat" | "satfinite" => Modifiers::SATURATE,
        "NaN" => Modifiers::NAN,
        "xorsign" => Modifiers::XOR_SIGN,
        "abs" => Modifiers::ABSOLUTE,
        "relu" => Modifiers::RELU,
        "wrap" => Modifiers::WRAP,
        "eq" => compare(Is::Equal),
        "ne" => compare(Is::NotEqual),
        "lt" | "lo" => compare(Is::Less),
        "le" | "ls" => compare(Is::LessEqual),
        "gt" | "hi" => compare(Is::Greater),
        "ge" | "hs" => compare(Is::GreaterEqual),
        "equ" => compare(Is::EqualUnordered),
        "neu" => compare(Is::NotEqualUnordered),
        "ltu" => compare(Is::LessUnordered),
        "leu" => compare(Is::LessEqualUnordered),
        "gtu" => compare(Is::GreaterUnordered),
        "geu" => compare(Is::GreaterEqualUnordered),
        "num" => compare(Is::Number),
        "nan" => compare(Is::NotANumber),
        "or" => Modifiers::boolean_bits(Boolean::Or),
        "xor" => Modifiers::boolean_bits(Boolean::Xor),
        _ => 0,
    }
}

/// A spelling, taken apart.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What stands before the first dot.
    pub opcode: &'static str,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    choices: Vec<&'static str>,
    optional: bool,
}

impl Pattern {
    /// Reads a spelling. Spellings are constants of this crate; a malformed one matches nothing,
    /// and a test reads them all.
    #[must_use]
    pub fn new(spelling: &'static str) -> Self {
        let end = spelling.find(['.', '[', '(']).unwrap_or(spelling.len());
        let (opcode, mut rest) = spelling.split_at(end);
        let mut parts = Vec::new();
        while let Some(first) = rest.chars().next() {
            let (close, optional) = match first {
                '[' => (Some(']'), true),
                '(' => (Some(')'), false),
                _ => (None, false),
            };
            let (body, after) = match close {
                Some(close) => rest[1..].split_once(close).unwrap_or((&rest[1..], "")),
                None => {
                    let body = &rest[1..];
                    body.split_at(body.find(['.', '[', '(']).unwrap_or(body.len()))
                }
            };
            parts.push(Part {
                choices: choices(body),
                optional,
            });
            rest = after;
        }
        Self { opcode, parts }
    }

    /// The modifier bits if `modifiers` (without their dots) fit.
    #[must_use]
    pub fn matches(&self, modifiers: &[&str]) -> Option<u64> {
        let mut bits = 0;
        let mut given = modifiers.iter().peekable();
        for part in &self.parts {
            match given.peek() {
                Some(modifier) if part.choices.contains(*modifier) => {
                    bits |= modifier_bits(modifier);
                    given.next();
                }
                _ if part.optional => {}
                _ => return None,
            }
        }
        given.next().is_none().then_some(bits)
    }
}

fn choices(body: &'static str) -> Vec<&'static str> {
    if let Some(group) = body.strip_prefix('@') {
        return GROUPS
            .iter()
            .find(|(name, _)| *name == group)
            .map(|(_, members)| members.to_vec())
            .unwrap_or_default();
    }
    body.split('.').filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::FAMILIES;

    #[test]
    fn options_groups_and_choices() {
        let pattern = Pattern::new("setp(@cmp)[@bool](.s32.u32)");
        assert_eq!(pattern.opcode, "setp");
        let bits = pattern.matches(&["lt", "or", "s32"]).map(Modifiers);
        assert_eq!(bits.map(|b| b.comparison()), Some(Comparison::Less));
        assert_eq!(bits.map(|b| b.boolean()), Some(Boolean::Or));
        assert!(pattern.matches(&["lt", "u32"]).is_some());
        assert!(pattern.matches(&["lt", "f32"]).is_none());
        assert!(pattern.matches(&["lt", "s32", "s32"]).is_none());
        assert!(pattern.matches(&["s32"]).is_none());
    }

    #[test]
    fn every_spelling_is_well_formed() {
        for (_, entries) in FAMILIES {
            for entry in *entries {
                let pattern = Pattern::new(entry.spelling);
                assert!(!pattern.opcode.is_empty(), "{}", entry.spelling);
                for part in &pattern.parts {
                    assert!(!part.choices.is_empty(), "{}", entry.spelling);
                }
            }
        }
    }
}
