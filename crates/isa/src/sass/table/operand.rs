//! Reads the operands of a row.

use super::super::decoded::ImmediateFormat;
use super::entry::{MemoryPiece, OperandField, Piece, Place};
use super::form::{Form, Slot};
use super::row::RowReader;

impl RowReader<'_> {
    pub(super) fn operand(&self, text: &'static str, form: Form) -> OperandField {
        let (optional, text) = match text.strip_prefix('?') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (conditions, text) = self.prefix_conditions(text);
        let mut operand = OperandField {
            place: Place::Target,
            conditions,
            optional,
            negate: None,
            absolute: None,
            invert: None,
            complements_when_extended: false,
            reuse: None,
            reuse_on_volta: None,
            suffixes: Vec::new(),
        };
        let flags = if let Some(open) = text.strip_prefix('[') {
            let (inside, rest) = open
                .split_once(']')
                .unwrap_or_else(|| self.fail("no `]` in a memory operand"));
            operand.place = Place::Memory(self.memory(inside));
            rest
        } else {
            let end = if text.starts_with("w:") || text.ends_with("target") || text == "target30" {
                text.len()
            } else {
                text.find(['-', '|', '!', '~', '%', '^', '.'])
                    .unwrap_or(text.len())
            };
            let (core, flags) = text.split_at(end);
            (operand.place, operand.reuse) = self.place(core, form);
            flags
        };
        self.flags(flags, &mut operand);
        operand
    }

    pub(super) fn flags(&self, mut text: &'static str, operand: &mut OperandField) {
        while let Some(kind) = text.chars().next() {
            let rest = &text[1..];
            if kind == '.' {
                let start = rest
                    .find('@')
                    .unwrap_or_else(|| self.fail("a suffix is `.set@bits`"));
                let end = rest[start..]
                    .find(['-', '|', '!', '~', '%', '^', '.'])
                    .map_or(rest.len(), |at| start + at);
                operand.suffixes.push(self.choice(&rest[..end]));
                text = &rest[end..];
                continue;
            }
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            let bit = Some(self.bit(&rest[..end]));
            match kind {
                '-' => operand.negate = bit,
                '|' => operand.absolute = bit,
                '!' | '~' => operand.invert = bit,
                '%' => (operand.negate, operand.complements_when_extended) = (bit, true),
                '^' => operand.reuse = bit,
                other => self.fail(&format!("unknown flag `{other}`")),
            }
            text = &rest[end..];
        }
    }

    pub(super) fn place(&self, core: &'static str, form: Form) -> (Place, Option<u8>) {
        let at = |prefix: &str| core.strip_prefix(prefix).map(|bits| self.bit(bits));
        let place = match core {
            "A" => return form.register(24, Some(122)),
            "B" => return form.source(Slot::B, self),
            "C" => return form.source(Slot::C, self),
            "X" => return form.source(Slot::X, self),
            "PR" => Place::PredicateFile { uniform: false },
            "UPR" => Place::PredicateFile { uniform: true },
            "target" => Place::Target,
            "byte-target" => Place::ByteTarget,
            "target30" => Place::NearTarget,
            "absolute-target" => Place::AbsoluteTarget,
            "register-target" => Place::RegisterTarget {
                uniform: false,
                relative: true,
            },
            "uniform-register-target" => Place::RegisterTarget {
                uniform: true,
                relative: true,
            },
            "absolute-register-target" => Place::RegisterTarget {
                uniform: false,
                relative: false,
            },
            "absolute-uniform-register-target" => Place::RegisterTarget {
                uniform: true,
                relative: false,
            },
            _ => {
                if let Some(set) = core.strip_prefix("w:") {
                    Place::Word(self.choice(set))
                } else if let Some(index) = core.strip_prefix("c38") {
                    let index = index
                        .strip_prefix('+')
                        .map(|i| Box::new(self.place(i, form).0));
                    Place::IndexedConstant(index)
                } else if let Some(bits) = core.strip_prefix('u') {
                    Place::Number(self.field(bits), ImmediateFormat::Unsigned)
                } else if let Some(bit) = at("swizzle") {
                    Place::Swizzle(bit)
                } else if let Some(bits) = core.strip_prefix('s') {
                    Place::Number(self.field(bits), ImmediateFormat::Signed)
                } else if let Some(bit) = at("gsb") {
                    Place::GroupScoreboard(bit)
                } else if let Some(bit) = at("gdesc") {
                    Place::MatrixDescriptor(bit)
                } else if let Some(bit) = at("desc") {
                    Place::Descriptor(bit)
                } else if let Some(bit) = at("SBSET") {
                    Place::CounterSet(bit)
                } else if let Some(bit) = at("SB") {
                    Place::Counter(bit)
                } else if let Some(bit) = at("SR") {
                    Place::Special(bit)
                } else if let Some(bit) = at("BAR") {
                    Place::Barrier(bit)
                } else if let Some(low) = at("UPX") {
                    Place::ComplementedPredicate { low, uniform: true }
                } else if let Some(low) = at("PX") {
                    Place::ComplementedPredicate {
                        low,
                        uniform: false,
                    }
                } else if let Some(bit) = at("UR") {
                    Place::Uniform(bit)
                } else if let Some(bit) = at("UP") {
                    Place::UniformPredicate(bit)
                } else if let Some(bit) = at("R") {
                    Place::Register(bit)
                } else if let Some(bit) = at("P") {
                    Place::Predicate(bit)
                } else {
                    self.fail(&format!("unknown operand `{core}`"))
                }
            }
        };
        (place, None)
    }

    /// The inside of a memory operand's brackets.
    pub(super) fn memory(&self, inside: &'static str) -> Vec<MemoryPiece> {
        inside
            .split(';')
            .map(|text| {
                let (optional, text) = match text.strip_prefix('?') {
                    Some(rest) => (true, rest),
                    None => (false, text),
                };
                let (conditions, text) = self.prefix_conditions(text);
                let (core, suffix) = match text.split_once('.') {
                    Some((core, suffix)) => (core, Some(self.choice(suffix))),
                    None => (text, None),
                };
                let piece = if let Some(bits) = core.strip_prefix("D:UR") {
                    Piece::Descriptor(self.bit(bits), true)
                } else if let Some(bits) = core.strip_prefix("d:UR") {
                    Piece::Descriptor(self.bit(bits), false)
                } else if let Some(bits) = core.strip_prefix("UR") {
                    Piece::Uniform(self.bit(bits), suffix)
                } else if let Some(bits) = core.strip_prefix('R') {
                    Piece::Base(self.bit(bits), suffix)
                } else if let Some(bits) = core.strip_prefix('s') {
                    Piece::Offset(self.field(bits))
                } else {
                    self.fail(&format!("unknown part `{core}` of a memory operand"))
                };
                MemoryPiece {
                    piece,
                    conditions,
                    optional,
                }
            })
            .collect()
    }
}
