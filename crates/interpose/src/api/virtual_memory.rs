//! Virtual memory: addresses, physical memory, and what is mapped where.

use crate::boundary::driver;
use crate::call::{ask, done};
use crate::context::{check_initialized, current};
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::{device, lock};
use crate::types::{Address, In, Location, Out};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, MemoryAccess, PhysicalHandle, Request};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Sizes and addresses are multiples of this.
const GRANULARITY: usize = 2 << 20;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    metadata: Address,
    flags: u64,
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Access {
    /// Device or host that gets access.
    pub location: Location,
    /// 0 nothing, 1 read, 3 read and write.
    pub flags: u32,
}

struct Physical {
    properties: Properties,
    /// Handles of the program's.
    references: u32,
    mapped: Option<Address>,
}

struct State {
    physicals: BTreeMap<u64, Physical>,
    /// Mapped ranges: bytes, memory, access.
    mappings: BTreeMap<Address, (usize, u64, u32)>,
}

static STATE: Mutex<State> = Mutex::new(State {
    physicals: BTreeMap::new(),
    mappings: BTreeMap::new(),
});

/// Rows of the table of options for properties of physical memory, which have no numbers of their
/// own.
const HOST_MEMORY: u32 = 0;
const SHARED_HANDLES: u32 = 1;
const COMPRESSION: u32 = 2;
const DIRECT_RDMA: u32 = 3;
const USAGE: u32 = 4;

/// Takes what the program wants of the memory beside its place.
fn accept_properties(properties: &Properties) -> Result<(), CuResult> {
    let [compression, rdma, usage, more, ..] = properties.flags.to_le_bytes();
    let wanted = [
        (SHARED_HANDLES, properties.handle_types != 0),
        (COMPRESSION, compression != 0),
        (DIRECT_RDMA, rdma != 0),
        (USAGE, usage != 0 || more != 0),
    ];
    wanted
        .into_iter()
        .filter(|(_, wanted)| *wanted)
        .try_for_each(|(row, _)| options::accept(Group::PhysicalMemory, row))
}

fn decode(handle: Address) -> Result<u64, CuResult> {
    opaque::decode(Kind::Physical, handle).ok_or(CuResult::INVALID_VALUE)
}

/// Pinned memory (1) of a device (1): what we have.
fn check(properties: &Properties) -> Result<(), CuResult> {
    if properties.kind != 1 {
        return Err(CuResult::INVALID_VALUE);
    }
    if properties.location.kind != 1 {
        options::accept(Group::PhysicalMemory, HOST_MEMORY)?;
    }
    device(properties.location.number).map(|_| ())
}

fn release(handle: Address) -> Result<(), CuResult> {
    let number = decode(handle)?;
    let mut state = lock(&STATE);
    let physical = state.physicals.get_mut(&number);
    let physical = physical.ok_or(CuResult::INVALID_VALUE)?;
    if physical.references == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    physical.references -= 1;
    if physical.references > 0 {
        return Ok(());
    }
    if physical.mapped.is_none() {
        state.physicals.remove(&number);
    }
    drop(state);
    done(&Request::PhysicalRelease {
        physical: PhysicalHandle(number),
    })
}

