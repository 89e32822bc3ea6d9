//! Images that a record holds once, however often they are loaded: a library such as NCCL is loaded for every GPU by
//! every process.
//!
//! Writer and reader keep the same images, the first large ones up to a limit, and number them in their order.

use super::{MAXIMUM_ENTRY, RecordError};
use lockstep_protocol::{ContextHandle, ModuleImage, Request};
use std::collections::BTreeMap;

/// Images below this are written each time.
const LARGE: usize = 1 << 14;
/// Bytes of images that are kept, in all.
const MOST_KEPT: u64 = 1 << 30;

/// More images than any call has.
const MOST_IMAGES: usize = 1 << 16;

/// Whether an image is kept after so many bytes of others.
fn is_kept(image: &ModuleImage, before: u64) -> bool {
    image.bytes.len() >= LARGE && before + image.bytes.len() as u64 <= MOST_KEPT
}

/// An image of the next call that was in an earlier one: where it stands among the images of the call, and its number.
pub type Again = (u32, u64);

/// Images that were written.
#[derive(Default)]
pub struct Written {
    numbers: BTreeMap<[u8; 32], u64>,
    bytes: u64,
}

impl Written {
    /// A call without the images that were written before, and these; none if there are none.
    pub fn without_known(&mut self, request: &Request) -> Option<(Request, Vec<Again>)> {
        let Request::ModuleLoad { context, images } = request else {
            return None;
        };
        let known = |(at, image): (usize, &ModuleImage)| Some((at as u32, self.number(image)?));
        let again: Vec<Again> = images.iter().enumerate().filter_map(known).collect();
        (!again.is_empty()).then(|| (without(*context, images, &again), again))
    }

    /// The number of an image that was written before; one that was not is from now on.
    fn number(&mut self, image: &ModuleImage) -> Option<u64> {
        if image.bytes.len() < LARGE {
            return None;
        }
        let digest = *blake3::hash(&image.bytes).as_bytes();
        let known = self.numbers.get(&digest).copied();
        if known.is_none() && is_kept(image, self.bytes) {
            self.bytes += image.bytes.len() as u64;
            self.numbers.insert(digest, self.numbers.len() as u64);
        }
        known
    }
}

fn without(context: ContextHandle, images: &[ModuleImage], again: &[Again]) -> Request {
    let image = |(at, image): (usize, &ModuleImage)| {
        let known = again.iter().any(|(known, _)| *known as usize == at);
        match known {
            true => ModuleImage {
                bytes: Vec::new(),
                ..*image
            },
            false => image.clone(),
        }
    };
    Request::ModuleLoad {
        context,
        images: images.iter().enumerate().map(image).collect(),
    }
}

/// Images that were read.
#[derive(Default)]
pub struct Read {
    images: Vec<Vec<u8>>,
    bytes: u64,
    /// Those of the next call.
    again: Vec<Again>,
}

impl Read {
    /// An image of the next call was in an earlier one.
    ///
    /// # Errors
    /// No call has so many.
    pub fn comes_again(&mut self, again: Again) -> Result<(), RecordError> {
        self.again.push(again);
        match self.again.len() <= MOST_IMAGES {
            true => Ok(()),
            false => Err(nowhere()),
        }
    }

    /// Gives a call its images.
    ///
    /// # Errors
    /// It names an image that is not there, has no such place, or would be longer than any call.
    pub fn complete(&mut self, request: &mut Request) -> Result<(), RecordError> {
        let again = std::mem::take(&mut self.again);
        let images = match request {
            Request::ModuleLoad { images, .. } => images,
            _ if again.is_empty() => return Ok(()),
            _ => return Err(nowhere()),
        };
        for image in images.iter() {
            if is_kept(image, self.bytes) {
                self.bytes += image.bytes.len() as u64;
                self.images.push(image.bytes.clone());
            }
        }
        let known = |number: u64| {
            let number = usize::try_from(number).ok();
            number
                .and_then(|number| self.images.get(number))
                .ok_or_else(nowhere)
        };
        // A few bytes name a large image, so what a call may hold when written out is its limit here too.
        let mut bytes = 0;
        for (_, number) in &again {
            bytes += known(*number)?.len();
        }
        if bytes > MAXIMUM_ENTRY as usize {
            return Err(too_many());
        }
        for (at, number) in again {
            let image = images.get_mut(at as usize).ok_or_else(nowhere)?;
            image.bytes.clone_from(known(number)?);
        }
        Ok(())
    }
}

fn nowhere() -> RecordError {
    RecordError::Malformed("it loads an image again that no earlier call has".into())
}

fn too_many() -> RecordError {
    RecordError::Malformed(format!(
        "with the images that it loads again it has more than {MAXIMUM_ENTRY} bytes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_protocol::{ImageKind, ImageRole};

    #[test]
    fn a_call_of_many_large_images_is_refused_before_they_are_copied() {
        let mut read = Read::default();
        let image = |bytes: Vec<u8>| ModuleImage {
            kind: ImageKind::Cubin,
            role: ImageRole::Main,
            bytes,
        };
        let load = |images: Vec<ModuleImage>| Request::ModuleLoad {
            context: ContextHandle(1),
            images,
        };
        let large = 1 << 26;
        read.complete(&mut load(vec![image(vec![1; large])]))
            .unwrap();
        let most = MAXIMUM_ENTRY as usize / large;
        for at in 0..=most {
            read.comes_again((at as u32, 0)).unwrap();
        }
        let mut many = load(vec![image(Vec::new()); most + 1]);
        let refused = read.complete(&mut many).unwrap_err().to_string();
        assert!(refused.contains("more than"), "{refused}");
    }
}
