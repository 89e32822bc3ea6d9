//! The GPU file that an import writes.

use std::collections::BTreeMap;
use std::fmt::Write;

/// One value of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// The whole key.
    pub key: String,
    /// Its value, as `--set` takes it.
    pub value: String,
    /// What stands behind it.
    pub source: String,
}

impl Setting {
    /// A value without a source.
    pub fn new(key: &str, value: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            source: String::new(),
        }
    }

    /// As `--set` takes it.
    pub fn line(&self) -> String {
        format!("{}={}", self.key, self.value)
    }
}

/// A file above `base`, in sections.
pub(super) fn file(path: &str, base: &str, settings: &[Setting]) -> String {
    let mut text = format!("# Imported from {}\nbase = \"{base}\"\n", plain(path));
    let mut sections: BTreeMap<&str, Vec<(&str, &Setting)>> = BTreeMap::new();
    for setting in settings {
        if let Some((section, key)) = setting.key.rsplit_once('.') {
            sections.entry(section).or_default().push((key, setting));
        }
    }
    for (section, keys) in sections {
        let _ = write!(text, "\n[{section}]\n");
        for (key, Setting { value, source, .. }) in keys {
            let bare = value.parse::<u64>().is_ok()
                || value.starts_with('[')
                || value == "true"
                || value == "false";
            let _ = match bare {
                true => write!(text, "{key} = {value}"),
                false => write!(text, "{key} = \"{value}\""),
            };
            if !source.is_empty() {
                let _ = write!(text, "  # {}", plain(source));
            }
            text.push('\n');
        }
    }
    text
}

/// Text that stays in its line.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}
