//! A word that nobody can guess.

use std::fs::File;
use std::io::{self, Read};

/// Bytes of it.
const LENGTH: usize = 16;

/// A fresh token, in letters and digits.
///
/// # Errors
/// The system has no random bytes.
pub fn fresh_token() -> io::Result<String> {
    let mut bytes = [0u8; LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether two tokens are equal, in a time that does not say where they differ.
pub fn same_token(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_alike() {
        let (one, other) = (fresh_token().unwrap(), fresh_token().unwrap());
        assert_eq!(one.len(), 2 * LENGTH);
        assert!(same_token(&one, &one));
        assert!(!same_token(&one, &other) && !same_token(&one, &one[1..]));
    }
}
