//! Texture and surface objects.
//!
//! The simulator keeps them and numbers them; what they were made of is remembered here, for programs that ask.

use super::array;
use super::array_format::Format;
use super::texture_format::{
    DriverResource, DriverTexture, Resource, RuntimeResource, RuntimeTexture, View,
};
use crate::boundary::{RuntimeError, driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime};
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::types::{Address, In, Out};
use lockstep_protocol::{
    ChannelKind, ContextHandle, CuResult, Request, TexelFormat, TextureLevel, TextureObject,
    TextureShape,
};
use std::collections::BTreeMap;

/// Addresses of linear and pitched textures are multiples of this.
const ALIGNMENT: usize = 512;
/// Pitches are multiples of this.
const PITCH_ALIGNMENT: usize = 32;
/// Texels of a linear texture.
const MOST_LINEAR: usize = 1 << 28;
/// Texels along an edge of a pitched texture.
const MOST_PITCHED: [usize; 2] = [131_072, 65_000];

/// What an object was made of.
#[derive(Clone, Copy)]
struct Made {
    context: ContextHandle,
    resource: Resource,
    /// Nothing for a surface.
    texture: Option<DriverTexture>,
    view: Option<View>,
}

static OBJECTS: FairMutex<BTreeMap<u64, Made>> = FairMutex::new(BTreeMap::new());

fn texel_format(format: Format) -> Result<TexelFormat, CuResult> {
    format.bytes()?;
    let channels = format.bits.iter().filter(|bits| **bits != 0).count();
    Ok(TexelFormat {
        bits: format.bits[0] as u8,
        channels: channels as u8,
        kind: match format.kind {
            0 => ChannelKind::Signed,
            1 => ChannelKind::Unsigned,
            _ => ChannelKind::Float,
        },
    })
}

/// Where the texels of a resource lie, and what they are made of.
fn levels(resource: Resource) -> Result<(TextureShape, Format, Vec<TextureLevel>), CuResult> {
    let shape = TextureShape {
        dimensions: 1,
        layered: false,
        cube: false,
        linear: true,
    };
    let invalid = CuResult::INVALID_VALUE;
    match resource {
        Resource::Array(handle) => array::levels_of(handle, false),
        Resource::Mipmapped(handle) => array::levels_of(handle, true),
        Resource::Linear {
            address,
            format,
            bytes,
        } => {
            let width = bytes / format.bytes()?;
            if address == 0 || !address.is_multiple_of(ALIGNMENT) || width > MOST_LINEAR {
                return Err(invalid);
            }
            let level = TextureLevel {
                address: address as u64,
                width: width.max(1) as u32,
                height: 1,
                depth: 1,
                row_pitch: bytes as u64,
                slice_pitch: bytes as u64,
            };
            Ok((shape, format, vec![level]))
        }
        Resource::Pitch {
            address,
            format,
            width,
            height,
            pitch,
        } => {
            let aligned =
                address.is_multiple_of(ALIGNMENT) && pitch.is_multiple_of(PITCH_ALIGNMENT);
            let sized =
                (1..=MOST_PITCHED[0]).contains(&width) && (1..=MOST_PITCHED[1]).contains(&height);
            format.bytes()?;
            if address == 0 || !aligned || !sized {
                return Err(invalid);
            }
            let level = TextureLevel {
                address: address as u64,
                width: width as u32,
                height: height as u32,
                depth: 1,
                row_pitch: pitch as u64,
                slice_pitch: (pitch * height) as u64,
            };
            let shape = TextureShape {
                dimensions: 2,
                linear: false,
                ..shape
            };
            Ok((shape, format, vec![level]))
        }
    }
}

