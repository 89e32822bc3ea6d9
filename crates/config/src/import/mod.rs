//! GPU files from the configurations of other simulators.
//!
//! Two kinds of files are known: sections of `key: value` lines, as SST-GPU has them
//! ([`sectioned`]), and options that begin with `-`, as GPGPU-Sim, Accel-Sim and UVMSmart have them
//! ([`gpgpusim`]). What they say becomes a layer above a GPU of the catalogue, every value with the
//! place it comes from; what has no counterpart is listed with what it would have changed.
//!
//! Start reading at [`import`].

mod cache;
mod caches;
mod chip;
mod dram;
mod file;
mod gpgpusim;
mod keys;
mod managed;
mod options;
mod pipes;
mod sectioned;
mod steps;
#[cfg(test)]
mod tests;

use crate::{CATALOGUE, ConfigError};

/// Files beyond this many bytes are no configurations.
const MAXIMUM_FILE: usize = 1 << 20;

/// The GPU below a sectioned configuration, unless another is named.
const BASE: &str = "v100";

/// What an import made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A GPU file.
    pub text: String,
    /// Keys that were not used, and why.
    pub unused: Vec<(String, String)>,
}

/// Makes a GPU file from configuration files of another simulator, given as name and text; later
/// ones lie above earlier ones. The file lies above the GPU `base`, or above the one of the
/// catalogue that is nearest.
///
/// # Errors
/// The place of what is no configuration, or of a value that is none.
pub fn import(files: &[(String, String)], base: Option<&str>) -> Result<Imported, ConfigError> {
    let malformed = |path: &str, message: String| ConfigError::Malformed {
        path: path.into(),
        message,
    };
    if let Some((path, text)) = files.iter().find(|(_, text)| text.len() > MAXIMUM_FILE) {
        let message = format!("{} bytes are too many for a configuration", text.len());
        return Err(malformed(path, message));
    }
    if files.iter().any(|(_, text)| options::has_options(text)) {
        return gpgpusim::import(files, base);
    }
    match files {
        [(path, text)] => sectioned::import(path, text, base.unwrap_or(BASE)),
        _ => {
            let (path, _) = files.first().cloned().unwrap_or_default();
            let message = "no line begins with an option such as `-gpgpu_n_clusters 80`; only files of options can be joined";
            Err(malformed(&path, message.into()))
        }
    }
}

/// The GPU of the catalogue with a compute capability, or the nearest below it.
fn nearest_gpu(architecture: u32) -> &'static str {
    let of = |name: &str| {
        let config = crate::load::<&str>(Some(name), &[]).ok()?;
        Some(config.device.compute_capability.architecture())
    };
    let known = CATALOGUE
        .iter()
        .filter_map(|entry| Some((of(entry.name)?, entry.name)));
    let known = known.filter(|(found, _)| *found <= architecture);
    // Of several with one capability, the last in the catalogue that is not another's variant.
    let plain = known.filter(|(_, name)| !name.contains('-'));
    plain
        .max_by_key(|(found, _)| *found)
        .map_or(BASE, |(_, name)| name)
}
