//! Words of GPGPU-Sim's files: options that begin with `-`, each with what follows it.
//!
//! `#` begins a comment; a value may be quoted and then go on over several lines, in which blanks
//! mean nothing. Of an option that is given twice, the last counts.

use crate::ConfigError;
use std::collections::BTreeMap;

/// An option as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Given {
    /// The file and the line, for messages.
    pub place: String,
    /// What follows the name, words apart by one blank.
    pub value: String,
}

/// Every option by name, without the `-`.
pub(super) type Options = BTreeMap<String, Given>;

/// Whether a text has a line that begins with an option.
pub(super) fn has_options(text: &str) -> bool {
    text.lines().any(|line| is_name(line.trim_start()))
}

/// Whether a word names an option: numbers below zero do not.
fn is_name(word: &str) -> bool {
    let rest = word.strip_prefix('-');
    rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}

/// Reads files, later ones above earlier ones.
pub(super) fn read(files: &[(String, String)]) -> Result<Options, ConfigError> {
    let mut options = Options::new();
    for (path, text) in files {
        read_file(path, text, &mut options)?;
    }
    Ok(options)
}

fn read_file(path: &str, text: &str, options: &mut Options) -> Result<(), ConfigError> {
    let malformed = |line: usize, message: String| ConfigError::Malformed {
        path: format!("{path}:{line}"),
        message,
    };
    let mut name: Option<String> = None;
    // Inside quotes, since this line.
    let mut quoted: Option<usize> = None;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = line.split('#').next().unwrap_or_default();
        for (index, part) in line.split('"').enumerate() {
            if index > 0 {
                quoted = match quoted {
                    None => Some(number),
                    Some(_) => None,
                };
            }
            for word in part.split_whitespace() {
                if quoted.is_none() && is_name(word) {
                    let key = word[1..].to_string();
                    let place = format!("{path}:{number}");
                    let value = String::new();
                    options.insert(key.clone(), Given { place, value });
                    name = Some(key);
                    continue;
                }
                let Some(given) = name.as_ref().and_then(|name| options.get_mut(name)) else {
                    let message = format!("`{word}` follows no option; write it as `-name value`");
                    return Err(malformed(number, message));
                };
                if !given.value.is_empty() && quoted.is_none() {
                    given.value.push(' ');
                }
                given.value.push_str(word);
            }
        }
    }
    match quoted {
        Some(line) => Err(malformed(line, "a quotation mark has no other".into())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        match read(&[("x".into(), text.into())]) {
            Ok(options) => options
                .iter()
                .map(|(name, given)| format!("{name}={} at {}", given.value, given.place))
                .collect(),
            Err(error) => vec![error.to_string()],
        }
    }

    #[test]
    fn options_have_what_follows_them() {
        assert_eq!(
            check("# a comment -x 1\n-a 1 # why\n -b -2\n-c \"p=1:\n   q=2\" -d\n-a 3\n"),
            ["a=3 at x:6", "b=-2 at x:3", "c=p=1:q=2 at x:4", "d= at x:5"]
        );
    }

    #[test]
    fn what_is_no_option_is_named_with_its_place() {
        assert_eq!(
            check("\nhello\n-a 1\n"),
            ["x:2: `hello` follows no option; write it as `-name value`"]
        );
        assert_eq!(
            check("-a \"x\n-b 2\n"),
            ["x:1: a quotation mark has no other"]
        );
    }

    #[test]
    fn options_are_recognised_in_a_file() {
        assert!(has_options("# c\n  -gpgpu_n_mem 3\n"));
        assert!(!has_options("[GPU]\nclock: -1\n"));
    }
}
