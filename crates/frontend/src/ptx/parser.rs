//! Tokens to a tree: the module level. Statements and operands are in `statement.rs`.
//!
//! Grammar after PTX ISA, "Directives": version, target, address size, variables, functions.

use super::{
    error::{Error, Position},
    syntax::{Function, Initial, InitialValue, Linkage, Program, Scalar, Variable, VariableSpace},
    token::{Token, Tokens},
};

/// Largest text that is read.
pub const LARGEST_TEXT: usize = 512 << 20;
/// Deepest nesting of blocks, vectors and expressions.
const DEEPEST: u32 = 64;
/// Largest number of initial elements of one variable.
const MOST_ELEMENTS: u64 = 1 << 28;

/// A parser at some place of the text.
pub(super) struct Parser<'a> {
    pub(super) tokens: Tokens<'a>,
    depth: u32,
}

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Program<'_>, Error> {
    if text.len() > LARGEST_TEXT {
        return Err(Error::TooLarge {
            what: "the text in bytes",
            found: text.len() as u64,
            limit: LARGEST_TEXT as u64,
        });
    }
    let mut parser = Parser {
        tokens: Tokens::new(text)?,
        depth: 0,
    };
    let mut program = Program::default();
    while parser.peek() != Token::End {
        parser.item(&mut program)?;
    }
    if program.version == 0 {
        return Err(Error::Syntax {
            position: Position { line: 1, column: 1 },
            found: "no `.version`".to_owned(),
            expected: "a PTX text that begins with `.version`".to_owned(),
        });
    }
    Ok(program)
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens.peek()
    }

    pub(super) fn take(&mut self) -> Result<Token<'a>, Error> {
        self.tokens.take()
    }

    pub(super) fn position(&self) -> Position {
        self.tokens.position()
    }

    pub(super) fn fail<T>(&self, expected: &str) -> Result<T, Error> {
        Err(Error::Syntax {
            position: self.position(),
            found: self.peek().describe(),
            expected: expected.to_owned(),
        })
    }

    /// Runs `body` one level deeper; text that nests without end is refused.
    pub(super) fn nested<T>(
        &mut self,
        body: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth == DEEPEST {
            return self.fail("less than 64 levels of nesting");
        }
        self.depth += 1;
        let result = body(self);
        self.depth -= 1;
        result
    }

    pub(super) fn accept(&mut self, mark: u8) -> Result<bool, Error> {
        let there = self.peek() == Token::Mark(mark);
        if there {
            self.take()?;
        }
        Ok(there)
    }

    pub(super) fn expect(&mut self, mark: u8) -> Result<(), Error> {
        if self.accept(mark)? {
            Ok(())
        } else {
            self.fail(&format!("`{}`", char::from(mark)))
        }
    }

    pub(super) fn name(&mut self, what: &str) -> Result<&'a str, Error> {
        match self.peek() {
            Token::Name(name) => {
                self.take()?;
                Ok(name)
            }
            _ => self.fail(what),
        }
    }

    pub(super) fn accept_dot(&mut self, word: &str) -> Result<bool, Error> {
        let there = self.peek() == Token::Dot(word);
        if there {
            self.take()?;
        }
        Ok(there)
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, Error> {
        match self.peek() {
            Token::Integer(value) => {
                self.take()?;
                Ok(value)
            }
            _ => self.fail("a number"),
        }
    }

    fn item(&mut self, program: &mut Program<'a>) -> Result<(), Error> {
        let Token::Dot(word) = self.peek() else {
            return self.fail("a directive such as `.entry`, `.func` or `.global`");
        };
        match word {
            "version" => {
                self.take()?;
                program.version = self.version()?;
            }
            "target" => {
                self.take()?;
                self.targets(program)?;
            }
            "address_size" => {
                self.take()?;
                if self.unsigned()? != 64 {
                    return self.fail("`.address_size 64`: 32-bit programs cannot run");
                }
            }
            "file" => {
                self.take()?;
                let number = self.unsigned()?;
                if let Token::Text(path) = self.take()? {
                    program.files.push((number, path));
                }
                while self.accept(b',')? {
                    self.unsigned()?;
                }
            }
            "section" => self.section()?,
            "pragma" => {
                self.take()?;
                self.skip_statement()?;
            }
            "alias" => {
                self.take()?;
                let name = self.name("a function name")?;
                self.expect(b',')?;
                program.aliases.push((name, self.name("a function name")?));
                self.expect(b';')?;
            }
            _ => self.declaration(program)?,
        }
        Ok(())
    }

    fn version(&mut self) -> Result<u32, Error> {
        match self.take()? {
            Token::Double(bits) => Ok((f64::from_bits(bits) * 10.0 + 0.5) as u32),
            Token::Integer(major) if major < 1000 => Ok(major as u32 * 10),
            _ => self.fail("a version such as 9.0"),
        }
    }

    fn targets(&mut self, program: &mut Program<'a>) -> Result<(), Error> {
        loop {
            let name = self.name("a target such as sm_90")?;
            if let Some(number) = name.strip_prefix("sm_") {
                let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                match digits.parse::<u32>() {
                    Ok(number) if number < 1000 => program.architecture = number,
                    _ => return self.fail("a target such as sm_90 before this"),
                }
            }
            if !self.accept(b',')? {
                return Ok(());
            }
        }
    }

    /// Debug sections hold nothing that we use.
    fn section(&mut self) -> Result<(), Error> {
        self.take()?;
        while self.peek() != Token::Mark(b'{') {
            if self.peek() == Token::End {
                return self.fail("`{`");
            }
            self.take()?;
        }
        let mut open = 0u32;
        loop {
            match self.take()? {
                Token::Mark(b'{') => open += 1,
                Token::Mark(b'}') => {
                    open -= 1;
                    if open == 0 {
                        return Ok(());
                    }
                }
                Token::End => return self.fail("`}`"),
                _ => {}
            }
        }
    }

    pub(super) fn skip_statement(&mut self) -> Result<(), Error> {
        while !self.accept(b';')? {
            if self.take()? == Token::End {
                return self.fail("`;`");
            }
        }
        Ok(())
    }

    fn declaration(&mut self, program: &mut Program<'a>) -> Result<(), Error> {
        let position = self.position();
        let linkage = self.linkage()?;
        match self.peek() {
            Token::Dot("entry") => {
                self.take()?;
                let name = self.name("the name of a kernel")?;
                let function = self.function(name, true, Vec::new(), position)?;
                program.functions.push(function);
            }
            Token::Dot("func") => {
                self.take()?;
                let mut no_return = self.accept_dot("noreturn")?;
                self.attributes()?;
                let results = self.parameters()?;
                let name = self.name("the name of a function")?;
                no_return |= self.accept_dot("noreturn")?;
                let mut function = self.function(name, false, results, position)?;
                function.no_return |= no_return;
                program.functions.push(function);
            }
            _ => {
                let variables = self.variables(linkage)?;
                program.variables.extend(variables);
            }
        }
        Ok(())
    }

    fn linkage(&mut self) -> Result<Linkage, Error> {
        let linkage = match self.peek() {
            Token::Dot("visible" | "common") => Linkage::Visible,
            Token::Dot("weak") => Linkage::Weak,
            Token::Dot("extern") => Linkage::Extern,
            _ => return Ok(Linkage::Internal),
        };
        self.take()?;
        Ok(linkage)
    }

    /// `.attribute(…)`; true if it says `.managed`.
    fn attributes(&mut self) -> Result<bool, Error> {
        let mut managed = false;
        while self.accept_dot("attribute")? {
            self.expect(b'(')?;
            let mut open = 1u32;
            while open > 0 {
                match self.take()? {
                    Token::Dot("managed") => managed = true,
                    Token::Mark(b'(') => open += 1,
                    Token::Mark(b')') => open -= 1,
                    Token::End => return self.fail("`)`"),
                    _ => {}
                }
            }
        }
        Ok(managed)
    }

    /// Everything after the name: parameters, directives, body.
    pub(super) fn function(
        &mut self,
        name: &'a str,
        is_kernel: bool,
        results: Vec<Variable<'a>>,
        position: Position,
    ) -> Result<Function<'a>, Error> {
        let mut function = Function {
            name,
            is_kernel,
            results,
            parameters: self.parameters()?,
            max_threads: 0,
            required_threads: None,
            cluster: None,
            no_return: false,
            body: None,
            position,
        };
        loop {
            match self.peek() {
                Token::Dot("maxntid") => {
                    self.take()?;
                    let [x, y, z] = self.dimensions()?.map(u64::from);
                    function.max_threads =
                        (x * y).saturating_mul(z).min(u64::from(u32::MAX)) as u32;
                }
                Token::Dot("reqntid") => {
                    self.take()?;
                    function.required_threads = Some(self.dimensions()?);
                }
                Token::Dot("reqnctapercluster") => {
                    self.take()?;
                    function.cluster = Some(self.dimensions()?);
                }
                Token::Dot("noreturn") => {
                    self.take()?;
                    function.no_return = true;
                }
                Token::Dot("minnctapersm" | "maxnctapersm" | "maxnreg" | "maxclusterrank") => {
                    self.take()?;
                    self.unsigned()?;
                }
                Token::Dot("explicitcluster" | "blocksareclusters" | "unique") => {
                    self.take()?;
                }
                Token::Dot("abi_preserve" | "abi_preserve_control") => {
                    self.take()?;
                    self.unsigned()?;
                }
                Token::Dot("pragma") => {
                    self.take()?;
                    self.skip_statement()?;
                }
                Token::Mark(b'{') => {
                    function.body = Some(self.block()?);
                    return Ok(function);
                }
                Token::Mark(b';') => {
                    self.take()?;
                    return Ok(function);
                }
                _ => return self.fail("a directive, `{` or `;`"),
            }
        }
    }

    fn dimensions(&mut self) -> Result<[u32; 3], Error> {
        let mut dimensions = [1; 3];
        for (axis, dimension) in dimensions.iter_mut().enumerate() {
            if axis > 0 && !self.accept(b',')? {
                break;
            }
            let value = self.unsigned()?;
            match u32::try_from(value) {
                Ok(value) => *dimension = value,
                Err(_) => return self.fail("a dimension below 2^32 before this"),
            }
        }
        Ok(dimensions)
    }

    /// `(.param .u64 a, .reg .b32 b, …)`, or nothing.
    pub(super) fn parameters(&mut self) -> Result<Vec<Variable<'a>>, Error> {
        let mut list = Vec::new();
        if !self.accept(b'(')? {
            return Ok(list);
        }
        while !self.accept(b')')? {
            if !self.accept_dot("param")? && !self.accept_dot("reg")? {
                return self.fail("`.param`, `.reg` or `)`");
            }
            list.push(self.variable(VariableSpace::Parameter, Linkage::Internal)?);
            if !self.accept(b',')? && self.peek() != Token::Mark(b')') {
                return self.fail("`,` or `)`");
            }
        }
        Ok(list)
    }

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
        let (scalar, alignment, managed) = (first.scalar, first.alignment, first.managed);
        let mut list = vec![first];
        while self.accept(b',')? {
            let mut next = self.named(space, linkage, scalar, 1)?;
            next.alignment = next.alignment.max(alignment);
            next.managed = managed;
            list.push(next);
        }
        self.expect(b';')?;
        Ok(list)
    }

    /// Alignment, type, name, dimensions, initial value.
    fn variable(&mut self, space: VariableSpace, linkage: Linkage) -> Result<Variable<'a>, Error> {
        let mut alignment = None;
        let mut elements = 1;
        let mut scalar = None;
        let mut managed = false;
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
