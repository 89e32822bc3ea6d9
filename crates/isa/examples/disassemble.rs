//! The text of raw instruction words, or nothing for those that the tables do not know.
//!
//! ```text
//! cargo run -p lockstep-isa --example disassemble -- SM < WORDS
//! ```
//!
//! A word is 32 hexadecimal digits on a line of its own; each gives one line. `validation/audit_encodings.py` asks it.

use std::io::{BufRead, BufWriter, Write};
use std::process::ExitCode;

use lockstep_isa::sass::{Architecture, Word, decode};

fn main() -> ExitCode {
    let architecture = std::env::args()
        .nth(1)
        .and_then(|sm| sm.parse().ok())
        .and_then(Architecture::from_sm);
    let Some(architecture) = architecture else {
        eprintln!("usage: disassemble SM < WORDS, where SM is an architecture such as 90");
        return ExitCode::FAILURE;
    };
    match texts(architecture) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn texts(architecture: Architecture) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let word = u128::from_str_radix(line.trim(), 16).map_err(std::io::Error::other)?;
        match decode(architecture, 0, Word(word)) {
            Ok(decoded) => writeln!(out, "{decoded}")?,
            Err(_) => writeln!(out)?,
        }
    }
    out.flush()
}
