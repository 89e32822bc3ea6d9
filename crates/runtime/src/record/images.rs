//! Images that a record holds once, however often they are loaded: a library such as NCCL is loaded for every GPU by
//! every process.
//!
//! Writer and reader keep the same images, the first large ones up to a limit, and number them in their order.

use super::RecordError;
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
    /// It names an image that is not there, or has no such place.
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
        for (at, number) in again {
            let image = images.get_mut(at as usize).ok_or_else(nowhere)?;
            let known = usize::try_from(number).ok();
            let known = known.and_then(|known| self.images.get(known));
            image.bytes.clone_from(known.ok_or_else(nowhere)?);
        }
        Ok(())
    }
}

fn nowhere() -> RecordError {
    RecordError::Malformed("it loads an image again that no earlier call has".into())
}
