//! Prepares a recording of the conformance suite on a real GPU: compiles one kernel for each form of the grammar.
//!
//! `cargo run -p lockstep-frontend --example conformance -- PTXAS FOLDER SEED...` leaves in the folder cubins
//! (also as `cubins.zst`), `manifest.txt` (a line for each form that `ptxas` accepts), `refused.txt` (those that it does
//! not, and why), `spellings.txt` (instructions of machine code that the forms reach) and
//! `inputs.SEED` (the values of operands). `tests/conformance/record.cu` runs them.

#[path = "../tests/conformance/form.rs"]
mod form;
#[path = "../tests/conformance/spellings.rs"]
mod spellings;
#[path = "../tests/conformance/values.rs"]
mod values;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use form::{Form, forms};
use spellings::{Reached, count};
use values::{KINDS, POSITIONS, VECTORS, value};

/// Kernels of one cubin.
const CHUNK: usize = 160;
/// Compilers at a time.
const COMPILERS: usize = 2;
const HEAD: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n";

type Refusals = BTreeMap<usize, String>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(ptxas), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: conformance PTXAS FOLDER SEED...".into());
    };
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    let all = forms();
    let numbers: Vec<usize> = (0..all.len()).collect();
    let chunks: Vec<&[usize]> = numbers.chunks(CHUNK).collect();
    let mut refused = Refusals::new();
    std::thread::scope(|scope| {
        let part = chunks.len().div_ceil(COMPILERS);
        let compilers: Vec<_> = (0..COMPILERS)
            .map(|index| {
                let (all, chunks, folder, ptxas) = (&all, &chunks, &folder, &ptxas);
                scope.spawn(move || -> Result<Refusals, String> {
                    let mut refused = Refusals::new();
                    for number in
                        (index * part..(index + 1) * part).take_while(|n| *n < chunks.len())
                    {
                        compile(ptxas, folder, number, all, chunks[number], &mut refused)?;
                    }
                    Ok(refused)
                })
            })
            .collect();
        for compiler in compilers {
            refused.extend(compiler.join().map_err(|_| "a compiler stopped")??);
        }
        Ok::<(), String>(())
    })?;
    write_lists(&folder, &all, &refused)?;
    let cubins = read_cubins(&folder, chunks.len());
    pack_cubins(&folder, &cubins)?;
    let accepted = numbers.iter().filter(|n| !refused.contains_key(n));
    let reached: Vec<Reached> = accepted
        .map(|n| Reached {
            cubin: n / CHUNK,
            kernel: format!("f{n}"),
            vectors: all[*n].vectors(),
        })
        .collect();
    std::fs::write(folder.join("spellings.txt"), count(&cubins, &reached))?;
    for seed in arguments {
        write_inputs(&folder, seed.parse()?)?;
    }
    println!("{} forms, {} refused", all.len(), refused.len());
    Ok(())
}

/// Compiles a chunk, leaving out what the compiler refuses, until it refuses nothing.
fn compile(
    ptxas: &str,
    folder: &Path,
    number: usize,
    all: &[Form],
    chunk: &[usize],
    refused: &mut Refusals,
) -> Result<(), String> {
    let text_path = folder.join(format!("{number}.ptx"));
    let cubin = folder.join(format!("{number}.cubin"));
    loop {
        let mut text = HEAD.to_owned();
        let mut starts = Vec::new();
        for index in chunk.iter().filter(|index| !refused.contains_key(index)) {
            starts.push((text.lines().count() + 1, *index));
            text += &all[*index].kernel(&format!("f{index}"));
        }
        if starts.is_empty() {
            return Ok(());
        }
        std::fs::write(&text_path, text).map_err(|error| error.to_string())?;
        let output = Command::new(ptxas)
            .args(["-arch=sm_90a", "-O3", "-o"])
            .args([&cubin, &text_path])
            .output()
            .map_err(|error| format!("{ptxas}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let before = refused.len();
        for message in messages.lines() {
            let Some((_, rest)) = message.split_once(", line ") else {
                continue;
            };
            let line: usize = rest
                .split(';')
                .next()
                .and_then(|n| n.trim().parse().ok())
                .unwrap_or(0);
            let owner = starts.iter().rev().find(|(start, _)| *start <= line);
            if let Some((_, index)) = owner {
                let why = rest.split_once("; ").map_or(rest, |(_, why)| why);
                refused
                    .entry(*index)
                    .or_insert_with(|| why.trim().to_owned());
            }
        }
        if refused.len() == before {
            return Err(format!("chunk {number}: {messages}"));
        }
    }
}

/// Cubins by number; empty where the compiler took no form.
fn read_cubins(folder: &Path, count: usize) -> Vec<Vec<u8>> {
    let read = |number| std::fs::read(folder.join(format!("{number}.cubin")));
    (0..count)
        .map(|number| read(number).unwrap_or_default())
        .collect()
}

/// All cubins in one file, each behind its length. They are much alike, so that a wide window pays.
fn pack_cubins(folder: &Path, cubins: &[Vec<u8>]) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for cubin in cubins {
        bytes.extend((cubin.len() as u64).to_le_bytes());
        bytes.extend(cubin);
    }
    let mut compressor = zstd::bulk::Compressor::new(19)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::WindowLog(25))?;
    std::fs::write(folder.join("cubins.zst"), compressor.compress(&bytes)?)
}

/// Name, cubin, vectors, bytes of results, and inputs by number, of each form.
fn write_lists(folder: &Path, all: &[Form], refused: &Refusals) -> std::io::Result<()> {
    let (mut manifest, mut refusals) = (String::new(), String::new());
    for (index, form) in all.iter().enumerate() {
        if let Some(why) = refused.get(&index) {
            let _ = writeln!(refusals, "{}\t{why}", form.name);
            continue;
        }
        let bytes: Vec<String> = form.result_bytes().iter().map(usize::to_string).collect();
        let inputs = form
            .operand_kinds()
            .into_iter()
            .enumerate()
            .map(|(position, kind)| {
                let kind = KINDS.iter().position(|known| *known == kind).unwrap_or(0);
                (kind * POSITIONS + position).to_string()
            });
        let mut inputs: Vec<String> = inputs.collect();
        inputs.resize(POSITIONS, "-1".to_owned());
        let _ = writeln!(
            manifest,
            "{}\t{}\tf{index}\t{}\t{}\t{}",
            form.name,
            index / CHUNK,
            form.vectors(),
            bytes.join(","),
            inputs.join(",")
        );
    }
    std::fs::write(folder.join("manifest.txt"), manifest)?;
    std::fs::write(folder.join("refused.txt"), refusals)
}

fn write_inputs(folder: &Path, seed: u64) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(KINDS.len() * POSITIONS * VECTORS * 8);
    for kind in KINDS {
        for position in 0..POSITIONS {
            for vector in 0..VECTORS {
                bytes.extend(value(kind, position, vector, seed).to_le_bytes());
            }
        }
    }
    std::fs::write(folder.join(format!("inputs.{seed}")), bytes)
}
