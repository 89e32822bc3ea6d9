//! Bytes in, programs out: PTX and SASS.
//!
//! [`load`] looks at the bytes, chooses among the images of a fat binary, and hands back an
//! [`Image`]: code whose variables have no addresses yet. [`Image::link`] makes the [`Module`]
//! that the simulated GPU runs.

pub mod ptx;
pub mod sass;

use lockstep_isa::{Module, module::Global};
use sass::fatbinary::Packed;
use thiserror::Error;

/// Code before its variables have addresses.
pub trait Image: Send {
    /// Variables that need an address.
    fn globals(&self) -> &[Global];

    /// Makes a module, given the address of each of [`Image::globals`] in their order.
    ///
    /// # Errors
    /// If the code cannot run, with the place and the reason.
    fn link(&self, addresses: &[u64]) -> Result<Module, Error>;
}

/// Why bytes could not become a program.
#[derive(Debug, Error)]
pub enum Error {
    /// PTX that is wrong, or asks for what we lack.
    #[error(transparent)]
    Ptx(#[from] ptx::Error),
    /// A fat binary or cubin that is wrong, or asks for what we lack.
    #[error(transparent)]
    Sass(#[from] sass::Error),
    /// Bytes of no kind that we know.
    #[error("neither PTX, nor a cubin, nor a fat binary: it begins with {found}")]
    Unknown {
        /// The first bytes.
        found: String,
    },
    /// A program without an image that fits.
    #[error("no {wanted} for compute capability {architecture}; the program carries {found}")]
    NoImage {
        /// What was looked for.
        wanted: &'static str,
        /// The simulated GPU's.
        architecture: u32,
        /// What is there instead.
        found: String,
    },
}

impl Image for ptx::Image {
    fn globals(&self) -> &[Global] {
        self.globals()
    }

    fn link(&self, addresses: &[u64]) -> Result<Module, Error> {
        Ok(self.link(addresses)?)
    }
}

impl Image for sass::Image {
    fn globals(&self) -> &[Global] {
        self.globals()
    }

    fn link(&self, addresses: &[u64]) -> Result<Module, Error> {
        Ok(self.link(addresses)?)
    }
}

/// Which instructions to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// SASS for the simulated architecture if the program carries it, else PTX.
    #[default]
    Auto,
    /// SASS only.
    Sass,
    /// PTX only.
    Ptx,
}

/// How an image is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which instructions to run.
    pub choice: Choice,
    /// Compute capability × 10 of the simulated GPU, e.g. 90.
    pub architecture: u32,
    /// Refuse images that the real driver would refuse.
    pub strict: bool,
}

/// An image, and what the user should know about the choice.
pub struct Loaded {
    /// The code.
    pub image: Box<dyn Image>,
    /// Sentences.
    pub warnings: Vec<String>,
}

/// Looks at the bytes of a PTX text, a cubin or a fat binary and reads what fits.
///
/// # Errors
/// If the bytes are of no known kind, malformed, or hold no image that fits.
pub fn load(bytes: &[u8], options: &Options) -> Result<Loaded, Error> {
    if sass::fatbinary::is_fatbinary(bytes) {
        let entries = sass::fatbinary::list(bytes)?;
        return load_best(&entries, options);
    }
    if sass::cubin::is_elf(bytes) {
        return Ok(Loaded {
            image: Box::new(sass::Image::read(bytes)?),
            warnings: Vec::new(),
        });
    }
    match ptx_text(bytes) {
        Some(text) => Ok(Loaded {
            image: Box::new(ptx::parse(text)?.for_gpu(options.architecture)),
            warnings: Vec::new(),
        }),
        None => Err(Error::Unknown {
            found: format!("{:02x?}", &bytes[..bytes.len().min(8)]),
        }),
    }
}

fn load_best(entries: &[Packed<'_>], options: &Options) -> Result<Loaded, Error> {
    let architecture = options.architecture;
    if options.choice != Choice::Ptx
        && let Some(entry) = sass::select::cubin(entries, architecture)
    {
        return load(&entry.unpack()?, options);
    }
    if options.choice != Choice::Sass
        && let Some((entry, newer)) = sass::select::ptx(entries, architecture)
        && !(newer && options.strict)
    {
        let mut loaded = load(&entry.unpack()?, options)?;
        if newer {
            loaded.warnings.push(format!(
                "the program's PTX is for compute capability {}, which a driver would refuse on {architecture}; it runs as far as it uses nothing newer",
                entry.architecture
            ));
        }
        return Ok(loaded);
    }
    let describe = |entry: &Packed<'_>| match entry.kind {
        sass::fatbinary::Kind::Ptx => format!("PTX for {}", entry.architecture),
        sass::fatbinary::Kind::Cubin => format!("SASS for {}", entry.architecture),
        sass::fatbinary::Kind::Other(kind) => format!("an image of kind {kind}"),
    };
    let found: Vec<String> = entries.iter().map(describe).collect();
    Err(Error::NoImage {
        wanted: match options.choice {
            Choice::Auto => "image",
            Choice::Sass => "SASS",
            Choice::Ptx => "PTX",
        },
        architecture,
        found: if found.is_empty() {
            "nothing".to_owned()
        } else {
            found.join(", ")
        },
    })
}

/// The text, if the bytes are PTX: a directive comes first after comments. A final zero byte, as
/// programs embed it, is left out.
fn ptx_text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let text = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()?;
    let mut rest = text.trim_start();
    loop {
        let after = if let Some(comment) = rest.strip_prefix("//") {
            comment.split_once('\n')
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/")
        } else {
            return rest.starts_with('.').then_some(text);
        };
        rest = after.map_or("", |(_, after)| after).trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        choice: Choice::Auto,
        architecture: 90,
        strict: false,
    };

    #[test]
    fn text_is_known_by_its_first_directive() {
        let text = b"// a comment\n/* another */ .version 8.0\n.target sm_80\n.address_size 64\n\0";
        assert!(load(text, &OPTIONS).is_ok());
        let message = load(b"MZ what", &OPTIONS)
            .err()
            .map(|error| error.to_string());
        assert!(
            message.is_some_and(|m| m.starts_with("neither PTX, nor a cubin, nor a fat binary"))
        );
    }

    #[test]
    fn a_missing_image_is_named() {
        let entries = [Packed::plain(sass::fatbinary::Kind::Cubin, 75, &[])];
        let message = load_best(&entries, &OPTIONS)
            .err()
            .map(|error| error.to_string());
        assert_eq!(
            message.as_deref(),
            Some("no image for compute capability 90; the program carries SASS for 75")
        );
    }
}
