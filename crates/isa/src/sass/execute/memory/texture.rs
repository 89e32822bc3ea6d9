//! Reads of textures: `TEX`, `TLD` (integer coordinates), `TLD4` (gathers), `TXD` (derivatives), `TXQ` (queries).
//!
//! Text: two registers that receive, a vector of coordinates, a vector of what else there is, the texture, its
//! shape, and a mask of components. The first two components of the mask go to the second register and the one
//! after it, the others to the first.
//!
//! The first vector holds the layer and the coordinates, the second the handle (`.B`), the level (`.LL`) and the
//! offsets (`.AOFFI`); with `.SCR`, what follows the first two values of the first vector stands at the head of the
//! second. `TXD` has the handle first, and the layer with the offsets above it behind the coordinates; its second
//! vector holds the derivatives, along x and y in turns.

use super::super::bind::{BindError, Spelling};
use crate::{
    instruction::{Instruction, Latency, Mix, Operation, SchedulingInfo, Unit},
    operand::Operand,
    sass::decoded::Value,
    texture::{Geometry, LevelMode, PackedOffsets, Query, TextureAction, TextureOperation},
};

/// Words that name what is not modelled, and what to say of it.
const REFUSED: &[(&str, &str)] = &[
    ("DC", "compares depths, which is not modelled"),
    (
        "LB",
        "adds to a level that a quad of threads makes, which is not modelled",
    ),
    (
        "LC",
        "limits a level that a quad of threads makes, which is not modelled",
    ),
    (
        "FDV",
        "makes levels from a quad of threads, which is not modelled",
    ),
    (
        "NDV",
        "makes levels from a quad of threads, which is not modelled",
    ),
    ("MS", "reads samples of a texel, which is not modelled"),
    (
        "PTP",
        "gathers with an offset for each texel, which is not modelled",
    ),
    ("F16", "answers in halves, which is not modelled"),
];

/// What stands in the text, by kind.
struct Parts {
    registers: Vec<u8>,
    handle: Operand,
    geometry: Geometry,
    query: Option<Query>,
    mask: u8,
}

/// Registers side by side, taken one after the other.
struct Vector<'a, 'b> {
    spelling: &'a Spelling<'b>,
    next: Option<u8>,
}

impl Vector<'_, '_> {
    fn take(&mut self) -> Result<Operand, BindError> {
        let index = self
            .next
            .ok_or_else(|| BindError::new("has too few operands"))?;
        self.next = Some(index.saturating_add(1));
        let register = self.spelling.frame.register(index);
        Ok(register.map_or(Operand::None, Operand::Register))
    }
}

/// Binds one of them.
pub(super) fn texture(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let gather = spelling.name == "TLD4";
    for (word, sentence) in REFUSED {
        if spelling.has(word) {
            return Ok(spelling.unsupported(sentence));
        }
    }
    if spelling.name == "TMML" {
        return Ok(spelling.unsupported("asks for the level of a quad, which is not modelled"));
    }
    let Some(parts) = parts(spelling)? else {
        return Ok(spelling.unsupported("names its texture in a way that is not modelled"));
    };
    let level = match spelling.name {
        "TXD" => LevelMode::Gradient,
        _ if spelling.has("LL") => LevelMode::Given,
        _ if spelling.has("LZ") => LevelMode::Zero,
        "TEX" => {
            return Ok(spelling.unsupported("makes its level from a quad, which is not modelled"));
        }
        _ => LevelMode::Zero,
    };
    let action = match parts.query {
        Some(query) => TextureAction::Query(query),
        None if gather => TextureAction::Gather {
            component: component(spelling),
        },
        None => TextureAction::Sample {
            integer: spelling.name == "TLD",
            level,
            half: None,
        },
    };
    let mut operation = TextureOperation::new(action, parts.geometry);
    operation.handle = parts.handle;
    match spelling.name {
        "TXQ" => query_operands(spelling, &parts, &mut operation)?,
        "TXD" => gradient_operands(spelling, &parts, &mut operation)?,
        _ => sample_operands(spelling, &parts, &mut operation, level)?,
    }
    receivers(spelling, &parts, &mut operation);
    Ok(Instruction::new(
        Operation::Texture(Box::new(operation)),
        scheduling(),
    ))
}

/// How the SM treats them.
pub(super) fn scheduling() -> SchedulingInfo {
    SchedulingInfo {
        unit: Unit::Texture,
        latency: Latency::Memory,
        mix: Mix::LoadStore,
        ..SchedulingInfo::default()
    }
}

/// Sorts the operands; `None` if the texture is named as only older code does.
fn parts(spelling: &Spelling<'_>) -> Result<Option<Parts>, BindError> {
    let mut parts = Parts {
        registers: Vec::new(),
        handle: Operand::None,
        geometry: Geometry {
            dimensions: 2,
            layered: false,
            cube: false,
        },
        query: None,
        mask: 0xf,
    };
    let (mut numbers, mut uniform, mut shaped) = (Vec::new(), None, false);
    let mut last = None;
    for operand in spelling.operands() {
        match operand.value {
            Value::Register(index) => parts.registers.push(index),
            Value::UniformRegister(index) => uniform = Some(index),
            Value::Word(word, _) => {
                shaped = true;
                match query(word.name()) {
                    Some(query) => parts.query = Some(query),
                    None => parts.geometry = shape(word.name())?,
                }
            }
            Value::Immediate(number) => {
                if shaped && parts.query.is_none() {
                    last = Some(number.bits);
                } else {
                    numbers.push(number.bits);
                }
            }
            _ => {}
        }
    }
    if parts.query.is_some() {
        // The texture stands behind the word here, and the mask behind it.
        let named = usize::from(!spelling.has("B")) * if uniform.is_some() { 1 } else { 2 };
        if numbers.len() > named {
            last = numbers.pop();
        }
    }
    if let Some(mask) = last {
        parts.mask = mask as u8;
    }
    match (uniform, numbers.as_slice()) {
        (Some(index), [0]) => {
            let register = spelling.frame.uniform(index);
            parts.handle = register.map_or(Operand::None, Operand::Register);
        }
        (None, [bank, word]) => {
            parts.handle = Operand::Constant {
                bank: *bank as u8,
                offset: *word as u32 * 4,
            };
        }
        (None, []) if spelling.has("B") => {}
        _ => return Ok(None),
    }
    Ok(Some(parts))
}

