//! Textures: `tex`, `tld4`, `txq`.

use lockstep_isa::{
    Operation,
    instruction::{Latency, Mix, Unit},
    ptx::{Class, Type},
    texture::{Geometry, Halves, LevelMode, Query, TextureAction, TextureOperation},
};

use super::Lowering;
use crate::ptx::{
    error::Error,
    image::{ModuleName, VariablePlace},
    ir::{Code, Uniformity},
    syntax::{Instruction, Operand},
};

/// How the SM treats them.
const TEXTURE: Class = Class {
    unit: Unit::Texture,
    latency: Latency::Memory,
    mix: Mix::LoadStore,
};

/// Geometries by name: dimensions, layered, cube.
const GEOMETRIES: &[(&str, u8, bool, bool)] = &[
    ("1d", 1, false, false),
    ("2d", 2, false, false),
    ("3d", 3, false, false),
    ("a1d", 1, true, false),
    ("a2d", 2, true, false),
    ("cube", 3, false, true),
    ("acube", 3, true, true),
];

/// Queries of textures and surfaces by name.
const QUERIES: &[(&str, Query)] = &[
    ("width", Query::Width),
    ("height", Query::Height),
    ("depth", Query::Depth),
    ("channel_data_type", Query::ChannelType),
    ("channel_order", Query::ChannelOrder),
    ("normalized_coords", Query::NormalizedCoordinates),
    ("array_size", Query::Layers),
    ("num_mipmap_levels", Query::Levels),
    ("num_samples", Query::Samples),
    ("memory_layout", Query::MemoryLayout),
];

impl<'p, 'a> Lowering<'p, 'a> {
    /// `tex…` and `tld4…`.
    pub(super) fn texture(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let Some(geometry) = geometry_of(i) else {
            return self.stop(i, "reads samples of a texel, which is not modelled");
        };
        let gather = i.opcode == "tld4";
        let integer = i.modifiers.last() == Some(&"s32");
        let level = match () {
            () if i.modifiers.contains(&"level") => LevelMode::Given,
            () if i.modifiers.contains(&"grad") => LevelMode::Gradient,
            () => LevelMode::Zero,
        };
        let types: Vec<&str> = i.modifiers.iter().rev().take(2).copied().collect();
        let half = match types.get(1) {
            Some(&"f16x2") => Some(Halves::Packed),
            Some(&"f16") => Some(Halves::Single),
            _ => None,
        };
        let action = if gather {
            let place = i.modifiers.first().and_then(|word| {
                let names = ["r", "g", "b", "a"];
                names.iter().position(|name| name == word)
            });
            let Some(component) = place else {
                return self.wrong("a gather names its component: `.r`, `.g`, `.b` or `.a`");
            };
            TextureAction::Gather {
                component: component as u8,
            }
        } else {
            TextureAction::Sample {
                integer,
                level,
                half,
            }
        };
        if half.is_some() && gather {
            return self.stop(i, "gathers halves, which is not modelled");
        }
        self.expect_operands(&i.operands, 2..=6)?;
        let mut operation = TextureOperation::new(action, geometry);
        let mut code = self.code(Operation::Nothing, TEXTURE);
        if !self.object(&mut code, &mut operation, i, 1)? {
            return Ok(());
        }
        let mut rest = i.operands.iter().skip(2);
        match level {
            LevelMode::Given => {
                let Some(operand) = rest.next() else {
                    return self.wrong("a level must stand here");
                };
                operation.level = self.value(&mut code, operand, coordinate_type(integer))?;
            }
            LevelMode::Gradient => {
                for half in 0..2 {
                    let Some(operand) = rest.next() else {
                        return self.wrong("two vectors of derivatives must stand here");
                    };
                    self.gradient(&mut code, &mut operation, operand, 3 * half)?;
                }
            }
            LevelMode::Zero => {}
        }
        if let Some(operand) = rest.next() {
            if !matches!(operand, Operand::Vector(_)) && geometry.dimensions > 1 {
                return self.stop(i, "compares depths, which is not modelled");
            }
            self.offsets(&mut code, &mut operation, operand)?;
        }
        if rest.next().is_some() {
            return self.stop(i, "compares depths, which is not modelled");
        }
        self.components(&mut code, &mut operation, i)?;
        self.push_texture(code, operation);
        Ok(())
    }

    /// `txq…` and `suq…`.
    pub(super) fn texture_query(&mut self, i: &'p Instruction<'a>) -> Result<(), Error> {
        let asked = i.modifiers.iter().find_map(|word| {
            let row = QUERIES.iter().find(|(name, _)| name == word);
            row.map(|(_, query)| *query)
        });
        let Some(query) = asked else {
            return self.stop(i, "asks for what is not modelled");
        };
        self.expect_operands(&i.operands, 2..=3)?;
        let geometry = Geometry {
            dimensions: 0,
            layered: false,
            cube: false,
        };
        let mut operation = TextureOperation::new(TextureAction::Query(query), geometry);
        let mut code = self.code(Operation::Nothing, TEXTURE);
        if !self.object(&mut code, &mut operation, i, 1)? {
            return Ok(());
        }
        if let Some(level) = i.operands.get(2) {
            operation.level = self.value(&mut code, level, Type::B32)?;
        }
        self.components(&mut code, &mut operation, i)?;
        self.push_texture(code, operation);
        Ok(())
    }

