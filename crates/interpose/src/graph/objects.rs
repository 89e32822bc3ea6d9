//! User objects: something of the program's that graphs keep alive.

use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::process::lock;
use crate::types::{Address, HostFunction};
use lockstep_protocol::CuResult;
use std::collections::BTreeMap;
use std::ffi::c_void;

struct Object {
    data: *mut c_void,
    destroy: HostFunction,
    references: u32,
}

// SAFETY: the pointer is only handed to the program's own destructor.
unsafe impl Send for Object {}

static OBJECTS: FairMutex<(u64, BTreeMap<u64, Object>)> = FairMutex::new((1, BTreeMap::new()));

/// Makes one with some references.
pub fn create(
    data: *mut c_void,
    destroy: HostFunction,
    references: u32,
) -> Result<Address, CuResult> {
    if destroy.is_none() || references == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let mut objects = lock(&OBJECTS);
    objects.0 += 1;
    let number = objects.0;
    objects.1.insert(
        number,
        Object {
            data,
            destroy,
            references,
        },
    );
    Ok(opaque::encode(Kind::UserObject, number))
}

/// The number of one that lives.
pub fn decode(handle: Address) -> Result<u64, CuResult> {
    let number = opaque::decode(Kind::UserObject, handle).ok_or(CuResult::INVALID_VALUE)?;
    match lock(&OBJECTS).1.contains_key(&number) {
        true => Ok(number),
        false => Err(CuResult::INVALID_VALUE),
    }
}

/// Adds references.
pub fn retain(number: u64, count: u32) -> Result<(), CuResult> {
    let mut objects = lock(&OBJECTS);
    let object = objects.1.get_mut(&number).ok_or(CuResult::INVALID_VALUE)?;
    object.references = object
        .references
        .checked_add(count)
        .ok_or(CuResult::INVALID_VALUE)?;
    Ok(())
}

/// Takes references away; with the last one the program's destructor runs.
pub fn release(number: u64, count: u32) -> Result<(), CuResult> {
    let mut objects = lock(&OBJECTS);
    let object = objects.1.get_mut(&number).ok_or(CuResult::INVALID_VALUE)?;
    if count > object.references {
        return Err(CuResult::INVALID_VALUE);
    }
    object.references -= count;
    if object.references > 0 {
        return Ok(());
    }
    let removed = objects.1.remove(&number);
    drop(objects);
    if let Some(object) = removed
        && let Some(destroy) = object.destroy
    {
        // SAFETY: the program asked for this function to be called with this argument.
        unsafe { destroy(object.data) };
    }
    Ok(())
}
