//! Texts of JSON: quotes and escapes.

use super::{Fault, Reader, Slip, slip};

/// The first halves of surrogate pairs, from here up to the second ones.
const HIGH_SURROGATE: u32 = 0xd800;
/// The second halves of surrogate pairs, from here on.
const LOW_SURROGATE: u32 = 0xdc00;
/// The first number after both.
const AFTER_SURROGATES: u32 = 0xe000;

impl Reader<'_> {
    /// Reads a text in quotes, escapes resolved. The quotes may be single, as
    /// they may for Envoy. A control character in it, also a line break, is a
    /// mistake.
    pub(super) fn read_string(&mut self) -> Result<String, Fault> {
        let quote = match self.peek() {
            Some('\'') => '\'',
            _ => '"',
        };
        let start = self.at;
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
            self.next();
        }
        self.next();
        Ok(text)
    }

    /// Reads an escape, from its backslash; stops on its last character.
    fn read_escape(&mut self) -> Result<char, Fault> {
        self.next();
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
