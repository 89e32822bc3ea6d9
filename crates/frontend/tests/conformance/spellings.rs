//! Which instructions of machine code the forms reach: opcode with modifiers, in how many forms, with how many vectors.

use std::{collections::BTreeMap, fmt::Write as _};

use lockstep_frontend::sass::Image;
use lockstep_isa::Operation;

/// A kernel of a cubin and the vectors that it is given.
pub struct Reached {
    /// Number of the cubin.
    pub cubin: usize,
    /// Name of the kernel.
    pub kernel: String,
    /// Vectors of each seed.
    pub vectors: usize,
}

/// A line for each spelling: `spelling`, forms, vectors of one seed; no forms where it is refused.
pub fn count(cubins: &[Vec<u8>], reached: &[Reached]) -> String {
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (number, bytes) in cubins.iter().enumerate() {
        if bytes.is_empty() {
            continue;
        }
        let image = Image::read(bytes).expect("a cubin");
        let module = image.link(&[]).expect("a cubin without variables");
        let mut starts: Vec<u32> = module.kernels.iter().map(|kernel| kernel.entry).collect();
        starts.push(module.code.len() as u32);
        starts.sort_unstable();
        for reached in reached.iter().filter(|reached| reached.cubin == number) {
            let mut kernels = module.kernels.iter();
            let kernel = kernels.find(|kernel| kernel.name == reached.kernel);
            let start = kernel.expect("a kernel of the manifest").entry;
            let end = starts.iter().find(|other| **other > start);
            let end = end.copied().unwrap_or(start);
            let mut spellings: Vec<(String, bool)> = (start..end)
                .filter_map(|pc| {
                    let operation = &module.code[pc as usize].operation;
                    let refused =
                        matches!(operation, Operation::Unsupported(_) | Operation::Illegal(_));
                    Some((spelling(&module.text(pc)?)?.to_owned(), refused))
                })
                .collect();
            spellings.sort_unstable();
            spellings.dedup();
            for (spelling, refused) in spellings {
                let count = counts.entry(spelling).or_default();
                if !refused {
                    count.0 += 1;
                    count.1 += reached.vectors;
                }
            }
        }
    }
    let mut text = String::new();
    for (spelling, (forms, vectors)) in counts {
        let _ = writeln!(text, "{spelling}\t{forms}\t{vectors}");
    }
    text
}

/// Opcode and modifiers of a line.
fn spelling(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let word = words.find(|word| !word.starts_with('@'))?;
    // Functions of the system stand behind the code, in small letters.
    let opcode = word.starts_with(|letter: char| letter.is_ascii_uppercase());
    opcode.then(|| word.trim_end_matches([';', ',']))
}
