//! One entry of a subscription list: the wildcard, a glob or a name.

use std::fmt;

use super::{Glob, Name, NameError, XdstpName};

/// The names that one entry of a subscription list selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Selector {
    /// Everything of the type.
    Wildcard,
    /// A collection of structured names.
    Glob(Glob),
    /// One resource.
    Name(Name),
}

impl Selector {
    /// Parses an entry as the client wrote it. Names are opaque, so any text is
    /// one, unless it is empty (S27) or longer than `max_bytes`. The canonical
    /// spelling may be up to three times as long, because it encodes characters
    /// that the client did not encode.
    ///
    /// # Errors
    ///
    /// [`NameError::Empty`] and [`NameError::TooLong`], and no other.
    pub fn parse(text: &str, max_bytes: usize) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > max_bytes {
            return Err(NameError::TooLong {
                bytes: text.len(),
                limit: max_bytes,
            });
        }

        if text == "*" {
            return Ok(Self::Wildcard);
        }
        let Ok(name) = XdstpName::parse(text) else {
            // Opaque, or malformed. No resource ever has a malformed name.
            return Ok(Self::Name(Name::opaque(text)));
        };
        Ok(match Glob::from_xdstp(&name) {
            Some(glob) => Self::Glob(glob),
            None => Self::Name(Name::from(&name)),
        })
    }

    /// Returns whether the selector selects the name.
    #[must_use]
    pub fn covers(&self, name: &Name) -> bool {
        match self {
            Self::Wildcard => true,
            Self::Glob(glob) => glob.matches(name),
            Self::Name(selected) => selected == name,
        }
    }

    /// Returns the canonical spelling.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wildcard => "*",
            Self::Glob(glob) => glob.as_str(),
            Self::Name(name) => name.as_str(),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_three_apart() {
        let glob = Glob::parse("xdstp://a/t/*").unwrap();
        for (text, selector) in [
            ("*", Selector::Wildcard),
            ("xdstp://a/t/*", Selector::Glob(glob)),
            ("xdstp://a/t/x", Selector::Name(Name::new("xdstp://a/t/x"))),
            ("xdstp://a/*", Selector::Name(Name::new("xdstp://a/*"))),
            ("a/*", Selector::Name(Name::new("a/*"))),
            ("**", Selector::Name(Name::new("**"))),
            ("\0", Selector::Name(Name::new("\0"))),
        ] {
            assert_eq!(Selector::parse(text, 13).as_ref(), Ok(&selector));
            assert_eq!(selector.as_str(), text);
            assert_eq!(selector.to_string(), text);
        }
    }

    #[test]
    fn asks_are_canonical() {
        let name = Selector::parse("xdstp://a/t/x?b=2&a=1", 100);
        assert_eq!(name.unwrap().as_str(), "xdstp://a/t/x?a=1&b=2");
        let glob = Selector::parse("xdstp://a/t/*?b=2&a=1", 100);
        assert_eq!(glob.unwrap().as_str(), "xdstp://a/t/*?a=1&b=2");
    }

    #[test]
    fn s27_the_empty_text_is_no_wildcard() {
        assert_eq!(Selector::parse("", 10), Err(NameError::Empty));
    }

    #[test]
    fn a_name_has_a_limit() {
        assert!(Selector::parse("12345", 5).is_ok());
        let error = NameError::TooLong { bytes: 6, limit: 5 };
        assert_eq!(Selector::parse("123456", 5), Err(error));
    }
}
