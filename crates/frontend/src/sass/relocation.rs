//! NVIDIA's relocation types: what they are called and which bits they write.
//!
//! Listed are those that ptxas 11 to 13 and nvlink leave in what is loaded: code, constant banks
//! and variables. Names are those that `cuobjdump -elf` prints.

/// Some bits of an address and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First bit in the place.
    pub low: u8,
    /// Width of the field in bits.
    pub width: u8,
    /// First bit of the address.
    pub from: u8,
}

/// What a relocation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes an address into a place of this many bytes.
    Address(u8, &'static [Part]),
    /// Leaves the place as the compiler wrote it: alternatives for drivers we do not imitate.
    Leave,
}

/// One type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocationKind {
    /// Number in the file.
    pub number: u32,
    /// NVIDIA's name.
    pub name: &'static str,
    /// The patch that it asks for.
    pub action: Action,
}

const fn part(low: u8, width: u8, from: u8) -> Part {
    Part { low, width, from }
}

/// The type that asks for the index of a texture reference.
pub const TEXTURE_INDEX: u32 = 6;

/// All known types, by number.
pub const RELOCATION_KINDS: &[RelocationKind] = &[
    row(0, "R_CUDA_NONE", Action::Leave),
    row(1, "R_CUDA_32", Action::Address(4, &[part(0, 32, 0)])),
    row(2, "R_CUDA_64", Action::Address(8, &[part(0, 64, 0)])),
    // Generic addresses: a variable in global memory has one only.
    row(3, "R_CUDA_G32", Action::Address(4, &[part(0, 32, 0)])),
    row(4, "R_CUDA_G64", Action::Address(8, &[part(0, 64, 0)])),
    // The index of a texture reference, in a word of constant bank 0.
    row(
        TEXTURE_INDEX,
        "R_CUDA_TEX_HEADER_INDEX",
        Action::Address(4, &[part(0, 32, 0)]),
    ),
    // What a pointer to a function holds: since Volta the address of its code.
    row(
        34,
        "R_CUDA_FUNC_DESC_32",
        Action::Address(4, &[part(0, 32, 0)]),
    ),
    row(
        35,
        "R_CUDA_FUNC_DESC_64",
        Action::Address(8, &[part(0, 64, 0)]),
    ),
    // An instruction's number at 32, whole or by halves.
    row(
        55,
        "R_CUDA_ABS32_32",
        Action::Address(16, &[part(32, 32, 0)]),
    ),
    row(
        56,
        "R_CUDA_ABS32_LO_32",
        Action::Address(16, &[part(32, 32, 0)]),
    ),
    row(
        57,
        "R_CUDA_ABS32_HI_32",
        Action::Address(16, &[part(32, 32, 32)]),
    ),
    // The target of an absolute call; sm_90 splits it.
    row(
        58,
        "R_CUDA_ABS47_34",
        Action::Address(16, &[part(34, 47, 2)]),
    ),
    row(
        75,
        "R_CUDA_ABS55_16_34",
        Action::Address(16, &[part(16, 8, 2), part(34, 47, 10)]),
    ),
    row(
        61,
        "R_CUDA_FUNC_DESC32_32",
        Action::Address(16, &[part(32, 32, 0)]),
    ),
    row(
        62,
        "R_CUDA_FUNC_DESC32_LO_32",
        Action::Address(16, &[part(32, 32, 0)]),
    ),
    row(
        63,
        "R_CUDA_FUNC_DESC32_HI_32",
        Action::Address(16, &[part(32, 32, 32)]),
    ),
    row(70, "R_CUDA_32_LO", Action::Address(4, &[part(0, 32, 0)])),
    row(71, "R_CUDA_32_HI", Action::Address(4, &[part(0, 32, 32)])),
    // YIELD on Volta, which a driver may turn into a NOP.
    row(68, "R_CUDA_YIELD_OPCODE9_0", Action::Leave),
    row(69, "R_CUDA_YIELD_CLEAR_PRED4_87", Action::Leave),
    row(72, "R_CUDA_UNUSED_CLEAR32", Action::Leave),
    row(73, "R_CUDA_UNUSED_CLEAR64", Action::Leave),
    // One byte of an address, where data is not aligned.
    row(76, "R_CUDA_8_0", Action::Address(1, &[part(0, 8, 0)])),
    row(77, "R_CUDA_8_8", Action::Address(1, &[part(0, 8, 8)])),
    row(78, "R_CUDA_8_16", Action::Address(1, &[part(0, 8, 16)])),
    row(79, "R_CUDA_8_24", Action::Address(1, &[part(0, 8, 24)])),
    row(80, "R_CUDA_8_32", Action::Address(1, &[part(0, 8, 32)])),
    row(81, "R_CUDA_8_40", Action::Address(1, &[part(0, 8, 40)])),
    row(82, "R_CUDA_8_48", Action::Address(1, &[part(0, 8, 48)])),
    row(83, "R_CUDA_8_56", Action::Address(1, &[part(0, 8, 56)])),
    row(84, "R_CUDA_G8_0", Action::Address(1, &[part(0, 8, 0)])),
    row(85, "R_CUDA_G8_8", Action::Address(1, &[part(0, 8, 8)])),
    row(86, "R_CUDA_G8_16", Action::Address(1, &[part(0, 8, 16)])),
    row(87, "R_CUDA_G8_24", Action::Address(1, &[part(0, 8, 24)])),
    row(88, "R_CUDA_G8_32", Action::Address(1, &[part(0, 8, 32)])),
    row(89, "R_CUDA_G8_40", Action::Address(1, &[part(0, 8, 40)])),
    row(90, "R_CUDA_G8_48", Action::Address(1, &[part(0, 8, 48)])),
    row(91, "R_CUDA_G8_56", Action::Address(1, &[part(0, 8, 56)])),
    row(
        92,
        "R_CUDA_FUNC_DESC_8_0",
        Action::Address(1, &[part(0, 8, 0)]),
    ),
    row(
        93,
        "R_CUDA_FUNC_DESC_8_8",
        Action::Address(1, &[part(0, 8, 8)]),
    ),
    row(
        94,
        "R_CUDA_FUNC_DESC_8_16",
        Action::Address(1, &[part(0, 8, 16)]),
    ),
    row(
        95,
        "R_CUDA_FUNC_DESC_8_24",
        Action::Address(1, &[part(0, 8, 24)]),
    ),
    row(
        96,
        "R_CUDA_FUNC_DESC_8_32",
        Action::Address(1, &[part(0, 8, 32)]),
    ),
    row(
        97,
        "R_CUDA_FUNC_DESC_8_40",
        Action::Address(1, &[part(0, 8, 40)]),
    ),
    row(
        98,
        "R_CUDA_FUNC_DESC_8_48",
        Action::Address(1, &[part(0, 8, 48)]),
    ),
    row(
        99,
        "R_CUDA_FUNC_DESC_8_56",
        Action::Address(1, &[part(0, 8, 56)]),
    ),
];

