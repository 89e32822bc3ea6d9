//! Tokens to a tree: statements and operands.

use super::{
    error::Error,
    parser::Parser,
    syntax::{Instruction, Linkage, Operand, Registers, Scalar, Statement},
    token::Token,
};

impl<'a> Parser<'a> {
    /// `{ … }`
    pub(super) fn block(&mut self) -> Result<Vec<Statement<'a>>, Error> {
        self.expect(b'{')?;
        self.nested(|parser| {
            let mut statements = Vec::new();
            while !parser.accept(b'}')? {
                parser.statement(&mut statements)?;
            }
            Ok(statements)
        })
    }

    fn statement(&mut self, list: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        match self.peek() {
            Token::Mark(b'{') => list.push(Statement::Block(self.block()?)),
            Token::Mark(b';') => {
                self.take()?;
            }
            Token::Mark(b'@') | Token::Name(_) => self.labelled(list)?,
            Token::Dot("reg") => {
                let registers = self.registers()?;
                list.push(Statement::Registers(registers));
            }
            Token::Dot("loc") => {
                self.take()?;
                let (file, line) = (self.unsigned()?, self.unsigned()?);
                self.unsigned()?;
                let line = line.min(u64::from(u32::MAX)) as u32;
                let call = self.location_details()?;
                list.push(Statement::Location(file, line, call));
            }
            Token::Dot("pragma") => {
                self.take()?;
                self.skip_statement()?;
            }
            Token::Dot(_) => {
                let variables = self.variables(Linkage::Internal)?;
                list.extend(
                    variables
                        .into_iter()
                        .map(|v| Statement::Variable(Box::new(v))),
                );
            }
            _ => return self.fail("a statement or `}`"),
        }
        Ok(())
    }

    /// `, function_name label {+ offset}, inlined_at file line column` after `.loc`: the file and
    /// the line of the call, if there is one.
    fn location_details(&mut self) -> Result<Option<(u64, u32)>, Error> {
        let mut call = None;
        while self.accept(b',')? {
            if self.name("`function_name` or `inlined_at`")? == "inlined_at"
                && let Token::Integer(_) = self.peek()
            {
                let (file, line) = (self.unsigned()?, self.unsigned()?);
                call = Some((file, line.min(u64::from(u32::MAX)) as u32));
            }
            while let Token::Name(_) | Token::Integer(_) | Token::Mark(b'+') = self.peek() {
                // The next statement also begins with a name, but a comma or number comes first
                // in every form of this directive.
                if let Token::Name(_) = self.peek()
                    && !self.is_location_label()
                {
                    break;
                }
                self.take()?;
            }
        }
        Ok(call)
    }

    fn is_location_label(&self) -> bool {
        matches!(self.peek(), Token::Name(name) if name.starts_with("$L__info"))
    }

    /// A label, something declared under a label, or an instruction.
    fn labelled(&mut self, list: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        let position = self.position();
        let start = self.tokens.start();
        if let Token::Name(name) = self.peek() {
            let mut ahead = self.tokens.clone();
            ahead.take()?;
            if ahead.peek() == Token::Mark(b':') {
                self.tokens = ahead;
                self.take()?;
                list.push(match self.peek() {
                    Token::Dot("branchtargets" | "calltargets") => {
                        self.take()?;
                        Statement::BranchTargets(name, self.names()?)
                    }
                    Token::Dot("callprototype") => {
                        self.take()?;
                        let results = self.parameters()?;
                        self.name("`_`")?;
                        let prototype = self.function(name, false, results, position)?;
                        Statement::Prototype(name, Box::new(prototype))
                    }
                    _ => Statement::Label(name, position),
                });
                return Ok(());
            }
        }
        let guard = if self.accept(b'@')? {
            let negated = self.accept(b'!')?;
            Some((self.name("a predicate")?, negated))
        } else {
            None
        };
        let opcode = self.name("an instruction")?;
        let mut modifiers = Vec::new();
        while let Token::Dot(word) = self.peek() {
            self.take()?;
            modifiers.push(word);
        }
        let mut operands = Vec::new();
        while self.peek() != Token::Mark(b';') {
            operands.push(self.operand()?);
            if !self.accept(b',')? && self.peek() != Token::Mark(b';') {
                return self.fail("`,` or `;`");
            }
        }
        let text = self.tokens.text_since(start);
        self.expect(b';')?;
        list.push(Statement::Instruction(Box::new(Instruction {
            guard,
            opcode,
            modifiers,
            operands,
            position,
            text,
        })));
        Ok(())
    }

    fn names(&mut self) -> Result<Vec<&'a str>, Error> {
        let mut names = vec![self.name("a label")?];
        while self.accept(b',')? {
            names.push(self.name("a label")?);
        }
        self.expect(b';')?;
        Ok(names)
    }

    fn registers(&mut self) -> Result<Registers<'a>, Error> {
        self.take()?;
        let position = self.position();
        let mut elements = 1;
        let mut scalar = None;
        while let Token::Dot(word) = self.peek() {
            self.take()?;
            match word {
                "v2" => elements = 2,
                "v4" => elements = 4,
                _ => match Scalar::from_name(word) {
                    Some(found) => scalar = Some(found),
                    None => return self.fail(&format!("a type instead of `.{word}` before this")),
                },
            }
        }
        let Some(scalar) = scalar else {
            return self.fail("a type such as `.b32`");
        };
        let mut names = Vec::new();
        loop {
            let name = self.name("the name of a register")?;
            let count = if self.accept(b'<')? {
                let count = self.unsigned()?;
                self.expect(b'>')?;
                Some(count)
            } else {
                None
            };
            names.push((name, count));
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        Ok(Registers {
            scalar,
            elements,
            names,
            position,
        })
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        self.nested(|parser| {
            let first = parser.simple_operand()?;
            if parser.accept(b'|')? {
                let second = parser.simple_operand()?;
                return Ok(Operand::Pair(Box::new(first), Box::new(second)));
            }
            Ok(first)
        })
    }

    fn operands_until(&mut self, close: u8) -> Result<Vec<Operand<'a>>, Error> {
        let mut list = Vec::new();
        while !self.accept(close)? {
            list.push(self.operand()?);
            if !self.accept(b',')? && self.peek() != Token::Mark(close) {
                return self.fail(&format!("`,` or `{}`", char::from(close)));
            }
        }
        Ok(list)
    }

    fn simple_operand(&mut self) -> Result<Operand<'a>, Error> {
        match self.peek() {
            Token::Name("_") => {
                self.take()?;
                Ok(Operand::Sink)
            }
            Token::Name(_) => self.named_operand(),
            Token::Single(bits) => {
                self.take()?;
                Ok(Operand::Single(bits))
            }
            Token::Double(bits) => {
                self.take()?;
                Ok(Operand::Double(bits))
            }
            Token::Mark(b'!') => {
                self.take()?;
                let inner = self.nested(Self::simple_operand)?;
                Ok(Operand::Negated(Box::new(inner)))
            }
            Token::Mark(b'-') => self.negative_operand(),
            Token::Mark(b'{') => {
                self.take()?;
                Ok(Operand::Vector(self.operands_until(b'}')?))
            }
            Token::Mark(b'[') => {
                self.take()?;
                Ok(Operand::Address(self.operands_until(b']')?))
            }
            Token::Mark(b'(') if self.is_list() => {
                self.take()?;
                Ok(Operand::List(self.operands_until(b')')?))
            }
            Token::Integer(_) | Token::Mark(b'(' | b'~' | b'+') => {
                Ok(Operand::Integer(self.constant()?))
            }
            _ => self.fail("an operand"),
        }
    }

    /// Parentheses around names are argument lists; around numbers, expressions.
    fn is_list(&self) -> bool {
        let mut ahead = self.tokens.clone();
        if ahead.take().is_err() {
            return false;
        }
        matches!(ahead.peek(), Token::Name(_) | Token::Mark(b')'))
    }

    /// A name with its components (`%tid.x`) and an added number.
    fn named_operand(&mut self) -> Result<Operand<'a>, Error> {
        let start = self.tokens.start();
        self.take()?;
        while let Token::Dot(_) = self.peek() {
            self.take()?;
        }
        let name = self.tokens.text_since(start);
        match self.peek() {
            Token::Mark(b'+') => {
                self.take()?;
                Ok(Operand::Offset(name, self.constant()?))
            }
            Token::Mark(b'-') => Ok(Operand::Offset(name, self.constant()?)),
            _ => Ok(Operand::Name(name)),
        }
    }

    fn negative_operand(&mut self) -> Result<Operand<'a>, Error> {
        let mut ahead = self.tokens.clone();
        ahead.take()?;
        match ahead.peek() {
            Token::Single(bits) => {
                self.take()?;
                self.take()?;
                Ok(Operand::Single(bits ^ 1 << 31))
            }
            Token::Double(bits) => {
                self.take()?;
                self.take()?;
                Ok(Operand::Double(bits ^ 1 << 63))
            }
            Token::Name(_) => {
                self.take()?;
                Ok(Operand::Negated(Box::new(self.named_operand()?)))
            }
            _ => Ok(Operand::Integer(self.constant()?)),
        }
    }
}
