//! Registering memory of the program.
//!
//! Kernels reach registered memory by the program's own addresses. Its pages are therefore moved
//! into the window, where the simulator sees them, and appear at their old addresses as well. Pages
//! that cannot move, because others share them or they may not be written, stay where they are:
//! copies work as from ordinary memory, and kernels cannot reach them.

use super::register_pages::{PAGE, Run, can_move};
use crate::boundary::{driver, runtime};
use crate::call::note;
use crate::context::{current, current_for_runtime};
use crate::fair_mutex::FairMutex;
use crate::options;
use crate::process::lock;
use crate::types::Address;
use lockstep_protocol::layout::region_of;
use lockstep_protocol::options::Group;
use lockstep_protocol::{ContextHandle, CuResult, UnsupportedManner};
use std::collections::BTreeMap;
use std::ops::Range;

/// What the program registered.
struct Registered {
    /// First address to length.
    ranges: BTreeMap<Address, usize>,
    /// Pages that were moved, by their first address, and how many ranges use them.
    runs: BTreeMap<Address, (Run, usize)>,
}

static REGISTERED: FairMutex<Registered> = FairMutex::new(Registered {
    ranges: BTreeMap::new(),
    runs: BTreeMap::new(),
});

/// `cudaHostRegisterDefault`.
const DEFAULT: u32 = 0;

/// The whole pages that hold a range.
fn pages(address: Address, bytes: usize) -> Range<Address> {
    address - address % PAGE..(address + bytes).next_multiple_of(PAGE)
}