const fn row(number: u32, name: &'static str, action: Action) -> RelocationKind {
    RelocationKind {
        number,
        name,
        action,
    }
}

/// The type with this number.
#[must_use]
pub fn kind(number: u32) -> Option<&'static RelocationKind> {
    RELOCATION_KINDS.iter().find(|kind| kind.number == number)
}

/// Writes `value` plus the addend into `place`. Without an addend of its own, a relocation adds
/// what the place holds.
pub fn patch(parts: &[Part], place: &mut [u8], value: u64, addend: Option<i64>) {
    let mut bytes = [0; 16];
    bytes[..place.len()].copy_from_slice(place);
    let mut word = u128::from_le_bytes(bytes);
    let ones = |width: u8| u128::MAX >> (128 - u32::from(width));
    let held = parts.iter().fold(0, |held, part| {
        held | ((word >> part.low & ones(part.width)) as u64) << part.from
    });
    let value = u128::from(value.wrapping_add(addend.map_or(held, |addend| addend as u64)));
    for part in parts {
        let mask = ones(part.width) << part.low;
        word = word & !mask | (value >> part.from) << part.low & mask;
    }
    place.copy_from_slice(&word.to_le_bytes()[..place.len()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(number: u32, place: u128, value: u64, addend: Option<i64>) -> u128 {
        let Action::Address(bytes, parts) = kind(number).expect("a known type").action else {
            panic!("a type that writes")
        };
        let mut place = place.to_le_bytes();
        patch(parts, &mut place[..usize::from(bytes)], value, addend);
        u128::from_le_bytes(place)
    }

    #[test]
    fn halves_of_an_address_go_where_an_instruction_has_its_number() {
        let address = 0x1234_5678_9abc_def0;
        let low = patched(56, 0x7802, address, None);
        assert_eq!(low, 0x9abc_def0_0000_7802);
        assert_eq!(patched(57, 0x7802, address, None), 0x1234_5678_0000_7802);
        assert_eq!(patched(57, 0x7802, address, Some(0)), 0x1234_5678_0000_7802);
    }

    #[test]
    fn pointers_to_functions_and_generic_addresses_are_whole_addresses() {
        let address = 0x1234_5678_9abc_def0;
        for (number, alike) in [(62, 56), (63, 57), (61, 55), (4, 2), (35, 2), (3, 1)] {
            let expected = patched(alike, 0x7802, address, Some(0));
            assert_eq!(
                patched(number, 0x7802, address, Some(0)),
                expected,
                "{number}"
            );
        }
        let bytes = (0..8).map(|k| (patched(84 + k, 0, address, Some(0)) as u64) << (8 * k));
        assert_eq!(bytes.sum::<u64>(), address);
    }

    #[test]
    fn data_adds_what_it_holds() {
        assert_eq!(patched(2, 0x10, 0x7000_0000_0000, None), 0x7000_0000_0010);
        assert_eq!(
            patched(2, 0x10, 0x7000_0000_0000, Some(8)),
            0x7000_0000_0008
        );
    }

    #[test]
    fn hopper_splits_the_target_of_a_call() {
        use lockstep_isa::sass::{Architecture, Value, Word, decode};
        let call = 0x000f_ea00_03c0_0000_0000_0000_0000_7943;
        for (number, architecture) in [(58, Architecture::Sm80), (75, Architecture::Sm90)] {
            let word = patched(number, call, 0x0001_2345_6780, Some(0));
            let decoded = decode(architecture, 0, Word(word)).expect("a call");
            assert_eq!(
                decoded.operands[0].value,
                Value::AbsoluteTarget(0x0001_2345_6780)
            );
        }
    }
}
