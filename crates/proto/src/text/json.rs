//! JSON into a tree, with positions.
//!
//! YAML is nearly a superset of JSON, but not quite (surrogate pairs, tabs,
//! long keys), so JSON has its own reader.

use std::collections::HashSet;

use super::{
    Limits,
    error::Problem,
    tree::{Entry, Node, Position, Value},
};

type Fault = (Position, Problem);

/// Parses a text that is one value, with nothing but space after it.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Node, Fault> {
    let mut reader = Reader {
        rest: text,
        at: Position::START,
        depth: limits.depth,
        max: limits.depth,
    };
    let node = reader.read_value()?;
    reader.skip_space();
    if reader.rest.is_empty() {
        return Ok(node);
    }
    Err(reader.unexpected("the end of the text"))
}

/// Reports the first key that occurs twice in one mapping, a mistake that most
/// readers hide.
pub(super) fn refuse_duplicates(entries: &[Entry]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    match entries.iter().find(|e| !seen.insert(&e.key)) {
        Some(entry) => Err((entry.at, Problem::DuplicateKey(entry.key.clone()))),
        None => Ok(()),
    }
}

/// The first halves of surrogate pairs, from here up to the second ones.
const HIGH_SURROGATE: u32 = 0xd800;
/// The second halves of surrogate pairs, from here on.
const LOW_SURROGATE: u32 = 0xdc00;
/// The first number after both.
const AFTER_SURROGATES: u32 = 0xe000;

