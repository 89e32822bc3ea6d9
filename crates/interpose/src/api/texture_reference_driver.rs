//! Texture references in the driver's words: found in a module, described field by field, bound when an address or an
//! array is set.

use super::array_format::Format;
use super::module;
use super::texture::{aligned, bind};
use super::texture_format::{DriverTexture, Resource};
use crate::boundary::driver;
use crate::call::ask;
use crate::context::current;
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::types::{Address, In, Out, Text};
use lockstep_protocol::{ContextHandle, CuResult, ModuleHandle, Request};
use std::collections::BTreeMap;

/// What is known of a reference.
#[derive(Clone, Copy)]
struct Reference {
    context: ContextHandle,
    /// Its index among the textures of the context.
    index: u32,
    format: Format,
    texture: DriverTexture,
    resource: Option<Resource>,
}

/// One 32-bit float, as a reference that nobody described has.
const ONE_FLOAT: Format = Format {
    bits: [32, 0, 0, 0],
    kind: 2,
};

/// Addresses, numbered in the order in which they were asked for.
struct References {
    known: Vec<Reference>,
    numbers: BTreeMap<(ModuleHandle, String), u64>,
}

static REFERENCES: FairMutex<References> = FairMutex::new(References {
    known: Vec::new(),
    numbers: BTreeMap::new(),
});

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ArrayDescriptor {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

fn place(handle: Address) -> Result<usize, CuResult> {
    let number = opaque::decode(Kind::TextureReference, handle);
    Ok(number.ok_or(CuResult::INVALID_HANDLE)? as usize)
}

fn get(handle: Address) -> Result<Reference, CuResult> {
    let place = place(handle)?;
    let references = lock(&REFERENCES);
    let found = references.known.get(place).copied();
    found.ok_or(CuResult::INVALID_HANDLE)
}

/// Changes a reference. What it is bound to, if anything, is bound anew as it is described now.
fn change(handle: Address, change: impl FnOnce(&mut Reference)) -> Result<(), CuResult> {
    let mut reference = get(handle)?;
    change(&mut reference);
    if let Some(resource) = reference.resource {
        let bound = Some((resource, &reference.texture));
        bind(reference.context, reference.index, bound)?;
    }
    let place = place(handle)?;
    lock(&REFERENCES).known[place] = reference;
    Ok(())
}

/// The reference of this name in a module, always as the same handle.
fn of_module(module: ModuleHandle, name: String) -> Result<Address, CuResult> {
    let request = Request::ModuleTexture {
        module,
        name: name.clone(),
    };
    let index = ask!(Value, &request) as u32;
    let context = current()?;
    let mut references = lock(&REFERENCES);
    let next = references.known.len() as u64;
    let number = *references.numbers.entry((module, name)).or_insert(next);
    if number == next {
        references.known.push(Reference {
            context,
            index,
            format: ONE_FLOAT,
            texture: DriverTexture::UNSET,
            resource: None,
        });
    }
    Ok(opaque::encode(Kind::TextureReference, number))
}

driver! {
    fn cuModuleGetTexRef(reference: Out<Address>, module: Address, name: Text) {
        reference.check()?;
        current()?;
        reference.set(of_module(module::decode(module)?, name.get()?)?)
    }

    fn cuTexRefSetFormat(reference: Address, format: u32, channels: i32) {
        let format = Format::of_driver(format, channels as u32)?;
        change(reference, |reference| {
            reference.format = format;
            if let Some(Resource::Linear { format: bound, .. } | Resource::Pitch { format: bound, .. }) = &mut reference.resource {
                *bound = format;
            }
        })
    }

    fn cuTexRefSetAddress_v2(offset: Out<usize>, reference: Address, address: Address, bytes: usize) {
        let (base, behind) = aligned(address);
        if behind != 0 {
            offset.check()?;
        }
        offset.set_if_wanted(behind);
        change(reference, |reference| {
            let format = reference.format;
            reference.resource = Some(Resource::Linear { address: base, format, bytes: bytes + behind });
        })
    }

    fn cuTexRefSetAddress2D_v3(reference: Address, descriptor: In<ArrayDescriptor>, address: Address, pitch: usize) {
        let ArrayDescriptor { width, height, format, channels } = descriptor.get()?;
        let format = Format::of_driver(format, channels)?;
        change(reference, |reference| {
            reference.format = format;
            reference.resource = Some(Resource::Pitch { address, format, width, height, pitch });
        })
    }

    fn cuTexRefSetArray(reference: Address, array: Address, _flags: u32) {
        change(reference, |reference| reference.resource = Some(Resource::Array(array)))
    }

    fn cuTexRefSetMipmappedArray(reference: Address, array: Address, _flags: u32) {
        change(reference, |reference| reference.resource = Some(Resource::Mipmapped(array)))
    }

    fn cuTexRefSetAddressMode(reference: Address, dimension: i32, mode: u32) {
        let dimension = usize::try_from(dimension).ok().filter(|dimension| *dimension < 3);
        let dimension = dimension.ok_or(CuResult::INVALID_VALUE)?;
        change(reference, |reference| reference.texture.address[dimension] = mode)
    }

    fn cuTexRefSetFilterMode(reference: Address, mode: u32) {
        change(reference, |reference| reference.texture.filter = mode)
    }

    fn cuTexRefSetFlags(reference: Address, flags: u32) {
        change(reference, |reference| reference.texture.flags = flags)
    }

    fn cuTexRefSetMipmapFilterMode(reference: Address, mode: u32) {
        change(reference, |reference| reference.texture.mip_filter = mode)
    }

    fn cuTexRefSetMipmapLevelBias(reference: Address, bias: f32) {
        change(reference, |reference| reference.texture.bias = bias)
    }

    fn cuTexRefSetMipmapLevelClamp(reference: Address, lowest: f32, highest: f32) {
        change(reference, |reference| (reference.texture.lowest, reference.texture.highest) = (lowest, highest))
    }

    fn cuTexRefSetMaxAnisotropy(reference: Address, most: u32) {
        change(reference, |reference| reference.texture.anisotropy = most)
    }

    fn cuTexRefSetBorderColor(reference: Address, colour: In<[f32; 4]>) {
        let colour = colour.get()?;
        change(reference, |reference| reference.texture.border = colour)
    }

    fn cuTexRefGetAddress_v2(address: Out<Address>, reference: Address) {
        match get(reference)?.resource {
            Some(Resource::Linear { address: bound, .. } | Resource::Pitch { address: bound, .. }) => address.set(bound),
            _ => Err(CuResult::INVALID_VALUE),
        }
    }

    fn cuTexRefGetArray(array: Out<Address>, reference: Address) {
        match get(reference)?.resource {
            Some(Resource::Array(bound)) => array.set(bound),
            _ => Err(CuResult::INVALID_VALUE),
        }
    }

    fn cuTexRefGetAddressMode(mode: Out<u32>, reference: Address, dimension: i32) {
        let modes = get(reference)?.texture.address;
        let found = usize::try_from(dimension).ok().and_then(|dimension| modes.get(dimension));
        mode.set(*found.ok_or(CuResult::INVALID_VALUE)?)
    }

    fn cuTexRefGetFilterMode(mode: Out<u32>, reference: Address) {
        mode.set(get(reference)?.texture.filter)
    }

    fn cuTexRefGetFlags(flags: Out<u32>, reference: Address) {
        flags.set(get(reference)?.texture.flags)
    }

    fn cuTexRefGetFormat(format: Out<u32>, channels: Out<i32>, reference: Address) {
        let (number, count) = get(reference)?.format.driver();
        format.set_if_wanted(number);
        channels.set_if_wanted(count as i32);
        Ok(())
    }
}
