//! Contexts and limits.

use crate::boundary::{driver, runtime};
use crate::call::{ask, done};
use crate::context::{
    check_initialized, create, current, current_for_runtime, destroy, find, primary_state,
    release_primary, reset_primary, retain_primary, set_primary_flags, synchronize,
};
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::device;
use crate::thread;
use crate::types::{Address, In, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, PRIORITIES, Request};
use std::sync::atomic::{AtomicU32, Ordering};

fn decode(handle: Address) -> Result<ContextHandle, CuResult> {
    let number = opaque::decode(Kind::Context, handle).ok_or(CuResult::INVALID_CONTEXT)?;
    find(ContextHandle(number))?;
    Ok(ContextHandle(number))
}

fn encode(context: ContextHandle) -> Address {
    opaque::encode(Kind::Context, context.0)
}

/// The context that an argument names; null means the current one.
fn or_current(handle: Address) -> Result<ContextHandle, CuResult> {
    match handle {
        0 => current(),
        _ => decode(handle),
    }
}

/// The context behind a handle that another chapter was given.
pub fn from_handle(handle: Address) -> Result<ContextHandle, CuResult> {
    decode(handle)
}

/// The handle of a context that another chapter answers.
pub fn to_handle(context: ContextHandle) -> Address {
    encode(context)
}

fn create_checked(handle: Out<Address>, flags: u32, number: i32) -> Result<(), CuResult> {
    handle.check()?;
    device(number)?;
    accept_context_flags(flags)?;
    handle.set(encode(create(number as usize, flags)?))
}

fn pop(handle: Out<Address>) -> Result<(), CuResult> {
    check_initialized()?;
    let popped = thread::current().contexts.borrow_mut().pop();
    handle.set_if_wanted(encode(popped.ok_or(CuResult::INVALID_CONTEXT)?));
    Ok(())
}

fn push(handle: Address) -> Result<(), CuResult> {
    check_initialized()?;
    let context = decode(handle)?;
    thread::current().contexts.borrow_mut().push(context);
    Ok(())
}

fn limit(context: ContextHandle, limit: u32) -> Result<usize, CuResult> {
    check_limit(limit)?;
    Ok(ask!(Value, &Request::LimitGet { context, limit }) as usize)
}

/// Numbers beyond those of CUDA are invalid; some of CUDA's own are not supported.
fn check_limit(limit: u32) -> Result<(), CuResult> {
    const LAST: u32 = 8;
    if limit > LAST {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(())
}

fn set_limit(context: ContextHandle, limit: u32, value: usize) -> Result<(), CuResult> {
    options::accept(Group::Limit, limit)?;
    let value = value as u64;
    done(&Request::LimitSet {
        context,
        limit,
        value,
    })
}

/// `CUctxCreateParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Parameters {
    affinities: Address,
    affinity_count: i32,
    graphics: Address,
}

/// Rows of the table of options for parameters of contexts, which have no numbers of their own.
const AFFINITY: u32 = 0;
const GRAPHICS: u32 = 1;

impl Parameters {
    fn check(&self) -> Result<(), CuResult> {
        if self.affinities != 0 && self.affinity_count > 0 {
            options::accept(Group::ContextParameter, AFFINITY)?;
        }
        if self.graphics != 0 {
            options::accept(Group::ContextParameter, GRAPHICS)?;
        }
        Ok(())
    }
}

/// Takes flags of a context: one manner of waiting at most, and others.
pub fn accept_context_flags(flags: u32) -> Result<(), CuResult> {
    const WAITING: u32 = 7;
    if (flags & WAITING).count_ones() > 1 {
        return Err(CuResult::INVALID_VALUE);
    }
    options::accept_flags(Group::DeviceFlag, flags)
}

/// What programs prefer of L1 and shared memory, for who reads it back.
static CACHE_PREFERENCE: AtomicU32 = AtomicU32::new(0);

/// The preference of the device.
pub fn cache_preference() -> u32 {
    CACHE_PREFERENCE.load(Ordering::Relaxed)
}

/// Sets the preference of the device.
pub fn set_cache_preference(preference: u32) -> Result<(), CuResult> {
    options::accept(Group::DeviceCache, preference)?;
    CACHE_PREFERENCE.store(preference, Ordering::Relaxed);
    Ok(())
}

runtime! {
    fn cudaDeviceGetLimit(value: Out<usize>, number: u32) {
        value.check()?;
        Ok(value.set(limit(current_for_runtime()?, number)?)?)
    }

    fn cudaThreadGetLimit(value: Out<usize>, number: u32) {
        value.check()?;
        Ok(value.set(limit(current_for_runtime()?, number)?)?)
    }

    fn cudaDeviceSetLimit(number: u32, value: usize) {
        Ok(set_limit(current_for_runtime()?, number, value)?)
    }

    fn cudaThreadSetLimit(number: u32, value: usize) {
        Ok(set_limit(current_for_runtime()?, number, value)?)
    }

    fn cudaDeviceGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current_for_runtime()?;
        least.set_if_wanted(*PRIORITIES.end());
        greatest.set_if_wanted(*PRIORITIES.start());
        Ok(())
    }

    /// No line is ever persisting, so none needs to be reset.
    fn cudaCtxResetPersistingL2Cache() {
        current_for_runtime()?;
        Ok(())
    }
}

