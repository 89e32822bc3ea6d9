//! What objects say of themselves.

use lockstep_units::{ChannelKind, TexelFormat, TextureObject};

use super::Query;

/// Number of a channel's type, as OpenCL has it: the smallest and by bits and kind.
fn channel_type(format: TexelFormat, normalized: bool) -> u32 {
    let by_size = format.bits.trailing_zeros() - 3;
    match (format.kind, normalized) {
        (ChannelKind::Float, _) => 0x10dc + by_size,
        (ChannelKind::Signed, true) => 0x10d0 + by_size,
        (ChannelKind::Unsigned, true) => 0x10d2 + by_size,
        (ChannelKind::Signed, false) => 0x10d7 + by_size,
        (ChannelKind::Unsigned, false) => 0x10da + by_size,
    }
}

/// Number of the order of channels.
fn channel_order(format: TexelFormat) -> u32 {
    match format.channels {
        1 => 0x10b0,
        2 => 0x10b2,
        _ => 0x10b5,
    }
}

/// The four words that a query answers; PTX takes the first.
#[must_use]
pub fn query(object: &TextureObject, query: Query, level: u32) -> [u32; 4] {
    let last = object.levels.len() as u32 - 1;
    let at = &object.levels[level.min(last) as usize];
    let sampler = object.sampler.as_ref();
    let normalized = sampler.is_some_and(|sampler| sampler.normalized_read);
    let layers = match (object.shape.layered, object.shape.cube) {
        (true, true) => at.depth / 6,
        (true, false) => at.depth,
        (false, _) => 1,
    };
    let depth = match (object.shape.layered, object.shape.dimensions) {
        (true, _) => layers,
        (false, 3) => at.depth,
        _ => 1,
    };
    let one = |word| [word, 0, 0, 0];
    match query {
        Query::Width => one(at.width),
        Query::Height => one(at.height),
        Query::Depth => one(depth),
        Query::ChannelType => one(channel_type(object.format, normalized)),
        Query::ChannelOrder => one(channel_order(object.format)),
        Query::NormalizedCoordinates => {
            one(u32::from(sampler.is_some_and(|s| s.normalized_coordinates)))
        }
        Query::Layers => one(layers),
        Query::Levels => one(last + 1),
        Query::Samples => one(1),
        Query::MemoryLayout => one(u32::from(!object.shape.linear)),
        Query::Dimensions => [at.width, at.height, depth, last + 1],
        Query::Kind => one(u32::from(object.shape.dimensions)),
    }
}