    pub(super) fn push_texture(&mut self, mut code: Code<'a>, operation: TextureOperation) {
        code.uniformity = Uniformity::Divergent;
        code.communicates = operation.writes();
        code.instruction.operation = Operation::Texture(Box::new(operation));
        self.push(code);
    }

    fn is_texture_reference(&self, name: &str) -> bool {
        let Some(ModuleName::Variable(index)) = self.symbols.find(name) else {
            return false;
        };
        matches!(self.layout.variables[index], VariablePlace::Texture(_))
    }

    /// `[object, {coordinates}]`. Says whether it could be read; else an instruction that stops is in its place.
    pub(super) fn object(
        &mut self,
        code: &mut Code<'a>,
        operation: &mut TextureOperation,
        i: &'p Instruction<'a>,
        nth: usize,
    ) -> Result<bool, Error> {
        let Some(Operand::Address(parts)) = i.operands.get(nth) else {
            return self.wrong("a texture such as [%rd1, {%f1, %f2}] must stand here");
        };
        let named = matches!(parts.first(), Some(Operand::Name(name))
            if self.register(name).is_ok() || self.is_texture_reference(name));
        if !named {
            self.stop_at(
                i,
                "names a surface reference, which is not modelled: make an object instead \
                 (cudaCreateSurfaceObject)",
            );
            return Ok(false);
        }
        let separate = parts.len() > 2;
        if separate {
            self.stop_at(i, "names a sampler of its own, which is not modelled");
            return Ok(false);
        }
        operation.handle = self.value(code, &parts[0], Type::B64)?;
        let Some(coordinates) = parts.get(1) else {
            return Ok(true);
        };
        let mut elements = Self::elements(coordinates).to_vec().into_iter();
        let wanted = operation.geometry.dimensions;
        if elements.len() < usize::from(wanted) + usize::from(operation.geometry.layered) {
            return self.wrong("there are too few coordinates for this geometry");
        }
        let integer = !matches!(
            operation.action,
            TextureAction::Sample { integer: false, .. } | TextureAction::Gather { .. }
        );
        if operation.geometry.layered
            && let Some(layer) = elements.next()
        {
            operation.layer = self.value(code, &layer, Type::B32)?;
        }
        for (place, element) in operation
            .coordinates
            .iter_mut()
            .take(usize::from(wanted))
            .zip(elements)
        {
            *place = self.value(code, &element, coordinate_type(integer))?;
        }
        Ok(true)
    }

    fn gradient(
        &mut self,
        code: &mut Code<'a>,
        operation: &mut TextureOperation,
        operand: &Operand<'a>,
        from: usize,
    ) -> Result<(), Error> {
        let elements = Self::elements(operand).to_vec();
        let wanted = usize::from(operation.geometry.dimensions);
        for (place, element) in operation.gradients[from..]
            .iter_mut()
            .take(wanted)
            .zip(&elements)
        {
            *place = self.value(code, element, Type::F32)?;
        }
        Ok(())
    }

    fn offsets(
        &mut self,
        code: &mut Code<'a>,
        operation: &mut TextureOperation,
        operand: &Operand<'a>,
    ) -> Result<(), Error> {
        let elements = Self::elements(operand).to_vec();
        let wanted = usize::from(operation.geometry.dimensions);
        for (place, element) in operation.offsets.iter_mut().take(wanted).zip(&elements) {
            *place = self.value(code, element, Type::B32)?;
        }
        Ok(())
    }

    /// The registers that receive; a predicate beside them says that the texels are there, which they always are.
    fn components(
        &mut self,
        code: &mut Code<'a>,
        operation: &mut TextureOperation,
        i: &'p Instruction<'a>,
    ) -> Result<(), Error> {
        let targets = match &i.operands[0] {
            Operand::Pair(..) => {
                return self.wrong("whether texels are resident cannot be asked");
            }
            other => Self::elements(other).to_vec(),
        };
        for (place, target) in operation.data.iter_mut().zip(&targets) {
            if *target == Operand::Sink {
                continue;
            }
            let register = self.register_operand(target)?;
            *place = Some(code.write(register.place(), 1));
        }
        Ok(())
    }
}

fn coordinate_type(integer: bool) -> Type {
    if integer { Type::B32 } else { Type::F32 }
}

/// The geometry that an instruction names.
pub(super) fn geometry_of(i: &Instruction<'_>) -> Option<Geometry> {
    i.modifiers.iter().find_map(|word| {
        let row = GEOMETRIES.iter().find(|(name, ..)| name == word);
        row.map(|(_, dimensions, layered, cube)| Geometry {
            dimensions: *dimensions,
            layered: *layered,
            cube: *cube,
        })
    })
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// An instruction of the texture unit, not yet pushed.
    pub(super) fn texture_code(&self) -> Code<'a> {
        self.code(Operation::Nothing, TEXTURE)
    }
}
