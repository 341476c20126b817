//! Texts of JSON: quotes and escapes.

use super::{Fault, Reader, Slip, slip};

/// The first halves of surrogate pairs, from here up to the second ones.
const HIGH_SURROGATE: u32 = 0xd800;
/// The second halves of surrogate pairs, from here on.
const LOW_SURROGATE: u32 = 0xdc00;
/// The first number after both.
const AFTER_SURROGATES: u32 = 0xe000;

impl Reader<'_> {
    /// Reads a text in quotes, and resolves escapes. Quotes may be single, as
    /// Envoy allows.
    ///
    /// # Errors
    /// The text has no end in its line, or contains a control character or an
    /// invalid escape.
    pub(super) fn read_string(&mut self) -> Result<String, Fault> {
        let quote = match self.peek() {
            Some('\'') => '\'',
            _ => '"',
        };
        let start = self.position;
        self.expect(quote)?;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => return Err(slip(start, Slip::Quote(quote))),
                Some('\0'..='\x1f') => return Err(self.unexpected(&format!("{quote:?}"))),
                Some(character) if character == quote => break,
                Some('\\') => text.push(self.read_escape()?),
                Some(character) => text.push(character),
            }
            self.next_char();
        }

        self.next_char();
        Ok(text)
    }

    /// Reads an escape, from its backslash. Stops at its last character.
    fn read_escape(&mut self) -> Result<char, Fault> {
        self.next_char();
        Ok(match self.peek() {
            Some(character @ ('"' | '\'' | '\\' | '/')) => character,
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => return self.read_unicode_escape(),
            _ => return Err(self.unexpected("an escape such as \\n or \\u0041")),
        })
    }

    /// Reads an escape from its `u`: one number of four digits, or a surrogate
    /// pair of two. Stops at the last digit.
    fn read_unicode_escape(&mut self) -> Result<char, Fault> {
        let first_number = self.read_hex_digits()?;
        let code_point = match first_number {
            HIGH_SURROGATE..LOW_SURROGATE => {
                let (high, low) = (first_number - HIGH_SURROGATE, self.read_low_surrogate()?);
                0x10000 + (high << 10) + low
            }
            number => number,
        };
        char::from_u32(code_point).ok_or_else(|| self.unexpected("a valid character"))
    }

    /// Reads the escape of the second half of a surrogate pair, from the last
    /// digit of the first half. Returns the ten bits of the character that are
    /// in it.
    ///
    /// # Errors
    /// Something else follows the first half.
    fn read_low_surrogate(&mut self) -> Result<u32, Fault> {
        let expected = "the second half of a surrogate pair";
        self.next_char();
        self.expect('\\')?;

        if self.peek() != Some('u') {
            return Err(self.unexpected(expected));
        }
        let half = self.read_hex_digits()?;
        if !(LOW_SURROGATE..AFTER_SURROGATES).contains(&half) {
            return Err(self.unexpected(expected));
        }
        Ok(half - LOW_SURROGATE)
    }

    /// Reads the four hexadecimal digits after the `u`. Stops at the last
    /// digit.
    fn read_hex_digits(&mut self) -> Result<u32, Fault> {
        let mut code = 0;
        for _ in 0..4 {
            self.next_char();
            let digit = self.peek().and_then(|character| character.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("a hexadecimal digit"))?;
        }
        Ok(code)
    }
}
