//! Text to tokens. PTX ISA, "Syntax".

use super::error::{Error, Position};

/// One token; names and texts borrow from the source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'a> {
    /// An identifier, with its percent or dollar sign.
    Name(&'a str),
    /// What follows a dot, without it: a directive, a modifier, a type, a component.
    Dot(&'a str),
    /// An integer; `unsigned` if it has a `U` or needs 64 bits.
    Integer(u64),
    /// A single precision literal (`0f…`), as bits.
    Single(u32),
    /// A double precision literal (`0d…` or decimal), as bits.
    Double(u64),
    /// Text between double quotes.
    Text(&'a str),
    /// Any other character.
    Mark(u8),
    /// The end.
    End,
}

impl Token<'_> {
    /// In the words of a message.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Name(name) => format!("`{name}`"),
            Self::Dot(name) => format!("`.{name}`"),
            Self::Integer(value) => format!("the number {value}"),
            Self::Single(bits) => format!("the number 0f{bits:08x}"),
            Self::Double(bits) => format!("the number 0d{bits:016x}"),
            Self::Text(_) => "a text".to_owned(),
            Self::Mark(mark) => format!("`{}`", char::from(*mark)),
            Self::End => "the end of the text".to_owned(),
        }
    }
}

/// A reader of tokens that can look one ahead.
#[derive(Clone)]
pub struct Tokens<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
    line_start: usize,
    next: Token<'a>,
    /// Where the token that comes next begins and ends.
    start: usize,
    position: Position,
    /// Where the token before it ended.
    previous_end: usize,
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%')
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

impl<'a> Tokens<'a> {
    /// Starts at the beginning of `text`.
    pub fn new(text: &'a str) -> Result<Self, Error> {
        let mut tokens = Self {
            text,
            offset: 0,
            line: 1,
            line_start: 0,
            next: Token::End,
            start: 0,
            position: Position::default(),
            previous_end: 0,
        };
        tokens.advance()?;
        Ok(tokens)
    }