/// What `CUmemAccess_flags` allow.
fn allowed(flags: u32) -> Result<MemoryAccess, CuResult> {
    options::accept(Group::Access, flags)?;
    match flags {
        0 => Ok(MemoryAccess::None),
        1 => Ok(MemoryAccess::Read),
        3 => Ok(MemoryAccess::ReadWrite),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

fn mapping(address: Address) -> Result<(Address, (usize, u64, u32)), CuResult> {
    let state = lock(&STATE);
    let found = state.mappings.range(..=address).next_back();
    let found = found.filter(|(start, (bytes, ..))| address - **start < *bytes);
    let (start, row) = found.ok_or(CuResult::INVALID_VALUE)?;
    Ok((*start, *row))
}

driver! {
    fn cuMemGetAllocationGranularity(answer: Out<usize>, properties: In<Properties>, option: u32) {
        check_initialized()?;
        check(&properties.get()?)?;
        if option > 1 {
            return Err(CuResult::INVALID_VALUE);
        }
        answer.set(GRANULARITY)
    }

    /// A wanted address is only a wish, as CUDA has it.
    fn cuMemAddressReserve(pointer: Out<Address>, bytes: usize, alignment: usize, wanted: Address, flags: u64) {
        pointer.check()?;
        let _ = wanted;
        if flags != 0 || bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(CuResult::INVALID_VALUE);
        }
        let request = Request::AddressReserve {
            context: current()?,
            bytes: bytes as u64,
            alignment: alignment as u64,
        };
        pointer.set(ask!(Address, &request) as Address)
    }

    fn cuMemAddressFree(address: Address, bytes: usize) {
        check_initialized()?;
        done(&Request::AddressFree { address: address as u64, bytes: bytes as u64 })
    }

    fn cuMemCreate(handle: Out<Address>, bytes: usize, properties: In<Properties>, flags: u64) {
        handle.check()?;
        let properties = properties.get()?;
        check(&properties)?;
        if flags != 0 || bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(CuResult::INVALID_VALUE);
        }
        accept_properties(&properties)?;
        let request = Request::PhysicalCreate { context: current()?, bytes: bytes as u64 };
        let physical = ask!(Physical, &request);
        lock(&STATE).physicals.insert(physical.0, Physical { properties, references: 1, mapped: None });
        handle.set(opaque::encode(Kind::Physical, physical.0))
    }

    fn cuMemRelease(handle: Address) {
        release(handle)
    }

    fn cuMemMap(address: Address, bytes: usize, offset: usize, handle: Address, flags: u64) {
        let number = decode(handle)?;
        if flags != 0 || offset != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        if mapping(address).is_ok() {
            return Err(CuResult::INVALID_VALUE);
        }
        match lock(&STATE).physicals.get(&number) {
            None => return Err(CuResult::INVALID_VALUE),
            Some(physical) if physical.mapped.is_some() => {
                crate::call::note("memory mapped at two addresses", lockstep_protocol::UnsupportedManner::Option);
                return Err(CuResult::NOT_SUPPORTED);
            }
            Some(_) => {}
        }
        done(&Request::PhysicalMap {
            address: address as u64,
            bytes: bytes as u64,
            physical: PhysicalHandle(number),
        })?;
        let mut state = lock(&STATE);
        state.mappings.insert(address, (bytes, number, 0));
        if let Some(physical) = state.physicals.get_mut(&number) {
            physical.mapped = Some(address);
        }
        Ok(())
    }

    fn cuMemUnmap(address: Address, bytes: usize) {
        check_initialized()?;
        done(&Request::PhysicalUnmap { address: address as u64, bytes: bytes as u64 })?;
        let mut state = lock(&STATE);
        let gone: Vec<(Address, u64)> = state
            .mappings
            .range(address..address + bytes)
            .map(|(start, (_, number, _))| (*start, *number))
            .collect();
        for (start, number) in gone {
            state.mappings.remove(&start);
            let forget = match state.physicals.get_mut(&number) {
                Some(physical) => {
                    physical.mapped = None;
                    physical.references == 0
                }
                None => false,
            };
            if forget {
                state.physicals.remove(&number);
            }
        }
        Ok(())
    }

    fn cuMemSetAccess(address: Address, bytes: usize, list: In<Access>, count: usize) {
        check_initialized()?;
        for index in 0..count {
            let access = list.at(index)?;
            if access.location.kind != 1 {
                return Err(CuResult::INVALID_VALUE);
            }
            device(access.location.number)?;
            done(&Request::AccessSet {
                address: address as u64,
                bytes: bytes as u64,
                access: allowed(access.flags)?,
            })?;
            let mut state = lock(&STATE);
            for (_, row) in state.mappings.range_mut(address..address + bytes) {
                row.2 = access.flags;
            }
        }
        Ok(())
    }

    fn cuMemGetAccess(flags: Out<u64>, location: In<Location>, address: Address) {
        let location = location.get()?;
        if location.kind != 1 {
            return Err(CuResult::INVALID_VALUE);
        }
        device(location.number)?;
        flags.set(u64::from(mapping(address)?.1.2))
    }

    fn cuMemRetainAllocationHandle(handle: Out<Address>, address: Address) {
        handle.check()?;
        let number = mapping(address)?.1.1;
        let mut state = lock(&STATE);
        let physical = state.physicals.get_mut(&number);
        let physical = physical.ok_or(CuResult::INVALID_VALUE)?;
        if physical.references == 0 {
            // The simulator has let go of it for as long as it is mapped.
            return Err(CuResult::NOT_SUPPORTED);
        }
        physical.references += 1;
        handle.set(opaque::encode(Kind::Physical, number))
    }

    fn cuMemGetAllocationPropertiesFromHandle(answer: Out<Properties>, handle: Address) {
        let state = lock(&STATE);
        let physical = state.physicals.get(&decode(handle)?);
        answer.set(physical.ok_or(CuResult::INVALID_VALUE)?.properties)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<Properties>(), 32);
        assert_eq!(size_of::<Access>(), 12);
    }
}
