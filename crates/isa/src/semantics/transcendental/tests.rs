use super::*;
use crate::semantics::float16::Kind;

const NAN: u32 = 0x7fff_ffff;

fn bits(value: f32) -> u32 {
    value.to_bits()
}

#[test]
fn special_values() {
    let operands = [0, SIGN, INFINITY, INFINITY | SIGN, 0x7f80_0001, 1, 1 | SIGN];
    let (zero, minus) = (0, SIGN);
    let (endless, least) = (INFINITY, INFINITY | SIGN);
    assert_eq!(
        reciprocal(&operands),
        [endless, least, zero, minus, NAN, endless, least]
    );
    assert_eq!(
        reciprocal_square_root(&operands),
        [endless, least, zero, NAN, NAN, endless, least]
    );
    assert_eq!(
        square_root(&operands),
        [zero, minus, endless, NAN, NAN, zero, minus]
    );
    assert_eq!(
        exponential(&operands),
        [ONE, ONE, endless, zero, NAN, ONE, ONE]
    );
    assert_eq!(
        logarithm(&operands),
        [least, least, endless, NAN, NAN, least, least]
    );
    assert_eq!(
        sine_of_turns(&operands),
        [zero, minus, NAN, NAN, NAN, zero, minus]
    );
    assert_eq!(
        cosine_of_turns(&operands),
        [ONE, ONE, NAN, NAN, NAN, ONE, ONE]
    );
    assert_eq!(
        hyperbolic_tangent(&operands),
        [zero, minus, ONE, ONE | SIGN, NAN, 1, 1 | SIGN]
    );
}

#[test]
fn powers_of_two_are_exact() {
    assert_eq!(reciprocal(&[bits(0.5)]), [bits(2.0)]);
    assert_eq!(reciprocal_square_root(&[bits(16.0)]), [bits(0.25)]);
    assert_eq!(square_root(&[bits(16.0)]), [bits(4.0)]);
    assert_eq!(exponential(&[bits(-3.0)]), [bits(0.125)]);
    assert_eq!(logarithm(&[bits(8.0)]), [bits(3.0)]);
    assert_eq!(reciprocal_high(&[0x4000_0000]), [0x3fe0_0000]);
    assert_eq!(reciprocal_square_root_high(&[0x4010_0000]), [0x3fe0_0000]);
}

/// As an H200 has it; the nearest number is 0x3f7f_d737.
#[test]
fn results_are_the_units_and_not_the_nearest() {
    assert_eq!(reciprocal(&[0x3f80_1468]), [0x3f7f_d736]);
}

#[test]
fn subnormals_are_scaled_without_ftz() {
    assert_eq!(ptx::reciprocal_full(&[1 << 22]), [0x7e80_0000 + (1 << 23)]);
    assert_eq!(ptx::square_root_full(&[1 << 22]), [0x1fb5_04f3]);
    assert_eq!(ptx::exponential_full(&[bits(-140.0)]), [1 << 9]);
    assert_eq!(ptx::logarithm_full(&[1]), [bits(-149.0)]);
    assert_eq!(ptx::divide(&[ONE], &[0x7f00_0001]), [0]);
}

#[test]
fn sixteen_bits_are_cut_off() {
    assert_eq!(narrow(Kind::Half, bits(65535.0)), 0x7bff);
    assert_eq!(narrow(Kind::Half, bits(65536.0)), 0x7c00);
    assert_eq!(narrow(Kind::Half, bits(5.9e-8)), 0);
    assert_eq!(narrow(Kind::Half, bits(6.0e-8)), 1);
    assert_eq!(narrow(Kind::Brain, 0x3f80_ffff), 0x3f80);
    assert_eq!(narrow(Kind::Brain, NAN), 0x7fff);
}

/// Squares by rows of partial products, as the squarer is built.
#[test]
fn the_squarer_leaves_out_low_products() {
    for x in (0..1u32 << 17).step_by(7) {
        let mut sum = 0;
        for bit in 0..17 {
            if x >> bit & 1 != 0 {
                sum += x >> (18 - bit);
            }
        }
        let square = unit::square((x >> 9) as u16, (x & 511) as u16);
        assert_eq!(u32::from(square), sum >> 1, "{x:x}");
    }
}
