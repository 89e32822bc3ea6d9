//! The notation of the tables, and what a row becomes.
//!
//! ```text
//! FFMA [2468ace]23 70+ | fmz@76,80 round@78 SAT@77 | R16 A-72|73 B-63|62 C-75|74 | imm=f32
//! ```
//!
//! First section: spelling, the 12 opcode bits (a bracket lists values of the upper digit, which
//! is the operand form), the architectures (`80+`, `70-75`, `90`), and conditions (`74=1`,
//! `24:8=255`, `72:4!=15`).
//!
//! Second section, modifiers in printed order: `SAT` always; `SAT@77` when bit 77 is set;
//! `!U32@73` when it is clear; `round@78` a set from `tables/sets.txt` whose value is the field
//! at 78; `{_,RM,RP,RZ}@78` a set in place; `@76,80` or `@75:2,84` fields of several parts, lowest
//! first. In a set `_` prints nothing and `-` is no encoding.
//!
//! Third section, operands in printed order:
//!
//! - `R16` register, `UR16` uniform register, `P81` predicate, `UP81` uniform predicate, `PX64`
//!   and `UPX64` predicates whose bits are complemented, `BAR16` convergence barrier, `SB44` counter, `SBSET32` set of counters, `SR72` special register,
//!   `PR` and `UPR` all predicates, `gsb84` group scoreboard, `gdesc24`, `desc40` descriptors;
//! - `u32:8` and `s40:24` numbers without and with sign; `w:set@72` a word; `swizzle32` signs of
//!   lanes;
//! - `A`, `B`, `C` the three sources of an arithmetic row, whose places follow from the form:
//!   A at 24; B at 32 and C at 64, or, in forms 4, 6 and e, B at 64 and C at 32; what lies at 32
//!   is a register (2), a number (4, 8), a constant (6, a) or a uniform register (c, e). Flags
//!   belong to the place: those of `B` to 32, those of `C` to 64. `X` is C at 32 in every form;
//! - `c38` a constant address with a byte offset at 38, `c38+R24` with an index;
//! - `[R24.x4@78,(91)UR32,s40:24]` memory; `d:UR32` inside is its descriptor, `D:UR32` one that
//!   is printed;
//! - `target`, `target30`, `byte-target`, `absolute-target`, `register-target` and its kin: see
//!   [`Place`].
//!
//! In front of an operand `?` omits it at its neutral value and `(74)`, `(!74)`, `(70:2=1)` make
//! it depend on bits. Behind it: `-72` negate, `|73` absolute, `!90` not, `~72` complement, `%72`
//! negate that complements under `.X` (bit 74), `^122` reuse, `.half@60` a set of suffixes. `A`,
//! `B`, `C` and `X` know their reuse bits.
//!
//! Fourth section: `imm=s|u|f32|f64|h2` what a number at 32 is (`h2@65`: bit 65
//! rather than 85 makes the halves bfloat16), `uniform` (sources and guard are
//! of the uniform datapath), `guard=UP`, `alias=imad`.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use smallvec::SmallVec;

use super::architecture::{ARCHITECTURES, Architecture};
use super::decoded::ImmediateFormat;
use super::modifier::Modifier;
use super::opcode::Opcode;
use super::word::Word;

const SETS: &str = include_str!("tables/sets.txt");
const TABLES: &[(&str, &str)] = &[
    ("float", include_str!("tables/float.txt")),
    ("integer", include_str!("tables/integer.txt")),
    ("convert", include_str!("tables/convert.txt")),
    ("move", include_str!("tables/move.txt")),
    ("matrix", include_str!("tables/matrix.txt")),
    ("memory", include_str!("tables/memory.txt")),
    ("texture", include_str!("tables/texture.txt")),
    ("control", include_str!("tables/control.txt")),
    ("uniform", include_str!("tables/uniform.txt")),
    ("hopper", include_str!("tables/hopper.txt")),
];

/// Bits of one value, lowest part first: (low bit, width).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(pub SmallVec<[(u8, u8); 2]>);

