//! The pages of instructions: every form of PTX and of machine code that was recorded on an H200, with its count of
//! vectors, and what is refused.

use crate::project;
use anyhow::{Context, Result};
use lockstep_isa::Operation;
use lockstep_isa::ptx::{FAMILIES, Pattern, REFUSED};
use lockstep_isa::sass::execute::{Frame, bind};
use lockstep_isa::sass::table::TABLE;
use lockstep_isa::sass::{Architecture, Word, decode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const SUITE: &str = "crates/frontend/tests/conformance";
/// Seeds that every form is recorded and replayed with.
const SEEDS: usize = 2;
/// Threads that a recorded case of single instructions has.
const THREADS: usize = 256;

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(project::root().join(path))
        .with_context(|| format!("cannot read {path}"))
}

/// Lines of a text that are no comments, as their fields.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect())
}

/// `1,234,567`
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A form of the suite.
struct Form<'t> {
    name: &'t str,
    vectors: usize,
}

impl<'t> Form<'t> {
    fn opcode(&self) -> &'t str {
        self.name.split(['.', ' ']).next().unwrap_or("")
    }

    /// What is written behind the opcode.
    fn rest(&self) -> &'t str {
        &self.name[self.opcode().len()..]
    }
}

fn forms(manifest: &str) -> Vec<Form<'_>> {
    let form = |fields: Vec<&'_ str>| -> Option<(usize, usize)> {
        Some((fields.first()?.len(), fields.get(3)?.parse().ok()?))
    };
    let lines = manifest.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (length, vectors) = form(line.split('\t').collect())?;
            Some(Form {
                name: &line[..length],
                vectors,
            })
        })
        .collect()
}

/// The page of PTX, without its notice.
pub fn ptx() -> Result<String> {
    let manifest = read(&format!("{SUITE}/h200/manifest.txt"))?;
    let exceptions = read(&format!("{SUITE}/exceptions.txt"))?;
    let forms = forms(&manifest);
    let vectors: usize = forms.iter().map(|form| SEEDS * form.vectors).sum();
    let mut page = format!(
        "# PTX instructions\n\n\
         {} forms of PTX that compute, {} vectors: every form of [the grammar](../../{SUITE}/grammar.txt) that `ptxas` \
         takes for sm_90a, each in a kernel of its own, with special values and with random ones, recorded on an H200 \
         and replayed bit by bit, as PTX and as the machine code that `ptxas` makes of it \
         (`cargo test -p lockstep-frontend conformance`). What differs is listed under its opcode.\n\n\
         Forms of `mma`, `wmma` and `wgmma` are in [another suite](../../crates/isa/tests/tensor_core.rs); control flow, \
         barriers, `mbarrier`, bulk copies and clusters are tested in programs.\n",
        grouped(forms.len()),
        grouped(vectors),
    );
    let opcodes: BTreeSet<&str> = forms.iter().map(Form::opcode).collect();
    for opcode in &opcodes {
        let mut by_vectors: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for form in forms.iter().filter(|form| form.opcode() == *opcode) {
            by_vectors
                .entry(form.vectors)
                .or_default()
                .push(form.rest());
        }
        write!(page, "\n## {opcode}\n")?;
        for (vectors, list) in by_vectors {
            let (what, each) = match list.len() {
                1 => ("1 form".to_owned(), ""),
                count => (format!("{count} forms"), " each"),
            };
            writeln!(
                page,
                "\n{what}, {} vectors{each}:\n\n```text\n{}\n```",
                grouped(SEEDS * vectors),
                wrapped(opcode, &list)
            )?;
        }
        for fields in rows(&exceptions) {
            if let [side, count, pattern, why] = fields[..]
                && pattern.split(['.', ' ']).next() == Some(opcode)
            {
                let side = if side == "ptx" { "PTX" } else { "machine code" };
                writeln!(
                    page,
                    "\n**Differs as {side}** ({count}): `{pattern}`: {why}."
                )?;
            }
        }
    }
    without_vectors(&mut page, &forms)?;
    page +=
        "\n## Refused\n\nThese stop a run when they are executed.\n\n| opcode | why |\n|---|---|\n";
    for (opcode, why) in REFUSED {
        writeln!(page, "| `{opcode}` | {why} |")?;
    }
    Ok(page)
}

/// Modifiers of an opcode's forms, in lines of a page's width.
fn wrapped(opcode: &str, list: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for rest in list {
        let word = if rest.is_empty() { opcode } else { rest };
        let last = lines.last().map_or(0, String::len);
        if last > 0 && last + word.len() > 116 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push_str("  ");
            }
            line.push_str(word.trim_start());
        }
    }
    lines.join("\n")
}