impl Registered {
    /// Notes a range and the pages of it that were moved before; what is left to move, in pieces.
    fn insert(&mut self, address: Address, bytes: usize) -> Result<Vec<Range<Address>>, CuResult> {
        let end = address + bytes;
        let overlap = self.ranges.range(..end).next_back();
        if overlap.is_some_and(|(start, length)| start + length > address) {
            return Err(CuResult::HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.ranges.insert(address, bytes);
        let whole = pages(address, bytes);
        let mut left = Vec::new();
        let mut from = whole.start;
        for (start, (run, users)) in self.runs.range_mut(..whole.end) {
            let run_end = start + run.bytes;
            if run_end <= whole.start {
                continue;
            }
            *users += 1;
            if from < *start {
                left.push(from..*start);
            }
            from = run_end;
        }
        if from < whole.end {
            left.push(from..whole.end);
        }
        Ok(left)
    }

    /// Forgets a range; the pages that nobody uses any more.
    fn remove(&mut self, address: Address) -> Result<Vec<Run>, CuResult> {
        let Some(bytes) = self.ranges.remove(&address) else {
            // A place inside of a range is registered, but no range begins there.
            return Err(if self.holds(address) {
                CuResult::INVALID_VALUE
            } else {
                CuResult::HOST_MEMORY_NOT_REGISTERED
            });
        };
        let whole = pages(address, bytes);
        let mut unused = Vec::new();
        for (start, (run, users)) in self.runs.range_mut(..whole.end) {
            if start + run.bytes > whole.start {
                *users -= 1;
                if *users == 0 {
                    unused.push(*start);
                }
            }
        }
        let removed = unused.iter().filter_map(|start| self.runs.remove(start));
        Ok(removed.map(|(run, _)| run).collect())
    }

    fn holds(&self, address: Address) -> bool {
        let before = self.ranges.range(..=address).next_back();
        before.is_some_and(|(start, length)| address - start < *length)
    }
}

fn register(
    context: ContextHandle,
    address: Address,
    bytes: usize,
    flags: u32,
) -> Result<(), CuResult> {
    let end = address.checked_add(bytes).ok_or(CuResult::INVALID_VALUE)?;
    let past = end.checked_add(PAGE);
    if address == 0 || bytes == 0 || past.is_none() || region_of(address as u64).is_some() {
        return Err(CuResult::INVALID_VALUE);
    }
    options::accept_flags(Group::HostRegistration, flags)?;
    let mut registered = lock(&REGISTERED);
    for piece in registered.insert(address, bytes)? {
        if !can_move(&piece) {
            note(
                "registered host memory whose pages are shared or read-only",
                UnsupportedManner::Option,
            );
            continue;
        }
        match Run::move_to_window(context, &piece) {
            Ok(run) => {
                registered.runs.insert(piece.start, (run, 1));
            }
            Err(error) => {
                let moved = registered.remove(address);
                moved?.into_iter().for_each(|run| run.move_back(context));
                return Err(error);
            }
        }
    }
    drop(registered);
    options::accept(Group::HostRegistration, DEFAULT)
}

fn unregister(context: ContextHandle, address: Address) -> Result<(), CuResult> {
    let unused = lock(&REGISTERED).remove(address)?;
    // What kernels still write must land before the pages go back.
    if !unused.is_empty() {
        crate::context::synchronize(context)?;
    }
    unused.into_iter().for_each(|run| run.move_back(context));
    Ok(())
}

/// Whether an address lies in registered memory.
pub fn is_registered(address: Address) -> bool {
    lock(&REGISTERED).holds(address)
}

/// The device pointer of memory outside the window: its own address, if it is registered and lies
/// where kernels can reach it.
pub fn device_pointer(address: Address) -> Result<Address, CuResult> {
    let registered = lock(&REGISTERED);
    if !registered.holds(address) {
        return Err(CuResult::INVALID_VALUE);
    }
    let before = registered.runs.range(..=address).next_back();
    if before.is_some_and(|(start, (run, _))| address - start < run.bytes) {
        return Ok(address);
    }
    drop(registered);
    note(
        "device pointer of registered host memory whose pages are shared or read-only",
        UnsupportedManner::Option,
    );
    Err(CuResult::NOT_SUPPORTED)
}

runtime! {
    fn cudaHostRegister(address: Address, bytes: usize, flags: u32) {
        let context = current_for_runtime()?;
        Ok(register(context, address, bytes, flags)?)
    }

    fn cudaHostUnregister(address: Address) {
        let context = current_for_runtime()?;
        Ok(unregister(context, address)?)
    }
}

driver! {
    fn cuMemHostRegister_v2(address: Address, bytes: usize, flags: u32) {
        register(current()?, address, bytes, flags)
    }

    fn cuMemHostUnregister(address: Address) {
        unregister(current()?, address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> Registered {
        Registered {
            ranges: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    #[test]
    fn ranges_neither_overlap_nor_vanish_twice() {
        let mut registered = nothing();
        assert!(registered.insert(0x10000, 0x1000).is_ok());
        for (address, bytes) in [(0x10800, 0x1000), (0xf000, 0x1001)] {
            assert_eq!(
                registered.insert(address, bytes),
                Err(CuResult::HOST_MEMORY_ALREADY_REGISTERED)
            );
        }
        assert!(registered.insert(0xf000, 0x1000).is_ok());
        assert!(registered.holds(0x10fff) && !registered.holds(0x11000));
        assert!(matches!(
            registered.remove(0x10010),
            Err(CuResult::INVALID_VALUE)
        ));
        assert!(registered.remove(0x10000).is_ok());
        assert!(matches!(
            registered.remove(0x10000),
            Err(CuResult::HOST_MEMORY_NOT_REGISTERED)
        ));
    }

    /// What is left to move of a range, as first addresses and ends.
    fn left(registered: &mut Registered, address: Address) -> Vec<(Address, Address)> {
        let left = registered.insert(address, 0x1000).unwrap();
        left.into_iter()
            .map(|piece| (piece.start, piece.end))
            .collect()
    }

    #[test]
    fn neighbours_share_a_page() {
        let mut registered = nothing();
        assert_eq!(left(&mut registered, 0x10100), [(0x10000, 0x12000)]);
        registered
            .runs
            .insert(0x10000, (Run::of(0x10000, 0x2000), 1));
        // The second page is there; the third is not.
        assert_eq!(left(&mut registered, 0x11200), [(0x12000, 0x13000)]);
        registered
            .runs
            .insert(0x12000, (Run::of(0x12000, 0x1000), 1));
        let back = registered.remove(0x10100).unwrap();
        assert!(back.is_empty(), "the neighbour still uses them");
        let back = registered.remove(0x11200).unwrap();
        assert_eq!(back.len(), 2);
    }
}
