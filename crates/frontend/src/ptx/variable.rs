//! Tokens to a tree: variables and their initial values.

use super::{
    error::Error,
    parser::Parser,
    syntax::{Initial, InitialValue, Linkage, Scalar, Variable, VariableSpace},
    token::Token,
};

/// Largest number of initial elements of one variable.
const MOST_ELEMENTS: u64 = 1 << 28;

impl<'a> Parser<'a> {
    /// `.space … name = …, name = …;`
    pub(super) fn variables(&mut self, linkage: Linkage) -> Result<Vec<Variable<'a>>, Error> {
        let space = match self.peek() {
            Token::Dot("global" | "tex") => VariableSpace::Global,
            Token::Dot("const") => VariableSpace::Constant,
            Token::Dot(word) if word == "shared" || word.starts_with("shared::") => {
                VariableSpace::Shared
            }
            Token::Dot("local") => VariableSpace::Local,
            Token::Dot("param") => VariableSpace::Parameter,
            _ => return self.fail("a directive such as `.entry`, `.func`, `.global` or `.reg`"),
        };
        self.take()?;
        let first = self.variable(space, linkage)?;
        let (scalar, alignment) = (first.scalar, first.alignment);
        let (managed, texture) = (first.managed, first.texture);
        let mut list = vec![first];
        while self.accept(b',')? {
            let mut next = self.named(space, linkage, scalar, 1)?;
            next.alignment = next.alignment.max(alignment);
            next.managed = managed;
            next.texture = texture;
            list.push(next);
        }
        self.expect(b';')?;
        Ok(list)
    }

    /// Alignment, type, name, dimensions, initial value.
    pub(super) fn variable(
        &mut self,
        space: VariableSpace,
        linkage: Linkage,
    ) -> Result<Variable<'a>, Error> {
        let mut alignment = None;
        let mut elements = 1;
        let mut scalar = None;
        let mut managed = false;
        let mut texture = false;
        loop {
            match self.peek() {
                Token::Dot("align") => {
                    self.take()?;
                    let value = self.unsigned()?;
                    if !value.is_power_of_two() || value > 1 << 20 {
                        return self.fail("a power of two after `.align`, before this");
                    }
                    alignment = Some(value);
                }
                Token::Dot("attribute") => managed |= self.attributes()?,
                Token::Dot("v2") => {
                    self.take()?;
                    elements = 2;
                }
                Token::Dot("v4") => {
                    self.take()?;
                    elements = 4;
                }
                Token::Dot("ptr") => self.pointer_hint()?,
                Token::Dot(word) => {
                    self.take()?;
                    texture = word == "texref";
                    match Scalar::from_name(word) {
                        Some(found) => scalar = Some(found),
                        None => {
                            return self.fail(&format!("a type instead of `.{word}` before this"));
                        }
                    }
                }
                _ => break,
            }
        }
        let Some(scalar) = scalar else {
            return self.fail("a type such as `.b32`");
        };
        let mut variable = self.named(space, linkage, scalar, elements)?;
        variable.alignment = alignment.unwrap_or(variable.alignment);
        variable.managed = managed;
        variable.texture = texture;
        Ok(variable)
    }

    /// `.ptr .global .align 4`: a promise about a pointer parameter.
    fn pointer_hint(&mut self) -> Result<(), Error> {
        self.take()?;
        while let Token::Dot("global" | "const" | "local" | "shared") = self.peek() {
            self.take()?;
        }
        if self.accept_dot("align")? {
            self.unsigned()?;
        }
        Ok(())
    }

    fn named(
        &mut self,
        space: VariableSpace,
        linkage: Linkage,
        scalar: Scalar,
        elements: u64,
    ) -> Result<Variable<'a>, Error> {
        let position = self.position();
        let name = self.name("the name of a variable")?;
        let unit = scalar.bytes() * elements;
        let mut dimensions = Vec::new();
        while self.accept(b'[')? {
            if self.accept(b']')? {
                dimensions.push(None);
            } else {
                dimensions.push(Some(self.constant()?.max(0) as u64));
                self.expect(b']')?;
            }
        }
        let mut variable = Variable {
            name,
            space,
            linkage,
            scalar,
            size: dimensions.iter().try_fold(unit, |size, dimension| {
                dimension.map(|d| size.saturating_mul(d))
            }),
            alignment: unit.next_power_of_two().min(16),
            managed: false,
            texture: false,
            initial: Vec::new(),
            position,
        };
        if self.accept(b'=')? {
            let mut next = 0;
            self.initial(&mut variable, &dimensions, 0, unit, &mut next)?;
            if variable.size.is_none() {
                variable.size = Some(next);
            }
        }
        Ok(variable)
    }

    /// A value or a braced list of them; inner lists fill whole rows.
    fn initial(
        &mut self,
        variable: &mut Variable<'a>,
        dimensions: &[Option<u64>],
        level: usize,
        unit: u64,
        next: &mut u64,
    ) -> Result<(), Error> {
        let scalar = variable.scalar;
        if !self.accept(b'{')? {
            let value = self.initial_value(scalar)?;
            if *next / scalar.bytes().max(1) >= MOST_ELEMENTS {
                return self.fail("fewer initial elements");
            }
            if value != InitialValue::Bits(0) {
                variable.initial.push(Initial {
                    offset: *next,
                    value,
                });
            }
            *next += scalar.bytes();
            return Ok(());
        }
        let start = *next;
        self.nested(|parser| {
            while !parser.accept(b'}')? {
                parser.initial(variable, dimensions, level + 1, unit, next)?;
                if !parser.accept(b',')? && parser.peek() != Token::Mark(b'}') {
                    return parser.fail("`,` or `}`");
                }
            }
            Ok(())
        })?;
        // What an inner list leaves out is zero.
        let inner = dimensions.get(level..).and_then(|rest| {
            rest.iter()
                .try_fold(unit, |size, d| d.map(|d| size.saturating_mul(d)))
        });
        if let Some(inner) = inner {
            *next = (*next).max(start.saturating_add(inner));
        }
        Ok(())
    }

    fn initial_value(&mut self, scalar: Scalar) -> Result<InitialValue<'a>, Error> {
        match self.peek() {
            Token::Name("generic") => {
                self.take()?;
                self.expect(b'(')?;
                let name = self.name("the name of a variable")?;
                self.expect(b')')?;
                Ok(InitialValue::Address {
                    name,
                    offset: self.address_offset()?,
                    generic: true,
                    mask: None,
                })
            }
            Token::Name("mask") => {
                self.take()?;
                self.expect(b'(')?;
                let mask = self.unsigned()?;
                self.expect(b')')?;
                self.expect(b'(')?;
                let mut value = self.initial_value(scalar)?;
                self.expect(b')')?;
                if let InitialValue::Address { mask: place, .. } = &mut value {
                    *place = Some(mask);
                }
                Ok(value)
            }
            Token::Name(name) => {
                self.take()?;
                Ok(InitialValue::Address {
                    name,
                    offset: self.address_offset()?,
                    generic: false,
                    mask: None,
                })
            }
            _ => Ok(InitialValue::Bits(self.literal(scalar)?)),
        }
    }

    fn address_offset(&mut self) -> Result<i64, Error> {
        match self.peek() {
            Token::Mark(b'+') => {
                self.take()?;
                self.constant()
            }
            Token::Mark(b'-') => self.constant(),
            _ => Ok(0),
        }
    }

    /// A number as bits of a type.
    fn literal(&mut self, scalar: Scalar) -> Result<u64, Error> {
        let negative = self.accept(b'-')?;
        let sign = |bits: u64, width: u32| {
            if negative {
                bits ^ 1 << (width - 1)
            } else {
                bits
            }
        };
        match self.peek() {
            Token::Single(bits) => {
                self.take()?;
                Ok(sign(u64::from(bits), 32))
            }
            Token::Double(bits) => {
                self.take()?;
                let bits = sign(bits, 64);
                Ok(if scalar.bits == 32 {
                    u64::from((f64::from_bits(bits) as f32).to_bits())
                } else {
                    bits
                })
            }
            _ => {
                let value = self.constant()?;
                Ok(if negative {
                    value.wrapping_neg()
                } else {
                    value
                } as u64)
            }
        }
    }
}
