//! Forms of operands that change what an instruction reads: numbers that are the upper word of 64 bits, and halves
//! of a register.

use lockstep_isa::lanes::{ConstantBanks, Identity};
use lockstep_isa::sass::execute::{Frame, bind, bind::PREDICATES};
use lockstep_isa::sass::{Architecture, Word, decode};
use lockstep_isa::{Convergence, Lanes, Mask, Operation, WarpRegister};

/// What the instruction leaves in R8 and R9 when R0 to R7 are `registers`.
fn run(sm: u32, word: u128, registers: [u32; 8]) -> [u32; 2] {
    let architecture = Architecture::from_sm(sm).expect("a known architecture");
    let decoded = decode(architecture, 0, Word(word)).expect("a known encoding");
    let frame = Frame {
        uniform_registers: 64,
        section: 0,
        length: 1,
        architecture: sm,
    };
    let instruction = bind(&decoded, &frame).expect("its operands fit");
    let Operation::Compute(compute) = instruction.operation else {
        panic!("{decoded} does not compute")
    };
    let mut all = vec![WarpRegister::ZERO; 64 + 16];
    for (index, value) in registers.into_iter().enumerate() {
        all[64 + index] = WarpRegister::splat(value);
    }
    let mut lanes = Lanes {
        registers: &mut all,
        predicates: &mut [0; PREDICATES as usize],
        convergence: &mut Convergence::new(Mask::MAX, 0, 16, false),
        constants: &ConstantBanks::default(),
        identity: &Identity::default(),
        active: Mask::MAX,
        execute: Mask::MAX,
    };
    compute(&mut lanes, &instruction);
    [all[64 + 8].0[31], all[64 + 9].0[31]]
}

fn double([low, high]: [u32; 2]) -> f64 {
    f64::from_bits(u64::from(low) | u64::from(high) << 32)
}

fn single([low, _]: [u32; 2]) -> f32 {
    f32::from_bits(low)
}

/// Values of an H200, for the architectures whose encoding is the same.
#[test]
fn numbers_of_64_bits_are_upper_words() {
    for sm in [70, 75, 80, 86, 89, 90] {
        // F2F.F32.F64.RZ R8, 3.25
        let value = run(sm, 0x000e_6200_0030_d000_400a_0000_0008_7910, [0; 8]);
        assert_eq!(single(value), 3.25);
        // F2F.F16.F64 R8, -1.5
        let value = run(sm, 0x000e_6200_0030_0800_bff8_0000_0008_7910, [0; 8]);
        assert_eq!(value[0] & 0xffff, 0xbe00);
        // I2F.U64.RZ R8, 0x400
        let value = run(sm, 0x000e_a200_0030_d000_0000_0400_0008_7912, [0; 8]);
        assert_eq!(single(value), 4_398_046_511_104.0);
        // I2F.F64.S64.RZ R8, 0x5
        let value = run(sm, 0x000f_e200_0030_dc00_0000_0005_0008_7912, [0; 8]);
        assert_eq!(double(value), 21_474_836_480.0);
        // I2F.F64.S64.RZ R8, -0x5
        let value = run(sm, 0x000f_e200_0030_dc00_ffff_fffb_0008_7912, [0; 8]);
        assert_eq!(double(value), -21_474_836_480.0);
        // F2I.S64.F64.CEIL R8, 1000.5
        let value = run(sm, 0x000e_2200_0030_9900_408f_4400_0008_7911, [0; 8]);
        assert_eq!(value, [1001, 0]);
        // F2F.F64.F16 R8, 1.5
        let value = run(sm, 0x000e_6200_0010_1800_0000_3e00_0008_7910, [0; 8]);
        assert_eq!(double(value), 1.5);
    }
}

/// Values of an H200.
#[test]
fn upper_halves_are_converted_to_64_bits() {
    let halves = [0, 0, 0x4200_c500, 0, 0, 0, 0, 0];
    for sm in [70, 75, 80, 86, 89, 90] {
        // F2I.U64.F16.TRUNC R8, R2.H1
        let value = run(sm, 0x000e_b000_0010_d800_1000_0002_0008_7311, halves);
        assert_eq!(value, [3, 0]);
        // F2I.S64.F16.TRUNC R8, R2
        let value = run(sm, 0x000e_b000_0010_d900_0000_0002_0008_7311, halves);
        assert_eq!(value, [-5_i32 as u32, u32::MAX]);
        // F2F.F64.F16 R8, R2.H1
        let value = run(sm, 0x000e_3000_0010_1800_1000_0002_0008_7310, halves);
        assert_eq!(double(value), 3.0);
    }
}

#[test]
fn three_pairs_of_halves_have_a_smallest_and_a_largest() {
    // 1 and -2, 3 and -1, 2 and NaN.
    let pairs = [0xc000_3c00, 0xbc00_4200, 0x7e00_4000, 0, 0, 0, 0, 0];
    // VHMNMX R8, R0, R1, R2, PT
    const SMALLEST: u128 = 0x000f_ca00_0380_0002_0000_0001_0008_7247;
    assert_eq!(run(90, SMALLEST, pairs)[0], 0xc000_3c00);
    // VHMNMX R8, R0, R1, R2, !PT
    assert_eq!(run(90, SMALLEST | 1 << 90, pairs)[0], 0xbc00_4200);
    // VHMNMX.NAN R8, R0, R1, R2, PT
    assert_eq!(run(90, SMALLEST | 1 << 81, pairs)[0], 0x7fff_3c00);
    // VHMNMX R8, R0.H1_H1, -R1, |R2|.H0_H0, !PT
    let changed = SMALLEST | 3 << 74 | 1 << 63 | 1 << 83 | 2 << 76 | 1 << 90;
    assert_eq!(run(90, changed, pairs)[0], 0x4000_4000);
    // VHMNMX.BF16_V2 R8, R0, 1, -1, R2, PT
    let words = [0x4000_4000, 0, 0x3f80_bf00, 0, 0, 0, 0, 0];
    let number = SMALLEST & !0xeff_0000_0e00 | 0x800 | 1 << 85 | 0x3f80_bf80 << 32;
    assert_eq!(run(90, number, words)[0], 0x3f80_bf80);
}

#[test]
fn signs_of_registers_go_through_a_table() {
    for sm in [75, 80, 90] {
        let architecture = Architecture::from_sm(sm).expect("a known architecture");
        // PLOP3.LUT P1, PT, R14.SIGN, R4.SIGN, R3.SIGN, 0x2, 0x0
        let word = Word(0x000f_e400_03f2_0203_0000_0004_0e00_721f);
        let decoded = decode(architecture, 0, word).expect("a known encoding");
        assert_eq!(
            decoded.to_string(),
            "PLOP3.LUT P1, PT, R14.SIGN, R4.SIGN, R3.SIGN, 0x2, 0x0"
        );
    }
}

#[test]
fn four_bits_are_packed_below_the_rest() {
    for (sm, word) in [
        (75, 0x000f_e400_0000_7203_0000_0001_0008_7239),
        (80, 0x000f_e400_0000_7203_0000_0001_0008_7239),
        (90, 0x000f_c600_0000_7603_0000_0001_0008_7239),
    ] {
        // I2IP.S4.S32.SAT R8, R0, R1, R3.24
        let value = run(sm, word, [-3_i32 as u32, 100, 0, 0x00ab_cdef, 0, 0, 0, 0]);
        assert_eq!(value[0], 0xabcd_efd7, "sm_{sm}");
    }
}
