//! Virtual memory: addresses, physical memory, and what is mapped where.

use crate::boundary::driver;
use crate::call::{ask, done};
use crate::context::{check_initialized, current};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::{device, lock};
use crate::types::{Address, In, Location, Out};
use crate::views;
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, MemoryAccess, PhysicalHandle, Request};
use std::collections::{BTreeMap, BTreeSet};

/// Sizes and addresses are multiples of this.
pub const GRANULARITY: usize = 2 << 20;

/// The last of `CUmemLocationType`: devices are the first, memory of the host is between.
const HOST_NUMA_CURRENT: i32 = 4;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    /// 1 pinned.
    pub kind: u32,
    /// Bits of the handles that may be made of it; 1 file descriptors.
    pub handle_types: u32,
    /// Whose memory it is.
    pub location: Location,
    /// For Windows.
    pub metadata: Address,
    /// Compression, RDMA, usage.
    pub flags: u64,
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
    /// A multicast object: its bytes are those of others.
    is_multicast: bool,
    /// The context that holds it for this process.
    context: ContextHandle,
    /// Bytes.
    bytes: usize,
    /// Handles of the program's.
    references: u32,
    /// Where it is mapped.
    mapped: BTreeSet<Address>,
}

struct State {
    physicals: BTreeMap<u64, Physical>,
    mappings: BTreeMap<Address, Mapping>,
}

/// Memory at one address.
struct Mapping {
    bytes: usize,
    physical: u64,
    /// What devices may do, by their numbers.
    access: BTreeMap<i32, u32>,
}

static STATE: FairMutex<State> = FairMutex::new(State {
    physicals: BTreeMap::new(),
    mappings: BTreeMap::new(),
});

/// Rows of the table of options for properties of physical memory, which have no numbers of their
/// own.
const HOST_MEMORY: u32 = 0;
pub const SHARED_HANDLES: u32 = 1;
/// The kind of handles that is made: `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
pub const FILE_DESCRIPTOR: u32 = 1;
const COMPRESSION: u32 = 2;
const DIRECT_RDMA: u32 = 3;
const USAGE: u32 = 4;

