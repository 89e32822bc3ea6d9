//! Accesses to surfaces: addresses are found here, and accessed as global memory.

use lockstep_isa::addresses::Addresses;
use lockstep_isa::lanes::ScratchRegister;
use lockstep_isa::memory::{
    Action, AddressOperand, CachePolicy, Element, MemoryOperation, Space, Strength,
};
use lockstep_isa::texture::sample::Request;
use lockstep_isa::texture::surface::{self, Place};
use lockstep_isa::texture::{Bounds, TextureAction, TextureOperation, format};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Instruction, Mask, Operand};

use super::find;
use crate::fault::FaultKind;
use crate::sm::lsu::access::at_addresses;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// No address, because it is known already.
const KNOWN: AddressOperand = AddressOperand {
    base: Operand::None,
    wide: true,
    shift: 0,
    uniform: Operand::None,
    uniform_wide: false,
    offset: 0,
};

/// Cycles that a warp takes the unit, as `timing.cu` found on an H200.
const WAVEFRONTS: u16 = 4;

/// Loads, stores and reductions of all lanes.
pub(super) fn access(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &TextureOperation,
    execute: Mask,
    handles: &[u32; LANES],
    requests: &[Request; LANES],
) -> Result<(), Problem> {
    let mut places = [0; LANES];
    let (mut inside, mut outside): (Mask, Mask) = (0, 0);
    for lane in lanes_of(execute) {
        let object = find(site, lane, handles[lane])?;
        let texel = object.format.bytes();
        let (bytes, bounds, texels) = match operation.action {
            TextureAction::Load { bytes, bounds, .. }
            | TextureAction::Store { bytes, bounds, .. } => (u32::from(bytes), bounds, false),
            TextureAction::Reduce {
                kind,
                bounds,
                texels,
                ..
            } => (kind.bytes(), bounds, texels),
            TextureAction::StoreFormatted { bounds, .. } => (texel, bounds, true),
            _ => (texel, Bounds::Trap, true),
        };
        let request = surface::Request {
            coordinates: requests[lane].coordinates.map(|word| word as i32),
            layer: requests[lane].layer,
            bytes,
            texels,
        };
        match surface::place(object, operation.geometry, &request, bounds) {
            Place::At(address) => {
                places[lane] = address;
                inside |= 1 << lane;
            }
            Place::Nowhere => outside |= 1 << lane,
            Place::Outside => {
                let [x, y, z] = request.coordinates;
                let kind = FaultKind::IllegalAddress {
                    what: format!(
                        "surface access at ({x}, {y}, {z}), layer {}, which is outside,",
                        request.layer
                    ),
                    address: object.levels[0].address,
                    bytes,
                    nearest: site.port.contents.nearest(object.levels[0].address),
                };
                return Err(Problem { lane, kind });
            }
        }
    }
    let access = match operation.action {
        TextureAction::StoreFormatted { .. } => {
            return store_formatted(site, instruction, operation, inside, handles, &places);
        }
        _ => memory_operation(operation),
    };
    gather(site, instruction, operation, &access);
    if let Action::Load = access.action {
        for lane in lanes_of(outside) {
            for register in operation.data.iter().flatten() {
                for word in 0..operation.words() {
                    site.warp.registers[usize::from(register + word)].0[lane] = 0;
                }
            }
        }
    }
    finish(site, &access, inside, places)
}

/// The access to global memory that it is.
fn memory_operation(operation: &TextureOperation) -> MemoryOperation {
    let (action, element, elements) = match operation.action {
        TextureAction::Load { bytes, element, .. } => (Action::Load, element, bytes / element),
        TextureAction::Store { bytes, element, .. } => (Action::Store, element, bytes / element),
        TextureAction::Reduce {
            operation, kind, ..
        } => (Action::Reduce(operation, kind), kind.bytes() as u8, 1),
        _ => (Action::Store, 4, 1),
    };
    MemoryOperation {
        space: Space::Global,
        action,
        element: match element {
            1 => Element::U8,
            2 => Element::U16,
            4 => Element::B32,
            8 => Element::B64,
            _ => Element::B128,
        },
        elements,
        address: KNOWN,
        data: operation.data,
        values: operation.values,
        strength: Strength::Weak,
        cache: CachePolicy::Default,
    }
}

/// Copies what is written to the port, element by element, word by word.
fn gather(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &TextureOperation,
    access: &MemoryOperation,
) {
    let words = operation.words();
    let lanes = site.warp.lanes(site.context, instruction);
    for (element, value) in operation.values.iter().enumerate() {
        if element >= usize::from(access.elements.max(1)) {
            break;
        }
        for word in 0..words {
            let place = element * usize::from(words) + usize::from(word);
            if let Some(row) = site.port.values.get_mut(place) {
                let mut room = ScratchRegister::uninit();
                *row = *lanes.raw_at(*value, word, &mut room);
            }
        }
    }
}

/// Accesses global memory for the lanes that are inside.
fn finish(
    site: &mut Site<'_, '_>,
    access: &MemoryOperation,
    inside: Mask,
    mut places: [u64; LANES],
) -> Result<(), Problem> {
    if inside == 0 {
        return Ok(());
    }
    let bytes = access.element.bytes() * u32::from(access.elements.max(1));
    // Lanes that take no part must not make the addresses look scattered.
    let first = places[inside.trailing_zeros() as usize];
    for (lane, place) in places.iter_mut().enumerate() {
        if inside >> lane & 1 == 0 {
            *place = first;
        }
    }
    let addresses = Addresses::of(places, bytes);
    let bad = addresses.misaligned(inside, bytes);
    if bad != 0 {
        let lane = bad.trailing_zeros() as usize;
        let kind = FaultKind::Misaligned {
            what: "surface access".into(),
            address: places[lane],
            bytes,
        };
        return Err(Problem { lane, kind });
    }
    at_addresses(site, access, inside, &addresses)?;
    // The unit finds the addresses of eight lanes in a cycle.
    site.port.done.wavefronts = site.port.done.wavefronts.max(WAVEFRONTS);
    Ok(())
}

/// Stores values in the format of the surface. Lanes whose surfaces have texels of one size go together.
fn store_formatted(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &TextureOperation,
    inside: Mask,
    handles: &[u32; LANES],
    places: &[u64; LANES],
) -> Result<(), Problem> {
    let lanes = site.warp.lanes(site.context, instruction);
    let mut texels = [[0u8; 16]; LANES];
    let mut sizes = [0; LANES];
    for lane in lanes_of(inside) {
        let values = operation.values.map(|value| {
            let mut room = ScratchRegister::uninit();
            lanes.raw_at(value, 0, &mut room).0[lane]
        });
        if let Some(object) = site.context.launch.textures.get(handles[lane]) {
            sizes[lane] = format::encode(object.format, values, &mut texels[lane]);
        }
    }
    for bytes in [1u8, 2, 4, 8, 16] {
        let together = lanes_of(inside)
            .filter(|lane| sizes[*lane] == usize::from(bytes))
            .fold(0, |mask: Mask, lane| mask | 1 << lane);
        if together == 0 {
            continue;
        }
        for (word, row) in site.port.values.iter_mut().take(4).enumerate() {
            for lane in lanes_of(together) {
                let (words, _) = texels[lane].as_chunks::<4>();
                row.0[lane] = u32::from_le_bytes(words[word]);
            }
        }
        let mut store = operation.clone();
        store.action = TextureAction::Store {
            bytes,
            element: bytes,
            bounds: Bounds::Zero,
        };
        finish(site, &memory_operation(&store), together, *places)?;
    }
    Ok(())
}
