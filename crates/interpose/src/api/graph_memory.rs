//! Memory of graphs: what allocation nodes made.
//!
//! It is there from the making of its node on, at one address for every launch; free nodes
//! and frees outside the graph only end its use.

use super::memory::{allocate_anyhow, free};
use crate::boundary::{driver, runtime};
use crate::context::{check_initialized, current_for_runtime};
use crate::fair_mutex::FairMutex;
use crate::process::{device, lock};
use crate::types::{Address, Out};
use lockstep_protocol::{ContextHandle, CuResult};
use std::collections::BTreeMap;

/// Addresses with their sizes and contexts.
static MEMORY: FairMutex<BTreeMap<Address, (usize, ContextHandle)>> =
    FairMutex::new(BTreeMap::new());

/// Allocates memory for a node.
pub fn create(context: ContextHandle, bytes: usize) -> Result<Address, CuResult> {
    if bytes == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let address = allocate_anyhow(context, bytes)?;
    lock(&MEMORY).insert(address, (bytes, context));
    Ok(address)
}

/// Whether an address belongs to a graph.
pub fn holds(address: Address) -> bool {
    lock(&MEMORY).contains_key(&address)
}

/// Frees the memory of nodes that are gone.
pub fn release(addresses: impl Iterator<Item = Address>) {
    for address in addresses {
        let removed = lock(&MEMORY).remove(&address);
        if let Some((_, context)) = removed {
            // A context that is gone took its memory along.
            let _ = free(context, address);
        }
    }
}

/// `cudaGraphMemAttributeType`: memory in use now and at most, reserved now and at most.
fn attribute(number: u32) -> Result<u64, CuResult> {
    match number {
        0..=3 => Ok(lock(&MEMORY).values().map(|(bytes, _)| *bytes as u64).sum()),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// Only the marks of the most can be set, and only to 0.
fn set_attribute(number: u32, value: Out<u64>) -> Result<(), CuResult> {
    match (number, value.current()?) {
        (1 | 3, 0) => Ok(()),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

runtime! {
    fn cudaDeviceGetGraphMemAttribute(number: i32, which: u32, value: Out<u64>) {
        current_for_runtime()?;
        device(number)?;
        Ok(value.set(attribute(which)?)?)
    }

    fn cudaDeviceSetGraphMemAttribute(number: i32, which: u32, value: Out<u64>) {
        current_for_runtime()?;
        device(number)?;
        Ok(set_attribute(which, value)?)
    }

    /// Memory belongs to its nodes, and none is kept beside them.
    fn cudaDeviceGraphMemTrim(number: i32) {
        current_for_runtime()?;
        device(number)?;
        Ok(())
    }
}

driver! {
    fn cuDeviceGetGraphMemAttribute(number: i32, which: u32, value: Out<u64>) {
        check_initialized()?;
        device(number)?;
        value.set(attribute(which)?)
    }

    fn cuDeviceSetGraphMemAttribute(number: i32, which: u32, value: Out<u64>) {
        check_initialized()?;
        device(number)?;
        set_attribute(which, value)
    }

    fn cuDeviceGraphMemTrim(number: i32) {
        check_initialized()?;
        device(number).map(|_| ())
    }
}