fn query(word: &str) -> Option<Query> {
    Some(match word {
        "TEX_HEADER_DIMENSION" => Query::Dimensions,
        "TEX_HEADER_TEXTURE_TYPE" => Query::Kind,
        "TEX_HEADER_SAMPLER_POS" => Query::Samples,
        _ => return None,
    })
}

fn shape(word: &str) -> Result<Geometry, BindError> {
    let (dimensions, layered, cube) = match word {
        "1D" => (1, false, false),
        "2D" => (2, false, false),
        "3D" => (3, false, false),
        "CUBE" => (3, false, true),
        "ARRAY_1D" => (1, true, false),
        "ARRAY_2D" => (2, true, false),
        "ARRAY_CUBE" => (3, true, true),
        _ => return Err(BindError::new("has no known shape")),
    };
    Ok(Geometry {
        dimensions,
        layered,
        cube,
    })
}

/// The component of a gather. Its word may be `B`, which also says that the handle is in a register.
fn component(spelling: &Spelling<'_>) -> u8 {
    let place = spelling
        .words
        .iter()
        .find_map(|word| ["R", "G", "B", "A"].iter().position(|name| name == word));
    place.unwrap_or(0) as u8
}

/// Whether the handle is in a register. A gather has a word for blue that looks the same.
fn handle_in_register(parts: &Parts) -> bool {
    parts.handle == Operand::None
}

fn vector<'a, 'b>(spelling: &'a Spelling<'b>, parts: &Parts, nth: usize) -> Vector<'a, 'b> {
    Vector {
        spelling,
        next: parts.registers.get(nth).copied(),
    }
}

fn sample_operands(
    spelling: &Spelling<'_>,
    parts: &Parts,
    operation: &mut TextureOperation,
    level: LevelMode,
) -> Result<(), BindError> {
    let mut first = vector(spelling, parts, 2);
    let mut second = vector(spelling, parts, 3);
    let scattered = spelling.has("SCR");
    let mut taken = 0;
    let mut coordinate = |second: &mut Vector<'_, '_>| {
        taken += 1;
        if scattered && taken > 2 {
            second.take()
        } else {
            first.take()
        }
    };
    if parts.geometry.layered {
        operation.layer = coordinate(&mut second)?;
    }
    for place in operation
        .coordinates
        .iter_mut()
        .take(usize::from(parts.geometry.dimensions))
    {
        *place = coordinate(&mut second)?;
    }
    if handle_in_register(parts) {
        operation.handle = second.take()?;
    }
    if level == LevelMode::Given {
        operation.level = second.take()?;
    }
    if spelling.has("AOFFI") {
        let bytes = spelling.name == "TLD4";
        operation.packed_offsets = Some(PackedOffsets {
            word: second.take()?,
            shift: 0,
            step: if bytes { 8 } else { 4 },
            bits: if bytes { 6 } else { 4 },
        });
    }
    Ok(())
}

fn gradient_operands(
    spelling: &Spelling<'_>,
    parts: &Parts,
    operation: &mut TextureOperation,
) -> Result<(), BindError> {
    let mut first = vector(spelling, parts, 2);
    if handle_in_register(parts) {
        operation.handle = first.take()?;
    }
    let dimensions = usize::from(parts.geometry.dimensions).min(2);
    for place in operation.coordinates.iter_mut().take(dimensions) {
        *place = first.take()?;
    }
    let offsets = spelling.has("AOFFI");
    if parts.geometry.layered || offsets {
        let word = first.take()?;
        if parts.geometry.layered {
            operation.layer = word;
        }
        if offsets {
            operation.packed_offsets = Some(PackedOffsets {
                word,
                shift: 16,
                step: 4,
                bits: 4,
            });
        }
    }
    let mut second = vector(spelling, parts, 3);
    for dimension in 0..dimensions {
        operation.gradients[dimension] = second.take()?;
        operation.gradients[3 + dimension] = second.take()?;
    }
    Ok(())
}

fn query_operands(
    spelling: &Spelling<'_>,
    parts: &Parts,
    operation: &mut TextureOperation,
) -> Result<(), BindError> {
    let mut first = vector(spelling, parts, 2);
    if handle_in_register(parts) {
        operation.handle = first.take()?;
    }
    operation.level = first.take()?;
    Ok(())
}

/// The registers of the components of the mask.
fn receivers(spelling: &Spelling<'_>, parts: &Parts, operation: &mut TextureOperation) {
    let mut received = 0u8;
    for (component, place) in operation.data.iter_mut().enumerate() {
        if parts.mask >> component & 1 == 0 {
            continue;
        }
        let pair = parts.registers.get(usize::from(received < 2)).copied();
        let register = pair.and_then(|first| spelling.frame.register(first));
        *place = register.map(|first| first + u16::from(received % 2));
        received += 1;
    }
}
