//! Words of a command: as the file writes them, and as a shell reads them.

use toml::Value;

/// Words as a shell would read them back.
pub fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted_word(word)).collect();
    words.join(" ")
}

/// A word in single quotes, unless it needs none.
pub(crate) fn quoted_word(word: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./=,:+@%".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words that a value stands for: text is split at blanks, a list is taken word by word.
/// Nothing if it is neither.
pub(crate) fn words(value: &Value) -> Option<Vec<String>> {
    let words: Vec<String> = match value {
        Value::String(text) => text.split_whitespace().map(str::to_string).collect(),
        Value::Array(values) => values.iter().map(word).collect::<Option<_>>()?,
        other => vec![word(other)?],
    };
    // No system call takes such a word.
    (!words.iter().any(|word| word.contains('\0'))).then_some(words)
}

/// One word; nothing for tables and lists.
pub(crate) fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        let words = [
            "plain",
            "",
            "two words",
            "it's",
            "$HOME",
            "a\nb",
            "`x`",
            "--set",
            "*",
        ];
        let words = words.map(str::to_string);
        let script = format!(
            "for word in {}; do printf '%s\\0' \"$word\"; done",
            quoted(&words)
        );
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        let seen = String::from_utf8(output.stdout).unwrap();
        let seen: Vec<&str> = seen.split_terminator('\0').collect();
        assert_eq!(seen, words);
    }

    #[test]
    fn text_is_split_and_lists_are_not() {
        let read = |text: &str| {
            let table: toml::Table = format!("v = {text}").parse().unwrap();
            words(&table["v"])
        };
        assert_eq!(read("\"22  2\"").unwrap(), ["22", "2"]);
        assert_eq!(read("[\"two words\", 3]").unwrap(), ["two words", "3"]);
        assert_eq!(read("7").unwrap(), ["7"]);
        assert_eq!(read("[[1]]"), None);
        assert_eq!(read(r#""a\u0000b""#), None);
    }
}
