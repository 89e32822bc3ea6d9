//! Names of a function: registers, labels, variables, by scope.

use std::collections::BTreeMap;

use super::{Lowering, MOST_ARGUMENT_ROWS, Register};
use crate::ptx::{
    error::{Error, Position},
    ir::{FlagId, LabelId, RegisterId},
    syntax::{Function, Registers, Scalar, ScalarKind, Variable, VariableSpace},
};

/// What a name stands for inside a function.
#[derive(Clone, Debug)]
pub(in crate::ptx) enum Symbol<'a> {
    /// A register.
    Register(Register),
    /// The elements of a vector register.
    Vector(Vec<Register>),
    /// A predicate.
    Flag(FlagId),
    /// A place in the code.
    Label(LabelId),
    /// `.branchtargets`
    Targets(Vec<&'a str>),
    /// `.callprototype`
    Prototype(Signature),
    /// A variable in local memory, at this offset of the function's own.
    Local(u64),
    /// A variable in the kernel's shared memory, at this offset of its own.
    Shared(u64),
    /// A `.param` variable of a call, kept in the words of a register.
    Argument {
        /// The register.
        register: RegisterId,
        /// Bytes.
        size: u64,
    },
}

/// Bytes of results and of parameters, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::ptx) struct Signature {
    pub(in crate::ptx) results: Vec<u64>,
    pub(in crate::ptx) parameters: Vec<u64>,
}

impl Signature {
    /// Rows of each of a list of values, one after the other.
    pub(in crate::ptx) fn rows(sizes: &[u64]) -> u64 {
        sizes.iter().map(|size| size.div_ceil(4)).sum()
    }
}

/// A family of registers: `%r<100>`.
#[derive(Clone, Copy, Debug)]
struct Family {
    scalar: Scalar,
    elements: u32,
    count: u64,
}

/// Names of one block.
#[derive(Debug, Default)]
pub(in crate::ptx) struct Scope<'a> {
    symbols: BTreeMap<&'a str, Symbol<'a>>,
    families: BTreeMap<&'a str, Family>,
}

impl<'a> Scope<'a> {
    pub(super) fn symbol(&self, name: &str) -> Option<Symbol<'a>> {
        self.symbols.get(name).cloned()
    }

    pub(super) fn declare(
        &mut self,
        name: &'a str,
        symbol: Symbol<'a>,
        position: Position,
    ) -> Result<(), Error> {
        if self.symbols.insert(name, symbol).is_some() {
            return Err(Error::Meaning {
                position,
                message: format!("`{name}` is declared twice in one block"),
                text: name.to_owned(),
            });
        }
        Ok(())
    }

    /// The family that a name belongs to: its letters declared, its number in range.
    fn family(&self, name: &str) -> Option<Family> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        (0..digits).find_map(|skip| {
            let split = name.len() - digits + skip;
            let (letters, number) = name.split_at(split);
            let family = self.families.get(letters)?;
            // `%r01` is not a name that `%r<2>` declares.
            let number = if number.starts_with('0') && number.len() > 1 {
                return None;
            } else {
                number.parse::<u64>().ok()?
            };
            (number < family.count).then_some(*family)
        })
    }
}

impl<'p, 'a> Lowering<'p, 'a> {
    /// What a name stands for, innermost block first.
    pub(super) fn lookup(&mut self, name: &'a str) -> Option<Symbol<'a>> {
        for index in (0..self.scopes.len()).rev() {
            if let Some(symbol) = self.scopes[index].symbol(name) {
                return Some(symbol);
            }
            if let Some(family) = self.scopes[index].family(name) {
                let symbol = self.make(family.scalar, family.elements);
                self.scopes[index].symbols.insert(name, symbol.clone());
                return Some(symbol);
            }
        }
        None
    }

    fn make(&mut self, scalar: Scalar, elements: u32) -> Symbol<'a> {
        if scalar.kind == ScalarKind::Predicate {
            return Symbol::Flag(self.new_flag());
        }
        let mut element = || {
            let register = self.new_register(scalar.bits);
            Register { scalar, ..register }
        };
        if elements == 1 {
            Symbol::Register(element())
        } else {
            Symbol::Vector((0..elements).map(|_| element()).collect())
        }
    }

