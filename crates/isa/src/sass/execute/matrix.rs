//! Matrix multiply-accumulate of SASS.

use super::{bind::Spelling, volta};
use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::Operand,
    sass::decoded::Value,
    semantics::{
        Rounding,
        matrix::{Accumulator, BitProduct, Input, Multiply, TensorCore, multiply as product},
    },
    warp_register::WarpRegister,
};

/// Shapes by the word in the text: m, n, k.
const SHAPES: &[(&str, usize, usize, usize)] = &[
    ("1684", 16, 8, 4),
    ("1688", 16, 8, 8),
    ("16816", 16, 8, 16),
    ("16832", 16, 8, 32),
    ("16864", 16, 8, 64),
    ("168128", 16, 8, 128),
    ("168256", 16, 8, 256),
    ("8832", 8, 8, 32),
    ("8864", 8, 8, 64),
    ("8816", 8, 8, 16),
    ("88128", 8, 8, 128),
    ("884", 8, 8, 4),
    ("8x8x4", 8, 8, 4),
    ("16x8x4", 16, 8, 4),
    ("16x8x8", 16, 8, 8),
    ("16x8x16", 16, 8, 16),
];

/// What the text asks for; `None` for a shape that is not modelled.
fn shape(spelling: &Spelling<'_>) -> Option<Multiply> {
    let (_, m, n, k) = *SHAPES.iter().find(|(word, ..)| spelling.has(word))?;
    let accumulator = |single: bool| {
        if single {
            Accumulator::F32
        } else {
            Accumulator::F16
        }
    };
    let inputs: Vec<Input> = spelling
        .words
        .iter()
        .filter_map(|word| {
            Some(match *word {
                "BF16" => Input::Bf16,
                "TF32" => Input::Tf32,
                "S8" => Input::S8,
                "U8" => Input::U8,
                "S4" => Input::S4,
                "U4" => Input::U4,
                _ => return None,
            })
        })
        .collect();
    let (a, b) = match (spelling.name, &inputs[..]) {
        ("DMMA", _) => (Input::F64, Input::F64),
        ("BMMA", _) => (Input::B1, Input::B1),
        (_, [a, b, ..]) => (*a, *b),
        (_, [both]) => (*both, *both),
        (_, []) => (Input::F16, Input::F16),
    };
    let d = match spelling.name {
        "DMMA" => Accumulator::F64,
        "IMMA" | "BMMA" => Accumulator::S32,
        _ => accumulator(spelling.has("F32")),
    };
    let bit_product = if spelling.has("XOR") {
        BitProduct::Xor
    } else {
        BitProduct::And
    };
    Some(Multiply {
        m,
        n,
        k,
        a,
        b,
        c: d,
        d,
        saturate: spelling.has("SAT"),
        bit_product,
        sparse: spelling.has("SP"),
        selector: selector(spelling),
        rounding: rounding(spelling),
        unit: TensorCore::of_architecture(spelling.frame.architecture),
    })
}

/// Which lanes give the metadata of a sparse product: the number that stands last.
pub(super) fn selector(spelling: &Spelling<'_>) -> u8 {
    let mut operands = spelling.operands().iter().rev();
    let number = operands.find_map(|operand| match operand.value {
        Value::Immediate(number) if spelling.has("SP") => Some(number.bits as u8),
        _ => None,
    });
    number.unwrap_or(0)
}

fn rounding(spelling: &Spelling<'_>) -> Rounding {
    match () {
        () if spelling.has("RZ") => Rounding::Zero,
        () if spelling.has("RM") => Rounding::Down,
        () if spelling.has("RP") => Rounding::Up,
        () => Rounding::Nearest,
    }
}

/// Why a matrix instruction cannot be executed, if it cannot.
#[must_use]
pub fn refused(spelling: &Spelling<'_>) -> Option<&'static str> {
    if volta::is_step(spelling) {
        return volta::refused(spelling);
    }
    // Bits that no compiler writes name shapes whose fragments fill no whole registers.
    (!shape(spelling).is_some_and(Multiply::is_known))
        .then_some("has a shape that cannot be executed yet")
}

/// Modifier bits.
#[must_use]
pub fn bits(spelling: &Spelling<'_>) -> u64 {
    if volta::is_step(spelling) {
        return volta::bits(spelling);
    }
    shape(spelling).map_or(0, Multiply::encode)
}

/// Rows written and read.
#[must_use]
pub fn widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    if volta::is_step(spelling) {
        return (2, [2, 2, 2, 0]);
    }
    let Some(shape) = shape(spelling) else {
        return (0, [0; 4]);
    };
    let [a, b, c] = [
        shape.a_registers(),
        shape.b_registers(),
        shape.c_registers(),
    ]
    .map(|rows| rows as u8);
    (shape.d_registers() as u8, [a, b, c, u8::from(shape.sparse)])
}

/// `D = A × B + C` on the fragments that the sources start.
pub fn multiply(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & volta::STEP != 0 {
        return volta::step(lanes, i);
    }
    let shape = Multiply::decode(i.modifiers);
    let fragment = |operand: Operand, rows: usize| -> Vec<WarpRegister> {
        (0..rows as u16)
            .map(|word| lanes.raw(operand, word))
            .collect()
    };
    let a = fragment(i.sources[0].operand, shape.a_registers());
    let b = fragment(i.sources[1].operand, shape.b_registers());
    let c = fragment(i.sources[2].operand, shape.c_registers());
    let metadata = lanes.raw(i.sources[3].operand, 0);
    let d = product(shape, &a, &b, &c, &metadata);
    for (word, row) in d.iter().enumerate() {
        lanes.write(i.destination, word as u16, row);
    }
}
