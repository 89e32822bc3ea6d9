//! Textures and surfaces of a context.

use crate::device::Device;
use crate::{CallResult, Runtime, fail};
use lockstep_isa::module::{Global, GlobalKind};
use lockstep_protocol::{ContextHandle, CuResult, Reply, TextureLevel, TextureObject};
use std::sync::Arc;

/// Most levels of a mipmap.
const MOST_LEVELS: usize = 32;
/// Texels along an edge are below this.
const EDGE_END: u32 = 1 << 29;
/// Addresses are below this.
const ADDRESS_END: u64 = 1 << 48;
/// Bytes from slice to slice are below this.
const PITCH_END: u64 = 1 << 40;

impl<D: Device> Runtime<D> {
    pub(super) fn texture_create(
        &mut self,
        context: ContextHandle,
        object: &TextureObject,
    ) -> CallResult<Reply> {
        if let Err(what) = check(object) {
            return fail(CuResult::INVALID_VALUE, format!("a texture with {what}"));
        }
        let textures = Arc::make_mut(&mut self.context_mut(context)?.textures);
        match textures.insert(object.clone()) {
            Some(handle) => Ok(Reply::Value(handle.into())),
            None => fail(
                CuResult::OUT_OF_MEMORY,
                "no more textures and surfaces can be made",
            ),
        }
    }

    pub(super) fn texture_destroy(
        &mut self,
        context: ContextHandle,
        handle: u32,
    ) -> CallResult<Reply> {
        let textures = Arc::make_mut(&mut self.context_mut(context)?.textures);
        if textures.remove(handle) {
            return Ok(Reply::Done);
        }
        fail(
            CuResult::INVALID_VALUE,
            format!("{handle:#x} is no texture or surface"),
        )
    }
}

impl<D: Device> Runtime<D> {
    /// Binds a texture reference. Launches take the table as it is, so those that were made before keep theirs.
    pub(super) fn texture_bind(
        &mut self,
        context: ContextHandle,
        reference: u32,
        object: Option<&TextureObject>,
    ) -> CallResult<Reply> {
        if let Some(Err(what)) = object.map(check) {
            return fail(CuResult::INVALID_VALUE, format!("a texture with {what}"));
        }
        let textures = Arc::make_mut(&mut self.context_mut(context)?.textures);
        if textures.bind(reference, object.cloned()) {
            return Ok(Reply::Done);
        }
        fail(
            CuResult::INVALID_VALUE,
            format!("{reference:#x} is no texture reference"),
        )
    }

    /// Gives each texture reference among the variables of a module an index, which stands for its address.
    pub(super) fn reserve_textures(
        &mut self,
        context: ContextHandle,
        globals: &[Global],
        addresses: &mut [u64],
    ) -> CallResult<Vec<(String, u32)>> {
        let mut references = Vec::new();
        let named = globals.iter().zip(addresses);
        for (global, address) in named.filter(|(global, _)| global.kind == GlobalKind::Texture) {
            let textures = Arc::make_mut(&mut self.context_mut(context)?.textures);
            let Some(index) = textures.reserve() else {
                self.release_textures(context, &references);
                return fail(
                    CuResult::OUT_OF_MEMORY,
                    "no more textures and surfaces can be made",
                );
            };
            *address = index.into();
            references.push((global.name.clone(), index));
        }
        Ok(references)
    }

    /// Takes the indices of texture references back.
    pub(super) fn release_textures(
        &mut self,
        context: ContextHandle,
        references: &[(String, u32)],
    ) {
        // The context may be gone, and its table with it.
        if let Ok(context) = self.context_mut(context) {
            let textures = Arc::make_mut(&mut context.textures);
            for (_, index) in references {
                textures.release(*index);
            }
        }
    }
}

/// What the texture unit relies on.
fn check(object: &TextureObject) -> Result<(), &'static str> {
    let shape = object.shape;
    let format = object.format;
    if !(1..=3).contains(&shape.dimensions) {
        return Err("dimensions that no texture has");
    }
    if !matches!(format.bits, 8 | 16 | 32) || !matches!(format.channels, 1 | 2 | 4) {
        return Err("channels that no texel has");
    }
    if object.levels.is_empty() || object.levels.len() > MOST_LEVELS {
        return Err("a number of levels that no mipmap has");
    }
    let sized = |level: &TextureLevel| {
        let edges = [level.width, level.height, level.depth];
        edges.iter().all(|edge| (1..EDGE_END).contains(edge))
            && level.address < ADDRESS_END
            && level.row_pitch < PITCH_END
            && level.slice_pitch < PITCH_END
    };
    if !object.levels.iter().all(sized) {
        return Err("a level of no size, or too large");
    }
    // A texel lies in one sector.
    let texel = u64::from(format.bytes());
    let aligned = |level: &TextureLevel| {
        let places = [level.address, level.row_pitch, level.slice_pitch];
        places.iter().all(|place| place.is_multiple_of(texel))
    };
    if !shape.linear && !object.levels.iter().all(aligned) {
        return Err("texels that lie across each other");
    }
    if shape.linear && !object.levels[0].address.is_multiple_of(texel) {
        return Err("texels that lie across each other");
    }
    Ok(())
}
