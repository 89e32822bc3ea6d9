//! Machine code that a run has read: contexts and processes that load the same file share it.
//!
//! A library such as NCCL is loaded by every process for every GPU. Its code is unpacked and read once; a module of it
//! adds addresses of its own.

use lockstep_frontend::sass::{self, Cubin, Error, fatbinary::Packed};
use lockstep_isa::{Module, module::Global};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Files that modules of the run are linked from.
#[derive(Debug, Default)]
pub struct SharedImages(Mutex<Vec<Known>>);

#[derive(Debug)]
struct Known {
    /// Of the file as it is packed.
    digest: blake3::Hash,
    cubin: Weak<Cubin>,
    unknown: Unknown,
}

/// Why its machine code cannot run, once somebody asked.
type Unknown = Arc<OnceLock<Option<String>>>;

/// Machine code that others may share.
#[derive(Debug)]
pub struct SharedImage {
    image: sass::Image,
    unknown: Unknown,
}

impl SharedImages {
    /// Reads an image, if no module is there that was linked from the same.
    ///
    /// # Errors
    /// If it is broken or for an architecture without a decoder.
    pub fn read(&self, packed: &Packed<'_>) -> Result<SharedImage, Error> {
        let digest = blake3::hash(packed.payload);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|one| one.cubin.strong_count() > 0);
        let found = known.iter().find(|one| one.digest == digest);
        if let Some((cubin, unknown)) =
            found.and_then(|one| Some((one.cubin.upgrade()?, &one.unknown)))
        {
            return Ok(SharedImage {
                image: sass::Image::again(cubin)?,
                unknown: unknown.clone(),
            });
        }
        let image = SharedImage::new(sass::Image::read(&packed.unpack()?)?);
        known.push(Known {
            digest,
            cubin: Arc::downgrade(image.image.cubin()),
            unknown: image.unknown.clone(),
        });
        Ok(image)
    }
}

impl SharedImage {
    /// An image that nobody has but its modules.
    pub fn new(image: sass::Image) -> Self {
        Self {
            image,
            unknown: Unknown::default(),
        }
    }

    /// Variables that need an address.
    pub fn globals(&self) -> &[Global] {
        self.image.globals()
    }

    /// Why its machine code cannot all run, if it cannot. Looked for once for all who share it.
    pub fn unknown(&self, addresses: &[u64]) -> Option<&String> {
        let unknown = self.unknown.get_or_init(|| {
            let found = self.image.unknown_encoding(addresses);
            found.unwrap_or_else(|error| Some(error.to_string()))
        });
        unknown.as_ref()
    }

    /// A module with its variables at these addresses.
    ///
    /// # Errors
    /// As [`sass::Image::link`].
    pub fn link(&self, addresses: &[u64]) -> Result<Module, Error> {
        self.image.link(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_frontend::sass::fatbinary::Kind;

    const CUBIN: &[u8] = include_bytes!("../../gpu/tests/sass/mix.sm_90.cubin");

    #[test]
    fn what_is_loaded_twice_is_read_once() {
        let images = SharedImages::default();
        let packed = Packed::plain(Kind::Cubin, 90, CUBIN);
        let first = images.read(&packed).expect("a cubin");
        let module = first.link(&[]).expect("no variables");
        let second = images.read(&packed).expect("a cubin");
        assert!(Arc::ptr_eq(first.image.cubin(), second.image.cubin()));
        let _ = first.unknown(&[]);
        assert!(second.unknown.get().is_some());
        // The module alone keeps the file.
        let file = Arc::downgrade(second.image.cubin());
        drop((first, second));
        assert!(file.upgrade().is_some());
        drop(module);
        assert!(file.upgrade().is_none());
    }
}
