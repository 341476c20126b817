//! Reads the readable form of constraints that [`super::text`] writes.
//!
//! ```text
//! any   = all { "OR" all }
//! all   = one { "AND" one }
//! one   = "NOT" one | "(" any ")" | "always" | "never"
//!       | word "=" word | word "exists"
//! ```
//!
//! A word is bare, or in double quotes with `\"`, `\\` and `\u{hex}`.

use std::borrow::Cow;
use std::str::FromStr;

use super::expr::Expr;
use super::text::{RESERVED, is_bare};
use super::{ConstraintError, Params, ParamsError};

impl FromStr for Expr {
    type Err = ConstraintError;

    /// Parses the readable form, up to the end of the text. The error has the
    /// byte at which something else was expected.
    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        let mut reader = Reader { text, position: 0 };
        let expr = reader.read_disjunction(0)?;
        reader.skip_space();
        if reader.position < text.len() {
            return reader.fail("AND, OR or the end");
        }
        Ok(expr)
    }
}

/// `env=prod,version=v1`, and the empty text for no parameters.
impl FromStr for Params {
    type Err = ParamsError;

    /// Parses pairs, separated by commas. The error has the byte at which
    /// something else was expected, or the limit that is exceeded.
    fn from_str(text: &str) -> Result<Self, ParamsError> {
        let mut reader = Reader { text, position: 0 };
        let pairs = reader.read_pairs().map_err(|error| match error {
            ConstraintError::Syntax { at, expected } => ParamsError::Syntax { at, expected },
            // `read_pairs` returns only errors of syntax.
            _ => ParamsError::Syntax {
                at: 0,
                expected: "a key",
            },
        })?;
        Self::new(pairs)
    }
}

/// A key and its value.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// A text that is read from left to right.
struct Reader<'a> {
    text: &'a str,
    // Always at a character boundary.
    position: usize,
}

