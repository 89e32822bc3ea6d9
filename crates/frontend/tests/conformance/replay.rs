//! Runs the kernels of all forms on the test machine and compares.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use lockstep_frontend::sass::Image;
use lockstep_isa::{Kernel, Module};

use super::{
    form::{BLOCK, Form, forms},
    recorded::{GROUP, Recorded, mix, read},
    spellings::{Reached, count},
    values::{KINDS, POSITIONS, VECTORS, value},
};
use crate::harness::{Machine, TestMemory, link, new_memory};

const INPUTS: u64 = 0x2000_0000;
const OUTPUT: u64 = 0x3000_0000;
const CELLS: u64 = 0x3800_0000;
const HEAD: &str = ".version 8.7\n.target sm_90a\n.address_size 64\n";

/// A form of the manifest: which cubin has it, and as which kernel.
struct Listed<'f> {
    form: &'f Form,
    cubin: usize,
    kernel: String,
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/h200")
}

fn unpacked(name: &str) -> Vec<u8> {
    let packed = std::fs::read(folder().join(name)).expect("recorded results");
    zstd::decode_all(&packed[..]).expect("zstd unpacks what it packed")
}

fn listed(all: &[Form]) -> Vec<Listed<'_>> {
    let by_name: BTreeMap<&str, &Form> =
        all.iter().map(|form| (form.name.as_str(), form)).collect();
    let text = std::fs::read_to_string(folder().join("manifest.txt")).expect("a manifest");
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let form = by_name.get(fields[0]);
            Listed {
                form: form.unwrap_or_else(|| panic!("{} is not in the grammar", fields[0])),
                cubin: fields[1].parse().expect("number of a cubin"),
                kernel: fields[2].to_owned(),
            }
        })
        .collect()
}

/// Memory with the operands of a seed.
fn memory(seed: u64) -> TestMemory {
    let mut bytes = Vec::new();
    for kind in KINDS {
        for position in 0..POSITIONS {
            for vector in 0..VECTORS {
                bytes.extend(value(kind, position, vector, seed).to_le_bytes());
            }
        }
    }
    let mut memory = new_memory();
    memory.add(INPUTS, bytes);
    memory
}

/// The results of a form, a word each, result by result.
fn run(
    form: &Form,
    module: &Module,
    kernel: &Kernel,
    memory: &mut TestMemory,
) -> Result<Vec<u64>, String> {
    let vectors = form.vectors();
    memory.add(OUTPUT, vec![0; form.result_bytes().len() * vectors * 8]);
    memory.add(CELLS, vec![0; vectors * 32]);
    let mut pointers = [INPUTS; POSITIONS];
    for (position, kind) in form.operand_kinds().into_iter().enumerate() {
        let kind = KINDS.iter().position(|known| *known == kind).unwrap_or(0);
        pointers[position] += ((kind * POSITIONS + position) * VECTORS * 8) as u64;
    }
    let arguments: Vec<u8> = pointers
        .into_iter()
        .chain([OUTPUT, CELLS])
        .flat_map(u64::to_le_bytes)
        .collect();
    let blocks = (vectors / BLOCK) as u32;
    for block in 0..blocks {
        let mut machine = Machine::new(
            module,
            kernel,
            [block, 0, 0],
            [blocks, 1, 1],
            [BLOCK as u32, 1, 1],
            &arguments,
            0,
            std::mem::take(memory),
        );
        machine.turns = 100_000;
        let result = machine.run();
        *memory = std::mem::take(&mut machine.memory);
        result?;
    }
    let words = memory.buffer(OUTPUT).chunks_exact(8);
    Ok(words
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
        .collect())
}

/// What is wrong with the results of a form, in a few lines.
fn compare(form: &Form, words: &[u64], recorded: &Recorded, seed: u64) -> Result<(), String> {
    let digest = words.iter().fold(0, |digest, word| mix(digest, *word));
    if digest == recorded.digest {
        return Ok(());
    }
    let vectors = form.vectors();
    let mut lines = Vec::new();
    let operands = |vector: usize| {
        let kinds = form.operand_kinds().into_iter().enumerate();
        let words = kinds.map(|(position, kind)| value(kind, position, vector, seed));
        words
            .map(|word| format!("{word:x}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (result, special) in recorded.special.iter().enumerate() {
        for (vector, wanted) in special.iter().enumerate() {
            let got = words[result * vectors + vector];
            if got != *wanted {
                lines.push(format!(
                    "  [{result}] {} => {got:x}, H200 {wanted:x}",
                    operands(vector)
                ));
            }
        }
    }
    for (group, wanted) in recorded.groups.iter().enumerate() {
        let results = words.chunks_exact(vectors);
        let of_group = results.flat_map(|words| &words[group * GROUP..(group + 1) * GROUP]);
        if of_group.fold(0, |digest, word| mix(digest, *word)) as u32 != *wanted {
            lines.push(format!("  group {group}: {} ...", operands(group * GROUP)));
        }
    }
    let count = lines.len();
    lines.truncate(8);
    Err(format!("seed {seed}, {count} lines\n{}", lines.join("\n")))
}

/// A complaint about a form: its name, and what is wrong.
type Complaint = (String, String);

/// Calls `work` with each number below `count`, on a few threads; the complaints, in order.
fn on_threads<S>(
    count: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Vec<Complaint> + Sync,
) -> Vec<Complaint> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut complaints = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(8))
            .map(|_| {
                scope.spawn(|| {
                    let mut state = state();
                    let mut found = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= count {
                            return found;
                        }
                        found.push((number, work(&mut state, number)));
                    }
                })
            })
            .collect();
        let found = workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("no panic"));
        found.collect::<Vec<_>>()
    });
    complaints.sort();
    complaints.into_iter().flat_map(|(_, list)| list).collect()
}

