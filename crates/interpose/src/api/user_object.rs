//! User objects, which graphs keep alive.

use crate::boundary::{driver, runtime};
use crate::graph::model::{decode_graph, graphs};
use crate::graph::objects::{self, decode};
use crate::types::{Address, HostFunction, Out};
use lockstep_protocol::CuResult;
use std::ffi::c_void;

/// `cudaUserObjectNoDestructorSync`, which must be given.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `cudaGraphUserObjectMove`.
const MOVE: u32 = 1;

fn create(
    object: Out<Address>,
    data: *mut c_void,
    destroy: HostFunction,
    references: u32,
    flags: u32,
) -> Result<(), CuResult> {
    object.check()?;
    if flags != NO_DESTRUCTOR_SYNC {
        return Err(CuResult::INVALID_VALUE);
    }
    object.set(objects::create(data, destroy, references)?)
}

fn retain_in(graph: Address, object: Address, count: u32, flags: u32) -> Result<(), CuResult> {
    let (graph, object) = (decode_graph(graph)?, decode(object)?);
    if count == 0 || flags & !MOVE != 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let mut graphs = graphs();
    let held = graphs.graph_mut(graph)?.objects.entry(object).or_default();
    if flags & MOVE == 0 {
        objects::retain(object, count)?;
    }
    *held += count;
    Ok(())
}

fn release_in(graph: Address, object: Address, count: u32) -> Result<(), CuResult> {
    let (graph, object) = (decode_graph(graph)?, decode(object)?);
    let mut graphs = graphs();
    let objects = &mut graphs.graph_mut(graph)?.objects;
    let held = objects.get_mut(&object).ok_or(CuResult::INVALID_VALUE)?;
    if count == 0 || count > *held {
        return Err(CuResult::INVALID_VALUE);
    }
    *held -= count;
    if *held == 0 {
        objects.remove(&object);
    }
    drop(graphs);
    objects::release(object, count)
}

fn retain(object: Address, count: u32) -> Result<(), CuResult> {
    if count == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    objects::retain(decode(object)?, count)
}

fn release(object: Address, count: u32) -> Result<(), CuResult> {
    if count == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    objects::release(decode(object)?, count)
}

runtime! {
    fn cudaUserObjectCreate(object: Out<Address>, data: *mut c_void, destroy: HostFunction, references: u32, flags: u32) {
        Ok(create(object, data, destroy, references, flags)?)
    }

    fn cudaUserObjectRetain(object: Address, count: u32) {
        Ok(retain(object, count)?)
    }

    fn cudaUserObjectRelease(object: Address, count: u32) {
        Ok(release(object, count)?)
    }

    fn cudaGraphRetainUserObject(graph: Address, object: Address, count: u32, flags: u32) {
        Ok(retain_in(graph, object, count, flags)?)
    }

    fn cudaGraphReleaseUserObject(graph: Address, object: Address, count: u32) {
        Ok(release_in(graph, object, count)?)
    }
}

driver! {
    fn cuUserObjectCreate(object: Out<Address>, data: *mut c_void, destroy: HostFunction, references: u32, flags: u32) {
        create(object, data, destroy, references, flags)
    }

    fn cuUserObjectRetain(object: Address, count: u32) {
        retain(object, count)
    }

    fn cuUserObjectRelease(object: Address, count: u32) {
        release(object, count)
    }

    fn cuGraphRetainUserObject(graph: Address, object: Address, count: u32, flags: u32) {
        retain_in(graph, object, count, flags)
    }

    fn cuGraphReleaseUserObject(graph: Address, object: Address, count: u32) {
        release_in(graph, object, count)
    }
}