/// Takes the part of a resource that a view shows.
fn look(view: &View, format: &mut Format, levels: &mut Vec<TextureLevel>) -> Result<(), CuResult> {
    let Some(texels) = view.texels()? else {
        return Ok(());
    };
    let invalid = CuResult::INVALID_VALUE;
    let largest = levels[0];
    let same = texels.bytes()? == format.bytes()?
        && view.width == largest.width as usize
        && view.height.max(1) == largest.height as usize;
    if !same {
        return Err(invalid);
    }
    *format = texels;
    let last = (view.last_level as usize).min(levels.len() - 1);
    let first = view.first_level as usize;
    if first > last {
        return Err(invalid);
    }
    *levels = levels[first..=last].to_vec();
    if view.first_layer > 0 || view.last_layer > 0 {
        if view.first_layer > view.last_layer || view.last_layer >= largest.depth {
            return Err(invalid);
        }
        for level in levels {
            level.address += u64::from(view.first_layer) * level.slice_pitch;
            level.depth = view.last_layer - view.first_layer + 1;
        }
    }
    Ok(())
}

/// The object that the simulator is told of.
fn object(
    resource: Resource,
    texture: Option<&DriverTexture>,
    view: Option<&View>,
) -> Result<TextureObject, CuResult> {
    let (shape, mut format, mut levels) = levels(resource)?;
    if let Some(view) = view {
        look(view, &mut format, &mut levels)?;
    }
    let sampler = match texture {
        Some(texture) => Some(texture.sampler(format)?),
        None => None,
    };
    Ok(TextureObject {
        shape,
        format: texel_format(format)?,
        levels,
        sampler,
    })
}

/// Binds a texture reference to what a texture object would be made of, or to nothing.
pub fn bind(
    context: ContextHandle,
    reference: u32,
    bound: Option<(Resource, &DriverTexture)>,
) -> Result<(), CuResult> {
    let object = match bound {
        Some((resource, texture)) => Some(Box::new(object(resource, Some(texture), None)?)),
        None => None,
    };
    done(&Request::TextureBind(context, reference, object))
}

/// An address split into one that a texture may have, and how far behind it the texels begin.
pub fn aligned(address: Address) -> (Address, usize) {
    let offset = address % ALIGNMENT;
    (address - offset, offset)
}

fn create(context: ContextHandle, made: Made) -> Result<u64, CuResult> {
    let object = object(made.resource, made.texture.as_ref(), made.view.as_ref())?;
    let request = Request::TextureCreate(context, Box::new(object));
    let handle = crate::call::ask!(Value, &request);
    lock(&OBJECTS).insert(handle, made);
    Ok(handle)
}

fn destroy(handle: u64) -> Result<(), CuResult> {
    // As a driver does, what is unknown is destroyed without a word.
    let Some(made) = lock(&OBJECTS).remove(&handle) else {
        return Ok(());
    };
    done(&Request::TextureDestroy(made.context, handle as u32))
}

fn find(handle: u64) -> Result<Made, CuResult> {
    let found = lock(&OBJECTS).get(&handle).copied();
    found.ok_or(CuResult::INVALID_VALUE)
}

fn texture_of(handle: u64) -> Result<DriverTexture, CuResult> {
    find(handle)?.texture.ok_or(CuResult::INVALID_VALUE)
}

fn view_of(handle: u64) -> Result<View, CuResult> {
    Ok(find(handle)?.view.unwrap_or(View::NONE))
}

/// A texture, as either API describes it.
fn texture(
    context: ContextHandle,
    resource: Resource,
    texture: DriverTexture,
    view: In<View>,
) -> Result<u64, CuResult> {
    let view = if view.is_null() {
        None
    } else {
        Some(view.get()?)
    };
    create(
        context,
        Made {
            context,
            resource,
            texture: Some(texture),
            view,
        },
    )
}

/// A surface: of an array only, whatever it was made for.
fn surface(context: ContextHandle, resource: Resource) -> Result<u64, CuResult> {
    let Resource::Array(_) = resource else {
        return Err(CuResult::INVALID_VALUE);
    };
    create(
        context,
        Made {
            context,
            resource,
            texture: None,
            view: None,
        },
    )
}

/// The runtime has a code of its own for texels that nothing has.
fn check_channels(resource: Resource) -> Result<(), RuntimeError> {
    match resource {
        Resource::Linear { format, .. } | Resource::Pitch { format, .. }
            if format.bytes().is_err() =>
        {
            Err(RuntimeError::INVALID_CHANNEL_DESCRIPTOR)
        }
        _ => Ok(()),
    }
}