driver! {
    fn cuDevicePrimaryCtxRetain(handle: Out<Address>, number: i32) {
        check_initialized()?;
        handle.check()?;
        device(number)?;
        handle.set(encode(retain_primary(number as usize)?))
    }

    fn cuDevicePrimaryCtxRelease(number: i32) {
        device(number)?;
        release_primary(number as usize)
    }

    fn cuDevicePrimaryCtxRelease_v2(number: i32) {
        device(number)?;
        release_primary(number as usize)
    }

    fn cuDevicePrimaryCtxReset(number: i32) {
        device(number)?;
        reset_primary(number as usize)
    }

    fn cuDevicePrimaryCtxReset_v2(number: i32) {
        device(number)?;
        reset_primary(number as usize)
    }

    fn cuDevicePrimaryCtxSetFlags(number: i32, flags: u32) {
        device(number)?;
        accept_context_flags(flags)?;
        set_primary_flags(number as usize, flags);
        Ok(())
    }

    fn cuDevicePrimaryCtxSetFlags_v2(number: i32, flags: u32) {
        device(number)?;
        accept_context_flags(flags)?;
        set_primary_flags(number as usize, flags);
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(number: i32, flags: Out<u32>, active: Out<i32>) {
        check_initialized()?;
        device(number)?;
        let state = primary_state(number as usize);
        flags.set_if_wanted(state.0);
        active.set_if_wanted(i32::from(state.1));
        Ok(())
    }

    fn cuCtxCreate_v2(handle: Out<Address>, flags: u32, number: i32) {
        create_checked(handle, flags, number)
    }

    fn cuCtxCreate_v3(handle: Out<Address>, affinities: Address, count: i32, flags: u32, number: i32) {
        let _ = affinities;
        if count > 0 {
            options::accept(Group::ContextParameter, AFFINITY)?;
        }
        create_checked(handle, flags, number)
    }

    fn cuCtxCreate_v4(handle: Out<Address>, parameters: In<Parameters>, flags: u32, number: i32) {
        if !parameters.is_null() {
            parameters.get()?.check()?;
        }
        create_checked(handle, flags, number)
    }

    fn cuCtxDestroy_v2(handle: Address) {
        check_initialized()?;
        destroy(decode(handle)?)
    }

    fn cuCtxDestroy(handle: Address) {
        check_initialized()?;
        destroy(decode(handle)?)
    }

    fn cuCtxPushCurrent_v2(handle: Address) {
        push(handle)
    }

    fn cuCtxPushCurrent(handle: Address) {
        push(handle)
    }

    fn cuCtxPopCurrent_v2(handle: Out<Address>) {
        pop(handle)
    }

    fn cuCtxPopCurrent(handle: Out<Address>) {
        pop(handle)
    }

    fn cuCtxSetCurrent(handle: Address) {
        check_initialized()?;
        let stack = &thread::current().contexts;
        if handle == 0 {
            stack.borrow_mut().pop();
            return Ok(());
        }
        let context = decode(handle)?;
        let mut stack = stack.borrow_mut();
        stack.pop();
        stack.push(context);
        Ok(())
    }

    fn cuCtxGetCurrent(handle: Out<Address>) {
        check_initialized()?;
        let top = thread::current().contexts.borrow().last().copied();
        handle.set(top.map_or(0, encode))
    }

    fn cuCtxGetDevice(number: Out<i32>) {
        number.set(find(current()?)?.device as i32)
    }

    fn cuCtxGetDevice_v2(number: Out<i32>, handle: Address) {
        number.set(find(or_current(handle)?)?.device as i32)
    }

    fn cuCtxGetFlags(flags: Out<u32>) {
        flags.set(find(current()?)?.flags)
    }

    fn cuCtxGetId(handle: Address, number: Out<u64>) {
        number.set(or_current(handle)?.0)
    }

    fn cuCtxGetApiVersion(handle: Address, version: Out<u32>) {
        or_current(handle)?;
        version.set(3020)
    }

    fn cuCtxSynchronize() {
        synchronize(current()?)
    }

    fn cuCtxSynchronize_v2(handle: Address) {
        synchronize(or_current(handle)?)
    }

    fn cuCtxGetLimit(value: Out<usize>, number: u32) {
        value.check()?;
        value.set(limit(current()?, number)?)
    }

    fn cuCtxSetLimit(number: u32, value: usize) {
        set_limit(current()?, number, value)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.set_if_wanted(*PRIORITIES.end());
        greatest.set_if_wanted(*PRIORITIES.start());
        Ok(())
    }

    fn cuCtxSetCacheConfig(preference: u32) {
        current()?;
        set_cache_preference(preference)
    }

    fn cuCtxGetCacheConfig(preference: Out<u32>) {
        current()?;
        preference.set(cache_preference())
    }

    fn cuCtxSetSharedMemConfig(preference: u32) {
        current()?;
        options::accept(Group::SharedBanks, preference)
    }

    fn cuCtxGetSharedMemConfig(preference: Out<u32>) {
        current()?;
        preference.set(1)
    }

    fn cuCtxResetPersistingL2Cache() {
        current().map(|_| ())
    }

    fn cuCtxAttach(handle: Out<Address>, flags: u32) {
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        handle.set(encode(current()?))
    }

    fn cuCtxGetExecAffinity(affinity: Out<[u32; 2]>, kind: In<u32>) {
        let _ = (affinity, kind);
        Err(CuResult::UNSUPPORTED_EXEC_AFFINITY)
    }
}
