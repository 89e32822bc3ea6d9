//! What can be wrong with a configuration, and how it is said.

use thiserror::Error;

/// Why a configuration was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Text that is not TOML, or a value of the wrong kind.
    #[error("{path}: {message}")]
    Malformed {
        /// The file or layer.
        path: String,
        /// Line, column and what was expected.
        message: String,
    },
    /// A key that no section has.
    #[error("{path}: no key is called `{key}`{}", suggestion(.nearest))]
    UnknownKey {
        /// The file or layer.
        path: String,
        /// The whole key, with dots.
        key: String,
        /// The known key that is spelt most like it.
        nearest: Option<String>,
    },
    /// A key that nothing reads.
    #[error("{path}: `{key}` is refused: {because}")]
    Refused {
        /// The file or layer.
        path: String,
        /// The whole key, with dots.
        key: &'static str,
        /// Why, and what to do.
        because: &'static str,
    },
    /// A `--set` that is not `KEY=VALUE`.
    #[error("`--set {text}`: write KEY=VALUE, for example `--set l2.hit-latency=\"80 cycles\"`")]
    NotASetting {
        /// What was written.
        text: String,
    },
    /// Two settings are each fine and impossible together.
    #[error("`{key}` = {found}, but {because}")]
    Impossible {
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// The reason.
        because: String,
    },
    /// A policy name that no registry entry has.
    #[error("no {kind} is called `{name}`{}; known: {known}", suggestion(.nearest))]
    UnknownPolicy {
        /// What it would decide.
        kind: &'static str,
        /// What was asked for.
        name: String,
        /// The known name that is spelt most like it.
        nearest: Option<String>,
        /// The registry.
        known: String,
    },
    /// A GPU that is neither in the catalogue nor a file.
    #[error(
        "no GPU is called `{name}`{}; known: {known}; or give the path of a .toml file",
        suggestion(.nearest)
    )]
    UnknownGpu {
        /// What was asked for.
        name: String,
        /// The known name that is spelt most like it.
        nearest: Option<String>,
        /// The catalogue.
        known: String,
    },
}

impl ConfigError {
    /// A name that none of the `known` has.
    pub fn unknown_policy<'name>(
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = &'name str> + Clone,
    ) -> Self {
        Self::UnknownPolicy {
            kind,
            name: name.into(),
            nearest: crate::nearest(name, known.clone()),
            known: known.collect::<Vec<_>>().join(", "),
        }
    }

    /// An impossible value of `key`.
    pub fn impossible(key: &'static str, found: impl ToString, because: impl Into<String>) -> Self {
        Self::Impossible {
            key,
            found: found.to_string(),
            because: because.into(),
        }
    }
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|name| format!("; did you mean `{name}`?"))
        .unwrap_or_default()
}