impl Field {
    /// The value of this field in `word`.
    #[must_use]
    pub fn read(&self, word: Word) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        for &(low, width) in &self.0 {
            value |= word.field(low, width) << shift;
            shift += width;
        }
        value
    }
}

/// A field that must have a value, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    field: Field,
    value: u64,
    /// The field must differ from the value instead.
    differs: bool,
}

impl Condition {
    /// Whether `word` meets it.
    #[must_use]
    pub fn holds(&self, word: Word) -> bool {
        (self.field.read(word) == self.value) != self.differs
    }
}

/// A field whose value is a word, or several, or nothing.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What the set is called; the word itself for a single bit.
    pub name: &'static str,
    /// Where it is encoded; empty for a word that is always printed.
    pub field: Field,
    /// By value; `None` is no encoding.
    pub values: Vec<Option<SmallVec<[Modifier; 2]>>>,
}

impl Choice {
    /// The words of `word`'s value, or `None` when it has no meaning.
    #[must_use]
    pub fn read(&self, word: Word) -> Option<&[Modifier]> {
        let value = usize::try_from(self.field.read(word)).ok()?;
        self.values.get(value)?.as_deref()
    }
}

/// One piece of a memory operand.
#[derive(Clone, Debug)]
pub enum Piece {
    /// The register of each lane, and how it is read.
    Base(u8, Option<Choice>),
    /// A uniform register.
    Uniform(u8, Option<Choice>),
    /// A signed offset.
    Offset(Field),
    /// A memory descriptor, and whether it is printed.
    Descriptor(u8, bool),
}

/// A piece with what governs it.
#[derive(Clone, Debug)]
pub struct MemoryPiece {
    /// What it is.
    pub piece: Piece,
    /// Present only when all hold.
    pub conditions: Vec<Condition>,
    /// Absent at its neutral value.
    pub optional: bool,
}

/// Where an operand's value comes from.
#[derive(Clone, Debug)]
pub enum Place {
    /// 8 bits.
    Register(u8),
    /// 6 bits.
    Uniform(u8),
    /// 3 bits.
    Predicate(u8),
    /// 3 bits.
    UniformPredicate(u8),
    /// 3 bits, complemented, so that zero means true.
    ComplementedPredicate {
        /// Lowest bit.
        low: u8,
        /// A uniform predicate.
        uniform: bool,
    },
    /// All predicates.
    PredicateFile {
        /// The uniform ones.
        uniform: bool,
    },
    /// 4 bits.
    Barrier(u8),
    /// 3 bits; 6 and 7 name nothing.
    Counter(u8),
    /// 6 bits.
    CounterSet(u8),
    /// 3 bits; only 0 exists, 7 is none.
    GroupScoreboard(u8),
    /// 8 bits.
    Special(u8),
    /// A number.
    Number(Field, ImmediateFormat),
    /// A number that is bfloat16 where the bit is set.
    Halves(Field, u8),
    /// `c[bank][offset]`: word offset at 40, bank at 54; bit 91 makes it `cx[UR]`.
    SourceConstant,
    /// Byte offset at 38, bank at 54, and the register that indexes it.
    IndexedConstant(Option<Box<Place>>),
    /// An address.
    Memory(Vec<MemoryPiece>),
    /// 6 bits, `gdesc[UR]`.
    MatrixDescriptor(u8),
    /// 6 bits, `desc[UR]`.
    Descriptor(u8),
    /// A word.
    Word(Choice),
    /// 8 bits: which sign each lane of two quads gives to its sources.
    Swizzle(u8),
    /// 48 bits at 34 in units of 4 bytes; on sm_90 the lowest 8 of them lie at 16.
    Target,
    /// 58 bits at 24 in bytes.
    ByteTarget,
    /// 30 bits at 34 in units of 4 bytes.
    NearTarget,
    /// The 48 bits as an absolute address.
    AbsoluteTarget,
    /// A register at 24 plus the 48 bits.
    RegisterTarget {
        /// The register is uniform.
        uniform: bool,
        /// The offset is relative to the next instruction.
        relative: bool,
    },
}