/// Rows of the table that no recorded form uses: other architectures have them, or older PTX.
fn without_vectors(page: &mut String, forms: &[Form<'_>]) -> Result<()> {
    *page += "\n## Without vectors\n\n\
              Rows of the table that no form of sm_90a uses: older PTX or newer GPUs have them. They share their \
              semantics with rows that were recorded.\n\n```text\n";
    for (_, entries) in FAMILIES {
        for entry in *entries {
            let pattern = Pattern::new(entry.spelling);
            let used = forms.iter().any(|form| {
                let spelling = form.name.split(' ').next().unwrap_or("");
                let modifiers: Vec<&str> = spelling.split('.').skip(1).collect();
                form.opcode() == pattern.opcode && pattern.matches(&modifiers).is_some()
            });
            if !used {
                writeln!(page, "{}", entry.spelling)?;
            }
        }
    }
    *page += "```\n";
    Ok(())
}

/// What is known of a spelling of machine code.
#[derive(Default)]
struct Spelling {
    /// Recorded alone, by the words of the instruction.
    cases: usize,
    /// Forms of PTX whose machine code has it.
    forms: usize,
    /// Vectors of all.
    vectors: usize,
}

/// The page of machine code, without its notice.
pub fn sass() -> Result<String> {
    let mut spellings: BTreeMap<String, Spelling> = BTreeMap::new();
    let lanes = read("crates/isa/tests/h200/lanes.tsv")?;
    for fields in rows(&lanes) {
        let name = fields.first().copied().unwrap_or("");
        let word = name.split_whitespace().find(|word| !word.starts_with('@'));
        let spelling = spellings
            .entry(word.unwrap_or(name).to_owned())
            .or_default();
        spelling.cases += 1;
        spelling.vectors += THREADS;
    }
    let reached = read(&format!("{SUITE}/h200/spellings.txt"))?;
    for fields in rows(&reached) {
        if let [name, forms, vectors] = fields[..] {
            let spelling = spellings.entry(name.to_owned()).or_default();
            spelling.forms += forms.parse::<usize>()?;
            spelling.vectors += SEEDS * vectors.parse::<usize>()?;
        }
    }
    let opcodes = opcodes();
    let ran = spellings.values().filter(|spelling| spelling.vectors > 0);
    let mut page = format!(
        "# Instructions of machine code\n\n\
         {} opcodes of sm_90 are in [the tables](../../crates/isa/src/sass/tables). {} spellings of them, with their \
         modifiers, ran on an H200 and leave the same bits here, but for [the exceptions](../../{SUITE}/exceptions.txt). \
         A *case* is an instruction alone, as words that no compiler needs to write, in {THREADS} threads \
         (`crates/isa/tests/h200_lanes.rs`); a *form* is one of PTX whose machine code has the instruction \
         ([how](ptx.md)); *vectors* are the operands that went through it.\n\n\
         | instruction | cases | forms | vectors |\n|---|---:|---:|---:|\n",
        opcodes.len(),
        grouped(ran.count()),
    );
    for (name, spelling) in &spellings {
        if spelling.vectors == 0 {
            writeln!(page, "| `{name}` | | | refused |")?;
            continue;
        }
        writeln!(
            page,
            "| `{name}` | {} | {} | {} |",
            spelling.cases,
            spelling.forms,
            grouped(spelling.vectors)
        )?;
    }
    let reached: BTreeSet<&str> = spellings
        .keys()
        .map(|name| name.split('.').next().unwrap_or(name))
        .collect();
    page += "\n## Opcodes without vectors\n\n\
             They decode and print. Those that are refused stop a run when they are executed.\n\n\
             | opcode | |\n|---|---|\n";
    for (opcode, operations) in &opcodes {
        if reached.contains(opcode.as_str()) {
            continue;
        }
        let elsewhere = ELSEWHERE
            .iter()
            .find(|(_, list)| list.contains(&opcode.as_str()));
        let refused = operations.iter().find_map(|operation| refusal(*operation));
        let says = match (elsewhere, refused) {
            (Some((file, _)), _) => format!("`{file}`"),
            (None, Some(why)) => why,
            (None, None) => "no recorded vectors".to_owned(),
        };
        writeln!(page, "| `{opcode}` | {says} |")?;
    }
    Ok(page)
}

/// Tests that hold opcodes which this suite does not reach.
const ELSEWHERE: &[(&str, &[&str])] = &[
    (
        "crates/isa/tests/tensor_core.rs",
        &[
            "HMMA",
            "IMMA",
            "BMMA",
            "DMMA",
            "HGMMA",
            "IGMMA",
            "QGMMA",
            "BGMMA",
            "WARPGROUP",
        ],
    ),
    (
        "crates/gpu/tests/bulk_copies.rs",
        &[
            "UBLKCP",
            "UBLKPF",
            "UBLKRED",
            "UTMALDG",
            "UTMASTG",
            "UTMAREDG",
            "UTMAPF",
            "UTMACCTL",
            "UTMACMDFLUSH",
            "SYNCS",
        ],
    ),
    (
        "crates/gpu/tests/clusters.rs",
        &[
            "UCGABAR_ARV",
            "UCGABAR_WAIT",
            "STAS",
            "REDAS",
            "ACQBULK",
            "PREEXIT",
        ],
    ),
];

/// Opcodes of sm_90 and the opcode bits of each.
fn opcodes() -> BTreeMap<String, Vec<u16>> {
    let mut opcodes: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for (operation, opcode) in TABLE.operations(Architecture::Sm90) {
        opcodes
            .entry(opcode.name().to_owned())
            .or_default()
            .push(operation);
    }
    opcodes
}

/// Why an instruction that has these opcode bits and nothing else is refused, if it is.
fn refusal(operation: u16) -> Option<String> {
    const FRAME: Frame = Frame {
        uniform_registers: 64,
        section: 0,
        length: 64,
        architecture: 90,
    };
    let decoded = decode(Architecture::Sm90, 0, Word(u128::from(operation))).ok()?;
    let Operation::Unsupported(sentence) = bind(&decoded, &FRAME).ok()?.operation else {
        return None;
    };
    // The sentence begins with the instruction; what is wrong with it comes after its operands.
    let start = sentence.find(" is ").or_else(|| sentence.find(" has "))?;
    Some(format!("refused:{}", &sentence[start..]))
}