impl<'a> Reader<'a> {
    /// Parses parameters, separated by commas, up to the end of the text. A key
    /// may be there twice. All errors are of syntax.
    fn read_pairs(&mut self) -> Result<Vec<Pair<'a>>, ConstraintError> {
        let mut pairs = Vec::new();
        self.skip_space();
        while self.position < self.text.len() {
            if !pairs.is_empty() && !self.take_sign(',') {
                return self.fail("a comma or the end");
            }

            self.skip_space();
            let key = self.read_word("a key")?;
            if !self.take_sign('=') {
                return self.fail("=");
            }

            self.skip_space();
            pairs.push((key, self.read_word("a value")?));
            self.skip_space();
        }
        Ok(pairs)
    }

    /// Reads alternatives, separated by `OR`; `depth` counts the recursion of
    /// [`Self::read_condition`].
    fn read_disjunction(&mut self, depth: usize) -> Result<Expr, ConstraintError> {
        let mut list = vec![self.read_conjunction(depth)?];
        while self.take_keyword("OR") {
            list.push(self.read_conjunction(depth)?);
        }
        Expr::single_or(list, Expr::or)
    }

    /// Reads conditions that hold together, separated by `AND`; `depth` counts
    /// the recursion of [`Self::read_condition`].
    fn read_conjunction(&mut self, depth: usize) -> Result<Expr, ConstraintError> {
        let mut conditions = vec![self.read_condition(depth)?];
        while self.take_keyword("AND") {
            conditions.push(self.read_condition(depth)?);
        }
        Expr::single_or(conditions, Expr::and)
    }

    /// Parses one condition, or several in parentheses. `depth` counts the
    /// recursion, and beyond the limit it is an error.
    fn read_condition(&mut self, depth: usize) -> Result<Expr, ConstraintError> {
        if depth == Expr::MAX_DEPTH {
            let limit = Expr::MAX_DEPTH;
            return Err(ConstraintError::TooDeep { limit });
        }

        if self.take_keyword("NOT") {
            return Expr::not(self.read_condition(depth + 1)?);
        }
        if self.take_sign('(') {
            let inner = self.read_disjunction(depth + 1)?;
            if !self.take_sign(')') {
                return self.fail("AND, OR or )");
            }
            return Ok(inner);
        }
        if self.take_keyword("always") {
            return Expr::and(Vec::new());
        }
        if self.take_keyword("never") {
            return Expr::or(Vec::new());
        }

        let key = self.read_word("a key")?;
        if self.take_sign('=') {
            return Ok(Expr::value(key, self.read_word("a value")?));
        }
        if self.take_keyword("exists") {
            return Ok(Expr::exists(key));
        }
        self.fail("= or exists")
    }

    /// Parses a key or a value, in quotes or bare. A missing word is an error,
    /// which says what was `expected`.
    fn read_word(&mut self, expected: &'static str) -> Result<Cow<'a, str>, ConstraintError> {
        if self.take_sign('"') {
            return self.read_quoted().map(Cow::Owned);
        }

        let word = self.bare_word();
        if word.is_empty() || RESERVED.contains(&word) {
            return self.fail(expected);
        }
        self.position += word.len();
        Ok(Cow::Borrowed(word))
    }

    /// Parses the text from after the opening quote to the closing one, which
    /// is skipped. A missing quote and a wrong escape are errors.
    fn read_quoted(&mut self) -> Result<String, ConstraintError> {
        let mut word = String::new();
        loop {
            let unread = self.unread_text();
            let Some(special) = unread.find(['"', '\\']) else {
                self.position = self.text.len();
                return self.fail("a closing quote");
            };
            word.push_str(&unread[..special]);
            self.position += special + 1;

            if unread[special..].starts_with('"') {
                return Ok(word);
            }
            word.push(self.read_escape()?);
        }
    }

    /// Parses the character of an escape, from after its backslash: a quote, a
    /// backslash, or the hexadecimal number of any character.
    fn read_escape(&mut self) -> Result<char, ConstraintError> {
        let remaining_text = self.unread_text();
        for literal in ['"', '\\'] {
            if remaining_text.starts_with(literal) {
                self.position += 1;
                return Ok(literal);
            }
        }

        let hex = remaining_text.strip_prefix("u{").and_then(|escape| {
            // No character has more than six digits.
            let digits = escape.bytes().take(7).position(|byte| byte == b'}')?;
            let number = u32::from_str_radix(&escape[..digits], 16).ok()?;
            Some((char::from_u32(number)?, "u{}".len() + digits))
        });
        let Some((char, length)) = hex else {
            return self.fail("an escape");
        };
        self.position += length;
        Ok(char)
    }

    /// Skips the space at the current position, and a sign if it comes next.
    /// Returns whether it does.
    fn take_sign(&mut self, sign: char) -> bool {
        self.skip_space();
        let is_present = self.unread_text().starts_with(sign);
        if is_present {
            self.position += sign.len_utf8();
        }
        is_present
    }

    /// Skips the space at the current position, and a keyword if it is the next
    /// bare word. Returns whether it is.
    fn take_keyword(&mut self, keyword: &str) -> bool {
        self.skip_space();
        let is_present = self.bare_word() == keyword;
        if is_present {
            self.position += keyword.len();
        }
        is_present
    }

    /// Returns the bare word at the current position, which stays; empty if
    /// there is none.
    fn bare_word(&self) -> &'a str {
        let unread = self.unread_text();
        let end = unread.bytes().position(|byte| !is_bare(byte));
        &unread[..end.unwrap_or(unread.len())]
    }

    /// Moves the current position past white space.
    fn skip_space(&mut self) {
        let unread = self.unread_text();
        self.position += unread.len() - unread.trim_start().len();
    }

    /// Returns the text from the current position on.
    fn unread_text(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Fails at the current position, where something else was `expected`.
    fn fail<T>(&self, expected: &'static str) -> Result<T, ConstraintError> {
        Err(ConstraintError::Syntax {
            at: self.position,
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, ConstraintError> {
        text.parse().map(|expr: Expr| expr.to_string())
    }

    #[test]
    fn parameters_read_back_as_they_are_shown() {
        for text in ["", "env=prod", "env=prod,version=v1", r#"a="x, y",b="=""#] {
            let params: Params = text.parse().unwrap();
            assert_eq!(params.to_string(), text);
        }
        let params: Params = " b = 2 , a = 1 ".parse().unwrap();
        assert_eq!(params.to_string(), "a=1,b=2");
        for (text, at, expected) in [
            ("env", 3, "="),
            ("env=", 4, "a value"),
            ("=x", 0, "a key"),
            ("a=1 b=2", 4, "a comma or the end"),
            ("a=1,", 4, "a key"),
        ] {
            let error = text.parse::<Params>().unwrap_err();
            assert_eq!(error, ParamsError::Syntax { at, expected }, "{text}");
        }
    }

    #[test]
    fn reads_what_is_written() {
        for text in [
            "a=1",
            "a exists",
            "NOT a=1",
            "NOT NOT a exists",
            "a=1 AND b=2 AND NOT c exists",
            "a=1 OR (b=2 AND c=3) OR d=4",
            "(a=1 OR b=2) AND NOT (c=3 OR d=4)",
            "always",
            "never",
            "NOT always",
            r#""a b"="" AND "OR" exists"#,
            r#""\u{a}\"\\é"="\u{85}""#,
        ] {
            assert_eq!(read(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn reads_other_ways_to_write_it() {
        for (text, written) in [
            ("  a = 1\n", "a=1"),
            ("((a=1))", "a=1"),
            ("(a=1)AND(b=2)", "a=1 AND b=2"),
            ("a=1 AND b=2 OR c=3", "(a=1 AND b=2) OR c=3"),
            ("a=1 OR b=2 AND c=3", "a=1 OR (b=2 AND c=3)"),
            ("NOT a=1 OR b=2", "NOT a=1 OR b=2"),
            ("ANDROID=1", "ANDROID=1"),
            (r#""a"="\u{10ffff}""#, "a=\"\u{10ffff}\""),
        ] {
            assert_eq!(read(text).as_deref(), Ok(written), "{text}");
        }
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        for (text, at, expected) in [
            ("", 0, "a key"),
            ("  ", 2, "a key"),
            ("a", 1, "= or exists"),
            ("a=", 2, "a value"),
            ("a= =", 3, "a value"),
            ("a=AND", 2, "a value"),
            ("OR=1", 0, "a key"),
            ("a=1 b=2", 4, "AND, OR or the end"),
            ("a=1)", 3, "AND, OR or the end"),
            ("(a=1", 4, "AND, OR or )"),
            ("a=1 AND", 7, "a key"),
            ("a=1 OR OR", 7, "a key"),
            (r#"a="x"#, 4, "a closing quote"),
            (r#"a="\n""#, 4, "an escape"),
            (r#"a="\u{}""#, 4, "an escape"),
            (r#"a="\u{d800}""#, 4, "an escape"),
            (r#"a="\u{0000041}""#, 4, "an escape"),
        ] {
            let error = ConstraintError::Syntax { at, expected };
            assert_eq!(read(text), Err(error), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_while_it_is_read() {
        let limit = Expr::MAX_DEPTH;
        let deep = |open: &str, count, close: &str| {
            read(&(open.repeat(count) + "a=1" + &close.repeat(count)))
        };
        assert_eq!(deep("(", limit - 1, ")").as_deref(), Ok("a=1"));
        assert!(deep("NOT ", limit - 1, "").is_ok());
        for count in [limit, 100_000] {
            let too_deep = Err(ConstraintError::TooDeep { limit });
            assert_eq!(deep("(", count, ")"), too_deep);
            assert_eq!(deep("NOT ", count, ""), too_deep);
        }
    }
}
