//! Constant expressions. PTX ISA, "Constant Expressions": 64-bit integers, C's operators.

use super::{error::Error, parser::Parser, token::Token};

/// Binary operators by binding strength, weakest first.
const LEVELS: &[&[&str]] = &[
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Parser<'_> {
    /// An integer expression.
    pub(super) fn constant(&mut self) -> Result<i64, Error> {
        self.nested(|parser| parser.binary(0))
    }

    fn binary(&mut self, level: usize) -> Result<i64, Error> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            for _ in 0..operator.len() {
                self.take()?;
            }
            let right = self.binary(level + 1)?;
            left = match operator {
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_shl(right as u32).unwrap_or(0),
                ">>" => left.checked_shr(right as u32).unwrap_or(0),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                _ if right == 0 => return self.fail("a divisor other than zero before this"),
                "/" => left.wrapping_div(right),
                _ => left.wrapping_rem(right),
            };
        }
        Ok(left)
    }

    fn operator(&self, operators: &[&'static str]) -> Option<&'static str> {
        let Token::Mark(mark) = self.peek() else {
            return None;
        };
        operators
            .iter()
            .find(|operator| operator.as_bytes()[0] == mark)
            .copied()
    }

    fn unary(&mut self) -> Result<i64, Error> {
        match self.peek() {
            Token::Integer(value) => {
                self.take()?;
                Ok(value as i64)
            }
            Token::Mark(b'-') => {
                self.take()?;
                Ok(self.nested(Self::unary)?.wrapping_neg())
            }
            Token::Mark(b'+') => {
                self.take()?;
                self.nested(Self::unary)
            }
            Token::Mark(b'~') => {
                self.take()?;
                Ok(!self.nested(Self::unary)?)
            }
            Token::Mark(b'!') => {
                self.take()?;
                Ok(i64::from(self.nested(Self::unary)? == 0))
            }
            Token::Mark(b'(') => {
                self.take()?;
                // A cast `(.s64)` changes nothing: all is 64 bits.
                if let Token::Dot("s64" | "u64") = self.peek() {
                    self.take()?;
                    self.expect(b')')?;
                    return self.nested(Self::unary);
                }
                let value = self.constant()?;
                self.expect(b')')?;
                Ok(value)
            }
            _ => self.fail("a number"),
        }
    }
}