/// One operand of an entry.
#[derive(Clone, Debug)]
pub struct OperandField {
    /// Where its value comes from.
    pub place: Place,
    /// Present only when all hold.
    pub conditions: Vec<Condition>,
    /// Absent at its neutral value.
    pub optional: bool,
    /// Bit of the minus.
    pub negate: Option<u8>,
    /// Bit of the absolute value.
    pub absolute: Option<u8>,
    /// Bit of `!` or `~`.
    pub invert: Option<u8>,
    /// The minus complements when bit 74 is set.
    pub complements_when_extended: bool,
    /// Bit of the register cache.
    pub reuse: Option<u8>,
    /// Another bit that says the same on sm_70.
    pub reuse_on_volta: Option<u8>,
    /// Words behind it.
    pub suffixes: Vec<Choice>,
}

/// A rule that adds a word to what the bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// IMAD that moves, shifts or adds.
    Imad,
}

/// One opcode in one operand form.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it does.
    pub opcode: Opcode,
    /// It applies only when all hold.
    pub conditions: Vec<Condition>,
    /// The guard is a uniform predicate.
    pub uniform_guard: bool,
    /// In printed order.
    pub modifiers: Vec<Choice>,
    /// In printed order.
    pub operands: Vec<OperandField>,
    /// A spelling that depends on operand values.
    pub alias: Option<Alias>,
}

/// All rows, by architecture and opcode bits. A row is read when somebody asks for its opcode: programs use a
/// few dozen of several hundred.
#[derive(Debug)]
pub struct Table {
    sets: Sets,
    rows: Vec<(RowPlace, &'static str)>,
    entries: Vec<LazyEntry>,
    by_operation: Vec<BTreeMap<u16, Vec<u32>>>,
}

/// A row for one value of its opcode bits.
#[derive(Debug)]
struct LazyEntry {
    row: u32,
    operation: u16,
    entry: OnceLock<Entry>,
}

impl Table {
    /// The entries for these opcode bits, in the order in which they are tried.
    pub fn candidates(
        &self,
        architecture: Architecture,
        operation: u16,
    ) -> impl Iterator<Item = &Entry> {
        self.by_operation[architecture.index()]
            .get(&operation)
            .into_iter()
            .flatten()
            .map(|&index| self.entry(index))
    }

    fn entry(&self, index: u32) -> &Entry {
        let lazy = &self.entries[index as usize];
        lazy.entry.get_or_init(|| {
            let (place, line) = self.rows[lazy.row as usize];
            let sets = &self.sets;
            RowReader { sets, place }.read(line, lazy.operation)
        })
    }

    /// Every opcode that `architecture` has, with the opcode bits of the row.
    pub fn operations(&self, architecture: Architecture) -> impl Iterator<Item = (u16, Opcode)> {
        self.by_operation[architecture.index()]
            .iter()
            .flat_map(move |(&operation, indices)| {
                indices
                    .iter()
                    .map(move |&index| (operation, self.entry(index).opcode))
            })
    }
}

/// The tables of this crate. A malformed row is a mistake of ours and panics; the tests read all of
/// them.
pub static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        sets: read_sets(SETS),
        rows: Vec::new(),
        entries: Vec::new(),
        by_operation: vec![BTreeMap::new(); ARCHITECTURES.len()],
    };
    for (family, text) in TABLES {
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                table.note(RowPlace { family, number }, line);
            }
        }
    }
    table
});