    pub(super) fn declare_registers(&mut self, registers: &'p Registers<'a>) -> Result<(), Error> {
        for (name, count) in &registers.names {
            match count {
                Some(count) => {
                    let family = Family {
                        scalar: registers.scalar,
                        elements: registers.elements,
                        count: *count,
                    };
                    self.scope().families.insert(name, family);
                }
                None => {
                    let symbol = self.make(registers.scalar, registers.elements);
                    self.scope().declare(name, symbol, registers.position)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn declare_variable(&mut self, variable: &'p Variable<'a>) -> Result<(), Error> {
        let Some(size) = variable.size else {
            return self.wrong_at(
                variable.position,
                variable.name,
                "a variable here needs a size",
            );
        };
        let symbol = match variable.space {
            VariableSpace::Local => {
                let end = &mut self.body.local_bytes;
                Symbol::Local(place(end, size, variable)?)
            }
            VariableSpace::Shared => {
                let end = &mut self.body.shared_bytes;
                Symbol::Shared(place(end, size, variable)?)
            }
            VariableSpace::Parameter => {
                let rows = size.div_ceil(4);
                if rows > MOST_ARGUMENT_ROWS {
                    return self.wrong_at(
                        variable.position,
                        variable.name,
                        "an argument of a call may have 4096 bytes",
                    );
                }
                let register = self.new_wide(rows.max(1) as u16);
                Symbol::Argument { register, size }
            }
            _ => {
                return self.wrong_at(
                    variable.position,
                    variable.name,
                    "a variable of this space belongs outside functions",
                );
            }
        };
        self.scope()
            .declare(variable.name, symbol, variable.position)
    }

    fn wrong_at<T>(&self, position: Position, name: &str, message: &str) -> Result<T, Error> {
        Err(Error::Meaning {
            position,
            message: message.to_owned(),
            text: name.to_owned(),
        })
    }

    pub(super) fn unknown<T>(&self, name: &str, expected: &'static str) -> Result<T, Error> {
        Err(Error::UnknownName {
            position: self
                .statement
                .map_or(self.function.position, |s| s.position),
            name: name.to_owned(),
            expected,
        })
    }

    /// A register by name.
    pub(super) fn register(&mut self, name: &'a str) -> Result<Register, Error> {
        if let Some((vector, component)) = name.split_once('.')
            && let Some(Symbol::Vector(elements)) = self.lookup(vector)
        {
            let index = match component {
                "x" | "r" => 0,
                "y" | "g" => 1,
                "z" | "b" => 2,
                "w" | "a" => 3,
                _ => usize::MAX,
            };
            return match elements.get(index) {
                Some(register) => Ok(*register),
                None => self.unknown(name, "a component of a vector register"),
            };
        }
        match self.lookup(name) {
            Some(Symbol::Register(register)) => Ok(register),
            _ => self.unknown(name, "a register"),
        }
    }

    /// A predicate by name.
    pub(super) fn flag(&mut self, name: &'a str) -> Result<FlagId, Error> {
        match self.lookup(name) {
            Some(Symbol::Flag(flag)) => Ok(flag),
            _ => self.unknown(name, "a predicate"),
        }
    }

    /// A label by name.
    pub(super) fn label(&mut self, name: &'a str) -> Result<LabelId, Error> {
        match self.lookup(name) {
            Some(Symbol::Label(label)) => Ok(label),
            _ => self.unknown(name, "a label"),
        }
    }

    /// Sizes of what a function takes and gives.
    pub(super) fn signature(&self, function: &Function<'_>) -> Result<Signature, Error> {
        let sizes = |list: &[Variable<'_>]| -> Result<Vec<u64>, Error> {
            let sizes: Vec<u64> = list.iter().map(|v| v.size.unwrap_or(0)).collect();
            if Signature::rows(&sizes) > MOST_ARGUMENT_ROWS {
                return self.wrong_at(
                    function.position,
                    function.name,
                    "the arguments of a function may have 4096 bytes",
                );
            }
            Ok(sizes)
        };
        Ok(Signature {
            results: sizes(&function.results)?,
            parameters: sizes(&function.parameters)?,
        })
    }
}

/// Gives a variable room after `end`; its alignment is a power of two.
fn place(end: &mut u64, size: u64, variable: &Variable<'_>) -> Result<u64, Error> {
    const LIMIT: u64 = 1 << 30;
    let start = end.next_multiple_of(variable.alignment.max(1));
    let after = start.saturating_add(size);
    if after > LIMIT {
        return Err(Error::TooLarge {
            what: "the memory of a function's variables",
            found: after,
            limit: LIMIT,
        });
    }
    *end = after;
    Ok(start)
}
