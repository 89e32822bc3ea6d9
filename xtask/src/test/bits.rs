//! Results that a real GPU gave bit by bit: programs print a digest of theirs, which was recorded.

use crate::project;
use anyhow::{Context, Result};

/// The GPU as configured here.
pub const GPU: &str = "h200";

/// What was recorded; see its head.
const TABLE: &str = "validation/hardware/h200/bits.csv";

/// Nothing, or how the digest in a program's verdict differs from the recorded one. Programs and arguments that were
/// not recorded pass.
pub fn check(program: &str, arguments: &[String], output: &str) -> Result<String> {
    let text = std::fs::read_to_string(project::root().join(TABLE)).context(TABLE)?;
    Ok(compare(&text, program, &arguments.join(" "), output))
}

fn compare(table: &str, program: &str, arguments: &str, output: &str) -> String {
    let row = format!("{program},{arguments},");
    let Some(recorded) = table.lines().find_map(|line| line.strip_prefix(&row)) else {
        return String::new();
    };
    let printed = output
        .lines()
        .filter(|line| line.starts_with("PASS "))
        .find_map(|line| line.rsplit_once("digest "))
        .map(|(_, digest)| digest.trim());
    match printed {
        Some(digest) if digest == recorded => String::new(),
        other => format!(
            "the H200's results have the digest {recorded} ({TABLE}), these {}",
            other.unwrap_or("none")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_recorded_digest_passes() {
        let table = "# head\nprogram,arguments,digest\ngemm,64 8,00ff\n";
        let said = |digest: &str| format!("PASS gemm 64 x 8, digest {digest}\n");
        assert_eq!(compare(table, "gemm", "64 8", &said("00ff")), "");
        assert_eq!(compare(table, "gemm", "64 16", &said("1234")), "");
        assert!(compare(table, "gemm", "64 8", &said("1234")).contains("00ff"));
        assert!(compare(table, "gemm", "64 8", "PASS gemm\n").contains("none"));
    }
}