impl Table {
    /// Notes which opcode bits and architectures a row is for.
    fn note(&mut self, place: RowPlace, line: &'static str) {
        let reader = RowReader {
            sets: &Sets::new(),
            place,
        };
        let mut head = line.split_whitespace().skip(1);
        let operations =
            reader.operations(head.next().unwrap_or_else(|| reader.fail("no opcode bits")));
        let architectures = reader.architectures(
            head.next()
                .unwrap_or_else(|| reader.fail("no architectures")),
        );
        let row = u32::try_from(self.rows.len()).expect("the tables are small");
        self.rows.push((place, line));
        for operation in operations {
            let index = u32::try_from(self.entries.len()).expect("the tables are small");
            self.entries.push(LazyEntry {
                row,
                operation,
                entry: OnceLock::new(),
            });
            for architecture in &architectures {
                self.by_operation[architecture.index()]
                    .entry(operation)
                    .or_default()
                    .push(index);
            }
        }
    }
}

type Sets = BTreeMap<&'static str, Vec<Option<SmallVec<[Modifier; 2]>>>>;

fn read_sets(text: &'static str) -> Sets {
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
struct RowPlace {
    family: &'static str,
    number: usize,
}

/// Reads one row; knows where it stands for the sake of messages.
struct RowReader<'a> {
    sets: &'a Sets,
    place: RowPlace,
}

/// What an immediate at 32 is.
#[derive(Clone, Copy)]
enum ImmediateAt32 {
    Plain(ImmediateFormat),
    /// bfloat16 where the bit is set.
    Halves(u8),
}

