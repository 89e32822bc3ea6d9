//! The threads' own memory.

use lockstep_isa::Mask;
use lockstep_isa::memory::{Action, MemoryOperation, Space};
use lockstep_isa::row::{LANES, lanes_of};

use super::values::{deliver, emit, give_old, modify};
use super::{Done, Traffic, access_bytes, illegal};
use crate::sm::site::{Problem, Site};

pub(super) fn local(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<Done, Problem> {
    let bytes = access_bytes(operation);
    if let Some(lane) =
        lanes_of(execute).find(|lane| !site.warp.local.holds(addresses[*lane], bytes))
    {
        return Err(illegal(
            site,
            operation,
            lane,
            addresses[lane],
            Space::Local,
        ));
    }
    let warp = &mut *site.warp;
    let memory = &mut warp.local;
    match operation.action {
        Action::Load => deliver(
            &mut warp.registers,
            operation,
            execute,
            addresses,
            |lane, address| memory.word(lane, address as u32),
        ),
        Action::Store => emit(
            &site.port.values,
            operation,
            execute,
            addresses,
            |lane, address, value, size| {
                if size == 4 {
                    memory.write_word(lane, address as u32, value);
                } else {
                    memory.write(lane, address as u32, &value.to_le_bytes()[..size]);
                }
            },
        ),
        Action::Atomic(function, kind) | Action::Reduce(function, kind) => {
            for lane in lanes_of(execute) {
                let mut cell = [0; 8];
                let bytes = kind.bytes() as usize;
                memory.read(lane, addresses[lane] as u32, &mut cell[..bytes]);
                let old = u64::from_le_bytes(cell);
                let new = modify(&site.port.values, function, kind, lane, 0, old)?;
                memory.write(lane, addresses[lane] as u32, &new.to_le_bytes()[..bytes]);
                give_old(&mut warp.registers, operation, lane, 0, kind, old);
            }
        }
        _ => {}
    }
    site.block.counters.global_sectors += 4;
    Ok(Done {
        traffic: Traffic::Local,
        ..Done::NOTHING
    })
}
