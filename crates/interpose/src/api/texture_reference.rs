//! Texture references of programs that CUDA 11 built: variables of type `texture<...>`, bound by name.
//!
//! A module gives each reference an index among the textures of its context; binding puts a texture there. What the
//! program sets in its variable counts when it binds.

use super::memory::pointer_info;
use super::texture::{aligned, bind, checked};
use super::texture_format::{Resource, TextureReference};
use crate::boundary::{RuntimeError, guarded, runtime};
use crate::call::ask;
use crate::context::current_for_runtime;
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::registry;
use crate::types::{Address, In, Out, Text};
use lockstep_protocol::{ContextHandle, Request};
use std::collections::BTreeMap;

/// A reference that the program registered.
#[derive(Clone)]
struct Registered {
    library: u64,
    name: String,
    /// Integers are read as floats.
    as_floats: bool,
    /// How far behind an aligned address the texels begin; nothing while it is not bound.
    offset: Option<usize>,
}

/// By the address of the variable on the host.
static REFERENCES: FairMutex<BTreeMap<Address, Registered>> = FairMutex::new(BTreeMap::new());

/// Forgets the references of a library that is being unloaded.
pub fn forget(library: u64) {
    lock(&REFERENCES).retain(|_, reference| reference.library != library);
}

#[unsafe(export_name = "lockstep___cudaRegisterTexture")]
extern "C" fn register_texture(
    handle: Address,
    host: Address,
    // What a module calls it. The next argument is its name in C++, which no module knows.
    name: Text,
    _spelled: Text,
    _dimensions: i32,
    as_floats: i32,
    _external: i32,
) {
    guarded("__cudaRegisterTexture", || {
        if let (Some(library), Ok(name)) = (opaque::decode(Kind::Library, handle), name.get()) {
            let registered = Registered {
                library,
                name,
                as_floats: as_floats != 0,
                offset: None,
            };
            lock(&REFERENCES).insert(host, registered);
        }
    });
}

fn find(reference: Address) -> Result<Registered, RuntimeError> {
    let found = lock(&REFERENCES).get(&reference).cloned();
    found.ok_or(RuntimeError::INVALID_TEXTURE)
}

/// The index of a reference in a context.
fn index(reference: &Registered, context: ContextHandle) -> Result<u32, RuntimeError> {
    let module = registry::module_of_library(reference.library, context)?;
    let name = reference.name.clone();
    Ok(ask!(Value, &Request::ModuleTexture { module, name }) as u32)
}

/// Binds the reference at an address of the host, whose texels begin `offset` behind those of the resource.
fn bind_to(
    reference: In<TextureReference>,
    resource: Resource,
    offset: usize,
) -> Result<(), RuntimeError> {
    let context = current_for_runtime()?;
    let registered = find(reference.address())?;
    let description = reference.get()?.texture(registered.as_floats);
    let texture = checked(resource, &description)?;
    let index = index(&registered, context)?;
    bind(context, index, Some((resource, &texture)))?;
    if let Some(known) = lock(&REFERENCES).get_mut(&reference.address()) {
        known.offset = Some(offset);
    }
    Ok(())
}

/// Splits an address for a reference. Texels that do not begin at an aligned address need somebody who takes the offset.
fn split(address: Address, offset: Out<usize>) -> Result<(Address, usize), RuntimeError> {
    let (base, behind) = aligned(address);
    if behind != 0 {
        offset.check()?;
    }
    offset.set_if_wanted(behind);
    Ok((base, behind))
}

/// Bytes from an address to the end of its allocation.
fn rest_of_allocation(address: Address) -> Result<usize, RuntimeError> {
    let info = pointer_info(address)?.ok_or(RuntimeError::INVALID_VALUE)?;
    let end = info.base.saturating_add(info.bytes);
    Ok(end.saturating_sub(address as u64) as usize)
}

runtime! {
    fn cudaGetTextureReference(reference: Out<Address>, symbol: Address) {
        find(symbol)?;
        Ok(reference.set(symbol)?)
    }

    fn cudaBindTexture(offset: Out<usize>, reference: In<TextureReference>, address: Address, format: In<super::array_format::Format>, bytes: usize) {
        let (base, behind) = split(address, offset)?;
        // The default size is all that there is.
        let bytes = bytes.min(rest_of_allocation(address)?) + behind;
        let resource = Resource::Linear { address: base, format: format.get()?, bytes };
        bind_to(reference, resource, behind)
    }

    fn cudaBindTexture2D(offset: Out<usize>, reference: In<TextureReference>, address: Address, format: In<super::array_format::Format>, width: usize, height: usize, pitch: usize) {
        let (base, behind) = split(address, offset)?;
        let format = format.get()?;
        let width = width + behind / format.bytes()?;
        let resource = Resource::Pitch { address: base, format, width, height, pitch };
        bind_to(reference, resource, behind)
    }

    fn cudaBindTextureToArray(reference: In<TextureReference>, array: Address, _format: In<super::array_format::Format>) {
        bind_to(reference, Resource::Array(array), 0)
    }

    fn cudaBindTextureToMipmappedArray(reference: In<TextureReference>, array: Address, _format: In<super::array_format::Format>) {
        bind_to(reference, Resource::Mipmapped(array), 0)
    }

    fn cudaUnbindTexture(reference: Address) {
        let context = current_for_runtime()?;
        let registered = find(reference)?;
        bind(context, index(&registered, context)?, None)?;
        if let Some(known) = lock(&REFERENCES).get_mut(&reference) {
            known.offset = None;
        }
        Ok(())
    }

    fn cudaGetTextureAlignmentOffset(offset: Out<usize>, reference: Address) {
        let bound = find(reference)?.offset;
        Ok(offset.set(bound.ok_or(RuntimeError::INVALID_TEXTURE_BINDING)?)?)
    }
}