impl RowReader<'_> {
    fn fail(&self, message: &str) -> ! {
        let RowPlace { family, number } = self.place;
        panic!("SASS table {family}.txt:{}: {message}", number + 1)
    }

    /// The row for one value of its opcode bits.
    fn read(&self, line: &'static str, operation: u16) -> Entry {
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
        let opcode = Opcode::from_name(name)
            .unwrap_or_else(|| self.fail(&format!("no opcode `{name}` in opcode.rs")));
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
                "imm=f32" => immediate = ImmediateAt32::Plain(ImmediateFormat::Single),
                "imm=f64" => immediate = ImmediateAt32::Plain(ImmediateFormat::DoubleHigh),
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
    fn operations(&self, text: &str) -> Vec<u16> {
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
    fn architectures(&self, text: &str) -> Vec<Architecture> {
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
    fn condition(&self, text: &str) -> Condition {
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
    fn prefix_conditions<'t>(&self, mut text: &'t str) -> (Vec<Condition>, &'t str) {
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
    fn field(&self, text: &str) -> Field {
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
    fn choice(&self, text: &'static str) -> Choice {
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
    fn words(&self, text: &str) -> Option<SmallVec<[Modifier; 2]>> {
        match text {
            "-" => None,
            "_" => Some(SmallVec::new()),
            words => Some(words.split('.').map(|word| self.word(word)).collect()),
        }
    }

    fn word(&self, word: &str) -> Modifier {
        Modifier::from_name(word)
            .unwrap_or_else(|| self.fail(&format!("no modifier `{word}` in modifier.rs")))
    }

    fn operand(&self, text: &'static str, form: Form) -> OperandField {
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

    fn flags(&self, mut text: &'static str, operand: &mut OperandField) {
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

    fn place(&self, core: &'static str, form: Form) -> (Place, Option<u8>) {
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
    fn memory(&self, inside: &'static str) -> Vec<MemoryPiece> {
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

    fn number(&self, text: &str) -> u32 {
        text.parse()
            .unwrap_or_else(|_| self.fail(&format!("`{text}` is no number")))
    }

    fn bit(&self, text: &str) -> u8 {
        text.parse()
            .unwrap_or_else(|_| self.fail(&format!("`{text}` is no bit")))
    }

    fn hexadecimal(&self, text: &str) -> u16 {
        u16::from_str_radix(text, 16)
            .unwrap_or_else(|_| self.fail(&format!("`{text}` is not hexadecimal")))
    }
}

/// Which of the arithmetic sources.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    B,
    C,
    X,
}

/// The operand form of one opcode, from the upper digit of its bits.
#[derive(Clone, Copy)]
struct Form {
    nibble: u16,
    /// Sources can be kept in the register cache; not those of the slower units.
    cached: bool,
    uniform: bool,
    immediate: ImmediateAt32,
}

impl Form {
    /// In these forms B is at 64 and C at 32.
    fn is_swapped(self) -> bool {
        matches!(self.nibble, 4 | 6 | 0xe)
    }

    fn register(self, low: u8, reuse: Option<u8>) -> (Place, Option<u8>) {
        if self.uniform {
            (Place::Uniform(low), None)
        } else {
            (Place::Register(low), reuse.filter(|_| self.cached))
        }
    }

    fn source(self, slot: Slot, reader: &RowReader<'_>) -> (Place, Option<u8>) {
        let reuse = Some(if slot == Slot::B { 123 } else { 124 });
        let at_64 = match slot {
            Slot::B => self.is_swapped(),
            Slot::C => !self.is_swapped(),
            Slot::X => false,
        };
        if at_64 {
            return self.register(64, reuse);
        }
        match self.nibble {
            2 => self.register(32, reuse),
            4 | 8 => match self.immediate {
                ImmediateAt32::Plain(format) => (
                    Place::Number(Field(SmallVec::from_slice(&[(32, 32)])), format),
                    None,
                ),
                ImmediateAt32::Halves(brain) => (
                    Place::Halves(Field(SmallVec::from_slice(&[(32, 32)])), brain),
                    None,
                ),
            },
            6 | 0xa => (Place::SourceConstant, None),
            0xc | 0xe => (Place::Uniform(32), None),
            _ => reader.fail("an arithmetic row has an upper digit from 2 to f"),
        }
    }

    /// Flags are written for B at 32 and C at 64; where the two swap places, so do the flags.
    /// A number has no flags.
    fn settle_flags(self, operands: &mut [OperandField], has_c: bool) {
        let places = |wanted: &dyn Fn(&Place) -> bool, operands: &[OperandField]| {
            operands.iter().position(|operand| wanted(&operand.place))
        };
        let at_64 = places(
            &|p| matches!(p, Place::Register(64) | Place::Uniform(64)),
            operands,
        );
        let at_32 = places(
            &|p| {
                matches!(
                    p,
                    Place::Number(..)
                        | Place::Halves(..)
                        | Place::SourceConstant
                        | Place::Uniform(32)
                )
            },
            operands,
        );
        if let (true, Some(b), Some(c)) = (self.is_swapped() && has_c, at_64, at_32) {
            let (b_flags, c_flags) = (Flags::take(&mut operands[b]), Flags::take(&mut operands[c]));
            b_flags.put(&mut operands[c]);
            c_flags.put(&mut operands[b]);
        }
        // Volta keeps a lone second register by either bit.
        let mut kept: Vec<_> = operands
            .iter_mut()
            .filter(|o| matches!(o.reuse, Some(123 | 124)))
            .collect();
        if let [operand] = &mut kept[..] {
            operand.reuse_on_volta = operand.reuse.map(|bit| 123 + 124 - bit);
        }
        for operand in operands {
            if matches!(&operand.place, Place::Halves(..))
                || matches!(&operand.place, Place::Number(field, _) if field.0[..] == [(32, 32)])
            {
                Flags::take(operand);
            }
        }
    }
}

/// The flags that belong to a place rather than to a source.
struct Flags {
    negate: Option<u8>,
    absolute: Option<u8>,
    invert: Option<u8>,
    complements_when_extended: bool,
    suffixes: Vec<Choice>,
}

impl Flags {
    fn take(operand: &mut OperandField) -> Self {
        Self {
            negate: operand.negate.take(),
            absolute: operand.absolute.take(),
            invert: operand.invert.take(),
            complements_when_extended: std::mem::take(&mut operand.complements_when_extended),
            suffixes: std::mem::take(&mut operand.suffixes),
        }
    }

    fn put(self, operand: &mut OperandField) {
        operand.negate = self.negate;
        operand.absolute = self.absolute;
        operand.invert = self.invert;
        operand.complements_when_extended = self.complements_when_extended;
        operand.suffixes = self.suffixes;
    }
}
