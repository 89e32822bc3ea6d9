//! Multicast objects. Their handles are those of physical memory to `cuMemMap`, `cuMemRelease` and the calls that share
//! memory with other processes.

use super::virtual_memory::{
    self, FILE_DESCRIPTOR, GRANULARITY, at_address, decode_multicast, insert_multicast, of_handle,
    show,
};
use crate::boundary::driver;
use crate::call::{ask, done};
use crate::context::{check_initialized, current};
use crate::options;
use crate::process::device;
use crate::types::{Address, In, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, MulticastMemory, PhysicalHandle, Request};

/// `CUmulticastObjectProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ObjectProperties {
    /// GPUs that it will have.
    pub devices: u32,
    /// Bytes that each of them can bind.
    pub bytes: usize,
    /// Bits of the handles that may be made of it; 1 file descriptors.
    pub handle_types: u64,
    /// Must be 0.
    pub flags: u64,
}

fn check(properties: &ObjectProperties) -> Result<(), CuResult> {
    if properties.flags != 0 || properties.devices == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    if properties.handle_types & !u64::from(FILE_DESCRIPTOR) != 0 {
        options::accept(Group::PhysicalMemory, virtual_memory::SHARED_HANDLES)?;
    }
    Ok(())
}

/// Binds memory by its handle, of a named device or of whichever has it.
fn bind(
    multicast: Address,
    number: Option<i32>,
    offset: usize,
    (known, memory): (u64, MulticastMemory),
    bytes: usize,
    flags: u64,
) -> Result<(), CuResult> {
    check_initialized()?;
    if flags != 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let device = match number {
        Some(number) => Some(device(number)?.ordinal),
        None => None,
    };
    let request = Request::MulticastBind {
        multicast: decode_multicast(multicast)?,
        device,
        offset: offset as u64,
        memory,
        bytes: bytes as u64,
    };
    let place = ask!(Address, &request) as Address;
    show(known, place)
}

/// Memory by its handle: its number, and what the simulator is told.
fn by_handle(memory: Address, offset: usize) -> Result<(u64, MulticastMemory), CuResult> {
    let (number, ..) = of_handle(memory)?;
    let handle = PhysicalHandle(number);
    Ok((number, MulticastMemory::Handle(handle, offset as u64)))
}

/// The same by an address at which it is mapped.
fn by_address(address: Address) -> Result<(u64, MulticastMemory), CuResult> {
    Ok((
        at_address(address)?,
        MulticastMemory::Address(address as u64),
    ))
}

driver! {
    fn cuMulticastGetGranularity(answer: Out<usize>, properties: In<ObjectProperties>, option: u32) {
        check_initialized()?;
        check(&properties.get()?)?;
        if option > 1 {
            return Err(CuResult::INVALID_VALUE);
        }
        answer.set(GRANULARITY)
    }

    fn cuMulticastCreate(handle: Out<Address>, properties: In<ObjectProperties>) {
        check_initialized()?;
        handle.check()?;
        let properties = properties.get()?;
        check(&properties)?;
        let context = current()?;
        let request = Request::MulticastCreate {
            context,
            devices: properties.devices,
            bytes: properties.bytes as u64,
            shared: properties.handle_types != 0,
        };
        let multicast = ask!(Physical, &request);
        handle.set(insert_multicast(
            multicast.0,
            context,
            properties.bytes,
            properties.handle_types as u32,
        ))
    }

    fn cuMulticastAddDevice(multicast: Address, number: i32) {
        check_initialized()?;
        done(&Request::MulticastAddDevice {
            multicast: decode_multicast(multicast)?,
            device: device(number)?.ordinal,
        })
    }

    fn cuMulticastBindMem(multicast: Address, offset: usize, memory: Address, memory_offset: usize, bytes: usize, flags: u64) {
        bind(multicast, None, offset, by_handle(memory, memory_offset)?, bytes, flags)
    }

    fn cuMulticastBindMem_v2(multicast: Address, device: i32, offset: usize, memory: Address, memory_offset: usize, bytes: usize, flags: u64) {
        bind(multicast, Some(device), offset, by_handle(memory, memory_offset)?, bytes, flags)
    }

    fn cuMulticastBindAddr(multicast: Address, offset: usize, address: Address, bytes: usize, flags: u64) {
        bind(multicast, None, offset, by_address(address)?, bytes, flags)
    }

    fn cuMulticastBindAddr_v2(multicast: Address, device: i32, offset: usize, address: Address, bytes: usize, flags: u64) {
        bind(multicast, Some(device), offset, by_address(address)?, bytes, flags)
    }

    fn cuMulticastUnbind(multicast: Address, number: i32, offset: usize, bytes: usize) {
        check_initialized()?;
        done(&Request::MulticastUnbind {
            multicast: decode_multicast(multicast)?,
            device: device(number)?.ordinal,
            offset: offset as u64,
            bytes: bytes as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<ObjectProperties>(), 32);
    }
}
