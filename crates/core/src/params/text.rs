//! The readable form of constraints, for people and logs: `env=prod AND NOT
//! version=v1`, `version exists`, `a=1 OR (b=2 AND c=3)`, `always`, `never`.

use std::fmt;

use super::expr::{Expr, ExprNode};

/// Keywords; a key or value of this spelling is quoted.
pub(super) const RESERVED: [&str; 6] = ["AND", "OR", "NOT", "exists", "always", "never"];

/// Returns whether a byte may be in a word without quotes.
pub(super) fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.:/@+*".contains(&byte)
}

/// Returns a key or a value as it is written: in quotes if it could be misread.
pub(super) fn word(text: &str) -> Word<'_> {
    Word(text)
}

/// A key or a value, displayed as it is written.
pub(super) struct Word<'a>(&'a str);

impl fmt::Display for Word<'_> {
    /// Writes the text as it is. An empty text, a keyword, and a text with a
    /// character that a bare word may not have are written in quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0;
        let needs_quotes =
            text.is_empty() || RESERVED.contains(&text) || !text.bytes().all(is_bare);
        if !needs_quotes {
            return f.write_str(text);
        }

        f.write_str("\"")?;
        for char in text.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                // Control characters are escaped, as they would be invisible.
                _ if char.is_control() => write!(f, "\\u{{{:x}}}", u32::from(char))?,
                _ => write!(f, "{char}")?,
            }
        }
        f.write_str("\"")
    }
}

impl fmt::Display for Expr {
    /// Writes the readable form; a list within a list is in parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node() {
            ExprNode::Value { key, value } => write!(f, "{}={}", word(key), word(value)),
            ExprNode::Exists { key } => write!(f, "{} exists", word(key)),
            ExprNode::And(list) => write_list(f, list, " AND ", "always"),
            ExprNode::Or(list) => write_list(f, list, " OR ", "never"),
            ExprNode::Not(inner) => {
                f.write_str("NOT ")?;
                write_operand(f, inner)
            }
        }
    }
}

/// Writes a list with a separator between its members, or `empty` for an empty
/// one.
fn write_list(
    f: &mut fmt::Formatter<'_>,
    list: &[Expr],
    separator: &str,
    empty: &str,
) -> fmt::Result {
    if list.is_empty() {
        return f.write_str(empty);
    }
    for (nth, member) in list.iter().enumerate() {
        if nth > 0 {
            f.write_str(separator)?;
        }
        write_operand(f, member)?;
    }
    Ok(())
}

/// Writes an operand, a list in parentheses, so that no reader has to know
/// which operator binds tighter.
fn write_operand(f: &mut fmt::Formatter<'_>, operand: &Expr) -> fmt::Result {
    match operand.node() {
        ExprNode::And(list) | ExprNode::Or(list) if !list.is_empty() => write!(f, "({operand})"),
        _ => write!(f, "{operand}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_when_they_could_be_misread() {
        for (text, written) in [
            ("v1.2-x_y:80/z@w+*", "v1.2-x_y:80/z@w+*"),
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a=b", r#""a=b""#),
            ("é", r#""é""#),
            ("OR", r#""OR""#),
            ("exists", r#""exists""#),
            ("or", "or"),
            ("\"\\", r#""\"\\""#),
            ("\n\u{85}", r#""\u{a}\u{85}""#),
        ] {
            assert_eq!(word(text).to_string(), written);
        }
    }

    #[test]
    fn expressions_read_well() {
        let (a, b) = (Expr::value("a", "1"), Expr::exists("b"));
        let and = Expr::and(vec![a.clone(), b.clone()]).unwrap();
        let or = Expr::or(vec![a.clone(), b.clone()]).unwrap();
        let always = Expr::and(vec![]).unwrap();
        let never = Expr::or(vec![]).unwrap();
        for (expr, written) in [
            (and.clone(), "a=1 AND b exists"),
            (or.clone(), "a=1 OR b exists"),
            (always.clone(), "always"),
            (never.clone(), "never"),
            (Expr::not(a.clone()).unwrap(), "NOT a=1"),
            (Expr::not(or.clone()).unwrap(), "NOT (a=1 OR b exists)"),
            (Expr::not(always).unwrap(), "NOT always"),
            (
                Expr::or(vec![and, never]).unwrap(),
                "(a=1 AND b exists) OR never",
            ),
            (
                Expr::and(vec![b, or]).unwrap(),
                "b exists AND (a=1 OR b exists)",
            ),
        ] {
            assert_eq!(expr.to_string(), written);
        }
    }
}
