//! The tables against a disassembler's text, and against arbitrary words.

use lockstep_isa::sass::{Architecture, Decoded, Modifier, Value, Word, decode};
use lockstep_isa::sass::{architecture::ARCHITECTURES, table::TABLE};
use proptest::prelude::*;

/// Rows of `tests/sass/nvdisasm.tsv`: architecture, address, word, text.
fn rows() -> impl Iterator<Item = (Architecture, u64, Word, &'static str)> {
    include_str!("sass/nvdisasm.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().expect("a row has four fields");
            let sm = next().parse().expect("an architecture is a number");
            let address = u64::from_str_radix(next(), 16).expect("an address is hexadecimal");
            let word = u128::from_str_radix(next(), 16).expect("a word is hexadecimal");
            let architecture = Architecture::from_sm(sm).expect("a known architecture");
            (architecture, address, Word(word), next())
        })
}

fn decoded(sm: u32, word: u128) -> Decoded {
    let architecture = Architecture::from_sm(sm).expect("a known architecture");
    decode(architecture, 0, Word(word)).expect("a known encoding")
}

#[test]
fn every_row_prints_as_the_disassembler_does() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for (architecture, address, word, expected) in rows() {
        let found = decode(architecture, address, word)
            .map_or_else(|error| error.to_string(), |decoded| decoded.to_string());
        compared += 1;
        if found.trim() != expected {
            wrong.push(format!(
                "{architecture} {:032x}: {expected} | {found}",
                word.0
            ));
        }
    }
    assert!(compared > 10_000, "the sample is gone: {compared} rows");
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_architecture_has_its_generation_of_opcodes() {
    let has = |sm, name| {
        let architecture = Architecture::from_sm(sm).expect("a known architecture");
        TABLE
            .operations(architecture)
            .any(|(_, opcode)| opcode.name() == name)
    };
    assert!(
        has(70, "HMMA") && !has(70, "UIADD3"),
        "sm_70 has no uniform datapath"
    );
    assert!(has(75, "UIADD3") && !has(75, "LDGSTS"));
    assert!(has(80, "LDGSTS") && !has(80, "QMMA") && has(89, "QMMA"));
    assert!(has(90, "HGMMA") && has(90, "UTMALDG") && !has(89, "HGMMA"));
    assert!(has(89, "IMNMX") && !has(90, "IMNMX") && has(90, "VIMNMX"));
}

#[test]
fn a_decoded_instruction_tells_what_executing_it_needs() {
    // @!P4 LDG.E.64 R24, desc[UR8][R8.64+0x4000]
    let load = decoded(90, 0x000f_e800_0c1e_1b00_0040_0008_0818_c981);
    assert_eq!(load.opcode.name(), "LDG");
    assert_eq!((load.guard.predicate, load.guard.negate), (4, true));
    assert_eq!(load.modifier("size"), Some(Modifier::N64));
    assert_eq!(load.operands[0].value, Value::Register(24));
    let Value::Memory(address) = load.operands[1].value else {
        panic!("a load has an address")
    };
    assert_eq!(
        (address.base, address.offset, address.descriptor),
        (Some(8), 0x4000, Some(8))
    );
    assert_eq!((load.control.stall, load.control.write_counter), (4, 7));

    // FFMA R65, -R3, R8, 1
    let fma = decoded(80, 0x000f_e200_0000_0108_3f80_0000_0341_7423);
    assert!(fma.operands[1].negate);
    let Value::Immediate(one) = fma.operands[3].value else {
        panic!("C is a number")
    };
    assert_eq!(f32::from_bits(one.bits as u32), 1.0);

    // BRA 0x1730, seen at 0x100
    let branch = decode(
        Architecture::Sm80,
        0x100,
        Word(0x000f_ea00_0380_0000_0000_1620_0000_7947),
    )
    .expect("a branch");
    assert_eq!(branch.operands[0].value, Value::Target(0x1730));
}

#[test]
fn an_unknown_word_names_itself() {
    let error = decode(Architecture::Sm80, 0x40, Word(0x1ff)).expect_err("no such opcode");
    assert_eq!(
        error.to_string(),
        "no sm_80 instruction is known for 0x000000000000000000000000000001ff at 0x40 \
         (opcode bits 0x1ff); if the program carries PTX, run it with --frontend ptx"
    );
}

/// Words near real ones, so that most of them reach the operands.
fn near_real_words() -> impl Strategy<Value = (Architecture, u128)> {
    let rows: Vec<_> = rows()
        .map(|(architecture, _, word, _)| (architecture, word.0))
        .collect();
    (0..rows.len(), prop::collection::vec(0..128u32, 0..6)).prop_map(move |(row, bits)| {
        let (architecture, word) = rows[row];
        (
            architecture,
            bits.iter().fold(word, |word, bit| word ^ 1 << bit),
        )
    })
}

proptest! {
    #[test]
    fn any_word_decodes_or_is_refused(word: u128, address: u64, index in 0..ARCHITECTURES.len()) {
        if let Ok(decoded) = decode(ARCHITECTURES[index], address, Word(word)) {
            prop_assert!(!decoded.to_string().is_empty());
        }
    }

    #[test]
    fn words_near_real_ones_decode_or_are_refused((architecture, word) in near_real_words()) {
        if let Ok(decoded) = decode(architecture, 0, Word(word)) {
            prop_assert!(!decoded.to_string().is_empty());
        }
    }

    /// Scheduling bits say when, never what.
    #[test]
    fn control_bits_do_not_change_the_text(row in 0..10_000usize, control in 0..1u32 << 17) {
        let (architecture, address, word, expected) = rows().nth(row).expect("enough rows");
        let mask = ((1u128 << 17) - 1) << 105;
        let word = Word(word.0 & !mask | u128::from(control) << 105);
        let text = decode(architecture, address, word).expect("a known row").to_string();
        prop_assert_eq!(text.trim(), expected);
    }
}
