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
//! Fourth section: `imm=s|u|s64|u64|f16|bf16|f16x2|f32|f64|h2` what a number at 32 is (of 64 bits it is the
//! upper word, of 16 bits the lower half; `h2@65`: bit 65 rather than 85 makes the halves bfloat16), `uniform` (sources and guard are
//! of the uniform datapath), `guard=UP`, `alias=imad`.

mod entry;
mod form;
mod operand;
mod row;

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use super::architecture::{ARCHITECTURES, Architecture};
use super::opcode::Opcode;
pub use entry::{Alias, Choice, Condition, Entry, Field, MemoryPiece, OperandField, Piece, Place};
use row::{RowPlace, RowReader, Sets, read_sets};

const SETS: &str = include_str!("../tables/sets.txt");
const TABLES: &[(&str, &str)] = &[
    ("float", include_str!("../tables/float.txt")),
    ("integer", include_str!("../tables/integer.txt")),
    ("convert", include_str!("../tables/convert.txt")),
    ("move", include_str!("../tables/move.txt")),
    ("matrix", include_str!("../tables/matrix.txt")),
    ("memory", include_str!("../tables/memory.txt")),
    ("texture", include_str!("../tables/texture.txt")),
    ("control", include_str!("../tables/control.txt")),
    ("uniform", include_str!("../tables/uniform.txt")),
    ("hopper", include_str!("../tables/hopper.txt")),
];

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
