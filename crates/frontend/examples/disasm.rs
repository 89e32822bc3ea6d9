//! Lists the machine code of a cubin, a fat binary, or a program that nvcc built.
//!
//! ```text
//! cargo run --release -p lockstep-frontend --example disasm -- FILE
//! ```

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use lockstep_frontend::sass::disassemble;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: disasm FILE");
        return ExitCode::FAILURE;
    };
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let result = disassemble(&bytes, &mut out);
    let flushed = out.flush();
    match (result, flushed) {
        (Ok(summary), Ok(())) => {
            eprintln!(
                "{} instructions of {} images, {} unknown; {} images for other architectures",
                summary.instructions, summary.images, summary.unknown, summary.skipped
            );
            ExitCode::SUCCESS
        }
        (Err(error), _) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
        (_, Err(error)) => {
            eprintln!("{path}: {error}");
            ExitCode::FAILURE
        }
    }
}
