//! Cases as `.ptx` files: what a kernel is given and must leave stands in comments.
//!
//! ```text
//! // launch: 2 x 64                        blocks x threads; `+ 128` bytes of dynamic shared memory
//! // in: u32 = 1 2 0x10 5*30               a pointer to these values
//! // out: f32 = 1.5 nan 0..8               a pointer to zeros, which must become these values
//! // inout: u64 = 1 2 => 3 4
//! // value: u32 = 7                        an argument itself
//! ```
//!
//! Values: numbers, `a..b` (a to b - 1), `value*count`, floats by their text or as hexadecimal
//! bits, `any` for what is not checked.

use super::{BUFFERS, Machine, link, memory::Memory};

/// What a file asks for.
#[derive(Debug, Default)]
pub struct Case {
    blocks: u32,
    threads: u32,
    shared: u32,
    arguments: Vec<Argument>,
    /// Sentence that the run must end with.
    fails: Option<String>,
}

#[derive(Debug)]
struct Argument {
    kind: Kind,
    /// `None` is not checked.
    given: Vec<Option<u64>>,
    wanted: Option<Vec<Option<u64>>>,
    value: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    bytes: usize,
    float: bool,
}

impl Kind {
    fn parse(word: &str) -> Self {
        let bits: usize = word[1..].parse().unwrap_or_else(|_| panic!("type {word}"));
        Self {
            bytes: bits / 8,
            float: word.starts_with('f'),
        }
    }

    fn number(self, word: &str) -> u64 {
        if let Some(hexadecimal) = word.strip_prefix("0x") {
            return u64::from_str_radix(hexadecimal, 16).expect("a hexadecimal number");
        }
        match (self.float, self.bytes) {
            (true, 4) => u64::from(word.parse::<f32>().expect("a float").to_bits()),
            (true, _) => word.parse::<f64>().expect("a double").to_bits(),
            _ => word
                .parse::<i128>()
                .unwrap_or_else(|_| panic!("a number, not {word}")) as u64,
        }
    }

    fn values(self, text: &str) -> Vec<Option<u64>> {
        let mut list = Vec::new();
        for word in text.split_whitespace() {
            let (word, count) = match word.split_once('*') {
                Some((word, count)) => (word, count.parse().expect("a count")),
                None => (word, 1),
            };
            for _ in 0..count {
                if word == "any" {
                    list.push(None);
                } else if let Some((from, to)) = word.split_once("..") {
                    let (from, to): (i64, i64) = (
                        from.parse().expect("a number"),
                        to.parse().expect("a number"),
                    );
                    list.extend((from..to).map(|n| Some(self.number(&n.to_string()))));
                } else {
                    list.push(Some(self.number(word)));
                }
            }
        }
        list
    }
}

impl Case {
    /// Reads the comments of a file.
    pub fn parse(text: &str) -> Self {
        let mut case = Self {
            blocks: 1,
            threads: 32,
            ..Self::default()
        };
        for line in text.lines() {
            let Some((key, rest)) = line.strip_prefix("// ").and_then(|l| l.split_once(": "))
            else {
                continue;
            };
            match key {
                "launch" => {
                    let words: Vec<&str> = rest.split_whitespace().collect();
                    case.blocks = words[0].parse().expect("blocks");
                    case.threads = words[2].parse().expect("threads");
                    case.shared = words.get(4).map_or(0, |word| word.parse().expect("bytes"));
                }
                "in" | "out" | "inout" | "value" => {
                    let (kind, values) = rest.split_once(" = ").expect("type = values");
                    let kind = Kind::parse(kind);
                    let (given, wanted) = match values.split_once("=>") {
                        Some((given, wanted)) => (kind.values(given), Some(kind.values(wanted))),
                        None if key == "out" => {
                            let wanted = kind.values(values);
                            (vec![Some(0); wanted.len()], Some(wanted))
                        }
                        None => (kind.values(values), None),
                    };
                    case.arguments.push(Argument {
                        kind,
                        given,
                        wanted,
                        value: key == "value",
                    });
                }
                "fails" => case.fails = Some(rest.to_owned()),
                _ => {}
            }
        }
        case
    }
}

/// Runs a file; an error says what differs.
pub fn compare(text: &str) -> Result<(), String> {
    let case = Case::parse(text);
    let module = link(text).map_err(|error| error.to_string())?;
    let kernel = module.kernels.first().ok_or("no kernel")?;
    let mut memory = Memory::default();
    for (address, bytes) in &module.initial {
        memory.add(*address, bytes.clone());
    }
    let mut arguments = Vec::new();
    let mut places = Vec::new();
    let mut next = BUFFERS;
    for argument in &case.arguments {
        let mut bytes = Vec::new();
        for value in &argument.given {
            bytes.extend(&value.unwrap_or(0).to_le_bytes()[..argument.kind.bytes]);
        }
        if argument.value {
            let alignment = argument.kind.bytes;
            arguments.resize(arguments.len().next_multiple_of(alignment), 0);
            arguments.extend(bytes);
            places.push(0);
        } else {
            arguments.resize(arguments.len().next_multiple_of(8), 0);
            arguments.extend(next.to_le_bytes());
            places.push(next);
            let length = bytes.len() as u64;
            memory.add(next, bytes);
            next += length.next_multiple_of(256) + 256;
        }
    }
    for block in 0..case.blocks {
        let mut machine = Machine::new(
            &module,
            kernel,
            [block, 0, 0],
            [case.blocks, 1, 1],
            [case.threads, 1, 1],
            &arguments,
            case.shared,
            std::mem::take(&mut memory),
        );
        let result = machine.run();
        memory = std::mem::take(&mut machine.memory);
        match (&case.fails, result) {
            (Some(wanted), Err(sentence)) if sentence.contains(wanted) => return Ok(()),
            (_, Err(sentence)) => return Err(sentence),
            (_, Ok(())) => {}
        }
    }
    if let Some(wanted) = &case.fails {
        return Err(format!("it should end with `{wanted}`"));
    }
    let mut differences = Vec::new();
    for (number, (argument, place)) in case.arguments.iter().zip(places).enumerate() {
        let Some(wanted) = &argument.wanted else {
            continue;
        };
        let bytes = memory.buffer(place);
        for (index, (wanted, chunk)) in wanted
            .iter()
            .zip(bytes.chunks(argument.kind.bytes))
            .enumerate()
        {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let got = u64::from_le_bytes(word);
            let cut = u64::MAX >> (64 - 8 * argument.kind.bytes);
            if let Some(wanted) = wanted
                && wanted & cut != got
            {
                differences.push(format!(
                    "argument {number}[{index}]: {got:#x} instead of {:#x}",
                    wanted & cut
                ));
            }
        }
    }
    if differences.is_empty() {
        Ok(())
    } else {
        differences.truncate(12);
        Err(differences.join("\n"))
    }
}
