//! Surfaces: `suld`, `sust`, `sured`.

use lockstep_isa::{
    memory::{AtomicOperation, AtomicType},
    ptx::Type,
    texture::{Bounds, TextureAction, TextureOperation},
};

use super::{
    Lowering, atomic::atomic_operation, memory::element_of, moves::type_of, texture::geometry_of,
};
use crate::ptx::{
    error::Error,
    syntax::{Instruction, Operand, Scalar},
};

impl<'p, 'a> Lowering<'p, 'a> {
    /// `suld…`, `sust…` and `sured…`.
    pub(super) fn surface(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let has = |word: &str| i.modifiers.contains(&word);
        let Some(geometry) = geometry_of(i) else {
            return self.wrong("a surface needs a geometry such as `.2d`");
        };
        let scalar = i.modifiers.iter().find_map(|word| Scalar::from_name(word));
        let Some(scalar) = scalar else {
            return self.wrong("a surface access needs a type such as `.b32`");
        };
        let elements = match () {
            () if has("v2") => 2,
            () if has("v4") => 4,
            () => 1,
        };
        let element = scalar.bytes() as u8;
        let formatted = has("p");
        if i.opcode == "suld" && formatted {
            return self.stop(
                i,
                "reads in a surface's own format, which PTX no longer has",
            );
        }
        let Some(action) = action(i, scalar, elements) else {
            return self.wrong("a reduction needs an operation and a type");
        };
        if u32::from(element) * u32::from(elements) > 16 {
            return self.wrong("an access to a surface has at most 16 bytes");
        }
        self.expect_operands(&i.operands, 2..=2)?;
        let mut operation = TextureOperation::new(action, geometry);
        let mut code = self.texture_code();
        let load = i.opcode == "suld";
        if !self.object(&mut code, &mut operation, i, usize::from(load))? {
            return Ok(());
        }
        let given = Self::elements(&i.operands[usize::from(!load)]).to_vec();
        if given.len() != usize::from(elements) {
            return self.wrong(format!("{elements} elements expected"));
        }
        for (index, operand) in given.iter().enumerate() {
            if load {
                if *operand != Operand::Sink {
                    let register = self.register_operand(operand)?;
                    let words = element_of(scalar).words();
                    if register.words() < words {
                        return self.wrong("the register is too narrow for an element");
                    }
                    operation.data[index] = Some(code.write(register.place(), words));
                }
            } else {
                let kind = if formatted {
                    Type::B32
                } else {
                    type_of(scalar)
                };
                operation.values[index] = self.value(&mut code, operand, kind)?;
            }
        }
        self.push_texture(code, operation);
        Ok(())
    }
}

/// What is asked, if it is known.
fn action(i: &Instruction<'_>, scalar: Scalar, elements: u8) -> Option<TextureAction> {
    let has = |word: &str| i.modifiers.contains(&word);
    let bounds = match () {
        () if has("clamp") => Bounds::Clamp,
        () if has("zero") => Bounds::Zero,
        () => Bounds::Trap,
    };
    let element = scalar.bytes() as u8;
    let bytes = element.saturating_mul(elements);
    Some(match i.opcode {
        "suld" => TextureAction::Load {
            bytes,
            element,
            bounds,
        },
        "sust" if has("p") => TextureAction::StoreFormatted {
            components: elements,
            bounds,
        },
        "sust" => TextureAction::Store {
            bytes,
            element,
            bounds,
        },
        _ => {
            let (operation, kind) = reduction(i, scalar)?;
            TextureAction::Reduce {
                operation,
                kind,
                bounds,
                texels: has("p"),
            }
        }
    })
}

fn reduction(i: &Instruction<'_>, scalar: Scalar) -> Option<(AtomicOperation, AtomicType)> {
    let operation = i.modifiers.iter().find_map(|word| atomic_operation(word))?;
    let kind = match (scalar.bits, scalar.signed()) {
        (32, true) => AtomicType::S32,
        (32, false) => AtomicType::U32,
        (64, true) => AtomicType::S64,
        (64, false) => AtomicType::U64,
        _ => return None,
    };
    Some((operation, kind))
}
