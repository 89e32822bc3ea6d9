//! Which instructions of some programs cannot be executed: `native_coverage [--spellings] PROGRAM...` reads
//! cubins, fat binaries and host executables, and prints a line for each kind of gap, and the share of
//! instructions that can be executed. With `--spellings` operands are left out of the lines.

use std::collections::BTreeMap;

use lockstep_frontend::sass::{Image, cubin, fatbinary};
use lockstep_isa::Operation;
use object::{Object, ObjectSection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut gaps: BTreeMap<String, u32> = BTreeMap::new();
    let (mut images, mut instructions, mut unable) = (0, 0, 0);
    let mut arguments = std::env::args().skip(1).peekable();
    let spellings = arguments
        .next_if(|argument| argument == "--spellings")
        .is_some();
    for path in arguments {
        let bytes = std::fs::read(&path)?;
        for cubin in cubins(&bytes) {
            images += 1;
            let linked = Image::read(&cubin).and_then(|image| {
                let mut next = 0x2000_0000_0000_u64;
                let addresses: Vec<u64> = image
                    .globals()
                    .iter()
                    .map(|global| {
                        next += global.size.next_multiple_of(256) + 256;
                        next
                    })
                    .collect();
                image.link(&addresses)
            });
            match linked {
                Err(error) => *gaps.entry(format!("{path}: {error}")).or_default() += 1,
                Ok(module) => {
                    instructions += module.code.len();
                    for instruction in module.code.iter() {
                        if let Operation::Unsupported(why) | Operation::Illegal(why) =
                            &instruction.operation
                        {
                            let kind = if spellings { spelling(why) } else { why };
                            *gaps.entry(kind.to_owned()).or_default() += 1;
                            unable += 1;
                        }
                    }
                }
            }
        }
    }
    for (gap, count) in &gaps {
        println!("{count:6} {gap}");
    }
    let share = 100.0 * (1.0 - f64::from(unable) / (instructions.max(1) as f64));
    println!(
        "{images} images, {instructions} instructions, {} kinds of gaps, {share:.4} % can be executed",
        gaps.len()
    );
    Ok(())
}

/// Opcode and modifiers of a sentence that begins with an instruction.
fn spelling(sentence: &str) -> &str {
    let mut words = sentence.split_whitespace();
    words
        .find(|word| !word.starts_with('@'))
        .unwrap_or(sentence)
}

fn cubins(bytes: &[u8]) -> Vec<Vec<u8>> {
    if fatbinary::is_fatbinary(bytes) {
        let entries = fatbinary::read(bytes).unwrap_or_default();
        return entries
            .into_iter()
            .filter(|entry| entry.kind == fatbinary::Kind::Cubin)
            .map(|entry| entry.bytes)
            .collect();
    }
    if cubin::architecture(bytes).is_ok() {
        return vec![bytes.to_vec()];
    }
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    let section = file.section_by_name(".nv_fatbin");
    section
        .and_then(|section| section.data().ok().map(cubins))
        .unwrap_or_default()
}
