//! Reads one row of the tables: sections, opcode bits, architectures, conditions, modifiers.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::super::{
    architecture::{ARCHITECTURES, Architecture},
    decoded::ImmediateFormat,
    modifier::Modifier,
    opcode::Opcode,
};
use super::entry::{Alias, Choice, Condition, Entry, Field};
use super::form::{Form, ImmediateAt32};

pub(super) type Sets = BTreeMap<&'static str, Vec<Option<SmallVec<[Modifier; 2]>>>>;

pub(super) fn read_sets(text: &'static str) -> Sets {
    let mut sets = Sets::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let reader = RowReader {
            sets: &Sets::new(),
            place: RowPlace {
                family: "sets",
                number,
            },
        };
        let (name, values) = line
            .split_once('=')
            .unwrap_or_else(|| reader.fail("a set is `name = values`"));
        sets.insert(
            name.trim(),
            values.split_whitespace().map(|v| reader.words(v)).collect(),
        );
    }
    sets
}

/// Where a row stands: the file, and the line counted from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowPlace {
    pub family: &'static str,
    pub number: usize,
}

/// Reads one row; knows where it stands for the sake of messages.
pub(super) struct RowReader<'a> {
    pub sets: &'a Sets,
    pub place: RowPlace,
}

impl RowReader<'_> {
    pub(super) fn fail(&self, message: &str) -> ! {
        let RowPlace { family, number } = self.place;
        panic!("SASS table {family}.txt:{}: {message}", number + 1)
    }

    /// The row for one value of its opcode bits.
    pub(super) fn read(&self, line: &'static str, operation: u16) -> Entry {
        let mut sections = [const { Vec::new() }; 4];
        let mut section = 0;
        for word in line.split_whitespace() {
            if word != "|" {
                sections[section].push(word);
            } else if section < 3 {
                section += 1;
            } else {
                self.fail("a row has four sections");
            }
        }
        let [head, modifiers, texts, attributes] = sections;
        let mut head = head.into_iter();
        let name = head.next().unwrap_or_default();
        let opcode = Opcode::new(name);
        // Opcode bits and architectures were read when the row was noted.
        let conditions: Vec<_> = head.skip(2).map(|text| self.condition(text)).collect();

        let mut immediate = ImmediateAt32::Plain(ImmediateFormat::Unsigned);
        let mut uniform = false;
        let mut uniform_guard = false;
        let mut alias = None;
        for attribute in attributes {
            match attribute {
                "imm=u" => immediate = ImmediateAt32::Plain(ImmediateFormat::Unsigned),
                "imm=s" => immediate = ImmediateAt32::Plain(ImmediateFormat::Signed),
                "imm=u64" => immediate = ImmediateAt32::Plain(ImmediateFormat::UnsignedHigh),
                "imm=s64" => immediate = ImmediateAt32::Plain(ImmediateFormat::SignedHigh),
                "imm=f16" => immediate = ImmediateAt32::Plain(ImmediateFormat::Half),
                "imm=bf16" => immediate = ImmediateAt32::Plain(ImmediateFormat::Brain),
                "imm=f32" => immediate = ImmediateAt32::Plain(ImmediateFormat::Single),
                "imm=f64" => immediate = ImmediateAt32::Plain(ImmediateFormat::DoubleHigh),
                "imm=f16x2" => immediate = ImmediateAt32::Plain(ImmediateFormat::HalfPair),
                "imm=h2" => immediate = ImmediateAt32::Halves(85),
                "imm=h2@65" => immediate = ImmediateAt32::Halves(65),
                "uniform" => (uniform, uniform_guard) = (true, true),
                "guard=UP" => uniform_guard = true,
                "guard=P" => uniform_guard = false,
                "alias=imad" => alias = Some(Alias::Imad),
                other => self.fail(&format!("unknown attribute `{other}`")),
            }
        }

        let modifiers: Vec<_> = modifiers
            .into_iter()
            .map(|text| self.choice(text))
            .collect();
        let form = Form {
            nibble: (operation >> 8) & 0xe,
            cached: operation & 0x100 == 0,
            uniform,
            immediate,
        };
        let mut operands: Vec<_> = texts.iter().map(|text| self.operand(text, form)).collect();
        let has_c = texts
            .iter()
            .any(|text| text.trim_start_matches('?').starts_with('C'));
        form.settle_flags(&mut operands, has_c);
        Entry {
            opcode,
            conditions,
            uniform_guard,
            modifiers,
            operands,
            alias,
        }
    }

    /// `[28a]23` or `947`.
    pub(super) fn operations(&self, text: &str) -> Vec<u16> {
        let (digits, rest) = match text.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or_else(|| self.fail("no `]`")),
            None => text.split_at(1),
        };
        let low = self.hexadecimal(rest);
        digits
            .chars()
            .map(|digit| self.hexadecimal(&digit.to_string()) << 8 | low)
            .collect()
    }

    /// `70+`, `75-86`, `70,90`.
    pub(super) fn architectures(&self, text: &str) -> Vec<Architecture> {
        let matches = |sm: u32| {
            text.split(',').any(|range| {
                if let Some(first) = range.strip_suffix('+') {
                    sm >= self.number(first)
                } else if let Some((first, last)) = range.split_once('-') {
                    (self.number(first)..=self.number(last)).contains(&sm)
                } else {
                    sm == self.number(range)
                }
            })
        };
        ARCHITECTURES
            .iter()
            .copied()
            .filter(|a| matches(a.sm()))
            .collect()
    }

    /// `74=1`, `24:8=255`, `76,80=3`.
    pub(super) fn condition(&self, text: &str) -> Condition {
        let (field, value) = text
            .split_once('=')
            .unwrap_or_else(|| self.fail("a condition is `bits=value`"));
        let (field, differs) = match field.strip_suffix('!') {
            Some(field) => (field, true),
            None => (field, false),
        };
        Condition {
            field: self.field(field),
            value: self.number(value).into(),
            differs,
        }
    }

    /// The conditions in front of an operand, `(74)`, `(!74)`, `(70:2=1)`, any number of them.
    pub(super) fn prefix_conditions<'t>(&self, mut text: &'t str) -> (Vec<Condition>, &'t str) {
        let mut conditions = Vec::new();
        while let Some(inner) = text.strip_prefix('(') {
            let (condition, rest) = inner.split_once(')').unwrap_or_else(|| self.fail("no `)`"));
            conditions.push(if let Some(bit) = condition.strip_prefix('!') {
                Condition {
                    field: self.field(bit),
                    value: 0,
                    differs: false,
                }
            } else if condition.contains('=') {
                self.condition(condition)
            } else {
                Condition {
                    field: self.field(condition),
                    value: 1,
                    differs: false,
                }
            });
            text = rest;
        }
        (conditions, text)
    }

    /// `78`, `78:2`, `76,80`, `75:2,84`.
    pub(super) fn field(&self, text: &str) -> Field {
        Field(
            text.split(',')
                .map(|part| match part.split_once(':') {
                    Some((low, width)) => (self.bit(low), self.bit(width)),
                    None => (self.bit(part), 1),
                })
                .collect(),
        )
    }

    /// A modifier of the second section, or a suffix of an operand.
    pub(super) fn choice(&self, text: &'static str) -> Choice {
        let Some((name, bits)) = text.split_once('@') else {
            let words = self.words(text);
            return Choice {
                name: "",
                field: Field(SmallVec::new()),
                values: vec![words],
            };
        };
        let (name, values) = if let Some(inner) = name.strip_prefix('{') {
            let inner = inner
                .strip_suffix('}')
                .unwrap_or_else(|| self.fail("no `}`"));
            (inner, inner.split(',').map(|v| self.words(v)).collect())
        } else if let Some(word) = name.strip_prefix('!') {
            (word, vec![self.words(word), self.words("_")])
        } else if name.starts_with(|c: char| c.is_ascii_lowercase()) {
            let values = self.sets.get(name);
            (
                name,
                values
                    .unwrap_or_else(|| self.fail(&format!("no set `{name}`")))
                    .clone(),
            )
        } else {
            (name, vec![self.words("_"), self.words(name)])
        };
        let mut field = self.field(bits);
        if let [(low, 1)] = field.0[..] {
            // A set that starts at a bit is as wide as it has values.
            let width = values.len().next_power_of_two().trailing_zeros().max(1) as u8;
            field.0[0] = (low, width);
        }
        Choice {
            name,
            field,
            values,
        }
    }

    /// `_` nothing, `-` no encoding, else words separated by dots.
    pub(super) fn words(&self, text: &'static str) -> Option<SmallVec<[Modifier; 2]>> {
        match text {
            "-" => None,
            "_" => Some(SmallVec::new()),
            words => Some(words.split('.').map(Modifier::new).collect()),
        }
    }

    pub(super) fn number(&self, text: &str) -> u32 {
        text.parse()
            .unwrap_or_else(|_| self.fail(&format!("`{text}` is no number")))
    }

    pub(super) fn bit(&self, text: &str) -> u8 {
        text.parse()
            .unwrap_or_else(|_| self.fail(&format!("`{text}` is no bit")))
    }

    pub(super) fn hexadecimal(&self, text: &str) -> u16 {
        u16::from_str_radix(text, 16)
            .unwrap_or_else(|_| self.fail(&format!("`{text}` is not hexadecimal")))
    }
}
