//! JSON into a tree, with positions.
//!
//! YAML is nearly a superset of JSON, but not quite (surrogate pairs, tabs,
//! long keys), so JSON has its own reader.

mod string;

use std::collections::HashMap;

use super::{
    Limits,
    budget::Budget,
    error::Problem,
    slip::{Slip, closing},
    tree::{Entry, Node, Position, Value},
};

type Fault = (Position, Problem);

/// Parses a text that is one value, with only space after it. Returns the
/// number of bytes of memory that the tree takes, too.
pub(super) fn parse(text: &str, limits: &Limits) -> Result<(Node, u64), Fault> {
    let mut reader = Reader {
        unread: text,
        position: Position::START,
        depth: limits.depth,
        max: limits.depth,
        budget: Budget::of_text(text, limits),
    };
    reader.skip_space();
    if reader.unread.is_empty() {
        return Err((Position::START, Problem::of_empty("")));
    }
    let node = reader.read_value()?;
    reader.skip_space();
    if reader.unread.is_empty() {
        return Ok((node, reader.budget.charged_bytes()));
    }
    Err(reader.unexpected("the end of the text"))
}

/// Checks that no key occurs twice in a mapping, which most parsers ignore.
///
/// # Errors
/// The first key that occurs twice.
pub(super) fn refuse_duplicates(entries: &[Entry]) -> Result<(), Fault> {
    let mut positions = HashMap::with_capacity(entries.len());
    for entry in entries {
        if let Some(first) = positions.insert(&entry.key, entry.at) {
            let key = entry.key.clone();
            return Err((entry.at, Problem::DuplicateKey { key, first }));
        }
    }
    Ok(())
}

/// Makes the mistake of a slip.
fn slip(position: Position, slip: Slip) -> Fault {
    (position, Problem::Slip(slip))
}

/// Reads a JSON text, and keeps the place up to which it was read.
struct Reader<'a> {
    unread: &'a str,
    /// The place of the first character of `unread`.
    position: Position,
    /// Levels that may still be opened.
    depth: usize,
    max: usize,
    /// The values that the text may still hold.
    budget: Budget<'a>,
}

