//! Patterns in which `*` stands for any text.

use std::fmt;
use std::str::FromStr;

use super::error::RuleError;

/// A pattern for a field: a star stands for any text, also for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Returns whether the whole of a text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let Some((head, after_star)) = self.0.split_once('*') else {
            return self.0 == text;
        };
        let (middle, tail) = after_star.rsplit_once('*').unwrap_or(("", after_star));

        let without_head = text.strip_prefix(head);
        let Some(mut inner) = without_head.and_then(|text| text.strip_suffix(tail)) else {
            return false;
        };
        for part in middle.split('*') {
            // The first match of a part leaves most text for the next parts.
            let Some((_, remaining_text)) = inner.split_once(part) else {
                return false;
            };
            inner = remaining_text;
        }
        true
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
