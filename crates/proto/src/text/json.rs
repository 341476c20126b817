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

/// The one value of the text.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<Node, Fault> {
    let at = Position { line: 1, column: 1 };
    let mut reader = Reader {
        rest: text,
        at,
        depth: limits.depth,
        max: limits.depth,
    };
    let node = reader.value()?;
    reader.space();
    if reader.rest.is_empty() {
        return Ok(node);
    }
    Err(reader.unexpected("the end of the text"))
}

/// Two equal keys in one mapping are a mistake that most readers hide.
pub(super) fn refuse_duplicates(entries: &[Entry]) -> Result<(), Fault> {
    let mut seen = HashSet::new();
    match entries.iter().find(|e| !seen.insert(&e.key)) {
        Some(entry) => Err((entry.at, Problem::DuplicateKey(entry.key.clone()))),
        None => Ok(()),
    }
}

struct Reader<'a> {
    rest: &'a str,
    at: Position,
    /// Levels that may still be opened.
    depth: usize,
    max: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

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

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.next();
        }
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = self.peek().map_or("the end".into(), |c| format!("{c:?}"));
        let problem = Problem::Syntax(format!("expected {wanted}, found {found}"));
        (self.at, problem)
    }

    fn expect(&mut self, wanted: char) -> Result<(), Fault> {
        if self.peek() != Some(wanted) {
            return Err(self.unexpected(&format!("{wanted:?}")));
        }
        self.next();
        Ok(())
    }

    fn value(&mut self) -> Result<Node, Fault> {
        self.space();
        let at = self.at;
        let value = match self.peek() {
            Some('{') => self.nested(Self::map)?,
            Some('[') => self.nested(Self::list)?,
            Some('"') => Value::String(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at, value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        let max = self.max;
        self.depth = self
            .depth
            .checked_sub(1)
            .ok_or((self.at, Problem::TooDeep { max }))?;
        let value = read(self)?;
        self.depth += 1;
        Ok(value)
    }

    fn map(&mut self) -> Result<Value, Fault> {
        let mut entries = Vec::new();
        self.items('{', '}', |reader| {
            reader.space();
            let at = reader.at;
            let key = reader.string()?;
            reader.space();
            reader.expect(':')?;
            let node = reader.value()?;
            entries.push(Entry { at, key, node });
            Ok(())
        })?;
        refuse_duplicates(&entries)?;
        Ok(Value::Map(entries))
    }

    fn list(&mut self) -> Result<Value, Fault> {
        let mut list = Vec::new();
        self.items('[', ']', |reader| {
            list.push(reader.value()?);
            Ok(())
        })?;
        Ok(Value::List(list))
    }

    fn items(
        &mut self,
        open: char,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(open)?;
        self.space();
        if self.peek() == Some(close) {
            return self.expect(close);
        }
        loop {
            item(self)?;
            self.space();
            if self.peek() != Some(',') {
                return self.expect(close);
            }
            self.next();
        }
    }

    fn word(&mut self) -> Result<Value, Fault> {
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

    fn number(&mut self) -> Result<Value, Fault> {
        let mut text = String::new();
        text.extend(self.take('-'));
        match self.take('0') {
            Some(zero) => text.push(zero),
            None => self.digits(&mut text)?,
        }
        if let Some(dot) = self.take('.') {
            text.push(dot);
            self.digits(&mut text)?;
        }
        if let Some(e) = self.take('e').or_else(|| self.take('E')) {
            text.push(e);
            text.extend(self.take('-').or_else(|| self.take('+')));
            self.digits(&mut text)?;
        }
        Ok(Value::Number(text))
    }

    fn take(&mut self, wanted: char) -> Option<char> {
        (self.peek() == Some(wanted)).then(|| self.next()).flatten()
    }

    fn digits(&mut self, text: &mut String) -> Result<(), Fault> {
        let before = text.len();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            text.push(digit);
            self.next();
        }
        if text.len() == before {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.expect('"')?;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\0'..='\x1f') => return Err(self.unexpected("'\"'")),
                Some('"') => break,
                Some('\\') => text.push(self.escape()?),
                Some(c) => text.push(c),
            }
            self.next();
        }
        self.next();
        Ok(text)
    }

    /// Stops on the last character of the escape.
    fn escape(&mut self) -> Result<char, Fault> {
        self.next();
        Ok(match self.peek() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.unicode(),
            _ => return Err(self.unexpected("an escape such as \\n or \\u0041")),
        })
    }

    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff => {
                self.next();
                self.expect('\\')?;
                if self.peek() != Some('u') {
                    return Err(self.unexpected("the second half of a surrogate pair"));
                }
                let second = self.hex()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(self.unexpected("the second half of a surrogate pair"));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("a valid character"))
    }

    /// Four digits after the `u`; stops on the last of them.
    fn hex(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            self.next();
            let digit = self.peek().and_then(|c| c.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("a hexadecimal digit"))?;
        }
        Ok(code)
    }
}