/// A line of `exceptions.txt`: forms that are known to differ, and how many they are.
struct Exception {
    pattern: &'static str,
    count: usize,
}

fn exceptions(side: &str) -> Vec<Exception> {
    let lines = include_str!("exceptions.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [of, count, pattern, _reason] = fields[..] else {
                panic!("`{line}` has not four fields");
            };
            let count = count.parse().expect("a count");
            (of == side).then_some(Exception { pattern, count })
        })
        .collect()
}

/// Whether a name fits a pattern whose stars stand for anything.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|left| {
            (0..=left.len())
                .filter(|at| left.is_char_boundary(*at))
                .any(|at| fits(rest, &left[at..]))
        }),
    }
}

/// Fails if a form differs that is no exception, or if fewer differ than the exceptions say.
fn judge(side: &str, complaints: &[Complaint], forms: usize) {
    let exceptions = exceptions(side);
    let mut met = vec![BTreeSet::new(); exceptions.len()];
    let mut wrong = Vec::new();
    for (name, why) in complaints {
        match exceptions
            .iter()
            .position(|known| fits(known.pattern, name))
        {
            Some(index) => {
                met[index].insert(name);
            }
            None => wrong.push(format!("{name}: {why}")),
        }
    }
    for (known, met) in exceptions.iter().zip(&met) {
        if known.count != met.len() {
            wrong.push(format!(
                "exceptions.txt says that {} forms of {} differ, but {} do",
                known.count,
                known.pattern,
                met.len()
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} complaints about {forms} forms:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The recorded results of both seeds, and whether special values are there in full.
const SEEDS: [(u64, &str, bool); 2] = [(1, "seed1.zst", true), (2, "seed2.zst", false)];

#[test]
fn ptx_gives_the_bits_of_an_h200() {
    let all = forms();
    let listed = listed(&all);
    let listed_forms: Vec<&Form> = listed.iter().map(|listed| listed.form).collect();
    for (seed, name, full) in SEEDS {
        let recorded = read(&unpacked(name), &listed_forms, full);
        let complaints = on_threads(
            listed.len(),
            || memory(seed),
            |memory, number| {
                let form = listed[number].form;
                let Some(recorded) = &recorded[number] else {
                    return Vec::new();
                };
                let checked = link(&format!("{HEAD}{}", form.kernel("k")))
                    .map_err(|error| error.to_string())
                    .and_then(|module| run(form, &module, &module.kernels[0], memory))
                    .and_then(|words| compare(form, &words, recorded, seed));
                let complaint = checked.err().map(|why| (form.name.clone(), why));
                complaint.into_iter().collect()
            },
        );
        judge("ptx", &complaints, listed.len());
    }
}

#[test]
fn machine_code_gives_the_bits_of_an_h200() {
    let all = forms();
    let listed = listed(&all);
    let listed_forms: Vec<&Form> = listed.iter().map(|listed| listed.form).collect();
    let cubins = cubins();
    let recorded: Vec<_> = SEEDS
        .map(|(seed, name, full)| (seed, read(&unpacked(name), &listed_forms, full)))
        .into();
    let complaints = on_threads(
        cubins.len(),
        || {
            recorded
                .iter()
                .map(|(seed, _)| memory(*seed))
                .collect::<Vec<_>>()
        },
        |memories, number| {
            if cubins[number].is_empty() {
                return Vec::new();
            }
            let image = Image::read(&cubins[number]).expect("a cubin");
            let module = image.link(&[]).expect("a cubin without variables");
            let mut complaints = Vec::new();
            for (index, listed) in listed.iter().enumerate() {
                if listed.cubin != number {
                    continue;
                }
                let kernel = module
                    .kernels
                    .iter()
                    .find(|kernel| kernel.name == listed.kernel);
                let kernel = kernel.expect("a kernel of the manifest");
                for ((seed, recorded), memory) in recorded.iter().zip(&mut *memories) {
                    let Some(recorded) = &recorded[index] else {
                        continue;
                    };
                    let checked = run(listed.form, &module, kernel, memory)
                        .and_then(|words| compare(listed.form, &words, recorded, *seed));
                    complaints.extend(checked.err().map(|why| (listed.form.name.clone(), why)));
                }
            }
            complaints
        },
    );
    judge("sass", &complaints, listed.len());
}

/// `cargo xtask docs` makes a page of the list.
#[test]
fn the_list_of_spellings_is_what_the_cubins_hold() {
    let all = forms();
    let reached: Vec<Reached> = listed(&all)
        .into_iter()
        .map(|listed| Reached {
            cubin: listed.cubin,
            kernel: listed.kernel,
            vectors: listed.form.vectors(),
        })
        .collect();
    let (list, wanted) = (folder().join("spellings.txt"), count(&cubins(), &reached));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&list, &wanted).expect("a list");
    }
    let found = std::fs::read_to_string(&list).expect("a list");
    assert!(
        wanted == found,
        "spellings.txt is out of date: `cargo xtask bless` and the example `conformance` write it"
    );
}

/// The cubins, each behind its length.
fn cubins() -> Vec<Vec<u8>> {
    let bytes = unpacked("cubins.zst");
    let mut rest = &bytes[..];
    let mut cubins = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        cubins.push(after[..length].to_vec());
        rest = &after[length..];
    }
    cubins
}