struct Reader<'a> {
    rest: &'a str,
    /// The place of the first character of `rest`.
    at: Position,
    /// Levels that may still be opened.
    depth: usize,
    max: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes one character off the text, and advances the place. `None` at the
    /// end.
    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.at.line += 1;
            self.at.column = 1;
        } else {
            self.at.column += 1;
        }
        Some(c)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.next();
        }
    }

    /// Makes the mistake of a character, or of the end of the text, where
    /// `wanted` should be.
    fn unexpected(&self, wanted: &str) -> Fault {
        let found = self.peek().map_or("the end".into(), |c| format!("{c:?}"));
        let problem = Problem::Syntax(format!("expected {wanted}, found {found}"));
        (self.at, problem)
    }

    /// Takes one character off the text, which must be `wanted`.
    fn expect(&mut self, wanted: char) -> Result<(), Fault> {
        if self.peek() != Some(wanted) {
            return Err(self.unexpected(&format!("{wanted:?}")));
        }
        self.next();
        Ok(())
    }

    /// Reads a value of any kind, with the space before it. Its place is that
    /// of its first character.
    fn read_value(&mut self) -> Result<Node, Fault> {
        self.skip_space();
        let at = self.at;
        let value = match self.peek() {
            Some('{') => self.read_nested(Self::read_map)?,
            Some('[') => self.read_nested(Self::read_list)?,
            Some('"' | '\'') => Value::String(self.read_string()?),
            Some('-' | '0'..='9') => self.read_number()?,
            _ => self.read_word()?,
        };
        Ok(Node { at, value })
    }

    /// Reads a list or a mapping with `read`; one level too many is a mistake.
    fn read_nested(&mut self, read: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        let max = self.max;
        let levels_left = self.depth.checked_sub(1);
        self.depth = levels_left.ok_or((self.at, Problem::TooDeep { max }))?;
        let value = read(self)?;
        self.depth += 1;
        Ok(value)
    }

    /// Reads a mapping; its keys must differ.
    fn read_map(&mut self) -> Result<Value, Fault> {
        let mut entries = Vec::new();
        self.read_items('{', '}', |reader| {
            reader.skip_space();
            let at = reader.at;
            let key = reader.read_string()?;
            reader.skip_space();
            reader.expect(':')?;
            let node = reader.read_value()?;
            entries.push(Entry { at, key, node });
            Ok(())
        })?;
        refuse_duplicates(&entries)?;
        Ok(Value::Map(entries))
    }

    /// Reads a list of values of any kind.
    fn read_list(&mut self) -> Result<Value, Fault> {
        let mut list = Vec::new();
        self.read_items('[', ']', |reader| {
            list.push(reader.read_value()?);
            Ok(())
        })?;
        Ok(Value::List(list))
    }

    /// Reads items with commas between them, each with `read_item`, from `open`
    /// to `close`. A comma before `close` is a mistake.
    fn read_items(
        &mut self,
        open: char,
        close: char,
        mut read_item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(open)?;
        self.skip_space();
        if self.peek() == Some(close) {
            return self.expect(close);
        }
        loop {
            read_item(self)?;
            self.skip_space();
            if self.peek() != Some(',') {
                return self.expect(close);
            }
            self.next();
        }
    }

    /// Reads one of the three words that are values: `null`, `true` or `false`.
    fn read_word(&mut self) -> Result<Value, Fault> {
        for (word, value) in [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
        ] {
            if self.rest.starts_with(word) {
                self.rest = &self.rest[word.len()..];
                self.at.column += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("a value"))
    }

    /// Reads a number by the grammar of JSON. Its text is kept: whether it fits
    /// depends on the field.
    fn read_number(&mut self) -> Result<Value, Fault> {
        let mut text = String::new();
        text.extend(self.take_if('-'));
        // No digit follows a leading zero.
        match self.take_if('0') {
            Some(zero) => text.push(zero),
            None => self.read_digits(&mut text)?,
        }

        if let Some(dot) = self.take_if('.') {
            text.push(dot);
            self.read_digits(&mut text)?;
        }
        if let Some(e) = self.take_if('e').or_else(|| self.take_if('E')) {
            text.push(e);
            text.extend(self.take_if('-').or_else(|| self.take_if('+')));
            self.read_digits(&mut text)?;
        }
        Ok(Value::Number(text))
    }

    /// Takes one character off the text, if it is `wanted`.
    fn take_if(&mut self, wanted: char) -> Option<char> {
        (self.peek() == Some(wanted)).then(|| self.next()).flatten()
    }

    /// Takes digits off the text, and appends them to `text`; none at all is a
    /// mistake.
    fn read_digits(&mut self, text: &mut String) -> Result<(), Fault> {
        let len_before = text.len();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            text.push(digit);
            self.next();
        }
        if text.len() == len_before {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    /// Reads a text in quotes, escapes resolved. The quotes may be single, as
    /// they may for Envoy. A control character in it, also a line break, is a
    /// mistake.
    fn read_string(&mut self) -> Result<String, Fault> {
        let quote = match self.peek() {
            Some('\'') => '\'',
            _ => '"',
        };
        self.expect(quote)?;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\0'..='\x1f') => return Err(self.unexpected(&format!("{quote:?}"))),
                Some(c) if c == quote => break,
                Some('\\') => text.push(self.read_escape()?),
                Some(c) => text.push(c),
            }
            self.next();
        }
        self.next();
        Ok(text)
    }

    /// Reads an escape, from its backslash; stops on its last character.
    fn read_escape(&mut self) -> Result<char, Fault> {
        self.next();
        Ok(match self.peek() {
            Some(c @ ('"' | '\'' | '\\' | '/')) => c,
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.read_unicode_escape(),
            _ => return Err(self.unexpected("an escape such as \\n or \\u0041")),
        })
    }

    /// Reads an escape from its `u`: one number of four digits, or two that are
    /// a surrogate pair. Stops on the last digit.
    fn read_unicode_escape(&mut self) -> Result<char, Fault> {
        let first = self.read_hex_digits()?;
        let code = match first {
            HIGH_SURROGATE..LOW_SURROGATE => {
                let (high, low) = (first - HIGH_SURROGATE, self.read_low_surrogate()?);
                0x10000 + (high << 10) + low
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("a valid character"))
    }

    /// Reads the escape of the second half of a surrogate pair, from the last
    /// digit of the first half. Returns the ten bits of the character in it;
    /// anything but a second half is a mistake.
    fn read_low_surrogate(&mut self) -> Result<u32, Fault> {
        let expected = "the second half of a surrogate pair";
        self.next();
        self.expect('\\')?;

        if self.peek() != Some('u') {
            return Err(self.unexpected(expected));
        }
        let second = self.read_hex_digits()?;
        if !(LOW_SURROGATE..AFTER_SURROGATES).contains(&second) {
            return Err(self.unexpected(expected));
        }
        Ok(second - LOW_SURROGATE)
    }

    /// Reads the number in the four hexadecimal digits after the `u`; stops on
    /// the last of them.
    fn read_hex_digits(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            self.next();
            let digit = self.peek().and_then(|c| c.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("a hexadecimal digit"))?;
        }
        Ok(code)
    }
}
