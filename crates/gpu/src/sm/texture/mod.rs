//! The texture unit of one SM: samples, gathers, queries, and accesses to surfaces.
//!
//! Values move at issue. Texels are read as weak loads read them: from the contents and the SM's own log; an access
//! to a surface is an access to global memory once its addresses are known. What a sample costs is in
//! `timing/memory_cost.rs`, which learns from [`Traffic::Texture`] for how long the unit is busy, and the sectors
//! from the port.
//!
//! Left out: block-linear layouts (arrays lie in memory row by row), anisotropic filters, the cache of headers
//! (objects are looked up in no time), and translation of managed pages.
//!
//! Start reading at `execute`.

mod surface;

use lockstep_isa::lanes::ScratchRegister;
use lockstep_isa::texture::sample::{self, Request};
use lockstep_isa::texture::{TextureAction, TextureOperation, query};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Instruction, Mask, Operand};
use lockstep_units::{FilterMode, TextureObject};

use super::problem::Problem;
use super::site::Site;
use crate::fault::FaultKind;
use crate::memory::SECTOR;
use crate::sm::lsu::outcome::{Done, Traffic};

/// Carries out an instruction of the texture unit for the lanes under its guard.
///
/// # Errors
/// What is wrong with the object or the address of which lane.
#[inline(never)]
pub(super) fn execute(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &TextureOperation,
) -> Result<(), Problem> {
    site.port.done = Done::NOTHING;
    let lanes = site.warp.lanes(site.context, instruction);
    let execute = lanes.execute;
    if execute == 0 {
        return Ok(());
    }
    let mut requests = [Request::default(); LANES];
    let mut handles = [0; LANES];
    for lane in lanes_of(execute) {
        let word = |operand: Operand| {
            let mut room = ScratchRegister::uninit();
            lanes.raw_at(operand, 0, &mut room).0[lane]
        };
        handles[lane] = word(operation.handle);
        requests[lane] = Request {
            coordinates: operation.coordinates.map(word),
            layer: word(operation.layer),
            level: word(operation.level),
            gradients: operation.gradients.map(word),
            offsets: match operation.packed_offsets {
                None => operation.offsets.map(|operand| word(operand) as i32),
                Some(packed) => std::array::from_fn(|dimension| {
                    let place = u32::from(packed.shift) + dimension as u32 * u32::from(packed.step);
                    let unused = 32 - u32::from(packed.bits);
                    let bits = word(packed.word).checked_shr(place).unwrap_or(0);
                    ((bits << unused) as i32) >> unused
                }),
            },
        };
    }
    match operation.action {
        TextureAction::Sample { .. } | TextureAction::Gather { .. } => {
            samples(site, operation, execute, &handles, &requests)
        }
        TextureAction::Query(what) => {
            for lane in lanes_of(execute) {
                let object = find(site, lane, handles[lane])?;
                let words = query::query(object, what, requests[lane].level);
                deliver(site, operation, lane, words);
            }
            site.port.done.traffic = Traffic::Texture { quarters: 4 };
            site.port.texels.clear();
            Ok(())
        }
        _ => surface::access(site, instruction, operation, execute, &handles, &requests),
    }
}

/// The object of a handle.
fn find<'a>(site: &Site<'a, '_>, lane: usize, handle: u32) -> Result<&'a TextureObject, Problem> {
    site.context
        .launch
        .textures
        .get(handle)
        .ok_or_else(|| Problem {
            lane,
            kind: FaultKind::IllegalInstruction(format!(
                "{handle:#x} names no texture or surface; objects that were destroyed, or made after the \
                 launch, are not known to it"
            )),
        })
}

/// Writes the words of a lane to the registers that receive them.
fn deliver(site: &mut Site<'_, '_>, operation: &TextureOperation, lane: usize, words: [u32; 4]) {
    for (register, word) in operation.data.iter().zip(words) {
        if let Some(register) = register {
            site.warp.registers[usize::from(*register)].0[lane] = word;
        }
    }
}

/// Samples and gathers of all lanes.
fn samples(
    site: &mut Site<'_, '_>,
    operation: &TextureOperation,
    execute: Mask,
    handles: &[u32; LANES],
    requests: &[Request; LANES],
) -> Result<(), Problem> {
    let mut sectors = std::mem::take(&mut site.port.texels);
    sectors.clear();
    let mut answers = [[0; 4]; LANES];
    let mut cost = 0;
    for lane in lanes_of(execute) {
        let object = find(site, lane, handles[lane])?;
        let mut wrong = None;
        let port = &mut *site.port;
        let mut texels = 0u32;
        answers[lane] = sample::sample(
            object,
            operation.geometry,
            operation.action,
            &requests[lane],
            &mut |address, bytes| {
                texels += 1;
                if !port.holds(address, bytes as u64) {
                    wrong = wrong.or(Some(address));
                    return [0; 16];
                }
                let sector = address / SECTOR;
                sectors.push(sector);
                let within = (address % SECTOR) as usize;
                let mut texel = [0; 16];
                texel[..bytes].copy_from_slice(&port.sector(sector)[within..within + bytes]);
                texel
            },
        );
        if let Some(address) = wrong {
            let bytes = object.format.bytes();
            let kind = FaultKind::IllegalAddress {
                what: "texture read".into(),
                address,
                bytes,
                nearest: site.port.contents.nearest(address),
            };
            return Err(Problem { lane, kind });
        }
        cost = cost.max(lane_cost(object, operation, texels));
    }
    sectors.sort_unstable();
    sectors.dedup();
    let in_flight = &site.port.in_flight;
    let overtakes = !site.warp.released
        && !in_flight.is_empty()
        && sectors.iter().any(|sector| in_flight.holds(*sector));
    let count = sectors.len() as u64;
    site.port.texels = sectors;
    if overtakes {
        site.port.done.order_first = true;
        return Ok(());
    }
    for lane in lanes_of(execute) {
        deliver(site, operation, lane, answers[lane]);
    }
    site.block.counters.l1_sectors += count;
    site.port.done.traffic = Traffic::Texture { quarters: cost };
    Ok(())
}

/// Quarters of a cycle for which a warp keeps the unit busy, as `timing.cu` found on an H200: 4 cycles for texels by
/// index, 8 for a point or for a filter over four texels of up to 32 bits. Slices and levels take as long again, and so
/// do wide texels: by what is read of them, and a filter by half of what they have at least. Gathered words take 16.
fn lane_cost(object: &TextureObject, operation: &TextureOperation, texels: u32) -> u16 {
    const CYCLE: u32 = 4;
    let sampler = object.sampler.as_ref().unwrap_or(&sample::PLAIN);
    let format = object.format;
    let received = operation.data.iter().flatten().count() as u32;
    let read = received.min(u32::from(format.channels)) * u32::from(format.bits) / 8;
    let cycles = match operation.action {
        TextureAction::Sample { integer: true, .. } => 4 * (read / 8).max(1),
        TextureAction::Gather { .. } => 8 * (u32::from(format.bits) / 16).max(1),
        _ if sampler.filter == FilterMode::Linear => {
            let wide = (read / 4).max(format.bytes() / 8).max(1);
            8 * texels.div_ceil(4).max(1) * wide
        }
        _ => 8 * (read / 8).max(1),
    };
    (CYCLE * cycles).min(u32::from(u16::MAX)) as u16
}
