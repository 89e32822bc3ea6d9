//! Code of all kinds: read, linked, and run.

use super::two;
use crate::corpus::{Corpus, Kind};
use crate::random::Random;
use crate::{mutate, tiny};
use lockstep_frontend::sass::{cubin, disassemble, fatbinary};
use lockstep_isa::sass::Architecture;
use lockstep_protocol::{ImageKind, ImageRole, ModuleImage};
use lockstep_simulation::{Mode, Session};

/// Blocks and threads of every launch: two warps, the second not full.
const GRID: u32 = 3;
const BLOCK: u32 = 40;

pub fn make_ptx(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let (mut input, other) = two(random, &corpus.of(Kind::Ptx));
    mutate::text(random, &mut input, other);
    input
}

pub fn run_ptx(bytes: &[u8]) {
    run(ImageKind::Ptx, bytes, 90);
}

pub fn make_cubin(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let (mut input, other) = two(random, &corpus.of(Kind::Cubin));
    mutate::cubin(random, &mut input, other);
    input
}

pub fn run_cubin(bytes: &[u8]) {
    let _ = disassemble(bytes, &mut std::io::sink());
    let architecture = cubin::architecture(bytes).unwrap_or(90);
    run(ImageKind::Cubin, bytes, architecture);
}

/// Containers from a compiler, and containers around images that were changed.
pub fn make_fatbinary(corpus: &Corpus, random: &mut Random) -> Vec<u8> {
    let (mut input, other) = two(random, &corpus.of(Kind::FatBinary));
    if random.once_in(2) {
        let range = 0..input.len().min(256);
        mutate::bytes(random, &mut input, range, other);
        return input;
    }
    if random.once_in(2) {
        let range = 0..input.len();
        mutate::bytes(random, &mut input, range, other);
        return input;
    }
    let mut body = Vec::new();
    for _ in 0..1 + random.below(3) {
        let (kind, bytes) = if random.once_in(2) {
            (1, make_ptx(corpus, random))
        } else {
            (2, make_cubin(corpus, random))
        };
        body.extend(entry(kind, &bytes));
    }
    let mut container = fatbinary::MAGIC.to_le_bytes().to_vec();
    container.extend_from_slice(&[1, 0, 16, 0]);
    container.extend_from_slice(&(body.len() as u64).to_le_bytes());
    container.extend(body);
    container
}

/// One image of a container, not compressed.
fn entry(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut entry = vec![0; 64];
    entry[0] = kind;
    entry[4] = 64;
    entry[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    entry[28] = 90;
    entry.extend_from_slice(bytes);
    entry
}

pub fn run_fatbinary(bytes: &[u8]) {
    let _ = disassemble(bytes, &mut std::io::sink());
    run(ImageKind::FatBinary, bytes, 90);
}

/// Loads an image as it is and prints what came of its kernels in each mode.
pub fn try_image(bytes: &[u8]) {
    let kind = if fatbinary::is_fatbinary(bytes) {
        ImageKind::FatBinary
    } else if cubin::is_elf(bytes) {
        ImageKind::Cubin
    } else {
        ImageKind::Ptx
    };
    let image = ModuleImage {
        kind,
        role: ImageRole::Main,
        bytes: bytes.to_vec(),
    };
    let architecture = cubin::architecture(bytes).unwrap_or(90);
    for mode in [Mode::Functional, Mode::Timing] {
        let description = tiny::description(tiny::config(architecture), mode);
        match Session::exercise(&description, &image, GRID, BLOCK) {
            Ok(all) => {
                for one in all {
                    let outcome = one.outcome.err().unwrap_or_else(|| "ran".to_owned());
                    println!("  {} {}: {outcome}", mode.name(), one.kernel);
                }
            }
            Err(error) => println!("  {error}"),
        }
    }
}

fn run(kind: ImageKind, bytes: &[u8], architecture: u32) {
    let known = Architecture::from_sm(architecture).map_or(90, |_| architecture);
    let image = ModuleImage {
        kind,
        role: ImageRole::Main,
        bytes: bytes.to_vec(),
    };
    for mode in [Mode::Functional, Mode::Timing] {
        let description = tiny::description(tiny::config(known), mode);
        let _ = Session::exercise(&description, &image, GRID, BLOCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_simulation::Exercised;

    /// What is not changed runs: otherwise fuzzing would try refusals alone.
    fn check(kind: ImageKind, bytes: &[u8], kernels: &[&str]) {
        let image = ModuleImage {
            kind,
            role: ImageRole::Main,
            bytes: bytes.to_vec(),
        };
        for mode in [Mode::Functional, Mode::Timing] {
            let description = tiny::description(tiny::config(90), mode);
            let all = Session::exercise(&description, &image, GRID, BLOCK).expect("a GPU");
            let ran: Vec<&str> = all
                .iter()
                .filter(|one| one.outcome.is_ok())
                .map(|one: &Exercised| &*one.kernel)
                .collect();
            assert_eq!(ran, kernels, "{all:?}");
        }
    }

    #[test]
    fn good_text_runs_in_both_modes() {
        check(
            ImageKind::Ptx,
            crate::samples::KERNEL.as_bytes(),
            &["kernel"],
        );
    }

    #[test]
    fn good_machine_code_runs_in_both_modes() {
        let code = include_bytes!("../../../crates/gpu/tests/sass/mix.sm_90.cubin");
        check(ImageKind::Cubin, code, &["mix"]);
    }
}