    /// The token that comes next.
    pub fn peek(&self) -> Token<'a> {
        self.next
    }

    /// Place where the next token begins.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Where it begins, in bytes.
    pub fn start(&self) -> usize {
        self.start
    }

    /// The source from `start` to the end of the last token taken.
    pub fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.previous_end).unwrap_or("")
    }

    /// Takes the next token.
    pub fn take(&mut self) -> Result<Token<'a>, Error> {
        let token = self.next;
        self.advance()?;
        Ok(token)
    }

    fn byte(&self, ahead: usize) -> u8 {
        *self.text.as_bytes().get(self.offset + ahead).unwrap_or(&0)
    }

    fn run(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let start = self.offset;
        while self.offset < self.text.len() && accept(self.byte(0)) {
            self.offset += 1;
        }
        &self.text[start..self.offset]
    }

    fn here(&self) -> Position {
        Position {
            line: self.line,
            column: (self.offset - self.line_start + 1) as u32,
        }
    }

    fn fail<T>(&self, found: &str, expected: &str) -> Result<T, Error> {
        Err(Error::Syntax {
            position: self.here(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        })
    }

    fn newline(&mut self) {
        self.offset += 1;
        self.line += 1;
        self.line_start = self.offset;
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        loop {
            match (self.byte(0), self.byte(1)) {
                _ if self.offset >= self.text.len() => return Ok(()),
                (b'\n', _) => self.newline(),
                (byte, _) if byte.is_ascii_whitespace() => self.offset += 1,
                (b'/', b'/') => {
                    self.run(|byte| byte != b'\n');
                }
                (b'/', b'*') => self.skip_comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_comment(&mut self) -> Result<(), Error> {
        self.offset += 2;
        while self.offset < self.text.len() {
            match (self.byte(0), self.byte(1)) {
                (b'*', b'/') => {
                    self.offset += 2;
                    return Ok(());
                }
                (b'\n', _) => self.newline(),
                _ => self.offset += 1,
            }
        }
        self.fail("the end of the text", "`*/`")
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.previous_end = self.offset;
        self.skip_blanks()?;
        self.start = self.offset;
        self.position = self.here();
        self.next = self.scan()?;
        Ok(())
    }

    fn scan(&mut self) -> Result<Token<'a>, Error> {
        if self.offset >= self.text.len() {
            return Ok(Token::End);
        }
        let byte = self.byte(0);
        if is_name_start(byte) {
            let start = self.offset;
            self.offset += 1;
            self.run(is_name);
            return Ok(Token::Name(&self.text[start..self.offset]));
        }
        if byte == b'.' && (is_name(self.byte(1)) || is_name_start(self.byte(1))) {
            self.offset += 1;
            return Ok(Token::Dot(self.dotted()));
        }
        if byte.is_ascii_digit() {
            return self.number();
        }
        if byte == b'"' {
            return self.quoted();
        }
        if !byte.is_ascii() {
            return self.fail("a character outside ASCII", "PTX");
        }
        self.offset += 1;
        Ok(Token::Mark(byte))
    }

    /// A word that may hold `::`.
    fn dotted(&mut self) -> &'a str {
        let start = self.offset;
        loop {
            self.run(is_name);
            if self.byte(0) == b':' && self.byte(1) == b':' && is_name(self.byte(2)) {
                self.offset += 2;
            } else {
                return &self.text[start..self.offset];
            }
        }
    }

    fn quoted(&mut self) -> Result<Token<'a>, Error> {
        self.offset += 1;
        let body = self.run(|byte| byte != b'"' && byte != b'\n');
        if self.byte(0) != b'"' {
            return self.fail("the end of the line", "`\"`");
        }
        self.offset += 1;
        Ok(Token::Text(body))
    }

    fn number(&mut self) -> Result<Token<'a>, Error> {
        let bad = |tokens: &Self, word: &str| tokens.fail(&format!("`{word}`"), "a number");
        if self.byte(0) == b'0' {
            match self.byte(1) {
                b'f' | b'F' => {
                    let word = self.hexadecimal();
                    return match u32::from_str_radix(word, 16) {
                        Ok(bits) if word.len() == 8 => Ok(Token::Single(bits)),
                        _ => bad(self, &format!("0f{word}")),
                    };
                }
                b'd' | b'D' => {
                    let word = self.hexadecimal();
                    return match u64::from_str_radix(word, 16) {
                        Ok(bits) if word.len() == 16 => Ok(Token::Double(bits)),
                        _ => bad(self, &format!("0d{word}")),
                    };
                }
                b'x' | b'X' => {
                    let word = self.hexadecimal();
                    return self.integer(word, 16);
                }
                b'b' | b'B' => {
                    let word = self.hexadecimal();
                    return self.integer(word, 2);
                }
                _ => {}
            }
        }
        let start = self.offset;
        self.run(|byte| byte.is_ascii_digit());
        let fraction = self.byte(0) == b'.' && self.byte(1).is_ascii_digit();
        if fraction {
            self.offset += 1;
            self.run(|byte| byte.is_ascii_digit());
        }
        let signed = usize::from(matches!(self.byte(1), b'+' | b'-'));
        let exponent =
            matches!(self.byte(0), b'e' | b'E') && self.byte(1 + signed).is_ascii_digit();
        if exponent {
            self.offset += 1 + signed;
            self.run(|byte| byte.is_ascii_digit());
        }
        let word = &self.text[start..self.offset];
        if fraction || exponent {
            return match word.parse::<f64>() {
                Ok(value) => Ok(Token::Double(value.to_bits())),
                Err(_) => bad(self, word),
            };
        }
        let octal = word.len() > 1 && word.starts_with('0');
        self.integer(word, if octal { 8 } else { 10 })
    }

    /// Skips a two-character prefix and takes the digits after it.
    fn hexadecimal(&mut self) -> &'a str {
        self.offset += 2;
        self.run(|byte| byte.is_ascii_hexdigit())
    }

    fn integer(&mut self, word: &str, radix: u32) -> Result<Token<'a>, Error> {
        let Ok(value) = u64::from_str_radix(word, radix) else {
            return self.fail(&format!("`{word}`"), "a number of at most 64 bits");
        };
        if self.byte(0) == b'U' {
            self.offset += 1;
        }
        Ok(Token::Integer(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Result<Vec<Token<'_>>, Error> {
        let mut tokens = Tokens::new(text)?;
        let mut list = Vec::new();
        while tokens.peek() != Token::End {
            list.push(tokens.take()?);
        }
        Ok(list)
    }

    #[test]
    fn an_instruction() {
        let text = "@!%p1 ld.shared::cta.v2.f32 {%f1, _}, [%rd1+-4]; // rest";
        let names: Vec<_> = all(text).unwrap().iter().map(Token::describe).collect();
        assert_eq!(
            names.join(" "),
            "`@` `!` `%p1` `ld` `.shared::cta` `.v2` `.f32` `{` `%f1` `,` `_` `}` `,` `[` `%rd1` \
             `+` `-` the number 4 `]` `;`"
        );
    }

    #[test]
    fn numbers() {
        let cases = [
            ("0f3F800000", Token::Single(0x3f80_0000)),
            ("0d3FF0000000000000", Token::Double(0x3ff0_0000_0000_0000)),
            ("0xFFFFFFFFFFFFFFFFU", Token::Integer(u64::MAX)),
            ("017", Token::Integer(15)),
            ("0b101", Token::Integer(5)),
            ("12", Token::Integer(12)),
            ("1.5", Token::Double(1.5f64.to_bits())),
            ("2e-3", Token::Double(2e-3f64.to_bits())),
            ("0", Token::Integer(0)),
        ];
        for (text, wanted) in cases {
            assert_eq!(all(text).unwrap(), [wanted], "{text}");
        }
    }

    #[test]
    fn errors_name_the_place() {
        let message = |text| all(text).unwrap_err().to_string();
        assert_eq!(
            message("a\n  0x;"),
            "PTX 2:5: found ``, expected a number of at most 64 bits"
        );
        assert_eq!(
            message("/* open"),
            "PTX 1:8: found the end of the text, expected `*/`"
        );
        assert_eq!(
            message("\"open\n"),
            "PTX 1:6: found the end of the line, expected `\"`"
        );
    }
}