impl Reader<'_> {
    /// Returns the next character, which stays unread; `None` at the end of the
    /// text.
    fn peek(&self) -> Option<char> {
        self.unread.chars().next()
    }

    /// Removes the first character from the text, and advances the position.
    /// Returns `None` at the end of the text.
    fn next_char(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.unread = &self.unread[character.len_utf8()..];
        if character == '\n' {
            self.position.line += 1;
            self.position.column = 1;
        } else {
            self.position.column += 1;
        }
        Some(character)
    }

    /// Skips the characters that JSON allows between values.
    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\r' | '\n')) {
            self.next_char();
        }
    }

    /// Makes the mistake of a character, or of the end of the text, where
    /// `expected` should be.
    fn unexpected(&self, expected: &str) -> Fault {
        let found = self.peek().map_or("the end".into(), |c| format!("{c:?}"));
        let problem = Problem::Syntax(format!("expected {expected}, found {found}"));
        (self.position, problem)
    }

    /// Takes one character off the text, which must be `expected`.
    fn expect(&mut self, expected: char) -> Result<(), Fault> {
        if self.peek() != Some(expected) {
            return Err(self.unexpected(&format!("{expected:?}")));
        }
        self.next_char();
        Ok(())
    }

    /// Reads a value of any kind, and the space before it. The position of the
    /// value is that of its first character.
    fn read_value(&mut self) -> Result<Node, Fault> {
        self.skip_space();
        let position = self.position;
        self.count_value()?;
        let value = match self.peek() {
            Some('{') => self.read_nested(Self::read_map)?,
            Some('[') => self.read_nested(Self::read_list)?,
            Some('"' | '\'') => Value::String(self.read_string()?),
            Some('-' | '0'..='9') => self.read_number()?,
            Some('/' | '#') => return Err(slip(position, Slip::Comment)),
            _ => self.read_word()?,
        };
        Ok(Node {
            at: position,
            value,
        })
    }

    /// Counts a value or a key before it is read.
    ///
    /// # Errors
    /// The value exceeds the memory limit.
    fn count_value(&mut self) -> Result<(), Fault> {
        let position = self.position;
        let result = match self.peek() {
            Some('{' | '[') => self.budget.charge_collection(),
            _ => self.budget.charge_scalar(),
        };
        result.map_err(|problem| (position, problem))
    }

    /// Reads a list or a mapping with `read_inner`.
    ///
    /// # Errors
    /// The value has one level too many, or a mistake inside.
    fn read_nested(
        &mut self,
        read_inner: fn(&mut Self) -> Result<Value, Fault>,
    ) -> Result<Value, Fault> {
        let max = self.max;
        let levels_left = self.depth.checked_sub(1);
        self.depth = levels_left.ok_or((self.position, Problem::TooDeep { max }))?;
        let value = read_inner(self)?;
        self.depth += 1;
        Ok(value)
    }

    /// Reads a mapping; its keys must differ.
    fn read_map(&mut self) -> Result<Value, Fault> {
        let mut entries = Vec::new();
        self.read_items('{', |reader| {
            let position = reader.position;
            reader.count_value()?;
            let key = reader.read_key()?;
            reader.skip_space();
            reader.expect(':')?;
            let node = reader.read_value()?;
            entries.push(Entry {
                at: position,
                key,
                node,
            });
            Ok(())
        })?;
        refuse_duplicates(&entries)?;
        Ok(Value::Map(entries))
    }

    /// Reads a list of values of any kind.
    fn read_list(&mut self) -> Result<Value, Fault> {
        let mut list = Vec::new();
        self.read_items('[', |reader| {
            list.push(reader.read_value()?);
            Ok(())
        })?;
        Ok(Value::List(list))
    }

    /// Reads the key of a mapping, which is in quotes.
    fn read_key(&mut self) -> Result<String, Fault> {
        let word = self
            .unread
            .split(|character: char| !character.is_alphanumeric() && character != '_');
        match (self.peek(), word.into_iter().next()) {
            (Some('/' | '#'), _) => Err(slip(self.position, Slip::Comment)),
            (Some(character), Some(word)) if character.is_alphabetic() || character == '_' => {
                Err(slip(self.position, Slip::KeyWithoutQuotes(word.to_owned())))
            }
            _ => self.read_string(),
        }
    }

    /// Reads items with commas between them, each with `read_item`, from the
    /// bracket `open` to the closing one. A comma after the last item is a
    /// mistake.
    fn read_items(
        &mut self,
        open: char,
        mut read_item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let start = self.position;
        let close = closing(open);
        self.expect(open)?;
        self.skip_space();
        if self.peek() == Some(close) {
            return self.expect(close);
        }

        loop {
            if self.peek().is_none() {
                return Err(slip(start, Slip::Bracket(open)));
            }
            read_item(self)?;
            self.skip_space();

            let position = self.position;
            match self.peek() {
                Some(',') => self.next_char(),
                Some(character) if character == close => return self.expect(close),
                _ => return Err(self.no_comma(open, start)),
            };
            self.skip_space();
            if self.peek() == Some(close) {
                return Err(slip(position, Slip::LastComma(close)));
            }
        }
    }

    /// Makes the mistake of an item that has neither a comma nor the closing
    /// bracket after it. `start` is the position of the bracket `open`.
    fn no_comma(&self, open: char, start: Position) -> Fault {
        let position = self.position;
        match self.peek() {
            None => slip(start, Slip::Bracket(open)),
            Some('/' | '#') => slip(position, Slip::Comment),
            Some(close @ (']' | '}')) => slip(
                start,
                Slip::WrongBracket {
                    open,
                    close,
                    at: position,
                },
            ),
            Some(_) => slip(position, Slip::NoComma),
        }
    }

    /// Reads one of the three words that are values: `null`, `true` or `false`.
    fn read_word(&mut self) -> Result<Value, Fault> {
        for (word, value) in [
            ("null", Value::Null),
            ("true", Value::Bool(true)),
            ("false", Value::Bool(false)),
        ] {
            if self.unread.starts_with(word) {
                self.unread = &self.unread[word.len()..];
                self.position.column += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("a value"))
    }

    /// Reads a number by the grammar of JSON. The number is kept as text, since
    /// the range depends on the field.
    fn read_number(&mut self) -> Result<Value, Fault> {
        let mut text = String::new();
        text.extend(self.take_if('-'));
        match self.take_if('0') {
            Some(_)
                if self
                    .peek()
                    .is_some_and(|character| character.is_ascii_digit()) =>
            {
                return Err(self.unexpected("a number without a leading zero"));
            }
            Some(zero) => text.push(zero),
            None => self.read_digits(&mut text)?,
        }

        if let Some(dot) = self.take_if('.') {
            text.push(dot);
            self.read_digits(&mut text)?;
        }
        if let Some(exponent) = self.take_if('e').or_else(|| self.take_if('E')) {
            text.push(exponent);
            text.extend(self.take_if('-').or_else(|| self.take_if('+')));
            self.read_digits(&mut text)?;
        }
        Ok(Value::Number(text))
    }

    /// Takes one character off the text, if it is `expected`.
    fn take_if(&mut self, expected: char) -> Option<char> {
        (self.peek() == Some(expected))
            .then(|| self.next_char())
            .flatten()
    }

    /// Moves digits from the front of the input to `text`.
    ///
    /// # Errors
    /// There is no digit.
    fn read_digits(&mut self, text: &mut String) -> Result<(), Fault> {
        let len_before = text.len();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            text.push(digit);
            self.next_char();
        }
        if text.len() == len_before {
            return Err(self.unexpected("a digit"));
        }
        Ok(())
    }
}