/// Takes what the program wants of the memory beside its place.
fn accept_properties(properties: &Properties) -> Result<(), CuResult> {
    let [compression, rdma, usage, more, ..] = properties.flags.to_le_bytes();
    let wanted = [
        (
            SHARED_HANDLES,
            properties.handle_types & !FILE_DESCRIPTOR != 0,
        ),
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
    let context = physical.context;
    if physical.mapped.is_empty() {
        state.physicals.remove(&number);
    }
    drop(state);
    done(&Request::PhysicalRelease {
        context,
        physical: PhysicalHandle(number),
    })
}

/// Takes one more handle of memory: of another process, or of what was released while it is mapped.
pub fn retain(
    number: u64,
    properties: Properties,
    bytes: usize,
    is_multicast: bool,
) -> Result<Address, CuResult> {
    let known = {
        let state = lock(&STATE);
        let known = state.physicals.get(&number);
        known.map(|physical| (physical.context, physical.references))
    };
    let context = match known {
        Some((context, _)) => context,
        None => current()?,
    };
    if known.is_none_or(|(_, references)| references == 0) {
        let physical = PhysicalHandle(number);
        done(&Request::PhysicalOpen { context, physical })?;
    }
    let mut state = lock(&STATE);
    let physical = state.physicals.entry(number).or_insert(Physical {
        properties,
        is_multicast,
        context,
        bytes,
        references: 0,
        mapped: BTreeSet::new(),
    });
    physical.references += 1;
    Ok(opaque::encode(Kind::Physical, number))
}

/// Number, properties and bytes of memory by its handle.
pub fn of_handle(handle: Address) -> Result<(u64, Properties, usize), CuResult> {
    let (number, properties, bytes, is_multicast) = of_any_handle(handle)?;
    match is_multicast {
        true => Err(CuResult::INVALID_VALUE),
        false => Ok((number, properties, bytes)),
    }
}

/// The same of memory or of a multicast object, and which of the two it is.
pub fn of_any_handle(handle: Address) -> Result<(u64, Properties, usize, bool), CuResult> {
    let number = decode(handle)?;
    let state = lock(&STATE);
    let known = state
        .physicals
        .get(&number)
        .ok_or(CuResult::INVALID_VALUE)?;
    Ok((number, known.properties, known.bytes, known.is_multicast))
}

/// A multicast object by its handle.
pub fn decode_multicast(handle: Address) -> Result<PhysicalHandle, CuResult> {
    match of_any_handle(handle)? {
        (number, _, _, true) => Ok(PhysicalHandle(number)),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// The properties of a multicast object, as far as they are those of memory.
pub fn properties_of_multicast(handle_types: u32) -> Properties {
    Properties {
        kind: 1,
        handle_types,
        location: Location { kind: 0, number: 0 },
        metadata: 0,
        flags: 0,
    }
}

/// Notes a multicast object that was just made; gives its handle.
pub fn insert_multicast(
    number: u64,
    context: ContextHandle,
    bytes: usize,
    handle_types: u32,
) -> Address {
    let known = Physical {
        properties: properties_of_multicast(handle_types),
        is_multicast: true,
        context,
        bytes,
        references: 1,
        mapped: BTreeSet::new(),
    };
    lock(&STATE).physicals.insert(number, known);
    opaque::encode(Kind::Physical, number)
}

/// Shows the bytes of memory at every address at which this process has it, once they are elsewhere.
pub fn show(number: u64, place: Address) -> Result<(), CuResult> {
    let (bytes, mapped) = {
        let state = lock(&STATE);
        let physical = state.physicals.get(&number);
        let physical = physical.ok_or(CuResult::INVALID_VALUE)?;
        if physical.is_multicast {
            return Ok(());
        }
        (physical.bytes, physical.mapped.clone())
    };
    let mut elsewhere = mapped.into_iter().filter(|address| *address != place);
    elsewhere.try_for_each(|address| views::show(address, bytes, place))
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

/// Asks what is mapped at an address.
fn mapping<T>(address: Address, ask: impl Fn(&Mapping) -> T) -> Result<T, CuResult> {
    let state = lock(&STATE);
    let found = state.mappings.range(..=address).next_back();
    let found = found.filter(|(start, mapping)| address - **start < mapping.bytes);
    found
        .map(|(_, mapping)| ask(mapping))
        .ok_or(CuResult::INVALID_VALUE)
}

/// The memory that is mapped at an address.
pub fn at_address(address: Address) -> Result<u64, CuResult> {
    mapping(address, |mapping| mapping.physical)
}

driver! {
    fn cuMemGetAllocationGranularity(answer: Out<usize>, properties: In<Properties>, option: u32) {
        check_initialized()?;
        let properties = properties.get()?;
        // Who asks for memory of the host is told so when it is made: NCCL goes on without it then.
        if properties.location.kind == 1 {
            check(&properties)?;
        }
        if option > 1 || properties.kind != 1 || !(1..=HOST_NUMA_CURRENT).contains(&properties.location.kind) {
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
        let context = current()?;
        let request = Request::PhysicalCreate {
            context,
            device: device(properties.location.number)?.ordinal,
            bytes: bytes as u64,
            shared: properties.handle_types != 0,
        };
        let physical = ask!(Physical, &request);
        let known = Physical { properties, is_multicast: false, context, bytes, references: 1, mapped: BTreeSet::new() };
        lock(&STATE).physicals.insert(physical.0, known);
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
        if mapping(address, |_| ()).is_ok() {
            return Err(CuResult::INVALID_VALUE);
        }
        let known = lock(&STATE).physicals.get(&number).map(|physical| physical.context);
        let request = Request::PhysicalMap {
            context: known.ok_or(CuResult::INVALID_VALUE)?,
            address: address as u64,
            bytes: bytes as u64,
            physical: PhysicalHandle(number),
        };
        let place = ask!(Address, &request) as Address;
        let mut state = lock(&STATE);
        let mapping = Mapping { bytes, physical: number, access: BTreeMap::new() };
        state.mappings.insert(address, mapping);
        if let Some(physical) = state.physicals.get_mut(&number) {
            physical.mapped.insert(address);
        }
        drop(state);
        show(number, place)
    }

    fn cuMemUnmap(address: Address, bytes: usize) {
        check_initialized()?;
        done(&Request::PhysicalUnmap { address: address as u64, bytes: bytes as u64 })?;
        let mut state = lock(&STATE);
        let gone: Vec<(Address, u64)> = state
            .mappings
            .range(address..address.saturating_add(bytes))
            .map(|(start, mapping)| (*start, mapping.physical))
            .collect();
        for (start, number) in gone {
            state.mappings.remove(&start);
            views::hide(start);
            let forget = match state.physicals.get_mut(&number) {
                Some(physical) => {
                    physical.mapped.remove(&start);
                    physical.references == 0 && physical.mapped.is_empty()
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
            done(&Request::AccessSet {
                device: device(access.location.number)?.ordinal,
                address: address as u64,
                bytes: bytes as u64,
                access: allowed(access.flags)?,
            })?;
            let mut state = lock(&STATE);
            let number = access.location.number;
            for (_, mapping) in state.mappings.range_mut(address..address.saturating_add(bytes)) {
                mapping.access.insert(number, access.flags);
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
        let given = mapping(address, |mapping| mapping.access.get(&location.number).copied())?;
        flags.set(given.unwrap_or(0).into())
    }

    fn cuMemRetainAllocationHandle(handle: Out<Address>, address: Address) {
        handle.check()?;
        let number = mapping(address, |mapping| mapping.physical)?;
        let known = of_any_handle(opaque::encode(Kind::Physical, number))?;
        let (_, properties, bytes, is_multicast) = known;
        handle.set(retain(number, properties, bytes, is_multicast)?)
    }

    fn cuMemGetAllocationPropertiesFromHandle(answer: Out<Properties>, handle: Address) {
        answer.set(of_handle(handle)?.1)
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