/// What the runtime refuses before the driver sees it.
pub fn checked(
    resource: Resource,
    description: &RuntimeTexture,
) -> Result<DriverTexture, RuntimeError> {
    let texture = DriverTexture::of_runtime(description);
    check_channels(resource)?;
    let (_, format, _) = levels(resource)?;
    let as_floats = format.kind == 2 || (texture.normalized_read() && format.bits[0] < 32);
    if texture.normalized_read() && (format.kind == 2 || format.bits[0] == 32) {
        return Err(RuntimeError::INVALID_NORM_SETTING);
    }
    if description.is_filtered() && !as_floats {
        return Err(RuntimeError::INVALID_FILTER_SETTING);
    }
    Ok(texture)
}

runtime! {
    fn cudaCreateTextureObject(object: Out<u64>, resource: In<RuntimeResource>, description: In<RuntimeTexture>, view: In<View>) {
        object.check()?;
        let context = current_for_runtime()?;
        let resource = resource.get()?.parse()?;
        let description = checked(resource, &description.get()?)?;
        Ok(object.set(texture(context, resource, description, view)?)?)
    }

    fn cudaCreateTextureObject_v2(object: Out<u64>, resource: In<RuntimeResource>, description: In<RuntimeTexture>, view: In<View>) {
        object.check()?;
        let context = current_for_runtime()?;
        let resource = resource.get()?.parse()?;
        let description = checked(resource, &description.get()?)?;
        Ok(object.set(texture(context, resource, description, view)?)?)
    }

    fn cudaDestroyTextureObject(object: u64) {
        current_for_runtime()?;
        Ok(destroy(object)?)
    }

    fn cudaGetTextureObjectResourceDesc(resource: Out<RuntimeResource>, object: u64) {
        Ok(resource.set(RuntimeResource::of(find(object)?.resource))?)
    }

    fn cudaGetTextureObjectTextureDesc(description: Out<RuntimeTexture>, object: u64) {
        Ok(description.set(texture_of(object)?.runtime())?)
    }

    fn cudaGetTextureObjectTextureDesc_v2(description: Out<RuntimeTexture>, object: u64) {
        Ok(description.set(texture_of(object)?.runtime())?)
    }

    fn cudaGetTextureObjectResourceViewDesc(view: Out<View>, object: u64) {
        Ok(view.set(view_of(object)?)?)
    }

    fn cudaCreateSurfaceObject(object: Out<u64>, resource: In<RuntimeResource>) {
        object.check()?;
        let context = current_for_runtime()?;
        let resource = resource.get()?.parse()?;
        check_channels(resource)?;
        Ok(object.set(surface(context, resource)?)?)
    }

    fn cudaDestroySurfaceObject(object: u64) {
        current_for_runtime()?;
        Ok(destroy(object)?)
    }

    fn cudaGetSurfaceObjectResourceDesc(resource: Out<RuntimeResource>, object: u64) {
        Ok(resource.set(RuntimeResource::of(find(object)?.resource))?)
    }
}

driver! {
    fn cuTexObjectCreate(object: Out<u64>, resource: In<DriverResource>, description: In<DriverTexture>, view: In<View>) {
        object.check()?;
        let context = current()?;
        let resource = resource.get()?.parse()?;
        object.set(texture(context, resource, description.get()?, view)?)
    }

    fn cuTexObjectDestroy(object: u64) {
        current()?;
        destroy(object)
    }

    fn cuTexObjectGetResourceDesc(resource: Out<DriverResource>, object: u64) {
        resource.set(DriverResource::of(find(object)?.resource))
    }

    fn cuTexObjectGetTextureDesc(description: Out<DriverTexture>, object: u64) {
        description.set(texture_of(object)?)
    }

    fn cuTexObjectGetResourceViewDesc(view: Out<View>, object: u64) {
        view.set(view_of(object)?)
    }

    fn cuSurfObjectCreate(object: Out<u64>, resource: In<DriverResource>) {
        object.check()?;
        let context = current()?;
        object.set(surface(context, resource.get()?.parse()?)?)
    }

    fn cuSurfObjectDestroy(object: u64) {
        current()?;
        destroy(object)
    }

    fn cuSurfObjectGetResourceDesc(resource: Out<DriverResource>, object: u64) {
        resource.set(DriverResource::of(find(object)?.resource))
    }
}
