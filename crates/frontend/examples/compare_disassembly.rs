//! Compares this crate's disassembly with a disassembler's.
//!
//! ```text
//! cargo run --release -p lockstep-frontend --example compare_disassembly -- [--show N] FILE...
//! ```
//!
//! A file has one instruction a line: architecture (`80`), address and 32 hexadecimal digits of
//! the word, expected text, and optionally how often it occurs, separated by tabs. Reported are
//! the share of instructions and of distinct opcode-and-modifier strings whose text is equal, by
//! architecture, and what differs, by opcode bits.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use lockstep_isa::sass::{Architecture, Word, decode};

/// What one architecture's rows came to.
#[derive(Default)]
struct Tally {
    instructions: u64,
    equal: u64,
    spellings: BTreeMap<String, bool>,
    differences: BTreeMap<u16, Vec<String>>,
    differing: BTreeMap<u16, u64>,
}

fn main() -> ExitCode {
    let mut show = 3;
    let mut tallies: BTreeMap<Architecture, Tally> = BTreeMap::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--show" {
            show = arguments
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(show);
            continue;
        }
        let file = match std::fs::File::open(&argument) {
            Ok(file) => file,
            Err(error) => {
                eprintln!("{argument}: {error}");
                return ExitCode::FAILURE;
            }
        };
        for (number, line) in BufReader::new(file).lines().enumerate() {
            let row = line.ok();
            if row
                .as_deref()
                .and_then(|row| compare(row, &mut tallies, show))
                .is_none()
            {
                eprintln!("{argument}:{}: not a row of five fields", number + 1);
                return ExitCode::FAILURE;
            }
        }
    }
    report(&tallies);
    ExitCode::SUCCESS
}

fn compare(row: &str, tallies: &mut BTreeMap<Architecture, Tally>, show: usize) -> Option<()> {
    let mut fields = row.split('\t');
    let architecture = Architecture::from_sm(fields.next()?.parse().ok()?)?;
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let word = Word(u128::from_str_radix(fields.next()?, 16).ok()?);
    let expected = fields.next()?.trim();
    let count: u64 = fields.next().map_or(Some(1), |count| count.parse().ok())?;

    let tally = tallies.entry(architecture).or_default();
    let found = match decode(architecture, address, word) {
        Ok(decoded) => decoded.to_string(),
        Err(_) => "unknown encoding".to_owned(),
    };
    let equal = found.trim() == expected;
    tally.instructions += count;
    let spelling = expected
        .split(' ')
        .find(|part| !part.starts_with('@'))
        .unwrap_or_default();
    *tally.spellings.entry(spelling.to_owned()).or_insert(true) &= equal;
    if equal {
        tally.equal += count;
    } else {
        let operation = word.operation();
        *tally.differing.entry(operation).or_default() += count;
        let examples = tally.differences.entry(operation).or_default();
        if examples.len() < show {
            examples.push(format!("{:032x}  {expected}  |  {found}", word.0));
        }
    }
    Some(())
}

fn report(tallies: &BTreeMap<Architecture, Tally>) {
    for (architecture, tally) in tallies {
        for (operation, examples) in &tally.differences {
            println!(
                "{architecture} {operation:03x}: {} differ",
                tally.differing[operation]
            );
            for example in examples {
                println!("    {example}");
            }
        }
    }
    for (architecture, tally) in tallies {
        let wrong: BTreeSet<_> = tally
            .spellings
            .iter()
            .filter(|&(_, &equal)| !equal)
            .map(|(name, _)| name)
            .collect();
        let right = tally.spellings.len() - wrong.len();
        println!(
            "{architecture}: {} of {} instructions equal ({:.4} %), {right} of {} spellings \
             ({:.3} %)",
            tally.equal,
            tally.instructions,
            percent(tally.equal, tally.instructions),
            tally.spellings.len(),
            percent(right as u64, tally.spellings.len() as u64),
        );
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        100.0
    } else {
        100.0 * part as f64 / whole as f64
    }
}
