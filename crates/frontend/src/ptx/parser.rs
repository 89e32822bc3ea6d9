//! Tokens to a tree: the module level. Statements and operands are in
//! `statement.rs`, variables in `variable.rs`.
//!
//! Grammar after PTX ISA, "Directives": version, target, address size, variables, functions.

use super::{
    error::{Error, Position},
    syntax::{Function, Linkage, Program, Statement, Variable, VariableSpace},
    token::{Token, Tokens},
};

/// Largest text that is read.
pub const LARGEST_TEXT: usize = 512 << 20;
/// Deepest nesting of blocks, vectors and expressions.
const DEEPEST: u32 = 64;

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
                if let Some(body) = &mut function.body {
                    hoist_shared(body, &mut program.variables)?;
                }
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
    pub(super) fn attributes(&mut self) -> Result<bool, Error> {
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
            min_blocks: 0,
            max_registers: 0,
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
                Token::Dot("minnctapersm") => {
                    self.take()?;
                    function.min_blocks = self.unsigned()?.min(u64::from(u32::MAX)) as u32;
                }
                Token::Dot("maxnreg") => {
                    self.take()?;
                    function.max_registers = self.unsigned()?.min(255) as u32;
                }
                Token::Dot("maxnctapersm" | "maxclusterrank") => {
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
}

/// Makes the shared variables of a function the module's: whichever kernel calls it has them.
fn hoist_shared<'a>(
    body: &mut Vec<Statement<'a>>,
    variables: &mut Vec<Variable<'a>>,
) -> Result<(), Error> {
    for statement in std::mem::take(body) {
        match statement {
            Statement::Variable(variable) if variable.space == VariableSpace::Shared => {
                if variables.iter().any(|other| other.name == variable.name) {
                    return Err(Error::Meaning {
                        position: variable.position,
                        message: "a shared variable of this name is declared elsewhere, too".into(),
                        text: variable.name.into(),
                    });
                }
                variables.push(*variable);
            }
            Statement::Block(mut inner) => {
                hoist_shared(&mut inner, variables)?;
                body.push(Statement::Block(inner));
            }
            other => body.push(other),
        }
    }
    Ok(())
}
