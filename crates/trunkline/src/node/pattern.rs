//! Patterns in which `*` stands for any text.

use std::fmt;
use std::str::FromStr;

use super::error::RuleError;

/// A pattern for a field: a star stands for any text, also for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Whether a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return self.0 == text;
        };
        let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
        let inner = text.strip_prefix(head).and_then(|t| t.strip_suffix(tail));
        // The first place for each part leaves most room for the parts after
        // it.
        let skip_past = |rest: &mut &str, part: &str| {
            let (_, after) = rest.split_once(part)?;
            *rest = after;
            Some(())
        };
        inner.is_some_and(|mut rest| {
            let mut parts = middle.split('*');
            parts.all(|part| skip_past(&mut rest, part).is_some())
        })
    }
}

impl FromStr for Pattern {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        match text {
            "" => Err(RuleError::Empty),
            text => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        let table = [
            ("edge", "edge", true),
            ("edge", "edge-1", false),
            ("edge-*", "edge-", true),
            ("edge-*", "edge", false),
            ("*-eu", "edge-eu", true),
            ("*-eu", "eu", false),
            ("*", "", true),
            ("**", "x", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("a*b*b", "a-b", false),
            ("*ab*ab*", "xabab", true),
            ("*ab*ab*", "xaab", false),
            ("é*", "école", true),
        ];
        for (pattern, text, expected) in table {
            let pattern: Pattern = pattern.parse().unwrap();
            assert_eq!(pattern.matches(text), expected, "{pattern} {text}");
        }
        assert_eq!("".parse::<Pattern>(), Err(RuleError::Empty));
    }
}
